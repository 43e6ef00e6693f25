-- There is no month 13.
CREATE MATERIALIZED VIEW deliveries AS
SELECT order_id, CAST(concat('2026-13-', order_id) AS DATE) AS day FROM orders;

CREATE MATERIALIZED VIEW late_deliveries AS
SELECT * FROM deliveries WHERE day < current_date();
