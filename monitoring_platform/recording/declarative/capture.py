"""What goes between a pipeline's program and the Spark Connect server, seen in passing and written to its journal.

All of it passes through two methods of PySpark's client; `capture` looks over their shoulder and changes nothing. What
goes wrong here is said once on stderr and goes no further: the pipeline runs on, and that event is missing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import wraps
from pathlib import Path
from typing import Any

from monitoring_platform.recording.declarative.graph import Flow, Graph, dotted, spelled
from monitoring_platform.recording.declarative.journal import Journal, Pipeline
from monitoring_platform.recording.declarative.messages import Said, failure, understand
from monitoring_platform.recording.declarative.rows import Written, rows_written
from monitoring_platform.recording.run import utc_now

_PATIENCE = 30.0  # seconds for all tables together to tell what was written to them
_ENDS = ("COMPLETED", "FAILED", "CANCELED")


@contextmanager
def capture(folder: Path | str, name: str, storage: str, *, now: Callable[[], datetime] = utc_now) -> Iterator[None]:
    """Record one run of a pipeline, by the commands that this process sends to a Spark Connect server inside the block.

    `name` and `storage` are those of the pipeline's spec. The log is written below `folder`. One run at a time; an
    exception is recorded and goes on unchanged.
    """
    run, stop = _begun(folder, Pipeline(name, storage), now)
    try:
        yield
    except BaseException as error:
        if run:
            run.failed(error)
        raise
    finally:
        stop()
        if run:
            run.ended()


def _begun(
    folder: Path | str, pipeline: Pipeline, now: Callable[[], datetime]
) -> tuple[_Run | None, Callable[[], None]]:
    """The run that is recorded from now on, and how to stop that; none if it cannot be."""
    try:
        run = _Run(Journal(Path(folder), pipeline, now), pipeline)
        stop = _watch(run)
    except Exception as error:
        _complain(f"this run is not recorded: {type(error).__name__}: {error}")
        return None, lambda: None
    run.begins()
    return run, stop


def _complain(reason: str) -> None:
    print(f"monitoring-platform: {reason}", file=sys.stderr)


def _harmless(method: Callable[..., None]) -> Callable[..., None]:
    """The method without its exceptions, the first of which is told."""

    @wraps(method)
    def guarded(self: _Run, *arguments: Any) -> None:
        try:
            method(self, *arguments)
        except Exception as error:
            if not self.is_incomplete:
                _complain(f"the record of this run is incomplete: {type(error).__name__}: {error}")
            self.is_incomplete = True

    return guarded


class _Run:
    """One run as far as it is known."""

    def __init__(self, journal: Journal, pipeline: Pipeline) -> None:
        self.journal, self.pipeline, self.is_incomplete = journal, pipeline, False
        self.graph = Graph()
        self.configuration: Mapping[str, str] = {}
        self.state: str | None = None
        self.is_announced = False
        self.flows: dict[str, Flow] = {}
        self.began: dict[str, datetime] = {}  # when a flow started
        self.failing: dict[str, tuple[Said, datetime]] = {}  # flows of which the last thing heard is a failure

    @_harmless
    def begins(self) -> None:
        """Before anything else."""
        self._progress("INITIALIZING", self.journal.began)

    @_harmless
    def defined(self, command: Any, session: Callable[[], Any]) -> None:
        """A command that builds the graph was carried out; `session` gives the one that it was sent by."""
        if command.WhichOneof("command_type") == "create_dataflow_graph":
            body = command.create_dataflow_graph
            catalog, schema = body.default_catalog, body.default_database
            if not (catalog and schema):
                row = session().sql("SELECT current_catalog(), current_database()").head()
                catalog, schema = catalog or row[0], schema or row[1]
            self.graph, self.configuration = Graph(catalog, schema), dict(body.sql_conf)
        else:
            self.graph.add(command)

    @_harmless
    def starts(self, start: Any) -> None:
        """The run is about to be asked for."""
        self._announce(start)
        if not start.dry:
            self._progress("SETTING_UP_TABLES", self.journal.now())

    @_harmless
    def told(self, event: Any) -> None:
        """The server sent a PipelineEvent: a text and a time."""
        said, at = understand(event.message), event.timestamp.ToDatetime().replace(tzinfo=timezone.utc)
        if said.flow is None:
            if said.status:
                self._progress(said.status, at)
            else:
                self._write("pipeline_message", None, said, at, "WARN" if said.exceptions else "INFO")
            return
        if self.state == "SETTING_UP_TABLES":
            self._progress("RUNNING", at)
        if said.status in ("STARTING", "RUNNING"):
            self.began.setdefault(said.flow, at)
        # A failure may be tried again. Only the end of the run says which were the last word: those become errors.
        self.failing.pop(said.flow, None)
        if said.status == "FAILED":
            self.failing[said.flow] = said, at
        self._write("flow_progress", {"status": said.status}, said, at, "WARN" if said.exceptions else "INFO")

    @_harmless
    def failed(self, error: BaseException) -> None:
        """An exception ended the run, or came after its end."""
        if self.state in _ENDS:
            return
        said = failure(error)
        self._announce(None)
        if said.status == "FAILED":
            for flow, at in self.failing.values():
                self._write("flow_progress", {"status": "FAILED"}, flow, at, "ERROR")
        self._progress(str(said.status), self.journal.now(), said)

    @_harmless
    def succeeded(self) -> None:
        """The server had nothing more to say and raised nothing."""
        if self.state not in _ENDS:
            self._progress("COMPLETED", self.journal.now())

    @_harmless
    def written(self, session: Callable[[], Any]) -> None:
        """What reached which table. An update that has ended is told of it as well."""
        alone = [flow for flow in self.flows.values() if self._is_alone(flow)]
        wanted = {flow.target: self.began[dotted(flow.name)] for flow in alone if dotted(flow.name) in self.began}
        found: list[Written] = []
        active = session()  # of this thread
        asking = threading.Thread(target=lambda: found.extend(rows_written(active, wanted)), daemon=True)
        asking.start()
        asking.join(_PATIENCE)
        names = {flow.target: dotted(flow.name) for flow in alone}
        for entry in list(found):
            said = Said(f"Version {entry.version} of {dotted(entry.table)}.", flow=names[entry.table])
            self._write("flow_progress", {"metrics": entry.metrics}, said, entry.at, "METRICS")

    @_harmless
    def ended(self) -> None:
        """After everything else; a block in which nothing was run is no failure."""
        if self.state not in _ENDS:
            self._announce(None)
            self._progress("CANCELED", self.journal.now())
        self.journal.close()

    def _is_alone(self, flow: Flow) -> bool:
        """Whether the table's commits are this flow's: with several, the table does not say whose they are."""
        is_table = any(output.is_table and output.name == flow.target for output in self.graph.outputs)
        return is_table and [other.target for other in self.flows.values()].count(flow.target) == 1

    def _announce(self, start: Any) -> None:
        """The event that an update begins with, and the graph; when nothing was asked for, of what was defined."""
        if self.is_announced:
            return
        self.is_announced = True
        body: dict[str, Any] = {
            "config": {
                "id": self.pipeline.id,
                "name": self.pipeline.name,
                "storage": self.pipeline.storage,
                "catalog": self.graph.catalog,
                "schema": self.graph.schema,
                "configuration": dict(self.configuration),
                "continuous": False,
            }
        }
        if start is not None:
            body |= {
                "full_refresh": start.full_refresh_all,
                "full_refresh_selection": list(start.full_refresh_selection),
                "refresh_selection": list(start.refresh_selection),
                "validate_only": start.dry,
            }
        self._write("create_update", body, Said(f"Run of {self.pipeline.name}."), self.journal.began)
        self.flows = {dotted(flow.name): flow for flow in self.graph.flows}
        outputs = {output.name: output for output in self.graph.outputs}
        for output in outputs.values():
            if output.kind == "SINK":
                continue
            flows = sum(flow.target == output.name for flow in self.flows.values())
            body = {"dataset_type": output.kind, "num_flows": flows}
            self.journal.write(
                "dataset_definition", body, f"Dataset {dotted(output.name)}.", dataset_name=spelled(output.name)
            )
        for name, flow in self.flows.items():
            is_sink = flow.target in outputs and outputs[flow.target].kind == "SINK"
            body = {
                "input_datasets": [spelled(read) for read in flow.inputs],
                "output_sink" if is_sink else "output_dataset": spelled(flow.target),
                "flow_type": flow.kind,
                "language": flow.language,
            }
            self._write("flow_definition", body, Said(f"Flow {name}.", flow=name))

    def _progress(self, state: str, at: datetime, said: Said | None = None) -> None:
        self.state = state
        said = said or Said(f"Update {self.journal.update_id[:6]} is {state}.")
        level = "ERROR" if state == "FAILED" else "INFO"
        cause = "USER_ACTION" if state == "CANCELED" else None
        self._write("update_progress", {"state": state, "cancellation_cause": cause}, said, at, level)

    def _write(
        self, event_type: str, body: dict[str, Any] | None, said: Said, at: datetime | None = None, level: str = "INFO"
    ) -> None:
        flow = self.flows.get(said.flow or "")
        dataset = spelled(flow.target) if flow else None
        self.journal.write(
            event_type,
            body,
            said.text,
            at=at,
            level=level,
            exceptions=said.exceptions,
            flow_name=said.flow,
            dataset_name=dataset,
        )


def _watch(run: _Run) -> Callable[[], None]:
    """From now on the run is told what this process and the server say to each other, until what is given is called."""
    from pyspark.sql.connect.client import SparkConnectClient
    from pyspark.sql.connect.session import SparkSession

    session = SparkSession.getActiveSession
    execute, iterate = SparkConnectClient.execute_command, SparkConnectClient.execute_command_as_iterator

    @wraps(execute)
    def executed(client: Any, command: Any, *arguments: Any, **options: Any) -> Any:
        result = execute(client, command, *arguments, **options)
        if command.HasField("pipeline_command"):
            run.defined(command.pipeline_command, session)
        return result

    @wraps(iterate)
    def iterated(client: Any, command: Any, *arguments: Any, **options: Any) -> Iterator[dict[str, Any]]:
        results = iterate(client, command, *arguments, **options)
        if not (command.HasField("pipeline_command") and command.pipeline_command.HasField("start_run")):
            yield from results
            return
        run.starts(command.pipeline_command.start_run)
        try:
            for result in results:
                if "pipeline_event_result" in result:
                    run.told(result["pipeline_event_result"].event)
                yield result
        except Exception as error:
            run.failed(error)
            run.written(session)
            raise
        run.succeeded()
        run.written(session)

    def put(executes: Any, iterates: Any) -> None:
        client: Any = SparkConnectClient
        client.execute_command, client.execute_command_as_iterator = executes, iterates

    put(executed, iterated)
    return lambda: put(execute, iterate)
