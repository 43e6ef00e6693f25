"""What a piece of work reports: rows written and dropped, verdicts of quality rules, backlog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from monitoring_platform.demo.events import Json
from monitoring_platform.demo.model import Flow, Pipeline, Rule
from monitoring_platform.demo.truth import RunTruth

_METRICS = {
    "rows_output": "num_output_rows",
    "rows_upserted": "num_upserted_rows",
    "rows_deleted": "num_deleted_rows",
}


@dataclass(frozen=True)
class Work:
    """The final figures of one batch. `counters` has the counters that are reported, under the truth's names."""

    counters: Mapping[str, int]
    verdicts: tuple[tuple[Rule, int, int], ...]
    dropped_is_null: bool
    compute_ms: int

    def part(self, done: int, of: int) -> Work:
        """The figures when `done` of `of` steps are over; never more than the final ones."""
        return Work(
            counters={name: amount * done // of for name, amount in self.counters.items()},
            verdicts=tuple((rule, good * done // of, bad * done // of) for rule, good, bad in self.verdicts),
            dropped_is_null=self.dropped_is_null,
            compute_ms=self.compute_ms * done // of,
        )

    def report(self) -> Json:
        """The members of flow_progress that carry these figures."""
        metrics: Json = {_METRICS[name]: amount for name, amount in self.counters.items() if name in _METRICS}
        if metrics:
            metrics["num_output_bytes"] = 211 * sum(metrics.values())
            metrics["executor_time_ms"] = self.compute_ms
        body: Json = {"metrics": metrics}
        if self.verdicts or self.dropped_is_null or "rows_dropped" in self.counters:
            body["data_quality"] = {
                "dropped_records": self.counters.get("rows_dropped"),
                "expectations": [
                    {"name": rule.name, "dataset": rule.dataset, "passed_records": good, "failed_records": bad}
                    for rule, good, bad in self.verdicts
                ],
            }
        return body

    def count(self, run: RunTruth, flow: Flow) -> None:
        """Enter the final figures into the truth."""
        run.flow(flow.name).add(dict(self.counters))
        for rule, good, bad in self.verdicts:
            run.judge(rule.dataset, rule.name, good, bad)


def work(pipeline: Pipeline, flow: Flow, rows: int, rates: Mapping[str, float], rng: Random) -> Work:
    """What a flow reports after reading this many rows; `rates` replaces the usual pass rates."""
    failed = [
        (rule, round(rows * (1 - rates.get(rule.name, rule.usual_rate)))) for rule in flow.rules if rule.evaluated
    ]
    dropped = sum(bad for rule, bad in failed if rule.drops)
    counters: dict[str, int] = {}
    if flow.counts == "output":
        counters["rows_output"] = max(0, rows - dropped)
    elif flow.counts == "upserts":
        counters["rows_upserted"] = max(0, rows - dropped)
        counters["rows_deleted"] = rows * rng.randint(0, 4) // 100
    reports_quality = flow.counts != "nothing"
    if reports_quality and (flow.rules or pipeline.dropped_when_no_rules == "zero"):
        counters["rows_dropped"] = dropped
    return Work(
        counters=counters,
        verdicts=tuple((rule, rows - bad, bad) for rule, bad in failed),
        dropped_is_null=reports_quality and not flow.rules and pipeline.dropped_when_no_rules == "null",
        compute_ms=rows // 7 + 350,
    )


def backlog(flow: Flow, waiting: int) -> Json:
    """What a source still holds at this moment: a snapshot, in the units that the source knows."""
    amounts: Json = {"backlog_bytes": waiting * 187}
    if flow.source == "kafka":
        amounts["backlog_records"] = waiting
    else:
        amounts["backlog_files"] = waiting // 4_000
    name = f"{flow.source}_source_of_{flow.dataset}"
    return {**amounts, "source_metrics": [{"source_name": name, **amounts}]}
