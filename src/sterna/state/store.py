"""A directory tree on any filesystem that pyarrow opens: where runs, manifests and control entries live.

In: relative paths with ``/`` between the parts, and whole files as bytes. Out: whole files as bytes. A file
is never seen half written under its final name: on a local disk it is written beside it and renamed,
elsewhere it is one put. What can't be written or is damaged raises ``StateError`` with the file's name and
the reason; what is absent raises ``FileNotFoundError``. A store keeps its address only, so it can be pickled
and sent to a worker.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import json
import math
import os
import re
import time
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import xxhash

from sterna.errors import DamagedError, InvalidInput, StateError
from sterna.state.files import temporary_name, write_file, write_local

_REASONS = {
    errno.ENOSPC: "disk full",
    errno.EDQUOT: "disk quota used up",
    errno.EROFS: "read-only filesystem",
    errno.EACCES: "permission denied",
    errno.EFBIG: "file too large for this filesystem",
}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")


def _failed(action: str, path: str, error: OSError) -> StateError:
    reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
    return StateError(f"can't {action} {path}: {reason}")


def _filesystem(uri: str) -> tuple[Any, str]:
    try:
        filesystem, root = pafs.FileSystem.from_uri(uri)
        return filesystem, str(root)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{uri} can't be opened: {error}") from error


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether it is a file, or may be one: what can't be told is told when it is read."""
    try:
        return entry.is_file()
    except OSError:
        return True


