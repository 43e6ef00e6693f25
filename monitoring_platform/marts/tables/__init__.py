"""Contracts of the marts by subject: grain, keys, and type, unit and meaning of null of every column."""
