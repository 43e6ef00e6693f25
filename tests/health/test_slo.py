"""Objectives: what is promised, whether it was met, what is left of the budget, and what will be missed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitoring_platform.config import Backlog, Slo, load
from monitoring_platform.health import rules, slo
from monitoring_platform.health.backtest import rehearse
from monitoring_platform.health.history import History
from monitoring_platform.health.rules import Found, Pipeline
from monitoring_platform.marts.registry import STOCK
from monitoring_platform.marts.tables.health import TABLES
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import Site

Row = dict[str, Any]
Make = Callable[..., Site]
UTC = timezone.utc
BERLIN = "time_zone: Europe/Berlin\n"
READY = BERLIN + "slos:\n  - {ready_by: '06:00'}\n"


def at(text: str) -> datetime:
    """An instant of 2026, as '03-28 05:00' in UTC."""
    return datetime.strptime(f"2026-{text}", "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


def run(start: datetime, minutes: float | None, status: str = "COMPLETED", **more: Any) -> Row:
    """A row of pipeline_runs: an update of pipeline `p`, a request of its own unless said; None = it has no end."""
    update = more.pop("update_id", f"u-{start:%m-%dT%H:%M:%S}")
    return {
        "pipeline_id": "p", "pipeline_name": "pipe", "update_id": update, "request_id": update, "run_kind": "normal",
        "attempt_number": 1, "start_ts": start, "is_full_refresh": False, "continuous": False,
        "end_ts": None if minutes is None else start + timedelta(minutes=minutes),
        "duration_seconds": None if minutes is None else minutes * 60,
        "status": "RUNNING" if minutes is None else status, **more,
    }  # fmt: skip


def pipeline(**more: Any) -> Row:
    """A row of pipelines: `p`, known since the beginning of the year."""
    return {
        "pipeline_id": "p", "pipeline_name": "pipe", "state": "seen", "owner": "ana", "tags": [],
        "first_event_ts": at("01-01 00:00"), "registered_at": at("01-01 00:00"), "consecutive_failures": 0, **more,
    }  # fmt: skip


def store(site: Site, **tables: list[Row]) -> Site:
    """Append rows to the tables of a site."""
    for name, rows in tables.items():
        site.warehouse.create([STOCK[name]])
        site.warehouse.append_rows(STOCK[name], pa.Table.from_pylist(rows, STOCK[name].schema))
    return site


def shown(site: Site, now: datetime) -> duckdb.DuckDBPyConnection:
    """The tables that rules read, as known at a time."""
    chosen = site.warehouse.settings
    con = History(site.warehouse, [*slo.queries(), "incidents flow_durations"], now).con
    rules.prepare(con)
    slo.prepare(con, chosen, rules.pipelines(con), now)
    return con


def found(site: Site, rule: str, now: datetime) -> list[Found]:
    """What a rule finds at a time."""
    con = shown(site, now)
    (evaluation,) = rules.evaluate(con, site.warehouse.settings, rules.pipelines(con), [rule])
    assert evaluation.error is None
    return evaluation.found


def write(site: Site, now: datetime) -> None:
    """What a cycle writes."""
    site.warehouse.create(TABLES)
    slo.write(site.warehouse, shown(site, now))


def titles(site: Site, rule: str, now: datetime) -> list[str]:
    """The titles of what it finds."""
    return [row.title for row in found(site, rule, now)]


def results(site: Site, now: datetime, objective: str) -> dict[str, tuple[float | None, bool | None]]:
    """Value and verdict of each occurrence of an objective."""
    rows = slo.results(shown(site, now)).to_pylist()
    return {row["occurrence_id"]: (row["value"], row["met"]) for row in rows if row["objective"] == objective}


def standing(site: Site, now: datetime, objective: str) -> Row:
    """The row of slo_status of an objective."""
    rows = slo.status(shown(site, now)).to_pylist()
    (row,) = [row for row in rows if row["objective"] == objective]
    return row


def due(site: Site, now: datetime) -> dict[str, str]:
    """Deadlines: the local day and the instant."""
    rows = shown(site, now).execute("SELECT day, due_at FROM deadlines ORDER BY day").fetchall()
    return {f"{day:%m-%d}": f"{instant:%m-%d %H:%M}" for day, instant in rows}


# What is promised


def test_the_nearest_entry_that_sets_an_objective_counts() -> None:
    """R-SLO-02: pipelines over tags over all; of equally near ones the later; field by field."""
    slos = [
        Slo(pipelines=("gold*",), duration_minutes=5),
        Slo(tags={"layer": "gold"}, duration_minutes=20, pass_rate_pct=99),
        Slo(tags={"layer": "gold"}, duration_minutes=15),
        Slo(duration_minutes=60, fresh_hours=24),
    ]
    named = slo.objectives(slos, Pipeline("1", "gold_sales", None, {"layer": "gold"}))
    assert (named.duration_minutes, named.pass_rate_pct, named.fresh_hours) == (5, 99, 24)
    assert slo.objectives(slos, Pipeline("2", "sales", None, {"layer": "gold"})).duration_minutes == 15
    assert slo.objectives(slos, Pipeline("3", "sales", None, {})).duration_minutes == 60
    default = slo.objectives([], Pipeline("3", "sales", None, {}))
    assert (default.duration_minutes, default.success, default.goal_pct, default.ready_within_hours) == (
        45,
        True,
        99,
        12,
    )
    assert (default.fresh_hours, default.ready_by, default.backlog) == (None, None, None)


def test_the_example_of_the_page(make_site: Make) -> None:
    """R-SLO-02: the configuration in docs/slos.md, and what it says of one pipeline."""
    page = (Path(__file__).parents[2] / "docs" / "slos.md").read_text(encoding="utf-8")
    config = make_site(config=page.split("```yaml\n")[1].split("```")[0]).warehouse.settings
    one = slo.objectives(config.slos, Pipeline("1", "gold_finance_daily", None, {"layer": "gold"}))
    assert (one.duration_minutes, one.fresh_hours, one.goal_pct, one.pass_rate_pct) == (20, 26, 99.9, 99.5)
    assert (one.ready_by, one.calendar, config.maintenance[0].reason) == (time(6), "business", "patch night")


def test_targets_of_pipelines(make_site: Make) -> None:
    """R-SLO-02: a continuous pipeline has no duration, a backlog may have several units."""
    config = "slos:\n  - {backlog: {bytes: 10, files: 2}, success: false}\n"
    site = store(
        make_site(config=config),
        pipelines=[pipeline(), pipeline(pipeline_id="c")],
        pipeline_runs=[run(at("01-02 00:00"), 1), run(at("01-02 00:00"), None, pipeline_id="c", continuous=True)],
    )
    rows = shown(site, at("01-03 00:00")).execute("SELECT pipeline_id, objective, unit, target FROM targets").fetchall()
    assert sorted(rows) == [
        ("c", "backlog", "bytes", 10.0), ("c", "backlog", "files", 2.0),
        ("p", "backlog", "bytes", 10.0), ("p", "backlog", "files", 2.0), ("p", "duration", "minutes", 45.0),
    ]  # fmt: skip


# Whether it was met


def test_duration_is_inclusive_and_not_rounded(site: Site) -> None:
    """R-SLO-01: 45.0 against 45 is met, 45.01 is not, a failed 1-minute run is not; canceled and open ones are not judged."""
    runs = [
        run(at("01-02 00:00"), 45.0, update_id="a"), run(at("01-02 01:00"), 45.01, update_id="b"),
        run(at("01-02 02:00"), 1.0, "FAILED", update_id="c"), run(at("01-02 03:00"), 1.0, "CANCELED", update_id="d"),
        run(at("01-02 04:00"), None, update_id="e"),
    ]  # fmt: skip
    store(site, pipelines=[pipeline()], pipeline_runs=runs)
    judged = results(site, at("01-02 05:00"), "duration")
    assert judged == {"a": (45.0, True), "b": (45.01, False), "c": (1.0, False)}
    assert results(site, at("01-02 05:00"), "success") == {"a": (1, True), "b": (1, True), "c": (0, False)}


def test_a_failure_that_its_retry_healed_is_a_success(site: Site) -> None:
    """R-SLO-01: the request counts, from the start of its first attempt to the end of its last."""
    first = run(at("01-02 00:00"), 10, "FAILED", update_id="a", request_id="r")
    again = run(at("01-02 00:15"), 20, update_id="b", request_id="r", attempt_number=2)
    store(site, pipelines=[pipeline()], pipeline_runs=[first, again])
    assert results(site, at("01-02 01:00"), "success") == {"r": (1, True)}
    assert results(site, at("01-02 01:00"), "duration") == {"r": (35.0, True)}
    assert results(site, at("01-02 00:30"), "success") == {}  # the retry is under way


def test_pass_rate_is_that_of_the_worst_expectation(make_site: Make) -> None:
    """R-QUAL-09: the lowest of the run; without results it is not known, unless the run failed."""

    def expectation(update: str, name: str, rate: float | None) -> Row:
        return {
            "pipeline_id": "p", "update_id": update, "dataset": "t", "expectation": name, "pass_rate_pct": rate,
        }  # fmt: skip

    site = store(
        make_site(config="slos:\n  - {pass_rate_pct: 98}\n"),
        pipelines=[pipeline()],
        pipeline_runs=[
            run(at("01-02 00:00"), 1, update_id="a"), run(at("01-02 01:00"), 1, update_id="b"),
            run(at("01-02 02:00"), 1, update_id="c"), run(at("01-02 03:00"), 1, "FAILED", update_id="d"),
        ],
        expectation_results=[
            expectation("a", "x", 100.0), expectation("a", "y", 98.0), expectation("b", "x", 97.99),
            expectation("c", "x", None),
        ],
    )  # fmt: skip
    judged = results(site, at("01-02 04:00"), "pass_rate")
    assert judged == {"a": (98.0, True), "b": (97.99, False), "c": (None, None), "d": (None, False)}
    assert standing(site, at("01-02 04:00"), "pass_rate")["total"] == 3


# Deadlines


def test_deadlines_on_the_nights_of_clock_changes(make_site: Make) -> None:
    """R-NEW-06: 06:00 in Berlin is 05:00 UTC in winter and 04:00 in summer, from the morning of the change on."""
    site = store(make_site(config=READY), pipelines=[pipeline()])
    spring = due(site, at("03-29 00:00"))
    assert (spring["03-28"], spring["03-29"], spring["03-30"]) == ("03-28 05:00", "03-29 04:00", "03-30 04:00")
    autumn = due(site, at("10-25 00:00"))
    assert (autumn["10-24"], autumn["10-25"], autumn["10-26"]) == ("10-24 04:00", "10-25 05:00", "10-26 05:00")


def test_a_time_that_the_clock_change_skips_or_repeats(make_site: Make) -> None:
    """R-NEW-06: 02:30 on the last Sunday of March is the instant of the change; in October it is the first of two."""
    site = store(make_site(config=READY.replace("06:00", "02:30")), pipelines=[pipeline()])
    assert due(site, at("03-29 00:00"))["03-29"] == "03-29 01:00"
    assert due(site, at("10-25 00:00"))["10-25"] == "10-25 00:30"


def test_days_that_do_not_count(make_site: Make) -> None:
    """R-NEW-06: weekends and holidays by the calendar, and days whose deadline is in maintenance."""
    config = """
