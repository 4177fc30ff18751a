"""What is known about the bins and the last epochs of an operator: what strategies and balancing decide by.

Sizes come from the references of the last manifest: the bytes of a run are spread evenly over the hashes that
its workers own of it. They are estimates: of a run whose larger part has been sent away, the rest counts as
the whole until it is merged. Heat and the heaviest keys come with the receipts (``sterna.heat``,
``sterna.keys``), averaged over the last epochs. Costs are the durations of the last epochs, with and without
moves. Everything here is pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sterna.configuration import HASHES, Configuration
from sterna.heat import parted, spread
from sterna.keys import Keys
from sterna.state.refs import RunRef

Floats = npt.NDArray[np.float64]
TableRefs = Mapping[str, Sequence[RunRef]]


@dataclass(frozen=True)
class EpochCost:
    """How long an epoch took, and what moved in it."""

    epoch: int
    milliseconds: float
    bytes: int = 0
    bins: int = 0
    rows: int = 0

    @classmethod
    def of(cls, epoch: int, facts: Mapping[str, Any]) -> EpochCost | None:
        """From the facts of a manifest, if they tell."""
        if "ms" not in facts:
            return None
        return cls(epoch, facts["ms"], facts["moved_bytes"], facts["moved_bins"], facts["rows"])


class Recent(Sequence[EpochCost]):
    """The last epochs, to look at only; what is remembered later is seen too.

    Who looks may do so in another thread than the one in which epochs end: what ``epochs`` returns is looked
    at as it is, so epochs that go on meanwhile are to be in another sequence.
    """

    def __init__(self, epochs: Callable[[], Sequence[EpochCost]]) -> None:
        self._epochs = epochs

    @overload
    def __getitem__(self, at: int) -> EpochCost: ...

    @overload
    def __getitem__(self, at: slice) -> list[EpochCost]: ...

    def __getitem__(self, at: int | slice) -> EpochCost | list[EpochCost]:
        return list(self._epochs())[at] if isinstance(at, slice) else self._epochs()[at]

    def __len__(self) -> int:
        return len(self._epochs())

    def __iter__(self) -> Iterator[EpochCost]:
        # Without a copy where it is a tuple; with one, a strategy may yield steps while it goes through.
        return iter(tuple(self._epochs()))


@dataclass(frozen=True)
class Statistics:
    """What a strategy may know about one operator.

    Attributes:
        bytes: for each bin, about how large its state is.
        rows: for each bin, about how many rows reach it in an epoch.
        recent: the last epochs, the newest last; it goes on growing while a strategy runs.
        keys: the heaviest keys, and the rows that reach them in an epoch.
    """

    bytes: Floats
    rows: Floats
    recent: Sequence[EpochCost] = field(default_factory=list)
    keys: Keys = field(default_factory=Keys.none)

    @classmethod
    def unknown(cls, bins: int) -> Statistics:
        """Nothing is known: all bins are alike."""
        return cls(np.zeros(bins), np.zeros(bins))

    def load(self) -> Floats:
        """How much work each bin is.

        It goes by the rows that bins get, or their bytes, or all are alike, whatever is known.
        """
        known = (one for one in (self.rows, self.bytes) if one.sum() > 0)
        return next(known, np.ones(len(self.bytes)))

    def at(self, bins: int) -> Statistics:
        """The same for another number of bins."""
        if bins == len(self.bytes):
            return self
        rows = parted(self.rows, bins, self.keys)
        return Statistics(spread(self.bytes, bins), rows, self.recent, self.keys)


def bin_bytes(state: Mapping[int, TableRefs], configuration: Configuration) -> Floats:
    """About how many bytes of state each bin has."""
    bins, width = configuration.bins, HASHES >> configuration.bits
    spans = {
        worker: _Owned(configuration.owners == worker, width)
        for worker in state
        if worker < configuration.workers
    }
    refs = [
        (worker, ref, spans[worker].below(ref.hi) - spans[worker].below(ref.lo))
        for worker, tables in state.items()
        if worker in spans
        for some in tables.values()
        for ref in some
    ]
    held: dict[str, int] = defaultdict(int)
    for _, ref, owned in refs:
        held[ref.name] += owned
    # What a bin gets in full is added up through its differences; the two ends of a range get their part at
    # once.
    change = {worker: np.zeros(bins + 1) for worker in spans}
    parts = {worker: np.zeros(bins + 1) for worker in spans}
    for worker, ref, owned in refs:
        if not owned:
            continue
        density = ref.size / held[ref.name]
        first, last = ref.lo // width, (ref.hi - 1) // width
        if first == last:
            parts[worker][first] += density * (ref.hi - ref.lo)
            continue
        parts[worker][first] += density * ((first + 1) * width - ref.lo)
        parts[worker][last] += density * (ref.hi - last * width)
        if first + 1 < last:  # otherwise these would cancel out, but only about: a short range is dense
            change[worker][first + 1] += density * width
            change[worker][last] -= density * width
    total = np.zeros(bins)
    for worker, owned_bins in spans.items():
        total += np.maximum(np.cumsum(change[worker]) + parts[worker], 0.0)[:-1] * owned_bins.mask
    return total


class _Owned:
    """The hashes that one worker owns."""

    def __init__(self, mask: npt.NDArray[np.bool_], width: int) -> None:
        self.mask, self._width = mask, width
        self._before = np.concatenate([[0], np.cumsum(mask)])

    def below(self, point: int) -> int:
        """How many of them lie below a point; exact, as the difference of two may be small."""
        bin_, rest = divmod(point, self._width)
        within = rest if bin_ < len(self.mask) and self.mask[bin_] else 0
        return int(self._before[min(bin_, len(self.mask))]) * self._width + within
