"""A Spark session that suits Sterna.

Sterna runs on any session; this module holds the settings that make it fast and right, and starts a local
session with them for tests, demos and benchmarks. Nothing here is needed on a cluster whose configuration
already says the same: ``recommended_conf()`` is a plain dictionary for ``spark-submit`` or a builder.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def recommended_conf() -> dict[str, str]:
    """The Spark settings that Sterna recommends, each for a reason.

    - ``spark.python.unix.domain.socket.enabled``: Python workers on a Unix socket. Over loopback TCP, delayed
      acknowledgements cost about 40 ms a task, which is most of a small epoch.
    - ``spark.sql.shuffle.partitions``: small. Sterna's own exchange has one partition for each worker whatever
      this says, but a user's stateless ``groupBy`` or ``join`` inside an epoch pays for each empty partition.
    - ``spark.shuffle.reduceLocality.enabled``: off. Otherwise Spark runs a task where most of its shuffle input
      is, which changes with every epoch, instead of where the worker's state is.
    - ``spark.locality.wait``: how long a task waits for the executor that holds its worker's state. The value
      is Spark's default, said explicitly because placement relies on it.
    - ``spark.sql.session.timeZone``: UTC, so that event times mean the same on every machine.
    - ``spark.ui.showConsoleProgress``: off. A progress bar a job is noise when a job is an epoch.

    Example:
        >>> recommended_conf()["spark.sql.session.timeZone"]
        'UTC'
    """
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.shuffle.partitions": "4",
        "spark.shuffle.reduceLocality.enabled": "false",
        "spark.locality.wait": "3s",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
    }


def session(master: str = "local[2]", **conf: str) -> SparkSession:
    """A Spark session with the recommended settings.

    Python workers run the interpreter that runs this process, unless ``PYSPARK_PYTHON`` names another: left
    alone, Spark would take the first ``python3`` on the path, which may lack Sterna or have another version.

    Args:
        master: Spark's master URL.
        **conf: more settings, or other values for the recommended ones. Names have dots, so pass them as
            ``**{"spark.driver.memory": "2g"}``.

    Returns:
        The session; an existing one of this process is reused, as ``getOrCreate`` does, and then only those
        settings take effect that Spark can change while running.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - takes a second; the command line's help needs none of it

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("sterna")
    for name, value in {**recommended_conf(), **conf}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
