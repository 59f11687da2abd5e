"""`whytrust reproduce`: the image tables and figures of Hoedt et al. (2022) from a run of `PlausibleStudy`, theirs beside ours.

Everything is made from the records of a run, finished or not, so a report can be had at any time. What a run claims about the
paper's findings is decided by paired tests on its own adversaries; the same image for several nets counts as one source.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import engine, stats
from whytrust.core import near, need
from whytrust.measures.flips import PERCENT
from whytrust.store import Store, plain
from whytrust.studies import plausible as study
from whytrust.studies import plausible_figures as figures
from whytrust.studies import published
from whytrust.studies.architectures import architecture, full_name
from whytrust.studies.plausible_claims import claims, tested
from whytrust.studies.plausible_outcomes import BASELINES, KS, K, Run, pooled
from whytrust.studies.published import ALL, GRADIENTS, NAMES, STANDARD

MODELS = ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2")
FEW = 20
"""Images for recovery and for smoothed integrated gradients."""
EXPERIMENTS = ("all", "accuracy", "flips", "segments", "attack", "poolings", "curves", "recovery", "adversaries")


def plausible(experiment: str, data: str | None, scale: float, few: int | None, models: Sequence[str] | None, out: str | Path,
              jobs: engine.Jobs, seed: int, protocol: str | None = None) -> Path:
    """Run the study, or go on with it, and write its tables (tables.md) and figures beside it; the run's folder comes back.

    Without data nothing is run: tables and figures are made from what the folder holds. Whatever the experiment, the whole
    study is run, for its parts share their adversaries; the experiment says which figures are drawn. `few` images have what
    takes longest: 20 of them unless said, and all by the paper's protocol. Models are EfficientNet-Lite0 to 2 unless said.
    """
    _check(experiment)
    if protocol not in (None, *study.PROTOCOLS):
        raise ValueError(f"protocol must be one of {', '.join(study.PROTOCOLS)}, got {protocol!r}"
                         f"{near(str(protocol), study.PROTOCOLS)}")
    need("matplotlib.figure", "report")  # before hours of work, not after
    folder = Path(out)
    if data is not None:
        if few is not None and (isinstance(few, bool) or not isinstance(few, int) or few < 0):
            raise ValueError(f"few must be a whole number >= 0, got {few!r}; recovery is tried on the first so many images")
        models = MODELS if models is None else models
        for name in models:
            architecture(name)
        images = study.imagenet_folder(data, scale)
        few = (len(images.items) if protocol == "paper" else FEW) if few is None else few
        named = tuple(full_name(name) for name in models)
        asked = study.PlausibleStudy(named, images, few=few, seed=seed, protocol=protocol or "usual")
        engine.run(asked, folder, jobs, label="reproducing")
    elif not is_reproduction(folder):
        raise ValueError(f"--data must name a folder of ImageNet images, for {folder} holds no run of this study to report on")
    store = Store.open(folder)
    if data is None:
        _check_held(store.manifest["spec"], models, few, protocol)
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


def _check_held(spec: Mapping[str, Any], models: Sequence[str] | None, few: int | None, protocol: str | None) -> None:
    """Refuse to report on a run that is another one than was asked for."""
    named = None if models is None else [full_name(name) for name in models]
    for option, asked, held in (("models", named, spec["models"]), ("few", few, spec["few"]),
                                ("protocol", protocol, spec.get("protocol", "usual"))):
        if asked is not None and asked != held:
            said, there = (",".join(one) if isinstance(one, list) else one for one in (asked, held))
            raise ValueError(f"--{option} {said} is not what this run was made with, --{option} {there}; leave it out to tell "
                             "of this run, or name --data and another folder (--out) to make another run")


# --- what a run holds -------------------------------------------------------------------------------------------------


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
            "noisy_steps": spec.get("steps", {}).get("smoothed", _steps(study.NOISY)), "noise": study.NOISE,
            "protocol": spec.get("protocol", "usual")},
        "cases": {"done": len(records), "of": sum(len(block.cases) for block in store.blocks),
                  "failed": sum(r["status"] == "failed" for r in records)},
        "failures": [{"case": r["case"], "error": r["error"]} for r in records if r["status"] == "failed"],
        "problems": store.problems,
        "claims": [one for one in claims(runs[ALL]) if experiment in ("all", one["experiment"])]}
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
        found += [{"net": key[0], "name": key[1], "rival": key[2], **test} for key, test in tested(pairs).items()]
    return found


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
    return {cut: {"k": K, "nets": {net: {name: {how: _rate(run.at(cut, pooled(name, how)), run.images)
                                                for how in study.POOLINGS} for name in POOLED}
                                   for net, run in runs.items()}} for cut in study.CUTS}


POOLED = (*GRADIENTS, *(f"{name}/smoothgrad" for name in GRADIENTS))


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
