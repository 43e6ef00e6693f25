"""Orders as they come in, and a view of the big ones."""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
incoming = Path(__file__).parents[1] / "incoming"


@dp.table
def orders() -> DataFrame:
    """Each order of each file, once."""
    return spark.readStream.schema("order_id INT, customer_id INT, amount INT").json(str(incoming))


@dp.temporary_view
def big_orders() -> DataFrame:
    """Orders over 30."""
    return spark.read.table("orders").where("amount > 30")
