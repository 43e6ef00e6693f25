"""docs/add_a_table.md does what it says: its steps are taken on a copy of the project, and its test is run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "add_a_table.md").read_text(encoding="utf-8")


def test_one_more_table(tmp_path: Path) -> None:
    """One .sql, one contract with its entry, one test: nothing else is needed."""
    sql, contract, entry, test = re.findall(r"```(?:sql|python)\n(.*?)```", PAGE, re.S)
    marts = tmp_path / "monitoring_platform" / "marts"
    shutil.copytree(ROOT / "monitoring_platform", tmp_path / "monitoring_platform")
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("data", "acceptance"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (marts / "cancellations.sql").write_text(sql, encoding="utf-8")
    with (marts / "tables" / "runs.py").open("a", encoding="utf-8") as file:
        file.write(contract)
    registry = (marts / "registry.py").read_text(encoding="utf-8")
    end = "    # from everything\n"
    assert registry.count(end) == 1
    (marts / "registry.py").write_text(registry.replace(end, entry + end), encoding="utf-8")
    (tmp_path / "tests" / "marts" / "test_cancellations.py").write_text(test, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "tests/marts/test_cancellations.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
