"""One cycle in a process of its own, to be killed: `python -m tests.acceptance.one_cycle CONFIG`."""

from __future__ import annotations

import os
import sys

from monitoring_platform.config import load
from monitoring_platform.cycle.ingest import ingest
from monitoring_platform.cycle.union import unite
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import NOW, refresh_marts

warehouse = open_warehouse(load(sys.argv[1]))
_ = warehouse.spark.version
print("ready", flush=True)
with warehouse.lock():
    ingest(warehouse, NOW)
    unite(warehouse)
    refresh_marts(warehouse)
os._exit(0)
