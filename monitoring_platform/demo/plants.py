"""The planted problems as the truth file names them: who has which, and the figures that prove it."""

from __future__ import annotations

from collections.abc import Callable

from monitoring_platform.demo.events import Json, iso
from monitoring_platform.demo.fleet import NIGHT_FLOW
from monitoring_platform.demo.history import NIGHT_ERROR
from monitoring_platform.demo.journal import Journal
from monitoring_platform.demo.truth import RunTruth
from monitoring_platform.demo.updates import UNKNOWN_EVENT_TYPE


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


def _unknown(journal: Journal) -> Json:
    found = sum(event.event_type == UNKNOWN_EVENT_TYPE for event in journal.events)
    return {"event_type": UNKNOWN_EVENT_TYPE, "events": found}


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
}
