"""A page as its source has it."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """Every element of a page with its attributes; fails where one is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text.append(data)

    def all(self, *names):
        return [attributes for tag, attributes in self.elements if tag in names]

    def words(self):
        return " ".join(self.text)
