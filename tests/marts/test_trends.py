"""Days, weeks, failures, rules and the state of now, worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from typing import Any

import pytest

from tests.conftest import Site, by, event, flow, is_as_rebuilt, state

LATER = datetime(2026, 5, 1, tzinfo=timezone.utc)
HOUR, DAY = 3600, 86_400


def at(time: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row at this UTC time."""
    return {**row, "timestamp": time}


def run(update: str, start: float, seconds: float, end: str | None, cause: str = "JOB_TASK", **more: Any) -> list[Any]:
    """An update from start to end; without end it is open."""
    body = {"cause": cause, **more.pop("body", {})}
    rows = [
        event(f"{update}-c", start, "create_update", body, update_id=update, **more),
        state(f"{update}-r", start + 1, "RUNNING", update_id=update, **more),
    ]
    return [*rows, state(f"{update}-e", start + seconds, end, update_id=update, **more)] if end else rows


# ---- days ----


def test_daily_trends(site: Site) -> None:
    """R-DUR-03: five updates of one day (20, 30, 40, 60, 100 s), one of them a retry: four requests, none of them failed.
    Median 40 s, 95th percentile 60 + 0.8 × 40 = 92 s; internal runs are left out."""
    site.write(
        "a.jsonl",
        *run("a", 0, 60, "COMPLETED"),
        *run("b", HOUR, 100, "COMPLETED"),
        *run("c", 2 * HOUR, 20, "FAILED"),
        *run("d", 2 * HOUR + 60, 40, "COMPLETED", "RETRY_ON_FAILURE"),
        *run("e", 3 * HOUR, 30, "CANCELED"),
        *run("dry", 4 * HOUR, 999, "FAILED", body={"explore_only": True}),
        *run("f", DAY, 0, None),
        flow("g", 30, "f", {"metrics": {"num_output_rows": 5}}, update_id="a", batch_id=1),
    )
    site.cycle()
    first, second = sorted(site.rows("daily_trends"), key=lambda row: row["day"])
    assert (first["day"], first["runs"], first["completed_runs"], first["failed_runs"]) == (date(2026, 1, 1), 5, 3, 1)
    assert (first["canceled_runs"], first["open_runs"], first["retries"]) == (1, 0, 1)
    assert (first["requests"], first["failed_requests"], first["open_requests"]) == (4, 0, 0)
    assert (first["run_failure_pct"], first["request_failure_pct"]) == (20.0, 0.0)
    assert (first["avg_duration_seconds"], first["max_duration_seconds"], first["p50_duration_seconds"]) == (
        50,
        100,
        40,
    )
    assert first["p95_duration_seconds"] == pytest.approx(92.0)
    assert (first["rows_written"], first["rows_dropped"], first["batches"]) == (5, None, 1)
    assert (second["runs"], second["open_runs"], second["open_requests"]) == (1, 1, 1)
    assert (second["run_failure_pct"], second["avg_duration_seconds"], second["batches"]) == (None, None, None)
    # The open one ends in a failure: late, in another cycle.
    site.write("a.jsonl", state("f-e", DAY + 80, "FAILED", update_id="f"))
    site.cycle()
    found = site.row("daily_trends", day=date(2026, 1, 2))
    assert (found["failed_runs"], found["failed_requests"], found["open_runs"], found["run_failure_pct"]) == (
        1,
        1,
        0,
        100.0,
    )
    assert found["avg_duration_seconds"] == 80.0
    is_as_rebuilt(site, "daily_trends")


def over_two_weeks(site: Site) -> None:
    """A request that fails on Sunday night; its retry of Monday succeeds one cycle later."""
    sunday = 3 * DAY + 23 * HOUR
    site.write("a.jsonl", *run("a", sunday, 60, "FAILED", request_id="r"))
    site.cycle(LATER)
    assert site.row("daily_trends")["failed_requests"] == 1
    site.write("a.jsonl", *run("b", sunday + 2 * HOUR, 60, "COMPLETED", "RETRY_ON_FAILURE", request_id="r"))
    site.cycle(LATER)


