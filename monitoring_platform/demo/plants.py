"""The planted problems as the truth file names them: who has which, and the figures that prove it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from monitoring_platform.demo import truth as told
from monitoring_platform.demo.definitions import SINK_SETTING
from monitoring_platform.demo.events import Json, iso
from monitoring_platform.demo.journal import Journal
from monitoring_platform.demo.planning import back_ticked
from monitoring_platform.demo.planting import (
    AFTER_THE_CHANGE,
    BEFORE_THE_CHANGE,
    FULL_RECOMPUTE_EXPRESSION,
    NIGHT_FLOW,
)
from monitoring_platform.demo.scenarios import LOST_FILE, NIGHT_ERROR
from monitoring_platform.demo.timeline import turning_point
from monitoring_platform.demo.truth import RunTruth
from monitoring_platform.demo.updates import UNKNOWN_EVENT_TYPE, UNKNOWN_METRIC, UNKNOWN_STATUS


def planted(journal: Journal) -> Json | None:
    """The entry of a pipeline's planted problem; None for a pipeline without one, or with one in its files only."""
    pipeline = journal.pipeline
    if pipeline.plant not in _DETAILS:
        return None
    details = _DETAILS[pipeline.plant](journal)
    return {"pipeline_id": pipeline.id, "pipeline_name": pipeline.name, "kind": pipeline.plant, "details": details}


def _latest_chain(journal: Journal) -> list[RunTruth]:
    return [run for run in journal.runs if run.request_id == journal.runs[-1].request_id]


def _chain(journal: Journal) -> Json:
    chain = _latest_chain(journal)
    errors = [event.error for event in journal.events if event.error and event.level == "ERROR"]
    message = errors[-1]["exceptions"][0]["message"]
    return {
        "request_id": chain[0].request_id,
        "request_id_in_log": "no_request_ids" not in journal.pipeline.quirks,
        "update_ids": [run.update_id for run in chain],
        "states": [run.status for run in chain],
        "flow": journal.pipeline.flows[-1].name,
        "error_class": _error_class(message),
        "error_message": message,
    }


def _error_class(message: str) -> str:
    return message[1 : message.index("]")]


def _rule(journal: Journal) -> Json:
    return {**_verdict(journal.runs[-1]), "update_id": journal.runs[-1].update_id}


def _verdict(run: RunTruth) -> Json:
    (dataset, rule), (passed, failed) = next(item for item in run.rules.items() if item[0][1] == "valid_id")
    return {
        "dataset": dataset,
        "expectation": rule,
        "passed": passed,
        "failed": failed,
        "pass_rate_pct": 100 * passed / (passed + failed),
    }


def _decay(journal: Journal) -> Json:
    rates = [{"at": iso(run.first_event), **_verdict(run)} for run in journal.runs]
    return {**_rule(journal), "pass_rates_pct": [(entry["at"], entry["pass_rate_pct"]) for entry in rates]}


def _zero(journal: Journal) -> Json:
    *before, last = map(_written, journal.runs)
    return {"update_id": journal.runs[-1].update_id, "rows_written": last, "rows_written_before": before}


def _written(run: RunTruth) -> int:
    return sum(run.total(counter) or 0 for counter in ("rows_output", "rows_upserted", "rows_deleted"))


def _slow(journal: Journal) -> Json:
    *before, last = journal.runs
    return {
        "update_id": last.update_id,
        "flow": journal.pipeline.flows[0].name,
        "seconds": last.seconds,
        "seconds_before": [run.seconds for run in before],
        "listing_seconds": (last.flows[journal.pipeline.flows[0].name].listing_ms or 0) / 1000,
    }


def _last_event(journal: Journal) -> Json:
    return {"last_event_ts": iso(journal.events[-1].ts)}


def _created(journal: Journal) -> Json:
    return {"created_ts": iso(journal.events[0].ts)}


def _nights(journal: Journal) -> Json:
    failed = [run for run in journal.runs if run.status == "FAILED"]
    return {
        "flow": NIGHT_FLOW,
        "error_class": NIGHT_ERROR,
        "hour": 3,
        "update_ids": [run.update_id for run in failed],
        "at": [iso(run.first_event) for run in failed],
    }


def _recompute(journal: Journal) -> Json:
    """The episode: since when, why, and what it costs."""
    flow, place = journal.pipeline.flows[0], turning_point(len(journal.runs))
    *before, since = journal.runs[: place + 1]
    return {
        "flow": flow.name,
        "since_update_id": since.update_id,
        "since_ts": iso(since.first_event),
        "full_runs": len(journal.runs) - place,
        "reason": "PLAN_NOT_INCREMENTALIZABLE (AGGREGATE_WITH_DISTINCT)",
        "offending_table": back_ticked(flow.inputs[0]),
        "offending_expression": FULL_RECOMPUTE_EXPRESSION,
        "flow_id_changed": since.flows[flow.name].flow_id != before[-1].flows[flow.name].flow_id,
        "run_seconds_before": [run.seconds for run in before],
        "run_seconds_since": [run.seconds for run in journal.runs[place:]],
    }


def _reset(journal: Journal) -> Json:
    (reset,) = told.resets(journal.runs)
    return reset


