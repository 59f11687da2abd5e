"""Words that want to be more than words, and every kind of page with them wherever it shows what came from outside."""

from __future__ import annotations

from itertools import cycle

import numpy as np

import whytrust as wt
from report import fooled, made
from whytrust.compat.lime.explanation import DomainMapper
from whytrust.compat.lime.explanation import Explanation as Lime
from whytrust.explanation import Explanation, Gallery
from whytrust.pictures import page as pictures
from whytrust.report import fragile, judged, page, picks, trust
from whytrust.views import ImageView, SoundView, TableView, TextView

PAYLOADS = (
    "<script>window.ran = 1</script>", '<img src=x onerror="window.ran=1">', '"><svg onload=window.ran=1>', "'><svg/onload='window.ran=1'>",
    "javascript:window.ran=1", "</script><script>window.ran=1</script>", "</style><script>window.ran=1</script>",
    "</title><script>window.ran=1</script>", "</textarea><script>window.ran=1</script>", "]]><script>window.ran=1</script>",
    "<!--<script>window.ran=1//-->", "{{7*7}}{{constructor.constructor('window.ran=1')()}}", "${window.ran=1}", "`${window.ran=1}`",
    "\x00<scr\x00ipt>window.ran=1</script>", "lone \ud800 half", "\u202egnp.exe", "\u2066isolated\u2069 \u200bhidden", "line\u2028break\u2029s",
    "&lt;b&gt;&amp;&#60;script&#62;", "url(https://example.invalid/x)", "a\u0301\u0323" + "\u0336" * 40, "👩\u200d👩\u200d👧 🏳️\u200d🌈", "שלום עולם",
    "مرحبا بالعالم", "1e308", "-0", "' autofocus onfocus='window.ran=1", "a|b\tc\r\nd", "https://example.invalid/pixel.png",
    "<iframe srcdoc='<script>parent.ran=1</script>'>", "<meta http-equiv=refresh content='0;url=https://example.invalid/'>",
    "<base href=https://example.invalid/>", "<link rel=stylesheet href=https://example.invalid/x.css>", "Donau" * 2000)
"""No word of them may run, ask for anything, close an element, or turn the words around it."""
NAMES = {"lime": 0.3, "edges": 9.0}


def explanations(word, *kinds):
    """One of each kind of input, or of those named; `word` gives the next words."""
    return [explanation(word, kind) for kind in kinds or ("text", "table", "image", "sound")]


