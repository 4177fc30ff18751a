"""Writing a file on a local disk so that nobody ever sees half of it under its name."""

from __future__ import annotations

import contextlib
import ctypes
import os
import uuid
from typing import Any

import pyarrow as pa

from sterna.state.libc import c_function

SYNC_FILE_RANGE_WRITE = 2
PIECE = 512 << 10
"""Bytes of one write.

For a larger one Linux looks for pages of 2 MB and more to cache it in, which a virtual machine may have
handed back to its host: 46 MB took 120 ms of CPU time in one write, and 13 ms in pieces.
"""


def temporary_name(path: str) -> str:
    """A name beside a file that no other writer uses.

    It is hidden, because Spark watches some of the directories.
    """
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{uuid.uuid4().hex[:12]}.tmp")


def write_local(path: str, data: Any, *, durable: bool = False, early: bool = False) -> None:
    """Write a local file beside its name and rename it; on failure nothing stays behind.

    With ``early`` the system begins to put it on disk now, and nobody waits for that.
    """
    temporary = temporary_name(path)
    try:
        write_file(temporary, data, durable=durable, early=early)
        os.replace(temporary, path)
        if durable:
            directory = os.open(os.path.dirname(path), os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def write_file(
    path: str, data: bytes | pa.Buffer, *, durable: bool, early: bool = False, mode: str = "wb"
) -> None:
    """Write a local file in place, or leave none; with mode ``xb`` only if there is none."""
    with open(path, mode, buffering=0) as file:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest[:PIECE]) :]
            if durable:
                os.fsync(file.fileno())
            elif early:
                begin_writing(file.fileno())
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            raise


def begin_writing(descriptor: int) -> None:
    """Has Linux begin to put a file on disk; elsewhere nothing happens.

    Left alone, it puts off writing until much has gathered, and then writes all of it at once: everybody who
    opens, writes or renames a file waits meanwhile.
    """
    begin = c_function("sync_file_range", ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    if begin is not None:
        begin(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE)
