"""Lakehouse Plumber's own files as configuration: defaults, tokens, opting out, and one test for each fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitoring_platform.config import ConfigError, LogPlace, PlumberProject, Settings, SummaryView, load
from monitoring_platform.config.plumber import JOB_DEFAULTS, deep_merge
from monitoring_platform.health.status import preview
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import NOW, Site, state

MONITORING_YAML = """\
warehouse: {path: ./warehouse}
sources: []
lakehouse_plumber:
  project: ./lhp.yaml
  environment: dev
"""
LHP = """\
name: retail
version: "1.0"
event_log:
  catalog: "${catalog}"
  schema: _meta
  name_suffix: "_event_log"
monitoring:
  checkpoint_path: "/Volumes/${catalog}/_meta/checkpoints"
  job_config_path: config/job.yaml
"""
JOB = """\
max_concurrent_runs: 1
performance_target: STANDARD
queue:
  enabled: true
tags:
  managed_by: lakehouse_plumber
  environment: ${bundle.target}
"""
TOKENS = """\
global: {db: sales, catalog: shared}
dev: {catalog: retail_dev, region: eu, number: 0042, flag: true, joined: "${region}-${db}"}
prod: {catalog: retail_prod}
secrets: {default_scope: s}
"""
EVENT_LOG = "event_log: {catalog: c, schema: s}\n"

Files = dict[str, str]
Write = Callable[..., Settings]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the files of a project, `lhp` and others given by path, and loads the configuration."""
    monkeypatch.chdir(tmp_path)

    def make(lhp: str = LHP, config: str = MONITORING_YAML, files: Files | None = None, **environ: str) -> Settings:
        given = {"config/job.yaml": JOB, "substitutions/dev.yaml": TOKENS, "lhp.yaml": lhp, "m.yaml": config}
        for name, text in {**given, **(files or {})}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return load("m.yaml", environ)

    return make


@pytest.fixture
def project(write: Write) -> Callable[..., PlumberProject]:
    """The project of such files."""

    def make(*arguments: Any, **named: Any) -> PlumberProject:
        found = write(*arguments, **named).plumber
        assert found is not None
        return found

    return make


@pytest.fixture
def problems(write: Write) -> Callable[..., list[str]]:
    """What is wrong with such files."""

    def make(*arguments: Any, **named: Any) -> list[str]:
        with pytest.raises(ConfigError) as error:
            write(*arguments, **named)
        return str(error.value).splitlines()

    return make


def monitoring(*lines: str) -> str:
    """A project with a sound event_log and these lines in its monitoring block."""
    return EVENT_LOG + "monitoring:\n  checkpoint_path: /v\n  job_config_path: config/job.yaml\n" + "".join(
        f"  {line}\n" for line in lines
    )  # fmt: skip


def pipelines(text: str) -> dict[str, Any]:
    """Arguments for a pipeline configuration file."""
    return {"config": MONITORING_YAML + "  pipeline_config: config/p.yaml\n", "files": {"config/p.yaml": text}}


# What is taken over


def test_two_blocks_and_a_job_file(project: Any, tmp_path: Path) -> None:
    """R-CFG-01, R-CFG-02, R-CFG-15: the minimal project, every default."""
    found = project()
    assert found == PlumberProject(
        name="retail",
        environment="dev",
        folder=tmp_path,
        event_log_enabled=True,
        monitoring_enabled=True,
        catalog="retail_dev",
        schema="_meta",
        name_prefix="",
        name_suffix="_event_log",
        pipeline_name="retail_event_log_monitoring",
        monitoring_catalog="retail_dev",
        monitoring_schema="_meta",
        streaming_table="all_pipelines_event_log",
        checkpoint_path="/Volumes/retail_dev/_meta/checkpoints",
        job_settings={
            **JOB_DEFAULTS,
            "tags": {"managed_by": "lakehouse_plumber", "environment": "${bundle.target}"},
        },
        max_concurrent_streams=10,
        views=None,
        enable_job_monitoring=False,
        tokens=found.tokens,
    )


