from pathlib import Path

import pytest
from pydantic import BaseModel

from monitoring_platform.config import (
    ConfigError,
    Coverage,
    DeltaSource,
    Engine,
    FilesSource,
    Ingest,
    LakehousePlumber,
    Pipelines,
    Redaction,
    Schedule,
    Settings,
    Warehouse,
    load,
)
from monitoring_platform.warehouse.session import EngineUnavailable, session

MINIMAL = """\
warehouse:
  path: ./warehouse
sources:
  - type: files
    path: ./logs
  - type: delta
    path: ./delta_logs/*
"""
BASE = "warehouse: {path: ./warehouse}\nsources: []\n"
SECRET = "s3cr3t-value"


@pytest.fixture(autouse=True)
def _in_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def settings_from(text: str, **environ: str) -> Settings:
    Path("m.yaml").write_text(text, encoding="utf-8")
    return load("m.yaml", environ)


def problems(text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        settings_from(text, **environ)
    return str(error.value).splitlines()


# Costs


def test_files_turn_costs_on(tmp_path: Path) -> None:
    """R-COST-01: off by default, on where exports are named, unless it is said otherwise; paths are the file's."""
    assert settings_from(BASE).costs.enabled is False
    named = settings_from(BASE + "costs: {usage: ./billing/*.csv}\n").costs
    assert (named.enabled, named.usage) == (True, str(tmp_path / "billing" / "*.csv"))
    assert settings_from(BASE + "costs: {enabled: false, usage: u.csv}\n").costs.enabled is False
    assert problems(BASE + "costs: {usage: s3://b/u.csv}\n") == [
        "m.yaml:3: costs.usage: must be a local file. Write its path"
    ]


# Values


def test_minimal_form(tmp_path: Path) -> None:
    """R-CFG-15 two blocks are a whole installation; R-CFG-12 none of the paths exists yet."""
    settings = settings_from(MINIMAL)
    assert settings.config_path == tmp_path / "m.yaml"
    assert settings.base_dir == tmp_path
    assert settings.warehouse == Warehouse(path=tmp_path / "warehouse", catalog=None, schema=None)
    assert settings.sources == (
        FilesSource(type="files", path=f"{tmp_path}/logs", name="files:./logs"),
        DeltaSource(type="delta", path=f"{tmp_path}/delta_logs/*", name="delta:./delta_logs/*", overlap_hours=24.0),
    )
    assert settings.engine == Engine(name="embedded", master="local[*]", url=None, conf={})
    assert settings.pipelines == Pipelines(include=("*",), exclude=(), settings=())
    assert settings.ingest == Ingest(max_concurrent_streams=10, batch_events=100_000, landing_retention_days=7)
    assert settings.coverage == Coverage(stale_after_hours=48.0)
    assert settings.schedule == Schedule(
        sensor=True, sensor_interval_seconds=None, safety_net_cron="0 * * * *", enabled=True
    )
    assert settings.redaction == Redaction(secret_references="keep", persons="keep")
    assert settings.tags == {}


def test_checking_writes_nothing(tmp_path: Path) -> None:
    """R-CFG-11 a check writes nothing."""
    settings_from(MINIMAL)
    assert [path.name for path in tmp_path.iterdir()] == ["m.yaml"]


def test_no_sources() -> None:
    """R-ING-09 an empty list of sources is a valid configuration."""
    assert settings_from(BASE).sources == ()


def test_paths(tmp_path: Path) -> None:
    """R-CFG-12 paths are resolved against the file, whatever the current folder, and addresses kept as they are."""
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "m.yaml").write_text(
        "warehouse: {path: ../warehouse}\n"
        "sources:\n"
        "  - {type: files, path: /var/logs/*.jsonl}\n"
        "  - {type: files, path: s3://bucket/logs/}\n"
        "  - {type: delta, path: abfss://logs@account/x, name: lake, pipeline_id: p1, overlap_hours: 1.5}\n"
        "  - {type: delta, path: dbfs:/logs/*}\n"
    )
    settings = load("conf/m.yaml", {})
    assert settings.base_dir == folder
    assert settings.warehouse.path == tmp_path / "warehouse"
    assert settings.sources == (
        FilesSource(type="files", path="/var/logs/*.jsonl", name="files:/var/logs/*.jsonl"),
        FilesSource(type="files", path="s3://bucket/logs/", name="files:s3://bucket/logs/"),
        DeltaSource(type="delta", path="abfss://logs@account/x", name="lake", pipeline_id="p1", overlap_hours=1.5),
        DeltaSource(type="delta", path="dbfs:/logs/*", name="delta:dbfs:/logs/*"),
    )


