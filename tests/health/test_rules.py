"""The ready-made rules on hand-written pasts: what they find, and what they leave alone."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from monitoring_platform.config import READY_RULES, Override, Rule
from monitoring_platform.health import rules, slo
from monitoring_platform.health.history import History
from monitoring_platform.marts.tables.health import TABLES
from tests.health.past import Past

MONDAY = datetime(2026, 3, 2, 6, tzinfo=timezone.utc)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def daily(past: Past, days: int, minutes: float = 10, **other: object) -> None:
    """A run a day at 6:00 on the days before MONDAY; every second one takes a minute longer."""
    for ago in range(days, 0, -1):
        past.run(MONDAY - ago * DAY, minutes + ago % 2, **other)  # type: ignore[arg-type]


def test_every_rule_is_described_and_can_be_evaluated(tmp_path: Path) -> None:
    past = Past(tmp_path)
    past.warehouse.create(TABLES)
    con = History(past.warehouse, [*rules.queries(past.settings, READY_RULES), *slo.queries()], MONDAY).con
    rules.prepare(con)
    slo.prepare(con, past.settings, [], MONDAY)
    for evaluation in rules.evaluate(con, past.settings, [], READY_RULES):
        assert (evaluation.error, evaluation.found) == (None, [])
        assert len(rules.description(evaluation.rule, past.settings)) > 20
    assert set(rules.KINDS) == set(READY_RULES)
    assert not rules.is_on(past.settings, "stream_lagging")  # R-ALERT-07


def test_a_failed_request(past: Past) -> None:
    """R-ALERT-01, R-ALERT-06 the error is named; a success heals it, a canceled or an open run does not."""
    update = past.run(MONDAY, 5, status="FAILED")
    failure = {"error_class": "E1", "message": "no column", "fingerprint": "f"}
    past.add("failures", pipeline_id="p", update_id=update, kind="failed", **failure)
    past.run(MONDAY + HOUR, 1, status="CANCELED")
    past.run(MONDAY + 2 * HOUR, None)
    assert len(past.found("request_failed", MONDAY + 5.5 * MINUTE)) == 1  # at once: no retry was ever seen
    (found,) = past.found("request_failed", MONDAY + 3 * HOUR)
    assert (found.title, found.since, found.severity) == ("failed: E1", MONDAY + 5 * MINUTE, "error")
    assert (found.evidence["first_error"], found.evidence["update_id"]) == ("no column", update)
    past.run(MONDAY + 4 * HOUR, 5)
    assert past.found("request_failed", MONDAY + 5 * HOUR) == []
    assert len(past.found("request_failed", MONDAY + 4 * HOUR)) == 1  # as known then


def test_a_failure_that_its_retry_healed(past: Past) -> None:
    """Nothing, neither while the usual retry is waited for nor after it."""
    for ago in (2, 1, 0):
        start = MONDAY - ago * DAY
        past.run(start, 5, status="FAILED", request_id=f"r{ago}")
        past.run(start + 6 * MINUTE, 5, request_id=f"r{ago}", attempt_number=2)
    assert past.found("request_failed", MONDAY + 5.5 * MINUTE) == []
    assert past.found("request_failed", MONDAY + HOUR) == []


def test_a_usual_retry_that_does_not_come(past: Past) -> None:
    """Retries came after a minute: it is waited for twice that and a minute."""
    for ago in (2, 1):
        past.run(MONDAY - ago * DAY, 5, status="FAILED", request_id=f"r{ago}")
        past.run(MONDAY - ago * DAY + 6 * MINUTE, 5, request_id=f"r{ago}", attempt_number=2)
    past.run(MONDAY, 5, status="FAILED")
    assert past.found("request_failed", MONDAY + 7 * MINUTE) == []
    assert len(past.found("request_failed", MONDAY + 8 * MINUTE)) == 1


def test_failures_in_a_day(past: Past) -> None:
    for hour in range(6):
        past.run(MONDAY + hour * HOUR, 5, status="FAILED" if hour in (0, 2, 4) else "COMPLETED")
    (found,) = past.found("failure_rate_high", MONDAY + 6 * HOUR)
    assert (found.title, found.evidence["failed_percent"]) == ("3 of 6 requests failed within 24 hours", 50.0)
    assert past.found("failure_rate_high", MONDAY + 25 * HOUR) == []


def test_a_slow_run(past: Past) -> None:
    """R-DUR-05 usually 10 or 11 minutes: 25 fire, 20 do not; once for information, twice in a row a warning."""
    daily(past, 8)
    past.run(MONDAY, 25)
    (found,) = past.found("run_slow", MONDAY + HOUR)
    assert (found.severity, found.title) == ("info", "25.0 min, usually 11.0 min")
    assert (found.evidence["times_usual"], found.evidence["compared_runs"]) == (
        2.3,
        5,
    )  # Monday to Friday: 11, 10, 11, 10, 11
    past.run(MONDAY + DAY, 26)
    assert past.found("run_slow", MONDAY + DAY + HOUR)[0].severity == "warning"
    past.run(MONDAY + 2 * DAY, 20)
    assert past.found("run_slow", MONDAY + 2 * DAY + HOUR) == []


def test_a_run_that_is_slow_already(past: Past) -> None:
    """R-DUR-05, R-SLO-05 it fires while the run goes on; far beyond, it is a warning at once."""
    daily(past, 8)
    past.run(MONDAY, None)
    assert past.found("run_slow", MONDAY + 20 * MINUTE) == []
    assert past.found("run_slow", MONDAY + 25 * MINUTE)[0].severity == "info"
    assert past.found("run_slow", MONDAY + 70 * MINUTE)[0].severity == "warning"


def test_too_little_to_compare_with(past: Past) -> None:
    """A first build, and the runs after it, have no usual duration."""
    daily(past, 4)
    past.run(MONDAY, 100)
    assert past.found("run_slow", MONDAY + 3 * HOUR) == []


def test_the_guilty_flow(past: Past) -> None:
    """R-DUR-07 of a run that took 11 instead of 4 minutes."""
    daily(past, 8, 4)
    update = past.run(MONDAY, 11)
    for flow, seconds, usual in (("joins", 420.0, 60.0), ("reads", 120.0, 110.0)):
        times = {"active_seconds": seconds, "usual_seconds": usual}
        past.add("flow_durations", pipeline_id="p", update_id=update, flow_name=flow, **times)
    (found,) = past.found("run_slow", MONDAY + HOUR)
    assert (found.evidence["slowest_flow"], found.evidence["extra_minutes_of_flow"]) == ("joins", 6.0)


def test_the_weekday_is_part_of_what_is_usual(past: Past) -> None:
    """R-PEER-14 a weekly pattern does not alarm on Mondays; an outlier does."""
    for ago in range(56, 0, -1):
        day = MONDAY - ago * DAY
        past.run(day, 60 if day.weekday() == 0 else 10)
    past.run(MONDAY, 61)
    assert past.found("run_slow", MONDAY + 2 * HOUR) == []
    past.run(MONDAY + DAY, 61)
    (found,) = past.found("run_slow", MONDAY + DAY + 2 * HOUR)
    assert found.evidence["basis"] == "the same weekday and hour"


@pytest.mark.parametrize(("growth", "fires"), [(1.06, True), (1.03, False)])
def test_durations_that_grow(past: Past, growth: float, fires: bool) -> None:
    """R-DUR-04 6 % a week fires, 3 % does not."""
    for ago in range(28, 0, -1):
        past.run(MONDAY - ago * DAY, 10 * growth ** ((28 - ago) // 7))
    found = past.found("duration_growing", MONDAY)
    assert [one.evidence["weekly_growth_percent"] for one in found] == ([6.0] if fires else [])


def test_no_rows(past: Past) -> None:
    """R-ROW-04 0 where rows are usual fires; not reported is not 0; often empty is not unusual."""
    for ago in range(5, 0, -1):
        past.run(MONDAY - ago * DAY, 5, rows_written=100)
        past.run(MONDAY - ago * DAY, 5, "unknown", rows_written=100)
        past.run(MONDAY - ago * DAY, 5, "often", rows_written=100 * (ago % 2))
    past.run(MONDAY, 5, rows_written=0)
    past.run(MONDAY, 5, "unknown", rows_written=None)
    past.run(MONDAY, 5, "often", rows_written=0)
    past.pipeline("unknown")
    past.pipeline("often")
    (found,) = past.found("rows_zero", MONDAY + HOUR)
    assert (found.pipeline_id, found.title) == ("p", "0 rows, usually 100")


def test_rows_that_change(past: Past) -> None:
    """R-ROW-05, R-ALERT-10 40 % less fires with both numbers, 39 % less does not; far more is for information."""
    for ago in range(10, 0, -1):
        past.run(MONDAY - ago * DAY, 5, rows_written=1000)
    past.run(MONDAY, 5, rows_written=610)
    assert past.found("rows_changed", MONDAY + HOUR) == []
    past.run(MONDAY + DAY, 5, rows_written=600)
    (found,) = past.found("rows_changed", MONDAY + DAY + HOUR)
    assert (found.severity, found.title) == ("warning", "600 rows, usually 1000 (-40 %)")
    past.run(MONDAY + 2 * DAY, 5, rows_written=9000)
    assert past.found("rows_changed", MONDAY + 2 * DAY + HOUR)[0].severity == "info"


def test_pass_rates(past: Past) -> None:
    """R-ALERT-01 below 99 %; of each expectation the newest result counts."""
    first, second = past.run(MONDAY - DAY, 5), past.run(MONDAY, 5)
    for update, name, passed in ((first, "a", 90), (second, "a", 99), (first, "b", 98), (second, "c", 985)):
        total = 1000 if name == "c" else 100
        past.add(
            "expectation_results",
            pipeline_id="p",
            update_id=update,
            dataset="d",
            expectation=name,
            passed_records=passed,
            failed_records=total - passed,
            evaluated_records=total,
            pass_rate_pct=100 * passed / total,
        )
    found = past.found("pass_rate_low", MONDAY + HOUR)
    assert [(one.subject, one.evidence["pass_rate_percent"]) for one in found] == [("d.b", 98.0), ("d.c", 98.5)]


def valid(past: Past, start: datetime, failed: int) -> None:
    """A run in which so many of 100,000 records failed the expectation `valid`."""
    past.add(
        "expectation_results",
        pipeline_id="p",
        update_id=past.run(start, 5),
        dataset="d",
        expectation="valid",
        passed_records=100_000 - failed,
        failed_records=failed,
        evaluated_records=100_000,
        pass_rate_pct=100 - failed / 1000,
    )


@pytest.mark.parametrize(
    ("rates", "fires"), [((99.9, 99.5, 95.0), True), ((99.9, 99.5, 99.6), False), ((99.5, 99.46, 99.44), False)]
)
def test_creeping_decay(past: Past, rates: tuple[float, ...], fires: bool) -> None:
    """R-QUAL-06 99.9, 99.5, 95 over weeks is noticed at the second step; noise around a constant is not."""
    for week, rate in enumerate(rates):
        for day in range(7):
            start = MONDAY - (3 - week) * 7 * DAY + day * DAY
            failed = round(100_000 * (100 - rate) / 100) + 10 * (day % 2)
            valid(past, start, failed)
    assert [one.subject for one in past.found("pass_rate_falling", MONDAY)] == (["d.valid"] if fires else [])


def test_decay_that_is_over(past: Past) -> None:
    """R-QUAL-06: 99.9, 99.5, 95 over weeks and 96 since is still told; 99.9 since is not."""
    for days, rate in [
        (-21, 99.9),
        (-20, 99.9),
        (-14, 99.5),
        (-13, 99.5),
        (-7, 95.0),
        (-6, 95.0),
        (0, 96.0),
        (1, 99.9),
    ]:
        valid(past, MONDAY + days * DAY, round(1000 * (100 - rate)))
        if days == 0:
            assert len(past.found("pass_rate_falling", MONDAY + HOUR)) == 1
    assert past.found("pass_rate_falling", MONDAY + DAY + HOUR) == []


def test_two_weekends_are_enough_to_know_the_third(past: Past) -> None:
    """R-ALERT-07: 40 % of the rows at weekends: after two of them, a Saturday is compared with those four days."""
    saturday = MONDAY + 19 * DAY
    for days in range(20):
        day = MONDAY + days * DAY
        past.run(day, 5, rows_written=(18_000 if day.isoweekday() > 5 else 45_000) + 10 * (days % 3))
    assert past.found("rows_changed", saturday + HOUR) == []


def test_dropped_records(past: Past) -> None:
    for ago in range(10, 0, -1):
        past.run(MONDAY - ago * DAY, 5, rows_dropped=50 + ago % 2)
    past.run(MONDAY, 5, rows_dropped=400)
    (found,) = past.found("rows_dropped", MONDAY + HOUR)
    assert found.title == "400 records dropped, usually 50"


def test_a_silent_pipeline(past: Past) -> None:
    """Every day, then nothing for more than three days; a weekly one is not silent after three days."""
    daily(past, 10)
    past.pipeline("weekly")
    for ago in range(10, 0, -1):
        past.run(MONDAY - 7 * ago * DAY, 5, "weekly")
    last = MONDAY - DAY
    assert past.found("pipeline_silent", last + 3 * DAY) == []
    (found,) = past.found("pipeline_silent", last + 3 * DAY + HOUR)
    assert (found.pipeline_id, found.evidence["usual_hours"], found.evidence["hours_ago"]) == ("p", 24.0, 73.0)


def test_backlog_and_stalled_flows(past: Past) -> None:
    """R-NEW-05 a continuous flow whose backlog grows hour by hour, and one that finishes no batch; unknown is neither."""
    update = past.run(MONDAY - DAY, None, continuous=True)
    for hour in range(8):
        at = MONDAY + hour * HOUR
        rows = {"growing": 100 * 2**hour, "stalled": 50, "unknown": None}
        for flow, backlog in rows.items():
            batch = MONDAY if flow == "stalled" else at + 59 * MINUTE
            reading = {"hour_ts": at, "last_backlog_records": backlog, "last_batch_ts": batch}
            past.add("flow_hours", pipeline_id="p", update_id=update, flow_name=flow, **reading)
    now = MONDAY + 8 * HOUR + MINUTE
    (found,) = past.found("backlog_growing", now)
    assert (found.subject, found.evidence["backlog_before"], found.evidence["backlog"]) == ("growing", 200, 12800)
    (found,) = past.found("flow_stalled", now)
    assert (found.subject, found.evidence["minutes_without_batch"]) == ("stalled", 481)


def test_views_that_are_recomputed(past: Past) -> None:
    """R-NEW-07 twice in full after increments; a first build and an asked-for full refresh are none."""
    past.pipeline("new")
    for day, technique in enumerate(("incremental", "incremental", "full", "full")):
        start = MONDAY + day * DAY
        for pipeline in ("p", "new"):
            chosen = "full" if pipeline == "new" else technique
            decision = {"event_id": f"{pipeline}{day}", "event_ts": start, "flow_name": "v", "technique": chosen}
            past.add("refresh_decisions", pipeline_id=pipeline, update_id=past.run(start, 5, pipeline), **decision)
    assert past.found("recomputed_in_full", MONDAY + 2 * DAY + HOUR) == []
    (found,) = past.found("recomputed_in_full", MONDAY + 3 * DAY + HOUR)
    assert (found.pipeline_id, found.subject, found.since) == ("p", "v", MONDAY + 2 * DAY)


def test_an_expectation_that_is_lost(past: Past) -> None:
    """Logs spell a dataset in three ways; one that has a new name is not lost, one of a dataset without rows neither."""
    for day in range(6):
        update = past.run(MONDAY + day * DAY, 5)
        past.add("flow_metrics", pipeline_id="p", update_id=update, flow_name="f", dataset="main.s.d", rows_written=9)
        past.add("flow_metrics", pipeline_id="p", update_id=update, flow_name="g", dataset="main.s.e", rows_written=0)
        never = [{"name": "never", "dataset": None, "action": "DROP"}]
        for dataset in ("d", "e"):
            defined = {"event_ts": MONDAY + day * DAY, "dataset": dataset, "rules": never}
            past.add("dataset_definitions", pipeline_id="p", update_id=update, **defined)
        for name in ("kept", "old" if day < 3 else "new", *(["lost"] if day < 4 else [])):
            dataset = "`main`.`s`.`d`" if name != "lost" or day else "d"
            past.add("expectation_results", pipeline_id="p", update_id=update, dataset=dataset, expectation=name)
    found = [[one.subject for one in past.found("expectation_lost", MONDAY + day * DAY + HOUR)] for day in (1, 4, 5)]
    assert [sorted(subjects) for subjects in found] == [[], ["d.never"], ["d.lost", "d.never"]]


def test_costs(past: Past) -> None:
    for ago in range(10, 0, -1):
        cost = {"usage_date": (MONDAY - ago * DAY).date(), "cost": 30 if ago == 1 else 10 + ago % 2, "currency": "USD"}
        past.add("pipeline_costs", cost_id=str(ago), pipeline_id="p", **cost)
    (found,) = past.found("cost_high", MONDAY)
    assert found.title == "30.00 USD on 2026-03-01, usually 10.00"


def test_coverage(past: Past) -> None:
    past.add("pipelines", pipeline_id="q", state="no_grant", reason="not granted", remedy="GRANT SELECT")
    (found,) = past.found("pipeline_not_seen", MONDAY)
    assert (found.pipeline_id, found.title, found.evidence["remedy"]) == ("q", "log not read: no_grant", "GRANT SELECT")


def test_limits_and_overrides(tmp_path: Path) -> None:
    """R-ALERT-01 limits can be changed for all, by tag and by name, and rules switched off."""
    quiet = Override(pipelines=("name of c",), enabled=False)
    gold = Override(tags={"tier": "gold"}, limits={"drop_percent": 20.0}, severity="error")
    rule = Rule(limits={"drop_percent": 70.0}, overrides=(quiet, gold))
    past = Past(tmp_path, rules={"rows_changed": rule, "rows_zero": Rule(enabled=False)})
    for pipeline in "abc":
        past.pipeline(pipeline, tags={"tier": "gold"} if pipeline != "a" else None)
        for ago in range(10, 0, -1):
            past.run(MONDAY - ago * DAY, 5, pipeline, rows_written=1000)
        past.run(MONDAY, 5, pipeline, rows_written=700)
    (found,) = past.found("rows_changed", MONDAY + HOUR)
    assert (found.pipeline_id, found.severity) == ("b", "error")
    assert "rows_zero" not in rules.names(past.settings)


def test_a_rule_of_ones_own(tmp_path: Path) -> None:
    """It reads the tables as known at the time; one that is wrong says so and harms no other."""
    mine = Rule(
        sql="SELECT pipeline_id, update_id AS subject, 'too short' AS title FROM pipeline_runs, clock "
        "WHERE duration_seconds < 60 AND end_ts <= now",
        severity="error",
    )
    past = Past(tmp_path, rules={"short_runs": mine, "broken": Rule(sql="SELECT nothing FROM nowhere")})
    past.pipeline()
    update = past.run(MONDAY, 0.5)
    (found,) = past.found("short_runs", MONDAY + HOUR)
    assert (found.subject, found.title, found.severity) == (update, "too short", "error")
    con = past.history(MONDAY, "broken", "short_runs").con
    rules.prepare(con)
    broken, good = rules.evaluate(con, past.settings, rules.pipelines(con), ["broken", "short_runs"])
    assert "nowhere" in str(broken.error)
    assert (good.error, good.found) == (None, [])  # the run was open then


def _weeks(past: Past, days: int) -> None:
    """A run a day: 1,000 rows from Monday to Friday, 400 at weekends."""
    for ago in range(days, 0, -1):
        start = MONDAY - ago * DAY
        past.run(start, 10, rows_written=1000 if start.isoweekday() < 6 else 400)


def test_half_the_rows_of_a_workday(past: Past) -> None:
    """R-ALERT-10: as few as at a weekend are for information, as on a holiday; fewer than ever are a warning."""
    _weeks(past, 42)
    past.run(MONDAY, 10, rows_written=450)
    (found,) = past.found("rows_changed", MONDAY + HOUR)
    assert (found.severity, found.title) == ("info", "450 rows, usually 1000 (-55 %)")
    assert (found.evidence["basis"], found.evidence["compared_runs"]) == ("the same weekday and hour", 6)
    past.run(MONDAY + DAY, 10, rows_written=310)  # the lowest tenth is 400, of which 80 % are 320
    assert past.found("rows_changed", MONDAY + DAY + HOUR)[0].severity == "warning"


def test_a_weekend_is_as_quiet_as_a_weekend(past: Past) -> None:
    """R-ALERT-10: no finding on a Saturday after three weeks, nor in the first week of all."""
    _weeks(past, 23)
    past.run(MONDAY + 5 * DAY, 10, rows_written=400)
    assert past.found("rows_changed", MONDAY + 5 * DAY + HOUR) == []


def test_a_jump_is_not_growth(past: Past) -> None:
    """R-DUR-06: three weeks of 10.0, 10.1 and 10.2 minutes and one of 16 are a jump; 10, 11, 12 and 13 grow."""
    for pipeline, weeks in (("p", (10, 10.1, 10.2, 16)), ("q", (10, 11, 12, 13))):
        for week, minutes in enumerate(weeks):
            for day in range(7):
                past.run(MONDAY - (28 - 7 * week - day) * DAY, minutes, pipeline_id=pipeline)
    past.pipeline("q")
    (found,) = past.found("duration_growing", MONDAY + HOUR)
    assert found.pipeline_id == "q"


def test_a_holiday_after_a_weekend_is_no_silence(past: Past) -> None:
    """R-ALERT-02: from Monday to Friday at 6:00; Tuesday at 8:00 is in time after a free Monday, at 12:00 it is not."""
    for ago in range(28, 0, -1):
        if (MONDAY - ago * DAY).isoweekday() < 6:
            past.run(MONDAY - ago * DAY, 10)
    # usually 24 hours, 72 at most: silent after 72 + 1.2 x 24 = 100.8 hours, on Tuesday at 10:48
    assert past.found("pipeline_silent", MONDAY + DAY + 2 * HOUR) == []
    assert len(past.found("pipeline_silent", MONDAY + DAY + 6 * HOUR)) == 1


def test_a_day_off_each_week_is_no_silence(past: Past) -> None:
    """R-ALERT-02: every 6 hours, on Saturdays at midnight only: 24 hours are usual then, 24 + 1.2 x 6 = 31.2 the limit."""
    saturday = MONDAY.replace(hour=0) - 2 * DAY
    for quarter in range(4 * 21, 0, -1):
        start = saturday + (1 - quarter) * 6 * HOUR
        if start.isoweekday() != 6 or start.hour == 0:
            past.run(start, 5)
    assert past.found("pipeline_silent", saturday + 22 * HOUR) == []
    assert len(past.found("pipeline_silent", saturday + 32 * HOUR)) == 1
    # Two weeks earlier it had not paused twice: more than three times the usual 6 hours are too long.
    assert len(past.found("pipeline_silent", saturday - 14 * DAY + 22 * HOUR)) == 1
