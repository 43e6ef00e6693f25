"""What can be configured: one class per section of the file, the defaults, and the rules for values."""

import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import yaml
from pydantic import BeforeValidator, Field, SecretStr, ValidationInfo, field_validator, model_validator

from monitoring_platform.config.base import (
    Bool,
    Float,
    Int,
    KeyPath,
    Model,
    Origin,
    Section,
    Text,
    Texts,
    Zone,
    absolute,
    folder_of_records,
    local,
    matches,
    origin_of,
    readable_file,
    with_sql,
    wrong,
)
from monitoring_platform.config.health import (
    READY_RULES,
    Calendar,
    Maintenance,
    Notifications,
    Rule,
    Slo,
    Snooze,
)

if TYPE_CHECKING:
    from monitoring_platform.config.plumber import PlumberProject


_VARIABLE_ONLY = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-)?\}")


class Warehouse(Model):
    """Where the platform keeps its tables: a folder, or a schema of a catalog."""

    path: Annotated[Path | None, BeforeValidator(local)] = None
    """Folder of the tables; relative to the file."""
    catalog: Text | None = None
    """Catalog of the tables, together with `schema`."""
    schema_name: Text | None = Field(default=None, alias="schema")
    """Schema of the tables, together with `catalog`."""

    @model_validator(mode="after")
    def _one_place(self) -> "Warehouse":
        in_catalog = (self.catalog is not None, self.schema_name is not None)
        if in_catalog != ((True, True) if self.path is None else (False, False)):
            raise wrong("must say one place. Set either 'path', or 'catalog' and 'schema' together")
        return self


