"""What was delivered of a log that is read by time, so that a second look delivers only what is new.

The hours of the overlap are remembered by the number of their events and a sum of the ids: an hour that is the same
again is not delivered again. Older hours leave a number for their month, to compare with what the log counts now.
A month is 30 days since the epoch, wherever the log is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import groupby
from typing import Any

HOUR = 3_600_000_000
MONTH = 30 * 24 * HOUR
Stamps = Sequence[tuple[int | None, str | None]]  # time in microseconds and id of each row, as far as it has them


class Tally:
    """Events delivered, by hour and by month. `open`: the hour in which the last chunk ended, not compared yet."""

    def __init__(self, stored: dict[str, Any] | None = None) -> None:
        stored = stored or {}
        self.hours: dict[int, list[int]] = {int(hour): seen for hour, seen in (stored.get("hours") or {}).items()}
        self.months: dict[int, int] = {int(month): n for month, n in (stored.get("months") or {}).items()}
        self.open: list[int] | None = stored.get("open")

    def stored(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "hours": {str(hour): seen for hour, seen in self.hours.items()},
            "months": {str(month): n for month, n in self.months.items()},
            "open": self.open,
        }

    def add(self, rows: Stamps) -> None:
        """Count rows that were never delivered before."""
        for micros, id_ in rows:
            if micros is not None and id_ is not None:
                hour = micros // HOUR
                number, sum_ = self.hours.get(hour, (0, 0))
                self._set(hour, number + 1, sum_ ^ _hash(id_))

    def again(self, rows: Stamps, is_end: bool) -> list[bool]:
        """Which rows of a second look, in order of time, to deliver: not those of hours that are as they were.

        An hour that began in the chunk before, or that goes on in the next one, cannot be compared: it is delivered.
        """
        kept: list[bool] = []
        groups = [(hour, [id_ for _, id_ in group]) for hour, group in groupby(rows, lambda row: _hour(row[0]))]
        for place, (hour, given) in enumerate(groups):
            if hour is None:
                kept += [True] * len(given)
                continue
            number = sum_ = 0
            is_whole = True
            if self.open is not None and self.open[0] == hour:
                _, number, sum_ = self.open
                is_whole = False
            else:
                self._close()
            ids = {id_ for id_ in given if id_ is not None}
            number += len(ids)
            for id_ in ids:
                sum_ ^= _hash(id_)
            if place == len(groups) - 1 and not is_end:
                self.open = [hour, number, sum_]
                return kept + [True] * len(given)
            is_known = is_whole and self.hours.get(hour) == [number, sum_] and len(ids) == len(given)
            kept += [not is_known] * len(given)
            self._set(hour, number, sum_)
            self.open = None
        if is_end:
            self._close()
        return kept

    def forget(self, month: int) -> None:
        """The month is read anew, all of it delivered and counted again."""
        self.months[month] = 0
        self.hours = {hour: seen for hour, seen in self.hours.items() if hour * HOUR // MONTH != month}

    def prune(self, before: int) -> None:
        """Hours that lie before an instant are not looked at again."""
        self.hours = {hour: seen for hour, seen in self.hours.items() if (hour + 1) * HOUR > before}

    def _close(self) -> None:
        if self.open is not None:
            self._set(*self.open)
            self.open = None

    def _set(self, hour: int, number: int, sum_: int) -> None:
        month = hour * HOUR // MONTH
        self.months[month] = self.months.get(month, 0) + number - self.hours.get(hour, [0])[0]
        self.hours[hour] = [number, sum_]


def _hour(micros: int | None) -> int | None:
    return None if micros is None else micros // HOUR


def _hash(id_: str) -> int:
    """63 bits, because JSON integers go no further."""
    return int.from_bytes(hashlib.blake2b(id_.encode(), digest_size=8).digest(), "big") >> 1
