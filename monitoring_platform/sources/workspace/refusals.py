"""What it means for a pipeline that a way to its log is closed, and what opens it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from monitoring_platform.sources.base import Facts, SourceError
from monitoring_platform.sources.workspace import remedies

Principal = Callable[[], str]  # asked for only where a statement names it


def not_published(pipeline_name: str | None, pipeline_id: str) -> SourceError:
    """The settings name no table for the log."""
    return SourceError(
        "its event log is not published",
        "publish it: add this to the pipeline's settings; then grant SELECT on the table, or on a view over it",
        "log_not_published",
        remedy_sql=remedies.publish(pipeline_name, pipeline_id),
    )


def of_table(error: SourceError, table: Sequence[str], source: str, principal: Principal) -> SourceError:
    """The published log."""
    name = remedies.qualified(table)
    if error.state == "no_grant":
        return SourceError(
            f"its published log {name} may not be read: {error.reason}",
            "run these statements as an owner of the table; or put a view over it, grant on that, and name the view "
            f"under tables of source {source}",
            "no_grant",
            remedy_sql=remedies.grant_select(table, principal()),
        )
    if error.state == "log_not_published":
        return SourceError(
            f"its log should be in {name}, which does not exist: {error.reason}",
            "run an update, which makes the table; check the name if it ran",
            error.state,
        )
    return error


def of_function(error: SourceError, pipeline_name: str | None, pipeline_id: str) -> SourceError:
    """`event_log()`, which is its owner's."""
    if error.state == "no_grant":
        return SourceError(
            f"event_log() is for the owner of the pipeline only: {error.reason}",
            "publish the log (add this to the pipeline's settings, then grant SELECT on the table), or sign in as the "
            "owner. A permission on the pipeline or a view over the function does not help",
            "not_owner",
            remedy_sql=remedies.publish(pipeline_name, pipeline_id),
        )
    if "EVENT_LOG_" in error.reason:
        return SourceError(f"event_log() has nothing: {error.reason}", "publish the log", "log_not_published")
    return error


def of_system_table(error: SourceError, table: Sequence[str], principal: Principal) -> SourceError:
    """The table of all pipelines' events."""
    if error.state != "no_grant":
        return error
    return SourceError(
        f"the system table may not be read: {error.reason}",
        "run these statements as an account admin who is a metastore admin",
        "no_grant",
        remedy_sql=remedies.grant_select(table, principal()),
    )


def of_api(error: SourceError, is_hidden: bool, principal: Principal) -> SourceError:
    """The Events API. Of a pipeline that it hides the service says the same as of one that it never had."""
    if error.state != "no_grant":
        return error
    why = "it was deleted, or shown to us no longer" if is_hidden else "its events may not be read"
    return SourceError(
        f"{why}: {error.reason}",
        f"give us the permission CAN VIEW on the pipeline{', if it is still there' if is_hidden else ''}",
        "no_grant",
        remedy_sql=remedies.view_permission(principal()),
    )


def worst(refused: Mapping[str, SourceError], facts: Facts) -> SourceError:
    """The refusal whose remedy helps most: of the published log if there is one, else of the way that would be open.

    A pipeline that publishes in the legacy mode (`target`) is read by its owner through event_log(); any other has to
    publish its log.
    """
    spec = facts.get("spec") or {}
    is_legacy = "schema" not in spec and bool(spec.get("catalog"))

    def rank(entry: tuple[str, SourceError]) -> int:
        path, error = entry
        tests = (
            error.state == "deleted",
            path == "api" and error.state == "no_grant" and bool(facts.get("hidden")),
            path == "table" and error.state == "no_grant",
            path == "function" and error.state == "not_owner" and is_legacy,
            path == "table" and error.state == "log_not_published",
            error.state != "unreadable",
        )
        return tests.index(True) if True in tests else len(tests)

    path, chosen = min(refused.items(), key=rank)
    others = ", ".join(f"{other} {error.state}" for other, error in refused.items() if other != path)
    reason = f"{chosen.reason} (also tried: {others})" if others else chosen.reason
    return SourceError(reason, chosen.remedy, chosen.state, remedy_sql=chosen.remedy_sql)
