"""flow_metrics, expectation_results and pipeline_errors, worked out by hand (counting rules 6.1 to 6.3, 6.7, 6.9)."""

from __future__ import annotations

from typing import Any

from tests.conftest import Site, event, flow


def _rows(number: int) -> dict[str, Any]:
    return {"metrics": {"num_output_rows": number}}


def test_running_counts_of_a_batch_are_not_summed(site: Site) -> None:
    """R-NEW-10, E-27: batch 1 says 10, 20, 30 and batch 2 says 5: 35 rows, not 65."""
    for number, (batch, count) in enumerate([(1, 10), (1, 30), (1, 20), (2, 5)]):
        site.write("a.jsonl", flow(str(number), number, "f", _rows(count), batch_id=batch, flow_id="id"))
    site.cycle()
    row = site.row("flow_metrics")
    assert (row["rows_output"], row["batch_count"], row["metric_basis"]) == (35, 2, "batch_max")


def test_events_without_batch_are_summed(site: Site) -> None:
    """event_log 6.1: each event counts as its own batch, 30 + 12 = 42."""
    site.write("a.jsonl", flow("1", 0, "f", _rows(30)), flow("2", 1, "f", _rows(12)))
    site.cycle()
    assert (site.row("flow_metrics")["rows_output"], site.row("flow_metrics")["metric_basis"]) == (42, "event_sum")


def test_gateway_metrics_are_deltas(site: Site) -> None:
    """event_log 6.1: level METRICS of an INGESTION_GATEWAY is summed; of another pipeline type it follows the batch."""
    for kind in ("INGESTION_GATEWAY", "WORKSPACE"):
        for number in (7, 7, 3):
            id_ = f"{kind}{len(site.logs.joinpath('a.jsonl').read_bytes()) if (site.logs / 'a.jsonl').exists() else 0}"
            site.write(
                "a.jsonl",
                flow(
                    id_,
                    0,
                    "f",
                    {"metrics": {"num_upserted_rows": number}},
                    batch_id=1,
                    level="METRICS",
                    pipeline_type=kind,
                    update_id=kind,
                ),
            )
    site.cycle()
    found = {r["update_id"]: (r["rows_upserted"], r["metric_basis"]) for r in site.rows("flow_metrics")}
    assert found == {"INGESTION_GATEWAY": (17, "delta_sum"), "WORKSPACE": (7, "batch_max")}


def test_a_restarted_batch_number_after_a_reset_counts_again(site: Site) -> None:
    """event_log 6.1: the batch key holds the flow_id, which changes at a full refresh; a row without it belongs to
    the only flow_id that is known, here to none of two."""
    site.write(
        "a.jsonl",
        flow("1", 0, "f", _rows(10), batch_id=0, flow_id="before"),
        flow("2", 1, "f", _rows(4), batch_id=0, flow_id="after"),
        flow("3", 2, "g", _rows(8), batch_id=0, flow_id="only"),
        flow("4", 3, "g", _rows(9), batch_id=0),
    )
    site.cycle()
    assert {r["flow_name"]: r["rows_output"] for r in site.rows("flow_metrics")} == {"f": 14, "g": 9}


def test_placeholder_and_nameless_flows_are_no_flows(site: Site) -> None:
    """R-FLOW-04: they stay events."""
    site.write(
        "a.jsonl",
        flow("1", 0, "pipelines.flowTimeMetrics.missingFlowName", _rows(1)),
        flow("2", 1, None, _rows(2)),  # type: ignore[arg-type]
        flow("3", 2, "real", _rows(3)),
    )
    site.cycle()
    assert [r["flow_name"] for r in site.rows("flow_metrics")] == ["real"]
    assert site.row("pipeline_runs")["flow_count"] == 1
    assert len(site.rows("all_pipelines_event_log")) == 3


