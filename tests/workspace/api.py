"""The calls of the Pipelines, Jobs, SCIM, permissions, SQL warehouse and OAuth services that read something."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import orjson

from tests.workspace import filters, shapes, statements
from tests.workspace.model import Job, JobRun, Pipeline, Update
from tests.workspace.refusal import Refusal, invalid
from tests.workspace.server import Answer, Request, Route, as_json, refused_with
from tests.workspace.shapes import Json, epoch_ms

if TYPE_CHECKING:
    from tests.workspace.world import Workspace

# Page tokens


def _token(**content: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(content)).decode()


def _opened(token: str) -> Json:
    try:
        content = orjson.loads(base64.urlsafe_b64decode(token))
        assert isinstance(content, dict)
        return content
    except (ValueError, AssertionError):
        raise invalid("Invalid page token") from None


def _size(request: Request, default: int, most: int) -> int:
    size = request.number("max_results", default)
    if not 0 < size <= most:
        raise invalid(f"max_results must be between 1 and {most}")
    return size


# Pipelines


def list_pipelines(workspace: Workspace, request: Request) -> Answer:
    """25 at a time unless asked otherwise, at most 100; only those that the principal may view."""
    size = _size(request, 25, 100)
    order = [text.split() for text in request.call.query.get("order_by", ["id asc"])]
    if any(part[0] not in ("id", "name") or part[1:] not in ([], ["asc"], ["desc"]) for part in order):
        raise invalid("Supported order_by fields are id and name")
    keeps = filters.pipelines(request.one("filter"))
    after = _opened(token).get("after") if (token := request.one("page_token")) else None
    field, is_down = order[0][0], order[0][1:] == ["desc"]
    visible = [
        p
        for p in workspace.pipelines.values()
        if p.deleted is None and p.may(request.who, "CAN_VIEW") and keeps(p.name, p.spec)
    ]
    visible.sort(key=lambda p: (getattr(p, field), p.id), reverse=is_down)
    if after is not None:
        place = tuple(after)
        visible = [
            p for p in visible if ((getattr(p, field), p.id) < place) == is_down and (getattr(p, field), p.id) != place
        ]
    page, rest = visible[: workspace.cut(size)], len(visible)
    answer: Json = {}
    if page:
        answer["statuses"] = [_status(p) for p in page]
    if rest > len(page):
        last = page[-1] if page else None
        answer["next_page_token"] = _token(after=[getattr(last, field), last.id] if last else after)
    if workspace.while_listing:
        workspace.while_listing()
    return as_json(answer)


def _status(p: Pipeline) -> Json:
    return _without_nulls(
        {
            "pipeline_id": p.id,
            "state": p.state,
            "cluster_id": p.cluster_id,
            "name": p.name,
            "health": p.health if p.updates else None,
            "creator_user_name": p.owner,
            "run_as_user_name": p.run_as,
            "latest_updates": [_latest(update) for update in p.updates[:5]] or None,
        }
    )


def _latest(update: Update) -> Json:
    return {"update_id": update.update_id, "state": update.state, "creation_time": shapes.iso(update.created)}


def get_pipeline(workspace: Workspace, request: Request) -> Answer:
    p = _pipeline(workspace, request)
    spec = {"id": p.id, "name": p.name, **p.spec}
    answer = {**_status(p), "spec": spec, "last_modified": epoch_ms(p.last_modified), "run_as": _run_as(p)}
    return as_json(answer)


def _run_as(p: Pipeline) -> Json:
    return {"user_name" if "@" in p.run_as else "service_principal_name": p.run_as}


def _pipeline(workspace: Workspace, request: Request, level: str = "CAN_VIEW") -> Pipeline:
    """The pipeline of a path. Who may not view it does not learn whether it exists."""
    assert request.match is not None
    pipeline_id = request.match["id"]
    p = workspace.pipelines.get(pipeline_id)
    is_gone = p is None or p.deleted is not None
    could = workspace.tells_deleted and p is not None and p.may(request.who, level)
    if is_gone and (request.who.is_admin or could):
        raise Refusal(404, "RESOURCE_DOES_NOT_EXIST", f"The specified pipeline {pipeline_id} was not found.")
    if p is None or is_gone or not p.may(request.who, level):
        name = level.removeprefix("CAN_").capitalize()
        message = f"User {request.who.name} does not have {name} permissions on pipeline {pipeline_id}."
        raise Refusal(403, "PERMISSION_DENIED", message)
    return p


def list_updates(workspace: Workspace, request: Request) -> Answer:
    """Newest first, without their configuration; times in milliseconds since the epoch."""
    p = _pipeline(workspace, request)
    size = _size(request, 25, 100)
    updates = p.updates
    if until := request.one("until_update_id"):
        place = next((n for n, update in enumerate(updates) if update.update_id == until), None)
        if place is None:
            raise Refusal(404, "RESOURCE_DOES_NOT_EXIST", f"Update {until} was not found.")
        updates = updates[: place + 1]
    start = int(_opened(token)["at"]) if (token := request.one("page_token")) else 0
    page = updates[start : start + workspace.cut(size)]
    answer: Json = {"updates": [_update(p, update) for update in page]} if page else {}
    if start + len(page) < len(updates):
        answer["next_page_token"] = _token(at=start + len(page))
    if start:
        answer["prev_page_token"] = _token(at=max(0, start - size))
    return as_json(answer)


def _update(p: Pipeline, update: Update) -> Json:
    return _without_nulls(
        {
            "pipeline_id": p.id,
            "update_id": update.update_id,
            "cause": update.cause,
            "state": update.state,
            "creation_time": epoch_ms(update.created),
            "full_refresh": update.full_refresh,
            "validate_only": update.validate_only,
            "cluster_id": p.cluster_id,
        }
    )


def get_update(workspace: Workspace, request: Request) -> Answer:
    p = _pipeline(workspace, request)
    assert request.match is not None
    update_id = request.match["update"]
    for update in p.updates:
        if update.update_id == update_id:
            return as_json({"update": {**_update(p, update), "config": {"id": p.id, "name": p.name, **p.spec}}})
    raise Refusal(404, "RESOURCE_DOES_NOT_EXIST", f"The specified update {update_id} was not found.")


def list_events(workspace: Workspace, request: Request) -> Answer:
    """25 at a time unless asked otherwise, at most 1,000, newest first. A page token stands for all but the size."""
    p = _pipeline(workspace, request, workspace.events_need)
    if p.trouble:
        raise refused_with(p.trouble, workspace.faults.retry_after)
    size = _size(request, 25, 1000)
    token = request.one("page_token")
    if token is not None:
        for name, what in (("order_by", "an ordering"), ("filter", "a filter")):
            if name in request.call.query:
                raise invalid(f"You can provide a page token or specify {what}, but not both.")
        asked = _opened(token)
        if asked.get("pipeline") != p.id:
            raise invalid("Invalid page token")
    else:
        asked = {"filter": request.one("filter"), "order": _order(request), "at": None}
    keeps, is_down = filters.events(asked["filter"]), asked["order"] == "desc"
    found = sorted((e for e in p.events if _is_served(e) and keeps(e)), key=_place, reverse=is_down)
    if (at := asked["at"]) is not None:  # a place, not a count: events that come in between shift nothing
        here = (shapes.instant(at[0]), at[1])
        found = [event for event in found if _place(event) != here and (_place(event) < here) == is_down]
    page = found[: workspace.cut(size)]
    answer: Json = {"events": [shapes.rest(event, p.truncated.get(str(event.get("id")), ())) for event in page]}
    if len(page) < len(found):
        last = [shapes.iso_exact(page[-1]["timestamp"]), str(page[-1].get("id"))] if page else at
        answer["next_page_token"] = _token(pipeline=p.id, filter=asked["filter"], order=asked["order"], at=last)
    if token is not None:
        answer["prev_page_token"] = token
    if p.while_reading:
        p.while_reading()
    return as_json(answer)


def _is_served(event: Json) -> bool:
    """Rows of level METRICS, such as gateways write them, are in the table only."""
    return event.get("level") != "METRICS"


def _place(event: Json) -> tuple[Any, str]:
    return shapes.instant(event["timestamp"]), str(event.get("id"))


def _order(request: Request) -> str:
    """Sorted by time only; newest first if not said."""
    wanted = request.call.query.get("order_by", [])
    if len(wanted) > 1 or any(not re.fullmatch(r"timestamp(\s+(asc|desc))?", text, re.I) for text in wanted):
        raise invalid("Events can be ordered by timestamp only")
    return "asc" if wanted and not wanted[0].lower().endswith("desc") else "desc"


def pipeline_permissions(workspace: Workspace, request: Request) -> Answer:
    """Who may do what; only for those who may manage it."""
    assert request.match is not None
    p = _pipeline(workspace, request)
    if not p.may(request.who, "CAN_MANAGE"):
        message = f"User {request.who.name} does not have Manage permissions on pipeline {p.id}."
        raise Refusal(403, "PERMISSION_DENIED", message)
    granted = {p.owner: "IS_OWNER", **p.permissions}
    entries = [
        {"user_name": name, "all_permissions": [{"permission_level": level, "inherited": False}]}
        for name, level in granted.items()
    ]
    return as_json({"object_id": f"/pipelines/{p.id}", "object_type": "pipelines", "access_control_list": entries})


# Jobs


def list_runs(workspace: Workspace, request: Request) -> Answer:
    """Newest first, 20 at a time unless asked otherwise, at most 25; tasks only if asked for."""
    size = request.number("limit", 20) or 25
    if not 0 < size <= 25:
        raise invalid(f"Invalid limit: {size}. The limit must be between 1 and 25.")
    if request.flag("active_only") and request.flag("completed_only"):
        raise invalid("active_only and completed_only cannot both be true")
    first, last = request.number("start_time_from", 0), request.number("start_time_to", 1 << 62)
    wanted = request.number("job_id", 0)
    found = [
        (job, run)
        for job in _jobs(workspace, request)
        for run in job.runs
        if first <= epoch_ms(run.start) <= last
        and (not wanted or job.job_id == wanted)
        and not (request.flag("active_only") and run.end)
        and not (request.flag("completed_only") and run.end is None)
    ]
    found.sort(key=lambda each: (each[1].start, each[1].run_id), reverse=True)
    start = int(_opened(token)["at"]) if (token := request.one("page_token")) else request.number("offset", 0)
    page = found[start : start + workspace.cut(size)]
    has_more = start + len(page) < len(found)
    answer: Json = {"has_more": has_more}
    if page:
        answer["runs"] = [_run(job, run, request.flag("expand_tasks")) for job, run in page]
    if has_more:
        answer["next_page_token"] = _token(at=start + len(page))
    if start:
        answer["prev_page_token"] = _token(at=max(0, start - size))
    return as_json(answer)


def _jobs(workspace: Workspace, request: Request) -> list[Job]:
    return [
        job
        for job in workspace.jobs.values()
        if job.viewers is None or request.who.is_admin or request.who.name in job.viewers
    ]


def _run(job: Job, run: JobRun, with_tasks: bool) -> Json:
    start, end = epoch_ms(run.start), epoch_ms(run.end) if run.end else 0
    answer: Json = {
        "job_id": job.job_id,
        "run_id": run.run_id,
        "job_run_id": run.run_id,
        "number_in_job": run.number,
        "creator_user_name": job.creator,
        "run_name": job.name,
        "run_type": "JOB_RUN",
        "trigger": run.trigger,
        "start_time": start,
        "end_time": end,
        "run_duration": end - start if end else 0,
        "state": _run_state(run),
        "run_page_url": f"https://stand-in.example/#job/{job.job_id}/run/{run.run_id}",
    }
    if with_tasks:
        answer["tasks"] = [
            {
                "run_id": task["run_id"],
                "task_key": task["task_key"],
                "attempt_number": 0,
                "start_time": start,
                "end_time": end,
                "state": _run_state(run),
                "pipeline_task": {"pipeline_id": task["pipeline_id"], "full_refresh": False},
            }
            for task in run.tasks[:100]
        ]
    return answer


def _run_state(run: JobRun) -> Json:
    if run.end is None:
        return {"life_cycle_state": "RUNNING", "state_message": "In run"}
    return {"life_cycle_state": "TERMINATED", "result_state": run.result, "state_message": ""}


def get_run(workspace: Workspace, request: Request) -> Answer:
    wanted = request.number("run_id", 0)
    for job in _jobs(workspace, request):
        for run in job.runs:
            if run.run_id == wanted:
                return as_json(_run(job, run, with_tasks=True))
    raise invalid(f"Run {wanted} does not exist.")


def list_jobs(workspace: Workspace, request: Request) -> Answer:
    size = request.number("limit", 20)
    if not 0 < size <= 100:
        raise invalid(f"Invalid limit: {size}. The limit must be between 1 and 100.")
    name = request.one("name")
    found = [job for job in _jobs(workspace, request) if name is None or job.name.lower() == name.lower()]
    start = int(_opened(token)["at"]) if (token := request.one("page_token")) else request.number("offset", 0)
    page = found[start : start + size]
    answer: Json = {"has_more": start + len(page) < len(found)}
    if page:
        answer["jobs"] = [_job(job) for job in page]
    if answer["has_more"]:
        answer["next_page_token"] = _token(at=start + len(page))
    return as_json(answer)


def _job(job: Job) -> Json:
    settings = _without_nulls({"name": job.name, "tags": job.tags or None, "format": "MULTI_TASK"})
    created = 1_735_689_600_000
    return {"job_id": job.job_id, "creator_user_name": job.creator, "created_time": created, "settings": settings}


def get_job(workspace: Workspace, request: Request) -> Answer:
    wanted = request.number("job_id", 0)
    for job in _jobs(workspace, request):
        if job.job_id == wanted:
            return as_json({**_job(job), "run_as_user_name": job.creator})
    raise invalid(f"Job {wanted} does not exist.")


# Who I am, SQL warehouses


def me(workspace: Workspace, request: Request) -> Answer:
    who = request.who
    answer = {
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "id": str(abs(hash(who.name)) % 10**15),
        "userName": who.name,
        "displayName": who.name,
        "active": True,
        "groups": [{"display": "admins" if who.is_admin else "users"}],
    }
    return as_json(answer)


def get_warehouse(workspace: Workspace, request: Request) -> Answer:
    assert request.match is not None
    found = statements.usable_warehouse(workspace, request.who, request.match["id"])
    return as_json(
        {"id": found.id, "name": found.name, "state": found.state, "cluster_size": "X-Small", "num_clusters": 1}
    )


def list_warehouses(workspace: Workspace, request: Request) -> Answer:
    usable = [w for w in workspace.warehouses.values() if request.who.is_admin or request.who.name in w.users]
    return as_json({"warehouses": [{"id": w.id, "name": w.name, "state": w.state} for w in usable]})


# OAuth


def oauth_endpoints(workspace: Workspace, request: Request) -> Answer:
    host = workspace.host
    return as_json(
        {
            "issuer": f"{host}/oidc",
            "authorization_endpoint": f"{host}/oidc/v1/authorize",
            "token_endpoint": f"{host}/oidc/v1/token",
            "grant_types_supported": ["client_credentials"],
        }
    )


def oauth_token(workspace: Workspace, request: Request) -> Answer:
    """A token for a service principal's secret."""
    fields = {name: values[-1] for name, values in parse_qs(request.raw.decode()).items()}
    client, secret = fields.get("client_id"), fields.get("client_secret")
    scheme, _, text = (request.headers.get("Authorization") or "").partition(" ")
    if scheme == "Basic":
        client, _, secret = base64.b64decode(text).decode().partition(":")
    is_right = fields.get("grant_type") == "client_credentials" and fields.get("scope") == "all-apis"
    return _token_for(workspace, client, secret, is_right)


