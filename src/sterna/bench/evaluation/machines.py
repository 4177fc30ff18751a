"""Where and when the figures were made."""

from __future__ import annotations

from sterna.bench.evaluation.entries import Entry, Figures
from sterna.bench.evaluation.files import COMMANDS
from sterna.bench.evaluation.markdown import bullets, figures_link, table
from sterna.readable import DASH, count

TITLE = "Machines"
HEADS = (
    "file",
    "command",
    "made",
    "processor",
    "cores",
    "memory",
    "Spark",
    "Python",
    "load before",
    "failed runs",
)


def chapter(figures: Figures) -> str:
    """The paper's machines, ours, and what that means."""
    known = {name: entry for name in COMMANDS if (entry := figures.get(name)) is not None}
    rows = [_row(name, entry) for name, entry in known.items()]
    failures = [
        f"{figures_link(entry.file)}: {one.text()}"
        for entry in known.values()
        if entry.has("failures")
        for one in entry.each("failures")
    ]
    return "\n\n".join(
        part
        for part in (
            f"## {TITLE}",
            (
                "The paper uses four machines, each with four processors of ten cores and 512 GiB of memory, "
                "and pins a process with four workers to one processor: a core for each. Its dataflow is a "
                "Rust program whose state is in memory and which processes records as they come, four "
                "million a second."
            ),
            (
                "Here everything is on one machine: Spark's JVM, the Python workers, the program that feeds "
                "the records and the one that watches. Workers are logical, and more of them than cores take "
                "turns. State moves through Spark's shuffle between processes of one machine, never by "
                "reference (`share_host_state=False`), but not over a network. State is in files on a local "
                "disk, mapped into memory."
            ),
            table(HEADS, rows, words=4) if rows else "",
            "Where it does not say when, and of which commit, a file was made, it is of an earlier one."
            if any(row[2] == DASH for row in rows)
            else "",
            f"Runs that failed, and are not in the figures:\n\n{bullets(failures)}" if failures else "",
            _alike(known),
        )
        if part
    )


def _row(name: str, entry: Entry) -> list[str]:
    machine = entry.at("machine") if isinstance(entry.value, dict) and entry.has("machine") else None

    def fact(*path: str) -> str:
        if machine is None or not machine.has(*path):
            return DASH
        value = machine.at(*path).value
        return count(value) if isinstance(value, int) else str(value)

    load = machine.each("load_average") if machine is not None and machine.has("load_average") else []
    failed = len(entry.each("failures")) if entry.has("failures") else None
    return [
        figures_link(entry.file),
        f"`{COMMANDS[name]}`",
        DASH if fact("day") == DASH else f"{fact('day')}, {fact('commit')}",
        fact("processor"),
        fact("cores"),
        f"{fact('memory_gb')} GB" if machine is not None else DASH,
        fact("versions", "pyspark"),
        fact("versions", "python"),
        f"{load[0].number():.2f}" if load else DASH,
        DASH if failed is None else str(failed),
    ]


def _alike(known: dict[str, Entry]) -> str:
    facts = {
        (entry.text("machine", "processor"), entry.number("machine", "cores"))
        for entry in known.values()
        if entry.has("machine", "processor") and entry.has("machine", "cores")
    }
    if len(facts) <= 1:
        return (
            "A load before of more than nothing means that the machine had other work when a benchmark "
            "began; what others do on it is in the figures."
        )
    return (
        "**Not all files were made on the same machine**: amounts of different files should not be compared."
    )
