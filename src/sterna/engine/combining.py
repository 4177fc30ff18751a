"""Whether rows are combined before the exchange, and by whom.

That is chosen from what the last epochs' statistics say pays. Combining pays where keys repeat inside an
epoch. Spark's own ``groupBy`` (native code, but a stage more) pays for many rows over few keys; the router
(vectorised Python) for fewer. Only aggregates whose partial results may be added up in any order with the
same result are combined at all. While Spark combines, nobody sees how often keys repeat, so now and then an
epoch is left to the router to look again.
"""

from __future__ import annotations

from sterna.dataflow import Dataflow
from sterna.engine.epoch import Combining
from sterna.operators.base import Operator
from sterna.state.manifest import Manifest

ROUTER_RATIO = 2.0
NATIVE_RATIO = 8.0
NATIVE_ROWS = 20_000
LOOK_AGAIN = 200


class Combiner:
    """Chooses for each edge of a query, from one epoch to the next."""

    def __init__(self, flow: Dataflow, wanted: str = "auto", ansi: bool = True) -> None:
        self._wanted = wanted
        self._edges: dict[int, Operator] = {}
        sources = [edge for edge in flow.edges if edge.source is not None]
        for operator in flow.operators:
            if operator.combined_schema() is not None:
                self._edges.update(
                    {edge.number: operator for edge in operator.edges if edge.source is not None}
                )
        # Spark's groupBy replaces the rows, so nobody else may need them, nor their times.
        self._native = {
            number
            for number, operator in self._edges.items()
            if len(sources) == 1
            and operator.edges[0].time is None
            and operator.edges[0].recipe is None
            and _native(operator, ansi)
        }
        self._choice = Combining()
        self._since = 0

    def choice(self) -> Combining:
        """How the next epoch combines."""
        if self._wanted == "none" or not self._edges:
            return Combining()
        if self._wanted == "router":
            return Combining(router=frozenset(self._edges))
        if self._wanted == "native":
            return Combining(native=frozenset(self._native), router=frozenset(self._edges) - self._native)
        if self._choice.native and self._since >= LOOK_AGAIN:
            self._since = 0
            return Combining(router=self._choice.native)
        return self._choice

    def learn(self, manifest: Manifest, used: Combining) -> None:
        """Takes the statistics of an epoch into account."""
        self._since += 1
        if used.native or not self._edges:
            return
        combined = manifest.facts.get("combined", {})
        rows = manifest.facts["rows"]
        if not rows:
            return
        router, native = set(), set()
        for number, operator in self._edges.items():
            before, after = combined.get(str(number)) or (rows, self._keys(manifest, operator.name))
            ratio = before / max(1, after)
            if number in self._native and ratio >= NATIVE_RATIO and before >= NATIVE_ROWS:
                native.add(number)
            elif ratio >= ROUTER_RATIO:
                router.add(number)
        self._choice = Combining(router=frozenset(router), native=frozenset(native))

    @staticmethod
    def _keys(manifest: Manifest, operator: str) -> int:
        workers = manifest.facts["workers"]
        return sum(facts[1] for name, facts in workers.items() if name.rsplit("/", 1)[0] == operator)


def _native(operator: Operator, ansi: bool) -> bool:
    functions = operator.native()
    # Outside ANSI mode Spark's sums wrap around silently; ours say so.
    return functions is not None and (ansi or all(function != "sum" for _, function, _ in functions))
