"""What is expected of pipelines, what is wrong, since when, and who was told."""

from monitoring_platform.marts.tables.contract import table

SLO_RESULTS = table(
    "slo_results",
    "one objective of a pipeline at one request or one deadline; judged by the target of that time, kept",
    "pipeline_id objective occurrence_id",
    """
    pipeline_id text Identity of the pipeline.
    objective text duration, success, ready_by, pass_rate or backlog.
    occurrence_id text The request; for ready_by the local day, for backlog the UTC hour.
    at time When it was decided: end of the request or hour, or the deadline.
    pipeline_name text Name at that time; null = never said.
    update_id text Last attempt of the request, update of the success that came first, or of the backlog; null = none.
    target double What was wanted, in `unit`.
    unit text minutes, success, epoch seconds (of the deadline), percent, or the unit of the backlog.
    value double What was reached, in `unit`; null = unknown.
    met bool Whether it was; a failed request meets nothing. Null = unknown: it counts for nothing.
    """,
)
SLO_STATUS = table(
    "slo_status",
    "one objective of a pipeline now, over the last 28 days",
    "pipeline_id objective",
    """
    pipeline_id text Identity of the pipeline.
    objective text duration, success, fresh, ready_by, pass_rate or backlog.
    pipeline_name text Newest name; null = never said.
    owner text From the configuration; null = nobody.
    period_start time 28 days before the evaluation.
    period_end time The evaluation.
    target double What is wanted, in `unit`.
    unit text minutes, success, hours, epoch seconds (of the next deadline), percent, or the unit of the backlog.
    goal_pct double Share of occurrences that must meet it.
    total long Occurrences judged in the period.
    met long Of these met.
    missed long Of these missed.
    actual_pct double 100 × met / total; null = none judged.
    error_budget_left_pct double Share of the allowed misses that is left, negative when overdrawn; null = none judged.
    burn_rate_1d double Speed at which the budget was used in the last day, 1 = as fast as allowed; null = none judged.
    burn_rate_7d double Likewise, the last 7 days.
    latest_value double The newest occurrence, in `unit`; for fresh the age now. Null = unknown.
    latest_met bool Whether that one met it; null = unknown.
    latest_at time When that one was decided.
    due_at time Next deadline; for fresh the time at which it will be too old. Null = has none.
    expected_at time When the data is expected at the present pace; null = nothing to expect from.
    basis text What `expected_at` rests on, in words; null likewise.
    state text met, missed, at_risk (it will be missed at this pace), or unknown.
    """,
)
FINDINGS = table(
    "findings",
    "one thing that a rule finds wrong now",
    "rule pipeline_id subject",
    """
    rule text Name of the rule.
    pipeline_id text The pipeline.
    subject text Flow, dataset, expectation or objective; empty = the pipeline as a whole.
    pipeline_name text Newest name; null = never said.
    owner text Who answers for it; null = nobody.
    severity text info, warning or error.
    fingerprint text The incident that it belongs to.
    title text What is wrong, in a line.
    since time When the trouble began, by the log; null = not known.
    first_found_at time Clock of the first evaluation in a row that found it.
    cycles long Evaluations in a row that found it.
    state text open, pending (not for long enough), snoozed, maintenance, or folded (its cause upstream is or was open).
    incident_id text The incident, of something folded that of its cause; null = none.
    evidence text Numbers, first error and what changed, as JSON.
    """,
)
INCIDENTS = table(
    "incidents",
    "one trouble with one cause, from the first to the last evaluation that found it",
    "incident_id",
    """
    incident_id text Identity; trouble that returns soon keeps it.
    fingerprint text Rule and cause: the same for the same trouble at another time.
    rule text Name of the rule.
    title text What is wrong, in a line.
    severity text info, warning or error; the worst so far.
    pipeline_ids texts Pipelines concerned, sorted; downstream ones are in the evidence.
    pipeline_names texts Their names, in the same order.
    owner text Who answers for it; of several pipelines the owner of most. Null = nobody.
    started_at time When the trouble began, by the log; null = not known.
    opened_at time Clock of the evaluation that opened it.
    last_seen_at time Clock of the newest evaluation that found it.
    resolved_at time Clock of the evaluation that no longer found it; null = open.
    escalated_at time When it became an error, or more pipelines were concerned; null = never.
    count long Evaluations that found it.
    reopened long How often it came back within the time that counts as the same.
    evidence text Numbers, first error, what changed, affected pipelines downstream, as JSON.
    """,
)
INCIDENT_EVENTS = table(
    "incident_events",
    "one transition of one incident",
    "incident_id at transition",
    """
    incident_id text The incident.
    at time Clock of the evaluation.
    transition text opened (also when it comes back), escalated or resolved.
    is_told bool Whether people are told: not each time that it comes back, and not about the end of such a time.
    severity text Severity then.
    pipeline_ids texts Pipelines concerned then.
    title text What was wrong, in a line.
    evidence text As JSON.
    """,
)
ALERT_DELIVERIES = table(
    "alert_deliveries",
    "one message to one channel",
    "delivery_id",
    """
    delivery_id text Identity; messages carry it, so that a repeat can be told.
    incident_id text The incident; null = a digest, or a message about the monitoring job.
    transition text opened, escalated or resolved; daily, weekly, monthly, job_started, job_succeeded or job_failed.
    transition_at time When that was.
    channel text Name of the channel.
    due_at time Not sent before; later than the transition in quiet hours.
    sent_at time When the channel took it; null = not yet.
    attempts long Tries so far, the one under way included.
    next_try_at time Not tried before, after a failure; null = when due.
    error text Why the last try failed, without secrets; null = it did not.
    title text First line of the message.
    body text The rest, as plain text.
    """,
)
RULE_RESULTS = table(
    "rule_results",
    "one rule at its newest evaluation",
    "rule",
    """
    rule text Name of the rule.
    evaluated_at time Clock of the evaluation.
    found long What it found, whatever became of it.
    open long Of these in open incidents.
    not_processed long Pipelines whose newest events could not be read: of these nothing is resolved.
    error text Why it could not be evaluated; null = it was. Then it resolves nothing.
    """,
)
TABLES = (
    SLO_RESULTS,
    SLO_STATUS,
    FINDINGS,
    INCIDENTS,
    INCIDENT_EVENTS,
    ALERT_DELIVERIES,
    RULE_RESULTS,
)
