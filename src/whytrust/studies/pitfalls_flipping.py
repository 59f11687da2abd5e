"""Wang & Wang (2022), pixel flipping: explainers beside random masking, two baselines, and random masking near Grad-CAM's.

Curves of the target's score (before the last activation) and of the label while pixels are hidden; figures 1, 4, 5 and 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import DifferentiableModel
from whytrust.core import Floats, generator
from whytrust.domains.image import ImageParts
from whytrust.engine import Block, Result
from whytrust.explainers import NAMES
from whytrust.measures import Judged
from whytrust.measures.flipping import counts, ranks
from whytrust.question import Question
from whytrust.studies.data import Item
from whytrust.studies.pitfalls_nets import Net, Pictures, nets

EXPLAINERS = ("grad_cam", "excitation_backprop", "linear_approximation", "saliency", "guided_backprop", "deconvnet")
"""The paper's six."""
ISOLATED = EXPLAINERS[3:]
"""Those whose first pixels are scattered; those of the others adjoin."""
RANDOM = "random"
BASELINES = ("zeros", "noise")
SHARE = 9000 / 224**2
"""The share of pixels that the paper hides in its figures 1 and 4."""
REFERENCES = tuple(n / 224**2 for n in (15000, 20000, 25000, 30000))
"""Of all pixels, the share among which random masking with a reference draws."""
STEPS, FEW_STEPS = 18, 12
SHOWN = 4
"""Images whose maskings are kept to look at."""
OnCalls = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class FlippingStudy:
    """Every image, every explainer, both baselines; and random masking among the pixels that Grad-CAM ranks first."""

    pictures: Pictures
    net: str = ""
    explainers: Sequence[str] = EXPLAINERS
    seed: int = 0
    block: int = 2
    steps: int = STEPS

    @property
    def name(self) -> str:
        """Which net."""
        return self.net or nets(self.pictures.digits)[0]

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        return {"format": 1, "study": "pitfalls", "seed": self.seed,
                "hashes": self.pictures.hashes(Net(self.name, data=self.pictures.data)),
                "spec": {"part": "flipping", "net": self.name, "images": len(self.pictures.items), "steps": self.steps,
                         "explainers": list(self.explainers), "data": self.pictures.what},
                "about": {"data": self.pictures.what, "net": self.name}}

    def blocks(self) -> list[Block]:
        """A few images at a time."""
        ids = [item.id for item in self.pictures.items]
        return [Block(ids[i], tuple(ids[i:i + self.block])) for i in range(0, len(ids), self.block)]

    def work(self, block: Block, on_calls: OnCalls) -> Iterator[Result]:
        """Every masking of every image of a block."""
        model = Net(self.name, data=self.pictures.data).model().raw
        with model.asking():
            for case in block.cases:
                yield self._result(self._by_id[case], model, on_calls)

    @cached_property
    def _by_id(self) -> Mapping[str, Item]:
        return {item.id: item for item in self.pictures.items}

    def _result(self, item: Item, model: DifferentiableModel, on_calls: OnCalls) -> Result:
        record: dict[str, Any] = {"case": item.id, "name": item.name, "truth": item.truth, "status": "ok"}
        try:
            picture = self.pictures.taken(Net(self.name), item)
            parts = ImageParts.cut(picture, "pixels", fill=0.0, layout="NCHW")
        except (ValueError, OSError) as error:
            return Result({**record, "status": "failed", "error": f"{type(error).__name__}: {error}"}, {})
        question = Question(model, parts, int(item.truth), on_calls=on_calls)  # type: ignore[arg-type]
        scores = {name: self._scores(name, question, item) for name in self.explainers}
        scores[RANDOM] = generator(self.seed, "random", item.id).random(question.d)
        judged = Judged(question, scores[RANDOM], "nothing")
        record |= {"right": bool(question.original.argmax() == item.truth), "score": judged.whole, "d": judged.d}
        record["curves"] = {baseline: self._curves(baseline, judged, scores, item) for baseline in BASELINES}
        record["references"] = self._references(judged, scores["grad_cam"], scores[RANDOM], item)
        return Result(record, self._arrays(picture, scores, item, judged.d))

    def _scores(self, name: str, question: Question, item: Item) -> Floats:
        """One score a pixel."""
        return np.asarray(NAMES[name].make()(question, generator(self.seed, "explain", item.id)).scores)

    def _curves(self, baseline: str, judged: Judged, scores: Mapping[str, Floats], item: Item) -> dict[str, Any]:
        """Of every explainer, the target's score and whether the label is the truth, at each number of hidden pixels."""
        parts: Any = judged.question.parts
        covered = parts.behind(baseline, generator(self.seed, "baseline", item.id))
        behind = Judged(replace(judged.question, parts=covered, memory=type(judged.question.memory)(())), scores[RANDOM],
                        "nothing", label=int(item.truth))  # type: ignore[arg-type]
        hidden = np.concatenate([[0], counts(judged.d, self.steps, SHARE)])
        found: dict[str, Any] = {"hidden": hidden.tolist()}
        for name, values in scores.items():
            rng = generator(self.seed, "order", item.id, name)
            walked, kept = behind.walked(ranks(values, rng), hidden, rng)
            found[name] = {"score": walked.tolist(), "right": kept.astype(int).tolist()}
        return found

    def _references(self, judged: Judged, reference: Floats, chance: Floats, item: Item) -> dict[str, Any]:
        """Figure 6: pixels drawn at random among the N that Grad-CAM ranks first, for several N, up to all of them."""
        judged = judged.with_scores(judged.scores, label=int(item.truth))  # type: ignore[arg-type]
        order = np.argsort(ranks(reference, generator(self.seed, "order", item.id, "grad_cam")))
        hidden = np.concatenate([[0], counts(judged.d, FEW_STEPS, REFERENCES[-1])])
        found: dict[str, Any] = {"hidden": hidden.tolist(), "drawn": {}}
        plain = {"grad_cam": order, RANDOM: np.argsort(-chance)}
        for name, one in plain.items():
            walked, kept = judged.walked(_places(one), hidden, generator(0))
            found[name] = {"score": walked.tolist(), "right": kept.astype(int).tolist()}
        for share in REFERENCES:
            n = round(share * judged.d)
            steps = np.concatenate([[0], counts(n, FEW_STEPS)])
            drawn = generator(self.seed, "reference", item.id, n).permutation(order[:n])
            walked, kept = judged.walked(_places(np.concatenate([drawn, order[n:]])), steps, generator(0))
            along = np.interp(steps, hidden, found["grad_cam"]["score"])
            found["drawn"][str(n)] = {"hidden": steps.tolist(), "score": walked.tolist(), "right": kept.astype(int).tolist(),
                                      "less": (walked - along).tolist(), "dice": dice(order, drawn, steps)}
        return found

    def _arrays(self, picture: Floats, scores: Mapping[str, Floats], item: Item, d: int) -> dict[str, Any]:
        """Figure 5: what random masking, masking with a reference, and Grad-CAM's own hide of a few images."""
        if int(item.id) >= SHOWN:
            return {}
        n, among = round(SHARE * d), round(12000 / 224**2 * d)
        order = np.argsort(ranks(scores["grad_cam"], generator(self.seed, "order", item.id, "grad_cam")))
        drawn = generator(self.seed, "shown", item.id).permutation(order[:among])[:n]
        sets = {"random": np.argsort(-scores[RANDOM])[:n], "reference": drawn, "grad_cam": order[:n]}
        shape = picture.shape[1:]
        masks = {f"hidden_{name}": np.isin(np.arange(d), some).reshape(shape) for name, some in sets.items()}
        return {"picture": picture, **masks, **{f"map_{name}": values.reshape(shape).astype(np.float32)
                                                for name, values in scores.items() if name != RANDOM}}


def dice(order: NDArray[np.intp], drawn: NDArray[np.intp], steps: NDArray[np.intp]) -> list[float]:
    """How alike the first n drawn and the first n of the order are: 2 |A ∩ B| / (|A| + |B|), n / N on average."""
    return [1.0 if not n else len(np.intersect1d(order[:n], drawn[:n])) / float(n) for n in steps.tolist()]


def _places(order: NDArray[np.intp]) -> NDArray[np.intp]:
    places = np.empty(len(order), dtype=np.intp)
    places[order] = np.arange(len(order))
    return places