def explanation(word, kind):
    labels = (np.arange(8)[:, None] // 4 * 2 + np.arange(8) // 4).astype(np.int32)
    if kind == "text":
        words, spans, at = [word() for _ in range(4)], [], 0
        for one in words:
            spans.append(((at, at + len(one)),))
            at += len(one) + 1
        view = TextView(" ".join(words), tuple(spans))
    elif kind == "table":
        view = TableView(*(tuple(word() for _ in range(4)) for _ in range(3)))
    elif kind == "image":
        view = ImageView(np.full((8, 8, 3), 90, np.uint8), labels)
    else:
        view = SoundView(np.ones((8, 8), np.float32), labels, 0.4, 8000.0, np.zeros(800, np.float32), 4000, None)
    return Explanation(np.array([0.5, -0.3, 0.1, 0.0]), tuple(word() for _ in range(4)), target=1, target_name=word(), method=word(),
                       prediction=0.93, model=word(), calls=10, view=view, notes=(word(), word()), rules=word(), source=word(),
                       settings={word(): word(), "samples": word()}, standard_errors=np.full(4, 0.1), undecided=(1,))


def _lime(word):
    made_up = Lime(DomainMapper(), class_names=[word(), word()])
    made_up.predict_proba, made_up.top_labels = np.array([0.4, 0.6]), [1]
    made_up.whytrust[1], made_up.local_exp[1] = explanation(word, "text"), [(0, 0.5)]
    return made_up.as_html()


def _audit(word, kind):
    record, arrays = {"image": made.digit_cases, "text": made.text_cases, "sound": made.sound_cases}[kind](1, NAMES)[0] if kind != "row" \
        else made.row_cases(1)[0]
    record = {**record, "name": word(), "clean_name": word(), "label_name": word(), "source": word()}
    if "parts" in record:
        record["parts"] = [word() for _ in record["parts"]]
    if "columns" in record:
        record["columns"] = [word() for _ in record["columns"]]
    if kind == "sound":
        record["sound"] = {**record["sound"], "moment": word()}
    renamed = {"lime": word() or "lime"}
    found = _renamed(made.findings(n=10, d=20 if kind == "sound" else 16, names=NAMES,
                                   kind={"row": "tabular", "sound": "audio"}.get(kind, kind)), renamed)
    found |= {"title": word(), "caveats": [word(), word()], "spec": {word(): {word(): word()}}, "notes": [word()], "problems": [word()],
              "failures": [{"case": word(), "name": word(), "error": word()}], "explainer_failures": {word(): {"count": 1, "first": word()}},
              "versions": {word(): word()}, "repeat": {"command": word()}, "model": {"name": word()},
              "data": {"what": word(), "inputs": 10, "sources": 3}}
    found["contenders"][1]["about"] = word()
    found["verdicts"][0] |= {"words": word(), "why": word()}
    return page.document(found, [page.shown(_renamed(record, renamed), arrays)])


def _renamed(value, names):
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    return names.get(value, value) if isinstance(value, str) else value


def _findings(word):
    """Of an experiment with readers, of metrics or of fooled texts."""
    chart = {"title": word(), "about": word(), "x_label": word(), "y_label": word(), "series": [
        {"name": word(), "x": [1, 2, 3], "y": [0.2, 0.4, 0.5], "low": [0.1, 0.3, 0.4], "high": [0.3, 0.5, 0.6]},
        {"name": word(), "x": [1, 2, 3], "y": [0.3, 0.3, 0.3], "low": None, "high": None}]}
    return {"experiment": word(), "question": word(), "answer": [word(), word()], "cases": {"of": 9, "done": 9, "failed": 1},
            "charts": [chart, {**chart, "kind": "bars"}, {**chart, "series": [{**chart["series"][0], "x": [word(), word(), word()]}]}],
            "tables": [{"title": word(), "about": word(), "columns": [word(), word()], "rows": [[word(), 0.5], [word(), word()]]}],
            "notes": [word()], "failures": [{"case": word(), "error": word()}], "settings": {word(): word(), "more": [word(), {word(): word()}]}}


def _metrics(word):
    cell = {"outcome": "failed", "of": 2, "labs": 1, "words": word()}
    return judged.document({**_findings(word), "asked": {word(): word()},
                            "matrices": [{"domain": "text", "title": word(), "tests": [word()],
                                          "rows": [{"metric": word(), "admitted": True, "cells": [cell], "why": word()}]}],
                            "details": [{"title": word(), "about": word(), "columns": [word(), word()], "rows": [[word(), word()]]}]})


def _fooled(word):
    record = made_text(word)
    return fragile.document({**_findings(word), "explainer": word()}, [fragile.fooled(*record, word())])


def made_text(word):
    swap = word()
    return fooled.case(text=f"so {word()} and on", m=1, swap=lambda one, m: swap, name=word(), label_name=word())


PAGES = {
    "explanations": lambda word: pictures.document(explanations(word), title=word()),
    "one": lambda word: explanation(word, "text").as_html(),
    "gallery": lambda word: Gallery(tuple(explanations(word, "text", "table", "text")), word()).as_html(),
    "lime": _lime,
    "pick": lambda word: picks.document(wt.Picked.of(explanations(word, "table", "table", "table"), 2).shown),
    "image audit": lambda word: _audit(word, "image"),
    "text audit": lambda word: _audit(word, "text"),
    "row audit": lambda word: _audit(word, "row"),
    "sound audit": lambda word: _audit(word, "sound"),
    "trust": lambda word: trust.document(_findings(word)),
    "metrics": _metrics,
    "fooled": _fooled,
}
"""Every kind of page: a function of what gives the next words."""


class Words:
    """All of some words in turn, which are noted down."""

    def __init__(self, words=PAYLOADS):
        self.left, self.given = cycle(words), []

    def __call__(self):
        self.given.append(next(self.left))
        return self.given[-1]