def test_without_the_section_there_is_no_project(write: Write) -> None:
    assert write(config="warehouse: {path: ./w}\nsources: []\n").plumber is None


def test_every_setting(project: Any) -> None:
    """R-CFG-01, R-CFG-02: each one is taken as written."""
    lhp = """\
event_log: {enabled: true, catalog: c, schema: s, name_prefix: el_, name_suffix: _x}
monitoring:
  enabled: true
  pipeline_name: watch
  catalog: c2
  schema: s2
  streaming_table: everything
  checkpoint_path: /v
  job_config_path: config/job.yaml
  max_concurrent_streams: 20
  enable_job_monitoring: true
  materialized_views: []
"""
    found = project(lhp)
    assert found.log_table("a") == "c.s.el_a_x"
    assert (found.pipeline_name, found.monitoring_catalog, found.monitoring_schema) == ("watch", "c2", "s2")
    assert (found.streaming_table, found.checkpoint_path) == ("everything", "/v")
    assert (found.max_concurrent_streams, found.views, found.enable_job_monitoring) == (20, (), True)


def test_naming_rule(project: Any) -> None:
    """R-ING-15: prefix, name and suffix in catalog and schema."""
    found = project()
    assert found.log_table("bronze_orders") == "retail_dev._meta.bronze_orders_event_log"
    assert found.log_place("bronze_orders") == LogPlace("retail_dev", "_meta", "bronze_orders_event_log")


def test_a_pipeline_with_a_log_of_its_own_is_read_there(project: Any) -> None:
    """R-ING-15, E-24, R-CFG-13: the override replaces the rule; catalog and schema default to the pipeline's."""
    found = project(
        **pipelines(
            "project_defaults: {catalog: '${catalog}', schema: bronze, serverless: true}\n"
            "---\npipeline: a\nevent_log: {name: own, catalog: c2, schema: s2}\n"
            "---\npipeline: b\nschema: gold\nevent_log: {name: 'b_${region}'}\n"
            "---\npipeline: [d, e]\nserverless: false\n"
            "---\npipeline: __eventlog_monitoring\nevent_log: {name: m}\n"
        )
    )
    assert {name: found.log_table(name) for name in "abd"} == {
        "a": "c2.s2.own",
        "b": "retail_dev.gold.b_eu",
        "d": "retail_dev._meta.d_event_log",
    }
    assert found.log_table("retail_event_log_monitoring") == "retail_dev.bronze.m"


def test_pipeline_configuration_as_a_list_and_with_shared_settings(project: Any) -> None:
    found = project(
        **pipelines("- &a\n  pipeline: a\n  event_log: {name: x, catalog: c, schema: s}\n- {<<: *a, pipeline: b}\n")
    )
    assert [found.log_table(name) for name in "ab"] == ["c.s.x", "c.s.x"]


def test_opting_out(write: Write) -> None:
    """R-ING-16: no log, and events of it are left out wherever they come from; other pipelines are not touched."""
    settings = write(
        **pipelines("pipeline: ['odd[1]', b]\nevent_log: false\n---\npipeline: c\nevent_log: null\n"),
    )
    assert settings.plumber is not None
    assert [settings.plumber.log_table(name) for name in ("odd[1]", "b")] == [None, None]
    assert settings.plumber.log_table("c") == "retail_dev._meta.c_event_log"
    assert [settings.is_included("id", name) for name in ("odd[1]", "odd1", "b", "c")] == [False, True, False, True]


