"""The texts of Sinha et al. (2021): SST-2, AG News and IMDB as they lie in folders, or any other texts with labels.

As in the paper, texts are in lower case and those of two words or fewer are dropped. A test set that is sorted by class is
read class by turn, for else "the first 500" would all be of one class; what was done is told in `how`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from pathlib import Path

from whytrust.inputs import read_text
from whytrust.language.written import Written
from whytrust.studies.fragile_published import TITLES

LEAST_WORDS = 3
FIRST, FIRST_OF_LIME_ON_IMDB = 500, 100
SENTIMENT = {"0": "negative", "1": "positive"}
Rows = list[tuple[str, str]]
"""(text, label) pairs as they stand in a file."""
LAYOUTS = ("SST-2 (phrases/test.tsv and phrases/train.tsv), AG News (test.tsv, dev.tsv and classes.txt), IMDB (test.tsv and "
           "train.tsv with label, file and text), or test.tsv and train.tsv with text and label, each apart by a tab")


@dataclass(frozen=True)
class TextSet:
    """Texts to train on and to test on, with the names of their classes.

    `how` tells what became of the test texts, `learnt` what is trained on.
    """

    name: str
    train: tuple[str, ...]
    train_labels: tuple[str, ...]
    test: tuple[str, ...]
    test_labels: tuple[str, ...]
    how: str = ""
    learnt: str = ""

    @property
    def title(self) -> str:
        """As a reader knows it."""
        return TITLES.get(self.name, self.name)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, sorted."""
        return tuple(sorted(set(self.train_labels)))

    def first(self, explainer: str, scale: float = 1.0) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(texts, labels): a share of the paper's first 500, or of its first 100 where LIME explains whole film reviews."""
        if not 0 < scale <= 1:
            raise ValueError(f"scale must lie in (0, 1], got {scale!r}; it is the share of the paper's {FIRST} texts")
        most = FIRST_OF_LIME_ON_IMDB if (self.name, explainer) == ("imdb", "lime") else FIRST
        count = max(round(scale * most), 1)
        return self.test[:count], self.test_labels[:count]


def found_in(folder: str | Path) -> list[Path]:
    """The data sets that a folder is or holds: itself, or its folders sst2, ag_news and imdb."""
    place = Path(folder)
    if not place.is_dir():
        raise ValueError(f"--data must name a folder, got {str(folder)!r}, which is none; it may hold {LAYOUTS}")
    if _layout(place) is not None:
        return [place]
    inside = [place / name for name in TITLES if (place / name).is_dir() and _layout(place / name) is not None]
    if not inside:
        raise ValueError(f"--data must name a folder of texts, and {place} holds none that is known: neither {LAYOUTS}, nor "
                         f"folders {', '.join(TITLES)} with these")
    return inside


def read(folder: str | Path) -> TextSet:
    """The texts of a folder, whichever of the known layouts it has."""
    place = Path(folder)
    layout = _layout(place)
    if layout is None:
        raise ValueError(f"{place} must hold {LAYOUTS}")
    return layout(place)


def _layout(place: Path) -> Callable[[Path], TextSet] | None:
    """How a folder is to be read; None where nothing in it is known."""
    if (place / "phrases" / "test.tsv").is_file():
        return _sst2
    if not (place / "test.tsv").is_file():
        return None
    if (place / "classes.txt").is_file() and (place / "dev.tsv").is_file() and not (place / "train.tsv").is_file():
        return _ag_news
    if not (place / "train.tsv").is_file():
        return None
    return _imdb if _is_in_three(place / "test.tsv") else _any


def _sst2(place: Path) -> TextSet:
    """GLUE's validation set is what is tested on; whole sentences are trained on where there are any, else phrases."""
    whole = place / "sentences" / "train.tsv"
    train = whole if whole.is_file() else place / "phrases" / "train.tsv"
    kind = "whole sentences" if train == whole else "phrases"
    return _made("sst2", _named(pairs(train)), _named(pairs(place / "phrases" / "test.tsv")), "", f"Trained on {kind}.")


def _ag_news(place: Path) -> TextSet:
    """The test set; dev.tsv, which was cut from the training set, is what is trained on."""
    known = [line.strip() for line in _lines(place / "classes.txt") if line.strip()]
    train, test = pairs(place / "dev.tsv"), pairs(place / "test.tsv")
    strange = sorted({label for _, label in (*train, *test)} - set(known))
    if strange:
        raise ValueError(f"every label in {place} must be one of classes.txt ({', '.join(known)}), got {strange[0]!r}")
    return _made("ag_news", train, test, "", "Trained on dev.tsv.")


