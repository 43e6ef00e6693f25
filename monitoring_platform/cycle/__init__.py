"""The steps of one cycle, as plain functions: ingest, union, marts. Dagster assets and the command line call these."""