def test_opted_out_events_stay_out_and_history_stays(make_site: Callable[..., Site]) -> None:
    """R-ING-16: old rows remain, new ones are not ingested, the ledger says why."""
    site = make_site()
    site.write("a.jsonl", state("1", 0, "RUNNING"))
    site.cycle()
    (site.folder / "lhp.yaml").write_text("name: x\nevent_log: {catalog: c, schema: s}\n")
    (site.folder / "p.yaml").write_text("pipeline: pipe\nevent_log: false\n")
    file = site.folder / "monitoring.yaml"
    section = "lakehouse_plumber: {project: ./lhp.yaml, environment: dev, pipeline_config: ./p.yaml}\n"
    file.write_text(file.read_text() + section)
    site.warehouse = open_warehouse(load(file))
    site.write("a.jsonl", state("2", 9, "COMPLETED"))
    site.cycle()
    assert [row["event_id"] for row in site.rows("all_pipelines_event_log")] == ["1"]
    ledger = site.row("pipelines", pipeline_id="p")
    assert (ledger["state"], ledger["reason"]) == ("excluded", "excluded by configuration")


def test_opted_out_by_default(project: Any) -> None:
    """`event_log: false` in project_defaults: only pipelines with a log of their own have one."""
    found = project(
        **pipelines(
            "project_defaults: {event_log: false}\n---\npipeline: a\nevent_log: {name: x, catalog: c, schema: s}\n"
        )
    )
    assert (found.log_table("a"), found.log_table("b")) == ("c.s.x", None)


def test_validate_lists_pipelines_with_their_tables(write: Write, tmp_path: Path) -> None:
    """R-ING-14, R-ING-15, R-CFG-11: flow groups and the pipeline configuration name them; nothing is written."""
    flow_groups = {
        "pipelines/a/orders.yaml": 'pipeline: "bronze_orders"  # first\nflowgroup: x\nactions:\n  pipeline: no\n',
        "pipelines/b.yml": "flowgroup: x\npipeline: silver_${region}\n---\npipeline: debug\nflowgroup: y\n",
        "pipelines/c.yaml": "pipeline: '{{ template }}'\n",
    }
    arguments = pipelines("pipeline: debug\nevent_log: false\n")
    settings = write(config=arguments["config"], files={**arguments["files"], **flow_groups})
    found = preview(open_warehouse(settings), NOW)
    assert [(row["pipelines"], row["log"], row["result"].split(":")[0].split(";")[0]) for row in found] == [
        (["bronze_orders"], "retail_dev._meta.bronze_orders_event_log", "named by the project"),
        (["debug"], None, "excluded by configuration"),
        (["silver_eu"], "retail_dev._meta.silver_eu_event_log", "named by the project"),
    ]
    assert not (tmp_path / "warehouse").exists()


def test_only_included_flow_groups_count(project: Any) -> None:
    flow_groups = {
        f"pipelines/{name}.yaml": f"pipeline: {name.replace('/', '_')}\n" for name in ("a/x", "a/b/y", "z", "a/q")
    }
    found = project('include: ["a/**/[xy].yaml", "a/b/*.yaml", "z.yaml"]\n' + LHP, files=flow_groups)
    assert found.pipelines() == ["a_b_y", "z"]


# Off without deleting


def test_monitoring_switched_off(project: Any, write: Write) -> None:
    """R-CFG-03: the settings stay, nothing is required, and `validate` says so."""
    lhp = EVENT_LOG + "monitoring: {enabled: false, max_concurrent_streams: 3}\n"
    assert not project(lhp).monitoring_enabled
    assert [row["result"] for row in preview(open_warehouse(write(lhp)), NOW)] == [
        "switched off by the project: monitoring.enabled is false"
    ]


def test_event_log_switched_off(project: Any) -> None:
    """R-CFG-03: with catalog and schema kept or not."""
    found = project("event_log: {enabled: false, catalog: c}\nmonitoring: {enabled: false}\n")
    assert (found.event_log_enabled, found.catalog, found.log_table("a")) == (False, "c", None)


def test_event_log_alone_and_no_blocks(project: Any) -> None:
    """Only `enabled: false` switches monitoring off: the place of the logs is enough for this product."""
    found = project(EVENT_LOG)
    assert (found.monitoring_enabled, found.log_table("a"), found.job_settings) == (True, "c.s.a", JOB_DEFAULTS)
    assert project("name: x\n").log_table("a") is None


# Tokens


