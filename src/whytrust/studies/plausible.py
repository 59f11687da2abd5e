"""Hoedt, Praher, Flexer, Widmer (2022), images: do explainers find adversarial perturbations, for several nets and two cuts?

All is done in the nets' normalised space, as the authors did: PGD of 100 steps of 0.01 within 0.05 towards a random class, a
4 × 4 grid or SLIC on the adversarial image, LIME with 512 draws, noise of standard deviation 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import files
from whytrust.attacks.ball import Ball
from whytrust.attacks.engine import Loss, Slots
from whytrust.attacks.pgd import PGD
from whytrust.checked import DifferentiableModel
from whytrust.core import Floats, generator, need
from whytrust.domains.image import ImageParts, segment
from whytrust.engine import Block, Result, single_threaded
from whytrust.explainers.gradients import GuidedBackprop, IntegratedGradients, Saliency
from whytrust.explainers.smoothing import REDUCTIONS, Smoothed
from whytrust.explainers.spots import Spot
from whytrust.explanation import Explanation
from whytrust.measures import Case, Flips, Recovery
from whytrust.measures.case import Answers
from whytrust.question import Question
from whytrust.studies.adversaries import FULL, Adversary, ByGradient
from whytrust.studies.architectures import Architecture, architecture
from whytrust.studies.data import Data, Item
from whytrust.studies.described import code_of, scores_told

STANDARD: dict[str, Any] = {"integrated_gradients": IntegratedGradients(50), "saliency": Saliency(),
                            "guided_backprop": GuidedBackprop()}
NOISY: dict[str, Any] = {**STANDARD, "integrated_gradients": IntegratedGradients(10)}
"""What is smoothed; 25 maps of 50 steps each would be 1250 passes, so integrated gradients take ten steps there."""
PROTOCOLS = ("usual", "paper")
"""The paper's: fifty steps of integrated gradients where they are smoothed too, adversaries cut to the range of pixels in every
step of a cross-entropy in floats of 32 bits, and a mean_pos of the positive pixels alone."""
POOLINGS = ("mean_abs", "mean", "mean_pos")
CUTS = ("slic", "grid")
SAMPLES, WIDTH, NOISE, COPIES = 512, 0.25, 1.0, 25
EPSILON, USUAL_EPSILON, STEP, ITERATIONS = {"alexnet": 0.1}, 0.05, 0.01, 100
ASKED = 2
"""Images whose scores stand for a net in a run's manifest."""
KEPT = 5
"""Adversaries of each net that are kept to look at."""
OnCalls = Callable[[int], None]


@dataclass(frozen=True)
class ClippedPGD(PGD):
    """PGD whose every step is cut to the range of pixels, in each channel's normalised units."""

    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()

    def move(self, slots: Slots, loss: Loss, ball: Ball) -> None:
        """A step, and back to pixels that a picture can have."""
        super().move(slots, loss, ball)
        low, high = (np.reshape(ends, (1, -1, 1, 1)).astype(slots.now.dtype) for ends in (self.lows, self.highs))
        np.clip(slots.now, low, high, out=slots.now)


def attack_of(net: Architecture, protocol: str = "usual") -> PGD:
    """The attack on a net: as the paper's formula has it, or, by the paper's protocol, as its authors' code does it."""
    given: dict[str, Any] = {"norm": "linf", "epsilon": EPSILON.get(net.name, USUAL_EPSILON), "step": STEP, "iterations":
                             ITERATIONS, "units": "input", "bounds": None, "stop": "never"}
    if protocol == "usual":
        return PGD(**given)
    ends = [tuple((edge - mean) / std for mean, std in zip(net.mean, net.std, strict=True)) for edge in (0.0, 1.0)]
    return ClippedPGD(**given, loss="cross_entropy", lows=ends[0], highs=ends[1])


def mean_of_positive(parts: Any, map: Floats) -> Floats:
    """The mean of a part's positive values; 0 where it has none."""
    totals, counts = (parts.pool(values, "sum") for values in (np.maximum(map, 0), (map > 0).astype(np.float64)))
    return np.asarray(totals / np.maximum(counts, 1))


