"""A warehouse with incidents and no engine, for tests of what is told about them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import orjson
import pyarrow as pa

from monitoring_platform.health.notify.delivering import Delivered, notify
from monitoring_platform.marts.registry import STOCK
from monitoring_platform.warehouse.store import Warehouse
from tests.conftest import Site

T0 = datetime(2026, 3, 10, 12, tzinfo=timezone.utc)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SECRET = "s3cr3tw0rd"


def at(minutes: float) -> datetime:
    """So many minutes after noon."""
    return T0 + minutes * MINUTE


class Desk:
    """Incidents and their transitions as `watch` writes them."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse

    def put(self, table: str, *rows: dict[str, Any]) -> None:
        """Insert or replace rows; columns that are not given are null."""
        contract = STOCK[table]
        self.warehouse.create((contract,))
        new = pa.Table.from_pylist(list(rows), contract.schema)
        self.warehouse.merge(contract, new, contract.schema.empty_table())

    def happened(
        self,
        transition: str,
        when: datetime,
        incident: str = "i1",
        pipelines: tuple[str, ...] = ("orders",),
        title: str = "failed: AnalysisException",
        severity: str = "error",
        rule: str = "request_failed",
        owner: str | None = None,
        is_told: bool = True,
        **evidence: Any,
    ) -> None:
        """A transition, with the incident as it then is. The id of pipeline `orders` is `id-orders`."""
        ids = [f"id-{name}" for name in pipelines]
        known = {row["incident_id"]: row for row in self.warehouse.arrow(STOCK["incidents"]).to_pylist()}
        opened = known[incident]["opened_at"] if incident in known else when
        found = [
            {"pipeline_id": key, "pipeline_name": name, "since": opened.isoformat(), "title": title, **evidence}
            for key, name in zip(ids, pipelines)
        ]
        told = orjson.dumps({"found": found, "found_in_all": len(found)}).decode()
        shared = {"incident_id": incident, "severity": severity, "pipeline_ids": ids, "title": title, "evidence": told}
        self.put(
            "incidents",
            {
                **shared,
                "fingerprint": incident,
                "rule": rule,
                "pipeline_names": list(pipelines),
                "owner": owner,
                "started_at": opened,
                "opened_at": opened,
                "last_seen_at": when,
                "resolved_at": when if transition == "resolved" else None,
                "count": 1,
                "reopened": 0,
            },
        )
        self.put("incident_events", {**shared, "at": when, "transition": transition, "is_told": is_told})

    def tick(self, now: datetime) -> Delivered:
        """What the sensor does."""
        return notify(self.warehouse, now)

    def run(self, *minutes: float) -> None:
        """A tick at each of these minutes after noon."""
        for minute in minutes:
            self.tick(at(minute))

    def rows(self, **where: Any) -> list[dict[str, Any]]:
        """Deliveries in the order of their transitions."""
        rows = self.warehouse.arrow(STOCK["alert_deliveries"]).to_pylist()
        rows = [row for row in rows if all(row[name] == value for name, value in where.items())]
        return sorted(rows, key=lambda row: (row["transition_at"], row["channel"]))


def site_with(make_site: Callable[..., Site], notifications: str, rest: str = "", name: str = "site") -> Desk:
    """A configuration with this section, indented by two."""
    return Desk(make_site(name, f"notifications:\n{notifications}{rest}").warehouse)