def test_a_request_over_two_weeks_is_one(site: Site) -> None:
    """R-NEW-01, R-RUN-08: one request with two attempts, not one for each week."""
    over_two_weeks(site)
    assert by(site.rows("requests"), "request_id", "outcome", "attempts") == [("r", "COMPLETED", 2)]
    is_as_rebuilt(site, "requests", "pipeline_activity")


def test_a_request_over_two_weeks_changes_the_day_on_which_it_began(site: Site) -> None:
    """R-DUR-03, R-RUN-08: it began on Sunday and did not fail after all."""
    over_two_weeks(site)
    assert by(site.rows("daily_trends"), "day", "runs", "requests", "failed_requests") == [
        (date(2026, 1, 4), 1, 1, 0),
        (date(2026, 1, 5), 1, 0, 0),
    ]


def test_a_run_of_many_weeks_keeps_its_last_days(site: Site) -> None:
    """R-NEW-05: an update that began in January wrote rows until March; the next one of that day does not hide them."""
    day = "2026-03-11"
    site.write(
        "a.jsonl",
        *run("a", 0, 0, None, body={"config": {"continuous": True}}),
        judged("1", day, 6, 1, "a", dropped=1, metrics={"num_output_rows": 6}, batch_id=9),
        at(f"{day}T13:00:00Z", state("2", 0, "CANCELED", update_id="a")),
    )
    site.cycle(LATER)
    site.write("a.jsonl", judged("3", day, 5, 0, "b", dropped=0, metrics={"num_output_rows": 5}, batch_id=1))
    site.cycle(LATER)
    assert site.row("daily_trends", day=date(2026, 3, 11))["rows_written"] == 11
    assert by(site.rows("weekly_quality"), "passed_records", "failed_records") == [(11, 1)]
    assert by(site.rows("quarantine_trends"), "rows_written", "rows_dropped", "failed_records") == [(11, 1, 1)]
    is_as_rebuilt(site, "daily_trends", "weekly_quality", "quarantine_trends")


# ---- quality ----


def judged(id: str, day: str, passed: int | None, failed: int | None, update: str, **more: Any) -> dict[str, Any]:
    """A batch of that day and what the rule `sane` of dataset `d` says of it."""
    rule = {"name": "sane", "dataset": "d", "passed_records": passed, "failed_records": failed}
    quality = {"dropped_records": more.pop("dropped", None), "expectations": [rule]}
    body = {"status": "RUNNING", "data_quality": quality, "metrics": more.pop("metrics", {})}
    return at(f"{day}T12:00:00Z", flow(id, 0, "f", body, update_id=update, **more))


def test_weekly_quality(site: Site) -> None:
    """R-QUAL-04, R-QUAL-06: 99.9 → 99.5 is a fall of 0.4 points; after a week without results the week before is null,
    not the last known one. Weeks begin on Monday, UTC; a batch counts in the week of its last event."""
    site.write(
        "a.jsonl",
        judged("1", "2026-01-05", 400, 0, "a"),
        judged("2", "2026-01-11", 599, 1, "b", batch_id=1),  # a Sunday; the update goes on on Monday
        judged("3", "2026-01-12", 990, 0, "b", batch_id=2),
        judged("4", "2026-01-18", 5, 5, "c"),
        judged("5", "2026-01-26", 95, 5, "d"),
        judged("6", "2026-01-27", 0, 900, "dry"),
        at("2026-01-27T00:00:00Z", event("7", 0, "create_update", {"validate_only": True}, update_id="dry")),
        judged("8", "2026-02-02", 0, 0, "e"),
    )
    site.cycle(LATER)

    def weeks() -> dict[date, tuple[Any, ...]]:
        names = ("passed_records", "failed_records", "pass_rate_pct", "previous_week_pass_rate_pct", "change_points")
        return {row["week_start"]: tuple(row[name] for name in names) for row in site.rows("weekly_quality")}

    found = weeks()
    assert list(sorted(found)) == [date(2026, 1, 5), date(2026, 1, 12), date(2026, 1, 26), date(2026, 2, 2)]
    assert found[date(2026, 1, 5)] == pytest.approx((999, 1, 99.9, None, None))
    assert found[date(2026, 1, 12)] == pytest.approx((995, 5, 99.5, 99.9, -0.4))
    assert found[date(2026, 1, 26)] == pytest.approx((95, 5, 95.0, None, None))
    assert found[date(2026, 2, 2)] == pytest.approx((0, 0, None, 95.0, None))
    days = by(site.rows("expectation_days", update_id="b"), "day", "passed_records", "failed_records", "dataset")
    assert days == [(date(2026, 1, 11), 599, 1, "d"), (date(2026, 1, 12), 990, 0, "d")]
    row = site.row("weekly_quality", week_start=date(2026, 1, 5))
    assert (row["dataset"], row["expectation"], row["flow_name"]) == ("d", "sane", "f")
    # Late: the gap is filled, and the week after it has something to be compared with.
    site.write("a.jsonl", judged("9", "2026-01-20", 97, 3, "late"))
    site.cycle(LATER)
    assert weeks()[date(2026, 1, 19)] == pytest.approx((97, 3, 97.0, 99.5, -2.5))
    assert weeks()[date(2026, 1, 26)] == pytest.approx((95, 5, 95.0, 97.0, -2.0))
    is_as_rebuilt(site, "weekly_quality")


