"""What parts of different inputs have in common: words, columns, places, and groups of parts that are alike."""

import numpy as np
import pytest

import whytrust as wt
from whytrust.domains.audio import AudioParts
from whytrust.domains.image import ImageParts
from whytrust.domains.stems import StemParts
from whytrust.domains.tabular import TableParts, TableStatistics
from whytrust.domains.text import TextParts
from whytrust.features import features_of, shared_features

NOTHING = wt.model(lambda batch: np.zeros(len(batch)), name="nothing")


def words(*texts, cut="words"):
    return shared_features(NOTHING, [TextParts.cut(text, cut) for text in texts])


# --- names ------------------------------------------------------------------------------------------------------------


def test_a_word_is_one_feature_wherever_it_stands_and_its_case_counts():
    found = words("good film, good", "Good film")
    assert found.names == ("good", "film", "Good")
    assert [f.tolist() for f in found.of_parts] == [[0, 1, 0], [2, 1]]


def test_sentences_are_their_own_features_unless_they_are_equal():
    long = "This sentence is so long that its name must be cut off at some place, and so is the next. "
    found = words(f"{long}It ends.", f"{long[:-2]} one. It ends.", cut="sentences")
    assert [f.tolist() for f in found.of_parts] == [[0, 1], [2, 1]]
    assert len(set(found.names)) == 3
    assert max(map(len, found.names)) < 70


def test_a_column_is_one_feature_whatever_the_bin():
    table = np.arange(40.0).reshape(20, 2)
    statistics = TableStatistics.fit(table, names=["age", "height"])
    found = shared_features(NOTHING, [TableParts(row, statistics) for row in table[[0, 19]]])
    assert found.names == ("age", "height")
    assert [f.tolist() for f in found.of_parts] == [[0, 1], [0, 1]]


def test_stems_go_by_their_names(rng):
    mixes = [StemParts.of({"voice": rng.normal(size=400), name: rng.normal(size=400)}) for name in ("drums", "bass")]
    assert shared_features(NOTHING, mixes).names == ("voice", "drums", "bass")


def test_the_matrix_adds_up_sizes_of_the_parts_that_an_explanation_keeps():
    def score(texts):
        return np.array([3.0 * t.count("good") - 2.0 * t.count("bad") for t in texts])

    texts = ["good good bad", "bad film"]
    explained = wt.explain(score, texts, parts="words", method="occlusion")
    found = features_of(explained)
    assert found.names == ("good", "bad", "film")
    np.testing.assert_allclose(found.matrix(explained).toarray(), [[6, 2, 0], [0, 2, 0]], atol=1e-9)
    few = wt.explain(score, texts, parts="words", features=1, samples=50)
    assert (np.diff(found.matrix(few).indptr) == 1).all()
    with pytest.raises(ValueError, match="one explanation for each of the 2 inputs, got 1"):
        found.matrix(explained[:1])
    with pytest.raises(ValueError, match="explanation 0 must have the 3 parts"):
        found.matrix(explained[::-1])


def test_what_rounding_leaves_of_a_score_is_no_weight():
    """Enumerated, the word "and" has a weight of 1e-16 or so."""
    def score(texts):
        return np.array([0.1 * ("good" in t.split()) + 0.2 * ("dull" in t.split()) for t in texts])

    explained = wt.explain(score, ["good and dull", "and so"])
    assert features_of(explained).matrix(explained).nnz == 2


# --- images -----------------------------------------------------------------------------------------------------------