def test_tokens_by_environment(project: Any) -> None:
    """R-CFG-04: two environments give different tables from one file; global tokens fill in."""
    files = {"substitutions/prod.yaml": TOKENS}
    prod = MONITORING_YAML.replace("dev", "prod")
    assert project().log_table("a") == "retail_dev._meta.a_event_log"
    assert project(config=prod, files=files).log_table("a") == "retail_prod._meta.a_event_log"
    test = MONITORING_YAML.replace("environment: dev", "environment: test\n  substitutions: substitutions/dev.yaml")
    assert project(config=test).log_table("a") == "shared._meta.a_event_log"


def test_values_of_tokens(project: Any) -> None:
    """Tokens in tokens, numbers and flags as they are spelled, the two that are always there."""
    lhp = 'event_log: {catalog: "${joined}_${number}_${flag}", schema: "${workspace_env}_${logical_env}"}\n'
    assert project(lhp).log_table("a") == "eu-sales_0042_true.dev_dev.a"
    assert project(lhp, LOGICAL_ENV="blue").log_table("a") == "eu-sales_0042_true.dev_blue.a"


def test_runtime_tokens_pass_through(project: Any) -> None:
    """R-CFG-04: they are resolved where the pipelines are deployed; other blocks are none of our business."""
    lhp = 'other: "${nowhere}"\nevent_log: {catalog: "${bundle.target}", schema: "${secret:a/b}"}\n'
    assert project(lhp).log_table("a") == "${bundle.target}.${secret:a/b}.a"


def test_unresolved_tokens(problems: Any) -> None:
    """R-CFG-04: the error names the token, file, line and key."""
    lhp = LHP.replace("_meta\n", '"${nowhere}"\n', 1).replace('"_event_log"', '"${ring}"')
    tokens = TOKENS.replace("region: eu", 'region: eu, ring: "${gnir}", gnir: "${ring}", half: "${lost}"')
    lhp += '  pipeline_name: "${half}"\n'
    assert problems(lhp, files={"substitutions/dev.yaml": tokens}) == [
        (
            "lhp.yaml:5: event_log.schema: LHP-CFG-006: token ${nowhere} is not defined for environment 'dev'. "
            "Add it to substitutions/dev.yaml"
        ),
        (
            "lhp.yaml:6: event_log.name_suffix: LHP-CFG-006: token ${ring} refers to itself. "
            "Correct it in substitutions/dev.yaml"
        ),
        (
            "lhp.yaml:10: monitoring.pipeline_name: LHP-CFG-008: token ${lost} is not defined for environment 'dev'. "
            "Add it to substitutions/dev.yaml"
        ),
    ]


def test_token_files(problems: Any) -> None:
    missing = MONITORING_YAML + "  substitutions: ./tokens.yaml\n"
    assert problems(config=missing) == ["tokens.yaml: file not found. Check the path, or create the file"]
    assert problems(files={"substitutions/dev.yaml": "dev: [a]\n"}) == [
        "substitutions/dev.yaml:1: dev: must be a mapping. Write 'token: value' lines"
    ]


# The section itself and the files


def test_section(problems: Any) -> None:
    base = "warehouse: {path: ./w}\nsources: []\nlakehouse_plumber: "
    assert problems(config=base + "{projekt: x}\n") == [
        "m.yaml:3: lakehouse_plumber.environment: required key is missing. Add it",
        "m.yaml:3: lakehouse_plumber.project: required key is missing. Add it",
        "m.yaml:3: lakehouse_plumber.projekt: unknown key 'projekt', did you mean 'project'?",
    ]
    assert problems(config=base + "{project: 's3://x/lhp.yaml', environment: dev}\n") == [
        "m.yaml:3: lakehouse_plumber.project: must be a local file. Write its path"
    ]


def test_project_file(problems: Any) -> None:
    config = MONITORING_YAML.replace("./lhp.yaml", "../other/lhp.yaml")
    assert problems(config=config) == ["../other/lhp.yaml: file not found. Check the path, or create the file"]
    assert problems("- a\n") == ["lhp.yaml:1: the file is not a mapping. Write 'key: value' lines"]
    (line,) = problems("a: b: c\n")
    assert line.startswith("lhp.yaml:1: column 5: invalid YAML")


