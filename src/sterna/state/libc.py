"""Functions of the C library that Python does not offer."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, cast


@functools.cache
def c_function(name: str, *arguments: Any) -> Callable[..., int] | None:
    """A function by its name and the types of its arguments; ``None`` where the library has none.

    Example:
        >>> c_function("nothing_is_called_so") is None
        True
    """
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):  # another system
        return None
    function.argtypes = arguments
    return cast("Callable[..., int]", function)
