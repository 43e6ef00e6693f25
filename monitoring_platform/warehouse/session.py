"""The engine: the only module that knows which one runs.

`embedded` is Sail, a Spark Connect server in this process (loopback only); `spark` is Apache Spark with delta-spark, or
inside Databricks the session that is there; `connect` any Spark Connect endpoint. One session for each process, started
when first asked for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from monitoring_platform.config import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINIMUM_JAVA = 17
_INSTALL_JAVA = (
    "Debian/Ubuntu: sudo apt-get install openjdk-17-jre-headless\n"
    "macOS:         brew install openjdk@17\n"
    "conda:         conda install -c conda-forge openjdk=17"
)
_SETTINGS = {"spark.sql.session.timeZone": "UTC"}
#: On little data these decide more than anything else: few partitions, small snapshots, no UI.
_SPARK_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.merge.repartitionBeforeWrite.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # The default, INT96, cannot be read back beyond the year 2262 by others and has no statistics.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.icu.caseMappings.enabled": "false",  # seconds to load, for upper() of enums
    "spark.driver.memory": "4g",
    # Spark makes this folder, never used here, in the current one.
    "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "spark-warehouse"),
    "spark.log.level": "ERROR",
}


class EngineUnavailable(Exception):
    """The configured engine cannot start; the message says what to install or change."""


def session(engine: Engine) -> SparkSession:
    """The process's session for this engine. Raises EngineUnavailable with the remedy."""
    with _starting:  # it may be asked for while it starts
        return _session(engine.model_dump_json())


def is_only_one(engine: Engine) -> bool:
    """Whether the engine gives no second session: Databricks' shared and serverless compute."""
    return (
        engine.name == "spark"
        and inside_databricks()
        and type(session(engine)).__module__.startswith("pyspark.sql.connect")
    )


def another(engine: Engine) -> SparkSession:
    """One more session on the same engine, with temporary views of its own, for work in another thread."""
    base = session(engine)
    if engine.name == "spark":
        return base.newSession()  # shares everything but views; settings come with it
    return _set_up(_builder().remote(_address(engine)).create(), engine)


def _set_up(session: SparkSession, engine: Engine) -> SparkSession:
    if engine.name == "embedded":  # in this process no connection is lost, and reattaching doubles the calls
        session.client.disable_reattachable_execute()
    for key, value in {**_SETTINGS, **engine.conf}.items():
        session.conf.set(key, value)
    return session


def _builder() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder


def _address(engine: Engine) -> str:
    if engine.name == "connect":
        return str(engine.url)
    host, port = _servers[0].listening_address
    return f"sc://{host}:{port}"


_starting = threading.Lock()


@cache
def _session(engine_json: str) -> SparkSession:
    engine = Engine.model_validate_json(engine_json)
    if engine.name == "spark" and not inside_databricks():
        return _spark(engine)
    start = {"embedded": _embedded, "spark": lambda _: _builder().getOrCreate(), "connect": _connect}[engine.name]
    return _set_up(start(engine), engine)


_servers: list[Any] = []  # kept alive as long as the process


def _embedded(engine: Engine) -> Any:
    os.environ.setdefault("RUST_LOG", "off")  # its logger writes to stderr from the moment of import
    # A session that is idle for 2 minutes would end, with what waits for other work; it lives as long as the process.
    os.environ.setdefault("SAIL_SPARK__SESSION_TIMEOUT_SECS", str(30 * 24 * 3600))
    from pysail.spark import SparkConnectServer  # type: ignore[import-untyped]

    server = SparkConnectServer()
    server.start(background=True)
    _servers.append(server)
    return _builder().remote(_address(engine)).create()  # getOrCreate gives whatever session the process has


def _connect(engine: Engine) -> Any:
    try:
        made = _builder().remote(_address(engine)).create()
        _ = made.version  # the first call; a cluster that has to start is waited for
        return made
    except Exception as error:
        place, *parameters = str(engine.url).split(";")  # the token is among the parameters
        reason = str(error)
        for _, _, value in (parameter.partition("=") for parameter in parameters):
            reason = reason.replace(value, "***") if value else reason
        raise EngineUnavailable(f"engine connect: no Spark Connect server answers at {place}: {reason}") from None


def _spark(engine: Engine) -> SparkSession:
    require_java()
    from delta import configure_spark_with_delta_pip

    if "SPARK_REMOTE" not in os.environ:  # a parent process that runs an embedded engine passes this on
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
    builder = _builder().appName("monitoring-platform").master(engine.master)
    for key, value in {**_SPARK_SETTINGS, **_SETTINGS, **engine.conf}.items():
        builder = builder.config(key, value)
    return configure_spark_with_delta_pip(builder).getOrCreate()


def inside_databricks() -> bool:
    """Whether this process runs on a Databricks cluster or on serverless compute, whose session it then uses."""
    return "DATABRICKS_RUNTIME_VERSION" in os.environ


def java_version() -> int | None:
    """Major version of the Java that Spark would use; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)
    if java is None:
        return None
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def require_java() -> None:
    """Raises EngineUnavailable with the exact command if Java is missing or too old for Apache Spark."""
    if inside_databricks():
        return
    found = java_version()
    if found is None or found < MINIMUM_JAVA:
        state = "no Java was found" if found is None else f"Java {found} is too old"
        raise EngineUnavailable(
            f"engine spark needs Java {MINIMUM_JAVA} or newer, and {state}. Install it:\n{_INSTALL_JAVA}\n"
            "or use the default `engine: embedded`, which needs none."
        )


def fetch_jars() -> str:
    """Fetch what `engine: spark` needs beside Java, so that no network is needed later; says what was done."""
    found = java_version()
    if found is None or found < MINIMUM_JAVA:
        return f"engine spark: skipped, it needs Java {MINIMUM_JAVA}+ (the default engine needs none)"
    try:
        _spark(Engine(name="spark", master="local[1]")).stop()
    except Exception as error:
        return (
            f"engine spark: its jars could not be fetched ({type(error).__name__}); they are tried again on first use"
        )
    return "engine spark: ready"


if __name__ == "__main__":
    print(fetch_jars())
