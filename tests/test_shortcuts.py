"""Models that can be asked about masks directly: used only where they say what the model says."""

from dataclasses import dataclass, field

import numpy as np
import pytest

import whytrust as wt
from whitebox import Bits, Net
from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.domains.image import ImageParts
from whytrust.question import WORTH_OPENING, Question


@dataclass
class Openable:
    """A net over masks with a shortcut that may lie by `error`; counts what it is asked on either way."""

    error: float = 0.0
    d: int = 9
    plain: int = 0
    direct: int = 0
    opened: list = field(default_factory=list)

    def __post_init__(self):
        self.net = Net(self.d, seed=3)

    def __call__(self, batch):
        self.plain += len(batch)
        return self.net(batch)

    def open(self, parts):
        self.opened.append(parts)

        def masked(masks):
            self.direct += len(masks)
            return np.asarray(self.net(masks.astype(float))) + self.error

        return masked


def asked(model, masks):
    question = Question(CheckedModel(model), Bits(model.d))
    return question.score(masks, generator(0))


MASKS = np.unique(generator(1).random((300, 9)) < 0.5, axis=0)


def test_a_shortcut_gives_the_same_scores_with_few_plain_calls():
    model = Openable()
    np.testing.assert_allclose(asked(model, MASKS), np.ravel(model.net(MASKS.astype(float))), atol=1e-12)
    assert model.plain <= 10
    assert model.direct >= len(MASKS) - 1
    assert len(model.opened) == 1


def test_a_shortcut_that_says_something_else_is_not_used():
    model = Openable(error=1e-6)
    question = Question(CheckedModel(model), Bits(model.d))
    truth = np.ravel(model.net(MASKS.astype(float)))
    np.testing.assert_allclose(question.score(MASKS[:100], generator(0)), truth[:100], atol=1e-12)
    once = model.direct
    assert once <= 100 + 5  # it is checked together with the first masks
    np.testing.assert_allclose(question.score(MASKS, generator(0)), truth, atol=1e-12)
    assert model.direct == once


def test_nothing_is_asked_twice_for_the_check():
    model = Openable()
    question = Question(CheckedModel(model), Bits(model.d))
    question.score(MASKS, generator(0))
    question.score(MASKS[::-1], generator(0))
    assert question.memory.calls == len(MASKS) + (not MASKS.all(axis=1).any())
    assert model.plain + model.direct == question.memory.calls + 5


def test_known_masks_are_not_asked_again_to_check_a_shortcut():
    model = Openable()
    question = Question(CheckedModel(model), Bits(model.d))
    question.score(MASKS[:40], generator(0))
    calls = question.memory.calls
    question.score(np.repeat(MASKS[:40], 2, axis=0), generator(0))
    assert question.memory.calls == calls
    assert model.opened == []


@pytest.mark.parametrize("batch_size", [50, 7])
def test_a_shortcut_gets_no_more_than_a_batch(batch_size):
    sizes = []
    model = Openable()
    model.open = lambda parts: lambda masks: sizes.append(len(masks)) or model.net(masks.astype(float))
    question = Question(CheckedModel(model), Bits(model.d), batch_size=batch_size)
    np.testing.assert_allclose(question.score(MASKS, generator(0)), np.ravel(model.net(MASKS.astype(float))), atol=1e-12)
    assert max(sizes) == batch_size


@pytest.mark.parametrize("fault", [lambda masks: np.full(len(masks), np.nan), lambda masks: 1 / 0])
def test_a_shortcut_that_fails_before_it_is_believed_is_not_used(fault):
    model = Openable()
    model.open = lambda parts: fault
    np.testing.assert_array_equal(asked(model, MASKS), np.ravel(model.net(MASKS.astype(float))))


def test_a_model_of_single_precision_keeps_its_shortcut():
    model = Openable(error=1e-7)
    exact = model.net
    model.net = lambda rows: np.asarray(exact(rows)).astype(np.float32)
    asked(model, MASKS)
    assert model.plain <= 10


def test_masks_that_hide_nothing_cannot_check_a_shortcut():
    model = Openable(error=1.0)
    np.testing.assert_array_equal(asked(model, np.ones((100, 9), bool)), np.repeat(model.net(np.ones((1, 9))), 100))


def test_few_masks_are_asked_plainly():
    model = Openable()
    asked(model, MASKS[: WORTH_OPENING - 2])
    assert model.opened == []


def test_a_preprocessed_model_is_not_opened():
    model = Openable()
    question = Question(CheckedModel(model, preprocess=lambda batch: 1 - batch), Bits(model.d))
    np.testing.assert_array_equal(question.score(MASKS, generator(0)), np.ravel(model.net(1.0 - MASKS)))
    assert model.opened == []


def test_a_shortcut_is_checked_like_any_answer():
    model = Openable()
    model.open = lambda parts: lambda masks: np.where(masks[:, 0], np.nan, 1) if len(masks) < 20 else model.net(masks.astype(float))
    question = Question(CheckedModel(model), Bits(model.d))
    question.score(MASKS[::2], generator(0))
    with pytest.raises(ValueError, match="finite scores, got nan"):
        question.score(MASKS[1::20], generator(0))