def test_values_of_variables_are_not_printed(problems: Any, tmp_path: Path) -> None:
    config = MONITORING_YAML.replace("./lhp.yaml", "${SECRET}/lhp.yaml")
    (line,) = problems(config=config, SECRET=str(tmp_path / "s3cr3t"))
    assert line == "${SECRET}/lhp.yaml: file not found. Check the path, or create the file"


def test_printing(write: Write, tmp_path: Path) -> None:
    """R-OPS-06: what is in force can be printed and read back."""
    settings = write(monitoring("max_concurrent_streams: 3"), **pipelines("pipeline: b\nevent_log: false\n"))
    assert settings.ingest.max_concurrent_streams == 3
    (tmp_path / "m.yaml").write_text(settings.to_yaml())
    assert load("m.yaml", {}).model_dump() == settings.model_dump()


def test_own_number_of_streams_wins(write: Write) -> None:
    settings = write(
        monitoring("max_concurrent_streams: 3"), config=MONITORING_YAML + "ingest: {max_concurrent_streams: 7}\n"
    )
    assert settings.ingest.max_concurrent_streams == 7


@pytest.mark.parametrize(
    ("block", "config", "is_on"),
    [
        ("enable_job_monitoring: true", "", True),
        ("", "", False),
        ("enable_job_monitoring: true", "jobs: {enabled: false}\n", False),
        ("", "jobs: {enabled: true, lookback_hours: 24}\n", True),
    ],
)
def test_job_monitoring_turns_jobs_on(write: Write, block: str, config: str, is_on: bool) -> None:
    """R-JOB-02: the project's switch, unless the configuration says otherwise."""
    assert write(monitoring(block), config=MONITORING_YAML + config).jobs.enabled is is_on


# event_log


@pytest.mark.parametrize(
    ("block", "problem"),
    [
        ("[a]", "event_log: LHP-CFG-006: must be a mapping. Write catalog, schema and others below it"),
        ("", "event_log: LHP-CFG-006: must be a mapping. Write catalog, schema and others below it"),
        ("{enabled: 1, catalog: c, schema: s}", "event_log.enabled: LHP-CFG-006: must be true or false"),
        ("{catalog: 5, schema: s}", "event_log.catalog: LHP-CFG-006: must be text. Put it in quotes"),
        ("{catalog: c, schema: [s]}", "event_log.schema: LHP-CFG-006: must be text"),
        (
            "{catalog: c, schema: s, name_sufix: x}",
            "event_log.name_sufix: LHP-CFG-006: unknown key 'name_sufix', did you mean 'name_suffix'?",
        ),
        *(
            (
                given,
                f"event_log.{key}: LHP-CFG-007: is required while event_log is enabled. Add it, or set 'enabled: false'",
            )
            for given, key in (
                ("{schema: s}", "catalog"),
                ("{catalog: c}", "schema"),
                ("{catalog: c, schema: ''}", "schema"),
            )
        ),
    ],
)
def test_faults_of_event_log(problems: Any, block: str, problem: str) -> None:
    """R-CFG-01, R-CFG-06, R-CFG-07."""
    assert problems(f"event_log: {block}\n") == [f"lhp.yaml:1: {problem}"]


def test_unknown_settings_of_newer_versions_are_left_alone(project: Any) -> None:
    assert project("event_log: {catalog: c, schema: s, colour: red}\n").log_table("a") == "c.s.a"


# monitoring


@pytest.mark.parametrize("block", ["[a]", "text"])
def test_monitoring_is_a_mapping(problems: Any, block: str) -> None:
    """R-CFG-08."""
    assert problems(EVENT_LOG + f"monitoring: {block}\n") == [
        "lhp.yaml:2: monitoring: LHP-CFG-008: must be a mapping. Write pipeline_name, catalog and others below it"
    ]


