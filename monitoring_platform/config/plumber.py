"""A Lakehouse Plumber project as configuration: its blocks `event_log` and `monitoring`, with tokens resolved.

The files are read and checked as Lakehouse Plumber does; its error codes (LHP-CFG-006 to -008, LHP-IO-001, -002) stand
in the messages. Nothing is written.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

from monitoring_platform.config.base import KeyPath, Section
from monitoring_platform.config.model import LakehousePlumber, Settings
from monitoring_platform.config.reading import ConfigError, InvalidYaml, Reader, Unreadable

JOB_DEFAULTS: Mapping[str, Any] = {
    "max_concurrent_runs": 1,
    "performance_target": "STANDARD",
    "queue": {"enabled": True},
}
"""What Lakehouse Plumber's job file is merged over."""

_EVENT_LOG, _REQUIRED, _MONITORING = "LHP-CFG-006", "LHP-CFG-007", "LHP-CFG-008"
_JOB_READABLE, _JOB_YAML = "LHP-IO-001", "LHP-IO-002"
_EVENT_LOG_KEYS = ("enabled", "catalog", "schema", "name_prefix", "name_suffix")
_MONITORING_KEYS = (
    *("enabled", "pipeline_name", "catalog", "schema", "streaming_table", "checkpoint_path", "job_config_path"),
    *("max_concurrent_streams", "materialized_views", "enable_job_monitoring"),
)
_PIPELINE_KEYS = ("event_log", "catalog", "schema")
_STREAMS = range(1, 21)
_MONITORING_ALIAS = "__eventlog_monitoring"
#: `${name}`; anything else in the braces, such as `${bundle.target}`, is resolved where the pipelines are deployed.
_TOKEN = re.compile(r"\$\{(\w+)\}")
_FLOWGROUP_PIPELINE = re.compile(
    r"""^pipeline:[ \t]*(?:"([^"\n]+)"|'([^'\n]+)'|([^\s#"'\[{][^#\n]*?))[ \t]*(?:\#.*)?$""", re.MULTILINE
)


class SummaryView(NamedTuple):
    """A summary table that the project defines in place of the default one."""

    name: str
    sql: str


class LogPlace(NamedTuple):
    """Where a pipeline publishes its event log."""

    catalog: str
    schema: str
    name: str


@dataclass(frozen=True)
class PlumberProject:
    """What the project says, for one environment. `load` makes it; see `Settings.plumber`."""

    name: str
    environment: str
    folder: Path
    event_log_enabled: bool = False
    """Whether pipelines publish their log by the project's rule."""
    monitoring_enabled: bool = True
    """Whether the project wants to be monitored; only `enabled: false` says no."""
    catalog: str | None = None
    schema: str | None = None
    name_prefix: str = ""
    name_suffix: str = ""
    pipeline_name: str = ""
    """Lakehouse Plumber's own monitoring pipeline."""
    monitoring_catalog: str | None = None
    monitoring_schema: str | None = None
    streaming_table: str = "all_pipelines_event_log"
    """What the project's views call the table of all events."""
    checkpoint_path: str | None = None
    job_settings: Mapping[str, Any] = field(default_factory=lambda: dict(JOB_DEFAULTS))
    """The job file over Lakehouse Plumber's defaults."""
    max_concurrent_streams: int = 10
    views: tuple[SummaryView, ...] | None = None
    """The project's summary tables: None = the default `events_summary`, () = none."""
    enable_job_monitoring: bool = False
    places: Mapping[str, LogPlace | Literal[False]] = field(default_factory=dict)
    """Pipelines with a log setting of their own; False = opted out."""
    pipeline_globs: tuple[str, ...] = ()
    """`include` of the project: which files below `pipelines/` count; () = all."""
    tokens: Mapping[str, str] = field(default_factory=dict)

    @property
    def opted_out(self) -> tuple[str, ...]:
        """Names of the pipelines with `event_log: false`."""
        return tuple(name for name, place in self.places.items() if place is False)

    def log_place(self, pipeline_name: str) -> LogPlace | None:
        """Where the pipeline publishes its log: its own setting, else the project's rule. None = nowhere."""
        place = self.places.get(pipeline_name)
        if place is not None:
            return place or None
        if not self.event_log_enabled or self.catalog is None or self.schema is None:
            return None
        return LogPlace(self.catalog, self.schema, f"{self.name_prefix}{pipeline_name}{self.name_suffix}")

    def log_table(self, pipeline_name: str) -> str | None:
        """The table of the pipeline's log, `catalog.schema.name`; None = opted out, or nothing is published."""
        place = self.log_place(pipeline_name)
        return ".".join(place) if place else None

    def pipelines(self) -> list[str]:
        """Names of the project's pipelines that are known now: from `pipelines/` and the pipeline configuration."""
        root = self.folder / "pipelines"
        names = set(self.places)
        for path in sorted([*root.rglob("*.yaml"), *root.rglob("*.yml")]):
            inside = path.relative_to(root)
            if self.pipeline_globs and not any(_matches(inside, pattern) for pattern in self.pipeline_globs):
                continue
            try:
                found = _FLOWGROUP_PIPELINE.findall(path.read_text(encoding="utf-8-sig"))
            except (OSError, UnicodeDecodeError):
                continue  # Lakehouse Plumber says so when it generates
            names.update(
                _TOKEN.sub(lambda token: self.tokens.get(token[1], token[0]), next(filter(None, match)))
                for match in found
            )
        return sorted(name for name in names if not re.search(r"%\{|\{\{", name))  # templates are no names


