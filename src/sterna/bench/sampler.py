"""The process that samples memory: ``python -m sterna.bench.sampler FILE --pid DRIVER``.

Four times a second it appends one line of JSON to FILE: the time, and the resident and the anonymous bytes
(``VmRSS`` and ``RssAnon`` of ``/proc/PID/status``) of the driver's Python, of JVMs below it, and of every
Python worker. These are counters that the kernel keeps: reading them walks no page tables and stops nobody.
Pages that workers share since they were forked count at each of them.

Which processes there are is looked up once a second. It ends when its parent has died, at ``--limit``
seconds, and on SIGTERM. Linux only: elsewhere there are no samples. Only the standard library is imported, so
that the process stays small.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from collections import defaultdict
from typing import Any

LOOK_AGAIN_SAMPLES = 4


def read(path: str) -> bytes:
    """A file of /proc, empty if the process is gone."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def family(pid: int) -> dict[int, str]:
    """The driver and what runs below it, by process id: ``driver``, ``jvm`` or ``worker``.

    Anything else is left out.
    """
    children = defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = read(f"/proc/{name}/stat").rpartition(b")")[2].split()
            if fields:
                children[int(fields[1])].append(int(name))
    found, below = {pid: "driver"}, list(children[pid])
    while below:
        one = below.pop()
        below += children[one]
        command = read(f"/proc/{one}/cmdline").split(b"\0")
        if command[0].endswith(b"java"):
            found[one] = "jvm"
        elif b"python" in command[0] and any(part.startswith(b"pyspark") for part in command):
            found[one] = "worker"
    return found


def memory(pid: int) -> tuple[int, int] | None:
    """Resident and anonymous bytes of a process, or None if it is gone."""
    values = {}
    for line in read(f"/proc/{pid}/status").splitlines():
        name, _, rest = line.partition(b":")
        if name in (b"VmRSS", b"RssAnon"):
            values[name] = int(rest.split()[0]) * 1024
    return (values[b"VmRSS"], values[b"RssAnon"]) if len(values) == 2 else None


def sample(members: dict[int, str], now: float) -> dict[str, Any]:
    """One line: ``{"time", "driver": {pid: [resident, anonymous]}, "jvm": …, "worker": …}``."""
    line: dict[str, Any] = {"time": round(now, 3), "driver": {}, "jvm": {}, "worker": {}}
    for pid, kind in members.items():
        held = memory(pid)
        if held is not None:
            line[kind][str(pid)] = held
    return line


def run(file: str, pid: int, parent: int, every: float, limit: float) -> None:
    """Samples until there is a reason to end."""
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    began, count = time.time(), 0
    members: dict[int, str] = {}
    with open(file, "a", encoding="ascii") as out:
        while not stopped and os.getppid() == parent and time.time() < began + limit:
            if count % LOOK_AGAIN_SAMPLES == 0:
                members = family(pid)
            out.write(json.dumps(sample(members, time.time())) + "\n")
            out.flush()
            count += 1
            # The next one at its time, not so long after this one; those that were missed are left out.
            ahead = (began - time.time()) % every
            time.sleep(ahead)


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="sterna.bench.sampler", description="Samples memory into a file.")
    parser.add_argument("file")
    parser.add_argument("--pid", type=int, required=True, help="the driver's process id")
    parser.add_argument("--every", type=float, default=0.25, help="seconds between samples")
    parser.add_argument("--limit", type=float, default=21600.0, help="seconds after which it ends")
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process without which it ends")
    given = parser.parse_args(arguments)
    run(given.file, given.pid, given.parent, given.every, given.limit)


if __name__ == "__main__":
    main()
