"""Pauses of the JVM's garbage collector, so that they are not mistaken for migration.

The JVM writes them itself, to a file of its unified log (``-Xlog:gc``): it works with any JRE since 9, needs
no tool, and gives every pause and not samples of a counter. It must be asked for when the JVM starts, so
``settings`` goes to the session that is started for a benchmark. In local mode that is the only JVM;
executors of a cluster would need an option of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# [1763222909123ms] GC(12) Pause Young (Normal) (G1 Evacuation Pause) 24M->4M(256M) 3.456ms
LINE = re.compile(r"^\[(\d+)ms\] GC\(\d+\) Pause (.*?)(?: \d+[BKMG]->\S+)? ([\d.]+)ms\s*$")


@dataclass(frozen=True)
class Pause:
    """A time during which the JVM ran nothing but the collector."""

    at: float
    milliseconds: float
    kind: str


def settings(file: str) -> dict[str, str]:
    """Settings of a session whose JVM writes its pauses to a file.

    The path must have neither spaces nor colons.
    """
    return {"spark.driver.extraJavaOptions": f"-Xlog:gc:file={file}:timemillis:filecount=0"}


def parse(lines: Iterable[str]) -> list[Pause]:
    """The pauses in a log; concurrent phases, which pause nothing, are left out.

    Example:
        >>> parse(["[2000010ms] GC(0) Pause Full (System.gc()) 9M->5M(20M) 10.000ms"])
        [Pause(at=2000.0, milliseconds=10.0, kind='Full (System.gc())')]
    """
    found = []
    for line in lines:
        match = LINE.match(line)
        if match:
            written, kind, took = int(match[1]), match[2], float(match[3])
            found.append(
                Pause(round((written - took) / 1e3, 4), took, kind)
            )  # it is written at the end of the pause
    return found


def read(file: str | None, since: float = 0.0) -> list[Pause] | None:
    """The pauses that began after a time; None if this JVM does not write them down."""
    if file is None or not Path(file).exists():
        return None
    text = Path(file).read_text(encoding="utf-8", errors="replace")
    return [pause for pause in parse(text.splitlines()) if pause.at >= since]
