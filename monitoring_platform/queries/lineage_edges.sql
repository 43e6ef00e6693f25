-- The graph of the fleet
-- Every edge of the newest definitions: what a flow reads and what it writes, and whether another pipeline writes what
-- is read.
-- R-LIN-01
WITH newest AS (
  SELECT * FROM flow_lineage
  QUALIFY rank() OVER (PARTITION BY pipeline_id, flow_name ORDER BY event_ts DESC, update_id DESC) = 1
),
writers AS (SELECT qualified_output AS table_name, min(pipeline_id) AS pipeline_id FROM newest GROUP BY 1)
SELECT p.pipeline_name, n.flow_name, n.qualified_input AS reads, coalesce(n.qualified_output, n.output_sink) AS writes,
       n.flow_type, n.language, n.update_id AS valid_in, w.pipeline_id <> n.pipeline_id AS from_another_pipeline,
       n.pipeline_id
FROM newest n
LEFT JOIN writers w ON w.table_name = n.qualified_input
LEFT JOIN pipelines p ON p.pipeline_id = n.pipeline_id
ORDER BY p.pipeline_name, n.pipeline_id, n.flow_name, reads
