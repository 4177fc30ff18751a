"""Facts about the machine, and the memory of Spark's Python workers.

Every benchmark prints these facts beside its figures: a figure without its machine means nothing.
"""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession


def facts(spark: SparkSession) -> dict[str, Any]:
    """The day, the code, the machine, the versions, and how busy the machine is with other things."""
    java = spark.sparkContext._jvm.System  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no public way
    return {
        "day": datetime.now(timezone.utc).date().isoformat(),
        "commit": commit(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "master": spark.sparkContext.master,
        "driver_memory": spark.conf.get("spark.driver.memory", "1g"),
        "versions": {
            "python": platform.python_version(),
            "java": java.getProperty("java.version"),
            "pyspark": spark.version,
            **{name: version(name) for name in ("sterna", "pyarrow", "numpy", "pandas")},
        },
    }


def commit(folder: Path = Path(__file__).parent) -> str | None:
    """The commit that the code in a folder is of, and whether it has changes.

    ``None`` if git does not know it: code that was installed, perhaps below a repository of somebody else's,
    is none of its files.
    """

    def git(*words: str) -> str:
        done = subprocess.run(  # noqa: S603 - our own words
            ["git", "-C", str(folder), *words],  # noqa: S607 - whichever git there is
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")
        return git("describe", "--always", "--dirty", "--exclude", "*")
    except (OSError, subprocess.SubprocessError):
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


def python_workers() -> list[int]:
    """Process ids of the Python workers that belong to this driver, their daemon included."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if any("pyspark" in part for part in process.cmdline()) and "python" in process.name():
                found.append(process.pid)
        except psutil.Error:  # it ended while we looked
            continue
    return found


def anonymous_bytes(pids: list[int]) -> list[int]:
    """Memory of these processes that is backed by no file: one number, or none where the system does not say.

    Workers are forked from one daemon, so a page may belong to several of them: each counts its share
    (``Pss_Anon``). Memory-mapped state files are backed by a file and not part of this.
    """
    found = []
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        except OSError:
            continue
        found += [int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss_Anon:")]
    return [sum(found)] if found else []
