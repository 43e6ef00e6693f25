"""Figures of docs/performance.md: the product against usual solutions on the same generated event logs."""