def test_quarantine_trends(site: Site) -> None:
    """R-QUAL-07: 5 of 5 + 95 rows dropped is 5 %; a day without quality data has no row, one with a reported zero has."""
    site.write(
        "a.jsonl",
        judged("1", "2026-01-05", 90, 5, "a", dropped=2, metrics={"num_output_rows": 55}, batch_id=1),
        judged("2", "2026-01-05", 38, 2, "a", dropped=3, metrics={"num_output_rows": 40}, batch_id=2),
        judged("3", "2026-01-06", 10, 1, "b"),
        at("2026-01-07T00:00:00Z", flow("4", 0, "f", {"metrics": {"num_output_rows": 9}}, update_id="c")),
        at("2026-01-08T00:00:00Z", flow("5", 0, "f", {"data_quality": {"dropped_records": 0}}, update_id="d")),
    )
    site.cycle(LATER)
    names = ("day", "rows_dropped", "rows_written", "failed_records", "passed_records", "dropped_pct")
    assert by(site.rows("quarantine_trends"), *names) == [
        (date(2026, 1, 5), 5, 95, 7, 128, 5.0),
        (date(2026, 1, 6), None, None, 1, 10, None),
        (date(2026, 1, 8), 0, None, None, None, None),
    ]


def test_expectation_lifecycle(site: Site) -> None:
    """R-QUAL-01, R-QUAL-08: what became of each rule over four completed updates. A failed update and one that did not
    define the dataset say nothing about it; where one rule goes and one comes at once, it has a new name."""
    rules = [
        # dataset, rule, its action in each of the updates 0 to 3 (None = not there), counted or not
        ("orders", "active", ["ALLOW", "ALLOW", None, "ALLOW"], True),
        ("orders", "changed", ["ALLOW", "ALLOW", None, "FAIL"], True),
        ("orders", "silent", ["DROP", "DROP", None, "DROP"], False),
        ("items", "old_name", ["DROP", None, None, None], True),
        ("items", "new_name", [None, "DROP", None, "DROP"], True),
        ("people", "vanished", ["DROP", "DROP", None, None], True),
        ("people", "stays", ["DROP", "DROP", None, "DROP"], True),
        ("`or.ders`", "apart", ["DROP", None, None, None], True),
    ]
    for update in (0, 1, 2, 3):
        name = f"u{update}"
        site.write("a.jsonl", *run(name, update * HOUR, 600, "FAILED" if update == 2 else "COMPLETED"))
        for dataset in ("orders", "items", "people", "`or.ders`"):
            there = [(rule, actions[update], counts) for d, rule, actions, counts in rules if d == dataset]
            if dataset == "`or.ders`" and update:
                continue
            body = {"expectations": [{"name": r, "action": a} for r, a, _ in there if a]}
            results = [
                {"name": r, "dataset": f"main.x.{dataset}", "passed_records": 9 if counts else 0, "failed_records": 0}
                for r, a, counts in there
                if a
            ]
            site.write(
                "a.jsonl",
                event(
                    f"{dataset}{update}",
                    update * HOUR + 1,
                    "dataset_definition",
                    body,
                    dataset_name=dataset,
                    update_id=name,
                ),
                flow(
                    f"{dataset}{update}r",
                    update * HOUR + 9,
                    dataset,
                    {"data_quality": {"expectations": results}},
                    update_id=name,
                ),
            )
    site.cycle()
    found = {r["expectation"]: r for r in site.rows("expectation_lifecycle")}
    assert {name: row["state"] for name, row in found.items()} == {
        "active": "active",
        "changed": "action_changed",
        "silent": "never_evaluated",
        "old_name": "renamed",
        "new_name": "active",
        "vanished": "vanished",
        "stays": "active",
        "apart": "active",
    }
    assert (found["active"]["dataset"], found["apart"]["dataset"]) == ("orders", "or.ders")
    changed = found["changed"]
    assert (changed["action"], changed["previous_action"], changed["action_changed_at"].hour) == ("FAIL", "ALLOW", 3)
    assert (found["old_name"]["renamed_to"], found["old_name"]["gone_at"].hour) == ("new_name", 1)
    gone = found["vanished"]
    assert (gone["first_seen"].hour, gone["last_seen"].hour, gone["gone_at"].hour, gone["renamed_to"]) == (
        0,
        1,
        3,
        None,
    )
    assert (gone["last_evaluated"].hour, found["silent"]["last_evaluated"]) == (1, None)
    # The rule comes back in the next update.
    body = {"expectations": [{"name": "vanished", "action": "DROP"}, {"name": "stays", "action": "DROP"}]}
    site.write(
        "a.jsonl",
        *run("u4", 4 * HOUR, 600, "COMPLETED"),
        event("back", 4 * HOUR + 1, "dataset_definition", body, dataset_name="people", update_id="u4"),
    )
    site.cycle()
    gone = site.row("expectation_lifecycle", expectation="vanished")
    assert (gone["state"], gone["gone_at"], gone["last_seen"].hour) == ("active", None, 4)
    is_as_rebuilt(site, "expectation_lifecycle")


