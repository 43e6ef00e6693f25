"""How a workspace is spoken to: REST calls and SQL statements through the Databricks SDK, and errors in our words.

Nothing is ever changed there: every call is a GET, except that a statement is sent (and cancelled) by POST.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa
import requests
from databricks.sdk import WorkspaceClient
from databricks.sdk.clock import RealClock
from databricks.sdk.config import Config
from databricks.sdk.core import ApiClient
from databricks.sdk.errors.base import DatabricksError
from databricks.sdk.errors.platform import BadRequest, NotFound, PermissionDenied, TooManyRequests, Unauthenticated
from databricks.sdk.retries import retried
from pyarrow import ipc
from pydantic import SecretStr

from monitoring_platform.config import Engine, WorkspaceSource
from monitoring_platform.event_log.redact import redact_text
from monitoring_platform.sources.base import INTERRUPTED, NeedsEngine, SourceError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Value = str | int | datetime
_Answer = TypeVar("_Answer")

_RETRY_SECONDS, _HTTP_SECONDS, _SAME_PAGES = 45, 30, 20
_STATEMENT_SECONDS, _FIRST_WAIT, _LONGEST_POLL = 600.0, "5s", 5.0
_STATEMENTS, _ME = "/api/2.0/sql/statements", "/api/2.0/preview/scim/v2/Me"
_DEBUG_INFO = re.compile(r"\.? Config: .*", re.S)  # what the SDK adds to a refusal: settings, no reason
_CAUSE = re.compile(r"\[Errno -?\d+\] ([^'\")]+)")  # of a connection that failed
_DENIED = re.compile(
    r"(?i)PERMISSION_DENIED|INSUFFICIENT_P|UNAUTHORIZED|ACCESS_DENIED|not authorized|access denied|"
    r"permission denied|does not have (?:\S+ )?(?:permission|privilege|access)|not (?:the )?owner"
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


class NoSql(SourceError):
    """No statement can be run at all, whatever it reads."""


class Workspace(NamedTuple):
    """One workspace and the credentials for it. Small and can be pickled; connects when first used.

    SQL runs on the SQL warehouse if one is named, else `by_engine` if that runs in Databricks, else not at all.
    """

    name: str
    host: str | None = None
    profile: str | None = None
    token: SecretStr | None = None
    client_id: str | None = None
    client_secret: SecretStr | None = None
    sql_warehouse: str | None = None
    by_engine: bool = False
    patience: int = _RETRY_SECONDS  # seconds for which a call is repeated

    @classmethod
    def from_settings(cls, entry: WorkspaceSource, engine: Engine) -> Workspace:
        """The workspace that an entry of the configuration names."""
        return cls(
            entry.name,
            entry.host,
            entry.profile,
            entry.token,
            entry.client_id,
            entry.client_secret,
            entry.sql_warehouse,
            entry.sql_warehouse is None and engine.is_in_databricks,
        )

    @property
    def url(self) -> str:
        """Its address. Raises SourceError if there are no credentials."""
        return self._attempt(lambda: str(_connected(self).config.host))

    def sdk(self) -> WorkspaceClient:
        """The SDK's client with these credentials, for what is no reading: launching a cycle there."""
        return WorkspaceClient(config=_connected(self).config)

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a GET. Raises SourceError."""
        return self._call("GET", path, query=dict(query or {}))

    def pages(self, path: str, query: Mapping[str, Any], items: str) -> Iterator[dict[str, Any]]:
        """The elements under `items` on all pages of a listing. Raises SourceError."""
        for page, _ in self.walk(path, query):
            yield from page.get(items) or ()

    def walk(
        self, path: str, query: Mapping[str, Any], kept: Collection[str] | None = None, token: str | None = None
    ) -> Iterator[tuple[dict[str, Any], str | None]]:
        """The pages of a listing from a token on, each with the token of the next one. Raises SourceError.

        `kept`: parameters that are sent with a token too; None = all. A page may be empty although there are more.
        """
        same = 0
        while True:
            repeated = {name: value for name, value in query.items() if kept is None or name in kept}
            page = self.get(path, {**repeated, "page_token": token} if token else query)
            following = page.get("next_page_token") or None
            yield page, following
            if following is None:
                return
            same = same + 1 if following == token else 0
            if same > _SAME_PAGES:
                raise SourceError(f"the pages of {path} do not end", "it is tried again by itself", transient=True)
            token = following

    def time(self) -> datetime | None:
        """What time it is there, by the Date of an answer; None if it does not say. Raises SourceError."""
        told = self._call("GET", _ME, response_headers=["Date"]).get("Date")
        try:
            return parsedate_to_datetime(told) if told else None
        except ValueError:
            return None

    @property
    def principal(self) -> str:
        """Who we are there, as it is written in a GRANT. Raises SourceError."""
        return _principal(self)

    def sql(
        self,
        statement: str,
        parameters: Mapping[str, Value] | None = None,
        engine: Callable[[], SparkSession] | None = None,
        seconds: float = _STATEMENT_SECONDS,
    ) -> pa.Table:
        """The result of one SELECT; `:name` in it stands for a parameter's value.

        A statement that takes longer than `seconds`, or that is interrupted, is cancelled. Raises SourceError, and
        NeedsEngine if it is to be run by the engine and there is none.
        """
        if self.sql_warehouse is not None:
            return self._by_warehouse(statement, parameters or {}, time.monotonic() + seconds)
        if not self.by_engine:
            remedy = f"set sql_warehouse of source {self.name} to the id of a SQL warehouse"
            raise NoSql("no SQL warehouse is configured, and the engine does not run in Databricks", remedy)
        if engine is None:
            raise NeedsEngine(self.name)
        try:
            return engine().sql(statement, args=dict(parameters or {})).toArrow()
        except Exception as error:
            raise self._refused_statement("FAILED", None, str(error)) from error

    def _by_warehouse(self, statement: str, parameters: Mapping[str, Value], deadline: float) -> pa.Table:
        body = {
            "warehouse_id": self.sql_warehouse,
            "statement": statement,
            "parameters": [_parameter(name, value) for name, value in parameters.items()],
            "format": "ARROW_STREAM",
            "disposition": "EXTERNAL_LINKS",
            "wait_timeout": _FIRST_WAIT,
            "on_wait_timeout": "CONTINUE",
        }
        try:
            answer = self._call("POST", f"{_STATEMENTS}/", body=body)
        except SourceError as error:
            if error.state == "no_grant":
                raise NoSql(error.reason, f"give CAN USE on SQL warehouse {self.sql_warehouse}", "no_grant") from error
            if error.state == "deleted":
                raise NoSql(error.reason, f"set sql_warehouse of source {self.name} to one that exists") from error
            raise
        statement_id = answer["statement_id"]
        try:
            answer = self._finished(statement_id, answer, deadline)
            return self._result(statement_id, answer)
        except SourceError as error:
            if error.state == "deleted":  # the statement, which is kept for a while only
                raise SourceError(error.reason, "it is tried again by itself", transient=True) from error
            raise

    def _finished(self, statement_id: str, answer: dict[str, Any], deadline: float) -> dict[str, Any]:
        wait = 0.5
        try:
            while (state := answer["status"]["state"]) in ("PENDING", "RUNNING"):
                if time.monotonic() >= deadline:
                    raise SourceError(
                        f"the SQL warehouse {self.sql_warehouse} did not finish in time ({state})",
                        "check that the warehouse starts and is not overloaded; it is tried again by itself",
                        transient=True,
                    )
                if INTERRUPTED.wait(min(wait, max(0.0, deadline - time.monotonic()))):
                    raise SourceError("interrupted", "it is read by the next run", transient=True)
                wait = min(wait * 2, _LONGEST_POLL)
                answer = self.get(f"{_STATEMENTS}/{statement_id}")
        except BaseException:
            self._cancel(statement_id)
            raise
        if state != "SUCCEEDED":
            error = answer["status"].get("error") or {}
            raise self._refused_statement(state, error.get("error_code"), error.get("message"))
        return answer

    def _result(self, statement_id: str, answer: dict[str, Any]) -> pa.Table:
        manifest = answer.get("manifest") or {}
        if manifest.get("truncated"):
            raise SourceError("the result is larger than a SQL warehouse delivers", "report this: results are limited")
        names = [column["name"] for column in (manifest.get("schema") or {}).get("columns") or ()]
        chunks, part, seen = [], answer.get("result") or {}, set()
        while links := part.get("external_links"):
            following = None
            for link in links:
                index = link.get("chunk_index", 0)
                if index in seen:
                    continue
                seen.add(index)
                chunks.append(self._chunk(statement_id, link))
                following = link.get("next_chunk_index")
            if following is None or following in seen:
                break
            part = self.get(f"{_STATEMENTS}/{statement_id}/result/chunks/{following}")
        return pa.concat_tables(chunks) if chunks else pa.table({name: pa.nulls(0) for name in names})

    def _chunk(self, statement_id: str, link: dict[str, Any]) -> pa.Table:
        """The rows behind a presigned link, which is fetched without our credentials; a new link if it expired."""

        def fetch() -> pa.Table:
            nonlocal link
            try:
                # An `auth` that adds nothing also keeps requests from adding a password out of ~/.netrc.
                answer = requests.get(
                    link["external_link"],
                    headers=link.get("http_headers") or {},
                    auth=lambda request: request,
                    timeout=_HTTP_SECONDS,
                )
                answer.raise_for_status()
                return ipc.open_stream(answer.content).read_all()
            except (requests.RequestException, pa.ArrowInvalid):
                index = link.get("chunk_index", 0)
                path = f"{_STATEMENTS}/{statement_id}/result/chunks/{index}"
                link = next(new for new in self.get(path)["external_links"] if new.get("chunk_index", 0) == index)
                raise

        return self._attempt(fetch)

    def _cancel(self, statement_id: str) -> None:
        try:
            _connected(self).client.do("POST", f"{_STATEMENTS}/{statement_id}/cancel")
        except Exception:  # what led here matters more; an idle statement is ended by the warehouse
            return

    def _call(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        def call() -> dict[str, Any]:
            answer = _connected(self).client.do(method, path, headers={"Accept": "application/json"}, **arguments)
            if not isinstance(answer, dict):
                raise requests.exceptions.InvalidJSONError("the answer is no JSON object")
            return answer

        try:
            return self._attempt(call)
        except SourceError as error:
            if not _is_unauthenticated(error.__cause__):
                raise
        _connected.cache_clear()  # a token may have been renewed since it was read
        return self._attempt(call)

    def _attempt(self, call: Callable[[], _Answer]) -> _Answer:
        """The SDK waits and repeats where it is told to (429, 503, connections); this does for other hiccups."""
        repeat = retried(timeout=timedelta(seconds=self.patience), is_retryable=_hiccup, clock=_Patience(self.patience))
        again: Callable[[], _Answer] = repeat(call)
        try:
            return again()
        except SourceError:
            raise
        except Exception as error:
            cause = error.__cause__ if isinstance(error, TimeoutError) and error.__cause__ else error
            raise self._in_our_words(cause) from cause

    def _in_our_words(self, error: BaseException) -> SourceError:
        reason = self._readable(error)
        if isinstance(error, TooManyRequests):
            return SourceError(
                f"the workspace limits calls: {reason}",
                "nothing to do: it is read again later; if it stays, raise schedule.sensor_interval_seconds",
                "rate_limited",
                transient=True,
                wait=float(error.retry_after_secs or 0),
            )
        if _is_unauthenticated(error):
            remedy = f"renew the credentials of source {self.name} (profile, token or client_secret)"
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

    def _refused_statement(self, state: str, code: str | None, message: str | None) -> SourceError:
        reason = self._readable(message or f"the statement ended {state}")
        if _DENIED.search(reason):
            return SourceError(reason, "ask an owner for the privilege that is named", "no_grant")
        if _MISSING.search(reason):
            return SourceError(reason, "check that it exists and that its name is right", "log_not_published")
        if code == "RESOURCE_EXHAUSTED":
            return SourceError(reason, "nothing to do: it is read again later", "rate_limited", transient=True)
        remedy = "run the statement in a SQL editor of the workspace to see what is wrong"
        return SourceError(reason, remedy, transient=state != "FAILED" or code in _BUSY)

    def _readable(self, error: BaseException | str) -> str:
        """An error in one line, without the SDK's debugging text and without any secret."""
        text = str(error)
        if text.startswith("unable to parse response"):
            text = "the answer is no JSON"
        elif isinstance(error, requests.ConnectionError) and (cause := _CAUSE.search(text)):
            text = cause[1]
        text = " ".join(_DEBUG_INFO.sub("", text).split())[:500]
        for secret in (self.token, self.client_secret):
            if secret is not None and secret.get_secret_value():
                text = text.replace(secret.get_secret_value(), "[REDACTED]")
        kind = "" if isinstance(error, str | DatabricksError) else f"{type(error).__name__}: "
        return redact_text(kind + text) or type(error).__name__


