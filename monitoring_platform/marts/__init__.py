"""Downstream tables: one .sql file and one registry entry each."""