def test_catalog_and_schema() -> None:
    settings = settings_from("warehouse: {catalog: main, schema: monitoring}\nsources: []\n")
    assert settings.warehouse == Warehouse(path=None, catalog="main", schema="monitoring")


def test_engine() -> None:
    assert settings_from(BASE + "engine: spark\n").engine == Engine(name="spark")
    text = BASE + "engine: {name: connect, url: 'sc://host:15002', conf: {a.b: true, c: 8}}\n"
    assert settings_from(text).engine == Engine(name="connect", url="sc://host:15002", conf={"a.b": "true", "c": "8"})


def test_a_token_of_the_engine_stands_in_the_environment() -> None:
    """Never in the file, nor in what is printed of it; a server that cannot be reached is named without it."""
    url = "sc://host:443/;token=${TOKEN};x-databricks-cluster-id=1"
    settings = settings_from(BASE + f"engine: {{name: connect, url: '{url}'}}\n", TOKEN="dapi-secret")
    assert "dapi-secret" in str(settings.engine.url)
    assert "dapi-secret" not in settings.to_yaml()
    with pytest.raises(ConfigError, match="must not hold a token"):
        settings_from(BASE + "engine: {name: connect, url: 'sc://host:443/;token=dapi-secret'}\n")
    embedded = session(Engine(name="embedded"))  # the session that the process has is not taken for the one asked for
    with pytest.raises(EngineUnavailable) as refused:
        session(Engine(name="connect", url="sc://host:443/path;token=dapi-secret"))
    assert "sc://host:443/path" in str(refused.value)
    assert "dapi-secret" not in str(refused.value)
    assert embedded.sql("SELECT 1 AS one").toArrow().to_pylist() == [{"one": 1}]


def test_tags_are_text_as_written() -> None:
    settings = settings_from(BASE + "tags: {team: data, version: 1.10, centre: 0042, on: yes, 2024: 2024-01-01}\n")
    assert settings.tags == {"team": "data", "version": "1.10", "centre": "0042", "on": "yes", "2024": "2024-01-01"}


def test_pipelines() -> None:
    settings = settings_from(
        BASE
        + """\
pipelines:
  include: [sales_*, "id-1*"]
  exclude: ["*_test", id-13]
  settings:
    - {match: "*", tags: {tier: 3, area: all}}
    - {match: sales_*, owner: sales, tags: {area: sales}}
    - {match: id-1, owner: late, tags: {tier: 1}}
"""
    )
    included = [
        settings.is_included(*pipeline)
        for pipeline in [
            ("x", "sales_eu"),
            ("id-12", "other"),
            ("id-12", None),
            ("x", "Sales_eu"),
            ("x", "sales_test"),
            ("id-13", "sales_eu"),
            ("x", None),
        ]
    ]
    assert included == [True, True, True, False, False, False, False]
    assert settings.owner_of("id-1", "sales_eu") == "sales"
    assert settings.owner_of("id-1", None) == "late"
    assert settings.owner_of("x", "other") is None
    assert settings.tags_of("id-1", "sales_eu") == {"tier": "1", "area": "sales"}
    assert settings.tags_of("x", None) == {"tier": "3", "area": "all"}


def test_every_field_is_described_in_one_line() -> None:
    models: list[type[BaseModel]] = [
        *(Settings, Warehouse, Engine, FilesSource, DeltaSource, Pipelines, Ingest, Coverage, Schedule),
        *(Redaction, LakehousePlumber),
    ]
    descriptions = [info.description or "" for model in models for info in model.model_fields.values()]
    assert [text for text in descriptions if not text or "\n" in text] == []


# Variables