class _Patience(RealClock):
    """A clock for retries that does not wait for long: the error is passed on instead."""

    def __init__(self, longest: float) -> None:
        self._longest = longest

    def sleep(self, seconds: float) -> None:
        if seconds > self._longest + 1:  # the SDK adds up to one
            raise  # called while the error is handled for which the SDK would wait
        super().sleep(seconds)


class _Connection(NamedTuple):
    client: ApiClient
    config: Config


@lru_cache(maxsize=64)
def _connected(workspace: Workspace) -> _Connection:
    """The connection of this process, by the SDK's unified authentication."""
    token, secret = (v.get_secret_value() or None if v else None for v in (workspace.token, workspace.client_secret))
    config = Config(
        host=workspace.host,
        profile=workspace.profile,
        token=token,
        client_id=workspace.client_id if secret else None,
        client_secret=secret,
        auth_type="pat" if token else "oauth-m2m" if secret else None,  # whatever else the environment offers
        http_timeout_seconds=min(_HTTP_SECONDS, workspace.patience),
        retry_timeout_seconds=workspace.patience,
        clock=_Patience(workspace.patience),
        product="monitoring-platform",
    )
    return _Connection(ApiClient(config), config)


@lru_cache(maxsize=64)
def _principal(workspace: Workspace) -> str:
    return str(workspace.get(_ME)["userName"])


def _is_unauthenticated(error: BaseException | None) -> bool:
    """Whether the credentials were refused. An expired token is told by 403, like a permission that is missing."""
    is_expired = isinstance(error, PermissionDenied) and "invalid access token" in str(error).lower()
    return is_expired or isinstance(error, Unauthenticated)


def _hiccup(error: BaseException) -> str | None:
    """Why a call is repeated that the SDK gives up on: server errors, half an answer, HTML instead of JSON."""
    if isinstance(error, DatabricksError):
        refused = isinstance(error, BadRequest | Unauthenticated | PermissionDenied | NotFound | TooManyRequests)
        return None if refused else "server error"
    if isinstance(error, requests.HTTPError) and error.response is not None and error.response.status_code == 404:
        return None
    return "broken answer" if isinstance(error, requests.RequestException | pa.ArrowInvalid) else None


def _parameter(name: str, value: Value) -> dict[str, str]:
    if isinstance(value, datetime):
        return {"name": name, "type": "TIMESTAMP", "value": value.astimezone(timezone.utc).isoformat()}
    return {"name": name, "type": "STRING" if isinstance(value, str) else "INT", "value": str(value)}
