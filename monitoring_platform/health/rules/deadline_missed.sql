SELECT pipeline_id FROM limits WHERE false
