"""One place that tells a data team what its Lakeflow/DLT pipelines did."""
