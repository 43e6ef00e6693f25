-- Settings in force in each run
-- Newest 200 runs: development mode, channel, compute and place, as each update resolved them. Null = not said.
-- R-RUN-06
SELECT pipeline_name, start_ts, update_id, development, channel, serverless, continuous, photon, edition,
       catalog, target, dbr_version
FROM pipeline_runs
ORDER BY start_ts DESC, update_id
LIMIT 200
