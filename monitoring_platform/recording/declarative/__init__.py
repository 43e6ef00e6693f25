"""Open-source Spark Declarative Pipelines leave no event log. A run that is started through here writes one.

`run` makes the user's `spark-pipelines` call with `launch.py` in the place of Spark's own Python entry point; `capture`
does the same for a run that a Python program starts over Spark Connect. `graph` and `messages` say what went over the
wire, `rows` asks tables what was written, `journal` is the file that it all becomes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from monitoring_platform.recording.declarative.capture import capture
from monitoring_platform.recording.declarative.journal import close_lost

__all__ = ["EVENTS", "capture", "run"]

#: Environment variable: the folder of logs, for the process that Spark starts.
EVENTS = "MONITORING_EVENTS"


def run(arguments: Sequence[str], events: Path) -> int:
    """Make the call `spark-pipelines <arguments>`, recorded below the folder `events`; its exit code.

    A run that is killed, but not this process, is ended in its log at once. Raises ModuleNotFoundError if neither
    SPARK_HOME is set nor PySpark installed, OSError if there is no Spark in SPARK_HOME.
    """
    home = os.environ.get("SPARK_HOME")
    if not home:
        import pyspark

        home = str(Path(pyspark.__file__).parent)
    environment = {"PYSPARK_PYTHON": sys.executable, **os.environ, "SPARK_HOME": home, EVENTS: str(events.absolute())}
    launch = str(Path(__file__).with_name("launch.py"))
    call = [f"{home}/bin/spark-class", "org.apache.spark.deploy.SparkPipelines", launch, *arguments]
    process = subprocess.Popen(call, env=environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both
    signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    code = process.wait()
    close_lost(events)
    return code if code >= 0 else 128 - code  # as a shell gives the signal that ended it