@dataclass(frozen=True)
class PaperLime:
    """LIME as the paper's code has it: plain draws, hidden pixels 0, least squares on the logit, near by cosine of the images.

    A hidden pixel is 0, so the cosine between an image and a masked copy is √(energy kept / energy): no image is compared.
    """

    samples: int = SAMPLES

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """One weight a segment, and the fit's weighted R²."""
        masks = rng.random((self.samples, question.d)) < 0.5
        model = question.model
        assert isinstance(model, DifferentiableModel)
        asked = Question(model.raw, question.parts, question.target, question.batch_size, on_calls=question.on_calls)
        logits = asked.score(masks, rng)
        energy = question.parts.pool(np.asarray(question.input[0], dtype=np.float64) ** 2, "sum")
        distance = 1 - np.sqrt(masks @ energy / energy.sum())
        weights = np.exp(-(distance**2) / (2 * WIDTH**2))
        design = np.column_stack([np.ones(len(masks)), masks])
        root = np.sqrt(weights)[:, None]
        found = np.linalg.lstsq(design * root, logits * root[:, 0], rcond=None)[0]
        residual, mean = logits - design @ found, np.average(logits, weights=weights)
        fidelity = 1 - (weights * residual**2).sum() / max((weights * (logits - mean) ** 2).sum(), 1e-300)
        return Explanation.of(question, "lime", found[1:], intercept=float(found[0]), fidelity=float(fidelity))


@dataclass(frozen=True, eq=False)
class PlausibleStudy:
    """Every image attacked for every net, and 13 explainers tried on each adversary, in both cuts.

    The smoothings of integrated gradients, and recovery, are for the first `few` images: they cost twenty times the rest.
    """

    models: tuple[str, ...]
    data: Data
    few: int = 0
    seed: int = 0
    block: int = 4
    flips: Flips = field(default_factory=lambda: Flips(draws=5, positive=False))
    recovery: Recovery = field(default_factory=Recovery)
    protocol: str = "usual"

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        spec = {"paper": "plausible", "models": list(self.models), "images": len(self.data.items), "few": self.few,
                "draws": self.flips.draws, "ks": list(self.recovery.ks), "block": self.block,
                "attack": {"epsilon": {name: EPSILON.get(architecture(name).name, USUAL_EPSILON) for name in self.models},
                           "step": STEP, "iterations": ITERATIONS},
                "lime": {"samples": SAMPLES, "width": WIDTH}, "smoothing": {"copies": COPIES, "sigma": NOISE},
                "steps": {"alone": STANDARD["integrated_gradients"].steps,
                          "smoothed": _noisy(self.protocol)["integrated_gradients"].steps}}
        if self.protocol != "usual":
            spec |= {"protocol": self.protocol}
        each = "".join(f"{item.name}{item.truth}{item.digest()}" for item in self.data.items)
        hashes = {"inputs": hashlib.blake2b(each.encode(), digest_size=8).hexdigest()}
        for name in self.models:  # a net that cannot be loaded ends the run here, before there is a folder
            hashes |= {f"what {name} says of some images": self._said(name), **code_of(_loaded(name)[1])}
        return {"format": 1, "study": "plausible", "spec": spec, "seed": self.seed, "hashes": hashes,
                "about": {"data": self.data.what, "inputs": len(self.data.items), "models": list(self.models)}}

    def _said(self, name: str) -> str:
        """The scores of the first images that can be read, to three digits; the first error where there is none."""
        net, model = _loaded(name)
        batches: list[Floats] = []
        errors: list[Exception] = []
        for item in self.data.items:
            try:
                batches.append(net.normalised(item.value)[None])
            except (ValueError, OSError) as error:  # it is recorded as failed when its turn comes
                errors.append(error)
            if len(batches) == ASKED:
                break
        if not batches:
            raise errors[0]
        with single_threaded(), model.asking():
            model(batches[0])  # a net that takes no images of this kind says so now
            return scores_told(model, batches)

    def blocks(self) -> list[Block]:
        """A few images of one net at a time; the first images of every net come first, so that early tables have all nets."""
        starts = range(0, len(self.data.items), self.block)
        return [Block(f"{start // self.block:04d}-{number}", tuple(f"{number}.{item.id}" for item in
                                                                   self.data.items[start:start + self.block]))
                for start in starts for number in range(len(self.models))]

    def work(self, block: Block, on_calls: OnCalls) -> Iterator[Result]:
        """Attack a few images together, then explain each that was fooled."""
        name = self.models[int(block.cases[0].partition(".")[0])]
        net, model = _loaded(name)
        items = [self.data.items[int(case.partition(".")[2])] for case in block.cases]
        given: dict[int, Floats] = {}
        errors: dict[int, Exception] = {}
        for i, item in enumerate(items):
            try:
                given[i] = net.normalised(item.value)
            except (ValueError, OSError) as error:
                errors[i] = error
        attack = attack_of(net, self.protocol)
        with model.asking():
            made = ByGradient(attack)(model, list(given.values()), [items[i].id for i in given], FULL, self.seed,
                                      on_calls) if given else {}
            found: dict[int, Adversary | Exception] = {**errors, **dict(zip(given, made.values(), strict=True))}
            for i, (case, item) in enumerate(zip(block.cases, items, strict=True)):
                yield self._result(case, name, item, found[i], model, on_calls)

    def _result(self, case: str, name: str, item: Item, found: Adversary | Exception, model: DifferentiableModel,
                on_calls: OnCalls) -> Result:
        record: dict[str, Any] = {"case": case, "model": name, "name": item.name, "truth": item.truth, "status": "failed",
                                  "error": None}
        if isinstance(found, Exception):
            return Result({**record, "error": f"{type(found).__name__}: {found}"}, {})
        record |= {"clean_label": found.clean_label, "label": found.label, "attack": found.facts,
                   "status": "ok" if found.reached else "not fooled"}
        if not found.reached:
            return Result(record, {})
        try:
            return self._tried(record, case, item, found, model, on_calls)
        except (ValueError, TypeError) as error:
            return Result({**record, "status": "failed", "error": f"{type(error).__name__}: {error}"}, {})

    def _tried(self, record: dict[str, Any], case: str, item: Item, found: Adversary, model: DifferentiableModel,
               on_calls: OnCalls) -> Result:
        more = int(item.id) < self.few
        cuts = {how: cut_image(found.changed, how) for how in CUTS}
        work = _Explaining(model, found, more, self.seed, item.id, self.protocol)
        with_recovery = self.recovery if more else None
        record |= {"d": {how: len(parts.names) for how, parts in cuts.items()}, "trials": {
            how: work.trial(parts, self.flips, with_recovery, generator(self.seed, "trial", case, how), on_calls)
            for how, parts in cuts.items()}}
        keep = int(item.id) < KEPT
        arrays = {"clean": found.clean, "adversarial": found.changed, "slic": cuts["slic"].labels,
                  "map": np.asarray(work.maps(found.changed, cuts["grid"], "integrated_gradients"), np.float32)} if keep else {}
        return Result(record, arrays)


