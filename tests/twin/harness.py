"""Runs a script of inputs, moves and crashes on a twin, as Spark would, and collects what can be compared."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np

from sterna import strategies
from sterna.configuration import Configuration
from sterna.control import Entry, EventTime, new_name
from sterna.engine import apply, extract, messages
from sterna.engine.coordinator import Options
from sterna.errors import UpdateRefused
from sterna.hashing import hash_keys
from sterna.migration import placement
from sterna.operators.base import LATER
from sterna.sinks import memory
from sterna.state import background, compaction
from sterna.state.compaction import compact
from sterna.targets import Target, balance, bins, explicit, rescale
from sterna.testing import Clock, Crash, Twin, crashing
from twin.flows import CASES, KEY_TYPES, Case
from twin.folds import SECOND

SHM = "/dev/shm" if Path("/dev/shm").is_dir() else None
DELAY = 2 * SECOND


def colliding(keys):
    """A hash of two bits, at both ends of the word: whole bins share one hash."""
    few = hash_keys(keys) & np.uint64(3)
    return (few << np.uint64(62)) | (few >> np.uint64(1))


@contextmanager
def churning():
    """Runs of a few rows count as many, so that compaction and moves are never done in one piece."""
    with (
        mock.patch.object(apply, "compact", partial(compact, depth=2, scattered=4)),
        mock.patch.object(apply, "COMPACT_ROWS", 6),
        mock.patch.object(compaction, "allowed_depth", return_value=2),
        mock.patch.object(background, "compact", partial(compact, depth=2, scattered=4)),
        mock.patch.object(extract, "CHUNK_BYTES", 256),
        mock.patch.object(messages, "PIECE_BYTES", 64),
    ):
        yield


STRATEGIES = [
    strategies.all_at_once(),
    strategies.fluid(),
    strategies.batched(9, order="largest"),
    strategies.matched(order="hottest"),
    strategies.matched(gap=1),
    strategies.paced(bytes_per_epoch=900, order="coldest"),
    strategies.paced(latency=10.0),
    strategies.paced(latency=1e-6, gap=1),
]
ACTIONS = ["pause", "resume", "cancel", "rollback"]


@dataclass
class Move:
    """A wish, to be made before an epoch; numbers are taken modulo what there is."""

    before: int
    kind: str
    number: int
    pairs: list[tuple[int, int]] = field(default_factory=list)
    when: str = "now"
    delay: int = 0
    operator: int | None = None
    strategy: int = 0
    if_busy: str = "refuse"

    def target(self, current: Configuration) -> Target:
        if self.kind == "rescale":
            return rescale(1 + self.number % 8)
        if self.kind == "bins":
            return bins(1 << self.number % 7)
        if self.kind == "balance":
            return balance()
        return explicit({b % current.bins: w % current.workers for b, w in self.pairs})

    def at(self, epoch, clock, newest):
        if self.when == "epoch":
            return epoch + self.delay
        if self.when == "wall":
            return datetime.fromtimestamp(clock.now + self.delay, timezone.utc)
        if self.when == "event":
            return EventTime((newest + self.delay) * SECOND)
        return None


@dataclass
class Script:
    """One run.

    Attributes:
        inputs: for each epoch, for each source, what makes the table of each partition.
        moves: what is wished, and when.
        crashes: (epoch, crash point, how often the point is passed before).
        restarts: epochs before which the query is stopped and started again.
        churn: compact all the time, a little, and cut what moves into small pieces.
    """

    case: str
    key: str
    inputs: list
    moves: list[Move] = field(default_factory=list)
    crashes: list[tuple[int, str, int]] = field(default_factory=list)
    restarts: set[int] = field(default_factory=set)
    workers: int = 4
    bins: int = 16
    share: bool = True
    hosts: int = 1
    combine: bool = False
    collide: bool = False
    flush: bool = False
    idle: float | None = None
    churn: bool = False
    repeat: float = 0.3
    seed: int = 0

    def undisturbed(self) -> Script:
        """The same input at one worker with one bin, never moved, never crashed."""
        return Script(
            self.case,
            self.key,
            self.inputs,
            workers=1,
            bins=1,
            collide=self.collide,
            flush=self.flush,
            idle=self.idle,
            repeat=0,
        )


class Run:
    """A query from its first to its last epoch, over all its starts."""

    def __init__(self, script: Script, directory: str, make_sink=memory) -> None:
        self.script, self.directory = script, directory
        self.case: Case = CASES[script.case](KEY_TYPES[script.key])
        self.clock = Clock()
        self.sink, self.late = make_sink(), memory()
        self.asked: list[str] = []
        self.starts = 0
        self.twin = self.start()

    def start(self) -> Twin:
        script = self.script
        self.starts += 1
        options = Options(script.bins, script.workers, DELAY, script.idle, script.share, retain=3)
        timed = self.case.flow.timed_edges()
        return Twin(
            self.case.flow,
            self.directory,
            self.sink,
            options,
            late=self.late if len(timed) == 1 else None,
            clock=self.clock,
            seed=script.seed + self.starts if script.repeat else None,
            repeat=script.repeat,
            hosts=lambda slot: f"host{slot % script.hosts}",
            combine=script.combine,
            hashes=colliding if script.collide else hash_keys,
        )

    def restart(self) -> None:
        self.twin.close()
        self.twin = self.start()

    def all(self) -> Run:
        """Everything: the inputs, what is left to do after them, and the end of time if the script has it."""
        with churning() if self.script.churn else nullcontext():
            self._all()
        return self

    def _all(self) -> None:
        inputs = [[[part.table() for part in source] for source in epoch] for epoch in self.script.inputs]
        for epoch, tables in enumerate(inputs):
            self.wish(epoch)
            if epoch in self.script.restarts:
                self.restart()
                if epoch:
                    # Spark had not noted that it was done: it asks for the last epoch once more.
                    assert self.twin.epoch(*inputs[epoch - 1], number=epoch - 1) is None
            self.epoch(epoch, tables)
            self.clock.move(1)
        self.clock.move(1000)
        self.twin.drain(2000)
        for one in self.twin.coordinator.last.migrations:
            if one.status == "paused":
                self.control("resume", one.name)
        self.twin.drain(2000)
        if self.script.flush:
            self.twin.flush()
        # The frontier of a deep operator follows some epochs later, and with it what has expired there.
        for _ in range(self.twin.coordinator.depth + 1):
            self.twin.epoch(*[[] for _ in range(self.case.sources)])

    def wish(self, epoch: int) -> None:
        for move in self.script.moves:
            if move.before != epoch:
                continue
            if move.kind == "control":
                if self.asked:
                    action = ACTIONS[move.number % len(ACTIONS)]
                    self.control(action, self.asked[-1 - len(move.pairs) % len(self.asked)])
                continue
            operators = self.case.flow.operators
            name = None if move.operator is None else operators[move.operator % len(operators)].name
            last = self.twin.coordinator.last
            target = move.target(last.configurations[name or operators[0].name])
            at = move.at(epoch, self.clock, epoch)
            try:
                self.asked.append(
                    self.twin.migrate(
                        target, STRATEGIES[move.strategy], at, operator=name, if_busy=move.if_busy
                    )
                )
            except UpdateRefused:
                continue

    def control(self, action: str, migration: str) -> None:
        with suppress(UpdateRefused):
            self.twin.coordinator.submit(
                Entry(new_name(self.clock.now), None, action=action, migration=migration)
            )

    def epoch(self, epoch: int, inputs) -> None:
        """Runs an epoch until it is through.

        After each crash there is a new start, and Spark asks for it again.
        """
        crashes = [one for one in self.script.crashes if one[0] == epoch]
        while True:
            crash = crashes.pop(0) if crashes else None
            with nullcontext() if crash is None else crashing(crash[1], epoch, after=crash[2]):
                try:
                    self.twin.epoch(*inputs, number=epoch)
                except Crash:
                    self.restart()
                    continue
            if crash is None:
                break
        assert self.twin.coordinator.last.epoch == epoch
        assert self.twin.coordinator.committed

    # What can be compared

    def outputs(self) -> dict:
        """All output, by key, in order: for one key all comes from one worker."""
        return by_key(self.sink.table(), self.case.flow.operators[-1].edges[0].keys)

    def epochs(self) -> list:
        """The output of each epoch of the input."""
        return [
            sorted(map(repr, self.sink.epochs[epoch].to_pylist())) for epoch in range(len(self.script.inputs))
        ]

    def state(self) -> dict:
        return {
            (operator.name, spec.name): by_key(self.twin.state(operator.name, spec.name), operator.keys)
            for operator in self.case.flow.operators
            for spec in operator.tables
        }

    def configurations(self) -> dict[str, Configuration]:
        return self.twin.coordinator.last.configurations

    # What must hold of any run

    def check(self) -> None:
        last = self.twin.coordinator.last
        assert sorted(self.sink.epochs) == list(range(last.epoch + 1))
        assert not self.twin.coordinator.wants_epoch()
        self.check_history()
        for index, operator in enumerate(self.case.flow.operators):
            if operator.notifies:
                frontier = self.twin.coordinator.previous_frontier(index)
                waiting = (
                    self.twin._scan(index, 0, operator.tables[-1]) if last.state[operator.name] else None
                )
                assert operator.tables[-1].name == LATER
                if waiting is not None and frontier is not None:
                    assert all(time > frontier for time in waiting["_time"].to_pylist())

    def check_history(self) -> None:
        """Each wish has one outcome, at its time, and all together make the present configuration."""
        start = Configuration.initial(self.script.bins, self.script.workers)
        expected = {operator.name: start for operator in self.case.flow.operators}
        outcomes = defaultdict(list)
        for event in self.twin.coordinator.history.events():
            if event["kind"] in ("moved", "migration"):
                continue
            entry = event["entry"]
            if entry["action"] != "migrate":
                continue
            outcomes[entry["name"]].append(event)
            if event["kind"] == "applied":
                wanted = entry["when"].get("epoch", event["epoch"])
                assert wanted <= event["epoch"] if entry["if_busy"] == "queue" else wanted == event["epoch"]
                target = Target.from_json(entry["target"])
                for name in [entry["operator"]] if entry["operator"] else list(expected):
                    expected[name] = target.resolve(expected[name])
        waiting = {entry["name"] for entry in self.twin.coordinator.last.pending}
        assert sorted([*outcomes, *waiting]) == sorted(self.asked)
        assert all(len(some) == 1 for some in outcomes.values())
        assert all("event" in entry["when"] for entry in self.twin.coordinator.last.pending)
        # What balancing leads to depends on what is known by then, and what is cancelled on how far it was.
        if not any(move.kind in ("balance", "control") for move in self.script.moves):
            assert expected == self.configurations()
        self.check_where_it_led()
        ended = {one.name: one.status for one in self.twin.coordinator.last.migrations}
        ended |= {
            e["name"]: e["status"] for e in self.twin.coordinator.history.events() if e["kind"] == "migration"
        }
        applied = {name for name, some in outcomes.items() if some[0]["kind"] == "applied"}
        assert set(ended) == applied
        assert set(ended.values()) <= {"done", "merged", "cancelled", "rolled back"}

    def check_where_it_led(self) -> None:
        """The last migration of an operator left it at its target, or, rolled back, where it began."""
        told = self.twin.coordinator.history.told(self.twin.coordinator.last)
        for name, configuration in self.configurations().items():
            ended = [
                one for one in told if name in one.get("operators", {}) and one["ended_epoch"] is not None
            ]
            epochs = [one["ended_epoch"] for one in ended]
            last = next((one for one in ended if one["ended_epoch"] == max(epochs)), None)
            if last is None or epochs.count(last["ended_epoch"]) > 1:
                continue  # two that ended in one epoch: which was the last is not told
            led = {"done": "to", "rolled back": "from"}.get(last["status"])
            for one in self.twin.coordinator.last.migrations:
                if led is not None and one.name == last["name"]:  # not bins by worker alone, but which
                    assert one.target[name] == configuration
            if led is not None:
                assert last["operators"][name][led] == placement(configuration), (name, last["status"])


def by_key(table, keys) -> dict:
    """Rows as text, by key, in order; text, because NaN is not equal to itself."""
    out = defaultdict(list)
    names = [name for name in keys if name in table.column_names]
    for row in table.to_pylist():
        out[repr([row[name] for name in names])].append(repr(row))
    return {key: rows if names else sorted(rows) for key, rows in out.items()}


def compare(script: Script) -> None:
    """The three properties for one script."""
    with tempfile.TemporaryDirectory(dir=SHM) as one, tempfile.TemporaryDirectory(dir=SHM) as two:
        plain, moved = Run(script.undisturbed(), one), Run(script, two)
        try:
            plain.all().check()
            moved.all().check()
            assert moved.epochs() == plain.epochs()
            a, b = moved.outputs(), plain.outputs()
            assert a == b, [(k, a.get(k), b.get(k)) for k in {**a, **b} if a.get(k) != b.get(k)]
            assert moved.state() == plain.state()
            assert by_key(moved.late.table(), ["k"]) == by_key(plain.late.table(), ["k"])
        finally:
            plain.twin.close()
            moved.twin.close()
