"""Recovery and pixel overlap against what is known by construction."""

import numpy as np
import pytest

from planted import GRID, explaining, planted_case
from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.domains.image import ImageParts
from whytrust.explanation import Explanation
from whytrust.measures import Case, Recovery
from whytrust.measures.recovery import overlap


def told(*parts, d=16):
    """An `explain` that names these parts first, in this order."""
    scores = np.zeros(d)
    scores[list(parts)] = np.arange(len(parts), 0, -1)
    return lambda question: {"told": Explanation.of(question, "told", scores)}


def test_sound_explainers_recover_the_planted_cause():
    names = ("lime", "occlusion", "saliency", "integrated_gradients")
    found = [Recovery((1,))(planted_case(part=seed % 16, seed=seed), explaining(*names), generator(0, seed))["1"]
             for seed in range(40)]
    assert all(one["flipped"] and one["parts"] == [seed % 16] for seed, one in enumerate(found))
    assert {name: np.mean([one["found"][name] for one in found]) >= 0.95 for name in names} == dict.fromkeys(names, True)


@pytest.mark.parametrize(("said", "found"), [((5, 6, 7), 3), ((5, 6, 0), 2), ((0, 5, 1), 1), ((0, 1, 2), 0)])
def test_what_is_found_is_counted(said, found):
    clean = np.full((8, 8), 0.1)
    changed = clean + np.select([GRID == 5, GRID == 6, GRID == 7], [0.6, 0.5, 0.4], 0.01)
    wrapped = CheckedModel(lambda batch: np.column_stack([np.ones(len(batch)), batch.sum(axis=(1, 2)) / 10]))
    case = Case(wrapped, ImageParts(changed, GRID, 0.0), clean, 0, 1)
    trial = Recovery((3,))(case, told(*said), generator(0))["3"]
    assert trial["parts"] == [5, 6, 7]
    assert trial["found"] == {"told": found, "magnitude": 3}


def test_only_the_kept_parts_are_changed_when_it_is_explained_again():
    seen = []

    def explain(question):
        seen.append(question)
        return told(5)(question)

    case = planted_case(part=5)
    Recovery((1,))(case, explain, generator(0))
    shown = seen[0].input[0]
    np.testing.assert_array_equal(shown[GRID == 5], case.parts.image[GRID == 5])
    np.testing.assert_array_equal(shown[GRID != 5], case.clean[GRID != 5])
    assert seen[0].target == 1


def test_inputs_that_fall_back_to_the_clean_label_are_left_out():
    clean = np.full((8, 8), 0.1)
    wrapped = CheckedModel(lambda batch: np.column_stack([np.full(len(batch), 0.55), batch.mean(axis=(1, 2))]))
    case = Case(wrapped, ImageParts(np.full((8, 8), 0.6), GRID, 0.0), clean, 0, 1)
    explained = []

    def explain(question):
        explained.append(question)
        return told(0)(question)

    assert Recovery((1, 3, 16))(case, explain, generator(0)) == {"1": {"flipped": False}, "3": {"flipped": False}}
    assert not explained


def test_overlap_is_the_share_of_the_top_pixels_in_the_changed_region():
    where = GRID == 5
    values = np.where(where, 1.0, 0.0)
    assert overlap(values, where, generator(0)) == 1.0
    assert overlap(-values, where, generator(0)) == 0.0
    half = np.where(where & (np.arange(64).reshape(8, 8) % 2 == 0), 2.0, np.where(GRID == 0, 1.0, 0.0))
    assert overlap(half, where, generator(0)) == 0.5
    by_chance = np.mean([overlap(np.zeros((8, 8)), where, generator(0, i)) for i in range(400)])
    assert by_chance == pytest.approx(4 / 64, abs=0.03)


def test_overlap_uses_the_map_and_not_the_pooled_scores():
    trial = Recovery((1,))(planted_case(part=5), explaining("saliency", "lime"), generator(0))["1"]
    assert trial["overlap"] == {"saliency": 1.0, "lime": 1.0}
    assert trial["overlap_random"] == 4 / 64


@pytest.mark.parametrize("ks", [(), (0,), (1.5,), (True,)])
def test_ks_must_be_numbers_of_parts(ks):
    with pytest.raises(ValueError, match="ks must be whole numbers"):
        Recovery(ks)