@dataclass(eq=False)
class _Explaining:
    """The 13 explainers of one adversary; a map does not depend on the cut, and is made once for both."""

    model: DifferentiableModel
    found: Adversary
    more: bool  # the smoothings of integrated gradients too
    seed: int
    case: str
    protocol: str = "usual"
    known: dict[bytes, tuple[Spot, dict[str, Floats]]] = field(default_factory=dict)

    def trial(self, parts: ImageParts, flips: Flips, recovery: Recovery | None, rng: np.random.Generator,
              on_calls: OnCalls) -> dict[str, Any]:
        """Flips and, where it is asked for, recovery."""
        case = Case(self.model, parts, self.found.clean, self.found.clean_label, self.found.label, None, on_calls)
        trial = flips(case, self.explain, rng)
        if recovery is not None:
            trial["recovery"] = recovery(case, self.explain, rng)
        for bulky in ("scores", "magnitude", "magnitude_mean"):
            trial.pop(bulky)
        return trial

    def explain(self, question: Question) -> Answers:
        """LIME, and every map pooled by the mean of absolute values; of the adversary itself also by the other poolings."""
        answers: dict[str, Explanation | Exception] = {"lime": PaperLime()(question, generator(self.seed, "lime", self.case))}
        main = np.array_equal(question.input[0], self.found.changed)
        for name in self.names():
            map = self.maps(question.input[0], question.parts, name, question)
            for pooling in POOLINGS if main and not name.endswith(("2", "vargrad")) else POOLINGS[:1]:
                label = name if pooling == "mean_abs" else f"{name}:{pooling}"
                positive = pooling == "mean_pos" and self.protocol == "paper"
                scores = mean_of_positive(question.parts, map) if positive else question.parts.pool(map, pooling)
                answers[label] = Explanation.of(question, label, scores,
                                                sense="signed" if pooling == "mean" else "size", map=_by_pixel(map))
        return answers

    def names(self) -> list[str]:
        """As in the catalogue."""
        smoothed = [name for name in NOISY if self.more or name != "integrated_gradients"]
        return [*STANDARD, *(f"{name}/{how}" for name in smoothed for how in REDUCTIONS)]

    def maps(self, image: Any, parts: Any, name: str, question: Question | None = None) -> Floats:
        """A map of one image, worked out once."""
        key = hashlib.blake2b(np.ascontiguousarray(image).tobytes(), digest_size=16).digest()
        if key not in self.known:
            asked = question or Question(self.model, parts, self.found.label)
            self.known[key] = Spot.of(asked, "maps", "logit", generator(self.seed, "maps", self.case)), {}
        spot, made = self.known[key]
        if name not in made:
            made[name] = next(iter(_method(name, self.protocol).maps(spot, spot.own)))
        return made[name]


