"""Garbage collection: removes files that no retained manifest names, and only those.

A file goes when the last manifest that names it is no longer retained. Files that no manifest ever named
(attempts that failed) are swept now and then: only files of epochs older than the oldest retained manifest
and of this or an earlier incarnation. Files of state are deleted by whoever is given for it, at once or a
little later; manifests at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from sterna.errors import StateError
from sterna.state.manifest import Manifest, Manifests
from sterna.state.store import Store

SWEEP_EVERY = 128
NAME = re.compile(r"-e(-?\d+)-i(\d+)-")


class Collector:
    """Keeps account of which manifest last named which file."""

    def __init__(
        self,
        store: Store,
        manifests: Manifests,
        last: Manifest,
        retain: int,
        incarnation: int,
        remove: Callable[[list[str]], None],
    ) -> None:
        self._store, self._manifests, self._retain, self._incarnation = (
            store,
            manifests,
            max(2, retain),
            incarnation,
        )
        self._remove = remove
        self._last_named: dict[str, int] = {}
        self._outputs: dict[int, dict[str, list[Any]]] = {}
        self._operators = list(last.configurations)
        self._oldest = last.epoch
        for epoch in manifests.epochs():
            try:
                self._note(manifests.read(epoch))
                self._oldest = min(self._oldest, epoch)
            except StateError:
                # A damaged old manifest names files we can't know; they stay until a sweep finds them
                # unnamed.
                continue

    def _note(self, manifest: Manifest) -> None:
        for ref in manifest.refs():
            self._last_named[ref.name] = max(self._last_named.get(ref.name, -2), manifest.epoch)
        self._outputs[manifest.epoch] = manifest.outputs

    def collect(self, manifest: Manifest) -> Iterator[tuple[int, dict[str, list[Any]]]]:
        """Takes note of a committed manifest, and removes what has become garbage.

        Yields epochs that are forgotten.
        """
        self._note(manifest)
        oldest = manifest.epoch - self._retain + 1
        dead = [name for name, epoch in self._last_named.items() if epoch < oldest]
        if dead:
            self._remove(dead)
            for name in dead:
                del self._last_named[name]
        if oldest > self._oldest:
            self._manifests.forget(list(range(self._oldest, oldest)))
            self._oldest = oldest
        if manifest.epoch % SWEEP_EVERY == 0:
            self._sweep(oldest)
        for epoch in [epoch for epoch in self._outputs if epoch < oldest]:
            yield epoch, self._outputs.pop(epoch)

    def _sweep(self, oldest: int) -> None:
        for operator in self._operators:
            directory = f"runs/{operator}"
            orphans = []
            for name in self._store.list(directory):
                path = f"{directory}/{name}"
                match = NAME.search(name)
                if path in self._last_named or match is None:
                    continue
                if int(match.group(1)) < oldest and int(match.group(2)) <= self._incarnation:
                    orphans.append(path)
            self._remove([*orphans, *self._store.leftovers(directory)])