# ---- failures ----


def failed(id: str, time: str | float, *messages: str, **origin: Any) -> dict[str, Any]:
    """An event at level ERROR with exceptions from the outermost to the deepest."""
    exceptions = [{"class_name": f"E{n}", "message": text} for n, text in enumerate(messages)]
    row = event(id, 0 if isinstance(time, str) else time, level="ERROR", error={"exceptions": exceptions}, **origin)
    return at(time, row) if isinstance(time, str) else row


def test_failures(site: Site) -> None:
    """event_log 6.9, R-ERR-03: one failure per update: the flow's error before the update's, its deepest cause; a refusal
    is no failure of the data; an update that failed without any error is one too, an error alone is none."""
    deep = ("[OUTER] Flow 'f' failed", "[DATA.SUB] bad row. SQLSTATE: 22018", "For input string: x")
    site.write(
        "a.jsonl",
        *run("twice", 0, 60, "FAILED"),
        failed("t1", 40, "Update twice failed", update_id="twice"),
        failed("t2", 50, *deep, update_id="twice", flow_name="f"),
        failed("t3", 51, "skipped, f failed", update_id="twice", flow_name="g"),
        *run("refused", HOUR, 5, "FAILED"),
        failed("r1", HOUR + 4, "[ACTIVE] An active update u already exists", update_id="refused"),
        *run("mute", 2 * HOUR, 30, "FAILED", body={"validate_only": True}),
        *run("healed", 3 * HOUR, 60, "COMPLETED"),
        failed("h1", 3 * HOUR + 5, "try again", update_id="healed", flow_name="f"),
        state("odd", 4 * HOUR, "RUNNING", update_id="open"),
        failed("o1", 4 * HOUR + 5, "boom", update_id="open", flow_name="f"),
        failed("n1", 5 * HOUR, "of no update", update_id=None),
        *run("text", 5 * HOUR, 60, "FAILED"),
        event("x1", 5 * HOUR + 9, "create_update", level="ERROR", update_id="text", message="[NO_NODES] Cluster lost"),
    )
    site.cycle()
    found = {row["update_id"]: row for row in site.rows("failures")}
    assert {update: row["kind"] for update, row in found.items()} == {
        "twice": "failed",
        "refused": "refused",
        "mute": "failed",
        "text": "failed",
    }
    twice = found["twice"]
    assert (twice["event_id"], twice["flow_name"], twice["error_events"]) == ("t2", "f", 3)
    assert (twice["error_class"], twice["sql_state"], twice["exception_class"]) == ("DATA.SUB", "22018", "E2")
    assert (twice["message"], twice["pipeline_name"]) == ("For input string: x", "pipe")
    assert (twice["start_ts"].second, twice["failed_at"].minute, twice["run_kind"]) == (0, 1, "normal")
    mute = found["mute"]
    assert (mute["event_id"], mute["message"], mute["fingerprint"], mute["error_events"]) == (None, None, None, 0)
    assert (mute["run_kind"], mute["failed_at"].hour) == ("validate", 2)
    assert (found["text"]["error_class"], found["text"]["message"]) == ("NO_NODES", "[NO_NODES] Cluster lost")
    # Late: the open one failed after all, and the healed one's end is overruled by a later one.
    site.write("a.jsonl", state("o2", 4 * HOUR + 6, "FAILED", update_id="open"))
    site.cycle()
    assert site.row("failures", update_id="open")["message"] == "boom"
    is_as_rebuilt(site, "failures")


