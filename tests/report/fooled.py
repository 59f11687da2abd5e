"""A fragility run that never ran: records and arrays of swapped texts in the shapes of real ones, and findings beside them."""

from __future__ import annotations

import re

import numpy as np

from whytrust.store import Block, Result, Store

SENTENCE = "The plot is dull, but its two leads are wonderful and the music lifts every quiet scene of this small film."
SWAPS = {"dull": "tedious", "wonderful": "marvellous", "music": "score", "quiet": "hushed", "small": "little", "film": "picture",
         "leads": "stars", "scene": "moment", "plot": "story", "lifts": "raises"}
SPANS = re.compile(r"[\w'-]+")


def levels(rng, text, words, spans, places, swap, seen=True, quality=True, rank=0.9, steps=0.08):
    """A path: at each place one word more is swapped, and the explanation is a little further away."""
    now, out = list(words), []
    for m, place in enumerate(places, 1):
        now[place] = swap(words[place], m)
        edges = [0, *(edge for span in spans for edge in span), len(text)]
        gaps = [text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
        written = "".join(gap + word for gap, word in zip(gaps, [*now, ""], strict=True))
        kept = max(rank - steps * m, -1.0)
        level = {"m": m, "ratio": m / len(words), "place": int(place), "before": words[place], "after": now[place],
                 "text": written, "score": 0.93 - 0.01 * (m % 20), "proposed": 7, "keeping": 5,
                 "moved": 0.4 if seen else None, "outside": False, "rank": kept, "top": 0.75 - 0.01 * (m % 30), "lom": 0.3, "l2": 0.5,
                 "seen": {"rank": max(kept - 0.11, -1.0), "top": 0.6, "lom": 0.4, "l2": 0.6} if seen else None, "model": 0.87}
        if quality:
            level["quality"] = {"perplexity": 100.0 + 13 * m, "new_errors": m % 3, "error_difference": m % 3 - 1, "similarity": 0.98 - 0.01 * (m % 40)}
        out.append(level)
    return out, rng.normal(size=(len(places), len(words)))


def case(number=0, text=SENTENCE, objectives=("lom",), m=4, rank=0.9, swap=None, quality=True, controls=2, seed=0, **more):
    """(record, arrays) of one text, m words of which are swapped."""
    rng = np.random.default_rng((seed, number))
    spans = [found.span() for found in SPANS.finditer(text)]
    words = [text[a:b] for a, b in spans]
    swap = swap or (lambda word, m: SWAPS.get(word, f"{word}ish"))
    order = [i for i, word in enumerate(words) if word in SWAPS] if text == SENTENCE else []
    order += [int(i) for i in rng.permutation(len(words)) if i not in set(order)] if len(order) < m else []
    arrays = {"original": rng.normal(size=len(words))}
    paths = {}
    for i, name in enumerate(objectives):
        found, arrays[name] = levels(rng, text, words, spans, order[:m], swap, quality=quality, rank=rank - 0.05 * i)
        paths[name] = [found]
    for _ in range(controls):
        found, said = levels(rng, text, words, spans, rng.permutation(order)[:m], swap, seen=False, quality=quality, rank=rank + 0.08,
                             steps=0.03)
        paths.setdefault("random", []).append(found)
        arrays.setdefault("random", said)
    record = {"case": f"{number:05d}", "status": "ok", "name": f"text {number + 1}", "text": text, "words": words,
              "spans": [list(span) for span in spans], "label": 1, "label_name": "fresh", "score": 0.934, "left_out": 0,
              "order": order, "noise": {"rank": 0.91, "top": 0.83, "lom": 0.1, "l2": 0.2}, "deterministic": False, "outside": False,
              "paths": paths, "calls": 1234, **({"quality": {"perplexity": 96.0, "new_errors": 0, "error_difference": 0,
                                                            "similarity": 1.0}} if quality else {}), **more}
    return record, arrays


def rate(value, half=0.05):
    return {"value": value, "low": value - half, "high": value + half, "n": 40, "sources": 40}


def findings(**more):
    x = [10, 20, 30, 40, 50]
    series = [{"name": name, "x": x, "y": [top - step * i for i in range(5)], "low": [top - step * i - 0.05 for i in range(5)],
               "high": [top - step * i + 0.05 for i in range(5)]}
              for name, top, step in (("centre of mass (ΔLOM)", 0.72, 0.1), ("random", 0.85, 0.05), ("the same text again", 0.91, 0.0),
                                      ("the model itself", 0.9, 0.06))]
    return {"experiment": "fragile", "question": "Words of texts are swapped for others that mean much the same, and reviews decides as "
            "before. Is what lime says of its reasons still the same?",
            "answer": ["Swaps chosen by centre of mass keep the label, and a rank correlation of .48 (.43 to .53) is left.",
                       "That is fragility above chance: random swaps of as many words leave +.21 more (+.17 to +.25)."],
            "cases": {"of": 40, "done": 40, "failed": 1}, "nothing to swap": 2,
            "tables": [{"title": "Rank correlation by share of words swapped", "as": "number", "columns": ["words swapped", "texts", "as judged"],
                        "rows": [[f"{a}–{a + 10} %", 40, rate(0.65 - a / 200)] for a in range(0, 50, 10)], "about": "Before and after."},
                       {"title": "How good the texts are", "as": "number", "columns": ["texts", "perplexity", "similarity"],
                        "rows": [["before", 96.0, 1.0], ["after", 1234.5, -0.125]]}],
            "charts": [{"title": "What is left of the explanation", "kind": "lines", "as": "number", "x_label": "up to so many % of the words",
                        "y_label": "rank correlation", "about": "1 is the same order.", "series": series}],
            "notes": ["Words count alike in a rank correlation."], "failures": [{"case": "00007", "error": "ValueError: no words"}],
            "settings": {"model": "reviews", "explainer": "lime", "seed": 0, "at most so many words": 0.5}, **more}


def run(folder, cases, block=2):
    """The cases in a store."""
    names = [record["case"] for record, _ in cases]
    blocks = [Block(f"texts-{i:03d}", tuple(names[i:i + block])) for i in range(0, len(names), block)]
    store = Store.create(folder, {"study": "fragile", "seed": 0, "hashes": {}, "spec": {"explainer": "lime"}, "about": {},
                                  "blocks": blocks})
    by_name = {record["case"]: (record, arrays) for record, arrays in cases}
    for one in blocks:
        store.write(one, [Result(*by_name[name]) for name in one.cases])
    store.close()
    return Store.open(folder)


def long_words(rng, n):
    """A document of n words of usual lengths."""
    letters = np.array(list("etaoinshrdlucmfwypvbg"))
    return " ".join("".join(rng.choice(letters, size)) for size in rng.integers(2, 11, n)) + "."
