import math
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whytrust.core import MissingExtra
from whytrust.language import fluency
from whytrust.language.fluency import FLUENCIES, Causal, Fluency, Trigram, fluency_of

ARPA = r"""
\data\
ngram 1=4
ngram 2=3
ngram 3=1

\1-grams:
-99 <s> -0.30103
-0.60206 </s> 0.0
-0.60206 good -0.30103
-0.30103 film -0.1

\2-grams:
-0.30103 <s> good -0.2
-0.30103 good film -0.05
-0.1 film </s>

\3-grams:
-0.02 <s> good film

\end\
"""
SENTENCES = [
    "this is one of the best films of the year .",
    "i do n't think that anyone will want to see it again .",
    "the children went to school in the morning .",
    "she told him that she was going to leave the country .",
    "there is nothing in this story that we have not seen before .",
    "the president said that he would not sign the bill .",
]


@pytest.fixture
def arpa(tmp_path):
    file = tmp_path / "tiny.arpa"
    file.write_text(ARPA)
    return str(file)


def by_hand(*logarithms):
    return 10 ** (-sum(logarithms) / len(logarithms))


# --- words in threes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "logarithms"), [
    ("good film", (-0.30103, -0.02, -0.05 - 0.1)),  # seen in twos and threes; then back from "good film" to "film"
    ("Good, film!", (-0.30103, -0.02, -0.05 - 0.1)),
    ("film good", (-0.30103 - 0.30103, -0.1 - 0.60206, -0.30103 - 0.60206)),  # back to single words each time
    ("good-film", (-0.30103, -0.02, -0.05 - 0.1)),  # no such word: its pieces are read
    ("film's good", (-0.30103 - 0.30103, -0.1 - 0.60206, -0.30103 - 0.60206)),
    ("good film. film good.", (-0.30103, -0.02, -0.15, -0.60206, -0.70206, -0.90309)),  # each sentence begins anew
    ("nonsense", (-6.0, -0.60206)),  # unknown, and nothing is known after it
    ("good nonsense film", (-0.30103, -6.0, -0.30103, -0.1)),
])
def test_perplexity_equals_what_the_numbers_of_a_tiny_model_give_by_hand(arpa, text, logarithms):
    assert Trigram(arpa, unknown=1e-6)([text]) == [pytest.approx(by_hand(*logarithms), rel=1e-3)]


@pytest.mark.parametrize("text", ["", "  ", "...", " !?", "\ud800"])
def test_a_text_without_words_has_no_perplexity(text):
    assert Trigram()([text, "a film"])[0] is None
    assert Trigram().unknown_share(text) == 0


@pytest.mark.parametrize("before", [["<s>"], ["in", "front"], ["<s>", "the"], ["nonsenseword"]])
def test_the_packaged_model_knows_every_history_newest_word_last_and_its_probabilities_sum_to_one(before):
    library = pytest.importorskip("pocketsphinx")
    with open(library.get_model_path("en-us/cmudict-en-us.dict")) as lines:
        vocabulary = {line.split()[0] for line in lines}
    model = fluency._ngrams(None)
    known = [word for word in [*vocabulary, "</s>"] if model.knows(word)]
    found = np.exp([model.log_probability(word, before) for word in known])
    assert found.sum() == pytest.approx(1, abs=2e-3)
    if before == ["in", "front"]:
        assert known[int(found.argmax())] == "of"
    if before == ["<s>"]:  # every known word is at least about as likely as what is said of unknown ones
        assert min(model.log_probability(word, []) for word in known) == pytest.approx(math.log(Trigram().unknown), abs=0.2)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_shuffled_words_are_less_fluent_than_the_sentence(sentence):
    rng = np.random.default_rng(0)
    shuffled = [" ".join(rng.permutation(sentence.split()[:-1])) + " ." for _ in range(5)]
    own, *others = Trigram()([sentence, *shuffled])
    assert own < min(others)


def test_tokens_and_case_do_not_matter_to_the_trigram_model():
    tokens, written = Trigram()(["they wo n't like it 's end , i 'd say .", "They won't like it’s end, I'd say."])
    assert tokens == written


