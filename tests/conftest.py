"""One real Spark for the whole suite, started when the first test asks for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from sterna.session import session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# Python workers import the functions that tests define at module level, so they must find `tests.…`. The JVM
# passes on the environment it was started with.
ROOT = Path(__file__).parent.parent
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
# How long an example takes depends on what else the machine does, and says nothing about whether it is right.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same commit tries the same examples wherever it is tested; `--hypothesis-profile=patient` tries new
# ones.
settings.register_profile("repeatable", settings.get_profile("patient"), derandomize=True)
settings.load_profile("repeatable")
# Nothing here is reached from another host, and a container's own name may not resolve.
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with two cores and a small heap, shared by all tests: starting one takes seconds."""
    scratch = tmp_path_factory.mktemp("spark")
    active = session(
        "local[2]",
        **{
            "spark.driver.memory": "1500m",
            "spark.local.dir": str(scratch / "local"),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.ui.enabled": "false",
        },
    )
    active.sparkContext.setLogLevel("ERROR")
    yield active
    active.stop()