def _schema_change(journal: Journal) -> Json:
    place = turning_point(len(journal.runs))
    before, after = dict(BEFORE_THE_CHANGE), dict(AFTER_THE_CHANGE)
    return {
        "dataset": journal.pipeline.flows[0].dataset,
        "update_id": journal.runs[place].update_id,
        "previous_update_id": journal.runs[place - 1].update_id,
        "columns": [
            {"column": name, "change": change, "old_type": before.get(name), "new_type": after.get(name)}
            for name in sorted(before.keys() | after.keys())
            if (change := _change(before.get(name), after.get(name)))
        ],
    }


def _change(old: str | None, new: str | None) -> str | None:
    if old == new:
        return None
    return "added" if old is None else "dropped" if new is None else "type_changed"


def _rule_life(journal: Journal) -> Json:
    """What became of the last rule of the first flow."""
    flow, place = journal.pipeline.flows[0], turning_point(len(journal.runs))
    rule, since = flow.rules[-1], journal.runs[place]
    details = {
        "dataset": flow.dataset,
        "expectation": rule.name,
        "state": (journal.pipeline.plant or "").removeprefix("rule_"),
        "action": rule.action,
        "previous_action": None,
        "action_changed_at": None,
        "gone_at": None,
        "renamed_to": None,
    }
    if journal.pipeline.plant == "rule_never_evaluated":
        return details
    details["update_id"] = since.update_id
    at = iso(since.first_event)
    if journal.pipeline.plant == "rule_action_changed":
        return {**details, "action": "DROP", "previous_action": rule.action, "action_changed_at": at}
    renamed = "timestamp_is_fresh" if journal.pipeline.plant == "rule_renamed" else None
    return {**details, "gone_at": at, "renamed_to": renamed}


def _backlog(journal: Journal) -> Json:
    place = 0 if journal.pipeline.plant == "growing_backlog" else -1
    flow, trend = journal.pipeline.flows[place], (journal.pipeline.plant or "").removesuffix("_backlog")
    return {"flow": flow.name, "trend": trend, "latest_backlog_bytes": _waiting_bytes(journal, flow.name)}


def _waiting_bytes(journal: Journal, flow: str) -> int:
    told_last = (run.flows[flow].backlog for run in reversed(journal.runs) if flow in run.flows)
    return 187 * next(waiting for waiting in told_last if waiting is not None)


def _stalled(journal: Journal) -> Json:
    last = journal.runs[-1]
    return {
        "update_id": last.update_id,
        "flows": {
            name: {**entry, "backlog_bytes": _waiting_bytes(journal, name)}
            for name, entry in told.liveness([last]).items()
        },
    }


def _shared(journal: Journal) -> Json:
    failed = next(run for run in journal.runs if run.status == "FAILED")
    message = next(event.error for event in journal.events if event.error)["exceptions"][-1]["message"]
    return {
        "error_class": LOST_FILE,
        "error_message": message,
        "update_id": failed.update_id,
        "flow": journal.pipeline.flows[0].name,
    }


def _refusal(journal: Journal) -> Json:
    refused = next(run for run in journal.runs if run.is_refused)
    return {"update_id": refused.update_id, "request_id": refused.request_id}


def _sink(journal: Journal) -> Json:
    flow = journal.pipeline.flows[-1]
    return {"flow": flow.name, "sink": flow.dataset, "input": flow.inputs[0], "redacted_option": SINK_SETTING}


def _notices(journal: Journal) -> Json:
    """How often each notice and each report of a hook was written."""
    codes, hooks = Counter[str](), Counter[str]()
    for event in journal.events:
        body = (event.details or {}).get(event.event_type, {})
        if event.event_type == "hook_progress":
            hooks[f"{body['name']} {body['status']}"] += 1
        elif event.event_type in ("deprecation", "behavior_change_in_spark_connect"):
            codes[body.get("message") or body["issue"]] += 1
    return {"codes": dict(codes), "hooks": dict(hooks)}


def _unknown(journal: Journal) -> Json:
    found = sum(event.event_type == UNKNOWN_EVENT_TYPE for event in journal.events)
    return {"event_type": UNKNOWN_EVENT_TYPE, "events": found, "drift": {f"event_type={UNKNOWN_EVENT_TYPE}": found}}


def _unknown_details(journal: Journal) -> Json:
    """One row of every run has both the unknown status and the unknown member."""
    found = sum(journal.pipeline.flows[0].name in run.flows for run in journal.runs)
    paths = f"status={UNKNOWN_STATUS}", f"metrics.{UNKNOWN_METRIC}"
    return {"drift": {f"details.flow_progress.{path}": found for path in paths}}


_DETAILS: dict[str | None, Callable[[Journal], Json]] = {
    "still_failing": _chain,
    "recovered": _chain,
    "retry_running": _chain,
    "low_pass_rate": _rule,
    "decaying_rule": _decay,
    "zero_rows": _zero,
    "slow": _slow,
    "stale": _last_event,
    "never_ran": _created,
    "night_errors": _nights,
    "unknown_event_type": _unknown,
    "unknown_details": _unknown_details,
    "full_recompute": _recompute,
    "lost_checkpoint": _reset,
    "schema_change": _schema_change,
    "rule_vanished": _rule_life,
    "rule_renamed": _rule_life,
    "rule_action_changed": _rule_life,
    "rule_never_evaluated": _rule_life,
    "growing_backlog": _backlog,
    "stuck_backlog": _backlog,
    "stalled": _stalled,
    "shared_error": _shared,
    "refused": _refusal,
    "sink": _sink,
    "notices": _notices,
}
