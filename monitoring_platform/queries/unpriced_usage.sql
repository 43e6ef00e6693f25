-- Usage whose cost is unknown, and why
-- By SKU. A cost that is unknown is in no sum: this is what the other figures leave out.
-- R-COST-01, R-PEER-11
SELECT unpriced_reason, sku_name, cloud, usage_unit, sum(usage_quantity) AS usage_quantity, sum(records) AS records,
       count(DISTINCT pipeline_id) AS pipelines, min(usage_date) AS first_day, max(usage_date) AS last_day
FROM pipeline_costs WHERE unpriced_reason IS NOT NULL
GROUP BY unpriced_reason, sku_name, cloud, usage_unit
ORDER BY usage_quantity DESC NULLS LAST, sku_name, cloud
