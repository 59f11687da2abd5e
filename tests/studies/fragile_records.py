"""Records of fragile explanations made by hand, and runs of them in a folder as a study leaves them."""

import math

import numpy as np

from whytrust.language.written import Written
from whytrust.store import Block, Result, Store

SENTENCES = (
    "a sometimes tedious film that never finds its own voice", "it 's a charming and often affecting journey through the south",
    "unflinchingly bleak and desperate , with a score that hurts", "the acting , costumes and music are all astounding here",
    "it 's slow , very slow , and then it simply stops", "a gorgeous picture about people who talk past each other",
    "the plot is thin but the jokes land more often than not", "an oddly moving story of two brothers and a stolen boat")
OTHERS = {"tedious": "boring", "film": "movie", "charming": "delightful", "journey": "trip", "bleak": "grim", "score": "tune",
          "acting": "playing", "astounding": "amazing", "slow": "sluggish", "picture": "image", "gorgeous": "lovely",
          "plot": "story", "jokes": "gags", "story": "tale", "brothers": "siblings", "boat": "ship", "voice": "tone"}


def level(m, words, rank=1.0, *, place=0, before="a", after="b", text="b", top=None, lom=0.0, l2=0.0, score=0.9, seen=None,
          model=1.0, **more):
    """One level of a path; `seen` is the rank correlation that the attack saw."""
    top = max(rank, 0.0) if top is None else top
    own = {"rank": rank if seen is None else seen, "top": top, "lom": lom, "l2": l2}
    return {"m": m, "ratio": m / words, "place": place, "before": before, "after": after, "text": text, "score": score,
            "proposed": 9, "keeping": 7, "moved": lom, "outside": False, "seen": own, "rank": rank, "top": top, "lom": lom, "l2": l2,
            "model": model, **more}


def record(case, words, paths, *, text=None, status="ok", noise=1.0, score=0.95, **more):
    """A text of so many words; paths is {objective: [[level, …], …]}."""
    text = " ".join(f"w{i}" for i in range(words)) if text is None else text
    written = Written.of(text)
    if status == "failed":
        return {"case": case, "name": f"text {case}", "status": "failed", "error": "ValueError: too short"}
    return {"case": case, "name": f"text {case}", "status": status, "text": text, "words": list(written.words),
            "spans": [list(span) for span in written.spans], "label": 1, "label_name": "positive", "score": score, "left_out": 0,
            "order": list(range(len(written))), "deterministic": noise == 1.0, "outside": False,
            "noise": {"rank": noise, "top": noise, "lom": 0.0, "l2": 0.0}, "paths": paths, "calls": 100, **more}


def manifest(cases, **more):
    return {"study": "fragile", "seed": 0, "hashes": {case: case for case in cases},
            "spec": {"explainer": "lime", "objectives": ["l2", "lom"], "max_ratio": 0.5, "variant": "paper", "controls": 3},
            "about": {"model": "made up", "inputs": "made-up texts", "command": "", "candidates": "a list", "constraints": []},
            "blocks": [{"id": "texts-0", "cases": list(cases)}], **more}


def swapped(text, places):
    """The text with other words at these places."""
    written = Written.of(text)
    for place in places:
        word = written.words[place]
        written = written.swap(place, OTHERS.get(word.lower(), f"un{word}" if word.isascii() and word.isalnum() else "other"))
    return written.text


def attacked(case, text, rng, deep=0.5, noise=1.0, drop=0.25, judged=True):
    """A made-up attack: correlations fall by `drop` a word, random ones by half of it; (record, arrays)."""
    words = len(Written.of(text))
    order = rng.permutation(words)
    arrays, paths = {"original": rng.normal(size=words)}, {}
    for name, strength in (("l2", 1.1), ("lom", 1.0), ("random", 0.5), ("random", 0.5)):
        levels, said = [], []
        for m in range(1, max(math.floor(deep * words), 1) + 1):
            rank = float(np.clip(noise - strength * drop * m + 0.15 * rng.normal(), -1, 1))
            place = int(order[m - 1])
            quality = {"perplexity": float(120 + 40 * m + 30 * rng.random()), "new_errors": int(rng.integers(2)),
                       "error_difference": int(rng.integers(2)), "similarity": float(0.9 - 0.03 * m)}
            now = swapped(text, order[:m])
            one = level(m, words, rank, place=place, before=Written.of(text).words[place], after=Written.of(now).words[place],
                        text=now, top=float(np.clip(rank + 0.2, 0, 1)), lom=float(0.4 * m + rng.random()), score=0.97 - 0.03 * m,
                        seen=min(rank + 0.1, 1.0), model=float(np.clip(1 - 0.1 * m, 0, 1)))
            if name == "random":
                one["seen"] = one["moved"] = None
            levels.append({**one, **({"quality": quality, "pool_quality": [quality, quality]} if judged else {})})
            said.append(arrays["original"] + 0.3 * m * rng.normal(size=words))
        paths.setdefault(name, []).append(levels)
        arrays.setdefault(name, np.array(said))
    own = {"perplexity": 110.0, "new_errors": 0, "error_difference": 0, "similarity": 1.0} if judged else None
    return record(case, words, paths, text=text, noise=noise, **({"quality": own} if judged else {})), arrays


def write(folder, results, **more):
    """A finished run of (record, arrays) pairs in a folder."""
    cases = [found["case"] for found, _ in results]
    block = Block("texts-0", tuple(cases))
    store = Store.create(folder, manifest(cases, **more))
    store.write(block, [Result(found, arrays) for found, arrays in results])
    store.close()
    return store


def folder_of_runs(place, datasets=("sst2",), models=("minilm", "minilm-adv", "tfidf"), texts=SENTENCES, copies=1,
                   explainers=("integrated_gradients", "lime"), **more):
    """Runs as `whytrust reproduce fragile` lays them out; tfidf has no integrated gradients."""
    for d, dataset in enumerate(datasets):
        for i, model in enumerate(models):
            for e, explainer in enumerate(("integrated_gradients", "lime")):
                if explainer not in explainers or (model == "tfidf" and explainer != "lime"):
                    continue
                rng = np.random.default_rng((d, i, e))
                several = [text if copy == 0 else f"{text} {copy}" for copy in range(copies) for text in texts]
                write(place / dataset / model / explainer, [
                    attacked(f"{n:05d}", text, rng, noise=1.0 if e == 0 else 0.9, drop=0.12 + 0.05 * i, **more)
                    for n, text in enumerate(several)])
    return place
