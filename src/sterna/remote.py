"""A running query seen from another process or machine: through its checkpoint location alone.

Reads manifests and history, and appends to the control stream; it never changes anything else. Whether the
query runs at this moment can't be known from files: ``Remote.status`` tells when its last epoch ended. What
can't be is refused at once, with the same words that the driver would use; what changes in between, the
driver refuses, and the history says so.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from sterna import asking
from sterna.control import CLOCKS_APART, ControlStream, Entry
from sterna.engine.checkpoint import DOCUMENT, FORMAT
from sterna.errors import CheckpointError, StateError, UpdateRefused
from sterna.heat import Heat, remembered
from sterna.history import History
from sterna.rehearsal import rehearse
from sterna.state.manifest import Manifest, Manifests
from sterna.state.store import Store
from sterna.statistics import EpochCost, Statistics, bin_bytes
from sterna.strategies import built_in
from sterna.targets import Target


class NoEpochYet(CheckpointError):
    """Nothing is known of a query but who it is."""


class Remote:
    """The query of a checkpoint."""

    def __init__(self, checkpoint: str) -> None:
        self.store = Store.open(checkpoint)
        try:
            document = self.store.read_document(DOCUMENT)
        except FileNotFoundError:
            raise CheckpointError(f"{self.store.name('')} is not the checkpoint of a Sterna query") from None
        if document.get("format") != FORMAT:
            raise CheckpointError(
                f"{self.store.name('')} is in format {document.get('format')}, and this version of Sterna "
                f"reads format {FORMAT}"
            )
        self.query = str(document["query"])
        self.control = ControlStream(self.store)
        self._manifests = Manifests(self.store)
        self._history = History(self.store)

    def last(self) -> Manifest:
        """The newest manifest; ``CheckpointError`` if the query has not ended an epoch yet."""
        failure: StateError | None = None
        for _ in range(3):  # it may be forgotten by the driver between listing and reading
            epochs = self._manifests.epochs()
            if not epochs:
                raise NoEpochYet(f"the query of {self.store.name('')} has not ended an epoch yet")
            try:
                return self._manifests.read(epochs[-1])
            except StateError as error:
                failure = error
        assert failure is not None
        raise failure

    def retained(self) -> list[Manifest]:
        """The manifests of the retained epochs, the oldest first; a damaged one is left out."""
        found = []
        for epoch in self._manifests.epochs():
            with contextlib.suppress(StateError):
                found.append(self._manifests.read(epoch))
        return found

    def statistics(self, operator: str, manifest: Manifest) -> Statistics:
        """What the manifests tell about an operator: its bins as of one, averages over the retained ones."""
        configuration = manifest.configurations[operator]
        heat, recent = Heat(), []
        for one in self.retained():
            heat.learn(remembered(operator, one.facts))
            recent.append(EpochCost.of(one.epoch, one.facts))
        return Statistics(
            bin_bytes(manifest.state[operator], configuration),
            heat.rows(configuration.bins),
            [cost for cost in recent if cost is not None],
            heat.keys,
        )

    def status(self) -> dict[str, Any]:
        """Where everything is, as of the last epoch.

        ``seconds_ago`` is ``None`` as long as none has ended. Each entry that waits has the names of the
        migrations that it is queued ``behind``.
        """
        try:
            last = self.last()
        except NoEpochYet:
            last = Manifest(-1, 0, {}, {}, [None])
        ended = last.facts.get("time")
        return {
            "unseen": [name for name in self.control.names() if name not in set(last.consumed)],
            "query": self.query,
            "seconds_ago": None if ended is None else round(max(0.0, time.time() - ended), 1),
            **last.summary(),
            "pending": [{**entry, "behind": asking.behind(entry, last)} for entry in last.pending],
            "operators": {
                name: {**one, "bytes_by_worker": self._bytes_by_worker(name, last)}
                for name, one in last.summary()["operators"].items()
            },
        }

    def _bytes_by_worker(self, operator: str, last: Manifest) -> list[int]:
        configuration = last.configurations[operator]
        sizes = bin_bytes(last.state[operator], configuration)
        totals = np.bincount(configuration.owners, sizes, configuration.workers)
        return [round(total) for total in totals.tolist()]

    def history(self) -> list[dict[str, Any]]:
        """All migrations, what was refused, and what controllers said of which no migration came.

        The oldest come first.
        """
        try:
            return sorted([*self._history.told(self.last()), *self._said()], key=lambda one: one["started"])
        except NoEpochYet:
            return []

    def damaged(self) -> list[str]:
        """What is wrong with each file of the history that can't be read: what it told of is missing."""
        return self._history.damaged()

    def migration(self, name: str) -> dict[str, Any] | None:
        """What has become of a wish; ``None`` as long as no epoch has seen it.

        The history, which may be long, is read only where the last epoch knows nothing of it.
        """
        try:
            last = self.last()
        except NoEpochYet:
            return None
        found = next((one for one in last.migrations if one.name == name), None)
        if found is not None:
            return found.summary(last.configurations)
        pending = {entry["name"] for entry in last.pending}
        if name in pending or name in set(self.control.names()) - set(last.consumed):
            return None
        return self._history.migrations().get(name)

    def _said(self) -> list[dict[str, Any]]:
        return [
            {
                **event,
                "name": event["controller"],
                "status": event["outcome"],
                "reason": event.get("reason") or event["why"],
                "started": event["time"],
                "started_epoch": event["epoch"],
            }
            for event in self._history.said()
            if "migration" not in event
        ]

    def plan(
        self, target: Target, strategy: Mapping[str, Any], operator: str | None = None
    ) -> dict[str, Any]:
        """What a migration would do; changes nothing."""
        last = self.last()
        if not built_in(strategy):
            raise UpdateRefused(
                f"{strategy.get('name')!r} is none of Sterna's strategies; one of your own is known to the "
                "query alone, so its steps can't be told here"
            )
        out = {}
        for name in asking.operators(operator, last):
            statistics = self.statistics(name, last)
            current = last.configurations[name]
            wanted = target.resolve(current, statistics)
            out[name] = {
                **asdict(rehearse(strategy, current, wanted, statistics)),
                "workers": [current.workers, wanted.workers],
                "bins_by_worker": [current.owned().tolist(), wanted.owned().tolist()],
            }
        return {"epoch": last.epoch, "strategy": dict(strategy), "target": target.to_json(), "operators": out}

    def apply(self, entry: Entry) -> str:
        """Asks for a migration, or for something to be done with one; the entry's name."""
        try:
            last = self.last()
        except NoEpochYet:  # the first epoch checks it, and comes for its sake
            self.control.append(entry)
            return entry.name
        if entry.target is None:
            last = self._check_control(entry, last)
        else:
            waiting = asking.waiting(self.control, last)
            entry = asking.check_migration(
                entry,
                last,
                last.epoch,
                waiting,
                lambda name: self.statistics(name, last),
                elsewhere=True,
            )
        ahead = last.facts.get("time", 0.0) - time.time()
        if ahead > CLOCKS_APART and "wall" in entry.when:
            raise UpdateRefused(
                f"clocks disagree: the query's is {ahead:.0f} s ahead of this machine's, so a time of day "
                "can't be trusted"
            )
        self.control.append(entry)
        return entry.name

    def _check_control(self, entry: Entry, last: Manifest) -> Manifest:
        """Refuses what can't be done with a migration; the manifest that tells.

        A migration that begins just now may be neither in the manifest that was read first nor among the
        entries that were listed after it, but then it is in a newer manifest.
        """
        try:
            self._check_as_of(entry, last)
        except UpdateRefused:
            newer = self.last()
            if newer.epoch == last.epoch:
                raise
            self._check_as_of(entry, newer)
            return newer
        return last

    def _check_as_of(self, entry: Entry, last: Manifest) -> None:
        waiting = [one.name for one in asking.waiting(self.control, last)]
        asking.check_control(entry, last, waiting, self._history.outcomes)
