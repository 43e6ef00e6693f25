"""Data quality: rules, their days, weeks and lives."""

from monitoring_platform.marts.tables.contract import table

EXPECTATION_RESULTS = table(
    "expectation_results",
    "one data-quality rule on one dataset in one update",
    "pipeline_id update_id dataset expectation",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    dataset text Dataset as written in the log, the fullest spelling where there are several.
    expectation text Name of the rule.
    qualified_dataset text Dataset with catalog and schema as far as known, without back-ticks.
    flow_names text Flows that reported the rule, joined by comma.
    passed_records long Maximum in each batch, summed; null = never reported.
    failed_records long Likewise; says nothing about what was done with the records.
    evaluated_records long passed + failed; null = one of them is unknown.
    pass_rate_pct double 100 × passed / (passed + failed), unrounded; null at 0 of 0.
    failed_pct double 100 × failed / (passed + failed), unrounded; null at 0 of 0.
    last_event_ts time Newest event that reported the rule.
    """,
)
EXPECTATION_DAYS = table(
    "expectation_days",
    "one rule on one UTC day of one update",
    "pipeline_id update_id dataset expectation day",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    dataset text Dataset with catalog and schema as far as known, without back-ticks.
    expectation text Name of the rule.
    day date UTC day of the last event of a batch.
    flow_name text A flow that reported the rule; null = not given.
    passed_records long Maximum in each batch, summed; null = never reported.
    failed_records long Likewise.
    """,
)
WEEKLY_QUALITY = table(
    "weekly_quality",
    "one rule in one calendar week",
    "pipeline_id week_start dataset expectation",
    """
    pipeline_id text Identity of the pipeline.
    week_start date Monday, UTC.
    dataset text Dataset with catalog and schema as far as known.
    expectation text Name of the rule.
    flow_name text A flow that reported the rule; null = not given.
    passed_records long Records that passed in normal updates; null = never reported.
    failed_records long Records that failed.
    pass_rate_pct double 100 × passed / (passed + failed), unrounded; null at 0 of 0.
    previous_week_pass_rate_pct double The calendar week before; null = no results in it.
    change_points double Difference in percentage points; null = one of them is null.
    """,
)
EXPECTATION_LIFECYCLE = table(
    "expectation_lifecycle",
    "one rule on one dataset, over all completed normal updates",
    "pipeline_id dataset expectation",
    """
    pipeline_id text Identity of the pipeline.
    dataset text Last part of the dataset's name.
    expectation text Name of the rule.
    first_seen time Start of the first update that defined or judged by it.
    last_seen time Start of the newest one.
    last_evaluated time Start of the newest update with counts; null = never evaluated.
    action text What is done with records that fail: ALLOW, DROP, FAIL, or as written; null = not said.
    previous_action text What was done before it changed last; null = it never did.
    action_changed_at time Start of the update with the new action; null = it never changed.
    gone_at time Start of the first update that ran the dataset without it; null = it is there.
    renamed_to text The one rule that came when this one went; null = not renamed.
    state text active, renamed, vanished, never_evaluated or action_changed.
    """,
)
QUARANTINE_TRENDS = table(
    "quarantine_trends",
    "one pipeline on one UTC day with quality data",
    "pipeline_id day",
    """
    pipeline_id text Identity of the pipeline.
    day date UTC day of the batches.
    rows_dropped long Records dropped by expectations; null = no quality data.
    rows_written long Rows written; null = not reported.
    failed_records long Records that failed a rule, whatever was done with them; counted once for each rule.
    passed_records long Records that passed a rule, likewise.
    dropped_pct double 100 × dropped / (dropped + written), unrounded; null = one is unknown, or 0 of 0.
    """,
)