def planted(rng, place, size=32):
    """Noise on a dark ground, with upright bright stripes in one quarter."""
    image = np.clip(rng.normal(0.15, 0.02, (size, size, 3)), 0, 1)
    half = size // 2
    stripes = np.where(np.arange(half) % 4 < 2, 0.95, 0.6)
    image[half * (place // 2):half * (place // 2 + 1), half * (place % 2):half * (place % 2 + 1)] = stripes[None, :, None]
    return image


@pytest.mark.parametrize("describe", [None, ("colour",), ("texture",), ("colour", "texture")])
def test_two_planted_textures_are_two_components(rng, describe):
    places = [0, 3, 1, 2, 2, 0]
    images = [planted(rng, place) for place in places]
    model = wt.model(lambda batch: batch.mean(axis=(1, 2, 3)))
    found = shared_features(model, [ImageParts.cut(image, "grid:2x2", fill="black") for image in images], describe=describe)
    assert len(found.names) == 2
    striped = [f == f[place] for f, place in zip(found.of_parts, places, strict=True)]
    assert all(s.sum() == 1 for s in striped)
    assert len({int(f[place]) for f, place in zip(found.of_parts, places, strict=True)}) == 1
    bright = found.names[found.of_parts[0][0]]
    assert bright.startswith("bright")
    assert "upright stripes" in bright
    assert "silhouette" in found.about


def test_what_looks_alike_is_told_apart_by_what_it_is_to_the_model(rng):
    """All cells look the same but for one faint mark, which is all that the black box looks at."""
    images = [rng.normal(0.5, 0.01, (16, 16)).clip(0, 1) for _ in range(6)]
    for place, image in enumerate(images):
        image[8 * (place % 2), 8 * (place // 2 % 2)] = 0.9

    def marked(batch):
        p = (batch > 0.8).any(axis=(1, 2)) * 1.0
        return np.column_stack([1 - p, p])

    parts = [ImageParts.cut(image, "grid:2x2", fill=0.5) for image in images]
    found = shared_features(wt.model(marked), parts, describe=("model",))
    assert len(found.names) == 2
    for place, features in enumerate(found.of_parts):
        assert features.tolist().count(features[2 * (place % 2) + place // 2 % 2]) == 1


def test_a_net_is_asked_for_its_last_convolution(rng):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 80, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                              torch.nn.Linear(80, 2))
    model = wt.model(net, output="logit")
    images = [planted(rng, place).astype(np.float32) for place in (0, 3, 1)]
    parts = [ImageParts.cut(image, "grid:2x2", layout=model.layout) for image in images]
    found = shared_features(model, parts, describe=("model",))
    assert "the net's activations (0)" in found.about
    assert len(found.names) == 2
    again = shared_features(model, parts, describe=("model",))
    assert [f.tolist() for f in again.of_parts] == [f.tolist() for f in found.of_parts]
    flat = wt.model(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(32 * 32 * 3, 2)), output="logit")
    assert "with and without the part" in shared_features(flat, parts).about


def test_seeds_and_batches_do_not_change_what_is_found(rng):
    images = [rng.random((12, 12, 3)) for _ in range(4)]
    model = wt.model(lambda batch: batch.mean(axis=(1, 2)))
    parts = [ImageParts.cut(image, "grid:3x3", fill="noise") for image in images]
    one, two = (shared_features(model, parts, components=5, seed=3, batch_size=size) for size in (None, 2))
    assert len(one.names) == 5
    assert len(set(one.names)) == 5
    assert [f.tolist() for f in one.of_parts] == [f.tolist() for f in two.of_parts]
    assert "5 of them" in one.about


def test_inputs_are_streamed_and_nothing_composed_is_kept():
    """A sequence that makes each image when it is asked for, and a model that is asked about few at once."""
    alive, largest = [], []

    class Lazy:
        def __len__(self):
            return 12

        def __getitem__(self, index):
            if index >= 12:
                raise IndexError
            alive.append(index)
            return ImageParts.cut(np.random.default_rng(index).random((16, 16)), "grid:2x2")

    def score(batch):
        largest.append(len(batch))
        return batch.mean(axis=(1, 2))

    found = shared_features(wt.model(score), Lazy(), batch_size=4)
    assert len(found.of_parts) == 12
    assert max(largest) <= 4
    assert alive.count(5) == 1


def test_degenerate_images_have_as_many_components_as_there_are_different_parts():
    flat = [ImageParts.cut(np.full((8, 8), 0.5), "grid:2x2") for _ in range(3)]
    same = shared_features(NOTHING, flat)
    assert same.names == ("grey",)
    assert {int(i) for f in same.of_parts for i in f} == {0}
    alone = shared_features(NOTHING, [ImageParts.cut(np.arange(64.0).reshape(8, 8), "grid:2x2")], components=50)
    assert 1 <= len(alone.names) <= 4
    assert "of 50 asked for" in alone.about
    whole = shared_features(NOTHING, [ImageParts.cut(np.arange(64.0).reshape(8, 8), "grid:1x1")])
    assert len(whole.names) == 1


# --- places -----------------------------------------------------------------------------------------------------------


def test_places_are_features_where_all_inputs_are_cut_alike(rng):
    parts = [ImageParts.cut(rng.random((size, 40)), "grid:2x2") for size in (40, 41)]
    found = shared_features(NOTHING, parts, describe=("place",))
    assert found.names == parts[0].names
    assert [f.tolist() for f in found.of_parts] == [[0, 1, 2, 3]] * 2
    with pytest.raises(ValueError, match="input 1 is not cut as the first one"):
        shared_features(NOTHING, [parts[0], ImageParts.cut(rng.random((40, 40)), "grid:1x4")], describe=("place",))


# --- sounds -----------------------------------------------------------------------------------------------------------


def tone(hertz, rate=8000, seconds=1.0, loud=0.5):
    return loud * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)


def test_parts_of_waveforms_are_grouped_by_band_and_level(rng):
    """A low tone always, a high one late in some: low, high with a tone, and nothing."""
    waves = [tone(150) + np.where(np.arange(8000) >= 6000, tone(2500), 0) * late + rng.normal(0, 1e-3, 8000) for late in (1, 0, 1)]
    model = wt.model(lambda batch: np.abs(batch).mean(axis=1))
    found = shared_features(model, [AudioParts.cut(wave, "tf:2x2", rate=8000) for wave in waves], components=3)
    low, whistle = found.of_parts[0][0], found.of_parts[0][3]
    assert all(f[0] == f[2] == low for f in found.of_parts)
    assert [int(f[3] == whistle) for f in found.of_parts] == [1, 0, 1]
    assert found.names[low].startswith("low band")
    assert found.names[whistle].startswith("high band")
    assert "quiet" not in found.names[whistle]


def test_spectrograms_work_as_well_whatever_their_units(rng):
    for shift in (0.0, -5.0):
        cells = [rng.random((20, 12)) * 0.1 + np.where(np.arange(12) < 6, 2.0, 0.0) + shift for _ in range(3)]
        parts = [AudioParts.cut(one, "freq:2", hop_seconds=0.01) for one in cells]
        found = shared_features(wt.model(lambda batch: batch.mean(axis=(1, 2))), parts)
        assert len(found.names) == 2
        assert all(f[0] == found.of_parts[0][0] != f[1] for f in found.of_parts)


# --- what cannot be -----------------------------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused(rng):
    image, text = ImageParts.cut(rng.random((8, 8)), "grid:2x2"), TextParts.cut("a film")
    for parts, options, message in (
            ([], {}, "at least one input"), ([image, text], {}, "all inputs must be of one kind"),
            ([image], {"components": 0}, "components must be"), ([image], {"components": 2.5}, "components must be"),
            ([image], {"describe": ("band",)}, "some of colour, texture, model for images"),
            ([image], {"describe": ()}, "describe must be"), ([text], {"describe": ("model",)}, "its words, so leave it out"),
            ([image], {"describe": ("place", "colour")}, "or place alone")):
        with pytest.raises(ValueError, match=message):
            shared_features(NOTHING, parts, **options)
    ready = [wt.explain(lambda b: b.mean(axis=(1, 2)), rng.random((8, 8)), parts="grid:2x2", method="occlusion")]
    with pytest.raises(ValueError, match="ready-made explanations bring no model"):
        features_of(ready, describe=("model",))