@pytest.mark.parametrize("event_log", ["", "event_log: {enabled: false}\n"])
def test_monitoring_needs_event_log(problems: Any, event_log: str) -> None:
    """R-CFG-08."""
    lhp = event_log + "monitoring: {checkpoint_path: /v, job_config_path: config/job.yaml}\n"
    assert problems(lhp) == [
        f"lhp.yaml:{1 + bool(event_log)}: monitoring: LHP-CFG-008: needs event_log to be there and enabled. "
        "Add it, or set 'enabled: false' here"
    ]


@pytest.mark.parametrize("block", ["", "{checkpoint_path: '', job_config_path: null}"])
def test_required_by_monitoring(problems: Any, block: str) -> None:
    """R-CFG-08: Lakehouse Plumber refuses a block without them."""
    assert problems(EVENT_LOG + f"monitoring: {block}\n") == [
        f"lhp.yaml:2: monitoring.{key}: LHP-CFG-008: is required while monitoring is enabled. "
        "Add it, or set 'enabled: false'"
        for key in ("checkpoint_path", "job_config_path")
    ]


@pytest.mark.parametrize("value", ["0", "21", "true", "5.0", "'5'", "null", "[5]", "${n}"])
def test_max_concurrent_streams(problems: Any, value: str) -> None:
    """R-CFG-02, R-CFG-08: 1 to 20, booleans and non-integers refused; tokens fill text only."""
    assert problems(monitoring(f"max_concurrent_streams: {value}")) == [
        "lhp.yaml:5: monitoring.max_concurrent_streams: LHP-CFG-008: must be a whole number from 1 to 20"
    ]


@pytest.mark.parametrize("value", [1, 20])
def test_limits_of_max_concurrent_streams(project: Any, value: int) -> None:
    assert project(monitoring(f"max_concurrent_streams: {value}")).max_concurrent_streams == value


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("enabled: yes please", "enabled: LHP-CFG-008: must be true or false"),
        ("enable_job_monitoring: 1", "enable_job_monitoring: LHP-CFG-008: must be true or false"),
        ("pipeline_name: 5", "pipeline_name: LHP-CFG-008: must be text. Put it in quotes"),
        ("streaming_table: {a: b}", "streaming_table: LHP-CFG-008: must be text"),
        ("catalog: true", "catalog: LHP-CFG-008: must be text. Put it in quotes"),
        (
            "max_concurent_streams: 5",
            (
                "max_concurent_streams: LHP-CFG-008: unknown key 'max_concurent_streams', "
                "did you mean 'max_concurrent_streams'?"
            ),
        ),
    ],
)
def test_types_of_monitoring(problems: Any, line: str, problem: str) -> None:
    """R-CFG-02: each wrong type names key and what is allowed."""
    assert problems(monitoring(line)) == [f"lhp.yaml:5: monitoring.{problem}"]


def test_all_problems_at_once(problems: Any) -> None:
    """R-CFG-11: of all files, in the order of the lines."""
    found = problems("event_log: {catalog: 1}\nmonitoring: {max_concurrent_streams: 0}\n", **pipelines("- 5\n"))
    assert [line.split(": LHP")[0] for line in found] == [
        "config/p.yaml:1: [0]: must be a mapping. Write 'pipeline: <name>' and its settings",
        "lhp.yaml:1: event_log.catalog",
        "lhp.yaml:1: event_log.schema",
        "lhp.yaml:2: monitoring.checkpoint_path",
        "lhp.yaml:2: monitoring.job_config_path",
        "lhp.yaml:2: monitoring.max_concurrent_streams",
    ]


# Views


def test_views(project: Any) -> None:
    """R-CFG-02, R-CFG-10: null = default, [] = none, a list replaces; tokens are filled in, also in files."""
    assert project(monitoring("materialized_views: null")).views is None
    assert project(monitoring("materialized_views: []")).views == ()
    found = project(
        monitoring(
            "materialized_views:",
            "  - {name: errors, sql: \"SELECT '${region}' AS r\"}",
            "  - {name: own, sql_path: 'sql/${region}.sql'}",
        ),
        files={"sql/eu.sql": "SELECT 1 FROM ${catalog}.t WHERE x = '${bundle.target}'\n"},
    )
    assert found.views == (
        SummaryView("errors", "SELECT 'eu' AS r"),
        SummaryView("own", "SELECT 1 FROM retail_dev.t WHERE x = '${bundle.target}'\n"),
    )


