"""Gradient explainers on texts, images behind a processor and rows: closed forms where the model is linear, captum where it is not."""

import captum.attr as captum
import numpy as np
import pandas
import pytest
import torch
import transformers
from torch import nn

import whytrust as wt

RNG = np.random.default_rng(3)


# --- rows --------------------------------------------------------------------------------------------------------------

TABLE = RNG.normal(size=(60, 4)) * [1, 10, 0.1, 5] + [0, 3, 1, -2]
WEIGHTS = np.array([[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, 1.0, -1.0]])


def linear():
    layer = nn.Linear(4, 2, bias=False).double()
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(WEIGHTS))
    return wt.model(layer)


def test_a_row_of_a_linear_model_has_the_weights_and_the_weights_times_what_differs_from_the_mean():
    row = TABLE[0]
    found = [wt.explain(linear(), row, m, target=0, background=TABLE, pooling="mean")
             for m in ("saliency", "input_x_gradient", "integrated_gradients")]
    np.testing.assert_allclose(found[0].scores, WEIGHTS[0], rtol=1e-12)
    np.testing.assert_allclose(found[1].scores, WEIGHTS[0] * row, rtol=1e-12)
    np.testing.assert_allclose(found[2].scores, WEIGHTS[0] * (row - TABLE.mean(axis=0)), rtol=1e-9)


def test_noise_on_a_row_is_a_share_of_each_columns_range():
    class Square(nn.Module):
        def forward(self, x):
            return torch.stack([(x**2).sum(1), x.sum(1)], 1)

    found = wt.explain(wt.model(Square()), TABLE[0], "saliency/vargrad", target=0, background=TABLE, samples=400, noise=0.1)
    ranges = TABLE.max(axis=0) - TABLE.min(axis=0)
    np.testing.assert_allclose(np.sqrt(found.scores), 2 * 0.1 * ranges, rtol=0.15)


def test_a_data_frame_of_numbers_works_and_one_with_words_is_told_what_to_do():
    frame = pandas.DataFrame(TABLE, columns=list("abcd"))
    found = wt.explain(linear(), frame.iloc[0], "saliency", target=0, background=frame, pooling="mean")
    np.testing.assert_allclose(found.scores, WEIGHTS[0], rtol=1e-12)
    frame["d"] = ["x", "y"] * 30
    with pytest.raises((TypeError, ValueError), match="encode categories as numbers"):
        wt.explain(linear(), frame.iloc[0], "saliency", target=0, background=frame)


