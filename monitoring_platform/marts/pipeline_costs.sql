-- One row per cost_id: what one pipeline used of one SKU on one day for one update, for one maintenance, or otherwise,
-- and what that cost. Usage is summed before it meets updates, so that the total is what was billed.
WITH prices AS (
  -- A newer price ends the one before, whether or not that one says so.
  SELECT p.sku_name, p.cloud, p.usage_unit, p.currency_code,
         -- Exact products: DECIMAL(22, 12) x DECIMAL(15, 9) is all that DECIMAL(38, 21) holds.
         CAST(coalesce(p.effective_price, p.default_price) AS DECIMAL(15, 9)) AS price,
         p.price_start_time AS from_ts,
         least(coalesce(p.price_end_time, TIMESTAMP'9999-01-01 00:00:00Z'),
               coalesce(lead(p.price_start_time) OVER (PARTITION BY p.sku_name, p.cloud, p.usage_unit, p.currency_code
                                                       ORDER BY p.price_start_time),
                        TIMESTAMP'9999-01-01 00:00:00Z')) AS to_ts
  FROM list_prices p
  CROSS JOIN settings s
  WHERE coalesce(s.currency, p.currency_code) = p.currency_code
    AND (p.effective_price IS NOT NULL OR p.default_price IS NOT NULL)
),
timed AS (
  SELECT *, coalesce(usage_start_time, CAST(usage_date AS TIMESTAMP)) AS start_ts FROM billing_usage
),
used AS (
  SELECT record_id, pipeline_id, usage_date,
         CASE WHEN update_id IS NOT NULL THEN 'update' WHEN maintenance_id IS NOT NULL THEN 'maintenance'
              ELSE 'other' END AS kind,
         update_id, maintenance_id, product, sku_name, cloud, usage_unit, usage_quantity, start_ts,
         greatest(coalesce(usage_end_time, start_ts), start_ts + INTERVAL 1 MICROSECOND) AS end_ts
  FROM timed
),
overlaps AS (
  -- Each price that held while the record was used, and for how long.
  SELECT u.record_id, p.currency_code, p.price, u.usage_quantity,
         unix_micros(least(p.to_ts, u.end_ts)) - unix_micros(greatest(p.from_ts, u.start_ts)) AS micros,
         unix_micros(u.end_ts) - unix_micros(u.start_ts) AS all_micros
  FROM used u
  JOIN prices p ON p.sku_name = u.sku_name AND p.cloud = coalesce(u.cloud, '')
               AND p.usage_unit = coalesce(u.usage_unit, '')
               AND p.from_ts < u.end_ts AND p.to_ts > u.start_ts AND p.from_ts < p.to_ts
),
shares AS (
  -- The share of the time in parts of 10^12: the same whole number on every engine, and exactly 1 for one price.
  SELECT *,
         CAST(CAST(CAST(floor(micros / all_micros * 1e12 + 0.5) AS BIGINT) AS DECIMAL(13, 0))
              * CAST('0.000000000001' AS DECIMAL(13, 12)) AS DECIMAL(13, 12)) AS share
  FROM overlaps
),
priced AS (
  SELECT record_id,
         count(DISTINCT currency_code) AS currencies,
         array_join(array_sort(collect_set(currency_code)), ', ') AS currency_codes,
         sum(micros) < max(all_micros) AS has_gap,
         sum(CAST(CAST(usage_quantity AS DECIMAL(22, 12)) * share AS DECIMAL(22, 12)) * price) AS cost
  FROM shares
  GROUP BY record_id
),
judged AS (
  SELECT u.*, p.currency_codes, p.cost,
         CASE WHEN u.usage_quantity IS NULL THEN 'the quantity is unreadable'
              WHEN p.record_id IS NULL THEN 'no price'
              WHEN p.currencies > 1 THEN concat('prices in several currencies: ', p.currency_codes)
              WHEN p.has_gap THEN 'no price for a part of the time' END AS unpriced_reason
  FROM used u
  LEFT JOIN priced p ON p.record_id = u.record_id
),
summed AS (
  SELECT pipeline_id, usage_date, kind, update_id, maintenance_id, product, sku_name, cloud, usage_unit,
         CASE WHEN unpriced_reason IS NULL THEN currency_codes END AS currency,
         unpriced_reason,
         count(*) AS records,
         CAST(sum(usage_quantity) AS DECIMAL(38, 18)) AS usage_quantity,
         CAST(sum(CASE WHEN unpriced_reason IS NULL THEN cost END) AS DECIMAL(38, 12)) AS cost
  FROM judged
  GROUP BY pipeline_id, usage_date, kind, update_id, maintenance_id, product, sku_name, cloud, usage_unit,
           CASE WHEN unpriced_reason IS NULL THEN currency_codes END, unpriced_reason
)
SELECT concat_ws('|', s.pipeline_id, CAST(s.usage_date AS STRING), s.kind, coalesce(s.update_id, '-'),
                 coalesce(s.maintenance_id, '-'), coalesce(s.product, '-'), s.sku_name, coalesce(s.cloud, '-'),
                 coalesce(s.usage_unit, '-'), coalesce(s.currency, '-'), coalesce(s.unpriced_reason, '-')) AS cost_id,
       s.pipeline_id, s.usage_date, s.kind, s.update_id, s.maintenance_id,
       r.request_id, r.attempt_number, r.status AS outcome, r.run_kind,
       s.product, s.sku_name, s.cloud, s.usage_unit, s.records, s.usage_quantity, s.cost, s.currency, s.unpriced_reason,
       -- Billing publishes records hours to days late: three days after the day is over its figures are final.
       CAST(date_add(s.usage_date, 4) AS TIMESTAMP) AS final_at
FROM summed s
LEFT JOIN pipeline_runs r ON r.pipeline_id = s.pipeline_id AND r.update_id = s.update_id
