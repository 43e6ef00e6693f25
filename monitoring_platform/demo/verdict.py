"""The marts held against the truth about the fleet."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from monitoring_platform.marts.registry import EXPECTATION_RESULTS, FLOW_METRICS, PIPELINE_RUNS, REQUESTS
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.store import Warehouse

Facts = dict[tuple[str, ...], Any]
_RUN = {
    "status": "status",
    "cause": "cause",
    "request_id": "request_id",
    "attempt": "attempt_number",
    "is_full_refresh": "is_full_refresh",
    "kind": "run_kind",
    "rows_output": "rows_output",
    "rows_upserted": "rows_upserted",
    "rows_deleted": "rows_deleted",
    "rows_dropped": "rows_dropped",
    "error_count": "error_count",
}
_FLOW = ("status", "rows_output", "rows_upserted", "rows_deleted", "rows_dropped")


def differences(truth: dict[str, Any], warehouse: Warehouse) -> dict[str, list[tuple[Any, Any, Any]]]:
    """For each kind of fact: (key, true value, value found) wherever they differ."""
    return {name: _compare(expected, found) for name, (expected, found) in _pairs(truth, warehouse).items()}


def compare(truth: dict[str, Any], warehouse: Warehouse) -> dict[str, tuple[int, int]]:
    """For each kind of fact: how many are right, of how many (missing and surplus rows count as wrong)."""
    counted = {}
    for name, (expected, found) in _pairs(truth, warehouse).items():
        total = len(expected.keys() | found.keys())
        counted[name] = (total - len(_compare(expected, found)), total)
    return counted


def _compare(expected: Facts, found: Facts) -> list[tuple[Any, Any, Any]]:
    keys = sorted(expected.keys() | found.keys())
    return [(key, expected.get(key), found.get(key)) for key in keys if expected.get(key) != found.get(key)]


def _pairs(truth: dict[str, Any], warehouse: Warehouse) -> dict[str, tuple[Facts, Facts]]:
    runs = warehouse.arrow(PIPELINE_RUNS).to_pylist()
    events: Facts = {}
    for pipeline_id in warehouse.arrow(contracts.UNION, ["pipeline_id"])["pipeline_id"].to_pylist():
        events[(pipeline_id,)] = events.get((pipeline_id,), 0) + 1
    true_runs = {(p, u): run for p, updates in truth["runs"].items() for u, run in updates.items()}
    return {
        "events by pipeline": (
            {(id_,): entry["events"] for id_, entry in truth["pipelines"].items()},
            events,
        ),
        "runs": (
            {key: tuple(run[name] for name in _RUN) for key, run in true_runs.items()},
            {(r["pipeline_id"], r["update_id"]): tuple(r[name] for name in _RUN.values()) for r in runs},
        ),
        "run times": (
            {key: (_time(run["start_ts"]), _time(run["end_ts"])) for key, run in true_runs.items()},
            {(r["pipeline_id"], r["update_id"]): (r["start_ts"], r["end_ts"]) for r in runs},
        ),
        "flows": (
            {
                (p, u, name): tuple(flow[column] for column in _FLOW)
                for p, updates in truth["flows"].items()
                for u, flows in updates.items()
                for name, flow in flows.items()
            },
            _rows(warehouse.arrow(FLOW_METRICS).to_pylist(), FLOW_METRICS.keys, _FLOW),
        ),
        "requests": (
            {
                (p, id_): (r["attempts"], r["outcome"], r["first_update_id"], r["last_update_id"])
                for p, requests in truth["requests"].items()
                for id_, r in requests.items()
            },
            _rows(
                warehouse.arrow(REQUESTS).to_pylist(),
                REQUESTS.keys,
                ("attempts", "outcome", "first_update_id", "last_update_id"),
            ),
        ),
        "expectations": (
            {
                (e["pipeline_id"], e["update_id"], e["dataset"], e["expectation"]): (e["passed"], e["failed"])
                for e in truth["expectations"]
            },
            _rows(
                warehouse.arrow(EXPECTATION_RESULTS).to_pylist(),
                EXPECTATION_RESULTS.keys,
                ("passed_records", "failed_records"),
            ),
        ),
        "quarantined": (
            dict.fromkeys(((str(i),) for i in range(truth["quarantined"])), True),
            dict.fromkeys(((str(i),) for i in range(warehouse.arrow(contracts.QUARANTINE, ["reason"]).num_rows)), True),
        ),
    }


def _rows(rows: list[dict[str, Any]], keys: tuple[str, ...], columns: Iterable[str]) -> Facts:
    return {tuple(row[key] for key in keys): tuple(row[column] for column in columns) for row in rows}


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))
