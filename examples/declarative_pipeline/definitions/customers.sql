CREATE MATERIALIZED VIEW customers AS
SELECT customer_id, count(*) AS orders, sum(amount) AS amount
FROM big_orders
GROUP BY customer_id;