calendars:
  - {name: work, weekdays: [mon, tue, wed, thu, fri], holidays: [2026-01-06]}
slos:
  - {ready_by: '06:00', calendar: work}
maintenance:
  - {start: 2026-01-07T22:00:00, end: 2026-01-08T08:00:00}
"""
    site = store(make_site(config=config), pipelines=[pipeline()])
    days = [day for day in due(site, at("01-10 00:00")) if "01-03" <= day < "12"]
    assert days == ["01-05", "01-07", "01-09"]  # 3 and 4 January are a weekend


def test_days_are_met_by_a_success_in_their_window(make_site: Make) -> None:
    """R-NEW-06: within 12 hours before; what comes later is said, and too late."""
    site = store(
        make_site(config="slos:\n  - {ready_by: '06:00'}\n"),
        pipelines=[pipeline(first_event_ts=at("01-01 12:00"))],
        pipeline_runs=[
            run(at("01-02 05:00"), 60), run(at("01-03 05:00"), 60.01), run(at("01-04 05:00"), 30, "FAILED"),
            run(at("01-04 17:00"), 30),
        ],
    )  # fmt: skip
    judged = results(site, at("01-05 12:00"), "ready_by")
    assert {day: met for day, (_, met) in judged.items()} == {
        "2026-01-02": True, "2026-01-03": False, "2026-01-04": False, "2026-01-05": False,
    }  # fmt: skip
    assert judged["2026-01-02"][0] == at("01-02 06:00").timestamp()
    assert judged["2026-01-04"][0] == at("01-04 17:30").timestamp()  # half an hour before the window of the 5th
    assert judged["2026-01-05"][0] is None


def test_a_missed_deadline_stays_until_a_success_comes(make_site: Make) -> None:
    """R-NEW-06, R-SLO-05: since the deadline; a success of another day does not end it."""
    site = store(
        make_site(config=READY),
        pipelines=[pipeline()],
        pipeline_runs=[run(at("01-02 04:00"), 30), run(at("01-03 09:00"), 30)],
    )
    assert titles(site, "deadline_missed", at("01-03 04:59")) == []
    (missed,) = found(site, "deadline_missed", at("01-03 05:00"))
    assert (missed.title, missed.since) == ("not ready by 06:00 Europe/Berlin", at("01-03 05:00"))
    assert missed.severity == "error"
    assert standing(site, at("01-03 09:00"), "ready_by")["state"] == "missed"
    assert titles(site, "deadline_missed", at("01-03 09:29")) == ["not ready by 06:00 Europe/Berlin"]
    assert titles(site, "deadline_missed", at("01-03 09:30")) == []


def test_a_new_pipeline_has_missed_nothing(make_site: Make) -> None:
    """R-NEW-06: the first deadline that counts is one whose whole window it was known."""
    site = store(make_site(config=READY), pipelines=[pipeline(first_event_ts=at("01-02 20:00"))])
    assert titles(site, "deadline_missed", at("01-03 12:00")) == []
    assert titles(site, "deadline_missed", at("01-04 12:00")) == ["not ready by 06:00 Europe/Berlin"]


# Early warning

USUAL = [run(at(f"01-{day:02d} 04:00"), 42) for day in range(1, 11)]  # 05:00 to 05:42 in Berlin


def test_a_run_that_will_end_too_late_is_told_before_the_deadline(make_site: Make) -> None:
    """R-NEW-06, R-SLO-05: begun at 05:25, usually 42 minutes: 06:07. Once it is missed, that is all that is told."""
    flow = {"pipeline_id": "p", "update_id": USUAL[-1]["update_id"], "run_start_ts": USUAL[-1]["start_ts"]}
    site = store(
        make_site(config=READY),
        pipelines=[pipeline()],
        pipeline_runs=[*USUAL, run(at("01-11 04:25"), 50)],
        flow_durations=[
            {**flow, "flow_name": "quick", "critical_seconds": 60.0, "usual_seconds": 60.0},
            {**flow, "flow_name": "long", "critical_seconds": 2400.0, "usual_seconds": 2280.0},
        ],
    )
    (risk,) = found(site, "deadline_at_risk", at("01-11 04:26"))
    assert risk.title == "at this pace 06:07, deadline 06:00 Europe/Berlin"
    assert risk.evidence["basis"] == "usually 42.0 min (median of 10 runs of the same hour)"
    assert (risk.evidence["longest_flow"], risk.evidence["usual_minutes_of_flow"]) == ("long", 38.0)
    now = standing(site, at("01-11 04:26"), "ready_by")
    assert (now["state"], now["due_at"], now["expected_at"]) == ("at_risk", at("01-11 05:00"), at("01-11 05:07"))
    assert titles(site, "deadline_at_risk", at("01-11 05:00")) == []
    assert titles(site, "deadline_missed", at("01-11 05:00")) == ["not ready by 06:00 Europe/Berlin"]


def test_a_run_over_its_usual_time_is_expected_to_take_as_long_again_as_it_is_over(make_site: Make) -> None:
    """R-SLO-05: begun in time at 05:00; 8 minutes over at 05:50 make 05:58, 10 at 05:52 make 06:02."""
    site = store(make_site(config=READY), pipelines=[pipeline()], pipeline_runs=[*USUAL, run(at("01-11 04:00"), None)])
    assert titles(site, "deadline_at_risk", at("01-11 04:50")) == []
    assert standing(site, at("01-11 04:50"), "ready_by")["expected_at"] == at("01-11 04:58")
    assert titles(site, "deadline_at_risk", at("01-11 04:52")) == ["at this pace 06:02, deadline 06:00 Europe/Berlin"]


def test_a_run_that_has_not_begun(make_site: Make) -> None:
    """R-SLO-05: at 05:10 there is time for 42 minutes, at 05:19 there is none."""
    site = store(make_site(config=READY), pipelines=[pipeline()], pipeline_runs=USUAL)
    assert standing(site, at("01-11 03:59"), "ready_by")["expected_at"] is None  # it usually has not begun by then
    assert standing(site, at("01-11 04:10"), "ready_by")["expected_at"] == at("01-11 04:52")
    assert titles(site, "deadline_at_risk", at("01-11 04:10")) == []
    (risk,) = found(site, "deadline_at_risk", at("01-11 04:19"))
    assert risk.title == "at this pace 06:01, deadline 06:00 Europe/Berlin"
    assert risk.evidence["basis"] == "not begun, usually at 05:00 for 42.0 min (median of 10 days in time)"


def test_no_forecast_without_history(make_site: Make) -> None:
    """R-NEW-06: two runs before are too few to say what is usual."""
    site = store(
        make_site(config=READY), pipelines=[pipeline()], pipeline_runs=[*USUAL[:2], run(at("01-03 04:50"), None)]
    )  # fmt: skip
    assert titles(site, "deadline_at_risk", at("01-03 04:55")) == []
    assert standing(site, at("01-03 04:55"), "ready_by")["expected_at"] is None


def test_what_happens_later_is_not_known_yet(make_site: Make) -> None:
    """R-NEW-06: an evaluation at an earlier time judges and forecasts as if the log ended there."""
    later = [run(at("01-11 04:25"), 50), *(run(at(f"01-{day} 04:00"), 200, "FAILED") for day in (12, 13, 14))]
    whole = store(make_site("whole", config=READY), pipelines=[pipeline()], pipeline_runs=[*USUAL, *later])
    open_run = run(at("01-11 04:25"), None)
    cut = store(make_site("cut", config=READY), pipelines=[pipeline()], pipeline_runs=[*USUAL, open_run])
    now = at("01-11 04:40")
    assert slo.results(shown(whole, now)).sort_by("at").equals(slo.results(shown(cut, now)).sort_by("at"))
    for rule in ("deadline_at_risk", "deadline_missed", "budget_burning", "duration_over_target"):
        assert found(whole, rule, now) == found(cut, rule, now)


def test_a_rehearsal_misses_what_live_operation_missed(make_site: Make) -> None:
    """R-NEW-06: evaluated every hour, each time on what was known then."""
    runs = [run(at("01-02 04:00"), 30), run(at("01-03 09:10"), 30), run(at("01-04 04:00"), 30)]
    ends = {row["update_id"]: row["end_ts"] for row in runs}
    events = [
        {
            "pipeline_id": "p",
            "update_id": row["update_id"],
            "event_ts": when,
            "event_date": when.date(),
            "_ingested_at": when,
        }
        for row in runs
        for when in (row["start_ts"], ends[row["update_id"]])
    ]
    site = store(
        make_site(config=READY), pipelines=[pipeline()], pipeline_runs=runs, all_pipelines_event_log=events
    )  # fmt: skip
    made = rehearse(site.warehouse, at("01-03 00:00"), at("01-03 12:00"), timedelta(hours=1), only="deadline_missed")
    assert [(row["transition"], row["at"]) for row in made.events] == [
        ("opened", at("01-03 05:00")), ("resolved", at("01-03 10:00")),
    ]  # fmt: skip


# Duration


def test_the_newest_request_took_longer_than_its_target(make_site: Make) -> None:
    """R-SLO-05, R-ALERT-06: minutes to one decimal; done, still going past it, and on its way there."""
    site = store(
        make_site(config="slos:\n  - {duration_minutes: 50}\n"),
        pipelines=[pipeline()],
        pipeline_runs=[*USUAL, run(at("01-11 04:00"), 50.26), run(at("01-12 04:00"), 55)],
    )
    assert titles(site, "duration_over_target", at("01-11 04:45")) == []  # 3 minutes over: expected are 48
    assert titles(site, "duration_over_target", at("01-11 04:47")) == ["at this pace 52.0 min, target 50.0 min"]
    assert standing(site, at("01-11 04:47"), "duration")["state"] == "at_risk"
    assert titles(site, "duration_over_target", at("01-11 06:00")) == ["50.3 min, target 50.0 min"]
    (going,) = found(site, "duration_over_target", at("01-12 04:51"))
    assert (going.title, going.since) == ("still running after 51.0 min, target 50.0 min", at("01-12 04:50"))
    assert standing(site, at("01-12 04:51"), "duration")["state"] == "missed"


def test_a_failure_and_a_full_refresh_are_no_breach_to_tell(site: Site) -> None:
    """R-ALERT-05: the failure is told by its own rule."""
    failed, full = run(at("01-02 00:00"), 90, "FAILED"), run(at("01-01 00:00"), 90, is_full_refresh=True)
    store(site, pipelines=[pipeline()], pipeline_runs=[full, failed])
    assert titles(site, "duration_over_target", at("01-01 01:00")) == []
    assert titles(site, "duration_over_target", at("01-02 02:00")) == []


# Freshness and backlog


def test_freshness(make_site: Make) -> None:
    """R-SLO-06: the last success is at most so old, and one has to come at all."""
    site = store(
        make_site(config="slos:\n  - {fresh_hours: 24}\n"),
        pipelines=[pipeline(), pipeline(pipeline_id="n", first_event_ts=at("01-02 00:00"))],
        pipeline_runs=[run(at("01-02 11:00"), 60), run(at("01-03 02:00"), 60, "FAILED")],
    )
    assert titles(site, "not_fresh", at("01-03 00:00")) == []
    assert titles(site, "not_fresh", at("01-03 12:00")) == ["no success for 36.0 hours, at most 24 wanted"]
    old, never = sorted(found(site, "not_fresh", at("01-03 18:00")), key=lambda row: row.pipeline_id, reverse=True)
    assert (old.title, old.since) == ("last success 30.0 hours ago, at most 24 wanted", at("01-03 12:00"))
    assert (never.title, never.since) == ("no success for 42.0 hours, at most 24 wanted", at("01-03 00:00"))


def test_what_is_not_seen_is_not_late(make_site: Make) -> None:
    """R-SLO-06: of a log that cannot be read another rule tells; nothing is known of its runs."""
    config = READY + "    fresh_hours: 24\n"
    site = store(
        make_site(config=config.replace("{ready_by: '06:00'}", "ready_by: '06:00'")),
        pipelines=[pipeline(state="no_grant")],
    )
    now = at("01-05 12:00")
    assert (titles(site, "not_fresh", now), titles(site, "deadline_missed", now)) == ([], [])
    assert standing(site, now, "fresh")["state"] == standing(site, now, "ready_by")["state"] == "unknown"


def test_a_continuous_pipeline_is_as_fresh_as_its_last_batch(make_site: Make) -> None:
    """R-SLO-06: its request does not end."""
    hour = {"pipeline_id": "p", "update_id": "u", "flow_name": "f", "hour_ts": at("01-02 10:00")}
    site = store(
        make_site(config="slos:\n  - {fresh_hours: 2}\n"),
        pipelines=[pipeline()],
        pipeline_runs=[run(at("01-01 00:00"), None, update_id="u", continuous=True)],
        flow_hours=[{**hour, "last_batch_ts": at("01-02 10:30")}],
    )
    assert titles(site, "not_fresh", at("01-02 12:30")) == []
    assert titles(site, "not_fresh", at("01-02 13:00")) == ["last success 2.5 hours ago, at most 2 wanted"]


def test_backlog(make_site: Make) -> None:
    """R-SLO-02: of each flow the newest complete hour, in the unit that is exceeded most."""
    hour = {"pipeline_id": "p", "update_id": "u"}
    site = store(
        make_site(config="slos:\n  - {backlog: {records: 100, files: 10}}\n"),
        pipelines=[pipeline()],
        pipeline_runs=[run(at("01-01 00:00"), None, update_id="u", continuous=True)],
        flow_hours=[
            {**hour, "flow_name": "f", "hour_ts": at("01-02 10:00"), "last_backlog_records": 500},
            {
                **hour,
                "flow_name": "f",
                "hour_ts": at("01-02 11:00"),
                "last_backlog_records": 150,
                "last_backlog_files": 30,
            },
            {**hour, "flow_name": "g", "hour_ts": at("01-02 11:00"), "last_backlog_records": 100},
        ],
    )
    assert titles(site, "backlog_high", at("01-02 11:59")) == ["f has 500 records waiting, at most 100 wanted"]
    assert titles(site, "backlog_high", at("01-02 12:00")) == ["f has 30 files waiting, at most 10 wanted"]
    assert results(site, at("01-02 12:00"), "backlog") == {"2026-01-02T10": (500, False), "2026-01-02T11": (30, False)}
    now = standing(site, at("01-02 12:00"), "backlog")
    assert (now["unit"], now["target"], now["latest_value"], now["state"]) == ("files", 10, 30, "missed")
    assert slo.objectives([Slo(backlog=Backlog(bytes=1))], Pipeline("p", None, None, {})).backlog == Backlog(bytes=1)


# Budgets


def test_budget_and_burn_rates(site: Site) -> None:
    """R-NEW-06: 100 requests may miss 1; 4 missed in the last day of 8, in a week of 40."""
    now = at("02-01 00:00")
    runs = [run(now - timedelta(days=20, hours=place), 1) for place in range(60)]
    runs += [run(now - timedelta(days=5, hours=place), 1) for place in range(32)]
    runs += [
        run(now - timedelta(hours=3 * place, minutes=5), 1, "FAILED" if place % 2 else "COMPLETED")
        for place in range(8)
    ]
    runs += [run(now - timedelta(days=40), 1, "FAILED")]  # before the period
    store(site, pipelines=[pipeline()], pipeline_runs=runs)
    row = standing(site, now, "success")
    assert (row["total"], row["met"], row["missed"], row["actual_pct"]) == (100, 96, 4, 96.0)
    assert row["error_budget_left_pct"] == pytest.approx(-300)  # 1 allowed, 4 missed
    assert row["burn_rate_1d"] == pytest.approx(50)  # half of the requests, 1 % allowed
    assert row["burn_rate_7d"] == pytest.approx(10)  # a tenth of them
    (burning,) = found(site, "budget_burning", now)  # that failed requests miss their duration too is not said
    assert (burning.subject, burning.severity) == ("success", "error")
    assert burning.title == "success missed 4 of 8 times in a day, 50 times as often as allowed"


def test_budgets_of_data_and_of_runs_are_separate_incidents(make_site: Make) -> None:
    """R-ALERT-05: three failures and a run that is too long are one cause, three runs with bad data another."""
    now = at("02-01 00:00")
    runs = [run(now - timedelta(hours=place), 1, "FAILED" if place < 4 else "COMPLETED") for place in range(1, 11)]
    runs[9] = run(now - timedelta(hours=12), 50, update_id="long")
    checks = [
        {"pipeline_id": "p", "update_id": row["update_id"], "dataset": "t", "expectation": "x", "pass_rate_pct": 90.0}
        for row in runs[3:6]
    ]
    site = store(
        make_site(config="slos:\n  - {pass_rate_pct: 98}\n"),
        pipelines=[pipeline()],
        pipeline_runs=runs,
        expectation_results=checks,
    )
    causes = {row.subject: row.cause for row in found(site, "budget_burning", now)}
    assert causes == {"duration": "p runs", "success": "p runs", "pass_rate": "p data"}


def every_four_hours(now: datetime, failed: set[int]) -> list[Row]:
    """40 requests in a week, the newest first; those with these numbers failed."""
    starts = [now - timedelta(hours=4 * place + 1) for place in range(40)]
    return [run(start, 1, "FAILED" if place in failed else "COMPLETED") for place, start in enumerate(starts)]


@pytest.mark.parametrize(
    ("failed", "expected"),
    [({2, 10, 20}, [("warning", 7.5)]), ({2, 10}, []), ({10, 15, 20}, [])],
    ids=["3 of 40 are 7.5 times what is allowed", "2 are too few to say", "none in the last day: it burns no more"],
)
def test_a_budget_that_burns_slowly_is_a_warning(site: Site, failed: set[int], expected: list[Any]) -> None:
    """R-NEW-06: over a week, and still over the last day."""
    now = at("02-01 00:00")
    store(site, pipelines=[pipeline()], pipeline_runs=every_four_hours(now, failed))
    burning = found(site, "budget_burning", now)
    assert [(row.severity, row.evidence["burn_rate_7_days"]) for row in burning] == expected


def test_nothing_judged_is_not_all_met(site: Site) -> None:
    """Unknown is null, not zero."""
    store(site, pipelines=[pipeline()])
    row = standing(site, at("01-03 00:00"), "success")
    assert (row["total"], row["actual_pct"], row["error_budget_left_pct"], row["burn_rate_1d"]) == (0, None, None, None)
    assert (row["latest_met"], row["state"], row["owner"]) == (None, "unknown", "ana")


# What is kept


def test_what_was_judged_stays_as_it_was_judged(make_site: Make) -> None:
    """R-SLO-02: another target counts from now on, and for what was decided in the last two days."""
    runs = [run(at("01-02 00:00"), 30, update_id="old"), run(at("01-09 00:00"), 30, update_id="new")]
    site = store(make_site(), pipelines=[pipeline()], pipeline_runs=runs)
    write(site, at("01-09 01:00"))
    first = site.rows("slo_results", objective="duration")
    assert sorted((row["occurrence_id"], row["target"], row["met"]) for row in first) == [
        ("new", 45, True),
        ("old", 45, True),
    ]
    version = site.warehouse.version("slo_results")
    write(site, at("01-09 01:00"))
    assert site.warehouse.version("slo_results") == version

    file = site.folder / "monitoring.yaml"
    file.write_text(file.read_text() + "slos:\n  - {duration_minutes: 20}\n")
    site = Site(site.folder, open_warehouse(load(file)))
    write(site, at("01-09 02:00"))
    second = site.rows("slo_results", objective="duration")
    assert sorted((row["occurrence_id"], row["target"], row["met"]) for row in second) == [
        ("new", 20, False),
        ("old", 45, True),
    ]
    status = site.row("slo_status", objective="duration")
    assert (status["target"], status["total"], status["missed"], status["state"]) == (20, 2, 1, "missed")


def test_a_request_that_is_decided_anew_has_one_row(site: Site) -> None:
    """R-SLO-02: a retry days later makes a success of what was kept as a failure."""
    store(
        site, pipelines=[pipeline()], pipeline_runs=[run(at("01-02 00:00"), 1, "FAILED", update_id="a", request_id="r")]
    )
    write(site, at("01-02 01:00"))
    again = run(at("01-07 00:00"), 1, update_id="b", request_id="r", attempt_number=2)
    store(site, pipeline_runs=[again])
    now = at("01-07 01:00")
    assert standing(site, now, "success")["total"] == 1
    write(site, now)
    assert site.row("slo_results", objective="success")["met"]


# Order


MIXED = [
    *USUAL, run(at("01-10 06:00"), 10, "FAILED", update_id="x", request_id="r"),
    run(at("01-10 06:00"), 10, update_id="y", request_id="r", attempt_number=2),
    run(at("01-10 06:10"), 0, "FAILED"), run(at("01-11 04:25"), None),
]  # fmt: skip


def judged(folder: Path, runs: list[Row]) -> list[list[Row]]:
    """Rows of both tables, sorted, when the runs are stored in this order."""
    file = folder / "monitoring.yaml"
    file.write_text(f"warehouse: {{path: ./warehouse}}\nsources: []\n{READY}")
    site = store(Site(folder, open_warehouse(load(file))), pipelines=[pipeline()], pipeline_runs=runs)
    con = shown(site, at("01-11 04:26"))
    return [sorted(table.to_pylist(), key=repr) for table in (slo.results(con), slo.status(con))]


@settings(max_examples=10)
@given(st.permutations(MIXED))
def test_the_order_of_rows_never_matters(tmp_path_factory: pytest.TempPathFactory, runs: list[Row]) -> None:
    """R-SLO-02: results and standing are the same however the rows are stored."""
    mixed, straight = (judged(tmp_path_factory.mktemp("order"), rows) for rows in (runs, MIXED))
    assert mixed == straight
