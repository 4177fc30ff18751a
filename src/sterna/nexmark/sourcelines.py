"""Lines of code, counted in the source: of a function, and of whatever it needs from the same files.

Counted are lines with code on them: no blank lines, no comments, no docstrings, no imports. What a function
names is followed through the files given; annotations are not followed, because they do nothing.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
Key = tuple[str, str]


@dataclass(frozen=True)
class _Module:
    """A file: the lines that say something, what it defines, and where it has names from."""

    lines: frozenset[int]
    definitions: dict[str, ast.stmt]
    imports: dict[str, Key]


class Source:
    """Some files of Python, each called as its module is."""

    def __init__(self, files: dict[str, Path]) -> None:
        self._modules = {name: _module(path.read_text(encoding="utf-8")) for name, path in files.items()}

    def own(self, module: str, name: str) -> int:
        """How many lines a definition has by itself; 0 if there is none of that name."""
        where = self._modules.get(module)
        if where is None or name not in where.definitions:
            return 0
        return len(_span(where.definitions[name]) & where.lines)

    def lines(self, module: str, name: str) -> int:
        """How many lines a definition has, with everything it needs; 0 if there is none of that name."""
        found: set[tuple[str, int]] = set()
        open_, seen = [(module, name)], set()
        while open_:
            key = open_.pop()
            where = self._modules.get(key[0])
            if key in seen or where is None:
                continue
            seen.add(key)
            if key[1] in where.definitions:
                node = where.definitions[key[1]]
                found |= {(key[0], line) for line in _span(node) & where.lines}
                open_ += [where.imports.get(used, (key[0], used)) for used in _used(node)]
            elif key[1] in where.imports:
                open_.append(where.imports[key[1]])
        return len(found)


def _module(text: str) -> _Module:
    tree = ast.parse(text)
    silent = {line for node in ast.walk(tree) for line in _silent(node)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {
        line
        for token in tokens
        if token.type not in SILENT
        for line in range(token.start[0], token.end[0] + 1)
    }
    definitions = {name: node for node in tree.body for name in _names(node)}
    imports = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return _Module(frozenset(lines - silent), definitions, imports)


def _silent(node: ast.AST) -> Iterator[int]:
    """Lines of imports and of docstrings."""
    says_nothing = isinstance(node, (ast.Import, ast.ImportFrom)) or (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    if says_nothing:
        assert isinstance(node, ast.stmt)
        yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def _span(node: ast.stmt) -> set[int]:
    decorators = node.decorator_list if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
    first = min([node.lineno, *(one.lineno for one in decorators)])
    return set(range(first, (node.end_lineno or node.lineno) + 1))


def _used(node: ast.AST) -> Iterator[str]:
    """The names that code uses, in the order in which they stand."""
    if isinstance(node, ast.Name):
        yield node.id
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _used(child)
