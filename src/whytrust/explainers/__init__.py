"""Explainers: each answers a Question with one score a part. To add one, write a file and add an entry here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from whytrust.explainers.baselines import Random
from whytrust.explainers.edges import Edges
from whytrust.explainers.grad_cam import GradCam, LinearApproximation
from whytrust.explainers.gradients import (
    DeconvNet,
    ExcitationBackprop,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    Pooled,
    Saliency,
)
from whytrust.explainers.greedy import Greedy
from whytrust.explainers.kernel_shap import KernelShap
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion
from whytrust.explainers.parzen import Parzen
from whytrust.explainers.smoothing import REDUCTIONS, Smoothed

SHARED = ("pooling", "explains")
"""What every map may be told."""
SMOOTHING = ("samples", "noise", "sigma")


@dataclass(frozen=True)
class Entry:
    """One method of the catalogue: how it is made, what its scores are meant to say, and who proposed it.

    `goal` is what the scores mean: contribution (how much of the prediction is due to a part), sensitivity (how the prediction
    moves with a part), ranking (which parts come first, no more), or nothing (a baseline). A metric can judge only what an
    explanation is meant to say.
    """

    name: str
    method: Callable[..., Any]
    about: str
    goal: str
    paper: str
    gradients: bool = False
    smoothing: str | None = None

    @property
    def options(self) -> set[str]:
        """The hyper-parameters it takes."""
        own = {f.name for f in fields(self.method)}  # type: ignore[arg-type]
        return own | (set(SHARED) if self.gradients else set()) | (set(SMOOTHING) if self.smoothing else set())

    def make(self, **options: Any) -> Any:
        """An explainer (question, rng) -> Explanation."""
        if not self.gradients:
            return self.method(**options)
        shared, smooth = ({k: options.pop(k) for k in names if k in options} for names in (SHARED, SMOOTHING))
        method = self.method(**options)
        if self.smoothing is not None:
            method = Smoothed(method, REDUCTIONS[self.smoothing], **smooth)  # type: ignore[arg-type]
        return Pooled(method, **shared)

    def smoothed(self, how: str) -> Entry:
        """The same with its maps smoothed."""
        word, paper = {"smoothgrad": ("mean", "Smilkov et al. 2017"), "smoothgrad2": ("mean square", "Hooker et al. 2019"),
                       "vargrad": ("variance", "Adebayo et al. 2018")}[how]
        return Entry(f"{self.name}/{how}", self.method, f"{word} of {self.name} over noisy copies of the input",
                     self.goal if how == "smoothgrad" else "ranking", paper, True, how)


CATALOGUE = (
    Entry("lime", Lime, "a weighted linear model (or small tree) of the black box around the input, with standard errors",
          "contribution", "Ribeiro et al. 2016"),
    Entry("kernel_shap", KernelShap, "Shapley values of the parts: their average effect over all orders of adding them",
          "contribution", "Lundberg & Lee 2017"),
    Entry("occlusion", Occlusion, "how much the score falls when one part alone is hidden (leave one out)", "contribution",
          "Zeiler & Fergus 2014"),
    Entry("greedy", Greedy, "parts removed one by one, always the one that lowers the score most, until the label changes",
          "ranking", "Martens & Provost 2014"),
    Entry("parzen", Parzen, "the gradient of Parzen windows over training inputs, which stand in for the whole model",
          "sensitivity", "Baehrens et al. 2010"),
    Entry("saliency", Saliency, "the gradient: how the score moves when the input does, a little", "sensitivity",
          "Simonyan et al. 2014", True),
    Entry("input_x_gradient", InputXGradient, "input times gradient: the model read as a linear one", "contribution",
          "Shrikumar et al. 2017", True),
    Entry("integrated_gradients", IntegratedGradients, "gradients summed on the way from a baseline to the input",
          "contribution", "Sundararajan et al. 2017", True),
    Entry("guided_backprop", GuidedBackprop, "the gradient without what is negative at any ReLU", "ranking",
          "Springenberg et al. 2015", True),
    Entry("deconvnet", DeconvNet, "the net run backwards, every ReLU applied to what flows back", "ranking",
          "Zeiler & Fergus 2014", True),
    Entry("grad_cam", GradCam, "where the feature maps of a convolution speak for the target", "ranking",
          "Selvaraju et al. 2017", True),
    Entry("linear_approximation", LinearApproximation, "gradient times value at a layer, place by place", "contribution",
          "Bach et al. 2015", True),
    Entry("excitation_backprop", ExcitationBackprop, "the chance that each value wins, passed down along positive weights",
          "ranking", "Zhang et al. 2018", True),
    Entry("edges", Edges, "edges of the input, whatever the model: what looks like an explanation and is none", "nothing",
          "Adebayo et al. 2018"),
    Entry("random", Random, "random scores: the floor that every explainer must beat", "nothing", ""),
)
"""Every method; those with gradients also exist smoothed, as saliency/smoothgrad, /smoothgrad2 and /vargrad."""
NAMES = {e.name: e for entry in CATALOGUE for e in (entry, *(entry.smoothed(h) for h in REDUCTIONS if entry.gradients))}
