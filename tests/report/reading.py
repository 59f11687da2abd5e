"""A page as a browser would read it: elements in order, with their attributes, their text and what they stand in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "input", "wbr"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    parents: tuple[Element, ...]
    text: str = ""
    children: list[Element] = field(default_factory=list)
    look: str = ""

    @property
    def classes(self):
        return set((self.attributes.get("class") or "").split())

    def all(self, tag=None, class_=None):
        for child in self.children:
            if (tag is None or child.tag == tag) and (class_ is None or class_ in child.classes):
                yield child
            yield from child.all(tag, class_)


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.root = Element("", {}, ())
        self.open, self.elements, self.faults = [self.root], [], []
        self.feed(text)
        self.close()
        self.faults += [f"<{e.tag}> stays open" for e in self.open[1:]]
        looks = dict(re.findall(r'\[data-look="(\d+)"\] \{ (.*?) \}', "".join(e.text for e in self.all("style"))))
        for element in self.elements:  # as a browser applies the page's rules for single elements
            if "data-look" in element.attributes:
                element.look = looks.get(element.attributes["data-look"], "")

    def handle_starttag(self, tag, attrs):
        if len({name for name, _ in attrs}) < len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        element = Element(tag, dict(attrs), tuple(self.open))
        self.open[-1].children.append(element)
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        if self.open[-1].tag != tag:
            self.faults.append(f"</{tag}> closes nothing")
        else:
            self.open.pop()

    def handle_data(self, data):
        for element in self.open:
            element.text += data

    def handle_comment(self, data):
        self.faults.append(f"comment {data!r}")

    def all(self, tag=None, class_=None):
        return list(self.root.all(tag, class_))

    def by_id(self, name):
        return next((e for e in self.elements if e.attributes.get("id") == name), None)
