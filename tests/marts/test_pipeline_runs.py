"""pipeline_runs and requests, worked out by hand (counting rules 6.4 to 6.6)."""

from __future__ import annotations

from tests.conftest import Site, event, flow, state


def test_status_is_the_last_state_and_a_terminal_one_is_not_overruled(site: Site) -> None:
    """R-RUN-03: input order means nothing; states after the end do not reopen the run."""
    site.write(
        "a.jsonl",
        state("3", 90, "COMPLETED"),
        event("1", 0, "create_update", {"cause": "JOB_TASK", "full_refresh": "false"}, request_id="r"),
        state("4", 120, "RUNNING"),
        state("2", 5, "RUNNING"),
    )
    site.cycle()
    run = site.row("pipeline_runs")
    assert (run["status"], run["cause"], run["request_id"], run["attempt_number"]) == ("COMPLETED", "JOB_TASK", "r", 1)
    assert run["is_full_refresh"] is False
    assert run["duration_seconds"] == 90.0
    assert run["running_seconds"] == 85.0
    assert run["initializing_seconds"] is None


def test_an_error_row_alone_does_not_make_a_run_failed(site: Site) -> None:
    """E-46: without a state the status is unknown."""
    site.write("a.jsonl", event("1", 0, "flow_progress", {"status": "FAILED"}, level="ERROR", flow_name="f"))
    site.cycle()
    run = site.row("pipeline_runs")
    assert run["status"] is None
    assert run["error_count"] == 1
    assert run["end_ts"] is None


def test_of_two_terminal_states_the_later_one_counts_and_is_flagged(site: Site) -> None:
    """event_log 6.4."""
    site.write("a.jsonl", state("1", 0, "RUNNING"), state("2", 10, "COMPLETED"), state("3", 20, "FAILED"))
    site.cycle()
    run = site.row("pipeline_runs")
    assert (run["status"], run["duration_seconds"], run["has_conflicting_end"]) == ("FAILED", 20.0, True)


def test_every_state_passes_and_cancelled_is_canceled(site: Site) -> None:
    """R-RUN-03: each enum value, and an invented one, is the status of a run that ends with it."""
    states = [
        "QUEUED",
        "CREATED",
        "WAITING_FOR_RESOURCES",
        "INITIALIZING",
        "RESETTING",
        "SETTING_UP_TABLES",
        "RUNNING",
        "STOPPING",
    ]
    states += ["COMPLETED", "FAILED", "CANCELED", "CANCELLED", "DREAMING"]
    site.write("a.jsonl", *(state(str(i), i, name, update_id=f"u-{name}") for i, name in enumerate(states)))
    site.cycle()
    found = {row["update_id"]: row["status"] for row in site.rows("pipeline_runs")}
    assert found == {f"u-{name}": "CANCELED" if name == "CANCELLED" else name for name in states}


def test_phases_run_to_the_next_state_that_occurred(site: Site) -> None:
    """R-DUR-02: CREATED 1 s, WAITING 1 s, INITIALIZING 1 s, SETTING_UP 1 s, RUNNING 85 s."""
    names = ["CREATED", "WAITING_FOR_RESOURCES", "INITIALIZING", "SETTING_UP_TABLES", "RUNNING"]
    site.write("a.jsonl", *(state(str(i), i, name) for i, name in enumerate(names)), state("9", 89, "COMPLETED"))
    site.cycle()
    run = site.row("pipeline_runs")
    phases = ("created", "waiting", "initializing", "setting_up", "running", "queued", "resetting", "stopping")
    assert [run[f"{phase}_seconds"] for phase in phases] == [1.0, 1.0, 1.0, 1.0, 85.0, None, None, None]


def test_internal_runs_are_flagged_and_missing_flags_are_false(site: Site) -> None:
    """R-PEER-05, E-47: null-safe; a run whose create_update was not seen is normal."""
    site.write(
        "a.jsonl",
        event("1", 0, "create_update", {"explore_only": "true"}, update_id="e"),
        event("2", 1, "create_update", {"validate_only": True}, update_id="v"),
        state("3", 2, "RUNNING", update_id="m", maintenance_id="mm"),
        event("4", 3, "create_update", {}, update_id="n"),
        state("5", 4, "RUNNING", update_id="late"),
    )
    site.cycle()
    kinds = {row["update_id"]: row["run_kind"] for row in site.rows("pipeline_runs")}
    assert kinds == {"e": "explore", "v": "validate", "m": "maintenance", "n": "normal", "late": "normal"}


