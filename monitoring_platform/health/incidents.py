"""From what rules find to incidents: a pure step from one evaluation to the next.

Trouble with the same fingerprint is one incident, whatever pipelines it concerns. It opens when it has held for long
enough and nothing silences it, and resolves when an evaluation that could judge it no longer finds it. Trouble that
comes back soon keeps its incident. What is merely the consequence of trouble upstream is part of that trouble.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

import orjson

from monitoring_platform.config import Rule, Settings, matches
from monitoring_platform.health.calendars import in_maintenance
from monitoring_platform.health.rules import RANK, Evaluation, Found, Pipeline, kind

Row = dict[str, Any]
Transition = Literal["opened", "escalated", "resolved"]

_BLIND_SHARE = 0.1  # of the pipelines not processed: then nothing resolves
_FLAPS_TOLD = 3  # times that it came back, before that is told


@dataclass
class State:
    """What the next evaluation needs of those before: rows of the tables of the same names.

    `incidents`: the open ones, and those resolved within the time in which trouble counts as the same.
    """

    findings: list[Row] = field(default_factory=list)
    incidents: list[Row] = field(default_factory=list)


@dataclass
class Step:
    """What one evaluation makes of it: all findings, the incidents that changed, and their transitions."""

    findings: list[Row]
    incidents: list[Row]
    events: list[Row]
    results: list[Row]


def lately(incidents: Iterable[Row], settings: Settings, now: datetime) -> list[Row]:
    """Of incidents those that are open, or that trouble would come back to."""
    reopen = timedelta(hours=settings.notifications.reopen_hours)
    return [row for row in incidents if row["resolved_at"] is None or now - row["resolved_at"] <= reopen]


def fingerprint(found: Found) -> str:
    """The same for the same trouble at another time: the rule, and its cause or else the pipeline."""
    return digest(found.rule, found.cause if found.cause is not None else "\0" + found.pipeline_id)


def step(
    state: State,
    evaluations: Sequence[Evaluation],
    settings: Settings,
    watched: Sequence[Pipeline],
    now: datetime,
    upstream: Mapping[str, set[str]],
    not_processed: frozenset[str] = frozenset(),
) -> Step:
    """One evaluation. `upstream`: pipelines whose datasets a pipeline reads; `not_processed`: read without success."""
    known = {pipeline.pipeline_id: pipeline for pipeline in watched}
    findings = _findings(state, evaluations, settings, known, now)
    _fold(findings, upstream, state)
    machine = _Machine(state, settings, known, now)
    for key, rows in _grouped(findings).items():
        machine.found(key, rows)
    is_blind = len(not_processed & known.keys()) > _BLIND_SHARE * max(len(known), 1)
    judged = {evaluation.rule for evaluation in evaluations if evaluation.error is None}
    machine.resolve({row["fingerprint"] for row in findings}, judged if not is_blind else set(), not_processed)
    results = [
        {
            "rule": evaluation.rule,
            "evaluated_at": now,
            "found": len(evaluation.found),
            "open": sum(row["rule"] == evaluation.rule and row["incident_id"] is not None for row in findings),
            "not_processed": len(not_processed & known.keys()),
            "error": evaluation.error,
        }
        for evaluation in evaluations
    ]
    return Step([_stored(row) for row in findings], list(machine.changed.values()), machine.events, results)


# ---- findings ----


def _findings(
    state: State, evaluations: Sequence[Evaluation], settings: Settings, known: Mapping[str, Pipeline], now: datetime
) -> list[Row]:
    before = {(row["rule"], row["pipeline_id"], row["subject"]): row for row in state.findings}
    rows: dict[tuple[str, str, str], Row] = {}
    failed = {evaluation.rule for evaluation in evaluations if evaluation.error is not None}
    for found in sorted(
        (found for evaluation in evaluations for found in evaluation.found),
        key=lambda found: (found.rule, found.pipeline_id, found.subject, found.title),
    ):
        pipeline = known.get(found.pipeline_id)
        if pipeline is None:
            continue
        key = (found.rule, found.pipeline_id, found.subject)
        earlier = before.get(key)
        rule = settings.rule(found.rule)
        row = {
            "rule": found.rule,
            "pipeline_id": found.pipeline_id,
            "subject": found.subject,
            "pipeline_name": pipeline.name,
            "owner": rule.owner or pipeline.owner,
            "severity": found.severity,
            "fingerprint": fingerprint(found),
            "title": found.title,
            "since": found.since,
            "first_found_at": earlier["first_found_at"] if earlier else now,
            "cycles": earlier["cycles"] + 1 if earlier else 1,
            "incident_id": None,
            "evidence": found.evidence,
        }
        row["state"] = _state(row, rule, pipeline, settings, now)
        rows.setdefault(key, row)
    # Of a rule that could not be evaluated the findings of before are the best that is known.
    kept = [{**row, "evidence": orjson.loads(row["evidence"])} for key, row in before.items() if key[0] in failed]
    return [*rows.values(), *kept]


def _state(row: Row, rule: Rule, pipeline: Pipeline, settings: Settings, now: datetime) -> str:
    began = row["since"] or now
    if any(in_maintenance(entry, settings.time_zone, pipeline, min(began, now)) for entry in settings.maintenance):
        return "maintenance"
    for snooze in settings.snoozes:
        if now < snooze.ends and matches(snooze.rules, row["rule"]) and pipeline.suits(snooze):
            return "snoozed"
    if row["cycles"] < rule.for_cycles or now - row["first_found_at"] < timedelta(minutes=rule.for_minutes):
        return "pending"
    return "open"


def _fold(findings: list[Row], upstream: Mapping[str, set[str]], state: State) -> None:
    """Mark what is the consequence of trouble upstream or said more exactly by another rule, and say of which.

    It stays so for a while when that is over: until its pipeline has run again it cannot show that it is well.
    """
    opened: dict[str, list[Row]] = defaultdict(list)
    causes: dict[str, Row] = {}
    for row in findings:
        if row["state"] != "open":
            continue
        opened[row["pipeline_id"]].append(row)
        if kind(row["rule"]).is_cause and RANK[row["severity"]] > 0:
            first = causes.get(row["pipeline_id"])
            if first is None or _began(row) < _began(first):
                causes[row["pipeline_id"]] = row
    recent = {row["incident_id"] for row in state.incidents}
    folded = {
        (row["rule"], row["pipeline_id"], row["subject"]): row
        for row in state.findings
        if row["state"] == "folded" and row["incident_id"] in recent
    }
    for row in findings:
        known = kind(row["rule"])
        if row["state"] != "open" or not (known.folds or known.restates):
            continue
        readings = _all_upstream(row["pipeline_id"], upstream) if known.folds else ()
        reached = [causes[key] for key in readings if key in causes]
        earlier = [cause for cause in reached if _began(cause) <= _began(row)] or [
            other
            for other in opened[row["pipeline_id"]]
            if other["rule"] in known.restates and RANK[other["severity"]] >= RANK[row["severity"]]
        ]
        before = folded.get((row["rule"], row["pipeline_id"], row["subject"]))
        if earlier:
            root = min(earlier, key=lambda cause: (_began(cause), cause["pipeline_id"]))
            row["state"], row["folded_into"] = "folded", (root["rule"], root["pipeline_id"], root["subject"])
        elif before is not None and before["since"] == row["since"]:
            row["state"], row["incident_id"] = "folded", before["incident_id"]


def _began(row: Row) -> datetime:
    """When it began: `since` moves on where the newest run counts, so at the latest when it was first found."""
    began: datetime = min(row["since"] or row["first_found_at"], row["first_found_at"])
    return began


def _all_upstream(pipeline_id: str, upstream: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    found = upstream.get(pipeline_id, set())
    while found:
        seen |= found
        found = set().union(*(upstream.get(key, ()) for key in found)) - seen
    return seen - {pipeline_id}


def _grouped(findings: list[Row]) -> dict[str, list[Row]]:
    """By fingerprint; what is folded goes with its cause, through a chain of causes to the first one."""
    by_key = {(row["rule"], row["pipeline_id"], row["subject"]): row for row in findings}
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in findings:
        root, passed = row, set()
        while root.get("folded_into") and root["folded_into"] not in passed:
            passed.add(root["folded_into"])
            root = by_key[root["folded_into"]]
        groups[root["fingerprint"]].append(row)
    return groups


def _stored(row: Row) -> Row:
    kept = {key: value for key, value in row.items() if key != "folded_into"}
    return {**kept, "evidence": _json(row["evidence"])}


# ---- incidents ----


class _Machine:
    """The incidents of one evaluation."""

    def __init__(self, state: State, settings: Settings, known: Mapping[str, Pipeline], now: datetime) -> None:
        self.settings, self.known, self.now = settings, known, now
        self.changed: dict[str, Row] = {}
        self.events: list[Row] = []
        self._by_fingerprint: dict[str, Row] = {}
        for row in sorted(lately(state.incidents, settings, now), key=lambda row: row["opened_at"]):
            self._by_fingerprint[row["fingerprint"]] = dict(row)

    def found(self, key: str, rows: list[Row]) -> None:
        """Trouble with this fingerprint: the findings that it explains."""
        own = [row for row in rows if row["fingerprint"] == key]
        telling = [row for row in own if row["state"] == "open"]
        incident = self._by_fingerprint.get(key)
        if not telling and (incident is None or incident["resolved_at"] is not None):
            return
        if incident is None:
            incident = self._open(key, telling)
        else:
            if incident["resolved_at"] is not None:
                self._reopen(incident, telling)
            self._go_on(incident, telling)
        for row in rows:
            if row["state"] in ("open", "folded"):
                row["incident_id"] = incident["incident_id"]
        incident["last_seen_at"] = self.now
        if telling:
            incident["evidence"] = _json(_evidence(telling, [row for row in rows if row["state"] == "folded"]))
        self.changed[incident["incident_id"]] = incident

    def _open(self, key: str, telling: list[Row]) -> Row:
        first = _worst(telling)
        incident = {
            "incident_id": digest(key, self.now.isoformat()),
            "fingerprint": key,
            "rule": first["rule"],
            "title": _title(telling),
            "severity": first["severity"],
            **self._concerned(telling, ()),
            "started_at": min((row["since"] for row in telling if row["since"]), default=None),
            "opened_at": self.now,
            "last_seen_at": self.now,
            "resolved_at": None,
            "escalated_at": None,
            "count": 1,
            "reopened": 0,
        }
        self._by_fingerprint[key] = incident
        self._tell(incident, "opened", telling)
        return incident

    def _reopen(self, incident: Row, telling: list[Row]) -> None:
        """It came back: not told each time, but that it keeps coming back is."""
        incident["resolved_at"] = None
        incident["reopened"] += 1
        incident["title"] = _title(telling)
        self._tell(incident, "opened", telling, is_told=incident["reopened"] == _FLAPS_TOLD)

    def _go_on(self, incident: Row, telling: list[Row]) -> None:
        incident["count"] += 1
        if not telling:
            return
        before = incident["severity"], set(incident["pipeline_ids"])
        severity = max((incident["severity"], _worst(telling)["severity"]), key=lambda name: RANK[name])
        limit = self.settings.rule(incident["rule"]).escalate_after_minutes
        if limit is not None and self.now - incident["opened_at"] >= timedelta(minutes=limit):
            severity = "error"
        incident |= self._concerned(telling, incident["pipeline_ids"])
        incident["severity"], incident["title"] = severity, _title(telling)
        if RANK[severity] > RANK[before[0]] or set(incident["pipeline_ids"]) > before[1]:
            incident["escalated_at"] = self.now
            self._tell(incident, "escalated", telling)

    def _concerned(self, telling: Iterable[Row], before: Iterable[str]) -> Row:
        ids = sorted({*before, *(row["pipeline_id"] for row in telling)})
        owners = Counter(row["owner"] for row in telling if row["owner"])
        return {
            "pipeline_ids": ids,
            "pipeline_names": [(self.known[key].name if key in self.known else None) or key for key in ids],
            "owner": min(owners, key=lambda owner: (-owners[owner], owner), default=None),
        }

    def resolve(self, found: set[str], judged: set[str], not_processed: frozenset[str]) -> None:
        """Resolve what is found no longer, where that could be judged."""
        for incident in self._by_fingerprint.values():
            if incident["resolved_at"] is not None or incident["fingerprint"] in found:
                continue
            if incident["rule"] in judged and not not_processed.intersection(incident["pipeline_ids"]):
                incident["resolved_at"] = self.now
                self.changed[incident["incident_id"]] = incident
                self._tell(incident, "resolved", (), is_told=incident["reopened"] in (0, _FLAPS_TOLD))

    def _tell(self, incident: Row, transition: Transition, telling: Iterable[Row], is_told: bool = True) -> None:
        rows = list(telling)
        self.events.append(
            {
                "incident_id": incident["incident_id"],
                "at": self.now,
                "transition": transition,
                "is_told": is_told,
                "severity": incident["severity"],
                "pipeline_ids": incident["pipeline_ids"],
                "title": incident["title"],
                "evidence": _json(_evidence(rows, [])) if rows else incident["evidence"],
            }
        )


def _worst(rows: Sequence[Row]) -> Row:
    return max(rows, key=lambda row: RANK[row["severity"]])


def _title(rows: Sequence[Row]) -> str:
    pipelines = {row["pipeline_id"] for row in rows}
    return _worst(rows)["title"] if len(pipelines) == 1 else f"{_worst(rows)['title']}, in {len(pipelines)} pipelines"


_SHOWN = 20  # findings and pipelines in the evidence of an incident


def _evidence(telling: Sequence[Row], downstream: Sequence[Row]) -> Row:
    evidence: Row = {
        "found": [
            {
                "pipeline_id": row["pipeline_id"],
                "pipeline_name": row["pipeline_name"],
                **({"subject": row["subject"]} if row["subject"] else {}),
                "since": row["since"],
                "title": row["title"],
                **row["evidence"],
            }
            for row in telling[:_SHOWN]
        ],
        "found_in_all": len(telling),
    }
    if downstream:
        evidence["downstream"] = sorted({row["pipeline_name"] or row["pipeline_id"] for row in downstream})[:_SHOWN]
    return evidence


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_UTC_Z).decode()


def digest(*parts: str) -> str:
    """An identity made of texts: the same for the same ones."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
