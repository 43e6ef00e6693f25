-- One row per (pipeline_id, update_id) that a run of a job started, in the columns that Lakehouse Plumber users know.
SELECT pipeline_id, pipeline_name, update_id, job_id, job_run_id, job_name,
       run_start_time AS job_run_start_time, run_end_time AS job_run_end_time, run_status AS job_run_status,
       pipeline_tags, job_tags
FROM job_matches
