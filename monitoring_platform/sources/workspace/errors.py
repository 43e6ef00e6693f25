"""What goes wrong with a workspace, in our words: the state that follows, what to do, and never a secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import requests
from databricks.sdk.errors.base import DatabricksError
from databricks.sdk.errors.platform import BadRequest, NotFound, PermissionDenied, TooManyRequests, Unauthenticated

from monitoring_platform.event_log.redact import redact_text
from monitoring_platform.sources.base import SourceError

if TYPE_CHECKING:
    from monitoring_platform.sources.workspace.client import Workspace

_DEBUG_INFO = re.compile(r"\.? Config: .*", re.S)  # what the SDK adds to a refusal: settings, no reason
_CAUSE = re.compile(r"\[Errno -?\d+\] ([^'\")]+)")  # of a connection that failed
_DENIED = re.compile(
    r"(?i)PERMISSION_DENIED|INSUFFICIENT_P|UNAUTHORIZED|ACCESS_DENIED|not authorized|access denied|"
    r"permission denied|does not have (?:\S+ )?(?:permission|privilege|access)|not (?:an? |the )?owner"
)
_MISSING = re.compile(
    r"(?i)(?:TABLE_OR_VIEW|SCHEMA|CATALOG|PATH|DELTA_TABLE|DELTA_PATH)\w*_NOT_(?:FOUND|EXIST)|"
    r"NO_SUCH_(?:TABLE|SCHEMA|CATALOG)\w*|DELTA_PATH_DOES_NOT_EXIST|(?:does not exist|cannot be found)"
)
_BUSY = frozenset(
    {
        "ABORTED", "DEADLINE_EXCEEDED", "INTERNAL_ERROR", "IO_ERROR", "SERVICE_UNDER_MAINTENANCE",
        "TEMPORARILY_UNAVAILABLE", "UNKNOWN", "WORKSPACE_TEMPORARILY_UNAVAILABLE",
    }
)  # fmt: skip


def of_call(workspace: Workspace, error: BaseException) -> SourceError:
    """What a call that failed means."""
    reason = _readable(workspace, error)
    if isinstance(error, TooManyRequests):
        return SourceError(
            f"the workspace limits calls: {reason}",
            "nothing to do: it is read again later; if it stays, raise schedule.sensor_interval_seconds",
            "rate_limited",
            transient=True,
            wait=float(error.retry_after_secs or 0),
        )
    if is_unauthenticated(error):
        remedy = f"renew the credentials of source {workspace.name} (profile, token or client_secret)"
        return SourceError(f"the workspace refuses the credentials: {reason}", remedy, transient=True)
    if isinstance(error, PermissionDenied):
        return SourceError(reason, "ask an owner for the permission that is named", "no_grant")
    if isinstance(error, NotFound):
        return SourceError(reason, "check that it still exists in the workspace", "deleted")
    if isinstance(error, BadRequest):
        return SourceError(reason, "this looks like a bug or a change of the service: please report it")
    if isinstance(error, ValueError) and not isinstance(error, requests.RequestException):  # from Config
        remedy = (
            "set profile, or host with token or client_id and client_secret, in this source; or DATABRICKS_HOST "
            "and DATABRICKS_TOKEN in the environment"
        )
        return SourceError(f"no credentials for the workspace: {reason}", remedy, transient=True)
    return SourceError(
        f"the workspace does not answer as it should: {reason}",
        "check the address and the network; it is tried again by itself",
        transient=True,
    )


def of_statement(workspace: Workspace, state: str, code: str | None, message: str | None) -> SourceError:
    """What a statement that failed means: a privilege that is missing, a table that is, or trouble."""
    reason = _readable(workspace, message or f"the statement ended {state}")
    if _DENIED.search(reason):
        return SourceError(reason, "ask an owner for the privilege that is named", "no_grant")
    if _MISSING.search(reason):
        return SourceError(reason, "check that it exists and that its name is right", "log_not_published")
    if code == "RESOURCE_EXHAUSTED":
        return SourceError(reason, "nothing to do: it is read again later", "rate_limited", transient=True)
    remedy = "run the statement in a SQL editor of the workspace to see what is wrong"
    return SourceError(reason, remedy, transient=state != "FAILED" or code in _BUSY)


def of_engine(workspace: Workspace, error: Exception) -> SourceError:
    """What a statement that the engine could not run means: only SQL that is refused as such is no passing trouble."""
    from pyspark.errors import AnalysisException, ParseException

    is_refused = isinstance(error, AnalysisException | ParseException)
    return of_statement(workspace, "FAILED", None if is_refused else "UNKNOWN", str(error))


def _readable(workspace: Workspace, error: BaseException | str) -> str:
    """An error in one line, without the SDK's debugging text and without any secret."""
    text = str(error)
    if text.startswith("unable to parse response"):
        text = "the answer is no JSON"
    elif isinstance(error, requests.HTTPError):  # its text has the presigned address
        status = "" if error.response is None else f" (status {error.response.status_code})"
        text = f"a part of the result is not to be had{status}"
    elif isinstance(error, requests.ConnectionError) and (cause := _CAUSE.search(text)):
        text = cause[1]
    text = " ".join(_DEBUG_INFO.sub("", text).split())[:500]
    for secret in (workspace.token, workspace.client_secret):
        if secret is not None and secret.get_secret_value():
            text = text.replace(secret.get_secret_value(), "[REDACTED]")
    kind = "" if isinstance(error, str | DatabricksError) else f"{type(error).__name__}: "
    return redact_text(kind + text) or type(error).__name__


def is_unauthenticated(error: BaseException | None) -> bool:
    """Whether the credentials were refused. An expired token is told by 403, like a permission that is missing."""
    is_expired = isinstance(error, PermissionDenied) and "invalid access token" in str(error).lower()
    return is_expired or isinstance(error, Unauthenticated)


def hiccup(error: BaseException) -> str | None:
    """Why a call is repeated that the SDK gives up on: server errors, half an answer, HTML instead of JSON."""
    if isinstance(error, DatabricksError):
        refused = isinstance(error, BadRequest | Unauthenticated | PermissionDenied | NotFound | TooManyRequests)
        return None if refused else "server error"
    if isinstance(error, requests.HTTPError) and error.response is not None and error.response.status_code == 404:
        return None
    return "broken answer" if isinstance(error, requests.RequestException | pa.ArrowInvalid) else None
