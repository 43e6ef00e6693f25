"""What is expected of pipelines and who is told when it does not hold: objectives, rules, silences, notifications."""

import re
from datetime import date, datetime, time, timezone
from typing import Annotated, Any, Literal, TypeAlias
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, SecretStr, ValidationInfo, field_validator, model_validator

from monitoring_platform.config.base import (
    Bool,
    Float,
    Int,
    Model,
    Section,
    Text,
    Texts,
    Zone,
    matches,
    with_sql,
    wrong,
)

Severity: TypeAlias = Literal["info", "warning", "error"]
Weekday: TypeAlias = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _clock(value: Any) -> Any:
    """A time of day. YAML 1.1 reads an unquoted 06:00 as 360, minutes of the day."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 24 * 60:
        return time(value // 60, value % 60)
    if isinstance(value, str) and re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d(:00)?", value):
        hours, minutes = value.split(":")[:2]
        return time(int(hours), int(minutes))
    if isinstance(value, time):
        return value
    raise wrong("must be a time of day, such as '06:00'")


Clock: TypeAlias = Annotated[time, BeforeValidator(_clock)]


class Chosen(Model):
    """Which pipelines an entry is about. Without `pipelines` and `tags`: all."""

    pipelines: tuple[Text, ...] = ()
    """Globs on the pipeline's id or name."""
    tags: Texts = {}
    """Tags that a pipeline must all have."""

    def fits(self, pipeline_id: str, name: str | None, tags: dict[str, str]) -> bool:
        """Whether the entry is about this pipeline."""
        named = not self.pipelines or matches(self.pipelines, pipeline_id, name)
        return named and all(tags.get(key) == value for key, value in self.tags.items())

    @property
    def nearness(self) -> int:
        """2 = names pipelines, 1 = by tag, 0 = all: the nearest entry counts, of equally near ones the later."""
        return 2 if self.pipelines else 1 if self.tags else 0


class Calendar(Model):
    """Days on which something is due."""

    name: Text
    """Name by which objectives refer to it."""
    weekdays: tuple[Weekday, ...] = WEEKDAYS
    """Days of the week, for example [mon, tue, wed, thu, fri]."""
    holidays: tuple[date, ...] = ()
    """Days that do not count although their weekday does."""

    def has(self, day: date) -> bool:
        """Whether something is due on this day."""
        return WEEKDAYS[day.weekday()] in self.weekdays and day not in self.holidays


class Maintenance(Chosen):
    """A time in which trouble is expected: nothing is opened, no deadline counts."""

    start: datetime | None = None
    """Once: from when; local to `time_zone` unless it has an offset. Goes with `end`."""
    end: datetime | None = None
    """Once: until when."""
    weekdays: tuple[Weekday, ...] = ()
    """Every week: on these days. Goes with `from` and `to`."""
    from_time: Clock | None = Field(default=None, alias="from")
    """Every week: from this time of day."""
    to_time: Clock | None = Field(default=None, alias="to")
    """Every week: until this time of day; the next day's if it is not later than `from`."""
    time_zone: Zone | None = None
    """Time zone of these times; by default that of the configuration."""
    reason: Text | None = None
    """Why, for people."""

    @model_validator(mode="after")
    def _once_or_weekly(self) -> "Maintenance":
        once = (self.start is not None, self.end is not None)
        weekly = (bool(self.weekdays), self.from_time is not None, self.to_time is not None)
        if (all(once), any(weekly)) != (True, False) and (any(once), all(weekly)) != (False, True):
            raise wrong("needs a time. Give 'start' and 'end', or 'weekdays', 'from' and 'to'")
        if self.start and self.end and self.start.replace(tzinfo=None) >= self.end.replace(tzinfo=None):
            raise wrong("must end after it starts", "end")
        return self


class Backlog(Model):
    """The largest backlog that is fine; of a flow, in the units that it reports."""

    bytes: Annotated[Int | None, Field(gt=0)] = None
    """Bytes."""
    records: Annotated[Int | None, Field(gt=0)] = None
    """Records."""
    files: Annotated[Int | None, Field(gt=0)] = None
    """Files."""
    seconds: Annotated[Float | None, Field(gt=0)] = None
    """Seconds behind the source."""


