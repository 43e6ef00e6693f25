-- Rows written to each table and day
-- Rows of every report, not only of COMPLETED ones, by the UTC day of their batch. Sinks are no tables.
-- R-ROW-03
SELECT h.hour_ts::DATE AS date, f.dataset AS table_name, sum(h.rows_written) AS total_rows
FROM flow_hours h JOIN flow_metrics f USING (pipeline_id, update_id, flow_name)
WHERE h.rows_written IS NOT NULL AND f.sink IS NULL
GROUP BY date, f.dataset
ORDER BY date DESC, table_name
