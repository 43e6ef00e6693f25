"""What was delivered is remembered by hour and month: a second look delivers what is new, and nothing twice."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from monitoring_platform.sources.workspace.tally import HOUR, MONTH, Tally

Row = tuple[int | None, str | None]


def at(hour: int, *ids: str) -> list[Row]:
    """Rows of one hour, a microsecond apart."""
    return [(hour * HOUR + n, id) for n, id in enumerate(ids)]


def test_an_hour_that_is_the_same_is_not_delivered_again() -> None:
    """R-ING-04: the overlap finds late rows; hours without any cost nothing after the reading."""
    tally, rows = Tally(), at(1, "a", "b") + at(2, "c")
    assert tally.again(rows, is_end=True) == [True, True, True]
    assert tally.again(rows, is_end=True) == [False, False, False]
    late = at(1, "a", "b", "late") + at(2, "c") + at(3, "new")
    assert tally.again(late, is_end=True) == [True, True, True, False, True]
    assert tally.months == {0: 5}


def test_new_rows_are_counted_where_they_belong() -> None:
    tally = Tally()
    tally.add(at(1, "a") + at(MONTH // HOUR, "b"))
    tally.add(at(1, "c"))
    assert tally.again(at(1, "a", "c"), is_end=True) == [False, False]
    assert tally.months == {0: 2, 1: 1}


def test_an_hour_in_two_chunks_is_delivered_whole_and_counted_once() -> None:
    tally, rows = Tally(), at(1, "a", "b", "c", "d")
    tally.again(rows, is_end=True)
    stored = Tally(json.loads(json.dumps(tally.stored())))
    assert stored.again(rows[:2], is_end=False) == [True, True]
    stored = Tally(json.loads(json.dumps(stored.stored())))
    assert stored.again(rows[2:] + at(2, "e"), is_end=True) == [True, True, True]
    assert stored.again(rows + at(2, "e"), is_end=True) == [False] * 5
    assert stored.months == {0: 5}


def test_rows_without_id_or_time_are_always_delivered() -> None:
    tally = Tally()
    rows: list[Row] = [(None, "x"), (HOUR, None), (HOUR, "a")]
    assert tally.again(rows, is_end=True) == tally.again(rows, is_end=True) == [True, True, True]
    assert tally.months == {0: 1}


def test_a_month_that_is_forgotten_is_delivered_and_counted_anew() -> None:
    """Hours that were let go are only in the number of their month."""
    tally = Tally()
    tally.again(at(1, "a", "b") + at(9, "c"), is_end=True)
    tally.prune(9 * HOUR)
    assert list(tally.hours) == [9] and tally.months == {0: 3}
    tally.forget(0)
    assert tally.again(at(1, "a", "b", "late") + at(9, "c"), is_end=True) == [True] * 4
    assert tally.months == {0: 4}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=60), st.integers(1, 7), st.data())
def test_nothing_is_lost_whatever_the_chunks(given: list[tuple[int, int]], size: int, data: st.DataObject) -> None:
    """However a log grows and is cut into chunks: each row is delivered, and the months count each id once."""
    rows: list[Row] = [(hour * HOUR + n, f"{hour}-{n}") for hour, n in sorted(set(given))]
    tally, delivered = Tally(), Counter[str | None]()
    for _ in range(3):
        there = sorted(data.draw(st.sets(st.sampled_from(rows)))) if rows and len(delivered) < len(rows) else rows
        there = sorted({*there, *(row for row in rows if row[1] in delivered)})
        for start in range(0, len(there), size) or [0]:
            chunk = there[start : start + size]
            kept = tally.again(chunk, is_end=start + size >= len(there))
            delivered.update(id for (_, id), is_kept in zip(chunk, kept) if is_kept)
        assert set(delivered) == {id for _, id in there}
        assert sum(tally.months.values()) == len(there)
        assert not any(tally.again(there, is_end=True))
