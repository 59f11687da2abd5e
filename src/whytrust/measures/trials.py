"""The adversarial trials as metrics of one explanation: an input was changed, the model changed its mind, the cause is known.

An audit runs the trials themselves, with every explainer and baseline at once (`flips`, `recovery`). Here is what they say of a
single explanation, so that they can be put on trial like any other metric, and be asked about adversaries of one's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from whytrust.core import Floats
from whytrust.explanation import Explanation
from whytrust.measures.case import Answers, Case, first, ranked
from whytrust.measures.flipping import check_whole
from whytrust.measures.flips import flipped, nested, settled_ks
from whytrust.measures.judged import About, Judged
from whytrust.measures.recovery import Recovery
from whytrust.question import Question
from whytrust.stats import area


@dataclass(frozen=True)
class LabelFlips:
    """How few of the best parts of an adversary, laid over the clean input, flip the label? (Hoedt et al. 2022)

    The area under the flips over k, from 0 to 1: 1 where the first part alone does it. It asks what turned the label. What
    speaks for the new label and was there before the change is no answer to that, however true it is.
    """

    about: ClassVar[About] = About(
        "flip", "how soon the change of the best parts, laid over the clean input, flips the label", True, ("ranking",),
        "performance", "faithfulness", "Hoedt et al. 2022", ("case",), share=True)

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The area; the label that was there before may be left for any other."""
        case = cast(Case, judged.case)
        ks = settled_ks(case.d)
        flips = flipped(case, nested(ranked(judged.scores, rng), ks), "any")
        return area(flips.astype(np.float64), ks, case.d)


@dataclass(frozen=True)
class AllPositive:
    """Do all parts with a positive score flip the label, laid over the clean input, where as many by magnitude do not?

    1 where only they do, -1 where only those by magnitude do, 0 where both or neither (Praher et al. 2021). An explanation with
    many positive scores flips trivially, and so do as many by magnitude: then this says nothing.
    """

    about: ClassVar[About] = About(
        "all_positive", "whether all parts of positive score flip the label and as many by magnitude do not", True,
        ("contribution",), "performance", "faithfulness", "Praher et al. 2021", ("case",), within=(-1.0, 1.0))

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """-1, 0 or 1."""
        case, chosen = cast(Case, judged.case), judged.scores > 0
        if not chosen.any():
            return 0.0
        largest = first(ranked(case.change, rng), int(chosen.sum()))
        own, theirs = flipped(case, np.stack([chosen, largest]), "any")
        return float(own) - float(theirs)


@dataclass(frozen=True)
class Recovered:
    """Where only the `k` most changed parts are left changed and the label still flips: which share of them is found?

    The input is explained anew, and its k best parts are held against those that were changed (Praher et al. 2021). Not defined
    where so few parts do not flip the label, nor where there are no more than k.
    """

    k: int = 3
    about: ClassVar[About] = About(
        "recovery", "where only k parts are changed, the share of them that is among the k best", True, ("ranking",),
        "performance", "faithfulness", "Praher et al. 2021", ("case", "explain"), share=True)

    def __post_init__(self) -> None:
        """Refuse what is no number of parts."""
        check_whole("k", self.k)

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """From 0 to 1."""
        explain = cast(Callable[[Question], Floats], judged.explain)

        def answers(question: Question) -> Answers:
            return {"judged": Explanation.of(question, "judged", np.asarray(explain(question), dtype=np.float64))}

        found = Recovery((self.k,))(cast(Case, judged.case), answers, rng).get(str(self.k), {"flipped": False})
        return float(found["found"]["judged"] / self.k) if found["flipped"] else math.nan
