"""event_log.md 1, 8 and 9: any delivered row becomes a canonical one or a quarantined one, and says what was odd."""

from __future__ import annotations

import json
import random
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitoring_platform.event_log import jsontext, schema
from monitoring_platform.event_log.normalise import Delivered, Normalised, Place, Unreadable, normalise
from monitoring_platform.event_log.values import Micros
from tests.conftest import event, flow, state

NOW = datetime(2026, 1, 2, tzinfo=timezone.utc)
MIDNIGHT = datetime(2026, 1, 1, tzinfo=timezone.utc)
PLACE = Place("files", "logs/a.jsonl")
TEN = "id sequence origin timestamp message level maturity_level error details event_type"


def run(*rows: dict[str, Any] | Unreadable, place: Place = PLACE, flags: tuple[str, ...] = ()) -> Normalised:
    delivered = [
        row if isinstance(row, Unreadable) else Delivered(row, f"line {number}", flags)
        for number, row in enumerate(rows, 1)
    ]
    out = normalise(delivered, place, now=NOW)
    assert out.events.schema == schema.EVENT
    assert out.quarantine.schema == schema.QUARANTINE
    return out


def one(row: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The one canonical row; nothing is quarantined."""
    out = run(row, **options)
    assert out.quarantine.num_rows == 0
    (kept,) = out.events.to_pylist()
    return dict(kept)


def refused(row: dict[str, Any] | Unreadable, **options: Any) -> dict[str, Any]:
    """The one quarantined row; nothing is kept."""
    out = run(row, **options)
    assert out.events.num_rows == 0
    (kept,) = out.quarantine.to_pylist()
    return dict(kept)


def extra(row: dict[str, Any]) -> Any:
    return row["extra"] and json.loads(row["extra"])


# The canonical row

FULL: dict[str, Any] = {
    "id": "e-1",
    "sequence": {
        "data_plane_id": {"instance": "execution", "seq_no": 9007199254740993},
        "control_plane_seq_no": 1700000000000001,
    },
    "origin": {
        "cloud": "AWS",
        "org_id": 1234567890123457,
        "pipeline_id": "p",
        "pipeline_type": "WORKSPACE",
        "pipeline_name": "orders",
        "update_id": "u",
        "request_id": "r",
        "flow_id": "f-1",
        "flow_name": "silver",
        "batch_id": 3,
        "dataset_name": "main.sales.silver",
        "maintenance_id": None,
    },
    "timestamp": "2026-01-01T01:00:00.123456+01:00",
    "message": "Flow 'silver' is RUNNING.",
    "level": "METRICS",
    "maturity_level": "STABLE",
    "error": {
        "fatal": True,
        "exceptions": [
            {
                "class_name": "org.x.E",
                "message": "[DIVIDE_BY_ZERO.X] no",
                "stack": [{"declaring_class": "A", "method_name": "b", "file_name": "A.scala", "line_number": 7}],
            }
        ],
    },
    "details": {
        "flow_progress": {
            "status": "RUNNING",
            "metrics": {"num_output_rows": "10", "num_deleted_rows": None, "backlog_bytes": -1, "executor_time_ms": 5},
            "data_quality": {
                "dropped_records": 2,
                "expectations": [{"name": "valid id", "dataset": "silver", "passed_records": 8, "failed_records": "2"}],
            },
            "streaming_metrics": {
                "event_time": {"min": "2026-01-01T00:00:00Z", "max": "2026-01-01T00:00:01Z"},
                "discovery_latency_ms": 4,
            },
        }
    },
    "event_type": "flow_progress",
}


def test_all_ten_columns_survive() -> None:
    """R-UNI-04, R-UNI-08, R-UNI-09, R-UNI-10: the ten columns of the log and the typed ones beside them."""
    row = one(FULL)
    expected = {
        "event_id": "e-1",
        "sequence": FULL["sequence"],
        "event_ts": MIDNIGHT.replace(microsecond=123456),
        "event_date": MIDNIGHT.date(),
        "message": "Flow 'silver' is RUNNING.",
        "level": "METRICS",
        "maturity_level": "STABLE",
        "event_type": "flow_progress",
        "pipeline_id": "p",
        "pipeline_name": "orders",
        "pipeline_type": "WORKSPACE",
        "update_id": "u",
        "request_id": "r",
        "flow_id": "f-1",
        "flow_name": "silver",
        "batch_id": 3,
        "dataset_name": "main.sales.silver",
        "maintenance_id": None,
        "flow_status": "RUNNING",
        "num_output_rows": 10,
        "num_upserted_rows": None,
        "num_deleted_rows": None,
        "backlog_bytes": None,
        "executor_time_ms": 5,
        "dropped_records": 2,
        "expectations": [{"name": "valid id", "dataset": "silver", "passed_records": 8, "failed_records": 2}],
        "event_time_min": MIDNIGHT,
        "event_time_max": MIDNIGHT.replace(second=1),
        "discovery_latency_ms": 4,
        "batch_processing_time_ms": None,
        "error_fatal": True,
        "exception_class": "org.x.E",
        "exception_message": "[DIVIDE_BY_ZERO.X] no",
        "error_class": "DIVIDE_BY_ZERO.X",
        "sql_state": None,
        "extra": None,
        "flags": None,
        "_source_pipeline": "orders",
        "_source": "files",
        "_log": "logs/a.jsonl",
        "_ingested_at": NOW,
    }
    assert {name: row[name] for name in expected} == expected
    assert row["origin"]["org_id"] == 1234567890123457
    assert row["error"]["exceptions"][0]["stack"][0]["line_number"] == 7
    assert json.loads(row["details"]) == FULL["details"]


def test_structs_as_json_text_are_the_same_row() -> None:
    """event_log.md 1.2: origin, sequence, error and details are struct, object or JSON text, and that is nothing odd."""
    text = {**FULL, **{name: json.dumps(FULL[name]) for name in ("origin", "sequence", "error", "details")}}
    ignored = {"details": None}
    assert {**one(text), **ignored} == {**one(FULL), **ignored}


def test_system_table_names() -> None:
    """event_log.md 2: pipeline_event_id, event_time, hoisted ids; identity columns of the table are kept."""
    row = {
        **{k: v for k, v in FULL.items() if k not in ("id", "timestamp")},
        "pipeline_event_id": "e-1",
        "event_time": Micros(1_767_225_600_123_456),
        "pipeline_id": "p",
        "update_id": "u",
        "account_id": "a",
        "workspace_id": 77,
        "error": {"fatal": False, "exceptions": [{"message": "m", "error_class": "X", "sql_state": "42703"}]},
        "origin": {"cloud": "AWS"},
    }
    kept = one(row)
    assert (kept["event_id"], kept["event_ts"]) == ("e-1", MIDNIGHT.replace(microsecond=123456))
    assert (kept["pipeline_id"], kept["update_id"]) == ("p", "u")
    assert kept["origin"]["pipeline_id"] == "p"
    assert (kept["error_class"], kept["sql_state"]) == ("X", "42703")
    assert extra(kept) == {"account_id": "a", "workspace_id": 77}
    assert kept["flags"] is None


def test_columns_of_both_shapes_side_by_side() -> None:
    """event_log.md 2, R-UNI-05: a merged export has both names, one of them null; what disagrees is kept."""
    both = one(
        {**FULL, "id": None, "pipeline_event_id": "e-1", "timestamp": None, "event_time": "2026-01-01T00:00:00Z"}
    )
    assert (both["event_id"], both["event_ts"], both["extra"]) == ("e-1", MIDNIGHT, None)
    differing = one({**FULL, "pipeline_event_id": "e-9", "event_time": "2025-01-01T00:00:00Z", "pipeline_id": "p-9"})
    assert (differing["event_id"], differing["pipeline_id"]) == ("e-1", "p")
    assert extra(differing) == {
        "pipeline_event_id": "e-9",
        "event_time": "2025-01-01T00:00:00Z",
        "pipeline_id": "p-9",
    }


@pytest.mark.parametrize("value", ["x", 5, 1.5, True, {"a": [1, None]}, ["b"], ""])
def test_new_columns_are_kept(value: Any) -> None:
    """R-ING-19: a column that a newer runtime adds is absorbed, whatever its type."""
    assert extra(one({**FULL, "new_column": value})) == {"new_column": value}
    assert extra(one({**FULL, "origin": {**FULL["origin"], "new_member": value}})) == {"origin": {"new_member": value}}
    assert extra(one({**FULL, "new_column": None, "origin": {**FULL["origin"], "n": None}})) is None


def test_new_members_of_structs_are_kept() -> None:
    """R-ING-19, event_log.md ground rule 1: members that sequence and error do not have yet."""
    row = one({**FULL, "sequence": {**FULL["sequence"], "third": 1}})
    assert (row["sequence"], row["flags"]) == (FULL["sequence"], ["raw_sequence"])
    assert extra(row)["sequence"]["third"] == 1
    row = one({**FULL, "error": {**FULL["error"], "cause": "c"}})
    assert (row["error_class"], row["flags"]) == ("DIVIDE_BY_ZERO.X", ["raw_error"])
    assert extra(row)["error"]["cause"] == "c"


def test_values_of_a_wrong_type_are_kept_raw() -> None:
    """event_log.md 9, ground rule 1: null in the typed column, the value as it came beside it."""
    wrong = {"message": {"a": 1}, "level": ["INFO"], "maturity_level": {}, "event_type": {"x": 1}, "id": {"y": 2}}
    row = one({**FULL, **wrong})
    assert {name: row[name] for name in ("message", "level", "maturity_level")} == dict.fromkeys(
        ("message", "level", "maturity_level")
    )
    assert extra(row) == wrong
    assert row["event_type"] == "flow_progress"  # from the details
    assert row["flags"] == ["type_from_details", "derived_id"]
    given = {"org_id": "abc", "batch_id": 1.5, "flow_name": {"a": 1}, "user_id": 2**63, "cloud": 5, "request_id": True}
    row = one({**FULL, "origin": {"pipeline_id": "p", **given}})
    assert {name: row["origin"][name] for name in given} == {
        "org_id": None,
        "batch_id": None,
        "flow_name": None,
        "user_id": None,
        "cloud": "5",
        "request_id": "true",
    }
    assert extra(row) == {"origin": {name: given[name] for name in ("org_id", "batch_id", "flow_name", "user_id")}}


def test_numbers_as_text() -> None:
    """event_log.md 2 and quirk 16: int64 as number or string, never through a double; booleans as text."""
    row = one(
        {
            **event("1", event_type="create_update", org_id="9007199254740993", batch_id="12"),
            "sequence": {"data_plane_id": {"instance": "x", "seq_no": "9007199254740993"}, "control_plane_seq_no": "5"},
            "details": {
                "create_update": {
                    "full_refresh": "TRUE",
                    "validate_only": 0,
                    "explore_only": "maybe",
                    "failed_attempts": "2",
                    "config": {"serverless": "false", "photon": 1},
                }
            },
        }
    )
    assert (row["origin"]["org_id"], row["batch_id"]) == (9007199254740993, 12)
    assert row["sequence"] == {
        "data_plane_id": {"instance": "x", "seq_no": 9007199254740993},
        "control_plane_seq_no": 5,
    }
    assert (row["full_refresh"], row["validate_only"], row["explore_only"]) == (True, False, None)
    assert (row["failed_attempts"], row["serverless"], row["photon"], row["continuous"]) == (2, False, True, None)
    assert row["flags"] is None


def test_details_text_is_verbatim() -> None:
    """R-UNI-08: without a secret the text stays as logged, blanks, escapes and order included."""
    for text in ('{ "b" : 1.0,\n "a": "\\u00e9\\/" }', " [1, 2] ", "null", '{"key": "sig"}', '"x"', "12"):
        assert one({**FULL, "details": text})["details"] == text
    assert json.loads(one({**FULL, "details": {"b": [1, 2.5, "é"]}})["details"]) == {"b": [1, 2.5, "é"]}


def test_names_and_messages_are_data() -> None:
    """event_log.md 9: HTML, SQL, formulas, control characters and half an emoji pass unchanged or marked."""
    for text in (
        "<script>x</script>",
        "'; DROP TABLE x; --",
        "=1+1",
        "../../x",
        "a\x00b\x1f",
        "日本",
        " ",
        "x" * 10**6,
    ):
        row = one({**FULL, "message": text, "origin": {**FULL["origin"], "flow_name": text}})
        assert (row["message"], row["flow_name"]) == (text, text)
    half = "\ud83d"
    row = one(
        {
            **event("1" + half, message="m" + half, pipeline_name="n" + half),
            "error": {"exceptions": [{"message": "e" + half}]},
            "sequence": {"data_plane_id": {"instance": half, "seq_no": 1}},
            "details": {"flow_progress": {"data_quality": {"expectations": [{"name": half}]}}},
            "new": half,
        }
    )
    assert (row["message"], row["pipeline_name"], row["exception_message"]) == ("m?", "n?", "e?")
    assert refused({"id": half, "message": half, "origin": {"pipeline_id": half}})["event_id"] == "?"


# Where rows are placed


def test_pipeline_id_from_the_source() -> None:
    """event_log.md 9: a row without pipeline id takes the source's setting; the row's own wins."""
    place = Place("files", "logs/a.jsonl", "configured")
    without = {**FULL, "origin": None}
    row = one(without, place=place)
    assert (row["pipeline_id"], row["_source_pipeline"], row["origin"]["pipeline_id"]) == ("configured",) * 3
    assert one({**without, "pipeline_id": " own "}, place=place)["pipeline_id"] == "own"
    assert one(FULL, place=place)["pipeline_id"] == "p"
    assert one({**FULL, "origin": {"pipeline_id": ""}}, place=place)["pipeline_id"] == "configured"


@pytest.mark.parametrize(
    "origin", [None, {}, "", "null", {"pipeline_id": None}, {"pipeline_id": {}}, {"pipeline_id": " "}]
)
def test_no_pipeline_is_quarantined(origin: Any) -> None:
    """event_log.md 9, R-NEW-04: reason and text are kept, and what is known of the row."""
    row = refused({**FULL, "origin": origin})
    assert row["reason"] == "no pipeline_id: neither the row nor the source's settings name the pipeline"
    assert (row["pipeline_id"], row["event_id"]) == (None, "e-1")
    assert json.loads(row["raw"]) == {**FULL, "origin": origin}
    assert (row["_source"], row["_log"], row["position"], row["_ingested_at"]) == ("files", PLACE.log, "line 1", NOW)


@pytest.mark.parametrize(
    ("timestamp", "reason"),
    [
        (None, "no timestamp"),
        ("", "unreadable timestamp ''"),
        ("string", "unreadable timestamp 'string'"),
        ("2026-13-01T00:00:00Z", "unreadable timestamp '2026-13-01T00:00:00Z'"),
        (-1, "unreadable timestamp '-1'"),
        (True, "unreadable timestamp 'true'"),
        ({}, "unreadable timestamp: no text and no number"),
    ],
)
def test_no_time_is_quarantined(timestamp: Any, reason: str) -> None:
    """event_log.md 9: timestamp missing or unreadable."""
    row = refused({**FULL, "timestamp": timestamp})
    assert (row["reason"], row["pipeline_id"], row["event_id"]) == (reason, "p", "e-1")


def test_unreadable_text_is_quarantined() -> None:
    """R-NEW-04: text that is no row keeps its reason, at most 64 KiB of it, and a key that is stable."""
    first = refused(Unreadable("invalid JSON: x", "é" * 100_000, "line 7"))
    assert (first["reason"], first["position"], len(first["raw"])) == ("invalid JSON: x", "line 7", 65536)
    assert first["quarantine_id"] == refused(Unreadable("other words", "é" * 100_000, "line 7"))["quarantine_id"]
    assert first["quarantine_id"] != refused(Unreadable("invalid JSON: x", "é" * 100_000, "line 8"))["quarantine_id"]
    assert first["quarantine_id"] != refused(Unreadable("invalid JSON: x", "e", "line 7"))["quarantine_id"]


def nested(levels: int, value: Any = 1) -> Any:
    for _ in range(levels):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize(
    "field", ["details", "error", "new_column", "sequence", "message", "origin", "timestamp", "id"]
)
@pytest.mark.parametrize("levels", [100, 200, 490])
def test_deep_nesting_fails_for_that_row_only(field: str, levels: int) -> None:
    """event_log.md 9: hundreds of levels are kept or quarantined with a reason; the neighbours are unaffected."""
    for row in ({**FULL, field: nested(levels)}, {**FULL, "timestamp": None, field: nested(levels)}):
        out = run(event("1"), row, event("2"))
        assert out.events.num_rows + out.quarantine.num_rows == 3
        assert {"1", "2"} <= set(out.events["event_id"].to_pylist())
    text = json.dumps({"flow_progress": {"status": "RUNNING"}})[:-1] + ', "deep": ' + '{"a":' * 5000 + "1" + "}" * 5001
    row = one({**FULL, "details": text})
    assert (row["details"], row["flags"], row["flow_status"]) == (text, ["invalid_details"], None)


# Flags


def flags(row: dict[str, Any], **options: Any) -> Any:
    return one(row, **options)["flags"]


def test_derived_id() -> None:
    """event_log.md 7: rows without id get a stable one, equal for object and text, told apart by any content."""
    base = {**FULL, "id": None}
    first = one(base)
    assert first["flags"] == ["derived_id"]
    assert first["event_id"].startswith("derived-")
    reordered = json.loads(json.dumps(base, sort_keys=True))
    as_text = {
        **base,
        "id": " ",
        **{n: json.dumps(base[n], indent=1) for n in ("origin", "sequence", "error", "details")},
    }
    for same in (reordered, as_text, {**base, "id": {}}, {**base, "maturity_level": None}):
        assert one(same)["event_id"] == first["event_id"]
    for field, value in (
        ("timestamp", "2026-01-01T01:00:00.123457+01:00"),
        ("message", "other"),
        ("level", "INFO"),
        ("details", {}),
        ("sequence", {"control_plane_seq_no": 2}),
        ("error", None),
        ("origin", {**FULL["origin"], "dataset_name": "main.sales.gold"}),
        ("origin", {**FULL["origin"], "pipeline_id": "q"}),
    ):
        assert one({**base, field: value})["event_id"] != first["event_id"]
    for details in ({"a": 10**30}, {"a": "\ud800"}, nested(150), "[1,  2]", "not JSON"):
        assert one({**base, "details": details})["event_id"] == one({**base, "details": details})["event_id"]
    assert one({**base, "details": [1, 2]})["event_id"] == one({**base, "details": "[1,  2]"})["event_id"]


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2026-01-01 00:00:00", ["assumed_utc"]),
        ("2026/01/01 00:00:00", ["assumed_utc"]),
        ("2026-01-03T00:00:00Z", None),  # exactly one day ahead: a clock may be that wrong
        ("2026-01-03T00:00:00.000001Z", ["future_timestamp"]),
        ("2999-01-01T00:00:00", ["assumed_utc", "future_timestamp"]),
        (1_767_225_600, None),
    ],
)
def test_flags_of_time(timestamp: Any, expected: Any) -> None:
    """event_log.md 9: zone assumed, far future; the row is kept."""
    assert flags({**FULL, "timestamp": timestamp}) == expected


def test_timestamp_ms() -> None:
    """event_log.md 9: epoch milliseconds in a field of their own."""
    row = {**{k: v for k, v in FULL.items() if k != "timestamp"}, "timestamp_ms": "1767225600000"}
    assert one(row)["event_ts"] == MIDNIGHT
    assert refused({**row, "timestamp_ms": "soon"})["reason"] == "unreadable timestamp 'soon'"


@pytest.mark.parametrize("details", ["", " ", None, {}, "{}", "null"])
def test_no_details(details: Any) -> None:
    """event_log.md 9 and quirk 15: empty details say nothing and are nothing odd."""
    row = one({**FULL, "details": details})
    assert (row["flow_status"], row["num_output_rows"]) == ("RUNNING", None)  # the state is read from the message
    assert row["flags"] == ["inferred_state"]
    assert flags({**FULL, "details": details, "message": None}) is None


@pytest.mark.parametrize("text", ['{"flow_progress": {"batch": 007}}', "{'a': 1}", "{", '{"a": NaN}', "text"])
def test_invalid_details(text: str) -> None:
    """event_log.md 9, quirk 17: the row stays, the text is kept, typed fields are null, flag set."""
    row = one({**FULL, "details": text})
    assert (row["details"], row["flags"], row["event_type"]) == (text, ["invalid_details"], "flow_progress")
    assert (row["flow_status"], row["expectations"]) == (None, None)


@pytest.mark.parametrize("details", [[1], "[1]", 5, "5", '"x"', True, False, 0])
def test_details_that_are_no_object(details: Any) -> None:
    """event_log.md 9: kept as text, flagged."""
    row = one({**FULL, "details": details})
    assert row["details"] == (details if isinstance(details, str) else json.dumps(details))
    assert row["flags"] == ["details_not_object"]


def test_truncated() -> None:
    """event_log.md 2, quirk 23: a row that REST has cut says so and names the fields."""
    truncation = {"truncated_fields": [{"field_name": "error"}]}
    row = one({**FULL, "truncation": truncation})
    assert row["flags"] == ["truncated"]
    assert extra(row) == {"truncation": truncation}
    assert flags({**FULL, "truncation": {"truncated_fields": []}}) is None


def test_invalid_utf8() -> None:
    """event_log.md 9: a flag that the reader sets arrives."""
    assert flags(FULL, flags=("invalid_utf8",)) == ["invalid_utf8"]


@pytest.mark.parametrize("value", ["text", [1], 5, True, '["a"]'])
def test_unreadable_structs(value: Any) -> None:
    """event_log.md 9: origin or sequence that is no object: null, raw kept, flagged."""
    row = one({**FULL, "sequence": value})
    assert (row["sequence"], row["flags"], extra(row)) == (None, ["raw_sequence"], {"sequence": value})
    row = one({**FULL, "origin": value, "pipeline_id": "p"})
    assert (row["pipeline_id"], row["flags"], extra(row)) == ("p", ["raw_origin"], {"origin": value})


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ({"data_plane_id": {"instance": "x", "seq_no": {}}}, {"instance": "x", "seq_no": None}),
        ({"data_plane_id": "x", "control_plane_seq_no": 5}, None),
        ({"control_plane_seq_no": "9223372036854775808"}, None),
    ],
)
def test_unreadable_parts_of_sequence(sequence: Any, expected: Any) -> None:
    """event_log.md 9: `{}` for seq_no, as the REST reference has it: null, raw kept."""
    row = one({**FULL, "sequence": sequence})
    assert row["sequence"]["data_plane_id"] == expected
    assert (row["flags"], extra(row)) == (["raw_sequence"], {"sequence": sequence})


@pytest.mark.parametrize("sequence", [None, {}, "", "null", {"control_plane_seq_no": None}, {"data_plane_id": {}}])
def test_empty_sequence(sequence: Any) -> None:
    """event_log.md 1.1: either half may be null."""
    row = one({**FULL, "sequence": sequence})
    plane = (row["sequence"] or {}).get("data_plane_id")
    assert plane in (None, {"instance": None, "seq_no": None})
    assert (row["sequence"] or {}).get("control_plane_seq_no") is None
    assert (row["flags"], row["extra"]) == (None, None)


# Quirks of section 8


@pytest.mark.parametrize(
    ("event_type", "message", "column", "expected"),
    [
        ("update_progress", "Update 175b9d is RUNNING.", "update_state", "RUNNING"),
        ("update_progress", "Update 175b9d has CANCELLED.", "update_state", "CANCELED"),
        ("update_progress", "Update 175b9d is WAITING_FOR_RESOURCES", "update_state", "WAITING_FOR_RESOURCES"),
        ("update_progress", "Update 175b9d is DANCING.", "update_state", None),
        ("update_progress", "Update 175b9d is PLANNING.", "update_state", None),  # a flow's word
        ("update_progress", "Update 175b9d has failed.", "update_state", None),
        ("update_progress", "Failed to update pipeline", "update_state", None),
        ("update_progress", "Flow 'x' is RUNNING.", "update_state", None),
        ("flow_progress", "Flow 'a 'b' c' has COMPLETED.", "flow_status", "COMPLETED"),
        ("flow_progress", "Flow 'x' is PLANNING.", "flow_status", "PLANNING"),
        ("flow_progress", "Flow 'x' is CREATED.", "flow_status", None),
        ("hook_progress", "Flow 'x' is RUNNING.", "flow_status", None),
        (None, "Update 175b9d is RUNNING.", "update_state", None),
    ],
)
def test_state_from_the_message(event_type: str | None, message: str, column: str, expected: str | None) -> None:
    """Quirk 15: only without details, only the vendor's wording, only states of the enum, marked as inferred."""
    row = one({**FULL, "event_type": event_type, "message": message, "details": None})
    assert row[column] == expected
    assert row["flags"] == (["inferred_state"] if expected else None)
    details = (
        {"update_progress": {"state": "FAILED"}}
        if column == "update_state"
        else {"flow_progress": {"status": "FAILED"}}
    )
    assert one({**FULL, "event_type": event_type, "message": message, "details": details})[column] == "FAILED"


def test_no_key_from_the_message() -> None:
    """Quirk 15: six digits of an update id in a message never become the update's id."""
    row = one({**event("1", message="Update 175b9d is RUNNING."), "origin": {"pipeline_id": "p"}})
    assert row["update_id"] is None


@pytest.mark.parametrize(
    ("error", "message", "is_odd"),
    [
        ({"exceptions": "some failure"}, "some failure", True),
        ("some failure", "some failure", True),
        (["a", {"message": "b"}], "a", True),
        ({"exceptions": {"message": "single"}}, "single", True),
        ({"exceptions": [{"message": "m", "stack_trace": "at x"}]}, "m", True),
        ({"exceptions": [{"message": "m", "stack": "at x"}]}, "m", True),
        ({"exceptions": [{"message": {"a": 1}, "class_name": "E"}]}, None, True),
        ({"fatal": "maybe", "exceptions": [{"message": "m"}]}, "m", True),
        ({"fatal": "true", "exceptions": [{"message": "m", "stack": [{"line_number": "7"}]}]}, "m", False),
        ({"fatal": False, "exceptions": None}, None, False),
        ({"fatal": False, "exceptions": []}, None, False),
    ],
)
def test_shapes_of_error(error: Any, message: str | None, is_odd: bool) -> None:
    """Quirk 20: text instead of a list, `stack_trace` instead of `stack`: read, and the original kept if it says more."""
    row = one({**FULL, "error": error})
    assert row["exception_message"] == message
    assert row["error"] is not None
    assert row["flags"] == (["raw_error"] if is_odd else None)
    assert extra(row) == ({"error": error} if is_odd else None)


@pytest.mark.parametrize("error", [None, "", " ", "null", {}])
def test_no_error(error: Any) -> None:
    """event_log.md 1.1: no error, or a struct without exceptions."""
    row = one({**FULL, "error": error})
    assert (row["exception_message"], row["error_class"], row["error_fatal"], row["flags"]) == (None,) * 4


@pytest.mark.parametrize(
    ("exception", "code"),
    [
        ({"message": "[A.B_C:D1] x [E]"}, "A.B_C:D1"),
        ({"message": "x [E]"}, None),
        ({"message": "[no code] x"}, None),
        ({"message": "x", "error_class": "GIVEN"}, "GIVEN"),
        ({"message": "[A] x", "error_class": "GIVEN"}, "A"),
        ({"message": None}, None),
    ],
)
def test_error_code(exception: Any, code: str | None) -> None:
    """event_log.md 6.9, quirk 22: the bracketed token at the start of the first exception's message, else error_class."""
    assert one({**FULL, "error": {"exceptions": [exception, {"message": "[SECOND] x"}]}})["error_class"] == code


@pytest.mark.parametrize(
    ("event_type", "details", "expected", "odd"),
    [
        ("FLOW_PROGRESS", {"flow_progress": {"status": "IDLE"}}, "flow_progress", False),
        (" Flow_Progress ", {"FLOW_PROGRESS": {"status": "IDLE"}}, "flow_progress", False),
        ("flow_progress", {"flow_progress": {"status": "IDLE"}, "extra_key": {}}, "flow_progress", False),
        ("new_type", {"new_type": {}, "flow_progress": {"status": "IDLE"}}, "new_type", False),
        ("update_progress", {"flow_progress": {"status": "IDLE"}}, "flow_progress", True),
        (None, {"flow_progress": {"status": "IDLE"}}, "flow_progress", True),
        ("", {"flow_progress": {"status": "IDLE"}, "other": 1}, "flow_progress", True),
    ],
)
def test_details_win(event_type: Any, details: Any, expected: str, odd: bool) -> None:
    """Quirks 24, 30, 31: any case, several top-level keys, contradicting or missing event type."""
    row = one({**FULL, "event_type": event_type, "details": details, "message": "Update x is RUNNING."})
    assert (row["event_type"], row["flow_status"], row["update_state"]) == (expected, "IDLE", None)
    assert row["flags"] == (["type_from_details"] if odd else None)
    assert extra(row) == ({"event_type": "update_progress"} if event_type == "update_progress" else None)


def test_every_known_key_is_read() -> None:
    """Quirk 24: more than one top-level key in details."""
    details = {"update_progress": {"state": "running"}, "runtime_details": {"dbr_version": "18.0"}, "odd": 1}
    row = one({**FULL, "event_type": "update_progress", "details": details})
    assert (row["update_state"], row["dbr_version"]) == ("RUNNING", "18.0")


@pytest.mark.parametrize(
    "details",
    [
        {"flow_progress": {"status": "IDLE", "flow_name": "inner"}},
        {"FLOW_PROGRESS": {"status": "IDLE", "flow_name": "inner"}},
        {"flow_progress": {"status": "IDLE"}, "flow_name": "inner"},
    ],
)
def test_flow_name_in_details(details: Any) -> None:
    """Quirk 24: looked up in details when origin lacks it; origin wins."""
    assert one({**FULL, "origin": {"pipeline_id": "p"}, "details": details})["flow_name"] == "inner"
    assert one({**FULL, "details": details})["flow_name"] == "silver"


def test_types_and_statuses_nobody_knows_yet() -> None:
    """Quirk 29, event_log.md 11: new types, statuses and causes pass through."""
    row = one(
        {**FULL, "event_type": "quantum_progress", "details": {"quantum_progress": {"qubits": 7}}, "level": "trace"}
    )
    assert (row["event_type"], row["level"], row["flags"]) == ("quantum_progress", "TRACE", None)
    row = one({**FULL, "event_type": None, "details": {"Quantum_Progress": {}}})
    assert (row["event_type"], row["flags"]) == ("quantum_progress", ["type_from_details"])
    assert one({**FULL, "event_type": None, "details": {"a": 1, "b": 2}})["event_type"] is None
    assert one(flow("1", 0, "f", {"status": "Teleporting"}))["flow_status"] == "Teleporting"
    assert one(flow("1", 0, "f", {"status": "planning"}))["flow_status"] == "PLANNING"
    assert one(event("1", event_type="create_update", body={"cause": "MOON_PHASE"}))["cause"] == "MOON_PHASE"


def test_cancelled_is_canceled() -> None:
    """Quirk 28."""
    for spelling in ("CANCELLED", "CANCELED", "cancelled"):
        assert one(state("1", 0, spelling))["update_state"] == "CANCELED"


@pytest.mark.parametrize(
    ("event_type", "body"),
    [
        ("runtime_details", {"dbr_version": "18.0"}),
        ("runtime_details", {"runtime_version": {"dbr_version": "18.0"}}),
        ("create_update", {"runtime_version": {"dbr_version": "18.0"}}),
    ],
)
def test_two_shapes_of_the_runtime(event_type: str, body: Any) -> None:
    """Quirk 27: the version is text, on either level; older logs have it in create_update."""
    assert one(event("1", event_type=event_type, body=body))["dbr_version"] == "18.0"


def test_counters_of_a_flow() -> None:
    """event_log.md 4.1 and 9: absent, null, zero, negative and overflowing stay apart; one object is one element."""
    metrics = {"num_output_rows": 0, "num_upserted_rows": None, "num_output_bytes": 2**63, "backlog_bytes": -1}
    quality = {"dropped_records": {}, "expectations": {"name": "r", "failed_records": -3}}
    row = one(flow("1", 0, "f", {"metrics": {**metrics, "backlog_files": "4.79E8"}, "data_quality": quality}))
    assert [row[name] for name in ("num_output_rows", "num_upserted_rows", "num_output_bytes")] == [0, None, None]
    assert [row[name] for name in ("backlog_bytes", "backlog_files", "dropped_records")] == [None, 479_000_000, None]
    assert row["expectations"] == [{"name": "r", "dataset": None, "passed_records": None, "failed_records": None}]
    assert json.loads(row["details"])["flow_progress"]["metrics"]["backlog_bytes"] == -1
    bodies: list[Any] = [{"metrics": "x", "data_quality": [], "streaming_metrics": 5}, [], "x", None, 5]
    for body in bodies:
        assert one(flow("1", 0, "f", body))["flags"] is None


def test_defaults_of_a_pipeline() -> None:
    """event_log.md 6.3: catalog, and schema or target."""
    config = {"catalog": "main", "target": "t"}
    row = one(event("1", event_type="create_update", body={"config": config}))
    assert (row["default_catalog"], row["default_schema"]) == ("main", "t")
    row = one(event("1", event_type="create_update", body={"config": {**config, "schema": "s"}}))
    assert row["default_schema"] == "s"


def test_dataset_and_names() -> None:
    """event_log.md 1.2: dataset_name, else table_name; ids are trimmed, empty is null; names stay as written."""
    row = one(event("1", table_name="t", dataset_name=" ", update_id=" ", flow_id=" x ", pipeline_name=""))
    assert (row["dataset_name"], row["update_id"], row["flow_id"]) == ("t", None, "x")
    assert row["_source_pipeline"] == "p"


# Order and numbers


def test_input_order_means_nothing() -> None:
    """event_log.md 7: each row is read by itself; rows come out in the order given."""
    rows = [FULL, event("2", origin=None), state("3", 5, "RUNNING"), {**FULL, "id": None, "details": "x"}]
    rows += [flow(str(n), n, "f", {"metrics": {"num_output_rows": n}}) for n in range(10, 20)]
    alone = [one(row) for row in rows]
    assert run(*rows).events.to_pylist() == alone
    order = random.Random(1).sample(range(len(rows)), len(rows))
    assert run(*(rows[i] for i in order)).events.to_pylist() == [alone[i] for i in order]


def test_nothing_in_nothing_out() -> None:
    """R-ING-09: an empty delivery is two empty tables of the right shape."""
    out = run()
    assert (out.events.num_rows, out.quarantine.num_rows) == (0, 0)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(
        ["", " ", "null", "{}", "[]", "\ud800", "2026-01-01T00:00:00Z", "p", "RUNNING", "-1", "1e999", "{"]
    ),
    st.sampled_from([1_767_225_600, 1_767_225_600_000, 2**63, -1]),
)
NAMES = st.sampled_from(
    f"{TEN} pipeline_id update_id pipeline_event_id event_time timestamp_ms truncation new state status metrics "
    "data_quality expectations flow_progress update_progress create_update config exceptions message stack "
    "line_number data_plane_id seq_no control_plane_seq_no pipeline_name flow_name batch_id user_id host "
    "data_quality name streaming_metrics event_time min password options".split(" ")
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES | st.text(max_size=4), inner, max_size=4)
        | inner.map(lambda value: json.dumps(value, default=str))
    ),
    max_leaves=6,
)
MOSTLY = {name: st.just(value) | JUNK for name, value in FULL.items()}
ROWS = st.dictionaries(NAMES, JUNK, max_size=8) | st.fixed_dictionaries({}, optional={**MOSTLY, "new": JUNK})
PLACES = st.sampled_from([PLACE, Place("files", "x", "configured")])


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(st.lists(ROWS | st.builds(Unreadable, st.just("why"), st.text(), st.just("line 1")), max_size=4), PLACES)
def test_rows_out_are_rows_in(rows: list[Any], place: Place) -> None:
    """event_log.md ground rule 1: nothing is dropped, nothing raises, whatever stands in any field."""
    out = run(*rows, place=place)
    assert out.events.num_rows + out.quarantine.num_rows == len(rows)
    for row in out.events.to_pylist():
        assert None not in (row["pipeline_id"], row["event_id"], row["event_ts"])
        if row["extra"] is not None:
            assert isinstance(jsontext.loads(row["extra"]), dict)
    for row in out.quarantine.to_pylist():
        assert None not in (row["quarantine_id"], row["reason"], row["raw"])


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(ROWS, ROWS)
def test_rows_are_read_one_by_one(row: dict[str, Any], neighbour: dict[str, Any]) -> None:
    """event_log.md 7, 9: a neighbour changes nothing about a row, and reading it again gives the same."""
    both, alone = run(row, neighbour), run(row)
    assert both.events.slice(0, alone.events.num_rows).equals(alone.events)
    kept = alone.quarantine.drop_columns(["position"])
    assert both.quarantine.drop_columns(["position"]).slice(0, kept.num_rows).equals(kept)
    assert pa.types.is_timestamp(alone.events.schema.field("event_ts").type)