class Engine(Model):
    """What runs the queries. `engine: spark` is short for `engine: {name: spark}`."""

    name: Literal["embedded", "spark", "connect"] = "embedded"
    """`embedded` needs no Java, `spark` is Apache Spark in this process, `connect` a Spark Connect server."""
    master: Text = "local[*]"
    """Spark master; used by `spark` only."""
    url: str | None = None
    """Address of the server, `sc://host:port`, with a token only as `;token=${VARIABLE}`; used by `connect` only."""
    conf: Texts = {}
    """Spark settings for the session."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="before")
    @classmethod
    def _token_is_a_reference(cls, value: Any) -> Any:
        written = value.raw.get("url") if isinstance(value, Section) else None
        if written and any(not _VARIABLE_ONLY.fullmatch(token) for token in re.findall(r"(?i);token=([^;]*)", written)):
            raise wrong("must not hold a token. Write ;token=${NAME}, and set that environment variable", "url")
        return value

    @model_validator(mode="after")
    def _reachable(self) -> "Engine":
        if self.url is None and self.name == "connect":
            raise wrong("is required by engine 'connect'. Add the server's address, sc://host:port", "url")
        if self.url is not None and not self.url.startswith("sc://"):
            raise wrong("must start with 'sc://'. Write the server's address as sc://host:port", "url")
        return self

    @property
    def is_in_databricks(self) -> bool:
        """Whether its sessions see the tables of a workspace: it runs there, or is connected to it."""
        if self.name == "connect":
            return "databricks" in (self.url or "")
        return self.name == "spark" and "DATABRICKS_RUNTIME_VERSION" in os.environ


class _Located(Model):
    type: str
    """How the logs are stored."""
    path: Annotated[str, BeforeValidator(absolute)]
    """A folder, a file, a glob or an address such as s3://bucket/logs; relative to the file; may appear later."""
    name: str = ""
    """Name of the source, unique; by default its type and its path as written."""

    @model_validator(mode="before")
    @classmethod
    def _default_name(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("name") or "path" not in value:
            return value
        written = value.raw if isinstance(value, Section) else value
        return {**value, "name": f"{value.get('type')}:{written.get('path')}"}


class _PathSource(_Located):
    pipeline_id: Text | None = None
    """The pipeline of events that name none."""


class FilesSource(_PathSource):
    """Event logs exported as JSON files."""

    type: Literal["files"]
    """JSON files: *.jsonl, *.json, *.jsonl.gz."""


class DeltaSource(_PathSource):
    """Event logs kept as Delta tables."""

    type: Literal["delta"]
    """Delta tables; each is the event log of one pipeline or more."""
    overlap_hours: Annotated[Float, Field(gt=0)] = 24.0
    """How far back a table that has to be read by time is read again for late events."""


class JobsSource(_Located):
    """Runs of jobs that are no pipelines, recorded with `monitored_run`."""

    type: Literal["jobs"]
    """Folder where jobs record their runs: tables, and a small file for each run under way."""
    path: Annotated[str, BeforeValidator(folder_of_records)]
    """The folder, with a slash: `./records`, `/Volumes/…`; relative to the file; may appear later."""


class SystemTables(Model):
    """Where the workspace's system tables are; to be set only where they were moved or renamed."""

    pipeline_events: Text = "system.lakeflow_pipeline_events_preview.pipeline_events"
    """Events of all pipelines of a region; in preview, later system.lakeflow.pipeline_events."""
    pipelines: Text = "system.lakeflow.pipelines"
    """Settings of pipelines, one row for each change."""
    update_timeline: Text = "system.lakeflow.pipeline_update_timeline"
    """Updates of pipelines, in slices."""
    usage: Text = "system.billing.usage"
    """Billed usage."""
    list_prices: Text = "system.billing.list_prices"
    """Prices, with the time for which they hold."""


class Cadence(Model):
    """How often parts of a workspace are asked, in hours. What failed is asked again sooner."""

    settings_hours: Annotated[Float, Field(gt=0)] = 24.0
    """Settings and tags of each pipeline, and the system table of pipelines. New and failing ones are asked at once."""
    system_tables_hours: Annotated[Float, Field(gt=0)] = 1.0
    """Updates, usage and prices in system tables: they are filled within hours, and asking starts a SQL warehouse."""
    job_runs_hours: Annotated[Float, Field(ge=0)] = 0.0
    """Runs of jobs; 0: with each cycle."""


AccessPath: TypeAlias = Literal["table", "function", "system_table", "storage", "api"]


class WorkspaceSource(Model):
    """All pipelines of a Databricks workspace that the credentials can see."""

    type: Literal["workspace"]
    """A Databricks workspace."""
    name: str = ""
    """Name of the source, unique; by default its type and its profile or host as written."""
    profile: Text | None = None
    """Profile of ~/.databrickscfg. Without profile and host the environment is asked (DATABRICKS_HOST, …)."""
    host: Text | None = None
    """Address of the workspace, https://…"""
    token: SecretStr | None = None
    """Access token, only as `${VARIABLE}`."""
    client_id: Text | None = None
    """Service principal for OAuth, together with `client_secret`."""
    client_secret: SecretStr | None = None
    """Its secret, only as `${VARIABLE}`."""
    sql_warehouse: Text | None = None
    """Id of the SQL warehouse for all SQL. Without one, SQL needs an engine that runs in Databricks."""
    access: Annotated[tuple[AccessPath, ...], Field(min_length=1)] = (
        "table",
        "function",
        "system_table",
        "storage",
        "api",
    )
    """Ways to a log, in order of preference; each pipeline is read by the first that is allowed."""
    tables: dict[str, Text] = {}
    """Published logs or views over them that the workspace does not tell, by glob on the pipeline's name or id:
    catalog.schema.table, where {pipeline_name} stands for the name."""
    datasets: dict[str, Text] = {}
    """A table of the pipeline, by glob on its name or id, for event_log(TABLE(…)) where its id is not taken."""
    tags: Text | None = None
    """Only pipelines with these tags: `;` is or, `,` is and; `key` alone asks whether there is such a tag."""
    names: tuple[Text, ...] = ()
    """Only pipelines whose name matches one of these globs."""
    owners: tuple[Text, ...] = ()
    """Only pipelines whose creator, owner or run-as matches one of these globs."""
    overlap_hours: Annotated[Float, Field(gt=0)] = 24.0
    """How far back a log is read again for late events."""
    every: Cadence = Cadence()
    """How often parts of it are asked."""
    system_tables: SystemTables = SystemTables()
    """Where the system tables are."""
    columns: dict[str, Text] = {"pipeline_event_id": "id", "event_time": "timestamp"}
    """Columns of the table of pipeline events that have other names than in a log, with the log's name."""

    @model_validator(mode="before")
    @classmethod
    def _secrets_are_references(cls, value: Any) -> Any:
        if not isinstance(value, Section):
            return value
        for key in ("token", "client_secret"):
            if key in value.raw and not _VARIABLE_ONLY.fullmatch(value.raw[key]):
                raise wrong("must not stand in the file. Write ${NAME}, and set that environment variable", key)
        return value

    @model_validator(mode="before")
    @classmethod
    def _default_name(cls, value: Any) -> Any:
        if not isinstance(value, dict) or value.get("name"):
            return value
        written = value.raw if isinstance(value, Section) else value
        which = written.get("profile") or written.get("host") or "default"
        name = f"{value.get('type')}:{which}"
        if isinstance(value, Section):  # keep how the scalars were spelled
            value["name"] = name
            return value
        return {**value, "name": name}

    @field_validator("access")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise wrong("names a way twice. Write each once")
        return value

    @field_validator("tags")
    @classmethod
    def _is_an_expression(cls, value: str | None) -> str | None:
        if value is not None and not all(key for any_of in _alternatives(value) for key, _ in any_of):
            raise wrong("is no tag expression. Write key=value or key; ',' between them is and, ';' is or")
        return value

    @property
    def tag_alternatives(self) -> tuple[tuple[tuple[str, str | None], ...], ...]:
        """`tags` as alternatives of (key, value) that must all be there; the value None stands for any."""
        return _alternatives(self.tags) if self.tags else ()

    @model_validator(mode="after")
    def _whole_principal(self) -> "WorkspaceSource":
        if (self.client_id is None) != (self.client_secret is None):
            raise wrong("needs both 'client_id' and 'client_secret'. Add the other one")
        if self.token is not None and self.client_id is not None:
            raise wrong("is one way too many to sign in. Keep 'token', or 'client_id' and 'client_secret'", "token")
        return self


def _alternatives(expression: str) -> tuple[tuple[tuple[str, str | None], ...], ...]:
    def tag(text: str) -> tuple[str, str | None]:
        key, equals, value = (part.strip() for part in text.partition("="))
        return key, value if equals else None

    return tuple(tuple(tag(text) for text in any_of.split(",")) for any_of in expression.split(";"))


# The one place that a new type of source is added to.
Source: TypeAlias = FilesSource | DeltaSource | JobsSource | WorkspaceSource


class LakehousePlumber(Model):
    """A Lakehouse Plumber project whose blocks `event_log` and `monitoring` are taken over."""

    project: Annotated[Path, BeforeValidator(readable_file)]
    """The project's lhp.yaml; relative to the file."""
    environment: Text
    """Environment whose tokens fill `${token}`."""
    pipeline_config: Annotated[Path | None, BeforeValidator(readable_file)] = None
    """Settings of single pipelines; relative to the file."""
    substitutions: Annotated[Path | None, BeforeValidator(readable_file)] = None
    """Token file; by default substitutions/<environment>.yaml of the project."""


class PipelineSettings(Model):
    """What is known about the pipelines that a glob matches."""

    match: Text
    """Glob on the pipeline's id or name."""
    owner: Text | None = None
    """Who answers for the pipelines."""
    tags: Texts = {}
    """Tags of the pipelines."""


class Pipelines(Model):
    """Which pipelines are watched, and what is known about them."""

    include: tuple[Text, ...] = ("*",)
    """Globs on id or name: pipelines to watch."""
    exclude: tuple[Text, ...] = ()
    """Globs on id or name: pipelines to leave out, even if included."""
    settings: tuple[PipelineSettings, ...] = ()
    """Owners and tags, by glob."""


class Ingest(Model):
    """How logs are read."""

    max_concurrent_streams: Annotated[Int, Field(ge=1, le=20)] = 10
    """How many logs are read at a time."""
    batch_events: Annotated[Int, Field(ge=1000)] = 100_000
    """How many events are processed at a time; bounds the memory."""
    landing_retention_days: Annotated[Int, Field(ge=1)] = 7
    """How long events are kept as they arrived."""


class Coverage(Model):
    """When a pipeline counts as not seen."""

    stale_after_hours: Annotated[Float, Field(gt=0)] = 48.0
    """Hours without an event after which a pipeline is stale."""


class Jobs(Model):
    """Jobs that start pipelines; the workspaces are asked for their runs."""

    enabled: Bool = False
    """Ask for job runs, and say which of them started which update. By default no call is made."""
    lookback_hours: Annotated[Float, Field(gt=0)] = 168.0
    """How far back the first look at job runs goes; what was found is kept."""


class Costs(Model):
    """What pipelines cost: billed usage times the list price that held at the time."""

    enabled: Bool = False
    """Read usage and prices. By default true where a file is named."""
    usage: Annotated[str | None, BeforeValidator(readable_file)] = None
    """Exports of system.billing.usage (Parquet, CSV, JSON): file, folder or glob. By default the workspaces' table."""
    list_prices: Annotated[str | None, BeforeValidator(readable_file)] = None
    """Exports of system.billing.list_prices, likewise."""
    currency: Text | None = None
    """Currency to count in, for example USD. By default the one that prices are in; where a SKU has prices in two
    currencies its cost is unknown."""

    @model_validator(mode="before")
    @classmethod
    def _files_are_meant(cls, value: Any) -> Any:
        named = isinstance(value, dict) and (value.get("usage") or value.get("list_prices"))
        return {"enabled": True, **value} if named else value


class View(Model):
    """A table of one's own, computed from the others after each cycle. It is a Dagster asset with their lineage."""

    name: Text
    """Name of the table: lower-case letters, digits and underscores."""
    sql: Text | None = None
    """One SELECT in Spark SQL. It reads any table by its bare name. Give this or sql_path."""
    sql_path: Text | None = None
    """A file with that SELECT; relative to the configuration. Give this or sql."""
    refresh: Literal["full", "update"] = "full"
    """full: all rows, when an input changed. update: rows of the updates that new events touched; the result then has
    the columns pipeline_id and update_id."""

    @field_validator("name")
    @classmethod
    def _is_a_table_name(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,99}", value):
            raise wrong("is no table name. Write lower-case letters, digits and underscores, a letter first")
        return value

    @model_validator(mode="before")
    @classmethod
    def _one_source(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, dict):
            return value
        if (value.get("sql") is None) != (value.get("sql_path") is None):
            return with_sql(value, info) if value.get("sql_path") is not None else value
        raise wrong("needs exactly one of 'sql' and 'sql_path'. Leave out the other", "name")


_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_CRON_VALUES = (
    "[0-5]?[0-9]",
    "(?:[01]?[0-9]|2[0-3])",
    "(?:0?[1-9]|[12][0-9]|3[01])",
    f"(?:0?[1-9]|1[0-2]|{_MONTHS})",
    "(?:[0-7]|sun|mon|tue|wed|thu|fri|sat)",
)
_CRON_ITEMS = [rf"(?:\*|{value}(?:-{value})?)(?:/[1-9][0-9]*)?" for value in _CRON_VALUES]
_CRON = re.compile(r"\s+".join(f"{item}(?:,{item})*" for item in _CRON_ITEMS), re.IGNORECASE)


class Schedule(Model):
    """When the platform runs by itself."""

    sensor: Bool = True
    """Look for new events and run when there are any."""
    sensor_interval_seconds: Annotated[Int | None, Field(ge=10)] = None
    """Seconds between two looks. By default 15; where a workspace's API is asked, 60."""
    safety_net_cron: str = "0 * * * *"
    """When to run whether or not anything new was seen."""
    enabled: Bool = True
    """False: run only when asked to."""

    @field_validator("safety_net_cron")
    @classmethod
    def _five_fields(cls, value: str) -> str:
        if not _CRON.fullmatch(value):
            raise wrong(
                "must be a cron expression: minute, hour, day, month, weekday. For every hour write '0 * * * *'"
            )
        return value


class Remote(Model):
    """A cycle that Dagster launches on a Databricks cluster, instead of one here."""

    source: Text
    """Name of the workspace source whose credentials launch it."""
    config_path: Text
    """Configuration of the cycle there, a path that the cluster sees: /Workspace/… or /Volumes/…"""
    volume: Text
    """Volume for messages between here and there: /Volumes/catalog/schema/volume."""
    task: dict[str, Any]
    """Cluster and libraries as the Jobs API takes them: new_cluster or existing_cluster_id, and the wheel."""
    poll_seconds: Annotated[Float, Field(gt=0)] = 10.0
    """Seconds between two looks at the run."""

    @field_validator("volume", "config_path")
    @classmethod
    def _is_a_place_there(cls, value: str) -> str:
        if not value.startswith("/"):
            raise wrong("must be an absolute path, as the cluster sees it")
        return value.rstrip("/")

    @field_validator("task")
    @classmethod
    def _has_a_cluster(cls, value: dict[str, Any]) -> dict[str, Any]:
        if len(value.keys() & {"new_cluster", "existing_cluster_id"}) != 1:
            raise wrong("needs a cluster. Give either 'new_cluster' or 'existing_cluster_id'")
        return value


class Redaction(Model):
    """What is made unreadable before it is stored."""

    secret_references: Literal["keep", "mask"] = "keep"
    """References to secrets, `{{secrets/scope/key}}`; secrets themselves are always removed."""
    persons: Literal["keep", "pseudonym"] = "keep"
    """Names of persons, such as the user who started an update."""


class Settings(Model):
    """The whole configuration. `load` makes it from a file."""

    warehouse: Warehouse
    """Where the tables are kept."""
    engine: Engine = Engine()
    """What runs the queries."""
    sources: tuple[Annotated[Source, Field(discriminator="type")], ...]
    """Where the event logs are; may be empty."""
    lakehouse_plumber: LakehousePlumber | None = None
    """A Lakehouse Plumber project to follow."""
    pipelines: Pipelines = Pipelines()
    """Which pipelines are watched."""
    ingest: Ingest = Ingest()
    """How logs are read."""
    coverage: Coverage = Coverage()
    """When a pipeline counts as not seen."""
    jobs: Jobs = Jobs()
    """Jobs that start pipelines."""
    costs: Costs = Costs()
    """What pipelines cost."""
    views: tuple[View, ...] = ()
    """Tables of one's own."""
    schedule: Schedule = Schedule()
    """When the platform runs by itself."""
    remote: Remote | None = None
    """Where Dagster runs the cycle, if not here."""
    redaction: Redaction = Redaction()
    """What is made unreadable before it is stored."""
    calendars: tuple[Calendar, ...] = ()
    """Days on which something is due."""
    slos: tuple[Slo, ...] = ()
    """What is expected of pipelines."""
    rules: dict[str, Rule] = {}
    """What counts as trouble: settings of the ready-made rules, and rules of one's own."""
    maintenance: tuple[Maintenance, ...] = ()
    """Times in which trouble is expected."""
    snoozes: tuple[Snooze, ...] = ()
    """Trouble that is known."""
    notifications: Notifications = Notifications()
    """Who is told."""
    time_zone: Zone = "UTC"
    """Time zone of local hours and weekdays, such as Europe/Berlin; stored times are UTC."""
    tags: Texts = {}
    """Tags of the platform's own runs."""

    _file: Origin
    _plumber: "PlumberProject | None" = None

    def model_post_init(self, context: Any, /) -> None:
        """Remember the file."""
        self._file = origin_of(context)

    @field_validator("sources", "views", "calendars")
    @classmethod
    def _names_are_unique(cls, entries: tuple[Any, ...], info: ValidationInfo) -> tuple[Any, ...]:
        names = [entry.name for entry in entries]
        for index, name in enumerate(names):
            if (first := names.index(name)) < index:
                problem = f"is also the name of {info.field_name}[{first}]. Give one of them another 'name'"
                raise wrong(problem, index, "name")
        return entries

    @field_validator("rules")
    @classmethod
    def _rules_are_known(cls, rules: dict[str, Rule]) -> dict[str, Rule]:
        for name, rule in rules.items():
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,99}", name):
                raise wrong("is no name of a rule. Write lower-case letters, digits and underscores", name)
            known = READY_RULES.get(name)
            if known is None and rule.sql is None:
                near = get_close_matches(name, READY_RULES, 1)
                hint = f"Did you mean {near[0]}?" if near else f"Write one of: {', '.join(READY_RULES)}"
                raise wrong(f"is no ready-made rule. {hint} A rule of one's own needs 'sql'", name)
            if known is not None and rule.sql is not None:
                raise wrong("is the name of a ready-made rule. Give one's own another", name)
            given: list[tuple[tuple[str | int, ...], dict[str, float]]] = [((name, "limits"), rule.limits)]
            given += [((name, "overrides", at, "limits"), entry.limits) for at, entry in enumerate(rule.overrides)]
            for place, limits in given:
                for limit in limits:
                    if known is not None and limit not in known:
                        raise wrong(f"is no limit of it. It has: {', '.join(known) or 'none'}", *place, limit)
        return rules

    @model_validator(mode="after")
    def _calendars_are_known(self) -> "Settings":
        names = [calendar.name for calendar in self.calendars]
        for index, slo in enumerate(self.slos):
            if slo.calendar is not None and slo.calendar not in names:
                problem = f"names no calendar. Write one of: {', '.join(names) or '(there is none)'}"
                raise wrong(problem, "slos", index, "calendar")
        return self

    @model_validator(mode="after")
    def _remote_is_a_workspace(self) -> "Settings":
        names = [source.name for source in self.sources if isinstance(source, WorkspaceSource)]
        if self.remote is not None and self.remote.source not in names:
            problem = f"names no workspace source. Write one of: {', '.join(names) or '(there is none)'}"
            raise wrong(problem, "remote", "source")
        return self

    @property
    def config_path(self) -> Path:
        """The configuration file, absolute."""
        return self._file.path

    @property
    def base_dir(self) -> Path:
        """The folder of the configuration file, absolute."""
        return self._file.path.parent

    @property
    def sensor_interval_seconds(self) -> int:
        """Seconds between two looks for news: files may be looked at more often than an API may be asked."""
        asks = any(isinstance(source, WorkspaceSource) for source in self.sources)
        return self.schedule.sensor_interval_seconds or (60 if asks else 15)

    @property
    def has_context(self) -> bool:
        """Whether anything is asked for beside event logs: known updates and job runs of workspaces, costs."""
        return self.costs.enabled or any(isinstance(source, WorkspaceSource) for source in self.sources)

    @property
    def plumber(self) -> "PlumberProject | None":
        """What the Lakehouse Plumber project says, if `lakehouse_plumber` names one. `load` reads it."""
        return self._plumber

    def with_plumber(self, project: "PlumberProject") -> "Settings":
        """These settings, with what `plumber` gives."""
        self._plumber = project
        return self

    def written(self, *at: str | int) -> str | None:
        """A value as it stands in the file, if it refers to environment variables."""
        return self._file.raw.get(at)

    def is_included(self, pipeline_id: str, pipeline_name: str | None) -> bool:
        """Whether the pipeline is watched: some `include` matches its id or name, and no `exclude` does."""
        return matches(self.pipelines.include, pipeline_id, pipeline_name) and not matches(
            self.pipelines.exclude, pipeline_id, pipeline_name
        )

    def rule(self, name: str) -> Rule:
        """The settings of a rule, its defaults where the file says nothing."""
        return self.rules.get(name, Rule())

    def owner_of(self, pipeline_id: str, pipeline_name: str | None) -> str | None:
        """The owner of the pipeline: of the first matching entry that sets one."""
        return next((known.owner for known in self._known(pipeline_id, pipeline_name) if known.owner), None)

    def tags_of(self, pipeline_id: str, pipeline_name: str | None) -> dict[str, str]:
        """The tags of the pipeline: of all matching entries, later ones win."""
        return {key: tag for known in self._known(pipeline_id, pipeline_name) for key, tag in known.tags.items()}

    def to_yaml(self) -> str:
        """Every setting that is in force, for printing. Values of environment variables stay `${NAME}`."""
        return yaml.safe_dump(
            self._printable(self.model_dump(mode="json", by_alias=True, exclude_none=True), ()),
            sort_keys=False,
            allow_unicode=True,
            width=120,
        )

    def _known(self, pipeline_id: str, pipeline_name: str | None) -> list[PipelineSettings]:
        return [known for known in self.pipelines.settings if matches([known.match], pipeline_id, pipeline_name)]

    def _printable(self, value: Any, at: KeyPath) -> Any:
        if at in self._file.raw:
            return self._file.raw[at]
        if isinstance(value, dict):
            return {key: self._printable(item, (*at, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self._printable(item, (*at, index)) for index, item in enumerate(value)]
        return value.replace("${", "$${") if isinstance(value, str) else value