def test_status_times_and_backlog(site: Site) -> None:
    """R-FLOW-01, R-ROW-06, E-28: the last status that a row carries; backlog is a snapshot: peak and last, never summed."""
    steps = [
        (0, {"status": "QUEUED"}),
        (4, {"status": "STARTING"}),
        (5, {"status": "RUNNING", "metrics": {"backlog_bytes": 900}}),
        (9, {"status": "COMPLETED", "metrics": {"backlog_bytes": 100}}),
        (10, {"metrics": {"num_output_rows": 3}}),
    ]
    site.write("a.jsonl", *(flow(str(i), second, "f", body) for i, (second, body) in enumerate(steps)))
    site.cycle()
    row = site.row("flow_metrics")
    assert (row["status"], row["end_ts"].second, row["duration_seconds"], row["active_seconds"]) == (
        "COMPLETED",
        9,
        10.0,
        6.0,
    )
    assert (row["peak_backlog_bytes"], row["last_backlog_bytes"], row["peak_backlog_files"]) == (900, 100, None)


def test_unknown_statuses_pass(site: Site) -> None:
    """R-FLOW-02."""
    names = [
        "QUEUED",
        "STARTING",
        "RUNNING",
        "COMPLETED",
        "FAILED",
        "SKIPPED",
        "STOPPED",
        "IDLE",
        "EXCLUDED",
        "PLANNING",
        "Dreaming",
    ]
    site.write("a.jsonl", *(flow(name, 0, name, {"status": name}) for name in names))
    site.cycle()
    assert {r["flow_name"]: r["status"] for r in site.rows("flow_metrics")} == {name: name for name in names}


def test_dropped_records_zero_null_and_absent_stay_apart(site: Site) -> None:
    """R-QUAL-07, quirk 9."""
    for name, quality in (
        ("zero", {"dropped_records": 0}),
        ("null", {"dropped_records": None, "expectations": []}),
        ("none", None),
    ):
        site.write("a.jsonl", flow(name, 0, name, {"status": "COMPLETED", "data_quality": quality}))
    site.write("a.jsonl", flow("x", 0, "some", {"data_quality": {"dropped_records": 4}}, update_id="v"))
    site.cycle()
    assert {r["flow_name"]: r["rows_dropped"] for r in site.rows("flow_metrics")} == {
        "zero": 0,
        "null": None,
        "none": None,
        "some": 4,
    }
    assert {r["update_id"]: r["rows_dropped"] for r in site.rows("pipeline_runs")} == {"u": 0, "v": 4}


def test_updates_are_never_mixed(site: Site) -> None:
    """R-ROW-02: 20 and 42 rows in two updates are two records."""
    site.write("a.jsonl", flow("1", 0, "f", _rows(20), update_id="a"), flow("2", 9, "f", _rows(42), update_id="b"))
    site.cycle()
    assert {r["update_id"]: r["rows_output"] for r in site.rows("flow_metrics")} == {"a": 20, "b": 42}


def test_a_total_that_overflows_is_unknown_never_negative(site: Site) -> None:
    """event_log 9."""
    largest = 9223372036854775807
    site.write("a.jsonl", flow("1", 0, "f", _rows(largest)), flow("2", 1, "f", _rows(1)), flow("3", 2, "g", _rows(5)))
    site.cycle()
    assert {r["flow_name"]: r["rows_output"] for r in site.rows("flow_metrics")} == {"f": None, "g": 5}
    assert site.row("pipeline_runs")["rows_output"] is None


def _rule(name: str, passed: Any, failed: Any, dataset: str | None = "d") -> dict[str, Any]:
    return {"name": name, "dataset": dataset, "passed_records": passed, "failed_records": failed}


def test_rates(site: Site) -> None:
    """R-QUAL-02: 98,542/158 is 99.84, 98,700/0 is 100, 95,211/289 is 99.70, 0/0 is NULL."""
    given = {"a": (98542, 158), "b": (98700, 0), "c": (95211, 289), "d": (0, 0), "e": (9, None)}
    rules = [_rule(name, *counts) for name, counts in given.items()]
    site.write("a.jsonl", flow("1", 0, "f", {"data_quality": {"expectations": rules}}))
    site.cycle()
    found = {
        r["expectation"]: r["pass_rate_pct"] and round(r["pass_rate_pct"], 2) for r in site.rows("expectation_results")
    }
    assert found == {"a": 99.84, "b": 100.0, "c": 99.70, "d": None, "e": None}


