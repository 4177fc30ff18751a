"""CSV files with a header: what is wrong with one raises ``InvalidInput`` that names file, line and entry.

Empty lines are passed over, and lines are numbered as an editor numbers them. A byte-order mark, which some
programs write, is no part of the first name.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from sterna.errors import InvalidInput


@dataclass(frozen=True)
class Line:
    """One line of a file, with as many entries as the header has names.

    Attributes:
        where: the file's name and the number of the line.
    """

    number: int
    where: str
    entries: list[str]

    def amount(self, column: int, what: str = "") -> float:
        """An entry that must be a number from 0 on; ``what`` it is is said where it is not."""
        text = self.entries[column]
        try:
            amount = float(text)
        except ValueError:
            amount = math.nan
        if not 0 <= amount < math.inf:
            raise InvalidInput(
                f"{self.where}: {f'{what} is ' if what else ''}{text!r}: it must be a number from 0 on"
            )
        return amount


@dataclass(frozen=True)
class Sheet:
    """A file.

    Attributes:
        path: where it is.
        header: the names of its columns.
        lines: all others; at least one.
    """

    path: str
    header: list[str]
    lines: list[Line]

    @classmethod
    def read(cls, path: str | Path) -> Sheet:
        """Reads a file; see the module's docstring."""
        try:
            with open(path, encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file)
                found = [(reader.line_num, entries) for entries in reader if entries]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise InvalidInput(f"{path} can't be read: {error}") from error
        if len(found) < 2:
            raise InvalidInput(f"{path} must have a header and at least one line")
        header = found[0][1]
        lines = [Line(number, f"{path}, line {number}", entries) for number, entries in found[1:]]
        for line in lines:
            if len(line.entries) != len(header):
                raise InvalidInput(
                    f"{line.where}: {len(line.entries)} entries, and the header has {len(header)}"
                )
        return cls(str(path), header, lines)

    def column(self, name: str) -> int:
        """The place of a column."""
        if name not in self.header:
            raise InvalidInput(
                f"{self.path} has no column {name!r}, only {', '.join(map(repr, self.header))}"
            )
        return self.header.index(name)