def test_variables_are_filled_in() -> None:
    """R-CFG-04 values resolve per environment."""
    settings = settings_from(
        """\
warehouse: {catalog: "${ENV}_monitoring", schema: '${SCHEMA:-pipeline_ops}'}
sources: []
ingest:
  max_concurrent_streams: ${STREAMS:-5}
  landing_retention_days: ${DAYS}
engine:
  name: ${ENGINE:-spark}
  url: ${URL:-}
schedule:
  sensor: ${SENSOR}
  safety_net_cron: ${EMPTY:-30 6 * * mon-fri}
tags: {literal: "$${bundle.target}", twice: "${ENV}-${ENV}", nested: "${NESTED}", number: "${DAYS}"}
""",
        ENV="dev",
        DAYS="3",
        SENSOR="false",
        EMPTY="",
        NESTED="${ENV}",
    )
    assert settings.warehouse == Warehouse(path=None, catalog="dev_monitoring", schema="pipeline_ops")
    assert settings.engine == Engine(name="spark", url=None)
    assert settings.ingest == Ingest(max_concurrent_streams=5, landing_retention_days=3)
    assert settings.schedule == Schedule(sensor=False, safety_net_cron="30 6 * * mon-fri")
    assert settings.tags == {"literal": "${bundle.target}", "twice": "dev-dev", "nested": "${ENV}", "number": "3"}


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-CFG-14: names are set once for each environment."""
    monkeypatch.setenv("MP_CATALOG", "main")
    Path("m.yaml").write_text("warehouse: {catalog: '${MP_CATALOG}', schema: s}\nsources: []\n")
    assert load("m.yaml").warehouse.catalog == "main"


def test_a_value_is_never_taken_for_yaml_structure() -> None:
    assert settings_from(BASE + "tags:\n  a: ${A}\n", A="[x, {y: z}] # w").tags == {"a": "[x, {y: z}] # w"}


def test_unset_and_malformed_variables() -> None:
    """An unset variable is one problem, not also a wrong value."""
    assert problems(
        """\
warehouse:
  path: ${HOME_OF_TABLES}
engine: ${ENGINE}
sources:
  - path: ./logs
    type: ${TYPE}
ingest:
  batch_events: ${BATCH}
tags: {a: "${", b: "${a.b}", c: "${A:-${B}}"}
"""
    ) == [
        (
            "m.yaml:2: warehouse.path: environment variable HOME_OF_TABLES is not set. "
            "Set it, or write ${HOME_OF_TABLES:-default}"
        ),
        "m.yaml:3: engine: environment variable ENGINE is not set. Set it, or write ${ENGINE:-default}",
        "m.yaml:6: sources[0].type: environment variable TYPE is not set. Set it, or write ${TYPE:-default}",
        "m.yaml:8: ingest.batch_events: environment variable BATCH is not set. Set it, or write ${BATCH:-default}",
    ] + [
        f"m.yaml:9: tags.{tag}: '${{' without a variable's name. "
        "Write ${NAME} or ${NAME:-default}, or $${ for the characters"
        for tag in "abc"
    ]


def test_values_of_variables_are_not_printed() -> None:
    text = """\
warehouse: {path: "s3://${S}"}
sources:
  - {type: "${S}", path: "${S}"}
  - {type: files, path: "${S}"}
  - {type: files, path: "${S}", pipeline_id: []}
engine: {name: "${S}", url: "${S}"}
ingest: {batch_events: "${S}"}
coverage: {stale_after_hours: "${S}"}
pipelines: "${S}"
schedule: {sensor: "${S}", safety_net_cron: "${S}"}
redaction: {persons: "${S}"}
jobs: {lookback_hours: "${DATE}"}
"""
    with pytest.raises(ConfigError) as error:
        settings_from(text, S=SECRET, DATE="2024-99-99")
    assert SECRET not in str(error.value)
    assert "2024-99" not in str(error.value)
    # A traceback would print the pydantic error, which holds the values.
    assert error.value.__cause__ is None and error.value.__context__ is None
    assert [line.split(": ")[1] for line in str(error.value).splitlines()] == [
        "warehouse.path",
        "sources[0].type",
        "sources[2].pipeline_id",
        "engine.name",
        "ingest.batch_events",
        "coverage.stale_after_hours",
        "pipelines",
        "schedule.safety_net_cron",
        "schedule.sensor",
        "redaction.persons",
        "jobs.lookback_hours",
    ]


def test_printing_shows_all_settings_and_no_values_of_variables() -> None:
    """R-OPS-06 the configuration in force can be read, and read back."""
    text = """\
