"""Recorded jobs as external assets: Dagster runs none of them, and hears of each of their runs once, with checks."""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg
import orjson
import pyarrow as pa

from monitoring_platform.event_log.job_events import JOB
from monitoring_platform.marts.registry import BY_NAME
from monitoring_platform.orchestration.resources import Platform
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.store import Warehouse

_LOOK_BACK, _SHOWN = timedelta(days=7), timedelta(days=30)
_MOST = 1000  # events of one job that are looked through for runs told before
Row = dict[str, Any]


def job_key(name: str) -> dg.AssetKey:
    """The asset of a job."""
    return dg.AssetKey(["jobs", _plain(name)])


def job_specs(warehouse: Warehouse) -> list[dg.AssetSpec]:
    """An asset for each job that is known now."""
    return [
        dg.AssetSpec(
            job_key(row["pipeline_name"]),
            group_name="jobs",
            description=f"The job {row['pipeline_name']}, recorded by itself.",
            kinds={"spark"},
        )
        for row in _jobs(warehouse)
    ]


def job_checks(warehouse: Warehouse) -> list[dg.AssetChecksDefinition]:
    """The checks that jobs told of in the last 30 days, so that Dagster shows them before it hears of a result.

    Running them computes nothing: it tells the newest results again.
    """
    known = _known_checks(warehouse)
    if not known:
        return []

    @dg.multi_asset_check(
        name="job_checks",
        specs=[dg.AssetCheckSpec(key.name, asset=key.asset_key, description="Told by the job.") for key in known],
        can_subset=True,
    )
    def told_again(context: dg.AssetCheckExecutionContext, platform: Platform) -> Iterator[dg.AssetCheckResult]:
        warehouse = platform.warehouse()
        newest = {k: run for k, run in _known_checks(warehouse).items() if k in context.selected_asset_check_keys}
        checks = _checks(warehouse, list(newest.values()))
        for key, run in newest.items():
            told = [o for o in _outcomes(run, checks.get(run["update_id"], [])) if o["check_name"] == key.name]
            yield from (dg.AssetCheckResult(**outcome) for outcome in told[-1:])

    return [told_again]


def report_jobs(instance: dg.DagsterInstance, warehouse: Warehouse) -> int:
    """Tell Dagster of runs that ended, of the jobs that the last ingest read; gives how many it had not heard of.

    A success is a materialization, a failure an observation. What was told before is asked of Dagster, so that nothing
    is told twice, whoever asked and whatever was interrupted.
    """
    jobs = _jobs(warehouse)
    newest = max((row["last_ingested_at"] for row in jobs if row["last_ingested_at"]), default=None)
    read = {row["pipeline_id"]: row for row in jobs if row["last_ingested_at"] == newest}
    told = {id: _told(instance, job_key(row["pipeline_name"])) for id, row in read.items()}
    since = min((row["last_event_ts"] for row in read.values() if row["last_event_ts"]), default=None)
    if since is None:
        return 0
    runs = warehouse.stored(
        BY_NAME["pipeline_runs"].table,
        None,
        pa.table({"pipeline_id": list(read)}),
        since=("last_event_ts", since - _LOOK_BACK),
    ).to_pylist()
    new = [run for run in runs if run["end_ts"] and run["update_id"] not in told[run["pipeline_id"]]]
    checks = _checks(warehouse, new)
    for run in sorted(new, key=lambda run: (run["end_ts"], run["update_id"])):
        for outcome in _outcomes(run, checks.get(run["update_id"], [])):
            instance.report_runless_asset_event(dg.AssetCheckEvaluation(**outcome))
        instance.report_runless_asset_event(_event(run))  # last: it is what marks the run as told
    return len(new)


def _jobs(warehouse: Warehouse) -> list[Row]:
    rows: list[Row] = warehouse.arrow(contracts.PIPELINES, None, {"pipeline_type": [JOB]}).to_pylist()
    return rows


def _told(instance: dg.DagsterInstance, key: dg.AssetKey) -> set[str]:
    """Runs that Dagster has heard of."""
    events: Sequence[Any] = [
        *(record.asset_materialization for record in instance.fetch_materializations(key, limit=_MOST).records),
        *(record.asset_observation for record in instance.fetch_observations(key, limit=_MOST).records),
    ]
    return {str(event.metadata["run_id"].value) for event in events if event and "run_id" in event.metadata}


def _event(run: Row) -> dg.AssetMaterialization | dg.AssetObservation:
    metadata = {
        "run_id": run["update_id"],
        "status": run["status"],
        "minutes": None if run["duration_seconds"] is None else round(run["duration_seconds"] / 60, 2),
        "dagster/row_count": run["rows_written"],
        "rows_dropped": run["rows_dropped"],
        "ended_at": run["end_ts"].isoformat(),
    }
    kind = dg.AssetMaterialization if run["status"] == "COMPLETED" else dg.AssetObservation
    known = {name: value for name, value in metadata.items() if value is not None}
    return kind(job_key(run["pipeline_name"]), metadata=known)


def _outcomes(run: Row, checks: list[Row]) -> Iterator[Row]:
    """What Dagster is told of each check of a run."""
    for check in checks:
        known = {} if check["failure_pct"] is None else {"failure_pct": check["failure_pct"]}
        yield {
            "asset_key": job_key(run["pipeline_name"]),
            "check_name": _check_name(check["dataset"], check["name"]),
            "passed": bool(check["passed"]),
            "severity": dg.AssetCheckSeverity.WARN,
            "metadata": {"run_id": run["update_id"], **known},
        }


def _check_name(dataset: str, check: str) -> str:
    return _plain(f"{dataset.rsplit('/', 1)[-1]}_{check}")


def _known_checks(warehouse: Warehouse) -> dict[dg.AssetCheckKey, Row]:
    """Each check that a job told of in the last 30 days with any event, and the newest run that did."""
    jobs = _jobs(warehouse)
    newest = max((row["last_event_ts"] for row in jobs if row["last_event_ts"]), default=None)
    if newest is None:
        return {}
    names = {row["pipeline_id"]: row["pipeline_name"] for row in jobs}
    table, wanted = BY_NAME["expectation_results"].table, pa.table({"pipeline_id": list(names)})
    columns = ["pipeline_id", "update_id", "dataset", "expectation", "last_event_ts"]
    rows = warehouse.stored(table, columns, wanted, since=("last_event_ts", newest - _SHOWN)).to_pylist()
    known: dict[dg.AssetCheckKey, Row] = {}
    for row in sorted(rows, key=lambda row: (row["last_event_ts"], row["update_id"])):
        name = names[row["pipeline_id"]]
        key = dg.AssetCheckKey(job_key(name), _check_name(row["dataset"], row["expectation"]))
        known[key] = {**row, "pipeline_name": name}
    return known


def _checks(warehouse: Warehouse, runs: list[Row]) -> dict[str, list[Row]]:
    """Checks by run, as the jobs told them."""
    found: dict[str, list[Row]] = {}
    if not runs:
        return found
    wanted = pa.table({name: [run[name] for run in runs] for name in ("pipeline_id", "update_id")})
    for row in warehouse.stored(contracts.UNION, ["update_id", "event_type", "details"], wanted).to_pylist():
        if row["event_type"] == "flow_progress" and row["details"]:
            quality = orjson.loads(row["details"])["flow_progress"].get("data_quality") or {}
            found.setdefault(row["update_id"], []).extend(quality.get("expectations") or [])
    return found


def _plain(name: str) -> str:
    """A name that Dagster takes."""
    return re.sub(r"\W", "_", name, flags=re.ASCII)
