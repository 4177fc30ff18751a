"""What the allocator of a process does with memory that was freed.

A Python worker needs arrays of some megabytes in every epoch, and frees them again. The C library, left
alone, hands such pieces back to the system at once and asks for them anew; every page of 4 kB then costs a
fault, and several microseconds where a virtual machine has to get it from its host. Measured with rows of 240
bytes: more than half of the workers' CPU time was the kernel's. So what was freed is kept (``keep_freed``),
and given back now and then (``give_back``), in case something unusually large came by.

Where the C library is another one, both do what they can, which may be nothing.
"""

from __future__ import annotations

import ctypes

import pyarrow as pa

from sterna.state.libc import c_function

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""The numbers by which ``mallopt`` knows what is set."""
SIZES = (1 << 30, 1 << 25)
"""How much is kept, and how large a piece may be; older libraries refuse more than the second."""


def keep_freed() -> None:
    """Has the C library keep what this process frees."""
    tell = c_function("mallopt", ctypes.c_int, ctypes.c_int)
    if tell is not None:
        tell(TRIM_THRESHOLD, SIZES[0])
        any(tell(MMAP_THRESHOLD, size) for size in SIZES)


def give_back() -> None:
    """Returns memory that is free to the system."""
    pa.default_memory_pool().release_unused()
    trim = c_function("malloc_trim", ctypes.c_size_t)
    if trim is not None:
        trim(0)
