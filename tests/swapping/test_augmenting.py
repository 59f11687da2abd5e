"""Labelled texts attacked by word swaps: which are told how, and under which label the flipped ones come back."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whytrust as wt
from synonyms import Synonyms
from whytrust.swapping.augmenting import Attacks, attempts, counted, flipped_texts
from whytrust.swapping.constraints import NoRepeat


@dataclass(frozen=True)
class Counting(Synonyms):
    """Remembers what it was asked."""

    asked: list = field(default_factory=list)

    def __call__(self, text, place):
        self.asked.append(text.text)
        return super().__call__(text, place)


WEIGHTS = {"good": 2.0, "great": 3.0, "bad": -2.0, "awful": -3.0}
SYNONYMS = {"good": ["fine", "decent"], "bad": ["poor"], "film": ["movie"]}
RULES = (NoRepeat(),)
TEXTS = ["a good film", "a great film", "a bad film", "good", "a good bad film", "an awful film"]
LABELS = ["yes", "yes", "no", "yes", "yes", "no"]


def by_words(texts):
    """P(yes) by a sum of known words, a little above 0 where there are none."""
    total = np.array([0.1 + sum(WEIGHTS.get(word, 0) for word in text.split()) for text in texts])
    yes = 1 / (1 + np.exp(-total))
    return np.column_stack([1 - yes, yes])


MODEL = wt.model(by_words, classes=["no", "yes"])
PESSIMIST = wt.model(lambda texts: by_words(texts) + np.array([0.2, -0.2]), classes=["no", "yes"])


def found(model=MODEL, texts=TEXTS, labels=LABELS, **more):
    return attempts(Attacks(model, texts, labels, Counting(SYNONYMS), RULES, **more))


def test_each_text_is_told_as_what_came_of_it():
    # The pessimist calls what has no known word "no": "fine" for "good" flips, "great" has no synonym.
    assert [one.outcome for one in found(PESSIMIST)] == ["flipped", "held", "held", "skipped", "wrong", "held"]
    # The other calls that "yes": now "poor" for "bad" flips, and "fine" for "good" only beside "bad".
    assert [one.outcome for one in found()] == ["held", "held", "flipped", "skipped", "flipped", "held"]


def test_flipped_texts_have_their_words_swapped_and_their_true_label_kept():
    examples = flipped_texts(PESSIMIST, TEXTS, LABELS, Counting(SYNONYMS), RULES)
    assert examples == [("a fine film", "yes")]
    assert PESSIMIST.labels(PESSIMIST([examples[0][0]])).tolist() == [0]  # which is not what the model says


def test_labels_that_are_numbers_come_back_as_numbers():
    numbered = wt.model(lambda texts: by_words(texts) + np.array([0.2, -0.2]))
    assert flipped_texts(numbered, TEXTS, [1, 1, 0, 1, 1, 0], Counting(SYNONYMS), RULES) == [("a fine film", 1)]


def test_every_text_is_told_to_who_listens_and_counted():
    heard = []
    flipped_texts(PESSIMIST, TEXTS, LABELS, Counting(SYNONYMS), RULES, on_progress=heard.append)
    assert [one.place for one in heard] == list(range(6))
    counts = counted(heard)
    assert {name: counts[name] for name in ("tried", "attacked", "flipped", "held", "wrong", "skipped")} == {
        "tried": 6, "attacked": 4, "flipped": 1, "held": 3, "wrong": 1, "skipped": 1}
    assert "at least two words" in heard[3].error


def test_no_more_texts_are_attacked_than_asked_and_the_same_ones_each_time():
    texts, labels = [f"a good film {i}" for i in range(200)], ["yes"] * 200
    first = [one.place for one in found(PESSIMIST, texts, labels, limit=40)]
    assert first == [one.place for one in found(PESSIMIST, texts, labels, limit=40)]
    assert len(set(first)) == 40
    assert first == sorted(first)
    assert max(first) > 100  # drawn from all of them: sorted data would else be all of one class
    assert first != [one.place for one in found(PESSIMIST, texts, labels, limit=40, seed=1)]


@settings(max_examples=25)
@given(st.lists(st.lists(st.sampled_from(["good", "bad", "film", "the", "great"]), min_size=2, max_size=8), min_size=1, max_size=3),
       st.floats(0.1, 1))
def test_a_flipped_text_is_the_original_with_at_most_the_share_of_words_swapped_for_synonyms(sentences, most):
    texts = [" ".join(words) for words in sentences]
    labels = [["no", "yes"][i] for i in PESSIMIST.labels(PESSIMIST(texts))]
    for one in found(PESSIMIST, texts, labels, most=most):
        before, after = texts[one.place].split(), one.text.split()
        changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
        assert len(changed) == one.swaps <= most * len(before) + 1e-9
        assert all(new in SYNONYMS[old] for old, new in changed)
        says = ["no", "yes"][PESSIMIST.labels(PESSIMIST([one.text]))[0]]
        assert (says != labels[one.place]) == (one.outcome == "flipped")


def test_an_attack_that_was_kept_is_not_done_again(tmp_path):
    first, second = Counting(SYNONYMS), Counting(SYNONYMS)
    wanted = attempts(Attacks(PESSIMIST, TEXTS, LABELS, first, RULES), tmp_path)
    assert attempts(Attacks(PESSIMIST, TEXTS, LABELS, second, RULES), tmp_path) == wanted
    assert first.asked
    assert not second.asked


@pytest.mark.parametrize("change", ["texts", "labels", "model", "limit", "most", "source", "constraints"])
def test_another_attack_is_not_taken_for_one_that_was_kept(tmp_path, change):
    attempts(Attacks(PESSIMIST, TEXTS, LABELS, Counting(SYNONYMS), RULES), tmp_path)
    again = Counting(SYNONYMS)
    other = {"texts": {"texts": ["a good show", *TEXTS[1:]]}, "labels": {"labels": [*LABELS[:-1], "yes"]}, "model": {"model": MODEL},
             "limit": {"limit": 5}, "most": {"most": 0.9}, "source": {"source": "another"}, "constraints": {"constraints": ()}}[change]
    given = {"model": PESSIMIST, "texts": TEXTS, "labels": LABELS, "candidates": again, "constraints": RULES} | other
    attempts(Attacks(**given), tmp_path)
    assert again.asked
    assert len(list(tmp_path.iterdir())) == 2


def test_an_interrupted_attack_goes_on_where_it_was(tmp_path):
    texts, labels = [f"a good film {i}" for i in range(40)], ["yes"] * 40

    class Stops(Counting):
        def __call__(self, text, place):
            if "film 20" in text.text:
                raise KeyboardInterrupt
            return super().__call__(text, place)

    with pytest.raises(KeyboardInterrupt):
        attempts(Attacks(PESSIMIST, texts, labels, Stops(SYNONYMS), RULES), tmp_path)
    rest = Counting(SYNONYMS)
    assert [one.outcome for one in attempts(Attacks(PESSIMIST, texts, labels, rest, RULES), tmp_path)] == ["flipped"] * 40
    assert not any(text.endswith("film 3") for text in rest.asked)  # of the first block, which was done
    assert any(text.endswith("film 30") for text in rest.asked)


def test_what_breaks_in_the_attack_is_told_and_not_kept_as_its_outcome(tmp_path):
    def broken(text, place):
        raise RuntimeError("no such list of words")
    broken.name = "broken"
    attacks = Attacks(PESSIMIST, TEXTS, LABELS, broken, RULES)
    with pytest.raises(ValueError, match="no such list of words"):
        attempts(attacks, tmp_path)
    assert len(attempts(Attacks(PESSIMIST, TEXTS, LABELS, Counting(SYNONYMS, "broken"), RULES), tmp_path)) == 6


def test_texts_of_which_none_can_be_attacked_are_one_clear_error():
    with pytest.raises(ValueError, match=r"at least one text must be such that words can be swapped.*at least two words"):
        found(texts=["good", "great"], labels=["yes", "yes"])


@pytest.mark.parametrize(("change", "message"), [
    ({"labels": ["yes"]}, "one label for each, got 1 labels for 6 texts"),
    ({"texts": [], "labels": []}, "there must be texts"),
    ({"limit": 0}, "at least 1, got 0"),
    ({"limit": True}, "at least 1, got True"),
])
def test_what_cannot_be_attacked_is_refused_at_once(change, message):
    with pytest.raises(ValueError, match=message):
        found(**change)


def test_what_the_model_does_not_read_is_left_out_of_the_example():
    def reading(texts):
        return by_words([text[:11] for text in texts]) + np.array([0.2, -0.2])
    reading.reads = lambda text: min(len(text), 11)
    model = wt.model(reading, classes=["no", "yes"])
    assert flipped_texts(model, ["a good film that nobody has seen"], ["yes"], Counting(SYNONYMS), RULES) == [("a fine film", "yes")]


def test_a_label_that_the_model_does_not_know_is_named():
    with pytest.raises(ValueError, match=r"no, yes.*perhaps"):
        found(labels=[*LABELS[:-1], "perhaps"])