def test_a_failure_belongs_to_the_request_whose_head_came_late(site: Site) -> None:
    """event_log 6.5 and 7: a retry without request_id belongs to the update before it, also when that is read later."""
    site.write("a.jsonl", *run("u1", HOUR, 60, "FAILED", "RETRY_ON_FAILURE"))
    site.write("a.jsonl", failed("e1", HOUR + 50, "[SECOND] boom", update_id="u1"))
    site.cycle()
    assert site.row("pipeline_activity")["last_error_class"] == "SECOND"
    site.write("a.jsonl", *run("u0", 0, 60, "FAILED"), failed("e0", 50, "[FIRST] boom", update_id="u0"))
    site.cycle()
    assert by(site.rows("requests"), "request_id", "attempts", "last_update_id") == [("u0", 2, "u1")]
    found = site.row("pipeline_activity")
    assert (found["latest_request_id"], found["last_error_class"]) == ("u0", "FIRST")
    is_as_rebuilt(site, "failures", "pipeline_runs", "requests", "pipeline_activity", "daily_trends")


def test_error_groups(site: Site) -> None:
    """R-NEW-09, R-ERR-05: one error in two pipelines is one group, whatever ids, names, numbers and paths it has; another
    error is another one; refusals are none."""
    text = "[SCHEMA] Column '{}' of `main`.`{}` not found in s3://bucket/{}, row {}"
    site.write(
        "a.jsonl",
        *run("a", 0, 60, "FAILED"),
        failed("a1", 50, text.format("price", "orders", "in/1.json", 17), update_id="a", flow_name="f"),
        *run("b", HOUR, 60, "FAILED", pipeline_id="q"),
        failed("b1", HOUR + 50, text.format("name", "people", "x", 2), update_id="b", flow_name="g", pipeline_id="q"),
        *run("c", 2 * HOUR, 60, "FAILED", pipeline_id="q"),
        failed("c1", 2 * HOUR + 50, "[SCHEMA] Type changed", update_id="c", pipeline_id="q"),
        *run("d", 3 * HOUR, 60, "FAILED", pipeline_id="q"),
        failed("d1", 3 * HOUR + 50, "update is already running", update_id="d", pipeline_id="q"),
        *run("e", 4 * HOUR, 60, "FAILED"),
    )
    site.cycle()
    names = ("error_class", "failures", "pipeline_count", "pipeline_ids", "flow_names", "latest_update_id")
    assert by(site.rows("error_groups"), *names) == [
        ("SCHEMA", 1, 1, ["q"], [], "c"),
        ("SCHEMA", 2, 2, ["p", "q"], ["f", "g"], "b"),
    ]
    found = site.row("error_groups", failures=2)
    assert (found["latest_pipeline_id"], found["first_seen"].hour, found["last_seen"].hour) == ("q", 0, 1)
    assert found["latest_message"] == text.format("name", "people", "x", 2)
    assert found["exception_class"] == "E0"
    site.write(
        "a.jsonl",
        *run("f", 5 * HOUR, 60, "FAILED", pipeline_id="r"),
        failed("f1", 5 * HOUR, text.format("a", "b", "c", 3), update_id="f", flow_name="g", pipeline_id="r"),
    )
    site.cycle()
    found = site.row("error_groups", fingerprint=found["fingerprint"])
    assert (found["failures"], found["pipeline_ids"], found["last_seen"].hour) == (3, ["p", "q", "r"], 5)
    is_as_rebuilt(site, "error_groups")


