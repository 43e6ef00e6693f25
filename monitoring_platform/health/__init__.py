"""Judging what the tables say."""
