"""How a workspace is spoken to: REST calls and SQL statements through the Databricks SDK, and errors in our words.

Nothing is ever changed there: every call is a GET, except that a statement is sent (and cancelled) by POST.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pyarrow as pa
import requests
from databricks.sdk import WorkspaceClient
from databricks.sdk.clock import RealClock
from databricks.sdk.config import Config
from databricks.sdk.core import ApiClient
from databricks.sdk.retries import retried
from pydantic import SecretStr

from monitoring_platform.config import Engine, WorkspaceSource
from monitoring_platform.sources.base import NeedsEngine, SourceError
from monitoring_platform.sources.waiting import within
from monitoring_platform.sources.workspace import errors, statements
from monitoring_platform.sources.workspace.statements import NoSql, Value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Answer = TypeVar("_Answer")

_RETRY_SECONDS, _HTTP_SECONDS, _SAME_PAGES = 45, 30, 20
_TO_THE_END = 3  # times its patience a call may take with all its repeats; logins of the SDK have no limit
_STATEMENT_SECONDS, _ME = 600.0, "/api/2.0/preview/scim/v2/Me"


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
        return self.attempt(lambda: str(_connected(self).config.host))

    def sdk(self) -> WorkspaceClient:
        """The SDK's client with these credentials, for what is no reading: launching a cycle there."""
        return WorkspaceClient(config=_connected(self).config)

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a GET. Raises SourceError."""
        return self.call("GET", path, query=dict(query or {}))

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
        told = self.call("GET", _ME, response_headers=["Date"]).get("Date")
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
            return statements.run(self, statement, parameters or {}, seconds)
        if not self.by_engine:
            remedy = f"set sql_warehouse of source {self.name} to the id of a SQL warehouse"
            raise NoSql("no SQL warehouse is configured, and the engine does not run in Databricks", remedy)
        if engine is None:
            raise NeedsEngine(self.name)
        try:
            return engine().sql(statement, args=dict(parameters or {})).toArrow()
        except Exception as error:
            raise errors.of_engine(self, error) from error

    def call(self, method: str, path: str, **arguments: Any) -> dict[str, Any]:
        """The answer to a call. Raises SourceError."""

        def call() -> dict[str, Any]:
            answer = _connected(self).client.do(method, path, headers={"Accept": "application/json"}, **arguments)
            if not isinstance(answer, dict):
                raise requests.exceptions.InvalidJSONError("the answer is no JSON object")
            return answer

        try:
            return self._answered(call)
        except SourceError as error:
            if not errors.is_unauthenticated(error.__cause__):
                raise
        _connected.cache_clear()  # a token may have been renewed since it was read
        return self._answered(call)

    def _answered(self, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The answer, waited for no longer than all attempts may take."""
        seconds = _TO_THE_END * self.patience
        answer = within(seconds, lambda: self.attempt(call))
        if answer is None:
            _connected.cache_clear()  # what hangs keeps the others from logging in
            raise SourceError(
                f"the workspace does not answer: nothing came for {seconds} s",
                "check the address and the network; it is tried again by itself",
                transient=True,
            )
        return answer

    def attempt(self, call: Callable[[], _Answer]) -> _Answer:
        """The SDK waits and repeats where it is told to (429, 503, connections); this does for other hiccups."""
        repeat = retried(
            timeout=timedelta(seconds=self.patience), is_retryable=errors.hiccup, clock=_Patience(self.patience)
        )
        again: Callable[[], _Answer] = repeat(call)
        try:
            return again()
        except SourceError:
            raise
        except Exception as error:
            cause = error.__cause__ if isinstance(error, TimeoutError) and error.__cause__ else error
            raise errors.of_call(self, cause) from cause


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
