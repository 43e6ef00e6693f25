-- One row per (pipeline_id, update_id, dataset, expectation, day): what a rule counted on one UTC day of an update, so
-- that an update that runs for weeks has a rate for each day. A batch counts on the day of its last event.
SELECT pipeline_id, update_id, qualified_dataset AS dataset, expectation, CAST(event_ts AS DATE) AS day,
       min(flow_name) AS flow_name,
       try_sum(passed_records) AS passed_records, try_sum(failed_records) AS failed_records
FROM rule_batches
GROUP BY pipeline_id, update_id, qualified_dataset, expectation, CAST(event_ts AS DATE)
