"""The workspace: everything that is in it, who may do what, and the server in front."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import pyarrow as pa

from tests.workspace import api, shapes, system
from tests.workspace.contract import unknown
from tests.workspace.model import Job, Pipeline, Principal, Relation, Warehouse
from tests.workspace.refusal import Refusal
from tests.workspace.server import Call, Faults, Route, serve
from tests.workspace.shapes import Json
from tests.workspace.statements import Statement

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass
class _Token:
    who: Principal
    expires: float


class Workspace:
    """A workspace that answers on `host`. Everything can be changed while it runs."""

    def __init__(
        self, folder: Path, name: str = "stand-in", account_id: str = "acc-1", workspace_id: str = "4820391765520184"
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.name, self.account_id, self.workspace_id = folder, name, account_id, workspace_id
        self.principals: dict[str, Principal] = {}
        self.pipelines: dict[str, Pipeline] = {}
        self.jobs: dict[int, Job] = {}
        self.warehouses: dict[str, Warehouse] = {}
        self.statements: dict[str, Statement] = {}
        self.links: dict[str, float] = {}
        self.usage: list[Json] = []
        self.list_prices: list[Json] = []
        self.calls: list[Call] = []
        self.unknown_calls: list[str] = []
        self.refused_statements: list[str] = []
        self.bugs: list[BaseException] = []
        self.faults = Faults()
        self.lock = threading.RLock()
        self.events_need = "CAN_VIEW"  # permission level for reading events; the service does not document it
        self.token_seconds = 3600  # how long an OAuth token lives
        self.function_for_legacy_only = False  # the documentation says both: of all pipelines, of legacy ones only
        self.tells_deleted = True  # that a pipeline is gone, to those who could view it; False: administrators only
        self.short_pages = False  # pages hold fewer than asked, sometimes nothing, although there is more
        self.while_listing: Callable[[], None] | None = None  # called after each page of pipelines
        self.region: list[Workspace] = [self]  # workspaces whose system tables are the same
        self._pages = 0
        self._grants: set[tuple[str, str, str]] = set()
        self._relations: dict[str, Relation] = {}
        self._datasets: dict[str, str] = {}
        self._tokens: dict[str, _Token] = {}
        self._cached: dict[str, pa.Table] = {}
        self._catalog: dict[str, Relation] | None = None
        self._server = serve(self, self.routes)

    @property
    def host(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def routes(self) -> list[Route]:
        """The calls that it answers."""
        return api.ROUTES

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    # What is in it

    def principal(self, name: str, token: str | None = None, is_admin: bool = False) -> Principal:
        """A user with a personal access token."""
        who = Principal(name, token=token or f"dapi{secrets.token_hex(16)}", is_admin=is_admin)
        self.principals[name] = who
        return who

    def service_principal(self, name: str, secret: str | None = None, is_admin: bool = False) -> Principal:
        """A service principal that gets tokens for its secret; its name is its application id."""
        who = Principal(name, client_id=name, client_secret=secret or f"dose{secrets.token_hex(16)}", is_admin=is_admin)
        self.principals[name] = who
        return who

    def pipeline(
        self,
        name: str,
        owner: str = "ana@example.com",
        *,
        id: str | None = None,
        run_as: str | None = None,
        catalog: str | None = "main",
        schema: str | None = None,
        target: str | None = None,
        events: Iterable[Mapping[str, Any]] = (),
        created: datetime = datetime(2025, 1, 1, tzinfo=timezone.utc),
        **spec: Any,
    ) -> Pipeline:
        """A pipeline. `schema` is the present way of publishing, `target` the legacy one; other settings go to the
        spec (tags, continuous, development, serverless, channel, edition, configuration, event_log, …)."""
        id = id or str(uuid5(NAMESPACE_URL, f"{self.name}/{name}/{len(self.pipelines)}"))
        if schema is None and target is None and catalog is not None:
            schema = "default"
        places = {"catalog": catalog, "schema": schema, "target": target}
        defaults = {"continuous": False, "development": False, "serverless": True, "channel": "CURRENT"}
        settings = {key: value for key, value in {**defaults, **places, **spec}.items() if value is not None}
        made = Pipeline(self, id, name, owner, run_as or owner, settings, created=created, last_modified=created)
        made.events += [shapes.as_event(event) for event in events]
        self.pipelines[id] = made
        if catalog is not None:  # whoever a pipeline runs as can get to its tables
            self.grant(made.run_as, "USE CATALOG", catalog)
            self.grant(made.run_as, "USE SCHEMA", f"{catalog}.{made.schema}")
        self.changed()
        return made

    def job(self, job_id: int, name: str, creator: str = "ana@example.com", **tags: str) -> Job:
        """A job without runs."""
        made = Job(job_id, name, creator, tags)
        self.jobs[job_id] = made
        return made

    def warehouse(self, id: str, users: Iterable[Principal] = (), **more: Any) -> Warehouse:
        """A SQL warehouse that these may use."""
        made = Warehouse(id, f"warehouse {id}", {who.name for who in users}, **more)
        self.warehouses[id] = made
        return made

    def table(self, name: str, rows: pa.Table, owner: str = "ana@example.com") -> Relation:
        """Any table: catalog.schema.name."""
        made = Relation(name, owner, lambda: rows)
        self._relations[name.lower()] = made
        self.changed()
        return made

    def view(self, name: str, definition: str, owner: str = "ana@example.com") -> Relation:
        """A view, computed with its owner's rights."""
        made = Relation(name, owner, lambda: pa.table({}), definition)
        self._relations[name.lower()] = made
        self.changed()
        return made

    def join(self, other: Workspace) -> None:
        """Be in the same region as another workspace: the system tables have the rows of all of them."""
        other.region.append(self)
        self.region = other.region
        self.changed()

    def dataset(self, name: str, pipeline: Pipeline) -> None:
        """A streaming table or materialized view of a pipeline, for `event_log(TABLE(name))`."""
        self._datasets[name.lower()] = pipeline.id

    def bill(self, **record: Any) -> None:
        """One record of system.billing.usage; see `system.USAGE` for its columns."""
        self.usage.append(record)
        self.changed()

    def price(self, **record: Any) -> None:
        """One record of system.billing.list_prices; see `system.LIST_PRICES` for its columns."""
        self.list_prices.append(record)
        self.changed()

    # Who may do what

    def grant(self, principal: Principal | str, privilege: str, thing: str) -> None:
        """USE CATALOG, USE SCHEMA or SELECT on a catalog, schema or table; READ FILES on a path (`*`: any file)."""
        name = principal if isinstance(principal, str) else principal.name
        self._grants.add((name, privilege, thing.lower()))

    def revoke(self, principal: Principal | str, privilege: str, thing: str) -> None:
        """The opposite."""
        name = principal if isinstance(principal, str) else principal.name
        self._grants.discard((name, privilege, thing.lower()))

    def grant_table(self, principal: Principal | str, table: str) -> None:
        """All that is needed to read a table."""
        catalog, schema, _ = table.split(".", 2)
        self.grant(principal, "USE CATALOG", catalog)
        self.grant(principal, "USE SCHEMA", f"{catalog}.{schema}")
        self.grant(principal, "SELECT", table)

    def has_privilege(self, who: Principal, privilege: str, thing: str, relation: Relation | None) -> bool:
        """Whether a principal has a privilege on a catalog, schema or table, itself or from above."""
        if privilege == "SELECT" and relation is not None and relation.owner == who.name:
            return True
        if privilege == "READ FILES":
            return any((who.name, privilege, place) in self._grants for place in ("*", thing.lower()))
        if thing.lower() in system.OPEN:
            return True
        if thing.lower().startswith("system.information_schema"):
            return True
        if relation is not None and relation.is_hidden:
            # What was granted on the schema does not reach it.
            return privilege != "SELECT" or (who.name, "SELECT", thing.lower()) in self._grants
        parts = thing.lower().split(".")
        places = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
        if parts[0] == "system" and privilege == "USE SCHEMA":
            places = places[1:]  # on the system catalog this grant does not reach down
        return any((who.name, privilege, place) in self._grants for place in places)

    def authenticate(self, headers: Mapping[str, str]) -> Principal:
        """Who sent this. Raises Refusal."""
        scheme, _, token = (headers.get("Authorization") or "").partition(" ")
        if scheme != "Bearer" or not token:
            message = "Credential was not sent or was of an unsupported type for this API."
            raise Refusal(401, "401", f"{message} [ReqId: 00000000-0000]")
        for who in self.principals.values():
            if who.token == token:
                return who
        issued = self._tokens.get(token)
        if issued is None or issued.expires < time.monotonic():
            raise Refusal(403, "403", "Invalid access token. [ReqId: 00000000-0000]")
        return issued.who

    def issue_token(self, who: Principal) -> str:
        """A fresh OAuth token."""
        token = f"eyJ{secrets.token_urlsafe(40)}"
        self._tokens[token] = _Token(who, time.monotonic() + self.token_seconds)
        return token

    @property
    def issued_tokens(self) -> list[str]:
        """Every OAuth token that was given out."""
        return list(self._tokens)

    def expire_tokens(self) -> None:
        """All OAuth tokens that were given out so far are worthless from now on."""
        for token in self._tokens.values():
            token.expires = 0.0

    # What the catalog has

    def relation(self, name: str) -> Relation | None:
        """The table or view of this name."""
        return self.relations().get(name.lower())

    def relations(self) -> dict[str, Relation]:
        """All tables and views, by name in lower case."""
        with self.lock:
            if self._catalog is None:
                self._catalog = self._known_relations()
            return self._catalog

    def _known_relations(self) -> dict[str, Relation]:
        found = dict(self._relations)
        for p in self.pipelines.values():
            name = p.published_name or p.hidden_name
            if name and p.deleted is None and p.events:
                found[name.lower()] = Relation(name, p.run_as, p.table, is_hidden=p.published_name is None)
        for name, rows in system.TABLES.items():
            found.setdefault(name, Relation(name, "System user", self._system(name, rows)))
        return found

    def _system(self, name: str, rows: Callable[[Workspace], pa.Table]) -> Callable[[], pa.Table]:
        def cached() -> pa.Table:
            with self.lock:
                if name not in self._cached:
                    self._cached[name] = rows(self)
                return self._cached[name]

        return cached

    def has_schema(self, catalog: str, schema: str) -> bool:
        """Whether anything is known in this schema."""
        prefix = f"{catalog}.{schema}.".lower()
        places = {f"{p.spec.get('catalog')}.{p.schema}.".lower() for p in self.pipelines.values()}
        return prefix in places or any(name.startswith(prefix) for name in self.relations())

    def pipeline_of(self, dataset: str) -> Pipeline | None:
        """The pipeline that keeps a streaming table or materialized view."""
        return self.pipelines.get(self._datasets.get(dataset.lower(), ""))

    def changed(self) -> None:
        """What is computed from everything is computed again."""
        for workspace in self.region:
            with workspace.lock:
                workspace._cached.clear()
                workspace._catalog = None

    def cut(self, size: int) -> int:
        """How many entries a page has that may have `size`."""
        if not self.short_pages:
            return size
        self._pages += 1
        return 0 if self._pages % 4 == 0 else max(1, size * 2 // 3)

    # What tests ask it

    def called(self, path: str = "", **where: Any) -> list[Call]:
        """The calls so far whose path contains this text."""
        return [c for c in self.calls if path in c.path and all(getattr(c, k) == v for k, v in where.items())]

    def is_clean(self) -> None:
        """No call that the service or the SDK does not have, no statement that is no SELECT, no bug of the stand-in."""
        assert self.unknown_calls == []
        assert unknown(self.calls) == []
        assert self.refused_statements == []
        assert self.bugs == []
        assert {c.method for c in self.calls if "/statements" not in c.path and not c.path.endswith("/token")} <= {
            "GET"
        }
