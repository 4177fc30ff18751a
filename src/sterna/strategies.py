"""How the difference between two configurations is cut into steps.

A *strategy* is a function of (current configuration, target, statistics) that yields steps: lists of (bin,
worker). The engine draws a step when the one before is committed, so a strategy may look at what the last
steps have cost. It is called again, with the configuration as it is by then, after a restart. An empty step
waits for an epoch; a step that brings no bin closer to its target ends the migration.

The strategies here differ in how much they move at a time: everything (``all_at_once``), some bins
(``batched``, ``fluid``), one bin for each sender and receiver (``matched``), or as many bytes as keep epochs
within a latency (``paced``). All take ``order`` (which bins go first) and ``gap`` (epochs between two steps,
in which queued input drains). A function of your own is given a name with ``register``, by which a restarted
query finds it again.
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sterna.configuration import Configuration
from sterna.durations import seconds
from sterna.errors import InvalidInput, UpdateRefused, check_whole, short
from sterna.matching import matchings
from sterna.pacing import Pace
from sterna.statistics import Statistics

Step = list[tuple[int, int]]
MOST = 1e15
ORDERS = ("as_given", "hottest", "coldest", "largest")


class Strategy(Protocol):
    """How to move."""

    def __call__(
        self, current: Configuration, target: Configuration, statistics: Statistics
    ) -> Iterator[Step]:
        """The steps, drawn one by one."""


@dataclass(frozen=True)
class Ordered:
    """What all strategies have: which bins go first, and how many epochs lie between two steps."""

    order: str = "as_given"
    gap: int = 0

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise InvalidInput(f"order {self.order!r} does not exist; there are {', '.join(ORDERS)}")
        check_whole("gap", self.gap, 0)

    def moving(
        self, current: Configuration, target: Configuration, statistics: Statistics
    ) -> npt.NDArray[np.int64]:
        """The bins that are not where they should be, in the order in which they go."""
        bins = np.flatnonzero(current.owners != target.owners)
        if self.order == "as_given":
            return bins
        key = {"hottest": -statistics.rows, "coldest": statistics.rows, "largest": -statistics.bytes}[
            self.order
        ]
        return bins[np.argsort(key[bins], kind="stable")]


@dataclass(frozen=True)
class AllAtOnce(Ordered):
    """Everything in one step."""

    def __call__(
        self, current: Configuration, target: Configuration, statistics: Statistics
    ) -> Iterator[Step]:
        """One step."""
        yield _step(self.moving(current, target, statistics), target)


@dataclass(frozen=True)
class Batched(Ordered):
    """``size`` bins a step."""

    size: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("the number of bins a step", self.size, 1)

    def __call__(
        self, current: Configuration, target: Configuration, statistics: Statistics
    ) -> Iterator[Step]:
        """Some bins at a time."""
        bins = self.moving(current, target, statistics)
        for start in range(0, len(bins), self.size):
            yield _step(bins[start : start + self.size], target)


@dataclass(frozen=True)
class Matched(Ordered):
    """In a step each worker sends at most one bin and receives at most one, in as few steps as that allows.

    Workers are the nodes of a graph, senders on one side and receivers on the other, and every moving bin is
    an edge. An edge colouring with as many colours as the largest degree (König) is a schedule of that many
    steps. With an order, each step takes the bins that come first in it, as far as it can without needing
    more steps.
    """

    def __call__(
        self, current: Configuration, target: Configuration, statistics: Statistics
    ) -> Iterator[Step]:
        """One matching at a time."""
        waiting: dict[tuple[int, int], deque[int]] = defaultdict(deque)
        moving = self.moving(current, target, statistics).tolist()
        place = {bin_: at for at, bin_ in enumerate(moving)}
        for bin_ in moving:
            waiting[int(current.owners[bin_]), int(target.owners[bin_])].append(bin_)
        counts = {pair: len(bins) for pair, bins in waiting.items()}
        given = self.order == "as_given"
        for pairs in matchings(counts, None if given else lambda pair: place[waiting[pair][0]]):
            yield [(waiting[pair].popleft(), pair[1]) for pair in pairs]


@dataclass(frozen=True)
class Paced(Ordered):
    """As many bytes a step as keep the epoch within a latency, or a fixed number of bytes.

    It learns from what its own steps cost: by how much the epochs that moved were longer than the last quiet
    ones. It begins with one bin; a step is as much larger or smaller than the last ones as they left room, at
    most twice as large. After an epoch that took too long it halves. It waits while epochs are longer than
    usual, but moves a bin at least every ``pacing.PATIENCE`` epochs however busy the query is: it always
    ends.

    Attributes:
        latency: milliseconds that an epoch may take.
        bytes_per_epoch: or so many bytes.
    """

    latency: float | None = None
    bytes_per_epoch: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.latency is None) == (self.bytes_per_epoch is None):
            raise InvalidInput("paced takes either latency or bytes_per_epoch")
        for name in ("latency", "bytes_per_epoch"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if value is not None and not (number and 0 < value <= MOST):
                raise InvalidInput(f"{name} must be a positive number up to {MOST:g}")

    def __call__(
        self, current: Configuration, target: Configuration, statistics: Statistics
    ) -> Iterator[Step]:
        """Adapts from step to step."""
        bins = self.moving(current, target, statistics)
        sizes = np.cumsum(np.maximum(statistics.bytes[bins], 1.0))
        pace = None if self.latency is None else Pace(self.latency, statistics.recent)
        at = 0
        while at < len(bins):
            allowance = float(self.bytes_per_epoch or 0) if pace is None else pace.allowance()
            if allowance is None:
                yield []
                continue
            before = sizes[at - 1] if at else 0.0
            stop = max(at + 1, int(np.searchsorted(sizes, before + allowance, "right")))
            if pace is not None:
                pace.moved(float(sizes[stop - 1] - before))
            yield _step(bins[at:stop], target)
            at = stop


def all_at_once(*, order: str = "as_given") -> AllAtOnce:
    """Everything in one step: the shortest migration, and the longest epoch."""
    return AllAtOnce(order)


def fluid(*, order: str = "as_given", gap: int = 0) -> Batched:
    """One bin a step."""
    return Batched(order, gap, 1)


def batched(n: int, *, order: str = "as_given", gap: int = 0) -> Batched:
    """``n`` bins a step."""
    return Batched(order, gap, n)


def matched(*, order: str = "as_given", gap: int = 0) -> Matched:
    """In a step each worker sends at most one bin and receives at most one."""
    return Matched(order, gap)


def paced(
    *,
    latency: float | str | None = None,
    bytes_per_epoch: int | None = None,
    order: str = "as_given",
    gap: int = 0,
) -> Paced:
    """As many bytes an epoch as keep it within a latency, or a fixed number of bytes.

    The latency is in seconds, or text such as ``"200 ms"``.
    """
    if latency is not None:
        latency = seconds(latency) * 1e3
    return Paced(order, gap, latency, bytes_per_epoch)


_MADE_BY: dict[str, Any] = {
    "all_at_once": all_at_once,
    "fluid": fluid,
    "batched": batched,
    "matched": matched,
    "paced": paced,
}
_BUILT_IN: dict[str, type[Ordered]] = {
    "all_at_once": AllAtOnce,
    "batched": Batched,
    "matched": Matched,
    "paced": Paced,
}
_OPTIONS: dict[str, tuple[str, ...]] = {
    "all_at_once": ("order",),
    "fluid": ("order", "gap"),
    "batched": ("size", "order", "gap"),
    "matched": ("order", "gap"),
    "paced": ("latency", "bytes_per_epoch", "order", "gap"),
}
"""What each of ours takes as it is written down."""
_OWN: dict[str, Strategy] = {}
TAKEN = (*_BUILT_IN, "fluid")
"""What a strategy of one's own can't be called."""


def register(name: str) -> Callable[[Strategy], Strategy]:
    """Gives a strategy of your own a name, under which migrations find it, also after a restart."""
    if name in TAKEN or not re.fullmatch(r"[A-Za-z_][\w-]*", str(name)) or name != str(name):
        raise InvalidInput(f"a strategy of your own can't be called {name!r}")

    def keep(strategy: Strategy) -> Strategy:
        if not callable(strategy):
            raise InvalidInput(
                f"{strategy!r} is no strategy: that is a function of (current, target, statistics)"
            )
        _OWN[name] = strategy
        return strategy

    return keep


def to_json(strategy: Strategy) -> dict[str, Any]:
    """How a strategy is written down in the control stream."""
    made: type[Any] = type(strategy)  # what is derived from one of ours is one of the user's own
    for name, kind in _BUILT_IN.items():
        if made is kind:
            given = {
                k: operator.index(v) if isinstance(v, np.integer) else v
                for k, v in vars(strategy).items()
                if v not in (None, "as_given") and (k, v) != ("gap", 0)
            }
            if given.get("size") == 1:
                return {"name": "fluid", **{k: v for k, v in given.items() if k != "size"}}
            return {"name": name, **given}
    for name, own in _OWN.items():
        if own is strategy:
            return {"name": name}
    if not callable(strategy):
        raise InvalidInput(f"{strategy!r} is no strategy: write sterna.fluid(), sterna.batched(16) and so on")
    for name, factory in _MADE_BY.items():
        if strategy is factory:
            raise InvalidInput(f"sterna.{name} is not called: write sterna.{name}(…)")
    raise InvalidInput(
        f"{strategy!r} has no name: decorate it with @sterna.strategies.register('name'), so that a "
        "restarted query finds it again"
    )


def from_json(data: Mapping[str, Any]) -> Strategy:
    """The inverse of ``to_json``; ``InvalidInput`` if there is no such strategy."""
    options = dict(data)
    name = options.pop("name", None)
    if isinstance(name, str) and name in _OWN:
        if options:
            raise InvalidInput(f"strategy {name!r} is a user's own and takes no options: {sorted(options)}")
        return _OWN[name]
    if not isinstance(name, str) or name not in _OPTIONS:
        raise InvalidInput(
            f"there is no strategy {name!r}; there are {', '.join(sorted([*_OPTIONS, *_OWN]))}"
        )
    unknown = sorted(set(options) - set(_OPTIONS[name]))
    if unknown:
        raise InvalidInput(f"{name} does not take {', '.join(unknown)}, but {', '.join(_OPTIONS[name])}")
    if name == "batched" and "size" not in options:
        raise InvalidInput("batched needs its size, the number of bins a step")
    return _BUILT_IN["batched" if name == "fluid" else name](**options)  # type: ignore[return-value]


def built_in(data: Mapping[str, Any]) -> bool:
    """Whether it is one of ours, which always reach the target."""
    name = data.get("name")
    return isinstance(name, str) and name in TAKEN


def describe(data: Mapping[str, Any]) -> str:
    """A strategy in a few words.

    >>> describe({"name": "batched", "size": 16})
    'batched(16)'
    """
    options = {k: v for k, v in data.items() if k != "name"}
    if data["name"] == "batched":
        size = options.pop("size", 1)
        name, first = ("fluid", []) if size == 1 else ("batched", [str(size)])
    else:
        name, first = str(data["name"]), []
    if isinstance(options.get("latency"), float | int):
        options["latency"] = f"{float(options['latency']):g} ms"
    return f"{name}({', '.join([*first, *(f'{k}={v}' for k, v in options.items())])})"


def as_step(step: Any) -> Step:
    """A step as whatever a strategy of one's own yields: pairs of whole numbers, of any kind.

    A bin that is named twice counts once.

    >>> as_step([(np.int64(3), 1), (5, 0), (3, 1)])
    [(3, 1), (5, 0)]
    """
    found: dict[int, int] = {}
    if not isinstance(step, Iterable):
        raise UpdateRefused(f"the strategy yields {short(step)}: a step is a list of pairs (bin, worker)")
    for pair in step:
        try:
            bin_, worker = (operator.index(part) for part in pair)
        except (TypeError, ValueError):
            raise UpdateRefused(
                f"the strategy yields {pair!r}: a step is a list of pairs (bin, worker) of whole numbers"
            ) from None
        if found.setdefault(bin_, worker) != worker:
            raise UpdateRefused(
                f"the strategy gives bin {bin_} to workers {found[bin_]} and {worker} in one step"
            )
    return list(found.items())


def _step(bins: npt.NDArray[np.int64], target: Configuration) -> Step:
    return list(zip(bins.tolist(), target.owners[bins].tolist(), strict=True))
