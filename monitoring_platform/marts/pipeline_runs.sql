-- One row per (pipeline_id, update_id): what an update (one attempt) did.
-- `events` holds all events of the touched updates; `siblings` the stored runs of the same pipelines that were not
-- touched, because the request of an update without request_id depends on its neighbours.
WITH ordered AS (
  SELECT *, NOT position.trusted AS is_future
  FROM events
  WHERE update_id IS NOT NULL
),
states AS (
  SELECT *, update_state IN ('COMPLETED', 'FAILED', 'CANCELED') AS is_terminal
  FROM ordered
  WHERE update_state IS NOT NULL
),
final_state AS (
  -- A terminal state is not overruled by a later state that is none; of two terminal ones the later counts.
  SELECT pipeline_id, update_id,
         max_by(update_state, struct(is_terminal, position)) AS status,
         max(CASE WHEN is_terminal THEN position END) AS end_position,
         count(DISTINCT CASE WHEN is_terminal THEN update_state END) AS terminal_states,
         max_by(cancellation_cause, CASE WHEN cancellation_cause IS NOT NULL THEN position END) AS cancellation_cause
  FROM states
  GROUP BY pipeline_id, update_id
),
phases AS (
  -- From each state to the next one that occurred, up to the end of the update. Summed as whole microseconds: a sum of
  -- fractions would depend on the order of summing.
  SELECT pipeline_id, update_id, update_state,
         CASE WHEN next_ts >= event_ts THEN unix_micros(next_ts) - unix_micros(event_ts) END AS micros
  FROM (
    SELECT s.pipeline_id, s.update_id, s.update_state, s.event_ts,
           lead(s.event_ts) OVER (PARTITION BY s.pipeline_id, s.update_id
             ORDER BY s.position.ts, s.position.control, s.position.data, s.position.id) AS next_ts
    FROM states s
    JOIN final_state f ON f.pipeline_id = s.pipeline_id AND f.update_id = s.update_id
    WHERE NOT s.is_future AND (f.end_position IS NULL OR s.position <= f.end_position)
  )
),
phase_seconds AS (
  SELECT pipeline_id, update_id,
         sum(CASE WHEN update_state = 'QUEUED' THEN micros END) / 1e6 AS queued_seconds,
         sum(CASE WHEN update_state = 'CREATED' THEN micros END) / 1e6 AS created_seconds,
         sum(CASE WHEN update_state = 'WAITING_FOR_RESOURCES' THEN micros END) / 1e6 AS waiting_seconds,
         sum(CASE WHEN update_state = 'INITIALIZING' THEN micros END) / 1e6 AS initializing_seconds,
         sum(CASE WHEN update_state = 'RESETTING' THEN micros END) / 1e6 AS resetting_seconds,
         sum(CASE WHEN update_state = 'SETTING_UP_TABLES' THEN micros END) / 1e6 AS setting_up_seconds,
         sum(CASE WHEN update_state = 'RUNNING' THEN micros END) / 1e6 AS running_seconds,
         sum(CASE WHEN update_state = 'STOPPING' THEN micros END) / 1e6 AS stopping_seconds
  FROM phases
  GROUP BY pipeline_id, update_id
),
said AS (
  -- What create_update and runtime_details say: few events of many.
  SELECT pipeline_id, update_id, cause, full_refresh, explore_only, validate_only, failed_attempts, run_as, serverless,
         continuous,
         development, photon, edition, channel, default_catalog, default_schema, dbr_version, event_type,
         row_number() OVER (PARTITION BY pipeline_id, update_id ORDER BY position.trusted, position.ts,
                            position.control, position.data, position.id) AS place
  FROM ordered
  WHERE cause IS NOT NULL OR full_refresh IS NOT NULL OR explore_only IS NOT NULL OR validate_only IS NOT NULL
     OR failed_attempts IS NOT NULL OR run_as IS NOT NULL OR serverless IS NOT NULL OR continuous IS NOT NULL
     OR development IS NOT NULL OR photon IS NOT NULL OR edition IS NOT NULL OR channel IS NOT NULL
     OR default_catalog IS NOT NULL OR default_schema IS NOT NULL OR dbr_version IS NOT NULL
),
configured AS (
  SELECT pipeline_id, update_id,
         min_by(cause, CASE WHEN cause IS NOT NULL THEN place END) AS cause,
         bool_or(full_refresh) AS is_full_refresh,
         coalesce(bool_or(explore_only), false) AS explore_only,
         coalesce(bool_or(validate_only), false) AS validate_only,
         max(failed_attempts) AS failed_attempts,
         max_by(run_as, CASE WHEN run_as IS NOT NULL THEN place END) AS run_as,
         max_by(serverless, CASE WHEN serverless IS NOT NULL THEN place END) AS serverless,
         max_by(continuous, CASE WHEN continuous IS NOT NULL THEN place END) AS continuous,
         max_by(development, CASE WHEN development IS NOT NULL THEN place END) AS development,
         max_by(photon, CASE WHEN photon IS NOT NULL THEN place END) AS photon,
         max_by(edition, CASE WHEN edition IS NOT NULL THEN place END) AS edition,
         max_by(channel, CASE WHEN channel IS NOT NULL THEN place END) AS channel,
         max_by(default_catalog, CASE WHEN default_catalog IS NOT NULL THEN place END) AS catalog,
         max_by(default_schema, CASE WHEN default_schema IS NOT NULL THEN place END) AS target,
         -- runtime_details is the preferred place, create_update the older one.
         coalesce(
           max_by(dbr_version, CASE WHEN dbr_version IS NOT NULL AND event_type = 'runtime_details' THEN place END),
           max_by(dbr_version, CASE WHEN dbr_version IS NOT NULL THEN place END)
         ) AS dbr_version
  FROM said
  GROUP BY pipeline_id, update_id
),
actors AS (
  -- Who asked for it, where the log says so: a person's START that carries the update.
  SELECT pipeline_id, update_id, min_by(user_action.user_name, position) AS started_by
  FROM ordered
  WHERE event_type = 'user_action' AND user_action.user_name IS NOT NULL
  GROUP BY pipeline_id, update_id
),
named AS (
  -- Nearly always one row for each day of an update: what is compared below is little.
  SELECT pipeline_id, update_id, pipeline_name, pipeline_type, request_id, event_date,
         bool_or(maintenance_id IS NOT NULL) AS is_maintenance,
         min(CASE WHEN NOT is_future THEN event_ts END) AS start_ts,
         max(CASE WHEN NOT is_future THEN event_ts END) AS last_event_ts,
         min(event_ts) AS any_ts,
         count(*) AS event_count,
         count(CASE WHEN level = 'ERROR' THEN 1 END) AS error_count,
         bool_or(array_contains(flags, 'inferred_state')) AS has_inferred_state
  FROM ordered
  GROUP BY pipeline_id, update_id, pipeline_name, pipeline_type, request_id, event_date
),
facts AS (
  SELECT pipeline_id, update_id,
         -- The newest name and type, the oldest request; of equally old ones the one that sorts last (first).
         max_by(pipeline_name, CASE WHEN pipeline_name IS NOT NULL
                THEN struct(last_event_ts IS NOT NULL AS trusted, last_event_ts AS ts, pipeline_name AS value) END)
           AS pipeline_name,
         max_by(pipeline_type, CASE WHEN pipeline_type IS NOT NULL
                THEN struct(last_event_ts IS NOT NULL AS trusted, last_event_ts AS ts, pipeline_type AS value) END)
           AS pipeline_type,
         min_by(request_id, CASE WHEN request_id IS NOT NULL
                THEN struct(start_ts IS NULL AS is_future, start_ts AS ts, request_id AS value) END) AS own_request_id,
         bool_or(is_maintenance) AS is_maintenance,
         min(start_ts) AS start_ts,
         max(last_event_ts) AS last_event_ts,
         min(any_ts) AS any_ts,
         array_sort(collect_set(event_date)) AS event_dates,
         sum(event_count) AS event_count,
         sum(error_count) AS error_count,
         bool_or(has_inferred_state) AS has_inferred_state
  FROM named
  GROUP BY pipeline_id, update_id
),
flows AS (
  SELECT pipeline_id, update_id,
         count(*) AS flow_count,
         count(CASE WHEN has_metrics THEN 1 END) AS flows_with_metrics,
         -- A total that overflows, here or in one of its flows, is unknown.
         CASE WHEN NOT bool_or(output_overflow) THEN try_sum(rows_output) END AS rows_output,
         CASE WHEN NOT bool_or(upserted_overflow) THEN try_sum(rows_upserted) END AS rows_upserted,
         CASE WHEN NOT bool_or(deleted_overflow) THEN try_sum(rows_deleted) END AS rows_deleted,
         try_sum(rows_dropped) AS rows_dropped,
         try_sum(output_bytes) AS output_bytes
  FROM flow_metrics
  GROUP BY pipeline_id, update_id
),
touched_runs AS (
  SELECT f.pipeline_id, f.update_id, f.pipeline_name, f.pipeline_type,
         s.status, c.cause, s.cancellation_cause, c.run_as, a.started_by,
         CASE WHEN c.explore_only THEN 'explore' WHEN c.validate_only THEN 'validate'
              WHEN f.is_maintenance THEN 'maintenance' ELSE 'normal' END AS run_kind,
         f.own_request_id, c.failed_attempts, c.is_full_refresh,
         coalesce(f.start_ts, f.any_ts) AS start_ts,
         CASE WHEN s.end_position.trusted THEN s.end_position.ts END AS end_ts,
         f.last_event_ts, f.event_dates,
         CASE WHEN s.end_position.trusted AND s.end_position.ts >= f.start_ts
              THEN (unix_micros(s.end_position.ts) - unix_micros(f.start_ts)) / 1e6 END AS duration_seconds,
         p.queued_seconds, p.created_seconds, p.waiting_seconds, p.initializing_seconds, p.resetting_seconds,
         p.setting_up_seconds, p.running_seconds, p.stopping_seconds,
         coalesce(w.flow_count, 0) AS flow_count,
         coalesce(w.flows_with_metrics, 0) AS flows_with_metrics,
         w.rows_output, w.rows_upserted, w.rows_deleted,
         CASE WHEN w.rows_output IS NOT NULL OR w.rows_upserted IS NOT NULL OR w.rows_deleted IS NOT NULL
              THEN try_add(try_add(coalesce(w.rows_output, 0L), coalesce(w.rows_upserted, 0L)),
                           coalesce(w.rows_deleted, 0L)) END AS rows_written,
         w.rows_dropped, w.output_bytes,
         f.event_count, f.error_count,
         c.serverless, c.continuous, c.development, c.photon, c.edition, c.channel, c.catalog, c.target, c.dbr_version,
         coalesce(s.terminal_states > 1, false) AS has_conflicting_end,
         coalesce(f.has_inferred_state, false) AS has_inferred_state
  FROM facts f
  LEFT JOIN configured c ON c.pipeline_id = f.pipeline_id AND c.update_id = f.update_id
  LEFT JOIN actors a ON a.pipeline_id = f.pipeline_id AND a.update_id = f.update_id
  LEFT JOIN final_state s ON s.pipeline_id = f.pipeline_id AND s.update_id = f.update_id
  LEFT JOIN phase_seconds p ON p.pipeline_id = f.pipeline_id AND p.update_id = f.update_id
  LEFT JOIN flows w ON w.pipeline_id = f.pipeline_id AND w.update_id = f.update_id
),
runs AS (
  SELECT * FROM touched_runs
  UNION ALL
  SELECT * FROM siblings
),
chained AS (
  -- A retry without request_id belongs to the preceding update of its kind, unless that one ended otherwise than FAILED.
  SELECT *,
         CASE WHEN own_request_id IS NULL AND cause = 'RETRY_ON_FAILURE'
               AND lag(update_id) OVER w IS NOT NULL
               AND NOT coalesce(lag(status) OVER w IN ('COMPLETED', 'CANCELED'), false)
              THEN 0 ELSE 1 END AS is_head
  FROM runs
  WINDOW w AS (PARTITION BY pipeline_id, run_kind = 'normal' ORDER BY start_ts, update_id)
),
grouped AS (
  SELECT *,
         sum(is_head) OVER (PARTITION BY pipeline_id, run_kind = 'normal' ORDER BY start_ts, update_id
                            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS chain
  FROM chained
),
requested AS (
  SELECT *,
         coalesce(own_request_id,
                  max(CASE WHEN is_head = 1 THEN coalesce(own_request_id, update_id) END)
                    OVER (PARTITION BY pipeline_id, run_kind = 'normal', chain)) AS request_id
  FROM grouped
),
numbered AS (
  SELECT *,
         row_number() OVER (PARTITION BY pipeline_id, request_id ORDER BY start_ts, update_id) AS place
  FROM requested
)
SELECT pipeline_id, update_id, pipeline_name, pipeline_type, status, cause, cancellation_cause, run_as, started_by,
       run_kind,
       request_id, own_request_id, failed_attempts,
       -- What create_update says counts; a log that starts in the middle of a chain shifts the numbers of the rest.
       coalesce(failed_attempts + 1,
                place + coalesce(max(failed_attempts + 1 - place) OVER (PARTITION BY pipeline_id, request_id), 0))
         AS attempt_number,
       is_full_refresh, start_ts, end_ts, last_event_ts, event_dates, duration_seconds,
       queued_seconds, created_seconds, waiting_seconds, initializing_seconds, resetting_seconds,
       setting_up_seconds, running_seconds, stopping_seconds,
       flow_count, flows_with_metrics, rows_output, rows_upserted, rows_deleted, rows_written, rows_dropped,
       output_bytes, event_count, error_count,
       serverless, continuous, development, photon, edition, channel, catalog, target, dbr_version,
       has_conflicting_end, has_inferred_state
FROM numbered
