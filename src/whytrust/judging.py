"""What a user types to put metrics on trial: `metrics`; and metrics by what a user calls them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import engine
from whytrust.core import generator, near
from whytrust.lab import Lab, every_lab
from whytrust.measures import METRIC_NAMES, METRICS, Roar
from whytrust.measures.judged import About, Judged, Metric, checked_about
from whytrust.report import judged as pages
from whytrust.report.records import bounded, understood
from whytrust.reporting import Reported
from whytrust.store import Store
from whytrust.studies.metrics_study import CASES, MetricsStudy
from whytrust.studies.metrics_told import told


class Tried(Reported):
    """What the lab found of metrics: `print(tried)` says it in words, `save_html` shows it, `to_json` has every number."""

    page = "metrics.html"

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Tried:
        """The trial in a run folder, finished or not."""
        store = Store.open(Path(folder))
        if store.manifest.get("study") != "metrics":
            raise ValueError(f"{folder} must hold a run of wt.metrics, and holds one of {store.manifest.get('study')!r}")
        return cls(store)

    @cached_property
    def findings(self) -> dict[str, Any]:
        """Every number, as plain data."""
        with understood(self.store.folder):
            bounded(self.store)
            return told(self.store)

    def as_html(self) -> str:
        """One page that holds all it shows."""
        with understood(self.store.folder):
            return pages.document(self.findings)

    def admitted(self, domain: str) -> list[str]:
        """The metrics that may crown a winner among explainers of image, text, audio or tabular inputs."""
        tried = list(dict.fromkeys(one["domain"] for one in self.findings["admitted"]))
        if domain not in tried:
            raise ValueError(f"metrics were tried on {', '.join(tried) or 'nothing yet'}, and not on {domain!r} inputs")
        return [one["metric"] for one in self.findings["admitted"] if one["domain"] == domain and one["admitted"]]

    def __repr__(self) -> str:
        """One line."""
        cases = self.findings["cases"]
        return f"<metrics on trial: {cases['done']} of {cases['of']} inputs, {cases['failed']} failed>"


def is_metrics(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a run of wt.metrics, finished or not."""
    return (Path(folder) / "manifest.json").is_file() and Store.open(Path(folder)).manifest.get("study") == "metrics"


def metrics(names: Any = None, domain: str | None = None, *, cases: int = CASES, out: str | os.PathLike[str] | None = None,
            jobs: engine.Jobs = 1, seed: int = 0, command: str = "") -> Tried:
    """Which metrics of explanations may be believed? Each is tried where the truth is known, and must find it.

    `names` are metrics by name or objects (see wt.methods()), all where none are given; `domain` is image, text, audio or
    tabular, all by default; `cases` is the number of inputs of each lab. The run is kept in `out`: the same call goes on where
    it stopped.
    """
    generator(seed)
    if isinstance(cases, bool) or not isinstance(cases, int) or cases < 2:
        raise ValueError(f"cases must be a whole number >= 2, got {cases!r}; {CASES} is usual")
    judges, labs = chosen(names), labs_of(domain)
    for metric in judges:
        if not any(lab.domain in metric.about.domains for lab in labs):
            raise ValueError(f"{metric.about.name} is for {' and '.join(metric.about.domains)} inputs, and the labs asked for "
                             f"are of {domain} inputs")
    study = MetricsStudy(judges, labs, cases, int(seed), command)
    folder = Path(tempfile.mkdtemp(prefix="whytrust-metrics-")) / "run" if out is None else Path(out)
    return Tried(engine.run(study, folder, jobs, label="trying metrics"))


def chosen(names: Any) -> list[Metric]:
    """Metrics by name, or as objects; all where none are named."""
    if names is None:
        return list(METRICS)
    given: Sequence[Any] = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    if not given:
        raise ValueError("metrics must name at least one, got none")
    if isinstance(names, Mapping):
        for name, one in names.items():
            if one is None or isinstance(one, list | tuple | Mapping):
                raise TypeError(f"metrics by names of your own must be one each, got {one!r:.60} for {name!r}")
        return [Named(chosen([one])[0], str(name)) for name, one in names.items()]
    found: list[Metric] = []
    for one in given:
        if one == Roar.about.name or isinstance(one, Roar):
            raise ValueError("roar judges data sets and not single explanations: call wt.roar(train, model, learnt, tested)")
        if isinstance(one, str):
            if one not in METRIC_NAMES:
                raise ValueError(f"a metric must be one of {', '.join(METRIC_NAMES)}, got {one!r}{near(one, METRIC_NAMES)}")
            found.append(METRIC_NAMES[one])
        elif isinstance(one, type) or not callable(one) or not hasattr(one, "about"):
            theirs = "; wrap a metric of Quantus in whytrust.compat.quantus.FromQuantus" * _is_quantus(one)
            raise TypeError("a metric must be a name from wt.methods() or an object such as PixelFlipping(steps=50), which "
                            "says what it is (about) and takes (judged, rng), got "
                            f"{'the class ' + one.__name__ if isinstance(one, type) else type(one).__name__}{theirs}")
        else:
            checked_about(one)
            found.append(one)
    twice = [metric.about.name for metric in found]
    if len(set(twice)) < len(twice):
        raise ValueError(f"metrics must be told apart by their names, and two of {', '.join(twice)} are not; name them: "
                         "{'a': …, 'b': …}")
    return found


@dataclass(frozen=True)
class Named:
    """A metric under a name of the user's own, so that two settings of one can stand side by side."""

    metric: Metric
    name: str

    @property
    def about(self) -> About:
        """What it is."""
        return replace(self.metric.about, name=self.name)

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The metric's own number."""
        return self.metric(judged, rng)


def _is_quantus(one: Any) -> bool:
    return (one if isinstance(one, type) else type(one)).__module__.partition(".")[0] == "quantus"


def labs_of(domain: str | None) -> tuple[Lab, ...]:
    """The labs of a domain, or all."""
    labs = every_lab()
    domains = list(dict.fromkeys(lab.domain for lab in labs))
    if domain is not None and domain not in domains:
        raise ValueError(f"domain must be one of {', '.join(domains)}, got {domain!r}"
                         f"{near(domain, domains) if isinstance(domain, str) else ''}")
    return tuple(lab for lab in labs if domain in (None, lab.domain))
