"""The folder that the Spark of tests runs from lets its processes start quickly."""

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from tests.support.spark_home import spark_home


def test_spark_s_python_finds_the_package_with_its_byte_code(spark: SparkSession) -> None:
    """Not the zip, which has none: who imports from that compiles all of it, each time."""

    def place() -> str:
        import pyspark

        return pyspark.__file__

    (row,) = spark.range(1).select(udf(place)().alias("file")).collect()
    assert ".zip" not in row["file"]
    assert not (spark_home() / "python").exists()
