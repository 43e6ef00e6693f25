"""The marts held against the truth about the fleet: what is planted has to be found, and nothing else."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from monitoring_platform.demo.events import Json
from monitoring_platform.marts.registry import BY_NAME
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.store import Warehouse

Facts = dict[tuple[str, ...], Any]
Pair = tuple[Facts, Facts]

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
_REQUEST = ("attempts", "outcome", "first_update_id", "last_update_id")
_RULE = ("state", "action", "previous_action", "action_changed_at", "gone_at", "renamed_to")


def differences(truth: Json, warehouse: Warehouse) -> dict[str, list[tuple[Any, Any, Any]]]:
    """For each kind of fact: (key, true value, value found) wherever they differ."""
    return {name: _compare(expected, found) for name, (expected, found) in _pairs(truth, warehouse)}


def compare(truth: Json, warehouse: Warehouse) -> dict[str, tuple[int, int]]:
    """For each kind of fact: how many are right, of how many (missing and surplus rows count as wrong)."""
    counted = {}
    for name, (expected, found) in _pairs(truth, warehouse):
        total = len(expected.keys() | found.keys())
        counted[name] = (total - len(_compare(expected, found)), total)
    return counted


def _compare(expected: Facts, found: Facts) -> list[tuple[Any, Any, Any]]:
    keys = sorted(expected.keys() | found.keys(), key=repr)
    return [(key, expected.get(key), found.get(key)) for key in keys if expected.get(key) != found.get(key)]


def _pairs(truth: Json, warehouse: Warehouse) -> Iterator[tuple[str, Pair]]:
    yield "events by pipeline", _events(truth, warehouse)
    runs = _table(warehouse, "pipeline_runs")
    yield "runs", _runs(truth, runs)
    yield "run times", _run_times(truth, runs)
    yield "flows", _flows(truth, warehouse)
    yield "requests", _requests(truth, warehouse)
    yield "expectations", _expectations(truth, warehouse)
    yield "quarantined", _quarantined(truth, warehouse)
    yield "failures", _failures(truth, warehouse)
    yield "error groups", _error_groups(truth, warehouse)
    yield "refresh decisions", _decisions(truth, warehouse)
    yield "full recomputes", _recomputes(truth, warehouse)
    yield "flow resets", _resets(truth, warehouse)
    yield "schema changes", _schema_changes(truth, warehouse)
    yield "life of expectations", _rules(truth, warehouse)
    yield "backlogs in trouble", _backlogs(truth, warehouse)
    yield "liveness", _liveness(truth, warehouse)
    yield "lineage", _lineage(truth, warehouse)
    yield "file listings", _listings(truth, warehouse)
    yield "user actions", _user_actions(truth, warehouse)
    yield "notices and hooks", _notices(truth, warehouse)
    yield "schema drift", _drift(truth, warehouse)
    yield "costs", _costs(truth, warehouse)


# Reading both sides


def _table(warehouse: Warehouse, name: str) -> list[dict[str, Any]]:
    return list(warehouse.arrow(BY_NAME[name].table).to_pylist())


def _found(warehouse: Warehouse, name: str, columns: Iterable[str]) -> Facts:
    """Values of a table under its keys."""
    return _by_keys(_table(warehouse, name), BY_NAME[name].table.keys, columns)


def _by_keys(rows: list[dict[str, Any]], keys: Iterable[str], columns: Iterable[str]) -> Facts:
    return {tuple(row[key] for key in keys): tuple(row[column] for column in columns) for row in rows}


def _planted(truth: Json, *kinds: str) -> Iterator[tuple[str, Json]]:
    """Pipeline and details of the plants of these kinds."""
    return ((plant["pipeline_id"], plant["details"]) for plant in truth["planted"] if plant["kind"] in kinds)


def _by_update(part: Json) -> Facts:
    """What the truth keeps by pipeline and update."""
    return {(pipeline, update): told for pipeline, updates in part.items() for update, told in updates.items()}


def _by_flow(part: Json) -> Facts:
    """What the truth keeps by pipeline, update and flow."""
    return {(*key, flow): told for key, flows in _by_update(part).items() for flow, told in flows.items()}


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))


# What was counted


def _events(truth: Json, warehouse: Warehouse) -> Pair:
    stored = warehouse.arrow(contracts.UNION, ["pipeline_id"])["pipeline_id"].to_pylist()
    told: Facts = {(pipeline,): entry["events"] for pipeline, entry in truth["pipelines"].items()}
    return told, {(pipeline,): number for pipeline, number in Counter(stored).items()}


def _runs(truth: Json, runs: list[dict[str, Any]]) -> Pair:
    told: Facts = {key: tuple(run[name] for name in _RUN) for key, run in _by_update(truth["runs"]).items()}
    return told, _by_keys(runs, ("pipeline_id", "update_id"), _RUN.values())


def _run_times(truth: Json, runs: list[dict[str, Any]]) -> Pair:
    told: Facts = {
        key: (_time(run["start_ts"]), _time(run["end_ts"])) for key, run in _by_update(truth["runs"]).items()
    }
    return told, _by_keys(runs, ("pipeline_id", "update_id"), ("start_ts", "end_ts"))


def _flows(truth: Json, warehouse: Warehouse) -> Pair:
    told: Facts = {key: tuple(flow[column] for column in _FLOW) for key, flow in _by_flow(truth["flows"]).items()}
    return told, _found(warehouse, "flow_metrics", _FLOW)


def _requests(truth: Json, warehouse: Warehouse) -> Pair:
    told: Facts = {
        key: tuple(request[name] for name in _REQUEST) for key, request in _by_update(truth["requests"]).items()
    }
    return told, _found(warehouse, "requests", _REQUEST)


def _expectations(truth: Json, warehouse: Warehouse) -> Pair:
    told: Facts = {
        (e["pipeline_id"], e["update_id"], e["dataset"], e["expectation"]): (e["passed"], e["failed"])
        for e in truth["expectations"]
    }
    return told, _found(warehouse, "expectation_results", ("passed_records", "failed_records"))


def _quarantined(truth: Json, warehouse: Warehouse) -> Pair:
    stored = warehouse.arrow(contracts.QUARANTINE, ["reason"]).num_rows
    return _numbered(truth["quarantined"]), _numbered(stored)


def _numbered(rows: int) -> Facts:
    return dict.fromkeys(((str(number),) for number in range(rows)), True)


# How runs failed


def _failures(truth: Json, warehouse: Warehouse) -> Pair:
    told: Facts = {key: (failure["kind"],) for key, failure in _by_update(truth["failures"]).items()}
    return told, _found(warehouse, "failures", ("kind",))


def _error_groups(truth: Json, warehouse: Warehouse) -> Pair:
    """By root error: how often it struck, and where. A group that fell apart gives two entries where one is true."""
    failed = {key: f for key, f in _by_update(truth["failures"]).items() if f["kind"] == "failed"}
    where: dict[str, list[str]] = defaultdict(list)
    for (pipeline, _), failure in failed.items():
        where[failure["root_error"]].append(pipeline)
    found: dict[str, list[Any]] = defaultdict(list)
    for row in _table(warehouse, "error_groups"):
        newest = failed.get((row["latest_pipeline_id"], row["latest_update_id"]), {"root_error": "never planted"})
        found[newest["root_error"]].append((row["failures"], row["pipeline_ids"]))
    return (
        {(error,): [(len(pipelines), sorted(set(pipelines)))] for error, pipelines in where.items()},
        {(error,): sorted(groups) for error, groups in found.items()},
    )


# How views are refreshed, and what got lost


def _decisions(truth: Json, warehouse: Warehouse) -> Pair:
    found: Facts = defaultdict(list)
    for row in _table(warehouse, "refresh_decisions"):
        found[row["pipeline_id"], row["update_id"], row["flow_name"]].append(row["technique"])
    return {key: [technique] for key, technique in _by_flow(truth["decisions"]).items()}, dict(found)


def _recomputes(truth: Json, warehouse: Warehouse) -> Pair:
    told: Facts = {
        (pipeline, plant["flow"], plant["since_update_id"]): (
            True,
            plant["full_runs"],
            plant["reason"],
            plant["offending_table"],
            plant["offending_expression"],
            plant["flow_id_changed"],
        )
        for pipeline, plant in _planted(truth, "full_recompute")
    }
    columns = ("is_current", "full_runs", "reasons", "offending_tables", "offending_expressions", "flow_id_changed")
    return told, _found(warehouse, "recompute_watch", columns)


def _resets(truth: Json, warehouse: Warehouse) -> Pair:
    told: Facts = {
        (pipeline, reset["update_id"], reset["flow"]): (reset["previous_update_id"], reset["explanation"])
        for pipeline, resets in truth["resets"].items()
        for reset in resets
    }
    return told, _found(warehouse, "flow_resets", ("previous_update_id", "explanation"))


# What is defined


def _schema_changes(truth: Json, warehouse: Warehouse) -> Pair:
    told: Facts = {
        (pipeline, plant["update_id"], plant["dataset"], column["column"]): (
            plant["previous_update_id"],
            column["change"],
            column["old_type"],
            column["new_type"],
        )
        for pipeline, plant in _planted(truth, "schema_change")
        for column in plant["columns"]
    }
    return told, _found(warehouse, "schema_changes", ("previous_update_id", "change", "old_type", "new_type"))


def _rules(truth: Json, warehouse: Warehouse) -> Pair:
    """Rules of which more can be told than that they are active."""
    kinds = ("rule_vanished", "rule_renamed", "rule_action_changed", "rule_never_evaluated")
    told: Facts = {
        (pipeline, plant["dataset"], plant["expectation"]): tuple(
            _time(plant[name]) if name.endswith("_at") else plant[name] for name in _RULE
        )
        for pipeline, plant in _planted(truth, *kinds)
    }
    found = _found(warehouse, "expectation_lifecycle", _RULE)
    return told, {key: life for key, life in found.items() if life[0] != "active"}


def _lineage(truth: Json, warehouse: Warehouse) -> Pair:
    """Edges by qualified names: however a pipeline's code spells them, those of two pipelines meet."""
    told: Facts = {
        (pipeline, update, edge["flow"], edge["input"]): (edge["output"], edge["sink"])
        for pipeline, graph in truth["lineage"].items()
        for update in graph["update_ids"]
        for edge in graph["edges"]
    }
    keys = ("pipeline_id", "update_id", "flow_name", "qualified_input")
    return told, _by_keys(_table(warehouse, "flow_lineage"), keys, ("qualified_output", "output_sink"))


