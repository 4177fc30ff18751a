r"""HTML and SVG as a tree: text is escaped, and every element closed, by the standard library.

>>> page(tag("p", "1 < 2 ", tag("b", "&"), class_="note", aria_label='a "quoted" name'))
'<!DOCTYPE html>\n<p class="note" aria-label="a &quot;quoted&quot; name">1 &lt; 2 <b>&amp;</b></p>\n'
"""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def tag(name: str, /, *children: ET.Element | str | None, **attributes: str | float | None) -> ET.Element:
    """An element; ``class_`` is ``class``, ``aria_label`` is ``aria-label``, and ``None`` is left out."""
    element = ET.Element(name)
    for key, value in attributes.items():
        if value is not None:
            text = clean(value) if isinstance(value, str) else number(value)
            element.set(key.rstrip("_").replace("_", "-"), text)
    for child in children:
        if isinstance(child, str):
            _append_text(element, clean(child))
        elif child is not None:
            element.append(child)
    return element


def number(value: float) -> str:
    """A coordinate, to a hundredth.

    >>> number(12.0), number(1 / 3)
    ('12', '0.33')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def share(value: float) -> str:
    """A share of the whole as a percentage of its length."""
    return f"{number(100 * value)}%"


def clean(text: str) -> str:
    """Text without the characters that no page may contain."""
    return _UNPRINTABLE.sub("\ufffd", text)


def data(value: Any, name: str) -> ET.Element:
    """Data for the page's script, as JSON that cannot end the element it is in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return tag("script", text, type="application/json", id=name)


def page(root: ET.Element) -> str:
    """The tree as text."""
    return f"<!DOCTYPE html>\n{ET.tostring(root, encoding='unicode', method='html')}\n"


def _append_text(element: ET.Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text