def test_events_without_update_make_no_run_but_stay(site: Site) -> None:
    """event_log 6.8."""
    site.write("a.jsonl", event("1", 0, "user_action", {"action": "START"}, update_id=None))
    site.cycle()
    assert site.rows("pipeline_runs") == []
    assert site.row("all_pipelines_event_log")["event_type"] == "user_action"


def test_future_clock_neither_starts_nor_ends_a_run(site: Site) -> None:
    """event_log 9: an event of the year 2999 is kept, no "latest" moves to it."""
    late = {**state("2", 0, "RUNNING"), "timestamp": "2999-01-01T00:00:00Z"}
    site.write("a.jsonl", state("1", 0, "RUNNING"), late, state("3", 30, "COMPLETED"))
    site.cycle()
    run = site.row("pipeline_runs")
    assert (run["status"], run["duration_seconds"], run["last_event_ts"].year) == ("COMPLETED", 30.0, 2026)
    assert site.row("pipelines")["last_event_ts"].year == 2026


def test_settings_and_compute_type(site: Site) -> None:
    """R-RUN-02, R-RUN-06: NULL when unknown, never Classic by default; the runtime is text."""
    config = {"serverless": "true", "continuous": False, "development": "True", "photon": 1, "channel": "CURRENT"}
    site.write(
        "a.jsonl",
        event("1", 0, "create_update", {"config": config, "runtime_version": {"dbr_version": "13.3"}}, update_id="a"),
        event("2", 1, "runtime_details", {"dbr_version": "18.0"}, update_id="a"),
        event("3", 2, "create_update", {"config": {"serverless": False}}, update_id="b"),
        state("4", 3, "RUNNING", update_id="c"),
    )
    site.cycle()
    run = site.row("pipeline_runs", update_id="a")
    assert (run["serverless"], run["continuous"], run["development"], run["photon"]) == (True, False, True, True)
    assert (run["channel"], run["dbr_version"]) == ("CURRENT", "18.0")
    compute = {row["update_id"]: row["compute_type"] for row in site.rows("events_summary")}
    assert compute == {"a": "Serverless", "b": "Classic", "c": None}


def test_a_chain_of_retries_is_one_request(site: Site) -> None:
    """R-NEW-01: FAILED, RETRY FAILED, RETRY COMPLETED is one successful request with 3 attempts."""
    for number, (start, end, outcome) in enumerate([(0, 60, "FAILED"), (70, 130, "FAILED"), (140, 200, "COMPLETED")]):
        cause = "RETRY_ON_FAILURE" if number else "JOB_TASK"
        origin = {"update_id": f"u{number}", "request_id": "r"}
        body = {"cause": cause, "failed_attempts": number}
        site.write(
            "a.jsonl",
            event(f"c{number}", start, "create_update", body, **origin),
            state(f"e{number}", end, outcome, **origin),
        )
    site.cycle()
    request = site.row("requests")
    assert (request["request_id"], request["attempts"], request["failed_attempts"]) == ("r", 3, 2)
    assert (request["outcome"], request["is_open"]) == ("COMPLETED", False)
    assert (request["first_update_id"], request["last_update_id"]) == ("u0", "u2")
    assert (request["duration_seconds"], request["time_to_recovery_seconds"]) == (200.0, 140.0)


def test_retries_without_request_id_chain_to_the_preceding_update(site: Site) -> None:
    """event_log 6.5: the chain ends at the first end that is not FAILED, and at another cause."""

    def run(number: int, cause: str, outcome: str) -> None:
        site.write(
            "a.jsonl",
            event(f"c{number}", number * 100, "create_update", {"cause": cause}, update_id=f"u{number}"),
            state(f"e{number}", number * 100 + 50, outcome, update_id=f"u{number}"),
        )

    run(0, "JOB_TASK", "FAILED")
    run(1, "RETRY_ON_FAILURE", "COMPLETED")
    run(2, "RETRY_ON_FAILURE", "FAILED")  # its head was not seen: a request of its own
    run(3, "JOB_TASK", "FAILED")
    run(4, "RETRY_ON_FAILURE", "CANCELED")
    site.cycle()
    found = {r["request_id"]: (r["attempts"], r["outcome"], r["last_update_id"]) for r in site.rows("requests")}
    assert found == {"u0": (2, "COMPLETED", "u1"), "u2": (1, "FAILED", "u2"), "u3": (2, "CANCELED", "u4")}


