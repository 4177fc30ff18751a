"""A session of ``sterna.session`` is as it says."""

from __future__ import annotations

import sterna


def test_it_has_the_recommended_settings(spark):
    given = dict(spark.sparkContext.getConf().getAll())
    assert sterna.recommended_conf().items() <= given.items()


def test_collecting_all_garbage_does_not_stop_the_jvm(spark):
    beans = spark._jvm.java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
    stops = {str(bean.getName()): bean for bean in beans}
    assert "G1 Old Generation" in stops, f"another collector: {sorted(stops)}"
    before = stops["G1 Old Generation"].getCollectionCount()
    spark._jvm.System.gc()
    assert stops["G1 Old Generation"].getCollectionCount() == before