class Slo(Chosen):
    """Objectives. Each is taken from the nearest entry that sets it: by pipeline, then by tag, then for all."""

    duration_minutes: Annotated[Float | None, Field(gt=0)] = None
    """A request takes at most so long, and succeeds. For all: 45."""
    success: Bool | None = None
    """A request succeeds in the end, whatever its attempts. For all: true."""
    fresh_hours: Annotated[Float | None, Field(gt=0)] = None
    """The last success is at most so old."""
    ready_by: Clock | None = None
    """A success is there by this time of day."""
    ready_within_hours: Annotated[Float | None, Field(gt=0, le=48)] = None
    """And ended at most so many hours before. By default 12."""
    calendar: Text | None = None
    """Days on which `ready_by` counts: the name of a calendar. By default every day."""
    time_zone: Zone | None = None
    """Time zone of `ready_by`; by default that of the configuration."""
    pass_rate_pct: Annotated[Float | None, Field(gt=0, le=100)] = None
    """Each expectation of a run passes at least this share of its records."""
    backlog: Backlog | None = None
    """No flow has more waiting."""
    goal_pct: Annotated[Float | None, Field(gt=0, lt=100)] = None
    """Share of requests, or days, for which an objective must hold; the rest is its error budget. By default 99."""


class Override(Chosen):
    """A rule for some pipelines."""

    enabled: Bool | None = None
    """False: the rule leaves them alone."""
    severity: Severity | None = None
    """Another severity."""
    limits: dict[str, Float] = {}
    """Other limits."""


class Rule(Model):
    """A rule: one of the ready-made ones, or one's own with `sql`."""

    enabled: Bool | None = None
    """Whether it opens incidents. By default true, except for rules that rest on unstable fields."""
    severity: Severity | None = None
    """How bad it is. By default as the rule says; of one's own: warning."""
    owner: Text | None = None
    """Who is told, if not the owner of the pipeline."""
    for_cycles: Annotated[Int, Field(ge=1)] = 1
    """It must hold in so many evaluations in a row before an incident opens."""
    for_minutes: Annotated[Float, Field(ge=0)] = 0.0
    """And for so long."""
    escalate_after_minutes: Annotated[Float | None, Field(gt=0)] = None
    """A warning that is open for so long becomes an error."""
    limits: dict[str, Float] = {}
    """Limits by name, see docs/health.md."""
    overrides: tuple[Override, ...] = ()
    """Other settings for some pipelines: the nearest entry counts, of equally near ones the later."""
    sql: Text | None = None
    """Of one's own: one SELECT in DuckDB's SQL that gives the offenders, with a column pipeline_id. It reads any table
    by its bare name, as known at the time of the evaluation, and that time as `clock.now`."""
    sql_path: Text | None = None
    """A file with that SELECT; relative to the configuration."""
    description: Text | None = None
    """Of one's own: what holds when all is well."""

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, dict) or value.get("sql_path") is None:
            return value
        if value.get("sql") is not None:
            raise wrong("needs one of 'sql' and 'sql_path'. Leave out the other", "sql_path")
        return with_sql(value, info)


class Snooze(Chosen):
    """Trouble that is known: no incident opens until then."""

    rules: tuple[Text, ...] = ("*",)
    """Globs on names of rules."""
    until: datetime
    """Until when; UTC unless it has an offset."""
    reason: Text | None = None
    """Why, for people."""

    @property
    def ends(self) -> datetime:
        """`until` as an instant."""
        return instant(self.until, "UTC")


class Route(Chosen):
    """Who is told about what: all that is said must fit."""

    owners: tuple[Text, ...] = ()
    """Globs on the owner."""
    rules: tuple[Text, ...] = ()
    """Globs on names of rules."""
    severities: tuple[Severity, ...] = ()
    """Severities."""
    channels: tuple[Text, ...]
    """Names of channels."""


class QuietHours(Model):
    """When less urgent messages wait."""

    from_time: Clock = Field(alias="from")
    """From this time of day."""
    to_time: Clock = Field(alias="to")
    """Until this time of day."""
    time_zone: Zone | None = None
    """Time zone of these times; by default that of the configuration."""
    severities: tuple[Severity, ...] = ("info", "warning")
    """What waits."""


class MonthlyDigest(Model):
    """A summary at a time of day on the first of a month."""

    at: Clock
    """When."""
    time_zone: Zone | None = None
    """Time zone of that time; by default that of the configuration."""
    channels: tuple[Text, ...]
    """Names of channels."""

    def falls_on(self, day: date) -> bool:
        """Whether it is sent on this local day."""
        return day.day == 1


class Digest(MonthlyDigest):
    """A summary at a time of day."""

    weekdays: tuple[Weekday, ...] = WEEKDAYS
    """On which days."""

    def falls_on(self, day: date) -> bool:
        """Whether it is sent on this local day."""
        return WEEKDAYS[day.weekday()] in self.weekdays


class MonitoringJob(Model):
    """Messages about the monitoring job itself."""

    on_start: tuple[Text, ...] = ()
    """Channels that hear of each start."""
    on_success: tuple[Text, ...] = ()
    """Channels that hear of each success."""
    on_failure: tuple[Text, ...] | None = None
    """Channels that hear of failures. By default the fallback."""