def entra_token(workspace: Workspace, request: Request) -> Answer:
    """A token of Azure's directory for a service principal's secret and a resource, which is this workspace or Azure."""
    fields = {name: values[-1] for name, values in parse_qs(request.raw.decode()).items()}
    is_right = fields.get("grant_type") == "client_credentials" and bool(fields.get("resource"))
    return _token_for(workspace, fields.get("client_id"), fields.get("client_secret"), is_right)


def _token_for(workspace: Workspace, client: str | None, secret: str | None, is_right: bool) -> Answer:
    for who in workspace.principals.values():
        if who.client_id == client and who.client_secret is not None and who.client_secret == secret:
            if not is_right:
                return as_json({"error": "invalid_request", "error_description": "unsupported grant"}, 400)
            token = workspace.issue_token(who)
            seconds = workspace.token_seconds
            return as_json({"access_token": token, "token_type": "Bearer", "expires_in": seconds, "scope": "all-apis"})
    return as_json({"error": "invalid_client", "error_description": "Client authentication failed"}, 401)


def _without_nulls(value: Json) -> Json:
    return {name: content for name, content in value.items() if content is not None}


_ID = r"(?P<id>[^/]+)"


def _route(method: str, path: str, answer: Any, is_public: bool = False) -> Route:
    return Route(method, re.compile(path), answer, is_public)


