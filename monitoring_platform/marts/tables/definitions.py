"""What is defined and planned: flows, datasets, schemas, lineage, refresh decisions."""

from monitoring_platform.marts.tables.contract import table

FLOW_DEFINITIONS = table(
    "flow_definitions",
    "one flow as defined for one update",
    "pipeline_id update_id flow_name",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    flow_name text The flow.
    flow_id text Its flow_id; null = not given.
    event_ts time When it was defined.
    output_dataset text Dataset that it writes, as written; null = a sink, or not given.
    output_sink text Sink that it writes; null = a dataset.
    flow_type text COMPLETE, CHANGE, SNAPSHOT_CHANGE, APPEND, MATERIALIZED_VIEW, VIEW, or another.
    language text SQL, PYTHON, SCALA, or another.
    once bool Whether it runs once; null = not said.
    input_datasets texts Datasets that it reads, as written.
    default_catalog text Catalog of unqualified names; null = unknown.
    default_schema text Schema of unqualified names; null = unknown.
    fields fields Columns of what it writes; null = not given.
    comment text Comment; null = none.
    explain_text text Plan as text, redacted; null = not given.
    """,
)
FLOW_LINEAGE = table(
    "flow_lineage",
    "one edge (input dataset, flow) of the graph of one update",
    "pipeline_id update_id flow_name input_dataset",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update in which the edge was valid.
    flow_name text The flow.
    input_dataset text Dataset that the flow reads, as written.
    output_dataset text Dataset that the flow writes, as written; null = a sink, or not given.
    output_sink text Sink that the flow writes; null = a dataset.
    qualified_input text Input with catalog and schema as far as known, without back-ticks: joins across pipelines.
    qualified_output text Output likewise; null = a sink, or not given.
    flow_type text Type of the flow.
    language text Language of the flow.
    event_ts time When the flow was defined.
    """,
)
DATASET_DEFINITIONS = table(
    "dataset_definitions",
    "one dataset as defined for one update",
    "pipeline_id update_id dataset",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    dataset text Name as origin says.
    dataset_type text TABLE, VIEW, MATERIALIZED_VIEW, STREAMING_TABLE, or another.
    num_flows long Flows that write it; null = not said.
    rules rules Its expectations with their action (what is done with records that fail).
    fields fields Its columns; null = not given.
    catalog_name text Catalog; null = not given.
    schema_name text Schema; null = not given.
    event_ts time When it was defined.
    """,
)
DATASET_SCHEMAS = table(
    "dataset_schemas",
    "one column of one dataset in one update",
    "pipeline_id update_id dataset column_name",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    dataset text The dataset, as its definition (else its flow's) spells it.
    column_name text The column.
    data_type text Its type as text; null = not given.
    comment text Its comment; null = none.
    event_ts time When it was defined.
    """,
)
SCHEMA_CHANGES = table(
    "schema_changes",
    "one column that differs from the dataset's update before",
    "pipeline_id update_id dataset column_name",
    """
    pipeline_id text Identity of the pipeline.
    update_id text First update with the new schema.
    previous_update_id text Last update with the old one, at most 35 days before.
    dataset text The dataset.
    column_name text The column.
    changed_at time Start of the update.
    old_type text Type before; null = not there, or not given.
    new_type text Type after; null = not there, or not given.
    change text added, dropped or type_changed.
    """,
)
REFRESH_DECISIONS = table(
    "refresh_decisions",
    "one decision how to refresh a materialized view",
    "pipeline_id event_id",
    """
    pipeline_id text Identity of the pipeline.
    event_id text The event.
    event_ts time When.
    update_id text The update.
    flow_name text The flow; null = not given.
    flow_id text The flow's id; null = not given.
    dataset text Dataset as origin says; null = not given.
    technique text full, incremental, no_op, or unknown (nothing chosen).
    maintenance_type text The chosen technique as written; null = none was.
    reasons text Issues, each with its sub-type, joined by comma; null = none.
    offending_tables text Tables that the issues name; null = none.
    offending_expressions text Expressions, operators and joins that the issues name; null = none.
    target_table text The view; null = not given.
    target_bytes long Size of the view; null = not given.
    source_bytes long Size of its sources; null = not given.
    change_bytes long Size of what changed in them; null = not given.
    techniques techniques All techniques with their costs.
    issues issues All issues.
    """,
)
RECOMPUTE_WATCH = table(
    "recompute_watch",
    "one episode in which a view that used to refresh incrementally is recomputed in full",
    "pipeline_id flow_name since_update_id",
    """
    pipeline_id text Identity of the pipeline.
    flow_name text The flow of the view.
    since_update_id text First update that recomputed it.
    since_ts time Start of that update.
    until_ts time Start of the first update that was incremental again; null = it still recomputes.
    is_current bool Whether it still recomputes.
    last_full_ts time Newest update of the episode.
    full_runs long Updates of the episode.
    reasons text Issues of the first decision; null = none given.
    offending_tables text Tables that they name; null = none.
    offending_expressions text Expressions that they name; null = none.
    flow_id_changed bool Second witness: the flow_id changed with the first one; null = not known.
    usual_incremental_seconds double Median duration of its incremental refreshes before; null = none timed.
    extra_minutes double Time of the episode beyond the usual one; null = not known.
    """,
)
FLOW_RESETS = table(
    "flow_resets",
    "one flow whose flow_id differs from that of its update before",
    "pipeline_id update_id flow_name",
    """
    pipeline_id text Identity of the pipeline.
    update_id text First update with the new flow_id.
    flow_name text The flow.
    reset_at time Start of that update.
    previous_update_id text Last update with the old flow_id, at most 35 days before.
    previous_flow_id text The old flow_id.
    flow_id text The new flow_id.
    explanation text full_refresh (asked for), recompute (planned in full), reset (neither: a checkpoint was lost).
    """,
)
DEPRECATIONS = table(
    "deprecations",
    "one notice that something the pipeline uses will change or go",
    "pipeline_id event_id",
    """
    pipeline_id text Identity of the pipeline.
    event_id text The event.
    event_ts time When.
    update_id text The update; null = outside any.
    event_type text deprecation, or a behaviour change.
    level text Level of the event.
    code text What is meant, as the log says; null = not said.
    message text Message; redacted.
    """,
)
HOOKS = table(
    "hooks",
    "one report about an event hook",
    "pipeline_id event_id",
    """
    pipeline_id text Identity of the pipeline.
    event_id text The event.
    event_ts time When.
    update_id text The update; null = outside any.
    hook text Name of the hook.
    status text Its status.
    level text Level of the event.
    message text Message; redacted.
    """,
)
DRIFT_DAYS = table(
    "drift_days",
    "one unknown thing in the events of one pipeline and UTC day",
    "pipeline_id event_date what",
    """
    pipeline_id text Identity of the pipeline.
    event_date date UTC day.
    what text Path of the unknown: event_type=…, details.<type>.<member>, …=<value>, origin.<member>, column.<name>.
    events long Events that hold it.
    first_seen time First of them.
    last_seen time Newest of them.
    example_event_id text First of them.
    example text Beginning of its details, redacted; null = it has none.
    """,
)
SCHEMA_DRIFT = table(
    "schema_drift",
    "one unknown thing in the events of one pipeline",
    "pipeline_id what",
    """
    pipeline_id text Identity of the pipeline.
    what text Path of the unknown: event_type=…, details.<type>.<member>, …=<value>, origin.<member>, column.<name>.
    events long Events that hold it.
    first_seen time First of them.
    last_seen time Newest of them.
    example_event_id text First of them.
    example text Beginning of its details, redacted; null = it has none.
    """,
)