def test_a_running_retry_does_not_hide_the_failure(site: Site) -> None:
    """R-RUN-05, event_log 6.5: the request is open and its previous attempt failed; both are shown."""
    site.write(
        "a.jsonl",
        state("1", 0, "FAILED", update_id="u0", request_id="r"),
        event("2", 60, "create_update", {"cause": "RETRY_ON_FAILURE"}, update_id="u1", request_id="r"),
        state("3", 61, "RUNNING", update_id="u1", request_id="r"),
    )
    site.cycle()
    request = site.row("requests")
    assert (request["outcome"], request["is_open"], request["previous_attempt_status"]) == ("RUNNING", True, "FAILED")
    assert request["attempts"] == 2


def test_a_late_end_changes_the_run_and_nothing_else_is_written(site: Site) -> None:
    """R-RUN-08: a COMPLETED event that arrives one cycle late turns the row; other runs are not rewritten."""
    site.write("a.jsonl", state("1", 0, "RUNNING"), state("x", 0, "COMPLETED", pipeline_id="q"))
    site.cycle()
    assert site.row("pipeline_runs", pipeline_id="p")["status"] == "RUNNING"
    site.write("a.jsonl", state("2", 30, "COMPLETED"))
    read, united, marts = site.cycle()
    assert (sum(read.events.values()), united.added) == (1, 1)
    assert site.row("pipeline_runs", pipeline_id="p")["status"] == "COMPLETED"
    assert {m.mart: m.written for m in marts if m.written} == {
        "pipeline_runs": 1,
        "requests": 1,
        "events_summary": 1,
        "daily_trends": 1,
        "pipeline_activity": 1,
        "pipeline_health": 1,
    }
    _, _, again = site.cycle()
    assert not any(m.written for m in again)


def test_rows_written_by_kind(site: Site) -> None:
    """R-ROW-07, R-RUN-02: an append-only run of 42 rows shows 42 affected; NULL is not reported, not 0."""
    rows = {"num_output_rows": 42}
    site.write("a.jsonl", flow("1", 0, "f", {"metrics": rows}, update_id="append"))
    site.write(
        "a.jsonl", flow("2", 0, "f", {"metrics": {"num_upserted_rows": 5, "num_deleted_rows": 2}}, update_id="cdc")
    )
    site.write("a.jsonl", flow("3", 0, "f", {"status": "COMPLETED"}, update_id="silent"))
    site.cycle()
    found = {
        r["update_id"]: (r["rows_output"], r["rows_upserted"], r["rows_deleted"], r["rows_written"])
        for r in site.rows("pipeline_runs")
    }
    assert found == {"append": (42, None, None, 42), "cdc": (None, 5, 2, 7), "silent": (None, None, None, None)}
    summary = {r["update_id"]: (r["total_rows_affected"], r["tables_processed"]) for r in site.rows("events_summary")}
    assert summary == {"append": (42, 1), "cdc": (7, 1), "silent": (None, 0)}


def test_same_update_id_in_two_pipelines_and_same_name(site: Site) -> None:
    """R-UNI-02: identity is the id; two pipelines with one name stay apart."""
    site.write("a.jsonl", state("1", 0, "RUNNING", pipeline_id="a"), state("1", 0, "FAILED", pipeline_id="b"))
    site.cycle()
    found = {row["pipeline_id"]: row["status"] for row in site.rows("pipeline_runs")}
    assert found == {"a": "RUNNING", "b": "FAILED"}


def test_durations_keep_seconds(site: Site) -> None:
    """R-DUR-01: a 45-second run is 45 s and 0.75 min, never 0."""
    site.write("a.jsonl", state("1", 0, "RUNNING"), state("2", 45, "COMPLETED"))
    site.cycle()
    assert site.row("pipeline_runs")["duration_seconds"] == 45.0
    assert site.row("events_summary")["duration_minutes"] == 0.75
