"""What a victim says of words and of all places, for LIME and for gradients of three families of nets."""

import numpy as np
import pytest

import whytrust as wt
from synonyms import Synonyms, bag
from whytrust.core import generator
from whytrust.explainers import NAMES
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion
from whytrust.language.written import Written
from whytrust.swapping.asking import Asking
from whytrust.swapping.constraints import NoRepeat
from whytrust.swapping.search import Search
from whytrust.swapping.victims import Victim

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
WORDS = ["the", "film", "plot", "is", "good", "bad", "dull", "fine", "un", "##happy", "##ly", "very", ",", "."]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "initializer_range": 0.4}


def tokenizer():
    return transformers.BertTokenizer(vocab={w: i for i, w in enumerate(VOCABULARY)}, model_max_length=40)


def net(family):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if family == "distilbert":
            config = transformers.DistilBertConfig(vocab_size=len(VOCABULARY), dim=16, n_layers=2, n_heads=2, hidden_dim=32,
                                                   initializer_range=0.4, pad_token_id=0, max_position_embeddings=48)
            return transformers.DistilBertForSequenceClassification(config).eval()
        kind = {"bert": (transformers.BertConfig, transformers.BertForSequenceClassification),
                "roberta": (transformers.RobertaConfig, transformers.RobertaForSequenceClassification)}[family]
        config = kind[0](vocab_size=len(VOCABULARY), pad_token_id=0, max_position_embeddings=48, **SMALL)
        return kind[1](config).eval()


FAMILIES = ("bert", "distilbert", "roberta")
TEXT = "the film is good , unhappyly very dull ."


def by_hand(model, text, target, steps=50):
    """Integrated gradients of the logit on the embedding layer, from [PAD] at every position: Riemann's middle sum."""
    ids = tokenizer()(text, return_tensors="pt")["input_ids"]
    layer = model.get_input_embeddings()
    here, pad = layer(ids).detach(), layer(torch.zeros_like(ids)).detach()
    total = torch.zeros_like(here)
    for k in range(steps):
        point = (pad + (k + 0.5) / steps * (here - pad)).requires_grad_()
        held = layer.register_forward_hook(lambda *_, point=point: point)
        score = model(input_ids=ids).logits[0, target]
        held.remove()
        total += torch.autograd.grad(score, point)[0]
    return ((here - pad) * total / steps).sum(-1)[0].double().numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_integrated_gradients_are_those_of_tokens_merged_by_the_signed_maximum(family):
    model = net(family)
    asking = Asking(wt.model((model, tokenizer())))
    written = Written.of(TEXT)
    victim = Victim(NAMES["integrated_gradients"].make(steps=400))
    found = victim(asking.question(written, 1), generator(0), len(written))
    tokens = by_hand(model, TEXT, 1, 400)
    # [CLS] the film is good , un ##happy ##ly very dull . [SEP]
    assert len(tokens) == 13
    merged = tokens[6:9][np.argmax(np.abs(tokens[6:9]))]
    words = [*tokens[1:5], merged, *tokens[9:11]]
    scale = np.abs(tokens).max()
    np.testing.assert_allclose(found.words, words, atol=2e-3 * scale)
    # Over all places: special tokens and punctuation stand among the words.
    np.testing.assert_allclose(found.places, [*tokens[:6], merged, *tokens[9:]], atol=2e-3 * scale)


def test_pooling_by_the_mean_is_offered():
    asking = Asking(wt.model((net("bert"), tokenizer())))
    written = Written.of("the unhappyly film")
    by_mean = Victim(NAMES["integrated_gradients"].make(steps=20, pooling="mean"))(asking.question(written, 1), generator(0), 3)
    largest = Victim(NAMES["integrated_gradients"].make(steps=20))(asking.question(written, 1), generator(0), 3)
    assert by_mean.words[1] != pytest.approx(largest.words[1] / 16)
    assert by_mean.words[0] == pytest.approx(largest.words[0] / 16)  # one token: the mean over the embedding's 16 values


def test_lime_is_divided_by_its_length_and_its_places_are_the_words():
    written = Written.of("a good film with a plot")
    found = Victim(Lime(samples=200, features="all"), True)(Asking(bag({"good": 0.2, "plot": -0.1})).question(written, 1),
                                                            generator(0), 6)
    assert np.linalg.norm(found.words) == pytest.approx(1)
    np.testing.assert_array_equal(found.words, found.places)
    plain = Victim(Lime(samples=200, features="all"))(Asking(bag({"good": 0.2, "plot": -0.1})).question(written, 1), generator(0), 6)
    np.testing.assert_allclose(plain.words, [0, 0.2, 0, 0, 0, -0.1], atol=1e-8)


def test_words_that_are_not_read_have_no_score():
    class Short:
        kind = "short"

        def __call__(self, texts):
            return np.array([0.6 + 0.1 * ("good" in text) for text in texts])

        def reads(self, text):
            return min(len(text), 11)

    model = wt.model(Short(), threshold=0.5, output="probability")
    written = Written.of("a very good film")
    found = Victim(Occlusion())(Asking(model).question(written, 1), generator(0), 4)
    assert found.words[3] == 0
    assert found.words[2] == pytest.approx(0.1)


def test_an_explainer_that_explains_nothing_is_refused():
    written = Written.of("a good film")
    with pytest.raises(TypeError, match="must return an Explanation"):
        Victim(lambda question, rng: [1, 2, 3])(Asking(bag({})).question(written, 1), generator(0), 3)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_attack_runs_on_nets_of_every_family_and_keeps_the_label(family):
    model = wt.model((net(family), tokenizer()))
    same = Synonyms({"good": ["fine"], "dull": ["bad"], "film": ["plot"]})
    found = Search.of(model, TEXT, Victim(NAMES["integrated_gradients"].make(steps=5)), same, (NoRepeat(),), 0.5)
    levels = list(found.attack("lom"))
    assert levels
    for level in levels:
        assert int(model.labels(model([level.chosen.text.text]))[0]) == found.target
