"""A table read by columns gives what its rows give one by one, whatever is in them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitoring_platform.event_log import table_shape
from monitoring_platform.event_log.normalise import Normalised, Place, normalise
from monitoring_platform.event_log.redact import DEFAULT, Policy
from monitoring_platform.event_log.schema import ERROR, SEQUENCE
from monitoring_platform.event_log.table_shape import delivered, normalise_table
from tests.every_body import every_body

NOW = datetime(2026, 11, 1, tzinfo=timezone.utc)
PLACE = Place("delta", "/logs/a")
_T = pa.string()
ORIGIN = pa.struct(
    [(n, _T) for n in ("pipeline_id", "pipeline_name", "update_id", "flow_name", "dataset_name", "host", "new_member")]
    + [("batch_id", pa.int64()), ("user_id", pa.int64()), ("org_id", _T)]
)
SCHEMA = pa.schema(
    [
        ("id", _T),
        ("sequence", SEQUENCE),
        ("origin", ORIGIN),
        ("timestamp", pa.timestamp("ns", tz="UTC")),
        ("message", _T),
        ("level", _T),
        ("maturity_level", _T),
        ("error", ERROR),
        ("details", pa.large_string()),
        ("event_type", _T),
        ("update_id", _T),  # beside the one of origin
        ("later_column", pa.int32()),
    ]
)
_BODIES = [
    (r["event_type"], orjson.dumps(r["details"]).decode()) for part in every_body() for r in part if r.get("details")
]
_ODD = [
    ("flow_progress", '{"flow_progress":{"status":"COMPLETED","metrics":{"num_output_rows":"7","x":1}}}'),
    ("flow_progress", '{"flow_progress":{"status":"CANCELLED","flow_name":"within"}}'),
    ("Update_Progress", '{"update_progress":{"state":"RUNNING"}}'),
    ("update_progress", "{}"),
    ("update_progress", None),
    ("update_progress", '{"update_progress":'),
    ("update_progress", "[1]"),
    ("update_progress", '{"flow_progress":{"status":"RUNNING"},"update_progress":{"state":"FAILED"}}'),
    ("update_progress", '{"create_update":{"cause":"API_CALL"}}'),
    ("create_update", '{"create_update":{"config":{"configuration":{"api_key":"hunter2hunter2"}}}}'),
    ("flow_definition", '{"flow_definition":{"spark_conf":[{"key":"password","value":"hunter2"}]}}'),
    ("never_heard_of", '{"never_heard_of":{"a":1}}'),
    (" flow_progress", '{"flow_progress":{"status":"IDLE"}}'),
    (None, '{"hook_progress":{"name":"h"}}'),
]
_TEXTS = st.sampled_from(
    [None, "", " a", "a\x1f", "a", "b c", "\u00a0é", "<b>=1+1</b>", "token: dapi0123456789abcdef01"]
)


def _struct(**members: Any) -> Any:
    return st.none() | st.fixed_dictionaries(members)


_ROW = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["1", "2", "3", " 4", "", None, "é"]),
        "sequence": _struct(
            control_plane_seq_no=st.sampled_from([None, 2**60]),
            data_plane_id=_struct(instance=_TEXTS, seq_no=st.sampled_from([None, 7])),
        ),
        "origin": _struct(
            pipeline_id=st.sampled_from(["p", "p", "p", " p", None]),
            pipeline_name=_TEXTS,
            update_id=st.sampled_from(["u", "u", " u", "", None]),
            flow_name=_TEXTS,
            dataset_name=_TEXTS,
            host=st.sampled_from([None, "adb-1.2.azuredatabricks.net"]),
            new_member=st.sampled_from([None, None, "x"]),
            batch_id=st.sampled_from([None, 3]),
            user_id=st.sampled_from([None, 9]),
            org_id=st.sampled_from([None, None, "1234567890123456"]),
        ),
        # 2026-10-31, a time with nanoseconds, far future, before the epoch
        "timestamp": st.sampled_from([None, 1793404800 * 10**9, 1793404800 * 10**9 + 1999, 4102444800 * 10**9, -1]),
        "message": _TEXTS,
        "level": st.sampled_from(["INFO", "info", "METRICS", "ERROR", " WARN", "", None]),
        "maturity_level": st.sampled_from(["STABLE", "evolving", None]),
        "error": _struct(
            fatal=st.sampled_from([None, True]),
            exceptions=st.sampled_from([None, None, [], [{"message": "[A.B] no", "class_name": "X", "stack": None}]]),
        ),
        "update_id": st.sampled_from([None, None, "u", "v"]),
        "later_column": st.sampled_from([None, None, 5]),
    }
)


def _table(rows: list[tuple[dict[str, Any], tuple[str | None, str | None]]]) -> pa.Table:
    whole = [{**members, "event_type": kind, "details": text} for members, (kind, text) in rows]
    return pa.Table.from_pylist(whole, SCHEMA)


def _counted(found: Normalised) -> tuple[Counter[str], Counter[str]]:
    events, refused = (Counter(repr(row) for row in table.to_pylist()) for table in found)
    return events, refused


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(st.tuples(_ROW, st.sampled_from(_BODIES + _ODD)), max_size=8),
    policy=st.sampled_from([DEFAULT, Policy(mask_references=True, pseudonymise_persons=True)]),
)
def test_by_columns_as_by_rows(rows: Any, policy: Policy) -> None:
    """Blanks, secrets, errors, unknown members, unreadable details: both ways say the same (R-UNI-04, R-ING-19)."""
    table = _table(rows)
    by_rows = normalise(delivered(table), PLACE, now=NOW, policy=policy)
    assert _counted(normalise_table(table, PLACE, now=NOW, policy=policy)) == _counted(by_rows)


_USUAL = {
    "id": "1",
    "sequence": {"control_plane_seq_no": 1, "data_plane_id": {"instance": "i", "seq_no": 2}},
    "origin": {"pipeline_id": "p", "pipeline_name": "P", "update_id": "u", "flow_name": "f", "batch_id": 3},
    "timestamp": 1793404800 * 10**9,
    "message": "Flow 'f' is RUNNING.",
    "level": "INFO",
    "maturity_level": "STABLE",
    "error": {"fatal": None, "exceptions": None},
}
_PROGRESS = ("flow_progress", '{"flow_progress":{"status":"RUNNING","metrics":{"num_output_rows":7}}}')


def test_usual_rows_never_become_python_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the second row, an error, takes the long way."""
    taken: list[int] = []
    monkeypatch.setattr(table_shape, "delivered", lambda table: taken.append(table.num_rows) or delivered(table))
    table = _table([(_USUAL, _PROGRESS), ({**_USUAL, "level": "ERROR"}, _PROGRESS)])
    found = normalise_table(table, PLACE, now=NOW)
    assert taken == [1]
    assert [(row["level"], row["num_output_rows"]) for row in found.events.to_pylist()] == [("INFO", 7), ("ERROR", 7)]


def test_remembered_definitions_keep_no_secret() -> None:
    """The second time a text is met it is as clean as the first."""
    body = ("flow_definition", '{"flow_definition":{"spark_conf":[{"key":"password","value":"hunter2"}]}}')
    for _ in range(2):
        found = normalise_table(_table([(_USUAL, body)]), PLACE, now=NOW).events.to_pylist()
        assert "hunter2" not in found[0]["details"] and "REDACTED" in found[0]["details"]


def test_a_refused_row_is_the_same_whatever_is_beside_it() -> None:
    """R-ING-19 quarantined twice, alone and in a batch with others, it is one entry: nulls are in neither."""
    nobody = {**dict.fromkeys(_USUAL), "id": "1", "level": "INFO"}
    alone = normalise_table(_table([(nobody, _PROGRESS)]), PLACE, now=NOW).quarantine
    beside = normalise_table(_table([(nobody, _PROGRESS), (_USUAL, _PROGRESS)]), PLACE, now=NOW).quarantine
    assert alone["quarantine_id"].to_pylist() == beside["quarantine_id"].to_pylist()
    assert "null" not in alone["raw"][0].as_py()
