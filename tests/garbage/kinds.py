"""Every kind of file that is read, a whole one of each, and the door through which a user's would come in."""

import contextlib
import gzip
import io
import json
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import joblib
import numpy as np

import whytrust as wt
from garbage import mutators
from whytrust import cli, loading
from whytrust.domains import audio
from whytrust.domains import image as images
from whytrust.domains.tabular import TableStatistics
from whytrust.language import fluency
from whytrust.language import wordnet as wordnet_module
from whytrust.language.thesaurus import Thesaurus
from whytrust.language.vectors import WordVectors
from whytrust.language.wordnet import WordNet
from whytrust.language.written import Written
from whytrust.models.singing_voice import SingingVoiceNet
from whytrust.models.singing_voice import save as save_detector
from whytrust.models.songs import BANDS, FRAMES
from whytrust.studies import drawing, fragile_data, lime_pets, pitfalls_linear, spec, text_files
from whytrust.studies.songs import jamendo

MODEL = '''
import numpy as np


def pictures(batch):
    return np.array([np.nan_to_num(np.asarray(one, float)).clip(-1e6, 1e6).mean() for one in batch])


def texts(batch):
    return np.array([sum(map(ord, one[:1000])) % 97 / 97 for one in batch])


def rows(batch):
    return np.nan_to_num(np.asarray(batch, float)[:, :2]).clip(-1e6, 1e6).sum(axis=1)
'''
ARPA = r"""\data\
ngram 1=4
ngram 2=2

\1-grams:
-0.9 <s> -0.3
-0.6 </s>
-0.7 good -0.2
-0.8 film -0.1

\2-grams:
-0.3 <s> good
-0.4 good film

\end\
"""
SPEC = """model = "model.py:rows"
inputs = "rows.csv"
background = "rows.csv"
parts = "columns"
explainers = ["occlusion", "random"]
attack = {method = "nearest"}
trials = ["flip"]
ks = [1, 2]
draws = 3
seed = 7
limit = 2
keep = "maps"

[model_options]
threshold = 0.5
"""


@dataclass(frozen=True)
class Kind:
    """How such a file is called, what a whole one holds, and what is done with it."""

    name: str
    file: str
    made: Callable[[], bytes]
    door: Callable[[Path], object]
    text: bool = False
    deep: Callable[..., bytes] | None = None
    beside: Callable[[Path], object] = field(default=lambda folder: None)  # what must lie in its folder
    whole: bool = True  # is a whole one read, or refused as well?
    share: float = 1.0  # of the inputs that other kinds get: some take long


# --- doors ------------------------------------------------------------------------------------------------------------


@cache
def pictures():
    found = {}
    exec(MODEL, found)
    return found


def explained(path, model, **options):
    found = wt.explain(pictures()[model], path, "occlusion", **options)
    assert np.isfinite(found.scores).all()
    assert found.as_html()


MUCH = 1_000_000
"""Numbers in an input of which it is enough that it was read: a model may take its time for it."""


def picture(path):
    if images.read(path).size < MUCH:
        explained(path, "pictures", parts="grid:2x2")


def sound(path):
    if len(audio.read(path, 8000)[0]) < MUCH:
        explained(path, "pictures", parts="time:4", rate=8000)
    if len(audio.read(path)[0]) < MUCH:
        explained(path, "pictures", parts="time:4")


def command(*words):
    """The command line in this process; an error is one line, and code 2."""
    told, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
        code = cli.main([str(word) for word in words])
    if code:
        assert code == 2, (code, told.getvalue())
        (line,) = told.getvalue().splitlines()
        assert line.startswith("whytrust: "), line
        raise ValueError(line)
    assert said.getvalue().strip()


def on_command_line(model, *options):
    return lambda path: command("explain", f"{path.parent / 'model.py'}:{model}", path, "--method", "occlusion", *options)


def explanation(path):
    found = wt.Explanation.load(path)
    assert str(found)
    assert found.as_html()
    assert found.minus(found).as_html()


def gallery(path):
    assert wt.Gallery.load(path).explanations is not None
    wt.Gallery.load(path)._repr_html_()