# How flows are doing


def _backlogs(truth: Json, warehouse: Warehouse) -> Pair:
    kinds = ("growing_backlog", "stuck_backlog")
    told: Facts = {
        (pipeline, plant["flow"]): (plant["trend"], "bytes", plant["latest_backlog_bytes"])
        for pipeline, plant in _planted(truth, *kinds)
    }
    found = _found(warehouse, "backlog_trends", ("trend", "unit", "latest_backlog"))
    return told, {key: backlog for key, backlog in found.items() if backlog[0] in ("growing", "stuck")}


def _liveness(truth: Json, warehouse: Warehouse) -> Pair:
    told: Facts = {
        (pipeline, flow): (life["update_id"], life["state"], _time(life["last_batch_ts"]))
        for (pipeline, flow), life in _by_update(truth["liveness"]).items()
    }
    return told, _found(warehouse, "flow_liveness", ("update_id", "state", "last_batch_ts"))


def _listings(truth: Json, warehouse: Warehouse) -> Pair:
    told: Facts = {key: (ms / 1000,) for key, ms in _by_flow(truth["listings"]).items()}
    found = _found(warehouse, "flow_durations", ("listing_seconds",))
    return told, {key: listing for key, listing in found.items() if listing[0] is not None}


# What else is said


def _user_actions(truth: Json, warehouse: Warehouse) -> Pair:
    found = Counter((row["pipeline_id"], row["action"]) for row in _table(warehouse, "user_actions"))
    return _by_update(truth["user_actions"]), dict(found)