# --- blocks of batches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["segment_mean", "noise"])
def test_inputs_are_composed_for_several_batches_and_asked_batch_by_batch(fill, monkeypatch):
    image = generator(0).random((6, 8, 3))
    parts = ImageParts.cut(image, "grid:3x3", fill=fill)
    composed, asked = [], []
    compose = ImageParts.compose
    monkeypatch.setattr(ImageParts, "compose", lambda self, masks, rng: composed.append(len(masks)) or compose(self, masks, rng))
    monkeypatch.setattr("whytrust.question.BLOCK", 7 * image.nbytes)
    found = Question(CheckedModel(lambda batch: asked.append(len(batch)) or batch.mean(axis=(1, 2, 3))), parts, batch_size=3)
    masks = MASKS[~MASKS.all(axis=1)][:50]
    scores = found.score(masks, generator(1))
    whole = compose(parts, masks, generator(1))
    np.testing.assert_allclose(scores, whole.mean(axis=(1, 2, 3)), atol=1e-12)
    assert max(composed) == 6  # two batches of three: a third would not fit
    assert max(asked) == 3
    assert sum(composed) == sum(asked)


# --- texts of which a model reads only the beginning ------------------------------------------------------------------


@dataclass(frozen=True)
class Reader:
    """Counts "good" in the first `limit` characters; remembers the longest text it was given."""

    limit: int
    given: list = field(default_factory=list, compare=False)

    def __call__(self, texts):
        self.given.extend(texts)
        return np.array([t[: self.limit].count("good") / 10 for t in texts])

    def reads(self, text):
        return min(self.limit, len(text))


TEXT = "one good film and one good book but no good music at all"


def test_words_beyond_what_a_model_reads_are_no_parts_and_are_said_to_be_unseen():
    model = Reader(30)
    e = wt.explain(model, TEXT, parts="words", samples=400)
    assert e.names == ("one", "good", "film", "and", "one [2]", "good [2]", "book")
    assert any("unseen" in note and "but no good music at" in note for note in e.notes)
    assert not any("music" in text or "no" in text.split() for text in model.given)
    np.testing.assert_allclose(dict(e.as_list())["good"], 0.1, atol=1e-9)
    assert e.view.seen == TEXT.index(" but")
    assert "unseen" in str(e)
    assert wt.Explanation.from_json(e.to_json()).view == e.view


def test_punctuation_that_is_read_stays_where_the_next_word_is_unseen():
    class Stops(Reader):
        def __call__(self, texts):
            self.given.extend(texts)
            return np.array([t[: self.limit].count(".") / 10 for t in texts])

    model = Stops(21)
    e = wt.explain(model, "a slow film . . . . . music", parts="words", samples=50)
    assert e.prediction == pytest.approx(0.5)
    assert e.names == ("a", "slow", "film")
    assert not any("music" in text for text in model.given)


def test_a_sentence_that_is_read_in_part_shows_only_the_words_that_are_read():
    model = Reader(TEXT.index("book"))
    e = wt.explain(model, "First of all. " + TEXT, parts="sentences", samples=50)
    assert len(e.names) == 2
    assert max(model.given, key=len) == "First of all. one good film"


def test_a_text_that_is_read_whole_has_no_such_note():
    e = wt.explain(Reader(1000), TEXT, parts="words", samples=400)
    assert e.view.seen is None
    assert not any("unseen" in note for note in e.notes)


def test_a_word_that_is_read_in_part_counts_as_read():
    assert wt.explain(Reader(TEXT.index("book") + 2), TEXT, parts="words", samples=400).names[-1] == "book"


def test_a_model_that_reads_no_word_is_one_clear_error():
    with pytest.raises(ValueError, match="there is no word in them"):
        wt.explain(Reader(0), TEXT, parts="words")


def test_pages_strike_out_what_was_not_read(tmp_path):
    e = wt.explain(Reader(30), TEXT, parts="words", samples=400)
    page = e.as_html()
    assert '<s class="unseen"' in page
    assert page.index("book") < page.index('<s class="unseen"')
    e.save(tmp_path / "e.png")


# --- asking ahead -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 2, 7, 64])
@pytest.mark.parametrize("d", [5, 9, 40])
def test_what_is_asked_ahead_changes_no_answer(d, batch_size):
    random = np.random.default_rng(d)
    masks = random.random((200, d)) < random.random((200, 1))
    masks[50:60] = masks[40:50]  # repeats
    masks[70] = True
    net = Net(d, seed=1)
    batches = []

    def model(batch):
        batches.append(len(batch))
        scores = np.ravel(net(batch))
        return np.column_stack([scores, 2 * scores, -scores])

    question = Question(CheckedModel(model), Bits(d), batch_size=batch_size)
    question.ask_ahead(masks)
    first, second = question.watching([2, 1])
    expected = np.ravel(net(masks.astype(float)))
    np.testing.assert_allclose(first.score(masks, generator(0)), -expected, atol=1e-12)
    np.testing.assert_allclose(second.score(masks[::-1], generator(0)), 2 * expected[::-1], atol=1e-12)
    distinct = len(np.unique(masks, axis=0))
    assert sum(batches) == distinct
    assert batch_size is None or max(batches) <= batch_size


def test_a_model_that_can_be_opened_is_checked_and_asked_about_the_input_in_one_call():
    model = Openable()
    question = Question(CheckedModel(model), Bits(model.d))
    question.ask_ahead(MASKS)
    assert model.plain <= 6
    np.testing.assert_allclose(question.watching([0])[0].score(MASKS, generator(0)), np.ravel(model.net(MASKS.astype(float))),
                               atol=1e-12)
    assert model.plain <= 6


def test_masks_of_any_memory_order_are_understood():
    masks = (generator(0).random((9, 80)) < 0.5).T
    model = Openable()
    np.testing.assert_allclose(asked(model, masks), np.ravel(model.net(masks.astype(float))), atol=1e-12)
