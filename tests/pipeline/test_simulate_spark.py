"""The simulation on Spark against the one in this process."""

import numpy as np
import pytest
from pyspark.sql import SparkSession

from rqueue.pipeline.plan.simulate import ParameterSet, Workload, simulate, simulate_sets
from tests.pipeline.test_simulate import EXPONENTIAL


@pytest.mark.each_spark(cluster="long")
def test_spark_says_what_numpy_says(spark: SparkSession) -> None:
    work = Workload(np.array([0.1, 0.5, 0.2]), EXPONENTIAL, 3.0, 2.0, jobs=1000)
    sets = [
        ParameterSet(i, kind, workers, load, i % 10)
        for i, (kind, workers, load) in enumerate(
            (kind, workers, load)
            for kind in ("fitted", "measured")
            for workers in range(4, 14)
            for load in (0.5, 1.0, 1.5)
            for _ in range(20)
        )
    ]
    reported: list[tuple[int, int]] = []
    found = simulate_sets(spark, work, sets, lambda done, total: reported.append((done, total)))
    assert len(sets) == 1200 and [one.number for one in found] == list(range(1200))
    assert found == sorted(simulate(work, sets))
    assert reported[-1] == (1200, 1200) and len(reported) > 3
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