def _reference(value: Any) -> Any:
    """Addresses of channels hold secrets: in a file they come from the environment."""
    if isinstance(value, Section):
        for name, text in value.items():
            if isinstance(text, str) and "${" not in value.raw.get(name, ""):
                raise wrong("holds a secret. Take it from the environment: write ${NAME}", name)
    return value


class Notifications(Model):
    """Who is told, where, and how often."""

    channels: Annotated[dict[str, SecretStr], BeforeValidator(_reference)] = {}
    """Channels by name: addresses as Apprise takes them, from the environment."""
    routes: tuple[Route, ...] = ()
    """Who is told about what; all that fit are told."""
    fallback: tuple[Text, ...] = ()
    """Channels for what no route fits. Needed as soon as there is a channel."""
    max_per_hour: Annotated[Int, Field(ge=1)] = 20
    """Messages to one channel within an hour; of more the last one says how many there are."""
    quiet_hours: QuietHours | None = None
    """When less urgent messages wait."""
    reopen_hours: Annotated[Float, Field(ge=0)] = 24.0
    """Trouble that returns within so many hours is the same incident."""
    daily: Digest | None = None
    """The summary of the day."""
    weekly: Digest | None = None
    """The quality report of the week, with the week before."""
    monthly: MonthlyDigest | None = None
    """The report of the month, with the month before."""
    monitoring_job: MonitoringJob = MonitoringJob()
    """Messages about the monitoring job itself."""
    heartbeat_url: SecretStr | None = None
    """Address that is called after each cycle that succeeded, for a watchdog elsewhere."""
    link: Text | None = None
    """Address of the page, for links in messages."""

    @field_validator("heartbeat_url", mode="after")
    @classmethod
    def _is_web(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().startswith(("http://", "https://")):
            raise wrong("must be an address that begins with https://")
        return value

    @model_validator(mode="after")
    def _channels_are_known(self) -> "Notifications":
        named: list[tuple[tuple[str | int, ...], tuple[str, ...]]] = [(("fallback",), self.fallback)]
        named += [(("routes", place, "channels"), route.channels) for place, route in enumerate(self.routes)]
        digests = {"daily": self.daily, "weekly": self.weekly, "monthly": self.monthly}
        named += [((kind, "channels"), digest.channels) for kind, digest in digests.items() if digest]
        job = self.monitoring_job
        named += [(("monitoring_job", kind), getattr(job, kind) or ()) for kind in type(job).model_fields]
        for at, names in named:
            for place, name in enumerate(names):
                if name not in self.channels:
                    known = ", ".join(self.channels) or "(there is none)"
                    raise wrong(f"names no channel. Write one of: {known}", *at, place)
        if self.channels and not self.fallback:
            raise wrong("is needed: channels for what no route fits", "fallback")
        return self


def instant(value: datetime, zone: str) -> datetime:
    """A time of the configuration as an instant: local to the zone unless it has an offset."""
    return (value if value.tzinfo else value.replace(tzinfo=ZoneInfo(zone))).astimezone(timezone.utc)


#: The ready-made rules and their limits; docs/health.md says what they mean.
READY_RULES: dict[str, dict[str, float]] = {
    "request_failed": {},
    "failure_rate_high": {"percent": 30.0, "hours": 24.0, "min_failed": 3.0},
    "deadline_missed": {},
    "deadline_at_risk": {},
    "not_fresh": {},
    "duration_over_target": {},
    "budget_burning": {"fast": 14.4, "slow": 6.0, "min_missed": 3.0},
    "run_slow": {"times": 2.0, "min_extra_minutes": 2.0, "min_runs": 5.0},
    "duration_growing": {"weekly_percent": 5.0, "min_runs": 3.0},
    "rows_zero": {"min_runs": 3.0, "usual_percent": 90.0},
    "rows_changed": {"drop_percent": 40.0, "rise_percent": 200.0, "deviations": 4.0, "min_runs": 5.0, "min_days": 7.0},
    "pass_rate_low": {"percent": 99.0},
    "pass_rate_falling": {"deviations": 4.0, "min_records": 1000.0},
    "rows_dropped": {"times": 3.0, "deviations": 5.0, "min_records": 100.0, "min_runs": 5.0},
    "backlog_high": {},
    "backlog_growing": {"times": 3.0, "hours": 6.0},
    "flow_stalled": {"minutes": 60.0},
    "recomputed_in_full": {"runs": 2.0},
    "expectation_lost": {"runs": 2.0},
    "cost_high": {"times": 2.0, "deviations": 5.0, "min_days": 7.0},
    "pipeline_not_seen": {},
    "pipeline_silent": {"times": 3.0, "min_runs": 5.0},
    "update_missing": {},
    "stream_lagging": {"minutes": 60.0},
}
#: These rest on fields that the vendor marks as evolving, and are off unless switched on.
UNSTABLE_RULES = frozenset({"stream_lagging"})