ROUTES = [
    _route("GET", "/api/2.0/pipelines", list_pipelines),
    _route("GET", f"/api/2.0/pipelines/{_ID}", get_pipeline),
    _route("GET", f"/api/2.0/pipelines/{_ID}/updates", list_updates),
    _route("GET", f"/api/2.0/pipelines/{_ID}/updates/(?P<update>[^/]+)", get_update),
    _route("GET", f"/api/2.0/pipelines/{_ID}/events", list_events),
    _route("GET", f"/api/2.0/permissions/pipelines/{_ID}", pipeline_permissions),
    _route("GET", "/api/2.[12]/jobs/runs/list", list_runs),
    _route("GET", "/api/2.[12]/jobs/runs/get", get_run),
    _route("GET", "/api/2.[12]/jobs/list", list_jobs),
    _route("GET", "/api/2.[12]/jobs/get", get_job),
    _route("GET", "/api/2.0/preview/scim/v2/Me", me),
    _route("GET", "/api/2.0/sql/warehouses", list_warehouses),
    _route("GET", f"/api/2.0/sql/warehouses/{_ID}", get_warehouse),
    _route("POST", "/api/2.0/sql/statements/?", statements.execute),
    _route("GET", f"/api/2.0/sql/statements/{_ID}", statements.poll),
    _route("POST", f"/api/2.0/sql/statements/{_ID}/cancel", statements.cancel),
    _route("GET", f"/api/2.0/sql/statements/{_ID}/result/chunks/(?P<chunk>\\d+)", statements.chunk),
    _route("GET", f"/external/{_ID}/(?P<chunk>\\d+)", statements.external, is_public=True),
    _route("GET", "/oidc/.well-known/oauth-authorization-server", oauth_endpoints, is_public=True),
    _route("POST", "/oidc/v1/token", oauth_token, is_public=True),
    _route("POST", "/[^/]+/oauth2/token", entra_token, is_public=True),
]
