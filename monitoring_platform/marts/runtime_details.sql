-- One row per (pipeline_id, update_id): the runtime of an update; runtime_details first, else create_update.
SELECT pipeline_id, update_id,
       coalesce(
         max_by(dbr_version, CASE WHEN dbr_version IS NOT NULL AND event_type = 'runtime_details' THEN position END),
         max_by(dbr_version, CASE WHEN dbr_version IS NOT NULL THEN position END)
       ) AS dbr_version,
       max_by(image_key, CASE WHEN image_key IS NOT NULL THEN position END) AS image_key,
       max_by(environment_version, CASE WHEN environment_version IS NOT NULL THEN position END) AS environment_version
FROM events
WHERE update_id IS NOT NULL
  AND (dbr_version IS NOT NULL OR image_key IS NOT NULL OR environment_version IS NOT NULL)
GROUP BY pipeline_id, update_id
