"""What a masked language model would write, as candidates; the model's weights are set by hand so that the answer is known."""

import pickle

import pytest

from whytrust.language.masked import MaskedWords
from whytrust.language.written import Written

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = ["the", "not", "good", "great", "films", "movie", "movies", "dull", "##ly", "loved", "hated", "adore", "quickly", "2nd", "zzz"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]


def model_that_prefers(*words):
    """A masked model that writes these words, the first likeliest, whatever the gap."""
    config = transformers.BertConfig(vocab_size=len(VOCABULARY), hidden_size=8, num_hidden_layers=1, num_attention_heads=1,
                                     intermediate_size=8, max_position_embeddings=32)
    model = transformers.BertForMaskedLM(config).eval()
    with torch.no_grad():
        model.cls.predictions.transform.LayerNorm.weight.zero_()
        model.cls.predictions.transform.LayerNorm.bias.zero_()
        model.cls.predictions.bias[:] = torch.linspace(0, -1, len(VOCABULARY))
        for height, word in enumerate(reversed(words)):
            model.cls.predictions.bias[VOCABULARY.index(word)] = 1 + height
    return model, transformers.BertTokenizer(vocab={w: i for i, w in enumerate(VOCABULARY)})


def at(sentence, word):
    text = Written.of(sentence)
    return text, text.words.index(word)


def test_candidates_are_the_models_words_in_the_words_form():
    model, tokenizer = model_that_prefers("the", "great", "##ly", "not", "good", "quickly", "2nd", "dull")
    source = MaskedWords(model, tokenizer)
    assert source(*at("A Good film", "Good")) == ["Great", "Dull"]  # no adverb, no stop word, no piece, not itself
    assert source(*at("the good's end", "good's")) == ["great's", "dull's"]
    assert MaskedWords(model, tokenizer, k=1)(*at("A GOOD film", "GOOD")) == ["GREAT"]


def test_forms_that_do_not_fit_are_made_to():
    model, tokenizer = model_that_prefers("adore", "hated", "loved", "movie", "films", "movies")
    assert MaskedWords(model, tokenizer)(*at("she loved it", "loved"))[:2] == ["adored", "hated"]
    assert MaskedWords(model, tokenizer)(*at("two films", "films"))[:1] == ["movies"]


def test_it_travels_by_folder_or_by_its_weights(tmp_path):
    model, tokenizer = model_that_prefers("great", "dull")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded, asked = MaskedWords.load(str(tmp_path), k=7), at("a good film", "good")
    assert loaded.name == f"words that {tmp_path} would write there"
    assert len(pickle.dumps(loaded)) < 1000
    assert pickle.loads(pickle.dumps(loaded)).k == 7
    for source in (loaded, MaskedWords(model, tokenizer)):
        assert pickle.loads(pickle.dumps(source))(*asked) == source(*asked) == ["great", "dull"]


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_k_must_be_a_number_of_words(k):
    with pytest.raises(ValueError, match="k must be a whole number of words"):
        MaskedWords(*model_that_prefers("great"), k=k)
