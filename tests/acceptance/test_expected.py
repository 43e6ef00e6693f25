"""Real event rows and hostile ones, with their expected answers (tests/data/event_logs)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import EVENT_LOGS, Site

sys.path.insert(0, str(EVENT_LOGS))
import check_expected


def _cases(folder: Path) -> dict[str, dict[str, Any]]:
    return dict(yaml.safe_load((folder / "expected.yaml").read_text(encoding="utf-8"))["cases"])


def _broken(facts: list[dict[str, Any]], warehouse: Path) -> list[str]:
    tables = check_expected.Tables(warehouse)
    return [text for fact in facts for holds, text in check_expected.check_fact(fact, tables) if not holds]


def _loaded(site: Site, folder: Path, files: list[str]) -> Path:
    for file in files:
        shutil.copy(folder / file, site.logs / Path(file).name)
    site.cycle()
    assert site.warehouse.settings.warehouse.path is not None
    return site.warehouse.settings.warehouse.path


#: As published most rows lack id, pipeline or time: one warehouse each. (The others hold together, see below.)
ALONE = [("", name) for name in _cases(EVENT_LOGS)] + [("dirty", name) for name in _cases(EVENT_LOGS / "dirty")]


def _has_facts_alone(folder: str, name: str) -> bool:
    facts = _cases(EVENT_LOGS / folder)[name]["facts"]
    return any(fact.get("alone") for fact in facts)


@pytest.mark.parametrize(("folder", "name"), [case for case in ALONE if _has_facts_alone(*case)])
def test_one_file_alone(site: Site, folder: str, name: str) -> None:
    """Every fact of the case, those that hold for this file alone included."""
    case = _cases(EVENT_LOGS / folder)[name]
    warehouse = _loaded(site, EVENT_LOGS / folder, [case["file"]])
    assert _broken(case["facts"], warehouse) == []


@pytest.mark.parametrize("twice", [False, True], ids=["once", "delivered twice"])
def test_all_completed_logs_together(site: Site, twice: bool) -> None:
    """All facts in one warehouse; a second delivery under another name changes nothing (R-UNI-03)."""
    cases = _cases(EVENT_LOGS)
    names = [name for name in cases if name.endswith(".completed")] + ["rest_stream_progress_object"]
    warehouse = _loaded(site, EVENT_LOGS, [cases[name]["file"] for name in names])
    if twice:
        for path in list(site.logs.iterdir()):
            shutil.copy(path, site.logs / f"again_{path.name}")
        _, united, marts = site.cycle()
        assert united.added == 0
        assert [mart.written for mart in marts] == [0] * len(marts)
    facts = [fact for name in names for fact in cases[name]["facts"] if not fact.get("alone")]
    assert _broken(facts, warehouse) == []


def test_all_hostile_files_together(site: Site) -> None:
    """R-NEW-04: no file stops another."""
    cases = _cases(EVENT_LOGS / "dirty")
    warehouse = _loaded(site, EVENT_LOGS / "dirty", [case["file"] for case in cases.values()])
    facts = [fact for case in cases.values() for fact in case["facts"] if not fact.get("alone")]
    assert _broken(facts, warehouse) == []


def test_no_secret_is_in_any_file_of_the_warehouse(site: Site, make_site: Callable[..., Site]) -> None:
    """event_log 10: not in a table, and not in a data file or commit either (R-PERM-05)."""
    warehouse = _loaded(site, EVENT_LOGS / "dirty", ["secrets_in_create_update.jsonl"])
    facts = _cases(EVENT_LOGS / "dirty")["secrets_in_create_update"]["facts"]
    secrets = [fact["nowhere"] for fact in facts if "nowhere" in fact]
    assert len(secrets) == 8
    stored = b"".join(path.read_bytes() for path in warehouse.rglob("*") if path.is_file())
    assert [secret for secret in secrets if secret.encode() in stored] == []