def test_a_word_the_model_does_not_know_never_makes_a_text_more_fluent():
    known, unknown = Trigram()(["it is a quiet film .", "it is a qxzzt film ."])
    assert unknown > known
    assert Trigram().unknown_share("it is a qxzzt film .") == pytest.approx(1 / 5)


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=30), max_size=4))
def test_any_texts_have_a_perplexity_of_at_least_one_or_none_each_by_itself(texts):
    found = Trigram()(texts)
    assert len(found) == len(texts)
    assert all(one is None or 1 <= one < math.inf for one in found)
    assert found == [Trigram()([text])[0] for text in texts]


@pytest.mark.parametrize("broken", ["", "hello\n", ARPA.replace("ngram 2=3", "ngram 2=5"), ARPA[:150], ARPA.replace("\\end\\", ""),
                                    ARPA.replace("-0.30103 good film -0.05", "-0.30103 good")])
def test_a_broken_model_file_is_refused_in_words(tmp_path, broken):
    file = tmp_path / "broken.arpa"
    file.write_text(broken)
    with pytest.raises(ValueError, match="ARPA"):
        Trigram(str(file))(["a film"])


def test_a_model_file_that_is_not_there_or_no_text_is_refused_in_words(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\x00" * 50)
    for name in ("missing", "binary", "."):
        with pytest.raises(ValueError, match="ARPA"):
            Trigram(str(tmp_path / name))(["a film"])


@pytest.mark.parametrize("unknown", [0, 1, -1, 2])
def test_the_probability_of_unknown_words_must_be_one(unknown):
    with pytest.raises(ValueError, match="between 0 and 1"):
        Trigram(unknown=unknown)


# --- causal models ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def undecided(tmp_path_factory):
    """A causal model of 7 tokens whose weights are all zero: each token is as likely as any other."""
    torch, transformers, tokenizers = (pytest.importorskip(name) for name in ("torch", "transformers", "tokenizers"))
    folder = tmp_path_factory.mktemp("undecided")
    vocabulary = {token: i for i, token in enumerate(["<s>", "<unk>", "a", "good", "film", "is", "."])}
    inner = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>", bos_token="<s>")
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=7, n_positions=32, n_embd=8, n_layer=1, n_head=1,
                                                                 bos_token_id=0, eos_token_id=0))
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_a_model_to_which_all_tokens_are_equal_wavers_between_all_of_them(undecided):
    found = Causal(undecided)(["a good film .", "film", "", "is is \ud800"])
    assert found == [pytest.approx(7), pytest.approx(7), None, pytest.approx(7)]


def test_a_causal_model_is_asked_about_each_text_once(undecided, monkeypatch):
    asked = []
    model, seen = fluency._causal(undecided)
    seen.clear()
    monkeypatch.setattr(type(model), "log_probabilities", lambda _, texts: asked.extend(texts) or [(-len(text) * math.log(2), 1) for text in texts])
    assert Causal(undecided)(["a", "good", "a"]) == [pytest.approx(2), pytest.approx(16), pytest.approx(2)]
    assert Causal(undecided)(["good", "is"]) == [pytest.approx(16), pytest.approx(4)]
    assert asked == ["a", "good", "is"]
    seen.clear()


# --- by name ----------------------------------------------------------------------------------------------------------


def test_names_lead_to_measures():
    assert fluency_of("trigram") == Trigram()
    assert fluency_of("smollm2") == Causal("smollm2")
    assert fluency_of("causal: gpt2") == Causal("gpt2")
    assert fluency_of(None) is fluency_of("none") is None
    own = Trigram(unknown=0.1)
    assert fluency_of(own) is own
    assert all(isinstance(one, Fluency) and one.name for one in (Trigram(), Trigram("x.arpa"), Causal(), Causal("gpt2")))


@pytest.mark.parametrize("given", ["trigrams", "causal:", "causal: ", "", 3, [], Trigram, len])
def test_what_is_no_measure_of_fluency_is_refused_in_words(given):
    with pytest.raises(ValueError, match="fluency must be one of"):
        fluency_of(given)
    assert set(FLUENCIES) == {"trigram", "smollm2", "causal:FOLDER_OR_NAME", "none"}


def test_without_pocketsphinx_one_line_says_how_to_get_it(monkeypatch):
    fluency._ngrams.cache_clear()
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    with pytest.raises(MissingExtra, match="pip install --no-deps pocketsphinx"):
        Trigram()(["a film"])


@pytest.mark.parametrize("measure", [Trigram(), Causal("gpt2")])
def test_a_measure_travels_without_its_model(measure):
    sent = pickle.dumps(measure)
    assert len(sent) < 300
    assert pickle.loads(sent) == measure
