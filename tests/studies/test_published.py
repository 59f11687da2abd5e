"""The numbers of Hoedt et al. (2022) are the printed ones, and images of ImageNet have their classes."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from PIL import Image

from whytrust.studies import plausible, published
from whytrust.studies.plausible_claims import verdict

PAPER = "WHYTRUST_HOEDT_2022_TEXT"
"""Where an environment says it has the text of the paper, which is not ours to pass on."""


def test_the_published_numbers_are_those_of_the_tables():
    assert published.FLIPS["slic"]["ResNet-50"]["lime"] == 44.70
    assert published.FLIPS["slic"]["DenseNet161"]["guided_backprop/smoothgrad"] == 14.10
    assert published.FLIPS["grid"]["Inception v3"]["saliency/smoothgrad2"] == 18.20
    assert published.FLIPS["grid"]["AlexNet"]["guided_backprop/vargrad"] == 30.58
    assert published.ACCURACY["VGG16"] == {"before": 71.59, "after": 0.17, "adversaries": 49_912, "images": 50_000}
    assert published.ATTACK["AlexNet"]["epsilon"] == 0.1
    assert published.SEGMENTS["Inception v3"] == {"mean": 10.837, "sd": 2.384}
    assert published.NAMES["integrated_gradients/vargrad"] == "IG-VG"


def test_what_is_said_of_smoothing_in_the_deepest_nets_is_what_the_published_numbers_say():
    for cut, rows in published.FLIPS.items():
        for net in ("ResNet-50", "DenseNet161", "Inception v3"):
            gains = {name: rows[net][name] - rows[net][name.partition("/")[0]] for name in published.ENSEMBLES}
            assert all(gain > 0 for name, gain in gains.items() if not name.startswith("guided"))
            assert cut == "grid" or all(gain < 0 for name, gain in gains.items() if name.startswith("guided"))


def test_every_published_row_stands_in_the_paper():
    if PAPER not in os.environ:
        pytest.skip(f"the paper's text is not part of the repository; set {PAPER} to a file that has it")
    text = Path(os.environ[PAPER]).read_text(encoding="utf-8")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for rows in published.FLIPS.values():
        for net, rates in rows.items():
            for names in (published.STANDARD, published.ENSEMBLES):
                assert f"{net} {' '.join(f'{rates[name]:.2f}' for name in names)}" in lines
    for net, one in published.ACCURACY.items():
        assert f"{net} {one['before']:.2f} % {one['after']:.2f} % {one['adversaries']:,}" in lines
    for net, segments in published.SEGMENTS.items():
        assert f"{net.replace(' ', '') if net == 'Inception v3' else net} {segments['mean']:.3f} ± {segments['sd']:.3f}" in lines


def test_the_published_numbers_are_those_that_were_compared_with_the_paper():
    numbers = json.dumps([published.FLIPS, published.ACCURACY, published.SEGMENTS], sort_keys=True)
    assert hashlib.sha256(numbers.encode()).hexdigest()[:16] == "e10294de4087014b"


@pytest.mark.parametrize("in_folders", [False, True])
def test_images_of_imagenet_have_the_class_of_their_wordnet_number(tmp_path, in_folders):
    classes = {"n01440764": "tench", "n01443537": "goldfish", "n01484850": "great_white_shark", "n13133613": "ear"}
    listing = {str(i): [wnid, name] for i, (wnid, name) in enumerate(classes.items())}
    (tmp_path / "imagenet_class_index.json").write_text(json.dumps(listing), encoding="utf-8")
    for wnid, name in list(classes.items())[::2]:  # no goldfish here: numbers are those of the list, not of the folder
        for i in range(10):
            path = tmp_path / wnid / f"{i}.png" if in_folders else tmp_path / f"{wnid}_{name}_{i}.png"
            path.parent.mkdir(exist_ok=True)
            Image.new("RGB", (2, 2)).save(path)
    whole, share = plausible.imagenet_folder(tmp_path), plausible.imagenet_folder(tmp_path, 0.1)
    assert len(whole.items) == 20
    assert len(share.items) == 2
    assert {item.value for item in share.items} <= {item.value for item in whole.items}
    expected = {"n01440764": 0, "n01484850": 2}
    for item in whole.items:
        assert item.truth == expected[item.value.parent.name if in_folders else item.name.partition("_")[0]]


def test_a_name_with_a_bar_is_one_cell():
    assert published.table(["a", "b"], [["x | y", "z"]])[-1] == "| x \\| y | z |"


@pytest.mark.parametrize(("calls", "words"), [
    ((), "no data yet"), (("above", "on par"), "holds"), (("undecided",) * 2, "undecided"), (("below",) * 2, "does not hold"),
    (("below", "undecided", "undecided"), "does not hold for 1 of 3, undecided for 2"),
    (("above", "below", "undecided"), "holds for 1 of 3, the opposite for 1"), (("above", "undecided"), "holds for 1 of 2")])
def test_a_finding_is_told_with_how_many_tests_say_so(calls, words):
    assert verdict(calls) == words
