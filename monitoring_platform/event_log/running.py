"""The mark of a recorded run that is under way: a file `<log>.running` beside its log.

It holds one event, the run's failure as of the last sign of life, and is renewed as long as the run lives. Once nobody
has renewed it for `SILENCE`, the event counts. The run's end removes the file.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from monitoring_platform.event_log import jsontext

SUFFIX = ".running"
#: How long a run that lives leaves its mark alone, at most.
SILENCE = timedelta(minutes=5)


def mark_of(log: Path) -> Path:
    """The file of a log's run."""
    return log.with_name(f"{log.name}{SUFFIX}")


def is_lost(mark: Path, now: datetime) -> bool:
    """Whether the run of this mark is lost; not, if it has just ended or its mark cannot be understood."""
    try:
        last_seen = datetime.fromisoformat(jsontext.loads(mark.read_bytes())["timestamp"].replace("Z", "+00:00"))
    except (OSError, KeyError, TypeError, *jsontext.INVALID):
        return False
    return now - last_seen > SILENCE
