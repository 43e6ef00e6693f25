"""A workspace that runs tasks: Jobs API (submit, get, cancel) and Files API over volumes, which are folders here.

The task of a wheel is a process of this machine, with the environment that its cluster would have.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.workspace.refusal import Refusal, invalid
from tests.workspace.server import Answer, Request, Route, as_json
from tests.workspace.shapes import Json
from tests.workspace.world import Workspace

ENTRY_POINTS = {"monitoring-platform-job": "monitoring_platform.orchestration.job"}


class Clusters(Workspace):
    """Submitted runs are processes; `module` is what runs instead of the entry point, if anything."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.runs: list[subprocess.Popen[str]] = []
        self.cancelled: set[int] = set()
        self.module: str | None = None

    @property
    def routes(self) -> list[Route]:
        """Jobs and files, beside what every workspace has."""
        return [*_ROUTES, *super().routes]

    def cancel(self, run_id: int) -> None:
        """End a run in its tracks."""
        self.cancelled.add(run_id)
        self.runs[run_id].send_signal(signal.SIGKILL)


def _submit(workspace: Clusters, request: Request) -> Answer:
    body: Json = request.call.body or {}
    tasks = body.get("tasks") or []
    if len(tasks) != 1 or "python_wheel_task" not in tasks[0]:
        raise invalid("exactly one python_wheel_task is run here")
    (task,) = tasks
    wheel = task["python_wheel_task"]
    if wheel.get("package_name") != "monitoring_platform" or wheel.get("entry_point") not in ENTRY_POINTS:
        raise invalid(f"no entry point {wheel.get('entry_point')} in package {wheel.get('package_name')}")
    cluster = task.get("new_cluster")
    if (cluster is None) == ("existing_cluster_id" not in task):
        raise invalid("either new_cluster or existing_cluster_id is needed")
    if cluster is not None and not {"spark_version", "node_type_id"} <= cluster.keys():
        raise invalid("spark_version and node_type_id of a new cluster are needed")
    module = workspace.module or ENTRY_POINTS[wheel["entry_point"]]
    environment = {**os.environ, **(cluster or {}).get("spark_env_vars", {}), "DATABRICKS_RUNTIME_VERSION": "17.3"}
    log = (workspace.folder / f"run{len(workspace.runs)}.log").open("w")
    process = subprocess.Popen(
        [sys.executable, "-m", module, *wheel.get("parameters", [])],
        env=environment,
        stdout=log,
        stderr=subprocess.STDOUT,
        text=True,
    )
    workspace.runs.append(process)
    return as_json({"run_id": len(workspace.runs) - 1})


def _get_run(workspace: Clusters, request: Request) -> Answer:
    run_id = request.number("run_id", -1)
    if not 0 <= run_id < len(workspace.runs):
        raise Refusal(404, "RESOURCE_DOES_NOT_EXIST", f"Run {run_id} does not exist.")
    code = workspace.runs[run_id].poll()
    state: Json = {"life_cycle_state": "RUNNING" if code is None else "TERMINATED", "state_message": ""}
    if code is not None:
        is_cancelled = run_id in workspace.cancelled
        state["result_state"] = "CANCELED" if is_cancelled else "SUCCESS" if code == 0 else "FAILED"
        state["state_message"] = "Run cancelled." if is_cancelled else "" if code == 0 else "Workload failed."
    return as_json({"run_id": run_id, "state": state, "run_page_url": f"{workspace.host}/?o=1#job/1/run/{run_id}"})


def _cancel(workspace: Clusters, request: Request) -> Answer:
    workspace.cancel(int((request.call.body or {})["run_id"]))
    return as_json({})


def _place(request: Request) -> Path:
    assert request.match is not None
    return Path(request.match["place"])


def _make_folder(workspace: Clusters, request: Request) -> Answer:
    _place(request).mkdir(parents=True, exist_ok=True)
    return Answer(204, b"")


def _list_folder(workspace: Clusters, request: Request) -> Answer:
    folder = _place(request)
    if not folder.is_dir():
        raise Refusal(404, "NOT_FOUND", "The directory being accessed is not found.")
    contents = [{"path": str(p), "name": p.name, "is_directory": p.is_dir()} for p in sorted(folder.iterdir())]
    return as_json({"contents": contents})


def _delete_folder(workspace: Clusters, request: Request) -> Answer:
    folder = _place(request)
    if any(folder.iterdir()):
        raise Refusal(400, "FILES_API_DIRECTORY_IS_NOT_EMPTY", "The directory is not empty.")
    shutil.rmtree(folder)
    return Answer(204, b"")


def _upload(workspace: Clusters, request: Request) -> Answer:
    place = _place(request)
    if place.exists() and request.one("overwrite") != "true":
        raise Refusal(409, "ALREADY_EXISTS", "The file being created already exists.")
    place.write_bytes(request.raw)
    return Answer(204, b"")


def _download(workspace: Clusters, request: Request) -> Answer:
    place = _place(request)
    if not place.is_file():
        raise Refusal(404, "NOT_FOUND", "The file being accessed is not found.")
    return Answer(200, place.read_bytes(), "application/octet-stream")


def _delete(workspace: Clusters, request: Request) -> Answer:
    _place(request).unlink()
    return Answer(204, b"")


def _route(method: str, path: str, answer: Any) -> Route:
    return Route(method, re.compile(path), answer)


_FILES, _FOLDERS = "/api/2.0/fs/files(?P<place>/.+)", "/api/2.0/fs/directories(?P<place>/.+)"
_ROUTES = [
    _route("POST", "/api/2.[12]/jobs/runs/submit", _submit),
    _route("GET", "/api/2.[12]/jobs/runs/get", _get_run),
    _route("POST", "/api/2.[12]/jobs/runs/cancel", _cancel),
    _route("PUT", _FOLDERS, _make_folder),
    _route("GET", _FOLDERS, _list_folder),
    _route("DELETE", _FOLDERS, _delete_folder),
    _route("PUT", _FILES, _upload),
    _route("GET", _FILES, _download),
    _route("DELETE", _FILES, _delete),
]
