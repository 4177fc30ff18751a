"""The manifest of an epoch: all that the next epoch needs to know.

It lists the runs that make up each worker's state, and has all else besides. Written once, whole, with a
checksum. An epoch is *prepared* when its manifest is there and *committed* when its commit marker is there
too. The decision of an epoch (its freeze) is a document of its own, written before anything of the epoch
runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sterna.configuration import Configuration
from sterna.errors import StateError
from sterna.migration import Migration
from sterna.state.refs import RunRef
from sterna.state.store import Store
from sterna.watermark import Progress

DIRECTORY = "epochs"
State = dict[str, dict[int, dict[str, list[RunRef]]]]


@dataclass(frozen=True)
class Manifest:
    """Everything about the end of an epoch.

    Attributes:
        state: for each operator, worker and table its runs.
        watermarks: the watermark at this epoch, the one before, and so on, as many as the dataflow is deep.
        progress: what is known of each timed edge.
        pending: control entries that wait, as JSON.
        consumed: names of control entries whose outcome is settled but whose files may still be there.
        outputs: parts of the sink and of the late sink.
        hosts: where each worker of each operator last ran.
        facts: counts and timings for status and history.
        migrations: those under way, and those that ended lately.
    """

    epoch: int
    incarnation: int
    configurations: dict[str, Configuration]
    state: State
    watermarks: list[int | None]
    progress: dict[int, Progress] = field(default_factory=dict)
    pending: list[dict[str, Any]] = field(default_factory=list)
    consumed: list[str] = field(default_factory=list)
    outputs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    next_due: dict[str, int | None] = field(default_factory=dict)
    hosts: dict[str, dict[int, str]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    migrations: list[Migration] = field(default_factory=list)

    def refs(self) -> Iterator[RunRef]:
        """All references of all workers."""
        for workers in self.state.values():
            for tables in workers.values():
                for refs in tables.values():
                    yield from refs

    def summary(self) -> dict[str, Any]:
        """What people want to know of it."""
        return {
            "epoch": self.epoch,
            "epoch_ms": self.facts.get("ms"),
            "watermark": self.watermarks[0],
            "rows": self.facts.get("rows_total", 0),
            "late": self.facts.get("late_total", 0),
            "pending": self.pending,
            "migrations": [one.summary(self.configurations) for one in self.migrations if one.active],
            "operators": {
                name: {
                    "bins": c.bins,
                    "workers": c.workers,
                    "bins_by_worker": c.owned().tolist(),
                    "hosts": self.hosts.get(name, {}),
                    "runs": sum(
                        len(refs) for tables in self.state[name].values() for refs in tables.values()
                    ),
                }
                for name, c in self.configurations.items()
            },
        }

    def to_json(self) -> dict[str, Any]:
        """The stored form."""
        return {
            "epoch": self.epoch,
            "incarnation": self.incarnation,
            "configurations": {name: c.to_json() for name, c in self.configurations.items()},
            "state": {
                name: {
                    str(worker): {table: [ref.to_list() for ref in refs] for table, refs in tables.items()}
                    for worker, tables in workers.items()
                }
                for name, workers in self.state.items()
            },
            "watermarks": self.watermarks,
            "progress": {str(edge): p.to_json() for edge, p in self.progress.items()},
            "pending": self.pending,
            "consumed": self.consumed,
            "outputs": self.outputs,
            "next_due": self.next_due,
            "hosts": {
                name: {str(w): host for w, host in hosts.items()} for name, hosts in self.hosts.items()
            },
            "facts": self.facts,
            "migrations": [migration.to_json() for migration in self.migrations],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Manifest:
        """The inverse of ``to_json``."""
        return cls(
            epoch=data["epoch"],
            incarnation=data["incarnation"],
            configurations={name: Configuration.from_json(c) for name, c in data["configurations"].items()},
            state={
                name: {
                    int(worker): {
                        table: [RunRef.from_list(ref) for ref in refs] for table, refs in tables.items()
                    }
                    for worker, tables in workers.items()
                }
                for name, workers in data["state"].items()
            },
            watermarks=data["watermarks"],
            progress={int(edge): Progress(*values) for edge, values in data["progress"].items()},
            pending=data["pending"],
            consumed=data["consumed"],
            outputs=data["outputs"],
            next_due=data["next_due"],
            hosts={
                name: {int(w): host for w, host in hosts.items()} for name, hosts in data["hosts"].items()
            },
            facts=data["facts"],
            migrations=[Migration.from_json(one) for one in data["migrations"]],
        )


class Manifests:
    """The documents of all retained epochs."""

    def __init__(self, store: Store, *, durable: bool = False) -> None:
        self._store, self._durable = store, durable

    @staticmethod
    def _path(epoch: int, what: str) -> str:
        # Epoch -1 is the state before the first epoch; a name must sort and parse, so epochs are shifted by
        # one.
        return f"{DIRECTORY}/{epoch + 1:012d}.{what}"

    def epochs(self, what: str = "manifest.json") -> list[int]:
        """The epochs that have such a document."""
        names = self._store.list(DIRECTORY)
        return [int(name.split(".", 1)[0]) - 1 for name in names if name.endswith("." + what)]

    def read(self, epoch: int) -> Manifest:
        """The manifest of an epoch; ``StateError`` if it is damaged or not there."""
        path = self._path(epoch, "manifest.json")
        try:
            return Manifest.from_json(self._store.read_document(path))
        except FileNotFoundError as error:
            raise StateError(
                f"there is no manifest of epoch {epoch}; retained are {self._span()} in "
                f"{self._store.name(DIRECTORY)}"
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"{self._store.name(path)} is not a manifest: {error!r}") from error

    def _span(self) -> str:
        epochs = self.epochs()
        return f"epochs {epochs[0]} to {epochs[-1]}" if epochs else "none"

    def prepare(self, manifest: Manifest) -> None:
        """Makes a manifest durable."""
        self._store.write_document(
            self._path(manifest.epoch, "manifest.json"), manifest.to_json(), durable=self._durable
        )

    def commit(self, epoch: int, incarnation: int) -> None:
        """Marks an epoch as committed."""
        self._store.write_document(
            self._path(epoch, "committed.json"), {"incarnation": incarnation}, durable=self._durable
        )

    def committed(self, epoch: int) -> bool:
        """Whether an epoch is committed."""
        return self._store.exists(self._path(epoch, "committed.json"))

    def freeze(self, epoch: int, decision: dict[str, Any]) -> None:
        """Makes a decision durable."""
        self._store.write_document(self._path(epoch, "frozen.json"), decision, durable=self._durable)

    def frozen(self, epoch: int) -> dict[str, Any] | None:
        """The decision of an epoch, if it is frozen."""
        try:
            return self._store.read_document(self._path(epoch, "frozen.json"))
        except FileNotFoundError:
            return None

    def forget(self, epochs: list[int]) -> None:
        """Removes the documents of epochs that are not retained any more."""
        # The manifest last: as long as it is there, a start after a crash knows what is left to remove.
        kinds = ("frozen.json", "committed.json", "manifest.json")
        self._store.delete([self._path(epoch, kind) for epoch in epochs for kind in kinds])
