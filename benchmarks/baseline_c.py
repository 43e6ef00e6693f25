"""Baseline (c), the floor of the machine: pyarrow reads the new files of all logs, delta-rs appends them."""

from __future__ import annotations

import pyarrow.dataset as ds
from deltalake import write_deltalake

from benchmarks.common import arguments, new_files, save_marks


def main() -> None:
    """One cycle: read what came since the last one, append it to `<out>/all_events`."""
    logs, out = arguments(__doc__)
    files, versions = new_files(logs, out / "versions.json")
    if files:
        out.mkdir(parents=True, exist_ok=True)
        write_deltalake(str(out / "all_events"), ds.dataset(files).to_table(), mode="append")
    save_marks(out / "versions.json", versions)


if __name__ == "__main__":
    main()
