"""From transitions to rows of `alert_deliveries`: who is told, and when. Pure; the same input gives the same ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from monitoring_platform.config import Notifications, Settings, matches
from monitoring_platform.health.calendars import end_of_quiet
from monitoring_platform.health.incidents import digest
from monitoring_platform.health.notify import messages
from monitoring_platform.health.notify.messages import Message

Row = dict[str, Any]


def plan(
    events: Iterable[Row], told: Mapping[str, set[str]], tags: Mapping[str, dict[str, str]], settings: Settings
) -> list[Row]:
    """Deliveries for transitions in the order of their time, see `messages.of_incident` for their columns.

    `told`: channels that know of an incident already; `tags`: those of pipelines, by id.
    """
    known = {incident_id: set(channels) for incident_id, channels in told.items()}
    rows = []
    for event in events:
        knowing = known.setdefault(event["incident_id"], set())
        if event["transition"] == "resolved":
            channels = sorted(knowing & settings.notifications.channels.keys())
        else:
            channels = routed(event, tags, settings.notifications)
            knowing.update(channels)
        if channels:
            message = messages.of_incident(event, settings.time_zone)
            due = _due(event, settings)
            rows += [
                delivery(event["transition"], event["at"], channel, message, event["incident_id"], due_at=due)
                for channel in channels
            ]
    return rows


def routed(event: Row, tags: Mapping[str, dict[str, str]], notifications: Notifications) -> list[str]:
    """Channels for a transition, each once: of all routes that fit, else the fallback.

    What is merely for information is sent only where a route asks for it; the others find it in the digest.
    """
    found: dict[str, None] = {}
    for route in notifications.routes:
        if route.severities and event["severity"] not in route.severities:
            continue
        if event["severity"] == "info" and not route.severities:
            continue
        if route.owners and not matches(route.owners, event["owner"] or ""):
            continue
        if route.rules and not matches(route.rules, event["rule"]):
            continue
        if any(route.fits(key, event["names"].get(key), tags.get(key, {})) for key in event["pipeline_ids"]):
            found |= dict.fromkeys(route.channels)
    if not found and event["severity"] != "info":
        found = dict.fromkeys(notifications.fallback)
    return list(found)


def _due(event: Row, settings: Settings) -> datetime:
    quiet = settings.notifications.quiet_hours
    at: datetime = event["at"]
    return end_of_quiet(quiet, settings.time_zone, at) if quiet and event["severity"] in quiet.severities else at


def hurried(waiting: Iterable[Row], planned: Iterable[Row]) -> list[Row]:
    """Unsent deliveries that have to go earlier, because a later one of the same incident to that channel does."""
    first: dict[tuple[str, str], datetime] = {}
    for row in planned:
        if row["incident_id"] is not None:
            key = row["incident_id"], row["channel"]
            first[key] = min(first.get(key, row["due_at"]), row["due_at"])
    return [
        {**row, "due_at": first[row["incident_id"], row["channel"]]}
        for row in waiting
        if row["sent_at"] is None and first.get((row["incident_id"], row["channel"]), row["due_at"]) < row["due_at"]
    ]


def delivery(
    transition: str,
    at: datetime,
    channel: str,
    message: Message,
    incident_id: str | None = None,
    *,
    subject: str | None = None,
    due_at: datetime | None = None,
) -> Row:
    """A row of `alert_deliveries`. Without an incident the `subject` (run, day) tells one from another."""
    about = incident_id or subject or ""
    when = at.astimezone(timezone.utc).isoformat() if incident_id else ""
    return {
        "delivery_id": digest(about, transition, when, channel),
        "incident_id": incident_id,
        "transition": transition,
        "transition_at": at,
        "channel": channel,
        "due_at": due_at or at,
        "sent_at": None,
        "attempts": 0,
        "next_try_at": None,
        "error": None,
        "title": message.title,
        "body": message.body,
    }