@pytest.mark.parametrize(
    ("views", "problem"),
    [
        ("text", ": must be a list. Write '- name: …' entries, [] for no view, or remove the key for the default"),
        ("{a: b}", ": must be a list. Write '- name: …' entries, [] for no view, or remove the key for the default"),
        ("[a]", "[0]: must be a mapping. Write 'name', and 'sql' or 'sql_path'"),
        ("[{sql: SELECT 1}]", "[0].name: required key is missing. Add it"),
        ("[{name: '', sql: SELECT 1}]", "[0].name: required key is missing. Add it"),
        ("[{name: 5, sql: SELECT 1}]", "[0].name: must be text. Put it in quotes"),
        (
            "[{name: a, sql: SELECT 1}, {name: a, sql: SELECT 2}]",
            "[1].name: is also the name of materialized_views[0]. Give one of them another name",
        ),
        ("[{name: a, sql: SELECT 1, sql_path: x.sql}]", "[0]: has both 'sql' and 'sql_path'. Keep one of them"),
        ("[{name: a}]", "[0]: has neither 'sql' nor 'sql_path'. Add one of them"),
        ("[{name: a, sql: ''}]", "[0]: has neither 'sql' nor 'sql_path'. Add one of them"),
        ("[{name: a, sql: [b]}]", "[0].sql: must be text"),
        (
            "[{name: a, sql_path: none.sql}]",
            "[0].sql_path: no readable file is there. Check the path, which is relative to the project",
        ),
    ],
)
def test_faults_of_views(problems: Any, views: str, problem: str) -> None:
    """R-CFG-08, E-23."""
    at, _, text = problem.partition(": ")
    assert problems(monitoring(f"materialized_views: {views}")) == [
        f"lhp.yaml:5: monitoring.materialized_views{at}: LHP-CFG-008: {text}"
    ]


# Job file


def test_job_file_is_merged_over_the_defaults(project: Any) -> None:
    """R-CFG-05: maps merge recursively, lists replace wholly, unknown keys pass through."""
    job = """\
queue: {max: 3}
tags: {environment: "${bundle.target}", region: "${region}"}
email_notifications: {on_failure: ["a@b.c"]}
notebook_cluster: {existing_cluster_id: x}
something_new: [1, 2]
"""
    assert project(files={"config/job.yaml": job}).job_settings == {
        "max_concurrent_runs": 1,
        "performance_target": "STANDARD",
        "queue": {"enabled": True, "max": 3},
        "tags": {"environment": "${bundle.target}", "region": "eu"},
        "email_notifications": {"on_failure": ["a@b.c"]},
        "notebook_cluster": {"existing_cluster_id": "x"},
        "something_new": [1, 2],
    }


@pytest.mark.parametrize(
    ("defaults", "given", "merged"),
    [
        ({"a": 1, "b": 2}, {"b": 3}, {"a": 1, "b": 3}),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 3}}}, {"a": {"b": {"c": 3, "d": 2}}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
        ({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {}, {"a": {"b": 1}}),
    ],
)
def test_deep_merge(defaults: Any, given: Any, merged: Any) -> None:
    """R-CFG-05."""
    assert deep_merge(defaults, given) == merged


def test_job_file_is_checked_late_where_its_path_is_known_late(project: Any) -> None:
    """R-CFG-08: a runtime token in the path postpones the check."""
    lhp = LHP.replace("config/job.yaml", '"config/${bundle.target}.yaml"')
    assert project(lhp).job_settings == JOB_DEFAULTS