def _notices(truth: Json, warehouse: Warehouse) -> Pair:
    told: Facts = {
        (pipeline, what): number
        for pipeline, plant in _planted(truth, "notices")
        for what, number in (*plant["codes"].items(), *plant["hooks"].items())
    }
    found = Counter((row["pipeline_id"], row["code"]) for row in _table(warehouse, "deprecations"))
    found.update((row["pipeline_id"], f"{row['hook']} {row['status']}") for row in _table(warehouse, "hooks"))
    return told, dict(found)


def _drift(truth: Json, warehouse: Warehouse) -> Pair:
    told: Facts = {
        (plant["pipeline_id"], what): (number,)
        for plant in truth["planted"]
        for what, number in plant["details"].get("drift", {}).items()
    }
    return told, _found(warehouse, "schema_drift", ("events",))


# What it cost


def _costs(truth: Json, warehouse: Warehouse) -> Pair:
    """By pipeline and outcome of updates, or maintenance; and what has no price."""
    told: Facts = {
        (pipeline, what): Decimal(cost) for pipeline, costs in truth["costs"].items() for what, cost in costs.items()
    }
    told[("unpriced",)] = Decimal(truth["unpriced"])
    found: Facts = defaultdict(Decimal)
    for row in _table(warehouse, "pipeline_costs"):
        if row["unpriced_reason"]:
            found[("unpriced",)] += row["usage_quantity"]
        else:
            found[row["pipeline_id"], row["outcome"] or row["kind"]] += row["cost"]
    return told, dict(found)