def _imdb(place: Path) -> TextSet:
    """Reviews whole, their line breaks (<br />) as blanks."""
    train, test = ([(re.sub(r"<br\s*/?>", " ", text), label) for text, label in _named(_triples(place / name))]
                   for name in ("train.tsv", "test.tsv"))
    return _made("imdb", train, test, "<br /> is read as a blank.")


def _any(place: Path) -> TextSet:
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", place.resolve().name).strip("-._") or "texts"
    return _made(name, pairs(place / "train.tsv"), pairs(place / "test.tsv"))


def _made(name: str, train: Rows, test: Rows, how: str = "", learnt: str = "") -> TextSet:
    """Lower case, nothing short, no test text among those trained on, classes by turn where they came in a row."""
    told = [how] if how else []
    longer = [(text, label) for text, label in _lowered(test) if len(Written.of(text)) >= LEAST_WORDS]
    if len(longer) < len(test):
        told.append(f"{len(test) - len(longer)} test texts of two words or fewer are dropped.")
    if _in_a_row(longer):
        longer = _by_turn(longer)
        told.append("The test set is sorted by class, and is read by turns, one text of each class.")
    seen = {_letters(text) for text, _ in longer}
    own = [(text, label) for text, label in _lowered(train) if _letters(text) not in seen]
    dropped = [] if len(own) == len(train) else [f"{len(train) - len(own)} texts to train on are also tested on: dropped."]
    _check(name, own, longer)
    own = _by_turn(own) if _in_a_row(own) else own  # who trains on the first so many must meet every class
    return TextSet(name, tuple(text for text, _ in own), tuple(label for _, label in own), tuple(text for text, _ in longer),
                   tuple(label for _, label in longer), " ".join(told), " ".join([*([learnt] if learnt else []), *dropped]))


def _check(name: str, train: Rows, test: Rows) -> None:
    known = {label for _, label in train}
    if len(known) < 2:
        raise ValueError(f"the texts of {name} to train on must have at least two classes, got {len(known)} in {len(train)} "
                         "texts")
    if not test:
        raise ValueError(f"the test set of {name} must hold at least one text of {LEAST_WORDS} words or more, got none")
    strange = sorted({label for _, label in test} - known)
    if strange:
        raise ValueError(f"every class of the test set of {name} must be in the training set, too, and {strange[0]!r} is not")


def _lowered(rows: Rows) -> Rows:
    return [(" ".join(text.lower().split()), label) for text, label in rows]


def _letters(text: str) -> str:
    """A text by its letters and digits alone: the same sentence is written with other blanks and stops in other files."""
    return re.sub(r"[\W_]+", "", text) or text


def _in_a_row(rows: Rows) -> bool:
    """Are there several classes, and does each come in one piece?"""
    labels = [label for _, label in rows]
    pieces = sum(one != other for one, other in pairwise(labels)) + 1
    return 1 < len(set(labels)) == pieces < len(labels)


def _by_turn(rows: Rows) -> Rows:
    """One of each class after the other, each class in its own order; what is left of the larger ones at the end."""
    turns = zip_longest(*([row for row in rows if row[1] == label] for label in sorted({label for _, label in rows})))
    return [row for turn in turns for row in turn if row is not None]


# --- files ------------------------------------------------------------------------------------------------------------


def _named(rows: Rows) -> Rows:
    """Labels 0 and 1 as negative and positive; others as they are."""
    return [(text, SENTIMENT.get(label, label)) for text, label in rows]


def pairs(path: Path) -> Rows:
    """Lines of text and label, with or without a heading."""
    rows = [_fields(path, number, line, line.rpartition("\t")[::2]) for number, line in _numbered(path)]
    return rows[1:] if rows and rows[0][1].lower() == "label" else rows


def _triples(path: Path) -> Rows:
    """Lines of label, file and text."""
    found = []
    for number, line in _numbered(path):
        label, _, rest = line.partition("\t")
        found.append(_fields(path, number, line, (rest.partition("\t")[2], label)))
    return found


def _fields(path: Path, number: int, line: str, pair: tuple[str, str]) -> tuple[str, str]:
    text, label = pair[0].strip(), pair[1].strip()
    if not text or not label:
        raise ValueError(f"line {number} of {path} must have a text and a label with a tab between them, got {line[:60]!r}")
    return text, label


def _is_in_three(path: Path) -> bool:
    first = next((line for _, line in _numbered(path)), "")
    return len(first.split("\t")) == 3 and first.split("\t")[1].endswith(".txt")


def _numbered(path: Path) -> list[tuple[int, str]]:
    return [(number, line) for number, line in enumerate(_lines(path), 1) if line.strip()]


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise ValueError(f"{path} must be there: --data names a folder that holds {LAYOUTS}")
    return [line.rstrip("\r") for line in read_text(path).split("\n")]