def test_failure_hours_across_a_clock_change(make_site: Callable[..., Site]) -> None:
    """R-ERR-02, R-NEW-06: always Sundays at 3 in Berlin: 02:00 UTC in winter, 01:00 UTC from 29 March on; one flow, one hour,
    one error. 22:30 UTC on a Sunday is Monday, half past midnight."""
    site = make_site(config="time_zone: Europe/Berlin\n")
    starts = ["2026-03-22T02:00", "2026-04-05T01:00", "2026-03-29T01:00", "2026-03-29T22:30"]
    for number, start in enumerate(starts):
        update, message = f"u{number}", f"Schema mismatch in row {number}"
        site.write(
            "a.jsonl",
            at(f"{start}:00Z", state(f"s{number}", 0, "RUNNING", update_id=update)),
            failed(f"e{number}", f"{start}:50Z", message, update_id=update, flow_name="silver_product_inventory"),
            at(f"{start}:59Z", state(f"f{number}", 0, "FAILED", update_id=update)),
        )
    site.write(
        "a.jsonl",
        at("2026-03-22T02:00:00Z", event("d", 0, "create_update", {"explore_only": True}, update_id="dry")),
        at("2026-03-22T02:01:00Z", state("g", 0, "FAILED", update_id="dry")),
        at("2026-03-23T02:01:00Z", state("h", 0, "FAILED", update_id="mute")),
    )
    site.cycle(LATER)
    assert by(site.rows("failure_hours"), "weekday", "hour", "flow_name", "failures", "time_zone") == [
        (1, 0, "silver_product_inventory", 1, "Europe/Berlin"),
        (1, 3, "", 1, "Europe/Berlin"),
        (7, 3, "silver_product_inventory", 3, "Europe/Berlin"),
    ]
    found = site.row("failure_hours", weekday=7)
    assert (found["first_seen"].month, found["last_seen"].month) == (3, 4)
    assert found["latest_message"] == "Schema mismatch in row 1"
    assert site.row("failure_hours", flow_name="")["fingerprint"] == ""


# ---- drift ----


def test_schema_drift(site: Site) -> None:
    """event_log 4 and 11: an unknown type, member, enum value and member of origin, each with its days and one example,
    redacted like everything that is stored."""
    secret = "dapi" + "0123456789abcdef" * 2
    body = {"state": "DREAMING", "novel": 1}
    site.write(
        "a.jsonl",
        event("1", 5, "graph_definition", {"token_of": secret}),
        event("2", 9, "graph_definition", {"x": 1}),
        event("3", DAY, "graph_definition", {"x": 2}),
        event("4", 7, "update_progress", body, update_id=None),
        event("5", 8, "user_action", {"action": "START"}, planet="mars"),
        event("6", 8, "user_action", {"action": "START"}, pipeline_id="q"),
    )
    site.cycle()
    names = ("event_date", "what", "events", "example_event_id")
    first, second = date(2026, 1, 1), date(2026, 1, 2)
    assert by(site.rows("drift_days"), *names) == [
        (first, "details.update_progress.novel", 1, "4"),
        (first, "details.update_progress.state=DREAMING", 1, "4"),
        (first, "event_type=graph_definition", 2, "1"),
        (first, "origin.planet", 1, "5"),
        (second, "event_type=graph_definition", 1, "3"),
    ]
    found = site.row("schema_drift", what="event_type=graph_definition")
    assert (found["events"], found["first_seen"].second, found["last_seen"].day) == (3, 5, 2)
    assert (found["example_event_id"], secret in found["example"]) == ("1", False)
    assert found["example"].startswith('{"graph_definition":{"token_of":"[REDACTED]')
    assert len(site.rows("schema_drift")) == 4
    # Late: an earlier event of the first day becomes the example.
    site.write("a.jsonl", event("7", 1, "graph_definition", {"x": 3}))
    site.cycle()
    found = site.row("schema_drift", what="event_type=graph_definition")
    assert (found["events"], found["example_event_id"], found["example"]) == (4, "7", '{"graph_definition":{"x":3}}')
    is_as_rebuilt(site, "drift_days", "schema_drift")


