"""What is deployed to Databricks, as far as it can be checked without a workspace."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import yaml
from databricks.sdk.service.jobs import JobSettings

from monitoring_platform.config import load

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "deploy" / "databricks"


def test_the_job_is_one_that_the_service_knows() -> None:
    """It passes through the SDK's own class unchanged: no member is unknown, none is misspelt."""
    bundle = yaml.safe_load((BUNDLE / "databricks.yml").read_text(encoding="utf-8"))
    job = bundle["resources"]["jobs"]["refresh"]
    assert JobSettings.from_dict(job).as_dict() == job
    assert (job["max_concurrent_runs"], job["queue"]) == (1, {"enabled": True})  # R-OPS-02


def test_the_configuration_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catalog and schema come from the environment that the job gives its cluster; no secret stands in it."""
    bundle = yaml.safe_load((BUNDLE / "databricks.yml").read_text(encoding="utf-8"))
    cluster = bundle["resources"]["jobs"]["refresh"]["job_clusters"][0]["new_cluster"]
    for name in cluster["spark_env_vars"]:
        monkeypatch.setenv(name, "monitoring")
    settings = load(BUNDLE / "monitoring.yaml")
    assert (settings.warehouse.catalog, settings.warehouse.schema_name) == ("monitoring", "monitoring")
    assert [source.name for source in settings.sources] == ["workspace"]


def test_what_the_command_line_names() -> None:
    """Every variable that the bundle's texts set is declared; production has one place, whoever deploys."""
    text = (BUNDLE / "databricks.yml").read_text(encoding="utf-8")
    bundle = yaml.safe_load(text)
    told = re.findall(r"--var (\S+)", text + (BUNDLE / "README.md").read_text(encoding="utf-8"))
    named = {pair.split("=")[0] for pairs in told for pair in pairs.split(",")}
    assert named
    assert named <= set(bundle["variables"])
    assert bundle["targets"]["prod"]["workspace"]["root_path"].startswith("/Workspace/Shared/")


def test_the_wheel(tmp_path: Path) -> None:
    """It has the job's entry point, the SQL, and no Spark among what it needs: a cluster has its own."""
    source = tmp_path / "source"  # a build leaves files behind
    shutil.copytree(
        ROOT / "monitoring_platform", source / "monitoring_platform", ignore=shutil.ignore_patterns("*.pyc")
    )
    shutil.copy(ROOT / "pyproject.toml", source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(source)], check=True, capture_output=True)
    (file,) = tmp_path.glob("monitoring_platform-*.whl")
    with zipfile.ZipFile(file) as wheel:
        names = wheel.namelist()
        info = next(name for name in names if name.endswith("/METADATA"))
        metadata = Parser().parsestr(wheel.read(info).decode())
        scripts = wheel.read(info.replace("METADATA", "entry_points.txt")).decode()
    needed = [text for text in metadata.get_all("Requires-Dist", []) if "extra ==" not in text]
    assert not [text for text in needed if ("spark" in text and "dagster" not in text) or "pysail" in text]
    assert "monitoring-platform-job = monitoring_platform.orchestration.job:main" in scripts
    assert "monitoring_platform/marts/pipeline_runs.sql" in names
    assert "monitoring_platform/orchestration/dagster.yaml" in names