def pick(path):
    found = wt.Picked.load(path)
    assert str(found)
    assert found.as_html()


def statistics(path):
    command("explain", f"{path.parent / 'model.py'}:rows", f"{path.parent / 'rows.csv'}:0", "--background", path, "--method", "occlusion")


def vectors(path):
    found = WordVectors.open(path)
    assert len(found) > 0
    found.similarity("good", "bad")
    found.nearest("good", 3, -1.0)


def pairs(path):
    Thesaurus.pairs(str(path))(Written.of("a good film"), 1)


def wordnet(path):
    for remembered in (wordnet_module._index, wordnet_module._exceptions, wordnet_module._data, wordnet_module._set):
        remembered.cache_clear()  # of the last file in this place
    found = WordNet(str(path.parent))
    for word in ("good", "film"):
        found.synonyms(word, "NOUN")


def graph(path):
    model = wt.model(path)
    scores = model(np.zeros((3, 4), np.float32))
    assert np.isfinite(scores).all()


def weights(path):
    loaded = loading.load(str(path))
    assert np.isfinite(loaded.model(np.zeros((2, FRAMES, BANDS), np.float32))).all()


def checkpoint(path):
    import torch

    from whytrust.models import checkpoints
    net = torch.nn.Linear(3, 2)
    assert checkpoints.resumed(path, net, torch.optim.Adam(net.parameters()), {"schedule": {"seed": 0}, "data": "d"}) >= 0


def folder_of_model(path):
    loaded = loading.load(f"hf:{path.parent}")
    assert np.isfinite(loaded.model(["a good film"])).all()


def song(path):
    folder = path.parent if path.parent.name != "filelists" else path.parent.parent
    found = jamendo(folder)
    for part in (found.train, found.valid, found.test):
        assert part[0].labels is not None


def arpa(path):
    fluency._ngrams.cache_clear()
    fluency.Trigram(str(path))(["a good film"])


def digits(path):
    assert len(pitfalls_linear.read(path).train)


def boxes(path):
    lime_pets.Pets(path.parent)._rows  # noqa: B018


# --- whole files ------------------------------------------------------------------------------------------------------


@cache
def rgb():
    return (np.random.default_rng(0).random((24, 32, 3)) * 255).astype(np.uint8)


def image(form, mode="RGB", **options):
    def made():
        from PIL import Image
        out = io.BytesIO()
        some = Image.fromarray(rgb()).convert(mode)
        some.save(out, form, **({"save_all": True, "append_images": [some.rotate(90)]} if options.pop("several", False) else {}), **options)
        return out.getvalue()
    return made


@cache
def wave(seconds=0.5, rate=8000):
    return (0.4 * np.sin(np.arange(int(seconds * rate)) / 7)).astype(np.float32)


def recorded(form, subtype=None, channels=2, seconds=0.5, rate=8000):
    def made():
        import soundfile
        out = io.BytesIO()
        soundfile.write(out, np.column_stack([wave(seconds, rate)] * channels), rate, format=form, subtype=subtype)
        return out.getvalue()
    return made


def saved(value):
    out = io.BytesIO()
    np.save(out, value)
    return out.getvalue()


def zipped(**arrays):
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def explained_json(kind):
    def made():
        item, options = {
            "image": (rgb(), {"parts": "grid:2x2"}), "text": ("a good film, and a bad one", {"parts": "words"}),
            "sound": (wave(), {"parts": "time:4", "rate": 8000}),
            "table": ({"a": 1.0, "b": 2.0}, {"background": [{"a": float(i), "b": float(-i)} for i in range(9)]})}[kind]
        if kind == "table":
            import pandas
            options = {"background": pandas.DataFrame(options["background"])}
        model = pictures()[{"image": "pictures", "sound": "pictures", "text": "texts", "table": "rows"}[kind]]
        return json.dumps(wt.explain(model, item, "lime", samples=64, **options).to_json()).encode()
    return made


def gallery_json():
    return json.dumps({"format": 1, "explanations": [json.loads(explained_json(kind)()) for kind in ("text", "table")]}).encode()


