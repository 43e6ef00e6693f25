CREATE MATERIALIZED VIEW customers USING DELTA AS
SELECT customer_id, count(*) AS orders, sum(amount) AS amount
FROM big_orders
GROUP BY customer_id;