warehouse: {catalog: main, schema: "${S}"}
sources:
  - {type: files, path: "${S}/logs"}
engine: {name: connect, url: "sc://host/;token=${S}"}
ingest:
  max_concurrent_streams: ${N:-5}
pipelines: {include: ["${S}", "b*"]}
tags: {a: "$${b}", c: plain}
"""
    settings = settings_from(text, S=SECRET)
    printed = settings.to_yaml()
    assert SECRET not in printed
    assert (
        printed
        == """\
warehouse:
  catalog: main
  schema: ${S}
engine:
  name: connect
  master: local[*]
  url: sc://host/;token=${S}
  conf: {}
sources:
- type: files
  path: ${S}/logs
  name: files:$${S}/logs
pipelines:
  include:
  - ${S}
  - b*
  exclude: []
  settings: []
ingest:
  max_concurrent_streams: ${N:-5}
  batch_events: 100000
  landing_retention_days: 7
coverage:
  stale_after_hours: 48.0
jobs:
  enabled: false
  lookback_hours: 168.0
costs:
  enabled: false
views: []
schedule:
  sensor: true
  safety_net_cron: 0 * * * *
  enabled: true
redaction:
  secret_references: keep
  persons: keep
calendars: []
slos: []
rules: {}
maintenance: []
snoozes: []
notifications:
  channels: {}
  routes: []
  fallback: []
  max_per_hour: 20
  reopen_hours: 24.0
  monitoring_job:
    on_start: []
    on_success: []
time_zone: UTC
tags:
  a: $${b}
  c: plain
"""
    )
    assert settings_from(printed, S=SECRET).model_dump() == settings.model_dump()


def test_printing_resolves_paths(tmp_path: Path) -> None:
    """R-OPS-06"""
    assert settings_from(MINIMAL).to_yaml().startswith(f"warehouse:\n  path: {tmp_path}/warehouse\n")


# Files that cannot be read


def test_missing_file_and_folder() -> None:
    with pytest.raises(ConfigError) as error:
        load(Path("none.yaml"), {})
    assert str(error.value) == "none.yaml: file not found. Check the path, or create the file"
    Path("folder").mkdir()
    with pytest.raises(ConfigError) as error:
        load("folder", {})
    assert str(error.value) == "folder: cannot be read: Is a directory. Check the path and its rights"


def test_not_text() -> None:
    Path("m.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigError) as error:
        load("m.yaml", {})
    assert str(error.value) == "m.yaml: not a text file. Save it as UTF-8"


HINT = "Check the indentation, and put values that start with a character such as * or { in quotes"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "m.yaml:1: the file is empty. Write at least 'warehouse' and 'sources'"),
        ("# only a comment\n", "m.yaml:1: the file is empty. Write at least 'warehouse' and 'sources'"),
        ("\n- a\n", "m.yaml:2: the file is not a mapping. Write 'key: value' lines"),
        ("a: 1\nb: c: d\n", f"m.yaml:2: column 5: invalid YAML: mapping values are not allowed here. {HINT}"),
        (
            "a:\n  include: [*]\n",
            (
                "m.yaml:2: column 14: invalid YAML: while scanning an alias, "
                f"expected alphabetic or numeric character, but found ']'. {HINT}"
            ),
        ),
        (
            "a: 1\n---\nb: 1\n",
            (
                "m.yaml:2: column 1: invalid YAML: expected a single document in the stream, "
                f"but found another document. {HINT}"
            ),
        ),
        ("a: 1\nb: \x00\n", "m.yaml:2: column 4: invalid YAML: unprintable character. Remove it"),
        ("a: &a [*a]\n", "m.yaml:1: an alias contains itself, or nesting is too deep. Remove it"),
    ],
)
def test_files_that_are_not_a_mapping(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_byte_order_mark_is_no_problem() -> None:
    assert settings_from("\ufeff" + BASE).sources == ()


# Wrong keys and values


def test_all_problems_are_listed() -> None:
    """R-CFG-11 a check lists everything that is wrong, not only the first."""
    assert problems(
        """\
warehouse:
  pth: ./warehouse
souces:
  - type: files
engine: sprk
ingest:
  batch_event: 5
  landing_retention_days: 0
