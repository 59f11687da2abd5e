"""`whytrust reproduce`: the image tables and figures of Hoedt et al. (2022) from a run of `PlausibleStudy`, theirs beside ours.

Everything is made from the records of a run, finished or not, so a report can be had at any time. What a run claims about the
paper's findings is decided by paired tests on its own adversaries; the same image for several nets counts as one source.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import engine, stats
from whytrust.core import Floats, near, need
from whytrust.measures.flips import PERCENT
from whytrust.report import outcomes
from whytrust.store import Store, plain
from whytrust.studies import plausible as study
from whytrust.studies import plausible_figures as figures
from whytrust.studies import published
from whytrust.studies.architectures import architecture
from whytrust.studies.published import ALL, GRADIENTS, NAMES, STANDARD

MODELS = ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2")
EXPERIMENTS = ("all", "accuracy", "flips", "segments", "attack", "poolings", "curves", "recovery", "adversaries")
K = 3
"""Parts whose perturbation is laid over the image in the paper's tables."""
BASELINES = ("oracle", "magnitude", "magnitude_mean", "random")
KS = (1, 3, 5)
Record = Mapping[str, Any]


def plausible(experiment: str, data: str | None, scale: float, few: int, models: Sequence[str], out: str | Path, jobs: int,
              seed: int) -> Path:
    """Run the study, or go on with it, and write its tables (tables.md) and figures beside it; the run's folder comes back.

    Without data nothing is run: tables and figures are made from what the folder holds. Whatever the experiment, the whole
    study is run, for its parts share their adversaries; the experiment says which figures are drawn.
    """
    _check(experiment)
    need("matplotlib.figure", "report")  # before hours of work, not after
    folder = Path(out)
    if data is not None:
        if isinstance(few, bool) or not isinstance(few, int) or few < 0:
            raise ValueError(f"few must be a whole number >= 0, got {few!r}; recovery is tried on the first so many images")
        for name in models:
            architecture(name)
        images = study.imagenet_folder(data, scale)
        engine.run(study.PlausibleStudy(tuple(models), images, few=few, seed=seed), folder, jobs, label="reproducing")
    elif not is_reproduction(folder):
        raise ValueError(f"--data must name a folder of ImageNet images, for {folder} holds no run of this study to report on")
    store = Store.open(folder)
    figures.draw(findings(store), store, folder / "figures", experiment)
    (folder / "tables.md").write_text(report(folder), encoding="utf-8")
    return folder


def is_reproduction(folder: str | Path) -> bool:
    """Whether a folder holds a run of this study, finished or not."""
    if not (Path(folder) / "manifest.json").is_file():
        return False
    return bool(Store.open(folder).manifest.get("study") == "plausible")


def report(folder: str | Path, as_json: bool = False, experiment: str = "all") -> str:
    """What a run has found so far beside what was published, as Markdown or JSON."""
    _check(experiment)
    found = findings(Store.open(folder), experiment)
    pictures = sorted(path.relative_to(folder).as_posix() for path in Path(folder).glob("figures/*.png"))
    return json.dumps(found) if as_json else published.told(found, pictures if experiment == "all" else [])


def _check(experiment: str) -> None:
    if experiment not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {experiment!r}"
                         f"{near(experiment, EXPERIMENTS)}")


