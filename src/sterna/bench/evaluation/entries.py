"""Files of figures, read with care.

Whatever is missing or of another kind is refused by the name of its file and its place in it.

Contract. Files are only read. A file that is not there is ``None``, and not an error; one that is not JSON,
or not of the layout that its benchmark writes, raises ``InvalidInput``.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sterna.bench.evaluation.files import MIGRATIONS
from sterna.errors import InvalidInput


@dataclass(frozen=True)
class Entry:
    """A part of a file, which knows where it is.

    >>> entry = Entry("bins.json", {"results": [{"bins": 16}]})
    >>> entry.each("results")[0].number("bins")
    16.0
    >>> entry.number("results", 0, "keys")
    Traceback (most recent call last):
    sterna.errors.InvalidInput: bins.json: results[0].keys is missing; it should be a number
    """

    file: str
    value: Any
    place: str = ""

    def at(self, *path: str | int, kind: str = "there") -> Entry:
        """What is at a path of names and positions; raises if there is nothing."""
        here = self
        for step in path:
            place = f"{here.place}[{step}]" if isinstance(step, int) else f"{here.place}.{step}".lstrip(".")
            if not _has(here.value, step):
                raise InvalidInput(f"{self.file}: {place} is missing; it should be {kind}")
            here = Entry(self.file, here.value[step], place)
        return here

    def has(self, *path: str | int) -> bool:
        """Whether there is something at a path, other than null."""
        value = self.value
        for step in path:
            if not _has(value, step):
                return False
            value = value[step]
        return value is not None

    def number(self, *path: str | int) -> float:
        """A finite number."""
        entry = self.at(*path, kind="a number")
        value = entry.value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise entry.wrong("a number")
        return float(value)

    def positive(self, *path: str | int) -> float:
        """A finite number above zero."""
        value = self.number(*path)
        if value <= 0:
            raise self.at(*path).wrong("a number above zero")
        return value

    def maybe(self, *path: str | int) -> float | None:
        """A number, or ``None`` where it was not measured."""
        return self.number(*path) if self.has(*path) else None

    def text(self, *path: str | int) -> str:
        """A text."""
        entry = self.at(*path, kind="a text")
        if not isinstance(entry.value, str):
            raise entry.wrong("a text")
        return entry.value

    def flag(self, *path: str | int) -> bool:
        """True or false."""
        entry = self.at(*path, kind="true or false")
        if not isinstance(entry.value, bool):
            raise entry.wrong("true or false")
        return entry.value

    def each(self, *path: str | int) -> list[Entry]:
        """The parts of a list."""
        entry = self.at(*path, kind="a list")
        if not isinstance(entry.value, list):
            raise entry.wrong("a list")
        return [entry.at(i) for i in range(len(entry.value))]

    def items(self, *path: str | int) -> dict[str, Entry]:
        """The parts of an object, by name."""
        entry = self.at(*path, kind="an object")
        if not isinstance(entry.value, dict):
            raise entry.wrong("an object")
        return {name: entry.at(name) for name in entry.value}

    def wrong(self, kind: str) -> InvalidInput:
        """What to raise if this is not of the kind that it should be."""
        place = self.place or "the whole"
        return InvalidInput(f"{self.file}: {place} is {_shown(self.value)}; it should be {kind}")


def _has(value: Any, step: str | int) -> bool:
    if isinstance(step, int):
        return isinstance(value, list) and 0 <= step < len(value)
    return isinstance(value, dict) and step in value


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


@dataclass(frozen=True)
class Figures:
    """A folder of files of figures."""

    folder: Path

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise InvalidInput(
                f"there is no folder {self.folder}; it should hold what the benchmarks print with --json"
            )

    def get(self, name: str) -> Entry | None:
        """What the file of a name holds, if there is one."""
        file = self.folder / f"{name}.json"
        if not file.is_file():
            return None
        try:
            value = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refused)
        except ValueError as error:  # neither JSON nor, perhaps, text
            raise InvalidInput(f"{file} is not JSON ({error}); make it again") from error
        return Entry(file.name, value)

    def experiment(self, name: str) -> Entry | None:
        """An experiment of ``sterna bench migrate``, from the file named after it, or another that has it."""
        whole = self.get(f"migrate-{name}")
        if whole is None:
            others = (self.get(f"migrate-{other}") for other in MIGRATIONS)
            whole = next((one for one in others if one is not None and one.has("experiments", name)), None)
        return None if whole is None else whole.at("experiments", name, kind="an object")


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
