"""A Databricks workspace: its pipelines, the ways to their logs, and what else it knows of them."""
