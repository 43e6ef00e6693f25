"""What workspaces and billing add to the logs: jobs, money, and updates that no log has."""

from monitoring_platform.marts.tables.contract import table

JOB_MATCHES = table(
    "job_matches",
    "one update that a run of a job started",
    "pipeline_id update_id",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    pipeline_name text Name at the time of the update; null = never said.
    request_id text The request; its attempts belong to one run of a job.
    start_ts time Start of the update.
    method text exact (the timeline names the run), request (known of another attempt), nearest (by start, < 5 minutes).
    distance_seconds double Between the start of the task and of the update; large for a retry.
    job_id text The job.
    job_run_id text The run of the job.
    task_run_id text The run of the task that names the pipeline.
    task_key text Name of that task; null = not said.
    job_name text Name of the job; null = not said.
    trigger text What started the run (PERIODIC, ONE_TIME, RETRY, …); null = not said.
    run_start_time time Start of the run.
    run_end_time time End of the run; null = it ran when it was read last.
    run_status text Result of the run, or UNKNOWN.
    pipeline_tags text Tags of the pipeline as JSON when the run was read; {} = none.
    job_tags text Tags of the job as JSON when the run was read; {} = none.
    """,
)
JOBS_STATS = table(
    "jobs_stats",
    "one update that a run of a job started; job_matches says how that is known",
    "pipeline_id update_id",
    """
    pipeline_id text Identity of the pipeline.
    pipeline_name text Name at the time of the update; null = never said.
    update_id text The update.
    job_id text The job.
    job_run_id text The run of the job.
    job_name text Name of the job; null = not said.
    job_run_start_time time Start of the run.
    job_run_end_time time End of the run; null = it ran when it was read last.
    job_run_status text Result of the run, or UNKNOWN.
    pipeline_tags text Tags of the pipeline as JSON; {} = none.
    job_tags text Tags of the job as JSON; {} = none.
    """,
)
PIPELINE_COSTS = table(
    "pipeline_costs",
    "usage of one SKU by one pipeline on one day, of one update, of one maintenance, or of neither",
    "cost_id",
    """
    cost_id text All that tells the row from others, joined.
    pipeline_id text Identity of the pipeline; the ledger need not know it.
    usage_date date UTC day of the usage.
    kind text update, maintenance, or other.
    update_id text The update (attempt); null = no update's.
    maintenance_id text The maintenance; null = no maintenance.
    request_id text Request of the update; null = none, or the update is in no log.
    attempt_number long Which attempt of the request; null likewise.
    outcome text State of the update: FAILED is money spent on an attempt that failed. Null likewise.
    run_kind text normal, or explore, validate, maintenance; null likewise.
    product text billing_origin_product: DLT, SQL (tables of Databricks SQL), LAKEFLOW_CONNECT, …; null = not said.
    sku_name text What is billed.
    cloud text AWS, AZURE or GCP; null = not said.
    usage_unit text Unit of the quantity, such as DBU; null = not said.
    records long Records of billed usage, corrections included.
    usage_quantity quantity Units used, corrections counted in; null = unreadable.
    cost money Quantity × list price at the time, promotions included; exact to 12 digits. Null = unpriced_reason.
    currency text Currency of the cost; null = no cost.
    unpriced_reason text Why the cost is unknown: no price, prices in several currencies; null = it is known.
    final_at time Final where context_reads.complete_to is later, three days after the day; corrections restate it.
    """,
)
MISSING_UPDATES = table(
    "missing_updates",
    "one update that a workspace knows and no log has; empty = proof that no run was lost",
    "pipeline_id update_id",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    created_at time When it was created.
    ended_at time When it ended; null = open, or not known.
    first_known_at time Clock of the run that first knew it: its log may need a while.
    reason text log_not_read (no event of the pipeline was seen), before_log (older than its oldest event), not_in_log.
    request_id text The request; null = not said.
    state text Last state or result said; null = none yet.
    update_type text REFRESH, FULL_REFRESH or VALIDATE; null = not said.
    trigger_type text Why it started; null = not said.
    known_from texts Who says so: listing, timeline, updates.
    source text Name of the source in the configuration.
    """,
)
