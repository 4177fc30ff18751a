"""How large the migration experiments are: full, quick, and the smallest, for tests.

Quick means a few minutes for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from sterna.bench.leg import Course
from sterna.bench.place import Pressure

MILLION = 1_000_000


@dataclass(frozen=True)
class State:
    """How much state: keys, bytes of payload a key, and bins as a power of two."""

    keys: int
    payload: int
    power: int


@dataclass(frozen=True)
class Sizes:
    """The sizes of all experiments.

    Attributes:
        course: how a run of the headline goes.
        sweep: how a run of the others goes.
        pressure: how the maximum rate is measured.
        headline: the state of the headline.
        powers: numbers of bins, as powers of two, over the state ``binned``.
        keys: numbers of keys, all with ``keyed`` bins (a power of two).
        proportional: keys and bins (a power of two) that grow together.
        loads: shares of the maximum rate, on the state ``binned``.
        afterwards: the state of which the rate is measured before and after.
        memories: states whose bins are of one size.
        claims: whether the figures say anything about the goals.
        fluid_bins: a migration of more bins than this is not done one by one.
    """

    course: Course
    sweep: Course
    pressure: Pressure
    headline: State
    binned: State
    powers: tuple[int, ...]
    keys: tuple[int, ...]
    keyed: int
    proportional: tuple[tuple[int, int], ...]
    loads: tuple[float, ...]
    afterwards: State
    memories: tuple[State, ...]
    fluid_bins: int = 128
    claims: bool = True
    strategies: tuple[str, ...] = ("all_at_once", "matched", "paced")
    rounds: int = 5
    memory: str = "4g"


FULL = Sizes(
    course=Course(further={"matched": 180.0, "paced": 180.0}),
    sweep=Course(quiet=10.0, longest=150.0, settle=30.0, rest=3.0, window=4.0, warm=40.0),
    pressure=Pressure(),
    # 256 bytes a row and some for the index: 1 GiB.
    headline=State(2**22, 232, 12),
    binned=State(16 * MILLION, 0, 8),
    powers=(4, 6, 8, 10, 12, 14),
    keys=(4 * MILLION, 16 * MILLION, 64 * MILLION),
    keyed=7,
    proportional=tuple((2**n * MILLION, n + 3) for n in (2, 4, 6)),
    loads=(0.125, 0.25, 0.5, 0.75),
    afterwards=State(4 * MILLION, 0, 8),
    memories=(State(2**20, 232, 5), State(2**22, 232, 7)),
)
QUICK = Sizes(
    course=Course(quiet=5.0, lead=1.0, longest=30.0, settle=10.0, rest=2.0, window=1.0),
    sweep=Course(quiet=3.0, lead=1.0, longest=20.0, settle=5.0, rest=1.0, window=1.0),
    pressure=Pressure(6.0, 4.0, 1.0),
    headline=State(200_000, 100, 6),
    binned=State(200_000, 0, 5),
    powers=(4, 6),
    keys=(100_000, 400_000),
    keyed=5,
    proportional=((100_000, 4), (200_000, 5)),
    loads=(0.25, 0.5),
    afterwards=State(100_000, 0, 4),
    memories=(State(100_000, 100, 4), State(200_000, 100, 5)),
    fluid_bins=8,
    rounds=1,
    memory="2g",
    claims=False,
)
_SHORT = Course(
    quiet=0.8, lead=0.2, longest=20.0, settle=2.0, rest=0.1, window=0.2, warm=0.1, further={"matched": 0.5}
)
SMOKE = Sizes(
    course=_SHORT,
    sweep=_SHORT,
    pressure=Pressure(0.2, 1.0, 0.2),
    headline=State(1_000, 20, 4),
    binned=State(1_000, 0, 3),
    powers=(3,),
    keys=(1_000,),
    keyed=3,
    proportional=((1_000, 3), (2_000, 4)),
    loads=(0.5,),
    afterwards=State(1_000, 0, 3),
    memories=(State(1_000, 20, 4),),
    fluid_bins=0,
    strategies=("matched",),
    rounds=1,
)
