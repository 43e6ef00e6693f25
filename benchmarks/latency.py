"""From an event in a log to the message in a channel, under Dagster's own daemon.

    .venv/bin/python -m benchmarks.latency                 # 100 pipelines, 20 failures at random moments
    .venv/bin/python -m benchmarks.latency --failures 5 --out latency.json

100 pipelines with a history of runs, one file each; `monitoring-platform dev` with its sensor as it comes; a receiver
of webhooks in this process. Pipelines fail one after another at random moments. The result is JSON: the time from the
write to the message, and how it is shared by waiting for the sensor, starting the run, and the steps of the cycle.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from dagster import DagsterEventType, DagsterInstance, DagsterRun

from benchmarks.ingest import surroundings
from monitoring_platform.config import load
from monitoring_platform.orchestration.runner import opened_instance

PROGRAM = Path(sys.executable).with_name("monitoring-platform")
PATIENCE_S = 300


class Receiver(ThreadingHTTPServer):
    """Notes when which message came."""

    def __init__(self) -> None:
        self.came: dict[str, float] = {}
        self.news = threading.Condition()
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def wait_for(self, word: str) -> float:
        """When a message that has the word came."""
        with self.news:
            found = self.news.wait_for(
                lambda: next((at for text, at in self.came.items() if word in text), None), PATIENCE_S
            )
        if found is None:
            raise SystemExit(f"no message about {word} within {PATIENCE_S} s")
        return found


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with self.server.news:
            self.server.came.setdefault(text, time.time())
            self.server.news.notify_all()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet."""


def name_of(number: int) -> str:
    return f"pipeline_{number:03d}"


def run_of(number: int, start: datetime, *, fails: bool) -> list[dict[str, Any]]:
    """The events of one update."""
    update = f"{number:03d}-{start:%Y%m%d%H%M%S}"
    origin = {"pipeline_id": f"id-{number:03d}", "pipeline_name": name_of(number), "update_id": update}
    states: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("create_update", {"create_update": {"cause": "JOB_TASK", "request_id": update}}, {}),
        ("update_progress", {"update_progress": {"state": "RUNNING"}}, {}),
    ]
    error = {"error": {"exceptions": [{"class_name": f"E{number}", "message": f"[E{number}] in {name_of(number)}"}]}}
    ended = {"update_progress": {"state": "FAILED" if fails else "COMPLETED"}}
    states.append(("update_progress", ended, {"level": "ERROR", **error} if fails else {}))
    return [
        {
            "id": f"{update}-{place}",
            "timestamp": (start + timedelta(seconds=place)).isoformat(),
            "level": "INFO",
            "event_type": kind,
            "message": kind,
            "maturity_level": "STABLE",
            "origin": origin,
            "details": details,
            **more,
        }
        for place, (kind, details, more) in enumerate(states)
    ]


def write(logs: Path, number: int, events: list[dict[str, Any]]) -> None:
    """Append to the pipeline's log."""
    with (logs / f"{name_of(number)}.jsonl").open("a") as file:
        file.write("".join(json.dumps(event) + "\n" for event in events))


@contextmanager
def daemon(config: Path) -> Iterator[None]:
    """The UI and the daemon, until the end; their output goes beside the configuration."""
    env = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    with (config.parent / "dev.log").open("wb") as log:
        started = subprocess.Popen(
            [PROGRAM, "dev", "--config", config, "--port", "3999"],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**env, "MONITORING_CONFIG": str(config)},
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(started.pid, signal.SIGINT)
            started.wait(60)


def measure(work: Path, pipelines: int, failures: int, seed: int) -> dict[str, Any]:
    """Latencies of `failures` failures, in seconds, each with its parts."""
    chance = random.Random(seed)
    receiver = Receiver()
    logs = work / "logs"
    logs.mkdir(parents=True)
    for number in range(pipelines):
        for day in range(10, 0, -1):
            write(logs, number, run_of(number, datetime.now(timezone.utc) - timedelta(days=day), fails=False))
    config = work / "monitoring.yaml"
    config.write_text(
        "warehouse: {path: ./warehouse}\nsources:\n  - {type: files, path: ./logs}\n"
        "notifications:\n  channels: {here: '${CHANNEL}'}\n  fallback: [here]\n  max_per_hour: 1000\n"
    )
    os.environ["CHANNEL"] = f"json://127.0.0.1:{receiver.server_port}/"
    subprocess.run([PROGRAM, "run", "--config", config], check=True, stdout=subprocess.DEVNULL)
    measured = []
    with daemon(config):
        time.sleep(45)  # until its code is loaded and the sensor ticks
        for number in chance.sample(range(pipelines), failures):
            time.sleep(chance.uniform(0, 20))
            began = datetime.now(timezone.utc)
            write(logs, number, run_of(number, began - timedelta(seconds=3), fails=True))
            came = receiver.wait_for(name_of(number))
            measured.append({"at": began.timestamp(), "seconds": came - began.timestamp(), "came": came})
            print(f"{name_of(number)}: {measured[-1]['seconds']:.1f} s", file=sys.stderr)
        time.sleep(10)
    with opened_instance(load(config)) as instance:
        parts = [parts_of(instance, one["at"], one["came"]) for one in measured]
    seconds = [one["seconds"] for one in measured]
    return {
        "pipelines": pipelines,
        "failures": failures,
        "seconds": [round(value, 1) for value in sorted(seconds)],
        "p50": round(median(seconds), 1),
        "p95": round(quantiles(seconds, n=20, method="inclusive")[-1], 1),
        "median_parts": {name: round(median(part.get(name, 0.0) for part in parts), 2) for name in parts[0]},
    }


def parts_of(instance: DagsterInstance, began: float, came: float) -> dict[str, float]:
    """Seconds of each part of the way of one message: the run that was under way when it came."""
    run = max(
        (run for run in instance.get_run_records() if (run.start_time or came) < came), key=lambda r: r.start_time or 0
    )
    asked, started = run.create_timestamp.timestamp(), run.start_time or 0.0
    return {
        "waiting for the sensor": asked - began,
        "starting the run": started - asked,
        **steps(instance, run.dagster_run, came),
    }


def steps(instance: DagsterInstance, run: DagsterRun, came: float) -> dict[str, float]:
    """Seconds of each step until the message came."""
    kinds = {DagsterEventType.STEP_START, DagsterEventType.STEP_SUCCESS}
    found: dict[str, float] = {}
    for record in instance.get_records_for_run(run.run_id, of_type=kinds).records:
        entry = record.event_log_entry
        step = str(entry.step_key)
        if entry.dagster_event_type == DagsterEventType.STEP_START:
            found[step] = came - entry.timestamp
        else:
            found[step] -= max(came - entry.timestamp, 0.0)
    return {step: seconds for step, seconds in found.items() if seconds > 0}


def main() -> int:
    """Measure and print."""
    assert __doc__
    parser = argparse.ArgumentParser(
        "benchmarks.latency", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pipelines", type=int, default=100)
    parser.add_argument("--failures", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="file for the JSON result (default: standard output)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = {**measure(Path(folder), args.pipelines, args.failures, args.seed), "surroundings": surroundings()}
    text = json.dumps(result, indent=2)
    if args.out:
        args.out.write_text(text + "\n")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
