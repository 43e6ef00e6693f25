"""`type: workspace` in the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitoring_platform.config import ConfigError, Settings, WorkspaceSource, load

SECRET = "dapi-s3cr3t-value"


def settings_from(source: str, folder: Path, **environ: str) -> Settings:
    file = folder / "m.yaml"
    file.write_text(f"warehouse: {{path: ./w}}\nsources:\n  - {{type: workspace{source}}}\n", encoding="utf-8")
    return load(file, environ)


def entry(source: str, folder: Path, **environ: str) -> WorkspaceSource:
    (found,) = settings_from(source, folder, **environ).sources
    assert isinstance(found, WorkspaceSource)
    return found


def problem(source: str, folder: Path, **environ: str) -> str:
    with pytest.raises(ConfigError) as error:
        settings_from(source, folder, **environ)
    return str(error.value).split(": ", 1)[1]


def test_nothing_is_required(tmp_path: Path) -> None:
    """R-CFG-12: credentials are found when they are needed, by the SDK."""
    found = entry("", tmp_path)
    assert (found.name, found.token, found.profile) == ("workspace:default", None, None)
    assert found.access == ("table", "function", "system_table", "storage", "api")
    assert entry(", profile: PROD", tmp_path).name == "workspace:PROD"
    assert entry(", host: '${HOST}'", tmp_path, HOST="https://x").name == "workspace:${HOST}"


def test_secrets_stand_in_the_environment_only(tmp_path: Path) -> None:
    """R-PERM-05: a secret in the file is refused, also as a default, and never printed."""
    settings = settings_from(", token: '${TOKEN}'", tmp_path, TOKEN=SECRET)
    (found,) = settings.sources
    assert isinstance(found, WorkspaceSource) and found.token and found.token.get_secret_value() == SECRET
    assert SECRET not in settings.to_yaml() + repr(settings) and "${TOKEN}" in settings.to_yaml()
    assert entry(", token: '${TOKEN:-}'", tmp_path).token is not None
    for written in (
        f"token: {SECRET}",
        f"token: '${{TOKEN:-{SECRET}}}'",
        f"client_id: a, client_secret: 'x${{TOKEN}}{SECRET}'",
    ):
        said = problem(f", {written}", tmp_path, TOKEN="t")
        assert "must not stand in the file. Write ${NAME}" in said and SECRET not in said


def test_ways_to_sign_in(tmp_path: Path) -> None:
    assert "needs both 'client_id' and 'client_secret'" in problem(", client_id: robot", tmp_path)
    both = ", client_id: robot, client_secret: '${S}', token: '${T}'"
    assert "one way too many to sign in" in problem(both, tmp_path, S="s", T="t")


def test_tag_expressions(tmp_path: Path) -> None:
    """R-PEER-01: `;` is or, `,` is and."""
    found = entry(", tags: 'team=data, env=prod; critical; a='", tmp_path)
    assert found.tag_alternatives == ((("team", "data"), ("env", "prod")), (("critical", None),), (("a", ""),))
    for wrong in ("a=1;;b=2", ",", "=x"):
        assert "is no tag expression" in problem(f", tags: '{wrong}'", tmp_path)


def test_ways_to_a_log(tmp_path: Path) -> None:
    assert entry(", access: [api, table]", tmp_path).access == ("api", "table")
    assert "names a way twice" in problem(", access: [api, api]", tmp_path)
    assert "must be 'table'" in problem(", access: [rest]", tmp_path)
    assert "did you mean 'sql_warehouse'" in problem(", sql_warehous: x", tmp_path)
