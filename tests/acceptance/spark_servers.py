"""Apache Spark as servers of their own on this machine: a Spark Connect server, and a standalone cluster."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path

import pyspark

from monitoring_platform.warehouse.session import _SPARK_SETTINGS

_HOME = Path(pyspark.__file__).parent
#: Most of the time on tiny data is spent on compiling: generated code, and Java's own by its second compiler.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_START_SECONDS = 180


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server with Delta tables and a catalog in memory; gives its address."""
    port, spark = _free_port(), ".".join(version("pyspark").split(".")[:2])
    settings = {
        **_SPARK_SETTINGS,
        **QUICK,
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.driver.memory": "2g",
        "spark.sql.warehouse.dir": str(folder / "tables"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    command = [
        *(str(_HOME / "bin" / "spark-submit"), "--master", "local[2]"),
        *("--packages", f"io.delta:delta-spark_{spark}_2.13:{version('delta-spark')}"),
        *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
    ]
    with _running(command, folder, "connect"):
        _answers(port, folder / "connect.log")
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[str]:
    """A standalone master with workers of one core each; gives the master's address."""
    port, launch = _free_port(), str(_HOME / "bin" / "spark-class")
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        head = [launch, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
        stack.enter_context(_running([*head, "--webui-port", "0"], folder, "master"))
        _answers(port, folder / "master.log")
        for number in range(workers):
            worker = [launch, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0"]
            size = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker{number}")]
            stack.enter_context(_running([*worker, *size, master], folder, f"worker{number}"))
        _waits_for(lambda: len(re.findall("Registering worker", _text(folder / "master.log"))) == workers, folder)
        yield master


@contextmanager
def _running(command: list[str], folder: Path, name: str) -> Iterator[None]:
    """The server's process; it ends with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("SPARK_")},
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
    }
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answers(port: int, log: Path) -> None:
    def is_open() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    _waits_for(is_open, log.parent)


def _waits_for(condition: object, folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            logs = "\n".join(f"{log.name}: …{_text(log)[-1000:]}" for log in sorted(folder.glob("*.log")))
            raise TimeoutError(f"Spark did not start within {_START_SECONDS} s\n{logs}")
        time.sleep(0.2)


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