def _noisy(protocol: str) -> dict[str, Any]:
    return STANDARD if protocol == "paper" else NOISY


def _method(name: str, protocol: str = "usual") -> Any:
    base, _, how = name.partition("/")
    if not how:
        return STANDARD[base]
    return Smoothed(_noisy(protocol)[base], REDUCTIONS[how], COPIES, sigma=NOISE)  # type: ignore[arg-type]


def _by_pixel(map: Floats) -> NDArray[np.float32]:
    return np.asarray(np.abs(map).sum(axis=0), dtype=np.float32)


def cut_image(normalised: Floats, how: str) -> ImageParts:
    """A 4 × 4 grid, or SLIC on the normalised image; hidden pixels are 0, which is the data's mean."""
    last = np.moveaxis(normalised, 0, -1)
    if how == "grid":
        labels = segment(last, "grid:4x4")
    else:
        found = need("skimage.segmentation", "image").slic(last, n_segments=16, compactness=10, sigma=1, start_label=0)
        labels = segment(last, np.asarray(found))
    return ImageParts(normalised, labels, 0.0, True)


@cache
def _loaded(name: str) -> tuple[Architecture, DifferentiableModel]:
    found = architecture(name)
    try:
        return found, found.model()
    except ImportError:
        raise
    except Exception as error:  # whatever a user's file or a damaged download may raise
        raise ValueError(
            f"net {name!r} cannot be loaded ({type(error).__name__}: {' '.join(str(error).split())}); see to its "
            "weights, or leave it out of --models") from error


def imagenet_folder(folder: str | Path, scale: float = 1.0) -> Data:
    """Images whose names begin with their class's WordNet number, evenly thinned to a share; or in folders named so."""
    root = Path(folder)
    listing = root / "imagenet_class_index.json"
    paths = files.inside(root, (".jpg", ".jpeg", ".png"))
    if not paths:
        raise ValueError(f"{folder} must hold images (.jpg, .png), got none")
    if not 0 < scale <= 1:
        raise ValueError(f"scale must be a share of the images, above 0 and at most 1, got {scale!r}")
    numbers = _class_numbers(listing, paths)
    count = max(round(scale * len(paths)), 1)
    chosen = [paths[i] for i in np.linspace(0, len(paths) - 1, count).round().astype(int)]
    # In an order of their own, so that the first few are not all of one kind; a name always has the same place.
    chosen.sort(key=lambda path: hashlib.blake2b(path.name.encode()).digest())
    items = tuple(Item(f"{i:05d}", path, path.stem, truth=numbers.get(_wnid(path))) for i, path in enumerate(chosen))
    return Data(items, f"{count} of {len(paths)} images of {root.name}")


def _wnid(path: Path) -> str:
    own = path.name.partition("_")[0].partition(".")[0]
    return own if own.startswith("n") and own[1:].isdigit() else path.parent.name


def _class_numbers(listing: Path, paths: Sequence[Path]) -> Mapping[str, int]:
    """A class's number is the place of its WordNet number among all of them."""
    if listing.is_file():
        said = files.plain(listing, "ImageNet's list of classes")
        if not isinstance(said, dict) or not all(isinstance(one, list) and one for one in said.values()):
            raise ValueError(f"{listing} must be ImageNet's list of classes, {{number: [WordNet's number, name]}}")
        known = sorted(str(wnid) for wnid, *_ in said.values())
    else:
        known = sorted({_wnid(path) for path in paths})
        if len(known) != 1000:
            return {}
    return {wnid: i for i, wnid in enumerate(known)}