frobnicate: 1
"""
    ) == [
        "m.yaml:1: sources: required key is missing. Add it",
        "m.yaml:2: warehouse.pth: unknown key 'pth', did you mean 'path'?",
        "m.yaml:3: souces: unknown key 'souces', did you mean 'sources'?",
        "m.yaml:5: engine.name: must be 'embedded', 'spark' or 'connect'",
        "m.yaml:7: ingest.batch_event: unknown key 'batch_event', did you mean 'batch_events'?",
        "m.yaml:8: ingest.landing_retention_days: must be a whole number of at least 1",
        (
            "m.yaml:9: frobnicate: unknown key 'frobnicate'. Valid keys: warehouse, engine, sources, lakehouse_plumber, "
            "pipelines, ingest, coverage, jobs, costs, views, schedule, remote, redaction, calendars, slos, rules, "
            "maintenance, snoozes, notifications, time_zone, tags"
        ),
    ]


def test_computed_settings_are_no_keys() -> None:
    assert problems(BASE + "config_path: x\n") == [
        (
            "m.yaml:3: config_path: unknown key 'config_path'. Valid keys: warehouse, engine, sources, lakehouse_plumber, "
            "pipelines, ingest, coverage, jobs, costs, views, schedule, remote, redaction, calendars, slos, rules, "
            "maintenance, snoozes, notifications, time_zone, tags"
        )
    ]


def test_duplicate_keys() -> None:
    assert problems("warehouse:\n  path: a\n  path: b\nsources: []\ntags: {}\nsources: []\n") == [
        "m.yaml:3: warehouse.path: duplicate key, first used in line 2. Remove one of them",
        "m.yaml:6: sources: duplicate key, first used in line 4. Remove one of them",
    ]


@pytest.mark.parametrize(
    "warehouse", ["{path: a, catalog: b, schema: c}", "{path: a, schema: c}", "{catalog: b}", "{}"]
)
def test_a_warehouse_is_in_one_place(warehouse: str) -> None:
    assert problems(f"warehouse: {warehouse}\nsources: []\n") == [
        "m.yaml:1: warehouse: must say one place. Set either 'path', or 'catalog' and 'schema' together"
    ]


def test_sources() -> None:
    assert problems(
        """\
warehouse: {path: ./w}
sources:
  - {type: fles, path: a}
  - {path: a}
  - {type: delta, path: a, overlap_hour: 3}
  - {type: delta, overlap_hours: 0}
  - {type: files, path: a, overlap_hours: 3}
  - {type: files, path: ""}
  - ./logs
