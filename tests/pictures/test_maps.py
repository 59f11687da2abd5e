"""Pictures of scores without a sign, and of maps."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import whytrust as wt
from whytrust.pictures import overlays, shown

sys.path.insert(0, str(Path(__file__).parents[1] / "explainers"))
nets = importlib.import_module("nets")
IMAGE = np.random.default_rng(0).normal(size=(3, 8, 8))
MODEL = wt.model(nets.residual())


def explained(method, **more):
    return wt.explain(MODEL, IMAGE, method, target=1, parts="grid:2x2", **more)


def test_scores_without_a_sign_are_not_said_to_speak_for_or_against():
    page, text = explained("saliency").as_html(), str(explained("saliency"))
    assert "matters to class 1, for or against" in page
    assert "speaks against" not in page
    assert "+0." not in text
    signed = explained("saliency", pooling="mean").as_html()
    assert "speaks against class 1" in signed


def test_the_page_shows_the_map_once_and_the_gap_of_completeness():
    page = explained("integrated_gradients", steps=3).as_html()
    assert page.count("The map that the scores were pooled from") == 1
    assert "Completeness gap" in page
    assert "The map that the scores were pooled from" not in explained("occlusion").as_html()


def test_a_map_has_the_full_colour_at_its_largest_values_and_white_at_zero():
    found = explained("input_x_gradient")
    map = np.zeros((8, 8), dtype=np.float32)
    map[0, 0], map[7, 7] = 2, -2
    pixels = overlays.map_pixels(found.view, map)
    assert tuple(pixels[0, 0]) == (0, 114, 178)
    assert tuple(pixels[-1, -1]) == (221, 107, 0)
    assert tuple(pixels[len(pixels) // 2, 0]) == (255, 255, 255)
    assert shown.mark(explained("saliency"), 1.0) == ""


def test_methods_side_by_side_are_one_picture_each(tmp_path):
    es = explained(["saliency", "integrated_gradients", "occlusion"])
    figure = wt.Gallery(tuple(es)).plot(style="maps")
    titles = [t.get_text() for t in figure.texts]
    assert [t for t in titles if t in ("saliency", "integrated gradients", "occlusion")] == ["saliency", "integrated gradients", "occlusion"]
    wt.Gallery(tuple(es)).save(tmp_path / "maps.html", style="maps")
    assert (tmp_path / "maps.html").read_text().count("The map that the scores were pooled from") == 2


def test_maps_are_for_pictures():
    e = wt.explain(lambda texts: [[0.1, 0.9]] * len(texts), "a good film")
    with pytest.raises(ValueError, match="style='maps' is for images and sounds"):
        e.plot(style="maps")


@pytest.mark.parametrize("bad", [{"map": [[1, 2]]}, {"map": "x"}, {"map": {"zlib": "!!", "dtype": "<f4", "shape": [2, 2]}},
                                 {"map": {"zlib": "eJxjYGBgAAAABAAB", "dtype": "<f4", "shape": [1, 1]}}])
def test_a_file_with_a_map_that_does_not_fit_is_refused(bad):
    data = explained("saliency").to_json() | bad
    with pytest.raises(ValueError):
        wt.Explanation.from_json(data)