# --- what a run holds -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Run:
    """The cases of one net, or of all nets, that are done."""

    records: tuple[Record, ...]
    rows: tuple[Record, ...]  # those of them that were fooled, and so have trials

    @property
    def images(self) -> list[str]:
        """The image of each row: what is independent where several nets saw the same image."""
        return [record["case"].partition(".")[2] for record in self.rows]

    def at(self, cut: str, name: str, k: int = K) -> Floats:
        """Whether the k best parts flip each row's label; NaN where there are no more than k, or the explainer was not run."""
        return np.array([outcomes.at(row["trials"][cut], name, "any", k) if row["d"][cut] > k else math.nan
                         for row in self.rows])

    def curve(self, cut: str, name: str) -> Floats:
        """(rows, 9): whether int(d·p) parts flip the label, for p of 20 … 100 %; no part flips nothing."""
        return np.array([[outcomes.at(row["trials"][cut], name, "any", k) if (k := row["d"][cut] * p // 100) else 0.0
                          for p in PERCENT] for row in self.rows]).reshape(len(self.rows), len(PERCENT))

    def recovered(self, cut: str, name: str) -> Floats:
        """(rows, 3): the share of the only k changed parts found among the first k, for k = 1, 3, 5; NaN where not tried."""
        return np.array([[_recovered(row["trials"][cut].get("recovery", {}).get(str(k), {}), name, k, row["d"][cut])
                          for k in KS] for row in self.rows]).reshape(len(self.rows), len(KS))


def _recovered(tried: Mapping[str, Any], name: str, k: int, d: int) -> float:
    if not tried.get("flipped"):
        return math.nan
    return k / d if name == "random" else tried["found"].get(name, math.nan) / k


def _runs(store: Store) -> dict[str, Run]:
    """The run of each net, and of all."""
    models = store.manifest["spec"]["models"]
    records = tuple(store.records())
    by_net = {model: tuple(r for r in records if r["case"].partition(".")[0] == str(i)) for i, model in enumerate(models)}
    return {name: Run(some, tuple(r for r in some if r["status"] == "ok")) for name, some in {**by_net, ALL: records}.items()}


def findings(store: Store, experiment: str = "all") -> dict[str, Any]:
    """Everything the tables hold, as plain data."""
    runs, spec = _runs(store), store.manifest["spec"]
    records = runs[ALL].records
    found: dict[str, Any] = {
        "format": 1, "study": "plausible", "paper": published.CITATION, "data": store.manifest["about"]["data"],
        "images": spec["images"], "few": spec["few"], "draws": spec["draws"], "models": spec["models"],
        "seed": store.manifest["seed"], "settings": {
            "samples": study.SAMPLES, "steps": _steps(study.STANDARD), "copies": study.COPIES,
            "noisy_steps": _steps(study.NOISY), "noise": study.NOISE},
        "cases": {"done": len(records), "of": sum(len(block.cases) for block in store.blocks),
                  "failed": sum(r["status"] == "failed" for r in records)},
        "failures": [{"case": r["case"], "error": r["error"]} for r in records if r["status"] == "failed"],
        "problems": store.problems,
        "claims": [one for one in _claims(runs[ALL]) if experiment in ("all", one["experiment"])]}
    return dict(plain({**found, **{name: make(runs) for name, make in SECTIONS.items() if experiment in ("all", name)}}))


def _steps(methods: Mapping[str, Any]) -> int:
    return int(methods["integrated_gradients"].steps)


# --- the tables -------------------------------------------------------------------------------------------------------


def _rate(values: Any, images: Sequence[str], grain: float = 1.0) -> dict[str, Any]:
    return asdict(stats.rate(values, images, grain=grain))


def _accuracy(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Table 1; as there, an image that was not fooled counts as it was."""
    found = {}
    for name, run in runs.items():
        judged = [r for r in run.records if r["status"] != "failed"]
        known = [r for r in judged if r["truth"] is not None]
        now = [r["label"] if r["status"] == "ok" else r["clean_label"] for r in known]
        by = [[r["case"].partition(".")[2] for r in some] for some in (judged, known)]
        found[name] = {"before": _rate([float(r["clean_label"] == r["truth"]) for r in known], by[1]),
                       "after": _rate([float(label == r["truth"]) for label, r in zip(now, known, strict=True)], by[1]),
                       "fooled": _rate([float(r["status"] == "ok") for r in judged], by[0]),
                       "adversaries": len(run.rows), "failed": len(run.records) - len(judged)}
    return {"nets": found, "published": published.ACCURACY}


def _flips(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Tables 2, 3, 7 and 8, with what stands around an explainer, and who is above that beyond chance."""
    return {cut: {"k": K, "nets": {name: _flips_of(run, cut) for name, run in runs.items()},
                  "tests": _against(runs, cut), "published": published.FLIPS[cut]} for cut in study.CUTS}


def _flips_of(run: Run, cut: str) -> dict[str, Any]:
    return {"left_out": sum(row["d"][cut] <= K for row in run.rows),
            "rates": {name: _rate(run.at(cut, name), run.images, grain=0.2 if name == "random" else 1.0)
                      for name in (*NAMES, *BASELINES)}}


def _against(runs: Mapping[str, Run], cut: str) -> list[dict[str, Any]]:
    """Every explainer against magnitude and random: the nets' tests share the 5 %, and those over all nets share theirs."""
    found: list[dict[str, Any]] = []
    for nets in ([name for name in runs if name != ALL], [ALL]):
        pairs = {}
        for net, name, rival in ((net, name, rival) for net in nets for name in NAMES for rival in ("magnitude", "random")):
            run, other = runs[net], runs[net].at(cut, rival)
            chance = other * (1 - other) if rival == "random" else None
            pairs[net, name, rival] = stats.paired(run.at(cut, name), other, run.images, chance=chance)
        found += [{"net": key[0], "name": key[1], "rival": key[2], **test} for key, test in _tested(pairs).items()]
    return found


def _tested(pairs: Mapping[Any, stats.Difference]) -> dict[Any, dict[str, Any]]:
    """Differences with p after Holm, and what may be said: above, below, or nothing."""
    tried = {key: pair for key, pair in pairs.items() if pair.n}
    adjusted = stats.holm([pair.p for pair in tried.values()])
    return {key: {**asdict(pair), "p_holm": float(p),
                  "call": "undecided" if p > stats.LEVEL else "above" if pair.value > 0 else "below"}
            for (key, pair), p in zip(tried.items(), adjusted, strict=True)}


def _segments(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Table 6."""
    found = {}
    for name, run in runs.items():
        counts = np.array([row["d"]["slic"] for row in run.rows], dtype=np.float64)
        found[name] = {"n": len(counts), **({"mean": counts.mean(), "sd": counts.std(), "least": int(counts.min()),
                                             "most": int(counts.max())} if len(counts) else {})}
    return {"nets": found, "published": published.SEGMENTS}


def _attack(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Table 4, and how large the perturbations are in grey levels of 255, which the nets' normalisations hide."""
    found = {}
    for name, run in runs.items():
        facts = [row["attack"] for row in run.rows]
        if name == ALL or not facts:
            continue
        grey = 255 * float(np.mean(architecture(name).std))
        found[name] = {"epsilon": facts[0]["epsilon"], "step": study.STEP, "iterations": max(f["iterations"] for f in facts),
                       "grey_levels": grey * facts[0]["epsilon"], "linf": float(np.median([f["linf"] for f in facts])),
                       "l2": float(np.median([f["l2"] for f in facts])), "n": len(facts)}
    grey = 255 * float(np.mean(published.STD))
    return {"nets": found, "published": {net: {**one, "grey_levels": grey * one["epsilon"]}
                                         for net, one in published.ATTACK.items()}}


def _poolings(runs: Mapping[str, Run]) -> dict[str, Any]:
    """§ 6.1: three ways from pixels to segments."""
    return {cut: {"k": K, "nets": {net: {name: {how: _rate(run.at(cut, _pooled(name, how)), run.images)
                                                for how in study.POOLINGS} for name in POOLED}
                                   for net, run in runs.items()}} for cut in study.CUTS}


POOLED = (*GRADIENTS, *(f"{name}/smoothgrad" for name in GRADIENTS))


def _pooled(name: str, how: str) -> str:
    return name if how == "mean_abs" else f"{name}:{how}"


def _curves(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Figures 5 to 7."""
    found: dict[str, Any] = {"percent": list(PERCENT)}
    for cut in study.CUTS:
        found[cut] = {}
        for net, run in runs.items():
            lines = {name: [_rate(column, run.images, 0.2 if name == "random" else 1.0) for column in run.curve(cut, name).T]
                     for name in (*STANDARD, *BASELINES)}
            found[cut][net] = {name: {"n": points[0]["n"], **{what: [point[what] for point in points]
                                                              for what in ("value", "low", "high")}}
                               for name, points in lines.items()}
    return found


def _recovery(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Figures 8, 13 and 14: how often 0 … k of the only k changed parts were found, beside what chance finds."""
    found: dict[str, Any] = {}
    for cut in study.CUTS:
        found[cut] = {net: {str(k): _recovery_of(run, cut, i) for i, k in enumerate(KS)} for net, run in runs.items()}
    return found


def _recovery_of(run: Run, cut: str, i: int) -> dict[str, Any]:
    k = KS[i]
    tried = [row for row in run.rows if str(k) in row["trials"][cut].get("recovery", {})]
    still = [row["d"][cut] for row in tried if row["trials"][cut]["recovery"][str(k)]["flipped"]]
    counts, all_found, share = {}, {}, {}
    for name in NAMES:
        found = run.recovered(cut, name)[:, i]
        whole = np.rint(found[~np.isnan(found)] * k).astype(int)
        counts[name] = np.bincount(whole, minlength=k + 1).tolist()
        all_found[name] = _rate(np.where(np.isnan(found), math.nan, found == 1), run.images)
        share[name] = _rate(found, run.images, grain=1 / k)
    expected = np.mean([[_chance(d, k, j) for j in range(k + 1)] for d in still], axis=0) if still else np.full(k + 1, math.nan)
    return {"tried": len(tried), "n": len(still), "counts": counts, "all": all_found, "share": share,
            "random": expected.tolist(), "random_share": float(expected @ np.arange(k + 1) / k)}


def _chance(d: int, k: int, found: int) -> float:
    """The chance that k of d parts drawn at random hold so many of k given ones."""
    return math.comb(k, found) * math.comb(d - k, k - found) / math.comb(d, k)


def _adversaries(runs: Mapping[str, Run]) -> dict[str, Any]:
    """Figures 10 to 12: the adversaries that were kept to look at."""
    return {net: [{"case": row["case"], "name": row["name"], "linf": row["attack"]["linf"],
                   "before": figures.class_name(net, row["clean_label"]), "after": figures.class_name(net, row["label"])}
                  for row, image in zip(run.rows, run.images, strict=True) if int(image) < study.KEPT]
            for net, run in runs.items() if net != ALL}


SECTIONS: dict[str, Callable[[Mapping[str, Run]], dict[str, Any]]] = {
    "accuracy": _accuracy, "flips": _flips, "segments": _segments, "attack": _attack, "poolings": _poolings,
    "curves": _curves, "recovery": _recovery, "adversaries": _adversaries}


# --- what the paper found, asked of this run --------------------------------------------------------------------------

Pairs = dict[str, tuple[Floats, Floats]]
"""Two numbers a row, the larger one first where the paper is right."""


def _claims(run: Run) -> list[dict[str, Any]]:
    """The paper's findings on images; each difference is positive where what the paper says is so here too."""
    names = (*NAMES, *BASELINES)
    slic, grid = ({name: run.at(cut, name) for name in names} for cut in study.CUTS)
    whole = {cut: {name: run.curve(cut, name)[:, :-1].mean(axis=1) for name in (*STANDARD, "magnitude")} for cut in study.CUTS}
    cuts = {"SLIC": slic, "rectangles": grid}
    claim = _Claims(run.images)
    claim("flips", "§ 6.2 (i)", f"SLIC segments flip more labels than rectangles, k = {K}",
          {NAMES[n]: (slic[n], grid[n]) for n in STANDARD})
    claim("flips", "ours", "the same beyond what random parts gain: 3 of 11 segments are more than 3 of 16",
          {NAMES[n]: ((slic[n] + grid["random"]) / 2, (grid[n] + slic["random"]) / 2) for n in STANDARD}, grain=0.5, times=2)
    claim("flips", "§ 6.2 (iv)", f"LIME is above every other explainer (SLIC, k = {K})",
          {NAMES[n]: (slic["lime"], slic[n]) for n in NAMES if n != "lime"})
    claim("flips", "§ 6.2 (v)", "smoothing raises the rate (SLIC; so the paper for its three deepest nets, though its Table 3 "
          "shows GBP falling there)", _smoothed(slic))
    claim("flips", "Tables 7, 8", "smoothing raises the rate (rectangles; so the tables for IG and Sal of these nets)",
          _smoothed(grid))
    claim("flips", "§ 6.2 (vi)", f"in most cases {K} segments do not flip the label",
          {f"{NAMES[n]}, {cut}": (1 - rates[n], rates[n]) for cut, rates in cuts.items() for n in STANDARD}, times=0.5)
    claim("poolings", "§ 6.1", "mean_abs flips more labels than mean and mean_pos",
          {f"{NAMES[n]} over {how}, {words}": (run.at(cut, n), run.at(cut, _pooled(n, how)))
           for cut, words in zip(study.CUTS, cuts, strict=True) for n in GRADIENTS for how in study.POOLINGS[1:]})
    claim("curves", "§ 6.3, Fig. 5", "over 20 … 90 % of the parts LIME is better with SLIC, the others with rectangles",
          {NAMES[n]: (whole["slic"][n], whole["grid"][n]) if n == "lime" else (whole["grid"][n], whole["slic"][n])
           for n in STANDARD}, grain=1 / 8)
    claim("curves", "§ 6.3, Fig. 6", "standard explainers are at least on par with magnitude (SLIC, 20 … 90 %)",
          {NAMES[n]: (whole["slic"][n], whole["slic"]["magnitude"]) for n in STANDARD}, grain=1 / 8, on_par=True)
    _claims_of_recovery(run, claim)
    return claim.made


def _smoothed(rates: Mapping[str, Floats]) -> Pairs:
    return {NAMES[n]: (rates[n], rates[n.partition("/")[0]]) for n in published.ENSEMBLES}


def _claims_of_recovery(run: Run, claim: _Claims) -> None:
    found = {cut: {name: run.recovered(cut, name) for name in (*NAMES, "random")} for cut in study.CUTS}
    words = dict(zip(study.CUTS, ("SLIC", "rectangles"), strict=True))
    each = [(cut, name, f"{NAMES[name]}, {words[cut]}") for cut in study.CUTS for name in STANDARD]
    claim("recovery", "§ 6.4, Fig. 8", "the one changed segment is missed in most cases (k = 1)",
          {label: (1 - found[cut][name][:, 0], found[cut][name][:, 0]) for cut, name, label in each}, times=0.5)
    claim("recovery", "ours", "the changed segments are found more often than by chance (k = 1, 3, 5 together)",
          {label: _together(found[cut][name], found[cut]["random"]) for cut, name, label in each}, grain=0.2)
    claim("recovery", "§ 6.4", "changed segments are easier to find with SLIC",
          {NAMES[n]: _together(found["slic"][n], found["grid"][n]) for n in STANDARD}, grain=0.2)
    claim("recovery", "§ 6.4", "standard explainers find more than their smoothings do",
          {f"{NAMES[n]}, {words[cut]}": _together(found[cut][n], np.mean([found[cut][f"{n}/{how}"] for how in
                                                                          published.SMOOTHINGS], axis=0))
           for cut in study.CUTS for n in GRADIENTS}, grain=0.1)


def _together(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """The mean over every k that both were tried with; NaN where there is none."""
    both = ~(np.isnan(first) | np.isnan(second))
    count = both.sum(axis=1)
    one, other = (np.where(count > 0, np.where(both, each, 0.0).sum(axis=1) / np.maximum(count, 1), math.nan)
                  for each in (first, second))
    return one, other


@dataclass(frozen=True, eq=False)
class _Claims:
    """Collects claims, each with its tests; the tests of one claim share the 5 %."""

    images: Sequence[str]
    made: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, experiment: str, where: str, said: str, pairs: Pairs, *, grain: float = 1.0, times: float = 1.0,
                 on_par: bool = False) -> None:
        """Test one claim; `times` undoes a scaling that kept the numbers within [0, 1]."""
        found = {label: stats.paired(*pair, self.images, grain=grain) for label, pair in pairs.items()}
        tests = _tested(found)
        for label, test in tests.items():
            test["equivalent"] = stats.equivalent(found[label])
            if on_par and test["call"] == "undecided" and test["equivalent"] <= stats.LEVEL:
                test["call"] = "on par"
            test |= {what: times * test[what] for what in ("value", "low", "high")}
        self.made.append({"experiment": experiment, "where": where, "said": said, "tests": tests,
                          "verdict": _verdict([test["call"] for test in tests.values()])})


def _verdict(calls: Sequence[str]) -> str:
    """A claim about several explainers in one word or two."""
    so, not_so = sum(call in ("above", "on par") for call in calls), calls.count("below")
    if not calls:
        return "no data yet"
    if so == len(calls):
        return "holds"
    if not so:
        return "does not hold" if not_so else "undecided"
    return f"holds for {so} of {len(calls)}" + (f", the opposite for {not_so}" if not_so else "")