# ---- now ----


def test_table_status(site: Site) -> None:
    """R-PEER-06, R-PEER-21: newest run, newest success, newest failure and last change of each table; sinks and internal
    runs are none."""
    rows = {"num_output_rows": 5}
    defined = {"output_dataset": "main.x.t"}
    site.write(
        "a.jsonl",
        *(event(f"d{n}", n * HOUR, "flow_definition", defined, flow_name="f", update_id=f"u{n}") for n in range(4)),
        flow("1", 10, "f", {"status": "COMPLETED", "metrics": rows}, update_id="u0"),
        flow("2", HOUR + 20, "f", {"status": "COMPLETED", "metrics": {"num_output_rows": 0}}, update_id="u1"),
        flow("3", 2 * HOUR + 30, "f", {"status": "FAILED"}, update_id="u2"),
        flow("4", 3 * HOUR + 40, "f", {"status": "RUNNING"}, update_id="u3"),
        flow("5", 10, "extra", {"status": "COMPLETED"}, update_id="u0", dataset_name="main.x.t"),
        flow("6", 10, "out", {"status": "COMPLETED"}, update_id="u0", sink_name="kafka"),
        event("7", 4 * HOUR, "create_update", {"validate_only": True}, update_id="dry"),
        flow("8", 4 * HOUR, "f", {"status": "COMPLETED"}, update_id="dry", dataset_name="main.x.t"),
    )
    site.cycle()
    found = site.row("table_status")
    assert (found["dataset"], found["flow_names"]) == ("main.x.t", ["extra", "f"])
    assert (found["latest_update_id"], found["latest_status"], found["latest_run_ts"].hour) == ("u3", "RUNNING", 3)
    assert (found["latest_success_update_id"], found["latest_success_ts"].hour) == ("u1", 1)
    assert (found["latest_failure_update_id"], found["latest_failure_ts"].second) == ("u2", 30)
    assert (found["latest_change_ts"].hour, found["latest_change_ts"].second) == (0, 10)
    site.write("a.jsonl", flow("9", 3 * HOUR + 90, "f", {"status": "COMPLETED", "metrics": rows}, update_id="u3"))
    site.cycle()
    found = site.row("table_status")
    assert (found["latest_success_update_id"], found["latest_change_ts"].hour) == ("u3", 3)
    is_as_rebuilt(site, "table_status")


