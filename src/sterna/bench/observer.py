"""Watches a run from outside: memory of every process, and the JVM's pauses.

Contract. While an ``Observer`` is open, a process of its own samples memory (see ``sampler``), so that it
shares neither the interpreter lock nor a heap with what it measures. ``stop`` ends it; ``memory`` and
``pauses`` are then what happened in between. Nothing is read while the run lasts.
"""

from __future__ import annotations

import json
import os
from typing import Any

from sterna.bench import pauses, sampler
from sterna.bench.child import Child


class Observer(Child):
    """Watches this process and what runs below it; stop it, or use it as a context.

    Args:
        file: where samples go.
        gc_log: where the JVM writes its pauses (see ``pauses.settings``), if it does.
        every: seconds between samples.
    """

    def __init__(self, file: str, gc_log: str | None = None, every: float = 0.25) -> None:
        self._file, self._gc_log = file, gc_log
        me = str(os.getpid())
        options = ["--pid", me, "--parent", me, "--every", repr(every)]
        super().__init__(sampler.__file__, file, *options)

    def stop(self) -> None:
        """Ends the sampler."""
        self.end()

    def samples(self) -> list[dict[str, Any]]:
        """Every sample as the sampler wrote it, with bytes of each process."""
        if not os.path.exists(self._file):
            return []
        with open(self._file, encoding="ascii") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def memory(self, begin: float) -> list[dict[str, Any]]:
        """Resident and anonymous megabytes of each kind of process over time, in seconds since ``begin``.

        All processes of a kind are taken together.
        """
        return [_totals(sample, begin) for sample in self.samples()]

    def pauses(self, begin: float) -> list[dict[str, Any]] | None:
        """The JVM's pauses since ``begin``, or None if it does not write them down."""
        found = pauses.read(self._gc_log, begin)
        if found is None:
            return None
        return [{"second": round(p.at - begin, 3), "ms": p.milliseconds, "kind": p.kind} for p in found]


def _totals(sample: dict[str, Any], begin: float) -> dict[str, Any]:
    line: dict[str, Any] = {"second": round(sample["time"] - begin, 3), "workers": len(sample["worker"])}
    for kind in ("driver", "jvm", "worker"):
        held = list(sample[kind].values())
        line[f"{kind}_resident_mb"] = round(sum(one[0] for one in held) / 2**20, 1)
        line[f"{kind}_anonymous_mb"] = round(sum(one[1] for one in held) / 2**20, 1)
    return line