def pick_json():
    texts = ["a good film", "a bad film", "the film was good", "no good at all"]
    return json.dumps(wt.pick(pictures()["texts"], texts, budget=2, parts="words", samples=32).to_json()).encode()


def statistics_json():
    return json.dumps(TableStatistics.fit(np.random.default_rng(0).normal(size=(20, 3)).round(3)).to_json()).encode()


def csv(heading="a,b,c"):
    rows = np.random.default_rng(0).normal(size=(12, 3)).round(3)
    return (heading + "\n" + "\n".join(",".join(map(str, row)) for row in rows) + "\n").encode()


def vector_lines():
    rng = np.random.default_rng(0)
    words = ["good", "bad", "film", "movie", "fine", "naïve"]
    return ("6 5\n" + "\n".join(f"{word} " + " ".join(f"{x:.4f}" for x in rng.normal(size=5)) for word in words) + "\n").encode()


WORDNET = {"data": "  1 licence\n{0:08d} 03 n 02 good 0 goodness 0 001 ! {0:08d} n 0101 | what is good\n",
           "index": "  1 licence\ngood n 1 1 ! 1 1 {0:08d}\ngoodness n 1 0 1 0 {0:08d}\n"}


def wordnet_file(kind):
    return WORDNET[kind].format(len("  1 licence\n")).encode()


def whole_wordnet(folder):
    for part in ("noun", "verb", "adj", "adv"):
        for kind in WORDNET:
            if not (folder / f"{kind}.{part}").exists():
                (folder / f"{kind}.{part}").write_bytes(wordnet_file(kind))


def onnx_graph():
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    rng = np.random.default_rng(0)
    first, last = rng.normal(size=(4, 3)).astype(np.float32), rng.normal(size=3).astype(np.float32)
    made = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["a"]), helper.make_node("Softmax", ["a"], ["p"], axis=1)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])], [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(first, "w"), numpy_helper.from_array(last, "b")])
    return onnx.helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@cache
def detector():
    import tempfile

    import torch
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        save_detector(SingingVoiceNet(), Path(folder) / "d.safetensors", {"threshold": 0.5, "data": "none"})
        return (Path(folder) / "d.safetensors").read_bytes()


@cache
def kept_checkpoint():
    import tempfile

    import torch

    from whytrust.models import checkpoints
    with tempfile.TemporaryDirectory() as folder:
        net = torch.nn.Linear(3, 2)
        optimiser = torch.optim.Adam(net.parameters())
        net(torch.ones(1, 3)).sum().backward()
        optimiser.step()
        checkpoints.keep(Path(folder) / "c.safetensors", net, optimiser, 1, {"schedule": {"seed": 0}, "data": "d"})
        return (Path(folder) / "c.safetensors").read_bytes()