def test_pipeline_activity_and_health(site: Site) -> None:
    """R-DUR-06, R-RUN-05: where pipelines stand. `p`: 10 updates of 100 s, then 5 of 120 s: slower by a fifth; then a
    request whose first attempt failed and whose retry runs. `q`: three updates, two weeks ago, say nothing about a trend."""
    now = datetime(2026, 1, 17, 1, tzinfo=timezone.utc)
    for n in range(15):
        rows = {"num_output_rows": 0 if n == 14 else n}
        site.write(
            "a.jsonl",
            *run(f"u{n:02d}", n * DAY, 100 if n < 10 else 120, "COMPLETED"),
            flow(f"f{n}", n * DAY + 5, "f", {"metrics": rows}, update_id=f"u{n:02d}"),
        )
    rule = {"name": "ok", "dataset": "d", "passed_records": 3, "failed_records": 1}
    never = {"expectations": [{"name": "ok", "action": "DROP"}, {"name": "idle", "action": "DROP"}]}
    bad = {**rule, "name": "bad", "failed_records": 3}
    full, rows = ({"maintenance_type": name, "is_chosen": True} for name in ("COMPLETE_RECOMPUTE", "ROW_BASED"))
    site.write(
        "a.jsonl",
        # The newest results: 75 % and 50 %; older ones were worse.
        flow(
            "w1", 9 * DAY + 6, "f", {"data_quality": {"expectations": [{**rule, "passed_records": 0}]}}, update_id="u09"
        ),
        flow("w2", 10 * DAY + 6, "f", {"data_quality": {"expectations": [rule, bad]}}, update_id="u10"),
        event("n", 10 * DAY + 7, "dataset_definition", never, dataset_name="d", update_id="u10"),
        event(
            "p1", 12 * DAY, "planning_information", {"technique_information": [rows]}, flow_name="mv", update_id="u12"
        ),
        event(
            "p2", 13 * DAY, "planning_information", {"technique_information": [full]}, flow_name="mv", update_id="u13"
        ),
        *(
            flow(f"b{n}", 12 * DAY + n * HOUR, "g", {"metrics": {"backlog_bytes": 10**n}}, update_id="u12")
            for n in range(4)
        ),
        *run("full", 14 * DAY + HOUR, 9000, "COMPLETED", body={"full_refresh": True}),
        *run("dry", 16 * DAY, 5, "FAILED", body={"validate_only": True}),
        *run("x1", 15 * DAY, 60, "FAILED", request_id="r"),
        failed("e2", 15 * DAY + 50, "[BOOM] first", update_id="x1", flow_name="f"),
        *run("x2", 15 * DAY + 100, 0, None, "RETRY_ON_FAILURE", request_id="r"),
        *(row for n in range(3) for row in run(f"v{n}", n * HOUR, 100 + n, "COMPLETED", pipeline_id="q")),
    )
    site.cycle(now)
    p = site.row("pipeline_activity", pipeline_id="p")
    assert (p["latest_request_id"], p["latest_update_id"], p["latest_outcome"]) == ("r", "x2", "RUNNING")
    assert (p["is_open"], p["is_retrying"], p["latest_start_ts"].day) == (True, True, 16)
    assert (p["last_success_ts"].day, p["last_success_ts"].hour, p["last_failure_ts"], p["last_error"]) == (
        15,
        3,
        None,
        None,
    )
    assert (p["usual_seconds_now"], p["usual_seconds_before"], p["duration_trend"]) == (120.0, 100.0, "slower")
    assert (p["latest_rows_written"], p["last_change_ts"].day) == (0, 14)
    assert p["worst_pass_rate_pct"] == 50.0
    # In the 7 days up to 16 January: u08 began exactly 7 days before and is out; u09 to u14, full and r are in.
    assert (p["requests_7d"], p["failed_requests_7d"]) == (8, 0)
    q = site.row("pipeline_activity", pipeline_id="q")
    assert (q["duration_trend"], q["usual_seconds_now"], q["usual_seconds_before"]) == ("unknown", 101.0, None)
    assert (q["is_open"], q["is_retrying"], q["worst_pass_rate_pct"], q["latest_rows_written"]) == (
        False,
        False,
        None,
        None,
    )
    health = site.row("pipeline_health", pipeline_id="p")
    assert (health["pipeline_name"], health["state"], health["latest_outcome"]) == ("pipe", "seen", "RUNNING")
    assert health["open_problems"] == [
        "retrying after a failure",
        "slower than before",
        "recomputes in full",
        "backlog growing",
        "expectation never evaluated",
    ]
    assert health["problem_count"] == 5
    health = site.row("pipeline_health", pipeline_id="q")
    assert (health["open_problems"], health["problem_count"], health["duration_trend"]) == (["log stale"], 1, "unknown")
    # The retry fails as well: now the request has, with the error of its first attempt.
    site.write("a.jsonl", state("x2-e", 15 * DAY + 200, "FAILED", update_id="x2", request_id="r"))
    site.write("a.jsonl", failed("e3", 15 * DAY + 190, "[AGAIN] second", update_id="x2", flow_name="f", request_id="r"))
    site.cycle(now)
    health = site.row("pipeline_health", pipeline_id="p")
    assert (health["latest_outcome"], health["is_open"], health["is_retrying"]) == ("FAILED", False, False)
    assert (health["last_error_class"], health["last_error"], health["last_failure_ts"].day) == (
        "BOOM",
        "[BOOM] first",
        16,
    )
    assert health["last_error_fingerprint"] == site.row("failures", update_id="x1")["fingerprint"]
    assert (health["requests_7d"], health["failed_requests_7d"]) == (8, 1)
    assert "latest request failed" in health["open_problems"]
    assert "retrying after a failure" not in health["open_problems"]
    is_as_rebuilt(site, "pipeline_activity", "pipeline_health")
