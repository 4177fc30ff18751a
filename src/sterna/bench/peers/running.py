"""``sterna bench peers``: the parts, one after the other, and what they come to.

- ``router``: how many NEXMark events a second get into Sterna's router (``packed``).
- ``queries``: NEXMark's queries, Sterna and Spark's own operators (``queries``).
- ``throughput``: how many records a second a count by key keeps up with, over more keys than caches hold, and
  over few (``few_keys``): Sterna, Spark, Flink.
- ``rescale``: from two workers to four while records come at half of what the slowest keeps up with, over
  states that grow: the same three (``lap``).

Every round all systems take their turn, in an order that is reversed every other round, each from the start
with an empty folder; only one runs at a time. All rounds are in the result. What a peer does better is in
``peer_better``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sterna.bench import harness, machine, offline
from sterna.bench.peers import flink, medians, packed, queries
from sterna.bench.peers.better import SYSTEMS, peer_better
from sterna.bench.peers.flink_count import LAP, Tuning
from sterna.bench.peers.lap import AFTER, BEFORE, Case, Course, Lap
from sterna.bench.peers.on_flink import OnFlink
from sterna.bench.peers.on_spark import OnSpark
from sterna.bench.peers.telling import configuration, goals, show
from sterna.errors import InvalidInput
from sterna.nexmark.queries import QUERIES
from sterna.session import interruptible, workplace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sterna.bench.rig import Say

__all__ = ["FULL", "NAMES", "PARTS", "QUICK", "SYSTEMS", "Sizes", "run", "show"]

PARTS = ("router", "queries", "throughput", "rescale")
NAMES = tuple(QUERIES)
DEFAULT_BINS = 4096
"""What a query has unless told otherwise."""


class Peer(Protocol):
    """A system that counts by key."""

    name: str

    def maximum_rate(self, folder: str, case: Case, course: Course) -> float:
        """Records a second that it keeps up with."""

    def lap(self, folder: str, case: Case, course: Course, rate: float) -> Lap:
        """See ``lap``."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Attributes:
        router: the events of NEXMark, packed and not.
        queries: the NEXMark queries.
        throughput: the keys of the count: more than caches hold.
        few_keys: the keys of another count: so few that what comes in a second has each of them several
            times.
        rescale: the states, the smallest first.
        course: how long everything takes.
        bins: of Sterna while it rescales: half of them move, two in a step. ``docs/peers.md`` says why not as
            many as a query has unless told otherwise.
        share: how much of what the slowest keeps up with they are given while they rescale.
        rounds: how often the systems take turns.
        memory: of Spark's heap.
        flink_memory: of Flink's TaskManager, all of it: Spark's Python workers and RocksDB come on top of its
            heap.
        claims: whether the figures say anything about the goals.
    """

    router: packed.Size
    queries: queries.Size
    throughput: Case
    few_keys: Case
    rescale: tuple[Case, ...]
    course: Course
    bins: int
    share: float
    rounds: int
    memory: str
    flink_memory: str
    claims: bool


FULL = Sizes(
    router=packed.FULL,
    queries=queries.FULL,
    throughput=Case(2**23, 0),
    few_keys=Case(2**16, 0),
    rescale=(Case(2**18, 232), Case(2**20, 232), Case(2**22, 232)),
    course=Course(),
    bins=256,
    share=0.5,
    rounds=3,
    memory="4g",
    flink_memory="8g",
    claims=True,
)
QUICK = Sizes(
    router=packed.QUICK,
    queries=queries.QUICK,
    throughput=Case(2**12, 0),
    few_keys=Case(2**10, 0),
    rescale=(Case(2**12, 32),),
    course=Course(warm=3.0, seconds=4.0, quiet=4.0, lead=1.0, rest=1.0, window=3.0, limit=120.0),
    bins=16,
    share=0.1,
    rounds=1,
    memory="2g",
    flink_memory="2g",
    claims=False,
)


def run(
    say: Say,
    *,
    parts: Sequence[str] = PARTS,
    systems: Sequence[str] = SYSTEMS,
    names: Sequence[str] = NAMES,
    sizes: Sizes = FULL,
    rounds: int | None = None,
    master: str = "local[2]",
    folder: str | None = None,
    flink_home: Path | None = None,
) -> dict[str, Any]:
    """Measure and return the figures; see the module's docstring.

    Args:
        say: takes a line about what is going on.
        parts: which ones.
        systems: who counts, beside Sterna.
        names: which NEXMark queries.
        sizes: how much is measured.
        rounds: how often systems take turns; as the sizes say unless given.
        master: Spark's master, if no session runs yet.
        folder: where the temporary folder goes; the system's choice unless given.
        flink_home: a folder that Flink is installed into, and found in the next time; a temporary one unless
            given.
    """
    for name in names:
        if name not in QUERIES:
            raise InvalidInput(f"{name!r} is none of the queries {', '.join(QUERIES)}")
    described = configuration(sizes.flink_memory, sizes.bins, DEFAULT_BINS)
    with workplace(master, sizes.memory, folder, harness.settings) as (spark, root):
        about = machine.facts(spark)  # how busy the machine is before this
        home = flink_home or root / "flink-home"
        bench = _Bench(spark, root, home, sizes, rounds or sizes.rounds, list(systems), say)
        found = interruptible(lambda: bench.all(parts, names), spark.stop)
        return {
            "benchmark": "peers",
            "rounds": bench.rounds,
            **found,
            "failures": bench.failures,
            "goals": goals(found) if sizes.claims else {},
            "peer_better": peer_better(found),
            "configuration": described,
            "machine": about,
        }


class _Bench:
    """What all parts share."""

    def __init__(
        self,
        spark: SparkSession,
        root: Path,
        home: Path,
        sizes: Sizes,
        rounds: int,
        systems: list[str],
        say: Say,
    ) -> None:
        self._spark, self._root, self._sizes, self._say = spark, root, sizes, say
        self.rounds = rounds
        self.failures: list[str] = []
        self._home, self._systems = home, systems

    def all(self, parts: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        home = self._flink_home() if {"throughput", "rescale"} & set(parts) else None
        sizes, rounds = self._sizes, self.rounds
        ways: dict[str, Callable[[], Any]] = {
            "router": lambda: packed.measure(self._spark, self._root, sizes.router, rounds, self._say),
            "queries": lambda: queries.compare(
                self._spark, self._root, names, sizes.queries, rounds, self._say, self._fail
            ),
            "throughput": lambda: self._throughput(self._peers(home, DEFAULT_BINS)),
            "rescale": lambda: self._rescale(self._peers(home, sizes.bins, LAP)),
        }
        for part in PARTS:
            if part in parts:
                try:
                    found[part] = ways[part]()
                except Exception as error:  # noqa: BLE001 - as in _turns
                    self._fail(part, error)
        return found

    def _fail(self, what: str, error: Exception) -> None:
        """Tells of a failure, which costs only itself."""
        self.failures.append(f"{what}: {error!r}")
        self._say(f"{what} failed: {error}")

    def _flink_home(self) -> Path | None:
        """Where Flink is, if it is wanted and can be installed."""
        if "flink" not in self._systems:
            return None
        try:
            return flink.installed(self._home, self._say)
        except flink.FlinkError as error:
            self._fail("flink", error)
            return None

    def _peers(self, flink_home: Path | None, bins: int, tuning: Tuning | None = None) -> list[Peer]:
        """Who takes part; Sterna has so many bins, and Flink's maximum rate is that with a tuning."""
        names = [name for name in SYSTEMS if name in self._systems and name != "flink"]
        peers: list[Peer] = [OnSpark(name, self._spark, str(self._root), bins, self._say) for name in names]
        if flink_home is not None:
            peers.append(OnFlink(flink_home, self._sizes.flink_memory, self._say, tuning))
        return peers

    def _turns(
        self, peers: list[Peer], what: str, turn: Callable[[Peer, str], None], times: int | None = None
    ) -> None:
        """Every round, or so many times, every system once, each with an empty folder.

        One that fails is told of, and costs only itself.
        """
        for number in range(times or self.rounds):
            for peer in peers if number % 2 == 0 else peers[::-1]:
                folder = self._root / f"{what}-{peer.name}-{number}"
                try:
                    turn(peer, str(folder))
                except Exception as error:  # noqa: BLE001 - whatever it is, hours of others' figures are not lost for it
                    self._fail(f"{what}, round {number + 1}, {peer.name}", error)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)

    def _throughput(self, peers: list[Peer]) -> dict[str, Any]:
        sizes = self._sizes
        many = self._raced(peers, "throughput", sizes.throughput)
        return {
            **many,
            **self._source_rate(peers),
            "few_keys": self._raced(peers, "throughput-few-keys", sizes.few_keys),
        }

    def _raced(self, peers: list[Peer], what: str, case: Case) -> dict[str, Any]:
        """What each keeps up with, and how many processors Flink used for it.

        The processors tell whether Flink's rate is one of its own making.
        """
        rates = {peer.name: list[float]() for peer in peers}
        flinks = [peer for peer in peers if isinstance(peer, OnFlink)]
        for peer in flinks:
            peer.cores.clear()

        def turn(peer: Peer, folder: str) -> None:
            rates[peer.name].append(peer.maximum_rate(folder, case, self._sizes.course))
            self._say(
                f"{case.keys:,} keys, {peer.name}: at most {rates[peer.name][-1]:,.0f} records a second"
            )

        self._turns(peers, what, turn)
        cores = [one for peer in flinks for one in peer.cores]
        return {
            "keys": case.keys,
            **medians.rates(rates, self.rounds),
            **({"flink_cores": cores} if cores else {}),
        }

    def _source_rate(self, peers: list[Peer]) -> dict[str, Any]:
        """How much Flink's source gives alone."""
        found: dict[str, Any] = {}

        def turn(peer: Peer, folder: str) -> None:
            assert isinstance(peer, OnFlink)
            rate = peer.source_rate(folder, self._sizes.throughput, self._sizes.course)
            found["flink_source_records_per_second"] = round(rate)
            self._say(f"{peer.name}: its source alone gives {rate:,.0f} records a second")

        self._turns([peer for peer in peers if isinstance(peer, OnFlink)], "source", turn, 1)
        return found

    def _rescale(self, peers: list[Peer]) -> dict[str, Any]:
        rate, ceilings = self._common_rate(peers)
        able = [
            peer
            for peer in peers
            if peer.name in ceilings and (peer.name != "spark" or offline.available(self._spark))
        ]
        lines = []
        for case in self._sizes.rescale:
            laps: dict[str, list[dict[str, Any]]] = {peer.name: [] for peer in able}

            def turn(peer: Peer, folder: str, case: Case = case, laps: dict[str, Any] = laps) -> None:
                told = peer.lap(folder, case, self._sizes.course, rate).to_json()
                laps[peer.name].append(told)
                self._say(
                    f"{case.megabytes:,} MB, {peer.name}: longest wait {told['during']['max_ms']:,.0f} ms, "
                    f"before {told['before']['max_ms']:,.0f} ms; complete after "
                    f"{told['completed_seconds']:,.1f} s; {told['wrong_keys']:,} keys wrong"
                )

            self._turns(able, f"rescale-{case.keys}", turn)
            lines += [
                {
                    "state_mb": case.megabytes,
                    "keys": case.keys,
                    "rate": round(rate),
                    **medians.laps(name, all_),
                }
                for name, all_ in laps.items()
                if all_
            ]
        return {"from": BEFORE, "to": AFTER, "ceilings": ceilings, "results": lines}

    def _common_rate(self, peers: list[Peer]) -> tuple[float, dict[str, int]]:
        """A share of what the slowest keeps up with, with the largest state.

        It is given with what each keeps up with, without those that failed at it.
        """
        found: dict[str, int] = {}

        def turn(peer: Peer, folder: str) -> None:
            rate = peer.maximum_rate(folder, self._sizes.rescale[-1], self._sizes.course)
            found[peer.name] = round(rate)
            self._say(f"{peer.name}: at most {rate:,.0f} records a second")

        self._turns(peers, "ceiling", turn, 1)
        return self._sizes.share * min(found.values(), default=0), found
