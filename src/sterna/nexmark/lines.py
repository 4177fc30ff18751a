"""Lines of code of each query, on Sterna and on Spark's own operators, counted in the same way.

A line counts if it holds code: no docstring, comment, blank line or import. ``own`` are those of the query's own function, ``whole`` adds, once, every function and class of ours that
it calls on: the operators that several queries share. Constants such as schemas do not count, on neither side.
"""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any, TypeGuard

from rich.console import Console
from rich.table import Table

from sterna.nexmark import native, processors
from sterna.nexmark.native import NATIVE, WHY_NOT
from sterna.nexmark.queries import QUERIES

NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
OURS = ("sterna.nexmark.queries", native.__name__, processors.__name__)


def lines() -> list[dict[str, Any]]:
    """A line for each query."""
    return [
        {
            "query": name,
            "sterna_own": code_lines(query),
            "sterna_whole": whole(query),
            "spark_own": code_lines(NATIVE[name]),
            "spark_whole": whole(NATIVE[name]),
            "spark_note": WHY_NOT.get(name, ""),
        }
        for name, query in QUERIES.items()
    ]


def whole(query: Callable[..., Any]) -> int:
    """The lines of a function and of all of ours that it calls on."""
    return sum(code_lines(one) for one in used(query))


def used(query: Callable[..., Any]) -> list[Callable[..., Any]]:
    """A function, and every function and class of ours that it names, directly or not; in the order in which they are met."""
    found, waiting = [query], [query]
    while waiting:
        for one in _named(waiting.pop()):
            if one not in found:
                found.append(one)
                waiting.append(one)
    return found


def _named(one: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    functions = (
        [one]
        if isinstance(one, FunctionType)
        else [m for m in vars(one).values() if isinstance(m, FunctionType)]
    )
    for function in functions:
        for name in _names(function.__code__):
            # What is imported inside of a function is looked up where it comes from.
            target = function.__globals__.get(name, getattr(processors, name, None))
            if callable(target) and str(getattr(target, "__module__", "")).startswith(OURS):
                yield target


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def code_lines(one: Callable[..., Any]) -> int:
    """The lines of a function or class that hold code.

    Example:
        >>> code_lines(whole)
        2
    """
    source = textwrap.dedent(inspect.getsource(one))
    left_out = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_text(node)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    held = {
        line
        for token in tokens
        if token.type not in NOT_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(held - left_out)


def _is_text(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Whether a statement is nothing but a text: a docstring."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def show(told: dict[str, Any], console: Console) -> None:
    """A table."""
    table = Table(title="Lines of code", caption="with shared operators in brackets")
    for name in ("query", "Sterna", "Spark", ""):
        table.add_column(name, justify="right" if name in ("Sterna", "Spark") else "left")
    for line in told["lines"]:
        counts = (f"{line[f'{side}_own']} ({line[f'{side}_whole']})" for side in ("sterna", "spark"))
        table.add_row(line["query"], *counts, line["spark_note"])
    console.print(table)
