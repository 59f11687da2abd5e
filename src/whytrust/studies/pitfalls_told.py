"""What the demonstrations show on our nets, beside what was published: tables, and sentences that say where it comes out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from whytrust import stats
from whytrust.studies import pitfalls_published as published
from whytrust.studies.pitfalls_flipping import BASELINES, ISOLATED, RANDOM
from whytrust.studies.twins import as_correlation, as_share, followed

Records = Sequence[Mapping[str, Any]]
Table = dict[str, Any]
SHOWN = (0.02, 0.05, 0.1, 0.18)
"""Shares of hidden pixels that tables have."""
CALLED = {"grad_cam": "Grad-CAM", "excitation_backprop": "excitation backprop", "linear_approximation": "linear approximation",
          "saliency": "gradient", "guided_backprop": "guided backprop", "deconvnet": "DeconvNet", RANDOM: "random",
          "integrated_gradients": "integrated gradients", "occlusion": "occlusion", "edges": "edges (no model)"}


def pointing(record: Mapping[str, Any]) -> tuple[list[str], list[Table]]:
    """Table 3."""
    models, weights = record["models"], record["weights"]
    rows = [[name, f"{100 * models[name]['accuracy']:.2f} %", f"{100 * published.POINTING[name]['accuracy']:.2f} %",
             f"{100 * models[name]['pointing']:.1f} %", f"{100 * published.POINTING[name]['pointing']:.1f} %",
             f"{weights[name]:,} of {weights['of']:,}"] for name in models]
    standard, other = models["standard"], models["manipulated"]
    said = (f"The pointing game falls from {100 * standard['pointing']:.1f} % to {100 * other['pointing']:.1f} % at "
            f"{'the same labels for every image' if record['same_labels'] == 1 else 'nearly the same labels'} "
            f"(published: 100.0 % to 0.0 %). Both explanations are weight times pixel, exactly what each pixel contributes.")
    return [said], [{"title": "Pointing game of a sparse linear model, before and after one weight was added to all classes "
                     "(Table 3)", "columns": ["model", "accuracy", "published", "pointing game", "published", "weights not 0"],
                     "rows": rows, "about": f"{record['n']:,} test images; lasso strength {record['strength']:g}, whose "
                     "accuracy is nearest to the published one among those tried."}]


def indicator(record: Mapping[str, Any]) -> tuple[list[str], list[Table]]:
    """Appendix E."""
    example, often = record["example"], record["often"]
    names = ("nothing hidden", "most important hidden", "less important hidden")
    rows = [[name, *(f"{score:.3f}" for score in scores), f"class {label + 1}"]
            for name, scores, label in zip(names, example["scores"], example["labels"], strict=True)]
    as_published = tuple(example["labels"]) == published.LABELS
    said = ("The paper's counter-example "
            + ("comes out: hiding the more important feature keeps the label, hiding the less important one loses it."
               if as_published else "does not come out."))
    more = (f"Of {often['tried']:,} random linear models of three classes, the order of true contributions is beaten in "
            f"{100 * often['accuracy']:.0f} % by another when the accuracy is watched, and in {100 * often['score']:.0f} % "
            "when the score is.")
    return [said, more], [{"title": "Accuracy as the indicator: a linear model of three classes (appendix E)",
                           "columns": ["", "class 1", "class 2", "class 3", "label"], "rows": rows, "about": ""}]


def flipping(records: Records) -> tuple[list[str], list[Table]]:
    """Figures 1, 4 and 6 in numbers."""
    done = [r for r in records if r["status"] == "ok" and r["right"] and r["score"] > 0]
    if not done:
        return ["No image was classified rightly, so there is no curve to show."], []
    answers, tables = [], []
    for baseline in BASELINES:
        names = [name for name in done[0]["curves"][baseline] if name != "hidden"]
        rows = [[CALLED.get(name, name), *(_left(done, baseline, name, share) for share in SHOWN),
                 *(_kept(done, baseline, name, share) for share in SHOWN), _against(done, baseline, name)] for name in names]
        tables.append({"title": f"Pixel flipping, {baseline} baseline (Figures 1 and 4)",
                       "columns": ["explainer", *(f"score left, {100 * s:.0f} % hidden" for s in SHOWN),
                                   *(f"accuracy, {100 * s:.0f} % hidden" for s in SHOWN), "falls further than random"],
                       "rows": rows, "about": f"{len(done)} images that the net is right about. Score left: the mean of the "
                       "target's score before the last activation, as a share of that of whole images. Last column: on how "
                       "many images the mean fall up to 18 % is larger than under random masking, with a 95 % interval."})
        answers += list(_said(done, baseline))
    answers.append(_reference_said(done))
    tables.append(_references(done))
    return answers, tables


def _mean_at(record: Mapping[str, Any], baseline: str, name: str, share: float, what: str) -> float:
    curve = record["curves"][baseline]
    return float(np.interp(share * record["d"], curve["hidden"], curve[name][what]))


def _left(done: Records, baseline: str, name: str, share: float) -> str:
    # Of means, not the mean of shares: an image with a score near 0 would outweigh all others.
    return f"{np.mean([_mean_at(r, baseline, name, share, 'score') for r in done]) / _usual(done):.2f}"


def _usual(done: Records) -> float:
    """The mean score of whole images."""
    return float(np.mean([r["score"] for r in done]))


def _kept(done: Records, baseline: str, name: str, share: float) -> str:
    return f"{100 * np.mean([_mean_at(r, baseline, name, share, 'right') for r in done]):.0f} %"


def _wins(done: Records, baseline: str, name: str, other: str, first: float = 1.0) -> stats.Difference:
    """On how many images does one order's mean fall exceed another's, over the first share of the steps?"""
    wins = []
    for r in done:
        curve = r["curves"][baseline]
        upto = max(round(first * (len(curve["hidden"]) - 1)), 1) + 1
        fall = [r["score"] - float(np.mean(curve[one]["score"][1:upto])) for one in (name, other)]
        wins.append(0.5 if math.isclose(fall[0], fall[1], rel_tol=1e-9, abs_tol=1e-12) else float(fall[0] > fall[1]))
    return stats.paired(wins, np.full(len(wins), 0.5))


def _against(done: Records, baseline: str, name: str) -> str:
    return "–" if name == RANDOM else as_share(_wins(done, baseline, name, RANDOM))


def _said(done: Records, baseline: str) -> Iterator[str]:
    early, whole = _wins(done, baseline, RANDOM, "grad_cam", 0.25), _wins(done, baseline, RANDOM, "grad_cam")
    yield (f"{baseline.capitalize()} baseline: random masking lowers the score further than Grad-CAM's masking on "
           f"{as_share(early)} of images in the first quarter of the steps, and on {as_share(whole)} over all of them"
           f"{_verdict(early, whole)}.")
    isolated = [name for name in ISOLATED if name in done[0]["curves"][baseline]]
    adjoining = [name for name in done[0]["curves"][baseline] if name not in (*isolated, "hidden", RANDOM)]
    pairs = [_wins(done, baseline, one, other) for one in isolated for other in adjoining]
    ahead = sum(p.p <= stats.LEVEL and p.value > 0 for p in pairs)
    behind = sum(p.p <= stats.LEVEL and p.value < 0 for p in pairs)
    yield (f"{baseline.capitalize()} baseline: of {len(pairs)} pairs of an explainer with scattered pixels and one with "
           f"adjoining ones, the scattered one falls further in {ahead}, the adjoining one in {behind} (each at the 95 % "
           f"level); the paper finds the scattered ones ahead.")


def _verdict(early: stats.Difference, whole: stats.Difference) -> str:
    if early.p <= stats.LEVEL and early.value > 0:
        return ": the paper's finding comes out" + ("" if whole.value > 0 else ", at the beginning, as there")
    if early.p <= stats.LEVEL and early.value < 0:
        return ": the paper's finding does not come out on this net"
    return ": undecided"


def _references(done: Records) -> Table:
    rows = []
    for n in done[0]["references"]["drawn"]:
        drawn = [r["references"]["drawn"][n] for r in done if n in r["references"]["drawn"]]
        less = np.array([one["less"] for one in drawn]) / _usual(done)
        lowest = int(np.argmin(less.mean(axis=0)))
        steps = drawn[0]["hidden"]
        dice = np.array([one["dice"] for one in drawn]).mean(axis=0)
        expected = np.array(steps) / int(n)
        rows.append([f"{int(n):,}", f"{less.mean(axis=0)[lowest]:+.3f}", f"{steps[lowest] / int(n):.2f}",
                     f"{np.abs(dice[1:] - expected[1:]).max():.3f}"])
    return {"title": "Random masking among the N pixels that Grad-CAM ranks first, beside Grad-CAM's own (Figure 6)",
            "columns": ["N", "lowest difference of the score (of whole images')", "where, as n / N",
                        "mean Dice, furthest from n / N"], "rows": rows,
            "about": "A negative difference: masking at random among these pixels hurts more than masking them in order."}


def _reference_said(done: Records) -> str:
    below = []
    for r in done:
        middle = [one["less"][len(one["less"]) // 2] for one in r["references"]["drawn"].values()]
        below.append(float(np.mean(middle) < 0))
    rate = stats.rate(below)
    return (f"Masking at random among the pixels that Grad-CAM ranks first hurts more than masking them in Grad-CAM's order on "
            f"{100 * rate.value:.0f} % ({100 * rate.low:.0f} to {100 * rate.high:.0f}) of images, half of them hidden. "
            "Both are drawn from the same pixels, and half of those that are hidden are the same.")


def enhanced(records: Records) -> tuple[list[str], list[Table]]:
    """Table 2, and how far each explainer tells the untrained twin from the trained net."""
    done = [r for r in records if r["status"] == "ok"]
    if not done:
        return ["No image could be enhanced."], []
    rows, answers = [], []
    nets = list(dict.fromkeys(r["net"] for r in done))
    for net in nets:
        some = [r for r in done if r["net"] == net]
        rates = {which: stats.rate([float(r["labels"][which] == r["truth"]) for r in some])
                 for which in ("raw", "enhanced", "trained")}
        rows.append([net, *(_share(rates[which]) for which in ("raw", "enhanced", "trained"))])
        answers.append(f"{net}: never trained, it is right on {100 * rates['raw'].value:.1f} % of images as they are and on "
                       f"{100 * rates['enhanced'].value:.1f} % of enhanced ones; trained, on "
                       f"{100 * rates['trained'].value:.1f} %.")
    rows += [[f"{net}, published", *(f"{100 * one[which]:.1f} %" for which in ("raw", "enhanced", "trained"))]
             for net, one in published.ENHANCED.items()]
    tables = [{"title": "Accuracy of untrained nets on enhanced images (Table 2)",
               "columns": ["net", "untrained, raw", "untrained, enhanced", "trained, raw"], "rows": rows,
               "about": "Enhancement: 30 signed steps of 0.03 towards the true class, within 0.3 of the input."}]
    tables += [_twins(net, [r for r in done if r["net"] == net and r["labels"]["enhanced"] == r["truth"]
                            and r["labels"]["trained"] == r["truth"]]) for net in nets]
    answers += list(_twins_said([one for one in tables[1:] if one["rows"]]))
    return answers, tables


def _share(rate: stats.Rate) -> str:
    return f"{100 * rate.value:.1f} % ({100 * rate.low:.1f} to {100 * rate.high:.1f})"


def _twins(net: str, some: Records) -> Table:
    rows = []
    for name in dict.fromkeys(one for r in some for one in r["alike"]):
        found = followed([r["alike"][name] for r in some if name in r["alike"]])
        rows.append([CALLED.get(name, name), as_correlation(found.like_trained), as_correlation(found.like_untrained),
                     as_share(found.nearer), found.words])
    return {"title": f"{net}: explanations of the untrained net on enhanced images (Figure 2, appendix)",
            "columns": ["explainer", "like the trained net's", "like the same untrained net's on raw images",
                        "more like the latter", "so"], "rows": rows,
            "about": f"{len(some)} images that both nets are right about. Rank correlations over a 7 × 7 grid, mean and 95 % "
            "interval. An explanation must follow the net: it should be unlike the trained net's, though both are right."}


def _twins_said(tables: Sequence[Table]) -> Iterator[str]:
    for table in tables:
        net = table["title"].partition(":")[0]
        for what in ("follows the net", "looks like the trained net's", "does not see the net"):
            names = [row[0] for row in table["rows"] if row[-1] == what]
            if names:
                yield f"{net}: {', '.join(names)}: {what}."

