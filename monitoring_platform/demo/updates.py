"""The events of one update of a triggered pipeline: how it starts, what its flows report, how it ends or stays open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise

from monitoring_platform.demo.definitions import announcements
from monitoring_platform.demo.events import SECOND, Json, iso, json_text, new_id
from monitoring_platform.demo.journal import Journal
from monitoring_platform.demo.model import CATALOG, Flow
from monitoring_platform.demo.planning import FIRST_BUILD, Obstacle, information, technique, technique_class
from monitoring_platform.demo.rows import Work, backlog, work
from monitoring_platform.demo.timeline import Attempt, Failure
from monitoring_platform.demo.truth import RunTruth

PLACEHOLDER_FLOW = "pipelines.flowTimeMetrics.missingFlowName"
UNKNOWN_EVENT_TYPE = "quantum_progress"
UNKNOWN_STATUS, UNKNOWN_METRIC = "THROTTLED", "num_input_files"

Flag = Callable[[bool], bool | str]


class Update:
    """Writes one update into a journal and keeps the truth about it."""

    def __init__(self, journal: Journal, attempt: Attempt, start: int, number: int, request_id: str | None) -> None:
        """`request_id` is None where the log carries none; the caller then says which run began the request."""
        self.journal, self.attempt, self.start, self.number = journal, attempt, start, number
        self.pipeline, self.rng = journal.pipeline, journal.rng
        self.flows = attempt.flows or journal.pipeline.flows
        self.update_id = new_id(self.rng)
        self.origin: Json = {**journal.origin, "update_id": self.update_id}
        if request_id is not None:
            self.origin["request_id"] = request_id
        if not self.pipeline.serverless:
            digits = f"{self.rng.getrandbits(40):010x}"
            self.origin["cluster_id"] = f"0{self.rng.randint(101, 999)}-{self.rng.randint(100000, 235959)}-{digits[:8]}"
        self.run = RunTruth(
            update_id=self.update_id,
            request_id=request_id or self.update_id,
            attempt=number,
            first_event=start,
            cause=attempt.cause,
            kind=attempt.kind,
            is_full_refresh=attempt.full_refresh,
        )
        journal.runs.append(self.run)
        if attempt.full_refresh:
            journal.forget_flows()

    # The life of the update

    def create(self) -> None:
        """create_update: cause, flags and the whole configuration."""
        flag: Flag = _text_flag if "text_booleans" in self.pipeline.quirks else bool
        details: Json = {
            "cause": self.attempt.cause,
            "config": self._configuration(flag),
            "full_refresh": flag(self.attempt.full_refresh),
            "failed_attempts": self.number - 1,
            "run_as": "svc-pipelines@example.com",
        }
        if self.attempt.kind == "validate":
            details["validate_only"] = flag(True)
        elif self.attempt.kind == "explore":
            details["explore_only"] = flag(True)
        elif self.rng.random() < 0.5:
            details |= {"validate_only": flag(False), "explore_only": flag(False)}
        message = f"Update {self.update_id[:6]} started by {self.attempt.cause}."
        self.journal.write(self.start, "create_update", details, message, self.origin, control_plane=True)

    def _configuration(self, flag: Flag) -> Json:
        pipeline, secrets = self.pipeline, self.pipeline.secrets
        config: Json = {
            "id": pipeline.id,
            "name": pipeline.name,
            "configuration": {"source.format": "delta", "pipelines.enzyme.enabled": "true"},
            "libraries": [{"notebook": {"path": f"/Workspace/pipelines/{pipeline.name}"}}],
            "catalog": CATALOG,
            "schema": pipeline.schema,
            "serverless": flag(pipeline.serverless),
            "continuous": flag(pipeline.runs_without_end),
            "development": flag(False),
            "photon": flag(True),
            "edition": "ADVANCED",
            "channel": "CURRENT",
        }
        if not pipeline.serverless:
            config["clusters"] = [{"label": "default", "autoscale": {"min_workers": 1, "max_workers": 4}}]
        if secrets is not None:
            config["configuration"]["jdbc.password"] = secrets.password
            config["clusters"][0]["spark_env_vars"] = {"DATABRICKS_TOKEN": secrets.token, "STAGE": "production"}
        return config

    def state(self, ts: int, state: str, failure: Failure | None = None) -> None:
        """update_progress: the next state of the update."""
        written = "CANCELLED" if state == "CANCELED" and "double_l" in self.pipeline.quirks else state
        details = {"state": written}
        if state == "CANCELED":
            details["cancellation_cause"] = self.attempt.cancelled_by
        verb = "has" if state in ("COMPLETED", "FAILED") else "is"
        message = f"Update {self.update_id[:6]} {verb} {written}."
        error = failure.as_json() if failure else None
        level = "ERROR" if state == "FAILED" else "INFO"
        self.journal.write(ts, "update_progress", details, message, self.origin, level=level, error=error)
        self.run.status = state
        self.run.error_count += level == "ERROR"
        if state in ("COMPLETED", "FAILED", "CANCELED"):
            self.run.ended_at = ts
        if state == "FAILED" and self.attempt.failure:
            self.run.root_error, self.run.is_refused = self.attempt.failure.root, self.attempt.is_refused

    def prepare(self) -> int:
        """All states before RUNNING and what is announced during them; the time when it goes on."""
        ts = self.start + self.rng.randint(150, 900)
        for state, duration in self._phases():
            self.state(ts, state)
            ts += duration
        version = {"dbr_version": "16.4"}
        details = {"runtime_version": version} if "nested_runtime" in self.pipeline.quirks else version
        self.journal.write(ts - 900, "runtime_details", details, "Runtime details.", self.origin)
        return ts

    def _phases(self) -> Iterator[tuple[str, int]]:
        rng = self.rng
        if not self.pipeline.serverless:
            yield "CREATED", rng.randint(700, 2_000)
            yield "WAITING_FOR_RESOURCES", rng.randint(95, 190) * SECOND
        elif rng.random() < 0.4:
            yield "WAITING_FOR_RESOURCES", rng.randint(900, 4_000)
        yield "INITIALIZING", rng.randint(3, 9) * SECOND
        if self.attempt.full_refresh:
            yield "RESETTING", rng.randint(2, 6) * SECOND
        yield "SETTING_UP_TABLES", rng.randint(3, 8) * SECOND

    def define(self, ts: int) -> None:
        """The graph: what each flow reads and writes, what each dataset is and by which rules it is judged."""
        for step, (event_type, body, message, origin) in enumerate(
            announcements(self.pipeline, self.flows, self.origin)
        ):
            self.journal.write(ts + step * 6, event_type, body, message, origin)
        self.run.is_defined = True

    # Flows

    def flow_origin(self, flow: Flow) -> Json:
        """The origin of a flow's rows."""
        origin = {
            **self.origin,
            "flow_name": flow.name,
            "sink_name" if flow.is_sink else "dataset_name": flow.dataset,
            "catalog_name": CATALOG,
            "schema_name": self.pipeline.schema,
        }
        flow_id = self.journal.flow_id(flow)
        self.run.flow(flow.name).flow_id = flow_id
        return origin if flow_id is None else {**origin, "flow_id": flow_id}

    def flow_status(
        self,
        ts: int,
        flow: Flow,
        status: str,
        origin: Json,
        figures: Json | None = None,
        failure: Failure | None = None,
    ) -> None:
        """flow_progress: a flow changes its status."""
        verb = "has" if status in ("COMPLETED", "FAILED") else "is"
        message = f"Flow '{flow.name}' {verb} {status}."
        error = failure.as_json() if failure else None
        level = "ERROR" if failure else "INFO"
        details = {"status": status, **(figures or {})}
        self.journal.write(ts, "flow_progress", details, message, origin, level=level, error=error)
        self.run.flow(flow.name).status = status
        self.run.error_count += failure is not None

    def flow_figures(self, ts: int, flow: Flow, origin: Json, figures: Json) -> None:
        """flow_progress: what a flow has done so far; now and then such a row has no status."""
        waiting = self.journal.waiting(flow, ts)
        self.run.flow(flow.name).backlog = waiting
        details: Json = {**figures, "metrics": {**figures["metrics"], **backlog(flow, waiting)}}
        if self.rng.random() < 0.9:
            details = {"status": "RUNNING", **details}
        message = f"Completed a streaming update of '{flow.name}'."
        self.journal.write(ts, "flow_progress", details, message, origin)

    def batch(self, begin: int, end: int, flow: Flow, origin: Json, done: Work, repeats: int) -> None:
        """One numbered batch, its running count told one or several times."""
        numbered = {**origin, "batch_id": self.journal.batch(flow)}
        for step in range(1, repeats + 1):
            ts = begin + (end - begin) * step // (repeats + 1)
            self.flow_figures(ts, flow, numbered, done.part(step, repeats).report())
            self.run.flow(flow.name).last_batch = ts
        done.count(self.run, flow)

    def run_flow(self, begin: int, end: int, flow: Flow, *, stopped: bool) -> None:
        """A flow from planning to its end; one that is `stopped` leaves its last batch half done and has no end."""
        rng, is_first = self.rng, flow is self.flows[0]
        rows = flow.usual_rows * rng.uniform(0.85, 1.15) * self.attempt.rows_factor
        if is_first and self.attempt.loses_checkpoint:
            self.journal.forget_flow(flow)
            rows *= 4
        if flow.is_view:
            self._plan(begin, flow)
        origin = self.flow_origin(flow)
        self.flow_status(begin + 500, flow, "STARTING", origin)
        self.flow_status(begin + 900, flow, "RUNNING", origin)
        if is_first and self.pipeline.plant == "unknown_details":
            metrics = {"metrics": {UNKNOWN_METRIC: rng.randint(3, 90)}}
            self.flow_status(begin + 950, flow, UNKNOWN_STATUS, origin, metrics)
        if flow.source == "files":
            self._list_files(begin + 1_000, end, flow, origin)
        if self.attempt.is_stuck and flow is self.flows[-1]:
            rows = 0
        parts = rng.randint(1, 3) if flow.reports != "end" else 1
        reported_at_end: Json | None = None
        for part in range(parts):
            done = work(self.pipeline, flow, int(rows) // parts, self.attempt.pass_rates, rng)
            first = begin + 1_000 + (end - begin - 1_500) * part // parts
            last = begin + 1_000 + (end - begin - 1_500) * (part + 1) // parts
            half_done = stopped and part == parts - 1
            if flow.counts == "nothing":
                continue
            if flow.reports == "batches":
                repeats = rng.choice((1, 2, 2, 3))
                self.batch(first, last, flow, origin, done.part(1, 2) if half_done else done, repeats)
                if not half_done:
                    self.journal.finish_batch(flow)
            elif not half_done:
                done.count(self.run, flow)
                if flow.reports == "rows":
                    self.flow_figures(last - 100, flow, origin, done.report())
                else:
                    reported_at_end = done.report()
        if flow.source == "kafka" and flow.reports == "batches" and rng.random() < 0.2:
            self._stream_progress(end - 300, flow, origin)
        if not stopped:
            self.flow_status(end, flow, "COMPLETED", origin, reported_at_end)
            self.journal.built.add(flow.name)

    def _plan(self, begin: int, flow: Flow) -> None:
        """planning_information: how a view is refreshed; one that is computed in full gets a new flow id."""
        obstacle = self._obstacle(flow)
        if obstacle is not None and flow.name in self.journal.built:
            self.journal.forget_flow(flow)
        origin = self.flow_origin(flow)
        self.flow_status(begin, flow, "PLANNING", origin)
        chosen = technique(flow, obstacle, self.rng)
        body = information(flow, self.pipeline.output(flow) or "", chosen, obstacle)
        message = f"Flow '{flow.name}' has been planned to be executed as {chosen}."
        self.journal.write(begin + 250, "planning_information", body, message, origin)
        self.run.flow(flow.name).technique = technique_class(chosen)

    def _obstacle(self, flow: Flow) -> Obstacle | None:
        if flow.name not in self.journal.built:
            return FIRST_BUILD
        return self.attempt.obstacle if flow is self.flows[0] else None

    def _list_files(self, begin: int, end: int, flow: Flow, origin: Json) -> None:
        """operation_progress: Auto Loader looks for new files; this is what makes a slow flow slow."""
        is_slow = self.attempt.slow_flow is not None and flow is self.flows[self.attempt.slow_flow]
        took = self.attempt.extra_ms if is_slow else min(self.rng.randint(700, 4_000), (end - begin) // 4)
        path = f"/Volumes/{CATALOG}/landing/{self.pipeline.subject}"
        message = f"Auto Loader listing of '{flow.name}' for {path}."
        body: Json = {"type": "AUTO_LOADER_LISTING", "status": "STARTED", "auto_loader_details": {"source_path": path}}
        if is_slow:
            self.journal.write(begin, "operation_progress", body, message, origin)
        listed = {"source_path": path, "num_files_listed": took // 9}
        body = {**body, "status": "COMPLETED", "duration_ms": took, "auto_loader_details": listed}
        self.journal.write(begin + took, "operation_progress", body, message, origin)
        self.run.flow(flow.name).listing_ms = took

    def _stream_progress(self, ts: int, flow: Flow, origin: Json) -> None:
        progress = {
            "id": self.update_id,
            "name": flow.name,
            "timestamp": iso(ts - 4_000),
            "batchId": self.journal.batch(flow),
            "durationMs": {"latestOffset": 62, "triggerExecution": 3_900},
            "stateOperators": [],
            "sources": [
                {
                    "description": f"KafkaV2[Subscribe[{flow.dataset}]]",
                    "numInputRows": flow.usual_rows,
                    "metrics": {"avgOffsetsBehindLatest": "0.0", "estimatedTotalBytesBehindLatest": "0.0"},
                }
            ],
            "sink": {"description": f"DeltaSink[{CATALOG}.{self.pipeline.schema}.{flow.dataset}]", "numOutputRows": -1},
        }
        as_text = self.rng.random() < 0.5
        details: Json = {"progress_json": json_text(progress)} if as_text else {"progress": progress}
        message = f"Completed a streaming update of '{flow.name}'."
        self.journal.write(ts, "stream_progress", details, message, origin, maturity="EVOLVING")

    def cluster(self, ts: int) -> None:
        """cluster_resources in one of its two documented shapes, or as older runtimes tell it."""
        slots = {
            "summary_duration_ms": 60_000,
            "num_task_slots": 16,
            "avg_task_slot_utilization": round(self.rng.uniform(0.15, 0.9), 2),
            "num_executors": 2,
        }
        scale = {"state": "CLUSTER_AT_DESIRED_SIZE", "optimal_num_executors": 2, "latest_requested_num_executors": 2}
        older = "older_cluster_events" in self.pipeline.quirks
        nested = not older and self.rng.random() < 0.5
        details: Json = {"task_slot_metrics": slots, "autoscale_info": scale} if nested else {**slots, **scale}
        event_type = "cluster_utilization" if older else "cluster_resources"
        self.journal.write(ts, event_type, details, "Cluster resources.", self.origin, maturity="EVOLVING")

    def resize(self, ts: int) -> None:
        """autoscale: the cluster grows for a lot of work."""
        details = {"status": "RESIZING", "optimal_num_executors": 4, "requested_num_executors": 4}
        self.journal.write(ts, "autoscale", details, "Cluster is resizing to 4 executors.", self.origin)


def _text_flag(value: bool) -> str:
    return "true" if value else "false"


# Whole updates


def play(journal: Journal, attempt: Attempt, start: int, number: int, request_id: str | None) -> RunTruth:
    """An update of a triggered pipeline, from create_update to its end (or to what it does at the moment)."""
    update = Update(journal, attempt, start, number, request_id)
    update.create()
    if attempt.kind != "normal":
        _play_internal(update)
    elif attempt.is_refused:
        update.state(start + update.rng.randint(300, 900), "FAILED", attempt.failure)
    elif attempt.failure and attempt.failure.before_any_flow:
        _play_without_cluster(update, attempt.failure)
    else:
        _play_flows(update)
    return update.run


def _play_internal(update: Update) -> None:
    """validate_only and explore_only: the graph is looked at, no flow runs."""
    ts = update.prepare()
    update.define(ts - 800)
    update.state(ts + 1_500, update.attempt.outcome)


def _play_without_cluster(update: Update, failure: Failure) -> None:
    """The cluster does not start: an ERROR row of type create_update without details, no flow at all."""
    update.state(update.start + 400, "CREATED")
    update.state(update.start + 1_900, "WAITING_FOR_RESOURCES")
    ts = update.start + update.rng.randint(60, 120) * SECOND
    update.journal.write(
        ts,
        "create_update",
        None,
        failure.message,
        update.origin,
        level="ERROR",
        error=failure.as_json(),
        control_plane=True,
    )
    update.run.error_count += 1
    update.state(ts + 2_300, "FAILED")


def _play_flows(update: Update) -> None:
    """The flows one after the other, up to the one at which the run stops."""
    attempt, pipeline, rng, journal = update.attempt, update.pipeline, update.rng, update.journal
    ready = update.prepare()
    update.define(ready - 600)
    update.state(ready, "RUNNING")
    flows = update.flows
    for step, flow in enumerate(flows):
        queued = {**update.origin, "flow_name": flow.name}
        update.flow_status(ready + 15 + step * 9, flow, "QUEUED", queued)
    if "placeholder_flow" in pipeline.quirks:
        origin = {**update.origin, "flow_name": PLACEHOLDER_FLOW}
        journal.write(ready + 90, "flow_progress", {"status": "RUNNING"}, "Flow time metrics.", origin)
    if pipeline.plant == "unknown_event_type":
        details = {"qubits": rng.randint(8, 64), "entangled": True}
        journal.write(ready + 95, UNKNOWN_EVENT_TYPE, details, "Quantum progress.", update.origin)
    if pipeline.plant == "notices":
        _notify(update, ready)
    if not pipeline.serverless:
        update.cluster(ready + 20 * SECOND)
        if attempt.full_refresh:
            update.resize(ready + 25 * SECOND)

    spans = _spans(update, ready + 200)
    if attempt.outcome == "COMPLETED":
        for flow, (begin, end) in zip(flows, spans, strict=True):
            update.run_flow(begin, end, flow, stopped=False)
        update.state(spans[-1][1] + rng.randint(500, 1_500), "COMPLETED")
    else:
        _play_until(update, spans, attempt.stops_at % len(flows))
    if not pipeline.serverless and update.run.ended_at is not None:
        update.cluster(update.run.ended_at + 6 * SECOND)


def _notify(update: Update, ready: int) -> None:
    """What the platform wants its users to know, and what a hook of theirs reports."""
    journal, origin = update.journal, update.origin
    message = "Legacy publishing mode is deprecated and will be removed."
    journal.write(ready - 200, "deprecation", {"message": "LEGACY_PUBLISHING_MODE"}, message, origin, level="WARN")
    message = "Names are resolved later than before."
    issue = {"issue": "LATE_NAME_RESOLUTION"}
    journal.write(ready - 150, "behavior_change_in_spark_connect", issue, message, origin, level="WARN")
    status = "FAILED" if update.rng.random() < 0.2 else "COMPLETED"
    message = f"Event hook 'post_to_pager' has {status}."
    level = "WARN" if status == "FAILED" else "INFO"
    hook = {"name": "post_to_pager", "status": status}
    journal.write(ready + 98, "hook_progress", hook, message, origin, level=level)


def _spans(update: Update, ready: int) -> list[tuple[int, int]]:
    """When each flow begins and ends."""
    attempt, weights = update.attempt, update.journal.weights
    total = (
        update.pipeline.run_seconds * SECOND * (2.5 if attempt.full_refresh else 1.0) * update.rng.uniform(0.93, 1.07)
    )
    whole = sum(weights.values())
    durations = [int(total * weights[flow.name] / whole) for flow in update.flows]
    if attempt.slow_flow is not None:
        durations[attempt.slow_flow] += attempt.extra_ms
    ends = list(accumulate(durations, initial=ready))
    return [(begin, end - 100) for begin, end in pairwise(ends)]


def _play_until(update: Update, spans: list[tuple[int, int]], stop: int) -> None:
    """The flows before `stop` complete, that one breaks halfway, the ones behind it never start."""
    attempt, flows = update.attempt, update.flows
    for flow, (begin, end) in zip(flows[:stop], spans[:stop], strict=True):
        update.run_flow(begin, end, flow, stopped=False)
    flow, (begin, end) = flows[stop], spans[stop]
    middle = begin + (end - begin) // 2
    update.run_flow(begin, middle, flow, stopped=True)
    if attempt.outcome == "RUNNING":
        return
    origin = update.flow_origin(flow)
    if attempt.failure and update.rng.random() < 0.3:
        message = f"Flow '{flow.name}' met an error and tries once more."
        update.journal.write(
            middle - 150,
            "flow_progress",
            {"status": "RUNNING"},
            message,
            origin,
            level="WARN",
            error=attempt.failure.as_json(),
        )
    update.flow_status(middle, flow, "FAILED" if attempt.failure else "STOPPED", origin, failure=attempt.failure)
    for step, waiting in enumerate(flows[stop + 1 :], 1):
        update.flow_status(middle + 20 * step, waiting, "SKIPPED", {**update.origin, "flow_name": waiting.name})
    update.state(middle + update.rng.randint(1_500, 4_000), attempt.outcome, attempt.failure)


def play_maintenance(journal: Journal, start: int) -> RunTruth:
    """Maintenance by the platform: known by its maintenance_id, without create_update and request."""
    update = Update(journal, Attempt(cause="", kind="maintenance"), start, 1, None)
    update.origin["maintenance_id"] = new_id(journal.rng)
    update.run.cause, update.run.is_full_refresh = None, None
    update.state(start, "INITIALIZING")
    update.state(start + 8 * SECOND, "RUNNING")
    update.state(start + journal.rng.randint(60, 200) * SECOND, "COMPLETED")
    return update.run