class Store:
    """One directory of one filesystem. Build it with ``Store.open``."""

    def __init__(self, uri: str, root: str | None, filesystem: Any = None) -> None:
        self.uri = uri
        self._root = root  # a local directory, or None
        self._explicit = filesystem
        self._remote: tuple[Any, str] | None = None
        self._made: set[str] = set()

    @classmethod
    def open(cls, uri: str | os.PathLike[str], filesystem: Any = None) -> Store:
        """Open a local path, a ``file://`` uri, any uri pyarrow knows, or a path of the filesystem given."""
        text = os.fspath(uri)
        if filesystem is not None:
            if isinstance(filesystem, pafs.LocalFileSystem):
                return cls(text, os.path.abspath(text))
            return cls(text, None, filesystem)
        if not _SCHEME.match(text) and not text.startswith("file:"):
            root = os.path.abspath(text)
            return cls._directory(root, root)
        if text.startswith("file:"):
            _, root = _filesystem(text)
            return cls._directory(text, os.path.abspath(root))
        return cls(text, None)

    @classmethod
    def _directory(cls, uri: str, root: str) -> Store:
        if os.path.isfile(root):
            raise InvalidInput(f"{root} is a file, and a checkpoint is a directory")
        return cls(uri, root)

    def __getstate__(self) -> tuple[str, str | None, Any]:
        return self.uri, self._root, self._explicit

    def __setstate__(self, state: tuple[str, str | None, Any]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"Store({self.uri!r})"

    @property
    def is_local(self) -> bool:
        """Whether files can be opened and memory-mapped by path."""
        return self._root is not None

    def same(self, other: Store) -> bool:
        """Whether both are the same directory of the same filesystem."""
        return self.uri == other.uri and bool(self._explicit == other._explicit)

    def local_path(self, path: str) -> str | None:
        """The path of a file on this machine's disk, or None for a store elsewhere."""
        return None if self._root is None else os.path.join(self._root, path)

    def name(self, path: str) -> str:
        """The full name of a file, for messages."""
        return self.local_path(path) or f"{self.uri.rstrip('/')}/{path}"

    def _fs(self) -> tuple[Any, str]:
        if self._remote is None:
            if self._explicit is not None:
                self._remote = self._explicit, self.uri.strip("/")
            else:
                filesystem, root = _filesystem(self.uri)
                self._remote = filesystem, root.rstrip("/")
        return self._remote

    def _at(self, path: str) -> tuple[Any, str]:
        filesystem, root = self._fs()
        return filesystem, f"{root}/{path}" if root and path else root or path

    def read(self, path: str) -> bytes:
        """The whole file; ``FileNotFoundError`` if there is none."""
        local = self.local_path(path)
        try:
            if local is not None:
                with open(local, "rb") as file:
                    return file.read()
            filesystem, full = self._at(path)
            with filesystem.open_input_stream(full) as stream:
                data: bytes = stream.read()
                return data
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise FileNotFoundError(errno.ENOENT, "no such file", self.name(path)) from None
        except OSError as error:
            raise _failed("read", self.name(path), error) from error

    def write(self, path: str, data: Any, *, durable: bool = False, early: bool = False) -> None:
        """Put a whole file in place of whatever was there.

        With ``durable``, only return once it is on disk; with ``early``, let it begin to get there.
        """
        local = self.local_path(path)
        try:
            self._make_parent(path)
            if local is not None:
                try:
                    write_local(local, data, durable=durable, early=early)
                except FileNotFoundError:
                    # Somebody has removed the directory since it was made.
                    self._make_parent(path, again=True)
                    write_local(local, data, durable=durable, early=early)
                return
            filesystem, full = self._at(path)
            try:
                with filesystem.open_output_stream(full) as stream:
                    stream.write(data)
            except OSError:
                # Closing the stream may have put half a file in place.
                with contextlib.suppress(OSError):
                    filesystem.delete_file(full)
                raise
        except OSError as error:
            raise _failed("write", self.name(path), error) from error

    def create_exclusive(self, path: str, data: Any) -> bool:
        """Create a file unless it exists, and say whether it was created here.

        On a local disk one of several callers wins; elsewhere two callers at the same moment may both believe
        so.
        """
        local = self.local_path(path)
        if local is None:
            if self.exists(path):
                return False
            self.write(path, data)
            return True
        temporary = temporary_name(local)
        try:
            self._make_parent(path, again=True)
            try:
                write_file(temporary, data, durable=True)
                try:
                    # A link fails if the name is taken, as O_EXCL does, but the file appears with all its
                    # bytes.
                    os.link(temporary, local)
                except OSError as error:
                    if error.errno not in _NO_LINKS:
                        raise
                    write_file(local, data, durable=True, mode="xb")
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
        except FileExistsError:
            return False
        except OSError as error:
            raise _failed("create", self.name(path), error) from error
        return True

    def move(self, source: str, target: str) -> None:
        """Rename a file; ``FileNotFoundError`` if there is none.

        Where a store can't rename, it is copied, then deleted.
        """
        local = self.local_path(source)
        try:
            if local is not None:
                os.replace(local, os.path.join(self._root or "", target))
                return
            filesystem, full = self._at(source)
            filesystem.move(full, self._at(target)[1])
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "no such file", self.name(source)) from None
        except OSError as error:
            raise _failed("move", self.name(source), error) from error

    def exists(self, path: str) -> bool:
        """Whether there is a file of that name."""
        local = self.local_path(path)
        if local is not None:
            return os.path.isfile(local)
        filesystem, full = self._at(path)
        return bool(filesystem.get_file_info(full).type == pafs.FileType.File)

    def size(self, path: str) -> int:
        """How many bytes a file has.

        ``FileNotFoundError`` if there is none, ``StateError`` if that can't be told.
        """
        local = self.local_path(path)
        try:
            if local is not None:
                return os.stat(local).st_size
            filesystem, full = self._at(path)
            info = filesystem.get_file_info(full)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _failed("look at", self.name(path), error) from error
        if info.type != pafs.FileType.File:
            raise FileNotFoundError(errno.ENOENT, "no such file", self.name(path))
        return int(info.size)

    def list(self, directory: str) -> builtins.list[str]:
        """The names of the files in a directory, sorted; none if there is no such directory."""
        local = self.local_path(directory)
        if local is not None:
            try:
                with os.scandir(local) as entries:
                    return sorted(e.name for e in entries if _is_file(e) and not e.name.endswith(".tmp"))
            except (FileNotFoundError, NotADirectoryError):
                return []
            except OSError as error:
                raise _failed("list", self.name(directory), error) from error
        filesystem, full = self._at(directory)
        try:
            infos = filesystem.get_file_info(pafs.FileSelector(full, allow_not_found=True))
        except OSError as error:
            raise _failed("list", self.name(directory), error) from error
        return sorted(info.base_name for info in infos if info.type == pafs.FileType.File)

    def leftovers(self, directory: str, seconds: float = 3600) -> builtins.list[str]:
        """The paths of temporary files that a killed process left in a directory.

        Only those that nobody wrote to for so long.
        """
        local = self.local_path(directory)
        if local is None or not os.path.isdir(local):
            return []
        before = time.time() - seconds
        with os.scandir(local) as entries:
            old = [e.name for e in entries if e.name.endswith(".tmp") and _written(e) < before]
        return sorted(f"{directory}/{name}" if directory else name for name in old)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; one that is already gone is fine."""
        for path in paths:
            local = self.local_path(path)
            try:
                if local is not None:
                    os.unlink(local)
                else:
                    filesystem, full = self._at(path)
                    filesystem.delete_file(full)
            except FileNotFoundError:
                continue
            except OSError as error:
                if local is None and not self.exists(path):
                    continue
                raise _failed("delete", self.name(path), error) from error

    def read_document(self, path: str) -> dict[str, Any]:
        """Read what ``write_document`` wrote; damage and truncation raise ``DamagedError``."""
        data = self.read(path)
        head, _, body = data.partition(b"\n")
        try:
            first = json.loads(head)
            checksum = first.get("xxh3") if isinstance(first, dict) else None
            if checksum is None:
                raise DamagedError(
                    f"{self.name(path)} is damaged: its first line is not the checksum of the rest"
                )
            if checksum != xxhash.xxh3_64_hexdigest(body):
                raise DamagedError(f"{self.name(path)} is damaged: its checksum does not match its content")
            document = json.loads(body)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = "it is not text" if isinstance(error, UnicodeDecodeError) else error
            raise DamagedError(f"{self.name(path)} is damaged or cut short: {why}") from error
        if not isinstance(document, dict):
            raise DamagedError(f"{self.name(path)} is damaged: not a document")
        return document

    def write_document(self, path: str, document: dict[str, Any], *, durable: bool = False) -> None:
        """Write a JSON document: one line with the checksum, then the content."""
        self.write(path, encode_document(document), durable=durable)

    def _make_parent(self, path: str, *, again: bool = False) -> None:
        parent = path.rpartition("/")[0]
        if parent in self._made and not again:
            return
        local = self.local_path(parent)
        if local is not None:
            os.makedirs(local, exist_ok=True)
        else:
            filesystem, full = self._at(parent)
            if full:
                filesystem.create_dir(full, recursive=True)
        self._made.add(parent)


def _written(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat().st_mtime
    except FileNotFoundError:  # renamed to its final name in the meantime
        return math.inf


def encode_document(document: dict[str, Any]) -> bytes:
    """A document as the bytes that ``Store.read_document`` reads, e.g. for ``Store.create_exclusive``."""
    body = json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
    return b'{"xxh3":"%s"}\n' % xxhash.xxh3_64_hexdigest(body).encode() + body
