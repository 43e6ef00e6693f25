"""What Spark runs in the place of `pyspark/pipelines/cli.py`: the same, recorded."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any


def _recorded() -> None:
    """Let the entry point's `run` be recorded."""
    from pyspark.pipelines import cli

    from monitoring_platform.recording.declarative import EVENTS, capture

    entry: Any = cli
    run = entry.run

    def recorded(spec_path: Path, **options: Any) -> None:
        spec = entry.load_pipeline_spec(spec_path)
        with capture(os.environ[EVENTS], spec.name, spec.storage):
            run(spec_path=spec_path, **options)

    entry.run = recorded


def main() -> None:
    """Run the pipeline as `spark-pipelines` does."""
    # A script's folder comes first on the path: our modules must not be found in the place of the pipeline's own.
    here = os.path.realpath(os.path.dirname(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != here]
    try:
        _recorded()
    except Exception as error:
        print(f"monitoring-platform: this run is not recorded: {type(error).__name__}: {error}", file=sys.stderr)
    from pyspark.pipelines import cli

    sys.argv[0] = cli.__file__  # usage names it
    cli.main()


if __name__ == "__main__":
    main()