CHECK = "Check the path, which is relative to the project, or create the file"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("config/none.yaml", f"LHP-CFG-008: no file is there. {CHECK}"),
        ('"config/${region}.yaml"', f"LHP-IO-001: no file is there. {CHECK}"),
        ("config", f"LHP-IO-001: is no readable file. {CHECK}"),
    ],
)
def test_job_file_that_is_not_there(problems: Any, path: str, problem: str) -> None:
    """R-CFG-08, R-CFG-09."""
    assert problems(LHP.replace("config/job.yaml", path)) == [f"lhp.yaml:9: monitoring.job_config_path: {problem}"]


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        ("a: 1\nb: [\n", "3: LHP-IO-002: column 1: invalid YAML"),
        ("a: 1\n---\nb: 2\n", "2: LHP-IO-002: column 1: invalid YAML"),
        ("\n- a\n", "2: LHP-CFG-008: the file is not a mapping"),
        ("", "1: LHP-CFG-008: the file is empty"),
        ("a: 1\nproject_defaults: {b: 1}\n", "2: project_defaults: LHP-CFG-008: is not allowed in the job file"),
        ("job_name: x\n", "1: job_name: LHP-CFG-008: is not allowed in the job file"),
        (
            "notebook_cluster: {new_cluster: {a: 1}, existing_cluster_id: x}\n",
            "1: notebook_cluster: LHP-CFG-008: has both 'new_cluster' and 'existing_cluster_id'",
        ),
        ("a: 1\ntags: {b: '${lost}'}\n", "2: tags.b: LHP-CFG-008: token ${lost} is not defined"),
    ],
)
def test_faults_of_the_job_file(problems: Any, job: str, problem: str) -> None:
    """R-CFG-05, R-CFG-09: invalid and unreadable files, wrappers and names, each with file and line."""
    (found,) = problems(files={"config/job.yaml": job})
    assert found.startswith(f"config/job.yaml:{problem}")


def test_job_file_that_is_no_text(problems: Any, tmp_path: Path) -> None:
    """R-CFG-09."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "binary.yaml").write_bytes(b"a: \xff\n")
    assert problems(LHP.replace("job.yaml", "binary.yaml")) == [
        "config/binary.yaml: LHP-IO-001: not a text file. Save it as UTF-8"
    ]


# Pipeline configuration


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pipeline: a\nevent_log: true\n", "2: [0].event_log: LHP-CFG-006: must be a mapping with 'name', or false"),
        ("pipeline: a\nevent_log: {catalog: c, schema: s}\n", "2: [0].event_log.name: LHP-CFG-007: is required"),
        ("pipeline: a\nschema: s\nevent_log: {name: x}\n", "3: [0].event_log.catalog: LHP-CFG-007: is required"),
        ("pipeline: a\ncatalog: c\nevent_log: {name: x}\n", "3: [0].event_log.schema: LHP-CFG-007: is required"),
        (
            "pipeline: a\ncatalog: c\nschema: s\nevent_log: {name: 5}\n",
            "4: [0].event_log.name: LHP-CFG-006: must be text",
        ),
        ("event_log: false\n", "1: [0].pipeline: must be the name of a pipeline"),
        ("- text\n", "1: [0]: must be a mapping"),
        ("pipeline: a\n---\npipeline: a\n", "3: [1].pipeline: is also set in entry [0]"),
        (
            "pipeline: a\nevent_log: {name: '${lost}', catalog: c, schema: s}\n",
            "2: [0].event_log.name: LHP-CFG-006: token ${lost}",
        ),
        ("pipeline: [\n", "2: column 1: invalid YAML"),
    ],
)
def test_faults_of_the_pipeline_configuration(problems: Any, text: str, problem: str) -> None:
    """R-CFG-13, E-24."""
    found = problems(**pipelines(text))
    assert found[0].startswith(f"config/p.yaml:{problem}")


def test_pipeline_configuration_that_is_not_there(problems: Any) -> None:
    config = MONITORING_YAML + "  pipeline_config: config/none.yaml\n"
    assert problems(config=config) == ["config/none.yaml: file not found. Check the path, or create the file"]