def test_rules_by_batch_flow_and_dataset(site: Site) -> None:
    """R-QUAL-01, event_log 6.3: max in a batch, summed over batches and flows; equal names on two datasets stay apart."""
    counts = [("f", 1, 10, 0), ("f", 1, 20, 2), ("f", 2, 5, 1), ("g", 1, 100, 0)]
    for number, (name, batch, passed, failed) in enumerate(counts):
        rules = [_rule("ok", passed, failed)]
        site.write(
            "a.jsonl", flow(str(number), number, name, {"data_quality": {"expectations": rules}}, batch_id=batch)
        )
    site.write(
        "a.jsonl", flow("x", 9, "f", {"data_quality": {"expectations": [_rule("ok", 1, 1, "other")]}}, batch_id=1)
    )
    site.cycle()
    found = {
        r["dataset"]: (r["passed_records"], r["failed_records"], r["flow_names"])
        for r in site.rows("expectation_results")
    }
    assert found == {"d": (125, 3, "f, g"), "other": (1, 1, "f")}


def test_one_dataset_in_several_spellings_is_one(site: Site) -> None:
    """event_log 6.3: qualified by the pipeline's defaults; a quoted part can hold a dot; the fullest text is kept."""
    site.write("a.jsonl", event("0", 0, "create_update", {"config": {"catalog": "main", "target": "sales"}}))
    for number, dataset in enumerate(("orders", "sales.orders", "`main`.`sales`.`orders`", "`or.ders`", None)):
        rules = [_rule("ok", 1, 0, dataset)]
        site.write(
            "a.jsonl", flow(f"f{number}", number, "f", {"data_quality": {"expectations": rules}}, dataset_name="own")
        )
    site.cycle()
    found = {r["dataset"]: (r["qualified_dataset"], r["passed_records"]) for r in site.rows("expectation_results")}
    assert found == {
        "`main`.`sales`.`orders`": ("main.sales.orders", 3),
        "`or.ders`": ("main.sales.or.ders", 1),
        "own": ("main.sales.own", 1),
    }


def test_flow_to_table(site: Site) -> None:
    """event_log 6.7: flow_definition, then origin, then the flow's own name."""
    site.write(
        "a.jsonl",
        event("1", 0, "flow_definition", {"output_dataset": "main.x.orders"}, flow_name="defined"),
        flow("2", 1, "defined", {"status": "COMPLETED"}, dataset_name="other"),
        flow("3", 1, "told", {"status": "COMPLETED"}, dataset_name="main.x.told"),
        flow("4", 1, "bare", {"status": "COMPLETED"}),
    )
    site.cycle()
    found = {r["flow_name"]: r["dataset"] for r in site.rows("flow_metrics")}
    assert found == {"defined": "main.x.orders", "told": "main.x.told", "bare": "bare"}


def test_errors_and_warnings(site: Site) -> None:
    """R-ERR-01, R-PEER-07: ERROR rows, and warnings that carry an error; the code from the bracket or the field."""
    exception = {"class_name": "E", "message": "[SOME_CODE.SUB] boom"}
    system = {"class_name": "E", "message": "boom", "error_class": "GIVEN", "sql_state": "42000"}
    site.write(
        "a.jsonl",
        event("1", 0, level="ERROR", error={"fatal": True, "exceptions": [exception]}, message="Update failed"),
        event("2", 1, level="ERROR", error={"exceptions": [system]}, flow_name="f", update_id=None),
        event("3", 2, level="ERROR", message="no error struct"),
        event("4", 3, level="WARN", error={"exceptions": [exception]}),
        event("5", 4, level="WARN", message="just a warning"),
        event("6", 5, level="INFO", error={"fatal": False, "exceptions": None}),
    )
    site.cycle()
    found = {r["event_id"]: (r["error_class"], r["message"], r["is_warning"]) for r in site.rows("pipeline_errors")}
    assert found == {
        "1": ("SOME_CODE.SUB", "[SOME_CODE.SUB] boom", False),
        "2": ("GIVEN", "boom", False),
        "3": (None, "no error struct", False),
        "4": ("SOME_CODE.SUB", "[SOME_CODE.SUB] boom", True),
    }
    assert site.row("pipeline_errors", event_id="2")["sql_state"] == "42000"
