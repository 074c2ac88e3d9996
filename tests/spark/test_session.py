import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from tests.support.spark import Sparks


@pytest.mark.each_spark
def test_a_session_computes_with_our_python(spark: SparkSession) -> None:
    from pyspark.sql.functions import udf

    import rqueue.model.history_batch

    @udf("string", useArrow=False)
    def where(_: int) -> str:
        import sys

        import rqueue.model.history_batch

        return f"{sys.executable} {rqueue.model.history_batch.__file__}"

    rows = spark.range(1000).select("id", where("id")).collect()
    assert sum(row[0] for row in rows) == 499500
    assert {row[1] for row in rows} == {f"{sys.executable} {rqueue.model.history_batch.__file__}"}
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.uiWebUrl is None


def test_the_cluster_has_two_workers(cluster_spark: SparkSession, sparks: Sparks) -> None:
    assert cluster_spark.sparkContext.master == sparks.cluster.url
    assert sparks.cluster.url.startswith("spark://127.0.0.1:")
    assert [worker.exited.is_set() for worker in sparks.cluster.workers] == [False, False]
    names = (
        cluster_spark.range(8, numPartitions=8).repartition(8).selectExpr("spark_partition_id()")
    )
    assert names.distinct().count() >= 2


def test_importing_the_package_loads_no_spark() -> None:
    program = (
        "import sys\n"
        "import rqueue.spark, rqueue.spark.options, rqueue.spark.java, rqueue.spark.access\n"
        "print([name for name in ('pyspark', 'pyarrow', 'py4j') if name in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "[]"