@cache
def hugging_face():
    """{name: bytes} of a very small BERT for texts."""
    import tempfile

    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast
    torch.manual_seed(0)
    words = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film"])}
    plain = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")
    config = BertConfig(vocab_size=len(words), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, max_position_embeddings=16)
    with tempfile.TemporaryDirectory() as folder:
        BertForSequenceClassification(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def with_model(folder):
    (folder / "model.py").write_text(MODEL)
    if not (folder / "rows.csv").exists():
        (folder / "rows.csv").write_bytes(csv())


def in_three_parts(folder):
    """A set of annotated songs, of which one file will be replaced."""
    root = folder if folder.name != "filelists" else folder.parent
    (root / "filelists").mkdir(exist_ok=True)
    for part in ("train", "valid", "test"):
        (root / f"{part}.wav").write_bytes(recorded("WAV", seconds=2.0, channels=1)())
        (root / f"{part}.lab").write_bytes(b"0 1.0 nosing\n1.0 2.0 sing\n")
        (root / "filelists" / f"{part}.txt").write_text(f"{part}.mp3\n")


def with_others(folder):
    for name, raw in hugging_face().items():
        (folder / name).write_bytes(raw)


def of_hugging_face(name, **options):
    return Kind(f"Hugging Face {name}", f"hf/{name}", lambda: hugging_face()[name], folder_of_model, beside=with_others, share=0.5, **options)


class Bomb:
    """What a pickle does to whoever reads it: it leaves a mark."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return open, (self.mark, "w")


def pickled():
    return pickle.dumps({"mark": math.pi})


def joined():
    out = io.BytesIO()
    joblib.dump(np.arange(5), out)
    return out.getvalue()


def untrusted(path):
    loading.load(str(path))


LABELLED = b"a good film\tgood\na bad film\tbad\nno film at all\tbad\nwhat a film\tgood\n"
KINDS = [
    Kind("PNG", "x.png", image("PNG"), picture, deep=mutators.rechecked_png),
    Kind("PNG, palette", "x.png", image("PNG", "P"), picture, deep=mutators.rechecked_png, share=0.5),
    Kind("PNG, 16 bits", "x.png", image("PNG", "I;16"), picture, deep=mutators.rechecked_png, share=0.5),
    Kind("JPEG", "x.jpg", image("JPEG"), picture), Kind("JPEG, CMYK", "x.jpeg", image("JPEG", "CMYK", progressive=True), picture, share=0.5),
    Kind("GIF", "x.gif", image("GIF", "P", several=True), picture), Kind("BMP", "x.bmp", image("BMP"), picture),
    Kind("TIFF", "x.tif", image("TIFF"), picture), Kind("TIFF, packed", "x.tiff", image("TIFF", compression="tiff_lzw"), picture),
    Kind("TIFF, of floats", "x.tiff", image("TIFF", "F"), picture, share=0.5),
    Kind("WebP", "x.webp", image("WEBP"), picture), Kind("WebP, lossless", "x.webp", image("WEBP", lossless=True), picture, share=0.5),
    Kind("WAV", "x.wav", recorded("WAV"), sound), Kind("WAV of floats", "x.wav", recorded("WAV", "FLOAT", 1), sound),
    Kind("FLAC", "x.flac", recorded("FLAC"), sound), Kind("OGG", "x.ogg", recorded("OGG", "VORBIS"), sound), Kind("Opus", "x.opus", recorded("OGG", "OPUS"), sound, share=0.5),
    Kind("MP3", "x.mp3", recorded("MP3"), sound), Kind("AIFF", "x.aiff", recorded("AIFF"), sound, share=0.5), Kind("AU", "x.au", recorded("AU"), sound, share=0.5),
    Kind("CAF", "x.caf", recorded("CAF", "PCM_16"), sound, share=0.5), Kind("W64", "x.w64", recorded("W64", "PCM_16"), sound, share=0.5),
    Kind(".lab", "train.lab", lambda: b"# of train\n0 1.0 nosing\n1.0 1.5 sing\n1.5 2.0 nosing\n", song, text=True, beside=in_three_parts),
    Kind("list of songs", "filelists/train.txt", lambda: b"# songs\ntrain.mp3\n", song, text=True, beside=in_three_parts, share=0.5),
    Kind("TOML", "x.toml", SPEC.encode, lambda path: spec.load(str(path)), text=True, deep=mutators.other_toml, beside=with_model),
    Kind("explanation of an image", "x.json", explained_json("image"), explanation, text=True, deep=mutators.other_json),
    Kind("explanation of a text", "x.json", explained_json("text"), explanation, text=True, deep=mutators.other_json),
    Kind("explanation of a sound", "x.json", explained_json("sound"), explanation, text=True, deep=mutators.other_json),
    Kind("explanation of a row", "x.json", explained_json("table"), explanation, text=True, deep=mutators.other_json),
    Kind("gallery", "x.json", gallery_json, gallery, text=True, deep=mutators.other_json),
    Kind("pick", "x.json", pick_json, pick, text=True, deep=mutators.other_json),
    Kind("statistics of a table", "x.json", statistics_json, statistics, text=True, deep=mutators.other_json, beside=with_model),
    Kind("word vectors", "x.txt", vector_lines, vectors, text=True), Kind("word vectors, packed", "x.txt.gz", lambda: gzip.compress(vector_lines(), mtime=0), vectors, deep=mutators.repacked_gz),
    Kind("pairs of words", "x.txt", lambda: b"good fine\nfilm movie\nbad poor\n", pairs, text=True, share=0.5),
    Kind("WordNet's index", "index.noun", lambda: wordnet_file("index"), wordnet, text=True, beside=whole_wordnet, share=0.5),
    Kind("WordNet's data", "data.noun", lambda: wordnet_file("data"), wordnet, text=True, beside=whole_wordnet, share=0.5),
    Kind("language model, ARPA", "x.arpa", ARPA.encode, arpa, text=True, share=0.5),
    Kind("ONNX", "x.onnx", onnx_graph, graph, deep=mutators.other_graph),
    Kind(".npy, an image", "x.npy", lambda: saved(rgb()), on_command_line("pictures", "--parts", "grid:2x2"), deep=mutators.other_head, beside=with_model),
    Kind(".npy, texts", "x.npy", lambda: saved(np.array(["a good film", "a bad one"])), on_command_line("texts", "--parts", "words"), deep=mutators.other_head, beside=with_model, share=0.5),
    Kind(".npy, a spectrogram", "x.npy", lambda: saved(np.random.default_rng(0).random((200, 80)).astype(np.float32)), drawing.read_piece, deep=mutators.other_head),
    Kind(".npz", "x.npz", lambda: zipped(x_train=np.zeros((4, 8, 8)), y_train=np.arange(4), x_test=np.ones((30, 8, 8)), y_test=np.arange(30)), digits, deep=mutators.repacked_npz),
    Kind(".csv, a row", "x.csv", csv, lambda path: command("explain", f"{path.parent / 'model.py'}:rows", f"{path}:1", "--background", path.parent / "rows.csv", "--method", "occlusion"),
         text=True, beside=with_model),
    Kind(".csv, background", "x.csv", csv, lambda path: command("explain", f"{path.parent / 'model.py'}:rows", f"{path.parent / 'rows.csv'}:1", "--background", path, "--method", "occlusion"),
         text=True, beside=with_model),
    Kind(".csv, texts", "x.csv", lambda: b"text,label\n\"a good film, then\",1\na bad film,0\n", lambda path: cli.reading.column(path, None), text=True),
    Kind(".csv, boxes", "artifact_boxes.csv", lambda: b"image,bbox_xmin,bbox_ymin,bbox_xmax,bbox_ymax\na_1.jpg,1,2,3,4\n", boxes, text=True, share=0.5),
    Kind(".tsv, texts", "x.tsv", lambda: b"text\tlabel\na good film, then\t1\na bad film\t0\n", lambda path: cli.reading.column(path, "text"), text=True),
    Kind(".tsv, labelled texts", "x.tsv", lambda: LABELLED, text_files.read, text=True),
    Kind(".tsv, a set", "test.tsv", lambda: LABELLED, lambda path: fragile_data.read(path.parent), text=True, beside=lambda folder: (folder / "train.tsv").write_bytes(LABELLED.replace(b"film", b"play")), share=0.5),
    Kind(".txt, a text", "x.txt", lambda: "a good film, and a bad one; naïve\n".encode(), lambda path: explained(path, "texts", parts="words"), text=True),
    Kind("safetensors, a detector", "x.safetensors", detector, weights, deep=mutators.other_tensors),
    Kind("safetensors, a checkpoint", "x.safetensors", kept_checkpoint, checkpoint, deep=mutators.other_tensors, share=0.5),
    of_hugging_face("config.json", text=True, deep=mutators.other_json), of_hugging_face("tokenizer.json", text=True, deep=mutators.other_json),
    of_hugging_face("tokenizer_config.json", text=True, deep=mutators.other_json), of_hugging_face("model.safetensors", deep=mutators.other_tensors),
    Kind("pickle, not trusted", "x.pkl", pickled, untrusted, whole=False, share=0.25), Kind("joblib, not trusted", "x.joblib", joined, untrusted, whole=False, share=0.25),
]
BY_NAME = {kind.name: kind for kind in KINDS}
