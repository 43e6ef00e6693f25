"""Orders as they come in, a log of them, and a view of the big ones."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

spark = SparkSession.active()


@dp.materialized_view(format="delta")
def orders() -> DataFrame:
    """Ten orders of three customers."""
    ids = spark.range(1, 11)
    return ids.select(
        col("id").alias("order_id"), (col("id") % 3).alias("customer_id"), (col("id") * 10).alias("amount")
    )


@dp.table(format="delta")
def order_log() -> DataFrame:
    """Every order, once."""
    return spark.readStream.table("orders")


@dp.temporary_view
def big_orders() -> DataFrame:
    """Orders over 30."""
    return spark.read.table("orders").where("amount > 30")