# --- texts -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bert():
    """A tiny BERT with random weights, in float64, and a tokenizer that splits words into pieces."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "very", "good", "bad", "film", "##ing", "##s", "not", "un", "##believ", "##able"]
    tokenizer = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                                sep_token="[SEP]", model_max_length=32)
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                     intermediate_size=24, max_position_embeddings=40, num_labels=3)
    return transformers.BertForSequenceClassification(config).double().eval(), fast


TEXT = "a very unbelievable film, not bad"


def embeddings_of(bert, text=TEXT):
    model, tokenizer = bert
    given = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    spans = [tuple(map(int, s)) for s in given.pop("offset_mapping")[0]]
    given.pop("token_type_ids", None)
    return model.get_input_embeddings()(given["input_ids"]).detach(), given["attention_mask"], spans


def by_word(values, spans, text=TEXT):
    """The token of largest magnitude speaks for its word."""
    words = [(i, i + len(w)) for w in ("a", "very", "unbelievable", "film", "not", "bad") for i in [text.find(w)]]
    return [max((v for v, (s, e) in zip(values, spans, strict=True) if s >= a and e <= b and e > s), key=abs) for a, b in words]


def test_integrated_gradients_of_a_text_are_captums_behind_the_embedding_with_a_pad_baseline(bert):
    net, _ = bert
    values, mask, spans = embeddings_of(bert)
    pad = net.get_input_embeddings()(torch.zeros_like(mask)).detach()
    theirs = captum.IntegratedGradients(lambda e: net(inputs_embeds=e, attention_mask=mask.expand(len(e), -1)).logits).attribute(
        values, baselines=pad, target=1, n_steps=20).sum(-1)[0].detach().numpy()
    found = wt.explain(wt.model(bert), TEXT, "integrated_gradients", target=1, steps=20, parts="words")
    np.testing.assert_allclose(found.scores, by_word(theirs, spans), rtol=1e-5, atol=1e-10)
    assert found.settings["baseline"] == "pad"
    assert found.settings["pooling"] == "signed_max"
    assert abs(found.settings["completeness_gap"]) < 1e-3


def test_saliency_of_a_text_is_the_gradient_at_its_embedding(bert):
    net, _ = bert
    values, mask, spans = embeddings_of(bert)
    values.requires_grad_()
    (gradient,) = torch.autograd.grad(net(inputs_embeds=values, attention_mask=mask).logits[0, 2], values)
    found = wt.explain(wt.model(bert), TEXT, "saliency", target=2, parts="words", pooling="signed_max")
    np.testing.assert_allclose(found.scores, by_word(gradient[0].sum(-1).numpy(), spans), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("method", ["saliency", "input_x_gradient/smoothgrad", "integrated_gradients/vargrad"])
@pytest.mark.parametrize("parts", ["bag", "words", "sentences"])
def test_texts_of_any_cut_are_explained(bert, method, parts):
    found = wt.explain(wt.model(bert), TEXT, method, parts=parts)
    assert np.isfinite(found.scores).all()
    assert found.scores.any()


def test_grad_cam_and_gelu_nets_are_refused_for_texts_with_a_way_out(bert):
    with pytest.raises(ValueError, match=r"grad_cam looks at feature maps .* integrated_gradients"):
        wt.explain(wt.model(bert), TEXT, "grad_cam")
    with pytest.raises(ValueError, match="GELU"):
        wt.explain(wt.model(bert), TEXT, "guided_backprop")


def test_a_model_without_padding_is_asked_one_text_at_a_time(bert):
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=15, n_positions=40, n_embd=16, n_layer=1, n_head=2, num_labels=2, pad_token_id=None,
                                     bos_token_id=2, eos_token_id=3)
    model = wt.model((transformers.GPT2ForSequenceClassification(config).double().eval(), bert[1]))
    found = wt.explain(model, TEXT, "integrated_gradients", steps=30, target=0, parts="words")
    assert abs(found.settings["completeness_gap"]) < 1e-3


# --- images behind a processor -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vision():
    """A tiny ResNet with random weights and a processor that enlarges images to 32 × 32 pixels."""
    torch.manual_seed(0)
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=3, layer_type="basic")
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    return transformers.ResNetForImageClassification(config).eval(), processor


@pytest.mark.parametrize("method", ["saliency", "integrated_gradients", "grad_cam", "guided_backprop", "saliency/smoothgrad"])
def test_hugging_face_images_are_explained_behind_their_processor(vision, method):
    image = RNG.integers(0, 256, (16, 24, 3), dtype=np.uint8)
    found = wt.explain(wt.model(vision), image, method, parts="grid:2x3", target=1)
    assert found.map.shape == (16, 24)
    assert found.scores.any()
    assert "laid over the image" in found.notes[0]


def test_saliency_behind_a_processor_is_the_gradient_at_its_pixels(vision):
    net, processor = vision
    image = RNG.integers(0, 256, (32, 32, 3), dtype=np.uint8)
    pixels = processor(images=[image], return_tensors="pt")["pixel_values"].requires_grad_()
    (gradient,) = torch.autograd.grad(net(pixels).logits[0, 2], pixels)
    found = wt.explain(wt.model(vision), image, "saliency", parts="grid:4x4", target=2, pooling="mean")
    np.testing.assert_allclose(found.scores, gradient[0].numpy().reshape(3, 4, 8, 4, 8).mean((0, 2, 4)).ravel(), rtol=1e-4, atol=1e-9)


def test_an_attack_through_a_processor_is_refused_with_a_way_out(vision):
    with pytest.raises(ValueError, match=r"image processor .* no gradient.*preprocess="):
        wt.attack(wt.model(vision), RNG.integers(0, 256, (32, 32, 3), dtype=np.uint8))


# --- what a reviewer broke ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(64, 64), (24, 48), (16, 24), (32, 32)])
def test_sums_behind_a_processor_are_the_maps_whatever_the_pictures_size(vision, size):
    image = RNG.integers(0, 256, (*size, 3), dtype=np.uint8)
    found = wt.explain(wt.model(vision), image, "integrated_gradients", parts="grid:2x2", target=1, baseline=0.0)
    total = wt.explain(wt.model(vision), image, "integrated_gradients", parts="grid:1x1", target=1, baseline=0.0).scores[0]
    assert found.scores.sum() == pytest.approx(total, rel=1e-5)


def test_what_lies_on_special_tokens_is_said(bert):
    found = wt.explain(wt.model(bert), TEXT, "integrated_gradients", target=1, steps=20, pooling="sum")
    assert any("lies on tokens outside of the parts" in note for note in found.notes)


def test_a_model_of_two_halves_is_cut_where_its_tokens_come_in(bert):
    torch.manual_seed(0)
    config = transformers.BartConfig(vocab_size=15, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                                     decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=40,
                                     num_labels=2, pad_token_id=0, bos_token_id=2, eos_token_id=3, decoder_start_token_id=2)
    model = wt.model((transformers.BartForSequenceClassification(config).double().eval(), bert[1]))
    found = wt.explain(model, TEXT, "saliency", target=0, parts="words")
    assert found.scores.any()


def test_a_processor_that_crops_is_said(vision):
    processor = transformers.ConvNextImageProcessor(size={"shortest_edge": 32}, crop_pct=0.5)
    image = RNG.integers(0, 256, (32, 32, 3), dtype=np.uint8)
    found = wt.explain(wt.model((vision[0], processor)), image, "saliency", parts="grid:2x2", target=1)
    assert any("cuts off the border" in note for note in found.notes)
