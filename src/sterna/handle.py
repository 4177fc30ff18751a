"""A migration in the hands of whoever asked for it: how far it is, and what to do with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sterna.control import Entry, new_name
from sterna.engine.coordinator import Coordinator
from sterna.errors import SternaError, UpdateRefused
from sterna.migration import Migration
from sterna.remaining import Moments, seconds_left
from sterna.state.manifest import Manifest

Wait = Callable[[Callable[[], bool], "float | None"], bool]


class MigrationHandle:
    """One migration; made by ``Query.migrate`` and ``Query.migration``.

    Attributes:
        name: the name of its control entry, which the history and the command line use too.
    """

    def __init__(
        self, name: str, coordinator: Coordinator, submit: Callable[[Entry], None], wait: Wait
    ) -> None:
        self.name = name
        self._coordinator, self._submit, self._wait = coordinator, submit, wait
        self._asked: dict[str, str] = {}
        self._moments = Moments(name, coordinator.manifests.read)

    def __repr__(self) -> str:
        return f"<migration {self.name}: {self.status}>"

    @property
    def status(self) -> str:
        """What has become of it so far.

        One of ``waiting``, ``running``, ``paused``, ``done``, ``cancelled``, ``rolled back``, ``failed``,
        ``merged`` and ``refused``.
        """
        with self._coordinator.lock:
            last = self._coordinator.last
        migration = _of(last, self.name)
        return migration.status if migration is not None else str(self.progress()["status"])

    def progress(self) -> dict[str, Any]:
        """How far it is.

        That is its status, bins and bytes moved, bins left, when it may end (seconds since 1970), and
        latencies before, during and after.
        """
        with self._coordinator.lock:
            last = self._coordinator.last
            fresh = set(self._coordinator.control.names()) - set(last.consumed)
            names = {*fresh, *(one["name"] for one in last.pending)}
        migration = _of(last, self.name)
        if migration is not None:
            summary = migration.summary(last.configurations)
            seconds = seconds_left(self._moments.until(last), summary.get("bins_left", 0))
            now = self._coordinator.clock()
            summary["estimated_end"] = None if seconds is None else round(now + seconds, 3)
            return summary
        if self.name in names:
            return {"name": self.name, "status": "waiting"}
        found = self._coordinator.history.migrations().get(self.name)
        if found is None:
            raise UpdateRefused(f"there is no migration {self.name!r}")
        return found

    @property
    def done(self) -> bool:
        """Whether it is over, however it ended, and nothing that was asked of it here is still to be done."""
        if self._asked:
            with self._coordinator.lock:
                open_ = set(self._coordinator.control.names()) - set(self._coordinator.last.consumed)
            if open_ & self._asked.keys():
                return False
        return self.status not in ("waiting", "running", "paused")

    def wait(self, timeout: float | None = None) -> dict[str, Any]:
        """Waits until it is over and returns what became of it.

        Raises if it was refused or failed, if something that was asked of it here since the last ``wait`` was
        refused, or after ``timeout`` seconds.
        """
        if not self._wait(lambda: self.done, timeout):
            raise SternaError(f"migration {self.name} is not over after {timeout} seconds: {self.status}")
        outcome = self.progress()
        asked, self._asked = self._asked, {}
        if outcome["status"] in ("refused", "failed"):
            raise UpdateRefused(f"migration {self.name} {outcome['status']}: {outcome['reason']}")
        if asked:
            told = self._coordinator.history.migrations()
            for name, action in asked.items():
                if name in told and told[name]["status"] == "refused":
                    raise UpdateRefused(
                        f"{action} of migration {self.name} was refused: {told[name]['reason']}; it is "
                        f"{outcome['status']}"
                    )
        return outcome

    def pause(self) -> None:
        """Moves nothing more until ``resume``."""
        self._ask("pause")

    def resume(self) -> None:
        """Goes on."""
        self._ask("resume")

    def cancel(self) -> None:
        """Ends it: what has moved stays where it is."""
        self._ask("cancel")

    def rollback(self) -> None:
        """Moves back what has moved, with the same strategy; also after it has ended, for 32 epochs.

        One that was merged into another goes back with that one, to where the first of them began.
        """
        self._ask("rollback")

    def _ask(self, action: str) -> None:
        entry = Entry(new_name(), None, action=action, migration=self.name)
        self._submit(entry)
        self._asked[entry.name] = action


def _of(last: Manifest, name: str) -> Migration | None:
    return next((one for one in last.migrations if one.name == name), None)
