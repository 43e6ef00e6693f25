"""The main job on one engine, in a process of its own: `python -m tests.acceptance.engine_cycle CONFIG DELIVERIES OUT`.

DELIVERIES/1 and /2 are copied over the logs one after the other, each followed by the Dagster job `refresh`; OUT/2 gets
all tables, and OUT/report.json what the jobs said. A mart of each kind is refreshed, not all.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq

from monitoring_platform.marts import registry

MARTS = (
    "flow_metrics",
    "pipeline_runs",
    "failures",
    "pipeline_errors",
    "drift_days",
    "requests",
    "error_groups",
)
VIEW = "minutes"


def main(config: Path, deliveries: Path, out: Path) -> None:
    """One job for each delivery."""
    registry.MARTS = tuple(mart for mart in registry.MARTS if mart.name in MARTS)  # before others take it from there
    from monitoring_platform.config import load, use_config
    from monitoring_platform.marts.own import stored_views
    from monitoring_platform.orchestration.runner import run_cycle
    from monitoring_platform.warehouse.contracts import BOOKS, UNION
    from monitoring_platform.warehouse.opening import open_warehouse
    from tests.conftest import NOW

    use_config(config)
    settings = load(config)
    warehouse = open_warehouse(settings)
    report = {}
    for number, delivery in enumerate(sorted(deliveries.iterdir()), start=1):
        if number > 1:  # what maintenance rewrites is not new to the next cycle
            warehouse.tidy(UNION, (NOW + timedelta(days=1)).date())
        shutil.copytree(delivery, settings.base_dir / "logs", dirs_exist_ok=True)
        result = run_cycle(settings, (NOW + timedelta(hours=number)).isoformat())
        report[delivery.name] = result.as_dict()
        print(*result.errors, sep="\n", file=sys.stderr)  # what was not meant to fail is seen in the test
    folder = out / delivery.name
    folder.mkdir(parents=True)
    for table in (*BOOKS, *(registry.BY_NAME[name].table for name in MARTS), *stored_views(warehouse)):
        pq.write_table(warehouse.arrow(table), folder / f"{table.name}.parquet")
    (out / "report.json").write_text(json.dumps(report, indent=1, default=str), encoding="utf-8")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # the embedded server would be waited for