def apply(settings: Settings, file: str, environ: Mapping[str, str]) -> Settings:
    """The settings with what the Lakehouse Plumber project adds: opted-out pipelines, the number of streams, jobs.

    `file` is how messages name the configuration. Raises ConfigError with all that is wrong in the project's files.
    """
    section = settings.lakehouse_plumber
    if section is None:
        return settings
    project = _Project(section, settings, file, environ).resolve()
    known = settings.pipelines.exclude
    excluded = [name for name in map(glob.escape, project.opted_out) if name not in known]
    changes: dict[str, Any] = {"pipelines": settings.pipelines.model_copy(update={"exclude": (*known, *excluded)})}
    if "max_concurrent_streams" not in settings.ingest.model_fields_set:
        streams = {"max_concurrent_streams": project.max_concurrent_streams}
        changes["ingest"] = settings.ingest.model_copy(update=streams)
    if project.enable_job_monitoring and "enabled" not in settings.jobs.model_fields_set:
        changes["jobs"] = settings.jobs.model_copy(update={"enabled": True})
    return settings.model_copy(update=changes).with_plumber(project)


def deep_merge(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` over `defaults`: mappings merge recursively, everything else, lists too, replaces wholly."""
    merged = dict(defaults)
    for key, value in given.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = deep_merge(merged[key], value) if both else value
    return merged


class _Project:
    """Reads the files of one project and collects what is wrong with them."""

    def __init__(self, section: LakehousePlumber, settings: Settings, file: str, environ: Mapping[str, str]) -> None:
        self._section = section
        self._settings = settings
        self._config = file
        self._environ = environ
        self._problems: list[str] = []
        self._tokens: dict[str, str] = {}
        self._circles: set[str] = set()
        self._token_file = ""
        self._nowhere = False

    def resolve(self) -> PlumberProject:
        section = self._section
        folder = section.project.parent
        self._read_tokens()
        if self._problems:
            raise ConfigError("\n".join(self._problems))
        reader = Reader(str(section.project), self._shown("project"))
        content = self._attempt(reader.read)
        if content is None:
            raise ConfigError("\n".join(self._problems))
        event_log = _Block(self, reader, content, "event_log", _EVENT_LOG, _EVENT_LOG_KEYS)
        monitoring = _Block(self, reader, content, "monitoring", _MONITORING, _MONITORING_KEYS)
        name = content.get("name") if isinstance(content.get("name"), str) else folder.name

        publishes = event_log.present and event_log.flag("enabled", True)
        catalog, schema = event_log.text("catalog"), event_log.text("schema")
        for key in ("catalog", "schema"):
            if publishes and event_log.is_missing(key):
                problem = "is required while event_log is enabled. Add it, or set 'enabled: false'"
                event_log.wrong(problem, key, code=_REQUIRED)
        watched = monitoring.flag("enabled", True)
        places = self._places(f"{name}_event_log_monitoring", monitoring)
        if monitoring.present and watched and not publishes and event_log.is_sound:
            monitoring.wrong("needs event_log to be there and enabled. Add it, or set 'enabled: false' here")
        for key in ("checkpoint_path", "job_config_path"):
            if monitoring.present and watched and monitoring.is_missing(key):
                monitoring.wrong("is required while monitoring is enabled. Add it, or set 'enabled: false'", key)

        project = PlumberProject(
            name=str(name),
            environment=section.environment,
            folder=folder,
            event_log_enabled=publishes and not self._nowhere,
            monitoring_enabled=watched,
            catalog=catalog,
            schema=schema,
            name_prefix=event_log.text("name_prefix") or "",
            name_suffix=event_log.text("name_suffix") or "",
            pipeline_name=monitoring.text("pipeline_name") or f"{name}_event_log_monitoring",
            monitoring_catalog=monitoring.text("catalog") or catalog,
            monitoring_schema=monitoring.text("schema") or schema,
            streaming_table=monitoring.text("streaming_table") or "all_pipelines_event_log",
            checkpoint_path=monitoring.text("checkpoint_path"),
            job_settings=self._job_settings(monitoring, folder) if watched else dict(JOB_DEFAULTS),
            max_concurrent_streams=self._streams(monitoring),
            views=self._views(monitoring, folder),
            enable_job_monitoring=monitoring.flag("enable_job_monitoring", False),
            places=places,
            pipeline_globs=tuple(item for item in _as_list(content.get("include")) if isinstance(item, str)),
            tokens=self._tokens,
        )
        self._take(reader, ("event_log", "monitoring"))
        if self._problems:
            raise ConfigError("\n".join(dict.fromkeys(self._problems)))
        return project

    def replace_tokens(self, value: str, reader: Reader, at: KeyPath, code: str) -> str:
        """The text with its tokens resolved; a name that the token file does not define is a problem."""
        resolved = _TOKEN.sub(lambda token: self._tokens.get(token[1], token[0]), value)
        for name in _TOKEN.findall(resolved):
            if name in self._circles:
                problem = f"refers to itself. Correct it in {self._token_file}"
            else:
                problem = f"is not defined for environment '{self._section.environment}'. Add it to {self._token_file}"
            reader.report(at, f"{code}: token ${{{name}}} {problem}")
        return resolved

    def _read_tokens(self) -> None:
        section, environment = self._section, self._section.environment
        default = Path("substitutions") / f"{environment}.yaml"
        path = section.substitutions or section.project.parent / default
        self._token_file = (
            self._shown("substitutions") if section.substitutions else _beside(self._shown("project"), str(default))
        )
        given: dict[str, str] = {
            "workspace_env": self._environ.get("WORKSPACE_ENV", environment),
            "logical_env": self._environ.get("LOGICAL_ENV", environment),
        }
        if section.substitutions or path.exists():
            reader = Reader(str(path), self._token_file)
            content = self._attempt(reader.read) or Section()
            for block in ("global", environment):
                tokens = content.get(block)
                if isinstance(tokens, Section):
                    given.update({key: _spelled(tokens, key) for key in tokens if not _is_nested(tokens[key])})
                elif tokens is not None:
                    reader.report((block,), "must be a mapping. Write 'token: value' lines")
            self._take(reader, ("global", environment))
        for name in given:
            try:
                self._tokens[name] = _expanded(name, given, ())
            except RecursionError:
                self._circles.add(name)

    def _streams(self, monitoring: _Block) -> int:
        value = monitoring.get("max_concurrent_streams", 10)
        if isinstance(value, bool) or not isinstance(value, int) or value not in _STREAMS:
            monitoring.wrong("must be a whole number from 1 to 20", "max_concurrent_streams")
            return 10
        return value

    def _views(self, monitoring: _Block, folder: Path) -> tuple[SummaryView, ...] | None:
        given = monitoring.get("materialized_views")
        if given is None:
            return None
        if not isinstance(given, list):
            monitoring.wrong(
                "must be a list. Write '- name: …' entries, [] for no view, or remove the key for the default",
                "materialized_views",
            )
            return None
        views: dict[str, SummaryView] = {}
        places: dict[str, int] = {}
        for index, entry in enumerate(given):
            at = ("materialized_views", index)
            if not isinstance(entry, Section):
                monitoring.wrong("must be a mapping. Write 'name', and 'sql' or 'sql_path'", *at)
                continue
            name, sql, sql_path = (monitoring.text_at(entry, key, *at) for key in ("name", "sql", "sql_path"))
            if name is None:
                if monitoring.is_absent(entry, "name"):
                    monitoring.wrong("required key is missing. Add it", *at, "name")
                continue
            if name in places:
                monitoring.wrong(
                    f"is also the name of materialized_views[{places[name]}]. Give one of them another name",
                    *at,
                    "name",
                )
            places.setdefault(name, index)
            if sql is not None and sql_path is not None:
                monitoring.wrong("has both 'sql' and 'sql_path'. Keep one of them", *at)
            elif sql_path is not None:
                sql = self._sql_file(sql_path, monitoring, folder, (*at, "sql_path"))
            elif sql is None and monitoring.is_absent(entry, "sql") and monitoring.is_absent(entry, "sql_path"):
                monitoring.wrong("has neither 'sql' nor 'sql_path'. Add one of them", *at)
            views[name] = SummaryView(name, sql or "")
        return tuple(views.values())

    def _sql_file(self, path: str, monitoring: _Block, folder: Path, at: tuple[str | int, ...]) -> str:
        try:
            text = (folder / path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError):
            monitoring.wrong("no readable file is there. Check the path, which is relative to the project", *at)
            return ""
        return monitoring.replace_tokens(text, *at)

    def _job_settings(self, monitoring: _Block, folder: Path) -> dict[str, Any]:
        defaults, at = dict(JOB_DEFAULTS), "job_config_path"
        written, path = monitoring.get(at), monitoring.text(at)
        if path is None or not isinstance(written, str) or "${" in path:  # what is left is known at deployment only
            return defaults
        file = folder / path
        if not file.is_file() or not os.access(file, os.R_OK):
            exists = os.path.lexists(file)
            what = "is no readable file" if exists else "no file is there"
            # A path without tokens is checked at once, one with tokens after they are filled in.
            code = _JOB_READABLE if exists or "${" in written else _MONITORING
            monitoring.wrong(
                f"{what}. Check the path, which is relative to the project, or create the file", at, code=code
            )
            return defaults
        reader = Reader(str(file), _beside(self._shown("project"), written))
        try:
            given = reader.read()
        except ConfigError as error:
            code = {InvalidYaml: _JOB_YAML, Unreadable: _JOB_READABLE}.get(type(error), _MONITORING)
            self._problems.append(str(error).replace(": ", f": {code}: ", 1))
            return defaults
        for key, instead in {
            "project_defaults": "Write its keys at the top level",
            "job_name": "Remove it: the job is always called '<pipeline_name>_job'",
        }.items():
            if key in given:
                reader.report((key,), f"{_MONITORING}: is not allowed in the job file. {instead}")
        cluster = given.get("notebook_cluster")
        if isinstance(cluster, Section) and {"new_cluster", "existing_cluster_id"} <= cluster.keys():
            reader.report(
                ("notebook_cluster",),
                f"{_MONITORING}: has both 'new_cluster' and 'existing_cluster_id'. Keep one of them",
            )
        merged = deep_merge(defaults, self._filled(given, reader, (), _MONITORING))
        self._take(reader, None)
        return merged

    def _filled(self, value: Any, reader: Reader, at: KeyPath, code: str) -> Any:
        """Plain data with all tokens resolved."""
        if isinstance(value, dict):
            return {key: self._filled(item, reader, (*at, key), code) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item, reader, (*at, index), code) for index, item in enumerate(value)]
        return self.replace_tokens(value, reader, at, code) if isinstance(value, str) else value

    def _places(self, default_name: str, monitoring: _Block) -> dict[str, LogPlace | Literal[False]]:
        """The log settings that single pipelines have of their own."""
        if self._section.pipeline_config is None:
            return {}
        reader = Reader(str(self._section.pipeline_config), self._shown("pipeline_config"))
        documents = self._attempt(reader.documents) or []
        defaults: Mapping[str, Any] = {}
        places: dict[str, LogPlace | Literal[False]] = {}
        first: dict[str, int] = {}
        for index, document in enumerate(documents):
            if isinstance(document, Section) and isinstance(document.get("project_defaults"), Section):
                defaults = self._filled_some(document["project_defaults"], reader, (index, "project_defaults"))
        self._nowhere = defaults.get("event_log") is False
        for index, document in enumerate(documents):
            if document is None or (isinstance(document, Section) and "project_defaults" in document):
                continue
            if not isinstance(document, Section):
                reader.report((index,), "must be a mapping. Write 'pipeline: <name>' and its settings")
                continue
            names = _as_list(document.get("pipeline"))
            if not names or not all(isinstance(name, str) and name for name in names):
                reader.report((index, "pipeline"), "must be the name of a pipeline. Add 'pipeline: <name>'")
                continue
            given = self._filled_some(document, reader, (index,))
            place = self._place(deep_merge(defaults, given), reader, (index, "event_log"))
            for name in names:
                known = self.replace_tokens(name, reader, (index, "pipeline"), _EVENT_LOG)
                if known == _MONITORING_ALIAS:
                    known = monitoring.text("pipeline_name") or default_name
                if (other := first.setdefault(known, index)) != index:
                    reader.report((index, "pipeline"), f"is also set in entry [{other}]. Keep one of them")
                if place is not None:
                    places[known] = place
        self._take(reader, (*_PIPELINE_KEYS, "pipeline", "project_defaults"), depth=1)
        return places

    def _filled_some(self, document: Section, reader: Reader, at: KeyPath) -> dict[str, Any]:
        """What matters about logs, with tokens resolved: other settings of a pipeline are none of our business."""
        keys = [key for key in _PIPELINE_KEYS if document.get(key) is not None]
        return {key: self._filled(document[key], reader, (*at, key), _EVENT_LOG) for key in keys}

    def _place(self, settings: Mapping[str, Any], reader: Reader, at: KeyPath) -> LogPlace | Literal[False] | None:
        given = settings.get("event_log")
        if given is None or given is False:
            return given
        if not isinstance(given, Mapping):
            reader.report(at, f"{_EVENT_LOG}: must be a mapping with 'name', or false. Write one of them")
            return None
        parts = {
            "name": given.get("name"),
            "catalog": given.get("catalog", settings.get("catalog")),
            "schema": given.get("schema", settings.get("schema")),
        }
        for key, value in parts.items():
            if isinstance(value, str) and value:
                continue
            inherited = "" if key == "name" else f", here or as the pipeline's own {key}"
            problem = "is required" if value is None else "must be text"
            reader.report((*at, key), f"{_REQUIRED if value is None else _EVENT_LOG}: {problem}. Add it{inherited}")
        if not all(isinstance(value, str) and value for value in parts.values()):
            return None
        return LogPlace(parts["catalog"], parts["schema"], parts["name"])

    def _attempt(self, read: Any) -> Any:
        try:
            return read()
        except ConfigError as error:
            self._problems.append(str(error))
            return None

    def _take(self, reader: Reader, blocks: tuple[str, ...] | None, depth: int = 0) -> None:
        """Keep the problems of a file that are in these blocks; the rest of it is none of our business."""
        found = [
            line for at, line in reader.problems.items() if blocks is None or {*at[depth : depth + 1]} <= {*blocks}
        ]
        self._problems += [text for _, text in sorted(found)]

    def _shown(self, key: str) -> str:
        """A file as messages name it: as written, without values of variables, seen from the current folder."""
        written = self._settings.written("lakehouse_plumber", key)
        if written is None:
            path = getattr(self._section, key)
            written = os.path.relpath(path, self._settings.base_dir)
            written = str(path) if written.startswith("../../..") else written
        return _beside(self._config, written)


class _Block:
    """One block of the project's file: its values by type; what is wrong is reported under the block's code."""

    def __init__(
        self, project: _Project, reader: Reader, content: Section, name: str, code: str, keys: tuple[str, ...]
    ) -> None:
        self._project, self._reader, self._name, self._code = project, reader, name, code
        self.present = name in content
        given = content.get(name)
        self.is_sound = given is None or isinstance(given, Section)
        self._given = given if isinstance(given, Section) else Section()
        if not self.is_sound or (given is None and self.present and code == _EVENT_LOG):
            self.is_sound = False
            self.wrong(f"must be a mapping. Write {', '.join(keys[1:3])} and others below it")
        for key in self._given.keys() - set(keys):
            if near := get_close_matches(key, keys, n=1, cutoff=0.8):
                self.wrong(f"unknown key '{key}', did you mean '{near[0]}'?", key)

    def get(self, key: str, default: Any = None) -> Any:
        return self._given.get(key, default)

    def flag(self, key: str, default: bool) -> bool:
        value = self._given.get(key, default)
        if not isinstance(value, bool):
            self.wrong("must be true or false", key)
            return default
        return value

    def text(self, key: str) -> str | None:
        return self.text_at(self._given, key)

    def text_at(self, section: Section, key: str, *inner: str | int) -> str | None:
        """Text with its tokens resolved; None where it is absent or empty, or no text, which is a problem."""
        value = section.get(key)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            quotes = "" if isinstance(value, list | dict) else ". Put it in quotes"
            self.wrong(f"must be text{quotes}", *inner, key)
            return None
        return self.replace_tokens(value, *inner, key)

    def replace_tokens(self, value: str, *inner: str | int) -> str:
        return self._project.replace_tokens(value, self._reader, (self._name, *inner), self._code)

    def is_missing(self, key: str) -> bool:
        """Whether the block is sound and the key absent or empty."""
        return self.is_sound and self.is_absent(self._given, key)

    @staticmethod
    def is_absent(section: Section, key: str) -> bool:
        return section.get(key) in (None, "")

    def wrong(self, problem: str, *inner: str | int, code: str | None = None) -> None:
        self._reader.report((self._name, *inner), f"{code or self._code}: {problem}")


def _beside(file: str, other: str) -> str:
    """The path of a file that is named relative to another one; one that begins with a variable is left alone."""
    if other.startswith("$"):
        return other
    return os.path.normpath(os.path.join(os.path.dirname(file), other))


def _matches(path: Path, pattern: str) -> bool:
    """Whether a path below `pipelines/` matches a glob in which `**` is any number of folders."""
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = [known.get(part, re.escape(part)) for part in re.split(r"(\*\*/|\*\*|\*|\?)", pattern)]
    return re.fullmatch("".join(parts), path.as_posix()) is not None


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _is_nested(value: Any) -> bool:
    return isinstance(value, list | dict)


def _spelled(tokens: Section, key: str) -> str:
    """A token's value as text: as Lakehouse Plumber makes it, true and false in lower case."""
    value = tokens[key]
    return str(value).lower() if isinstance(value, bool) else tokens.text.get(key, "")


def _expanded(name: str, tokens: Mapping[str, str], within: tuple[str, ...]) -> str:
    """A token's value with the tokens in it. Raises RecursionError if it refers to itself."""
    if name in within:
        raise RecursionError(name)
    return _TOKEN.sub(
        lambda token: _expanded(token[1], tokens, (*within, name)) if token[1] in tokens else token[0], tokens[name]
    )