"""
    ) == [
        "m.yaml:3: sources[0].type: must be 'files' or 'delta' or 'jobs' or 'workspace'",
        "m.yaml:4: sources[1].type: required key is missing. Add it",
        "m.yaml:5: sources[2].overlap_hour: unknown key 'overlap_hour', did you mean 'overlap_hours'?",
        "m.yaml:6: sources[3].overlap_hours: must be a number greater than 0",
        "m.yaml:6: sources[3].path: required key is missing. Add it",
        "m.yaml:7: sources[4].overlap_hours: unknown key 'overlap_hours'. Valid keys: type, path, name, pipeline_id",
        "m.yaml:8: sources[5].path: must not be empty. Write a path",
        "m.yaml:9: sources[6]: must be a mapping",
    ]


def test_names_of_sources_are_unique() -> None:
    assert problems(
        "warehouse: {path: w}\nsources:\n- {type: files, path: a}\n- {type: delta, path: a}\n- type: files\n  path: a\n"
        "- type: files\n  path: b\n  name: delta:a\n"
    ) == ["m.yaml:5: sources[2].name: is also the name of sources[0]. Give one of them another 'name'"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        *(
            (f"ingest: {{max_concurrent_streams: {value}}}", "ingest.max_concurrent_streams: " + allowed)
            for allowed, values in {
                "must be a whole number from 1 to 20": ["0", "21", "true", "5.5", "5.0", "'5'", "many", "[5]"],
                "has no value. It must be a whole number from 1 to 20": ["null"],
            }.items()
            for value in values
        ),
        ("ingest: {batch_events: 999}", "ingest.batch_events: must be a whole number of at least 1000"),
        ("coverage: {stale_after_hours: 0}", "coverage.stale_after_hours: must be a number greater than 0"),
        ("coverage: {stale_after_hours: true}", "coverage.stale_after_hours: must be a number greater than 0"),
        ("coverage: {stale_after_hours: .inf}", "coverage.stale_after_hours: must be a number greater than 0"),
        (
            "schedule: {sensor_interval_seconds: 9}",
            "schedule.sensor_interval_seconds: must be a whole number of at least 10",
        ),
        ("schedule: {enabled: 1}", "schedule.enabled: must be true or false"),
        ("schedule:", "schedule: has no value. It must be a mapping"),
        ("redaction: {persons: mask}", "redaction.persons: must be 'keep' or 'pseudonym'"),
        ("redaction: {secret_references: true}", "redaction.secret_references: must be 'keep' or 'mask'"),
        (
            "engine: {name: connect}",
            "engine.url: is required by engine 'connect'. Add the server's address, sc://host:port",
        ),
        (
            "engine: {name: connect, url: 'http://x'}",
            "engine.url: must start with 'sc://'. Write the server's address as sc://host:port",
        ),
        ("engine: [spark]", "engine: must be a mapping"),
        ("pipelines: {include: sales_*}", "pipelines.include: must be a list"),
        ("pipelines: {exclude: [a, 5]}", "pipelines.exclude[1]: must be text. Put it in quotes"),
        ("pipelines: {settings: [{owner: a}]}", "pipelines.settings[0].match: required key is missing. Add it"),
        (
            "pipelines: {settings: [{match: a, ownr: b}]}",
            "pipelines.settings[0].ownr: unknown key 'ownr', did you mean 'owner'?",
        ),
        (
            "pipelines: {settings: [{match: ''}]}",
            "pipelines.settings[0].match: must not be empty. Write a value, or remove the key",
        ),
        ("tags: {a: null}", "tags.a: has no value. It must be text"),
        ("tags: {a: [b]}", "tags.a: must be text"),
        ("tags: [a]", "tags: must be a mapping"),
        ("tags: {a: !env b}", "tags.a: cannot be read. Put it in quotes if it is meant as text"),
        ("tags: {[a]: b}", "tags.?: this key is a list or a mapping. Write plain text before the colon"),
    ],
)
def test_wrong_values_name_what_is_allowed(line: str, problem: str) -> None:
    """R-CFG-02 for max_concurrent_streams: 1 to 20, booleans and non-integers refused."""
    assert problems(BASE + line + "\n") == [f"m.yaml:3: {problem}"]


def test_a_warehouse_path_is_no_address() -> None:
    assert problems("warehouse: {path: s3://bucket/w}\nsources: []\n") == [
        "m.yaml:1: warehouse.path: must be a local folder. For tables kept elsewhere set 'catalog' and 'schema' instead"
    ]


def test_records_of_jobs_are_read_from_folders() -> None:
    """OWN: records in a catalog or an object store are written but not read: that is said, with what to do."""
    written = "warehouse: {path: ./w}\nsources:\n  - {type: jobs, path: %s}\n"
    (schema,), (address,) = problems(written % "monitoring.pipeline_ops"), problems(written % "s3://bucket/records")
    assert schema == (
        "m.yaml:3: sources[0].path: must be a path with a slash: without one it names a schema of a catalog, where "
        "records are not read. Let the jobs record in a folder or a volume, and write its path: ./records, /Volumes/…"
    )
    assert address == (
        "m.yaml:3: sources[0].path: must be a folder: records in an object store are not read. "
        "Let the jobs record in a mounted folder"
    )


@pytest.mark.parametrize("cron", ["0 * * * *", "*/5 0-6,22 1 JAN-mar sun", "0  6 * * 1-5/2"])
def test_cron(cron: str) -> None:
    assert settings_from(BASE + f"schedule: {{safety_net_cron: '{cron}'}}\n").schedule.safety_net_cron == cron


@pytest.mark.parametrize("cron", ["", "hourly", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "*/0 * * * *"])
def test_wrong_cron(cron: str) -> None:
    assert problems(BASE + f"schedule: {{safety_net_cron: '{cron}'}}\n") == [
        (
            "m.yaml:3: schedule.safety_net_cron: must be a cron expression: minute, hour, day, month, weekday. "
            "For every hour write '0 * * * *'"
        )
    ]
