"""The image experiments of Hoedt et al. (2022): a small run from end to end, its tables against naive loops, and LIME as theirs."""

import enum
import json
import math
import shutil
import sys
import types

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
pytest.importorskip("skimage")
pytest.importorskip("matplotlib")

from whytrust import api  # noqa: E402
from whytrust.cli import main  # noqa: E402
from whytrust.core import generator  # noqa: E402
from whytrust.domains.image import ImageParts, segment  # noqa: E402
from whytrust.question import Question  # noqa: E402
from whytrust.store import Block, Result, Store  # noqa: E402
from whytrust.studies import architectures, plausible, published, reproduce  # noqa: E402
from whytrust.studies.architectures import Architecture  # noqa: E402

NETS = ("tiny-a", "tiny-b")


class Tiny(torch.nn.Module):
    """Two layers of random weights, large enough for small changes of an image to change the label."""

    def __init__(self, seed, classes=6):
        super().__init__()
        made = torch.Generator().manual_seed(seed)
        self.conv = torch.nn.Conv2d(3, 8, 5, stride=2)
        self.relu = torch.nn.ReLU()
        self.last = torch.nn.Linear(8 * 14 * 14, classes)
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=made) * 0.2

    def forward(self, images):
        return self.last(self.relu(self.conv(images)).flatten(1))


class Additive(torch.nn.Module):
    """Each pixel speaks for itself."""

    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.randn((2, 3 * 16 * 16), generator=torch.Generator().manual_seed(5)))

    def forward(self, images):
        return images.flatten(1) @ self.weights.T + 0.5


def blocks_of_colour(seed):
    """An image in which SLIC finds several segments."""
    random = np.random.default_rng(seed)
    return np.kron(random.integers(0, 256, (4, 4, 3)), np.ones((9, 9, 1))).astype(np.uint8)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for i in range(1, 5):
        Image.fromarray(blocks_of_colour(i)).save(folder / f"n0000000{i}_thing.png")
    (folder / "n00000005_broken.png").write_bytes(b"no image at all")
    index = {str(i): [f"n0000000{i}", f"thing {i}"] for i in range(6)}
    (folder / "imagenet_class_index.json").write_text(json.dumps(index))
    return folder


@pytest.fixture(scope="module")
def run(pictures, tmp_path_factory):
    """A finished run of two tiny nets on four images and a broken one."""
    folder = tmp_path_factory.mktemp("run") / "plausible"
    with pytest.MonkeyPatch.context() as patch:
        for seed, name in enumerate(NETS):
            patch.setitem(architectures.KNOWN, name, Architecture(name, lambda seed=seed: Tiny(seed).eval(), 32, 32))
        for name, value in {"COPIES": 2, "ITERATIONS": 30}.items():
            patch.setattr(plausible, name, value)
        plausible._loaded.cache_clear()
        made = reproduce.plausible("all", str(pictures), 1.0, 2, NETS, folder, 1, 0)
        plausible._loaded.cache_clear()
        yield made


@pytest.fixture(scope="module")
def records(run):
    return list(Store.open(run).records())


@pytest.fixture(scope="module")
def found(run):
    return json.loads(reproduce.report(run, as_json=True))


def fooled(records, net=None):
    return [r for r in records if r["status"] == "ok" and net in (None, r["model"])]


def rows_of(text, heading):
    """The rows of the first table under a heading: {first cell: the other cells}."""
    body = text.split(f"## {heading}")[1].split("\n## ")[0]
    lines = [line.strip("|").split("|") for line in body.splitlines() if line.startswith("|")]
    return [cell.strip() for cell in lines[0]], {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines[2:]}


# --- the run ----------------------------------------------------------------------------------------------------------


def test_a_run_has_every_explainer_in_both_cuts_and_the_costly_ones_for_the_first_images_alone(records):
    assert len(fooled(records)) >= 6
    for record in fooled(records):
        first = int(record["case"].partition(".")[2]) < 2
        for cut in ("slic", "grid"):
            trial = record["trials"][cut]
            names = {name for name in trial["flip"]["any"] if ":" not in name}
            costly = {name for name in published.ENSEMBLES if name.startswith("integrated")}
            expected = set(published.NAMES) - (set() if first else costly)
            assert names == expected | {"magnitude", "magnitude_mean", "oracle"}
            assert ("recovery" in trial) == first
            assert {f"{n}:{how}" for n in published.GRADIENTS for how in ("mean", "mean_pos")} <= set(trial["flip"]["any"])
            assert all(bits[-1] == "1" and len(bits) == record["d"][cut] for bits in trial["flip"]["any"].values())
        assert record["d"]["grid"] == 16
        assert record["attack"]["linf"] <= 0.05 * (1 + 1e-6)


def test_a_broken_image_is_recorded_as_failed_and_counted(records, found, run):
    broken = [r for r in records if r["name"] == "n00000005_broken"]
    assert [r["status"] for r in broken] == ["failed"] * 2
    assert found["cases"] == {"done": 10, "of": 10, "failed": 2}
    assert [found["accuracy"]["nets"][net]["failed"] for net in NETS] == [1, 1]
    assert "10 of 10 cases are done; 2 failed (the first: " in reproduce.report(run)


def test_the_accuracies_are_those_of_a_naive_count(records, found):
    for net in NETS:
        done = [r for r in records if r["model"] == net and r["status"] != "failed"]
        before = sum(r["clean_label"] == int(r["name"][8]) for r in done)  # the number in the file's name is its class
        after = sum((r["label"] if r["status"] == "ok" else r["clean_label"]) == int(r["name"][8]) for r in done)
        one = found["accuracy"]["nets"][net]
        assert one["before"]["n"] == len(done) == 4
        assert one["before"]["value"] == pytest.approx(before / 4)
        assert one["after"]["value"] == pytest.approx(after / 4)
        assert one["adversaries"] == len(fooled(records, net))


@pytest.mark.parametrize(("cut", "heading"), [("slic", "Tables 2 and 3"), ("grid", "Tables 7 and 8")])
def test_the_flip_tables_are_those_of_a_naive_count_and_show_the_published_numbers(records, run, cut, heading):
    header, rows = rows_of((run / "tables.md").read_text(), heading)
    assert header == ["explainer", *NETS, "all nets", *(f"*{net}*" for net in published.NETS)]
    for column, net in enumerate((*NETS, None)):
        judged = [r for r in fooled(records, net) if r["d"][cut] > 3]
        for name, label in published.NAMES.items():
            flips = [int(r["trials"][cut]["flip"]["any"][name][2]) for r in judged if name in r["trials"][cut]["flip"]["any"]]
            assert rows[label][column].startswith(f"{100 * sum(flips) / len(flips):.1f} [")
            assert rows[label][column].endswith(f"n {len(flips)}")
        expected = [r["trials"][cut]["random"]["any"][2] for r in judged]
        assert rows["*random, expected*"][column].startswith(f"{100 * sum(expected) / len(expected):.1f} [")
    assert rows["GBP-SG²"][3:] == [f"{published.FLIPS[cut][net]['guided_backprop/smoothgrad2']:.2f}" for net in published.NETS]
    assert rows["*magnitude*"][3:] == ["–"] * 5


def test_a_curve_lays_int_of_d_times_p_parts(records, found):
    for cut in ("slic", "grid"):
        for i, share in enumerate(range(2, 11)):
            flips = []
            for record in fooled(records, NETS[0]):
                k = share * record["d"][cut] // 10
                flips.append(int(record["trials"][cut]["flip"]["any"]["saliency"][k - 1]) if k else 0)
            assert found["curves"][cut][NETS[0]]["saliency"]["value"][i] == pytest.approx(sum(flips) / len(flips))


def test_recovery_counts_what_was_found_and_chance_is_hypergeometric(records, found):
    from scipy.stats import hypergeom

    seen = 0
    for cut in ("slic", "grid"):
        for k in (1, 3, 5):
            tried = [(r["trials"][cut]["recovery"][str(k)], r["d"][cut]) for r in fooled(records)
                     if str(k) in r["trials"][cut].get("recovery", {})]
            still = [(one, d) for one, d in tried if one["flipped"]]
            told = found["recovery"][cut]["all nets"][str(k)]
            assert (told["tried"], told["n"]) == (len(tried), len(still))
            assert told["counts"]["lime"] == [sum(one["found"]["lime"] == j for one, _ in still) for j in range(k + 1)]
            if still:
                seen += 1
                assert told["random"] == pytest.approx(np.mean([hypergeom(d, k, k).pmf(range(k + 1)) for _, d in still], axis=0))
                assert told["random_share"] == pytest.approx(np.mean([k / d for _, d in still]))
    assert seen


def test_the_numbers_of_segments_are_those_of_numpy(records, found):
    counts = [r["d"]["slic"] for r in fooled(records, NETS[1])]
    assert found["segments"]["nets"][NETS[1]] == pytest.approx(
        {"n": len(counts), "mean": np.mean(counts), "sd": np.std(counts), "least": min(counts), "most": max(counts)})


def test_every_figure_is_drawn(run):
    names = {path.name for path in (run / "figures").glob("*.png")}
    assert names >= {"figure-04-poolings.png", "figure-05-cuts.png", "figure-06-baselines.png", "figure-07-nets.png",
                     *(f"figure-10-adversaries-{net}.png" for net in NETS)}
    for name in names:
        with Image.open(run / "figures" / name) as picture:
            pixels = np.asarray(picture.convert("L"))
        assert pixels.std() > 5  # something is on it
        assert (pixels[:, :3] == 255).all(), name  # and nothing touches the edges
        assert (pixels[:, -3:] == 255).all(), name
        assert (pixels[:3] == 255).all(), name


# --- asking for parts, and for a report of what is there ----------------------------------------------------------------


def test_a_report_of_a_run_that_is_not_finished_says_so(run, tmp_path):
    part = tmp_path / "part"
    shutil.copytree(run, part)
    last = Store.open(run).blocks[-1]
    (part / "records" / f"{last.id}.jsonl").unlink()
    done = 10 - len(last.cases)
    text = reproduce.report(part)
    assert f"{done} of 10 cases are done, {len(last.cases)} are not" in text
    folder = reproduce.plausible("curves", None, 1.0, 2, NETS, part, 1, 0)
    assert folder == part
    assert (part / "tables.md").read_text() == reproduce.report(part)


def test_a_run_of_which_nothing_is_done_is_reported_too(run, tmp_path):
    nothing = tmp_path / "nothing"
    shutil.copytree(run, nothing, ignore=shutil.ignore_patterns("*.jsonl", "figures"))
    assert "0 of 10 cases are done" in reproduce.report(nothing)
    found = json.loads(reproduce.report(nothing, as_json=True))
    assert {one["verdict"] for one in found["claims"]} == {"no data yet"}
    reproduce.plausible("all", None, 1.0, 2, NETS, nothing, 1, 0)
    assert not list((nothing / "figures").glob("*.png"))


def test_a_run_is_not_reported_on_as_another_one(run, capsys):
    words = ["reproduce", "plausible", "flips", "--out", str(run)]
    for options, held in ((["--models", "tiny-a"], "--models tiny-a,tiny-b"), (["--few", "7"], "--few 2"),
                          (["--protocol", "paper"], "--protocol usual")):
        assert main([*words, *options]) == 2
        assert f"{options[0]} {options[1]} is not what this run was made with, {held}" in capsys.readouterr().err
    assert main([*words, "--models", ",".join(NETS), "--few", "2"]) in (0, 1)


def test_an_experiment_is_told_by_itself(run):
    found = json.loads(reproduce.report(run, True, "segments"))
    assert set(found) & set(reproduce.EXPERIMENTS) == {"segments"}
    assert "Table 6" in reproduce.report(run, False, "segments")
    assert "Table 1" not in reproduce.report(run, False, "segments")
    assert {one["experiment"] for one in json.loads(reproduce.report(run, True, "poolings"))["claims"]} == {"poolings"}


def test_an_unknown_experiment_names_the_nearest(tmp_path):
    with pytest.raises(ValueError, match="got 'flip' \\(did you mean 'flips'\\?\\)"):
        reproduce.plausible("flip", None, 1.0, 2, NETS, tmp_path, 1, 0)


def test_without_data_there_must_be_a_run(tmp_path):
    with pytest.raises(ValueError, match="--data must name a folder of ImageNet images"):
        reproduce.plausible("all", None, 1.0, 2, NETS, tmp_path / "none", 1, 0)
    assert not (tmp_path / "none").exists()


def test_a_run_of_another_study_is_no_reproduction(run, tmp_path):
    Store.create(tmp_path / "other", {"study": "audit", "blocks": [Block("0", ("0",))], "spec": {}, "seed": 0}).close()
    assert not reproduce.is_reproduction(tmp_path / "other")
    assert not reproduce.is_reproduction(tmp_path)
    assert reproduce.is_reproduction(run)


# --- what is claimed of the paper's findings ----------------------------------------------------------------------------


def planted(folder, rates, images=40, nets=1, d=10):
    """A run in which each explainer flips with so many parts that k = 3 flips at the given rates, always the first images."""
    cases = [f"{net}.{i:05d}" for i in range(images) for net in range(nets)]
    blocks = [Block("0000-0", tuple(cases))]
    manifest = {"study": "plausible", "seed": 0, "about": {"data": "planted"}, "blocks": blocks,
                "spec": {"models": [f"net{n}" for n in range(nets)], "images": images, "few": 0, "draws": 5}}
    store = Store.create(folder, manifest)
    results = []
    for case in cases:
        i = int(case.partition(".")[2])
        trials = {}
        for cut in ("slic", "grid"):
            flip = {name: "0" * 2 + "1" * (d - 2) if i < images * rates.get((cut, name), 0.2) else "0" * (d - 1) + "1"
                    for name in (*published.NAMES, "magnitude", "magnitude_mean", "oracle")}
            trials[cut] = {"k": list(range(1, d + 1)), "flip": {"any": flip}, "random": {"any": [0.2] * (d - 1) + [1.0]}}
        results.append(Result({"case": case, "status": "ok", "name": case, "truth": 1, "clean_label": 1, "label": 2,
                               "d": {"slic": d, "grid": d}, "trials": trials,
                               "attack": {"epsilon": 0.05, "iterations": 9, "linf": 0.05, "l2": 1.0}}))
    store.write(blocks[0], results)
    store.close()
    return {one["where"] + one["said"][:9]: one for one in json.loads(reproduce.report(folder, True, "flips"))["claims"]}


def test_lime_is_called_best_where_it_is_and_not_where_it_is_not(tmp_path):
    best = planted(tmp_path / "best", {("slic", "lime"): 0.9})
    assert best["§ 6.2 (iv)LIME is a"]["verdict"] == "holds"
    assert best["§ 6.2 (i)SLIC segm"]["verdict"] == "holds for 1 of 4"
    assert best["§ 6.2 (i)SLIC segm"]["tests"]["LIME"]["value"] == pytest.approx(0.7)
    assert best["oursthe same "]["tests"]["LIME"]["value"] == pytest.approx(0.7)  # random gains nothing
    worst = planted(tmp_path / "worst", {("slic", name): 0.9 for name in published.NAMES if name != "lime"})
    assert worst["§ 6.2 (iv)LIME is a"]["verdict"] == "does not hold"
    assert worst["§ 6.2 (v)smoothing"]["verdict"] == "undecided"  # all are alike


def test_smoothing_that_harms_is_called_so(tmp_path):
    rates = {("slic", name): 0.1 for name in published.ENSEMBLES} | {("slic", name): 0.7 for name in published.STANDARD}
    found = planted(tmp_path / "harm", rates)
    assert found["§ 6.2 (v)smoothing"]["verdict"] == "does not hold"
    assert {test["call"] for test in found["§ 6.2 (v)smoothing"]["tests"].values()} == {"below"}
    most = found["§ 6.2 (vi)in most c"]["tests"]
    assert most["LIME, SLIC"]["value"] == pytest.approx(0.5 - 0.7)
    assert most["LIME, rectangles"]["call"] == "above"


def test_the_same_images_for_more_nets_are_no_more_evidence(tmp_path):
    one, four = (planted(tmp_path / str(nets), {("slic", "lime"): 0.4}, 20, nets)["§ 6.2 (iv)LIME is a"]["tests"]["IG"]
                 for nets in (1, 4))
    assert four["n"] == 4 * one["n"]
    assert four["high"] - four["low"] == pytest.approx(one["high"] - one["low"], rel=0.02)


def test_cases_with_three_segments_are_left_out_and_counted(tmp_path):
    planted(tmp_path / "few", {}, images=6, d=3)
    found = json.loads(reproduce.report(tmp_path / "few", True, "flips"))["flips"]["slic"]["nets"]["net0"]
    assert found["left_out"] == 6
    assert found["rates"]["lime"]["n"] == 0
    assert "3 segments or fewer: 6 of net0" in reproduce.report(tmp_path / "few", False, "flips")
    planted(tmp_path / "four", {}, images=6, d=4)
    four = json.loads(reproduce.report(tmp_path / "four", True, "flips"))["flips"]["slic"]["nets"]["net0"]
    assert (four["left_out"], four["rates"]["lime"]["n"]) == (0, 6)


# --- LIME as the paper's code has it ------------------------------------------------------------------------------------


def asked(net, image, target=1):
    model = api.model(net.eval(), output="logit", layout="NCHW", name="net")
    labels = segment(np.moveaxis(image, 0, -1), "grid:3x2")
    return Question(model, ImageParts(image, labels, 0.0, True), target), labels


def test_lime_is_weighted_least_squares_with_cosine_distances_between_the_composed_images(rng):
    image = rng.normal(size=(3, 32, 32)).astype(np.float32)
    net = Tiny(3)
    question, labels = asked(net, image)
    found = plausible.PaperLime(60)(question, generator(7, "here"))
    masks = generator(7, "here").random((60, question.d)) < 0.5
    logits, weights = [], []
    for mask in masks:
        composed = image * mask[labels][None]
        with torch.no_grad():
            logits.append(float(net(torch.from_numpy(composed)[None])[0, 1]))
        a, b = image.ravel().astype(float), composed.ravel().astype(float)
        cosine = a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-12)
        weights.append(math.exp(-((1 - cosine) ** 2) / (2 * 0.25**2)))
    design, w = np.column_stack([np.ones(60), masks]), np.diag(weights)
    normal = np.linalg.solve(design.T @ w @ design, design.T @ w @ np.array(logits))
    assert found.scores == pytest.approx(normal[1:], abs=2e-6 * np.abs(normal).max())
    assert found.intercept == pytest.approx(normal[0], abs=2e-6 * np.abs(normal).max())
    residual = np.array(logits) - design @ normal
    mean = np.average(logits, weights=weights)
    assert found.fidelity == pytest.approx(1 - np.average(residual**2, weights=weights)
                                           / np.average((np.array(logits) - mean) ** 2, weights=weights), abs=1e-5)


def test_lime_is_exact_on_a_model_in_which_each_pixel_speaks_for_itself(rng):
    image = rng.normal(size=(3, 16, 16)).astype(np.float32)
    net = Additive()
    question, labels = asked(net, image)
    found = plausible.PaperLime(64)(question, generator(0, "additive"))
    each = (net.weights[1].detach().numpy().reshape(3, 16, 16).astype(float) * image).sum(axis=0)
    assert found.scores == pytest.approx([each[labels == part].sum() for part in range(6)], abs=1e-4)
    assert found.intercept == pytest.approx(0.5, abs=1e-4)
    assert found.fidelity == pytest.approx(1, abs=1e-6)


# --- images and published numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("net", [Architecture("usual", lambda: None, 36, 36), Architecture("half", lambda: None, 36, 36, (0.5,) * 3, (0.5,) * 3)],
                         ids=lambda net: net.name)
def test_an_image_is_normalised_and_shown_again_as_it_was(net):
    image = blocks_of_colour(9)
    normalised = net.normalised(image)
    assert normalised.shape == (3, 36, 36)
    assert normalised[0, 0, 0] == pytest.approx((image[0, 0, 0] / 255 - net.mean[0]) / net.std[0], rel=1e-5)
    np.testing.assert_array_equal(net.shown(normalised), image)


# --- the paper's nets and its protocol ----------------------------------------------------------------------------------


@pytest.fixture
def old_and_new(monkeypatch):
    """torchvision's two sets of weights, the newer with another size; the nets themselves are never asked for."""
    def preset(size, resize):
        return types.SimpleNamespace(crop_size=[size], resize_size=[resize], mean=[0.5, 0.4, 0.3], std=[0.2, 0.2, 0.1])

    class Published(enum.Enum):
        IMAGENET1K_V1 = (299, 342)
        IMAGENET1K_V2 = (224, 232)
        DEFAULT = IMAGENET1K_V2

        def transforms(self):
            return preset(*self.value)

    models = types.ModuleType("torchvision.models")
    models.get_model_weights = lambda name: Published
    monkeypatch.setitem(sys.modules, "torchvision", types.ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)


def test_torchvisions_nets_have_the_papers_weights_and_their_own_transforms(old_and_new):
    of_paper, newest = (architectures.architecture(f"torchvision:inception_v3{more}") for more in ("", "@IMAGENET1K_V2"))
    assert (of_paper.name, of_paper.size, of_paper.resize) == ("inception_v3", 299, 342)
    assert (newest.name, newest.size, newest.resize) == ("inception_v3", 224, 232)
    assert of_paper.mean == (0.5, 0.4, 0.3)
    assert architectures.full_name("torchvision:alexnet") == "torchvision:alexnet@IMAGENET1K_V1"
    assert architectures.full_name("efficientnet-lite0") == "efficientnet-lite0"


def test_without_torchvision_a_report_knows_the_papers_sizes(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision.models", None)  # cannot be imported
    wide, usual = (architectures.architecture(f"torchvision:{name}") for name in ("inception_v3", "alexnet"))
    assert (wide.size, wide.resize, usual.size, usual.resize) == (299, 342, 224, 256)
    assert plausible.attack_of(usual).epsilon == 0.1  # the paper's for AlexNet


def test_the_papers_attack_stays_within_the_range_of_pixels():
    net = Architecture("tiny-a", lambda: Tiny(0).eval(), 32, 32)
    images = np.stack([net.normalised(blocks_of_colour(i)) for i in range(3)])
    images = np.where(images > 0, images.max(axis=(2, 3), keepdims=True), images)  # many pixels at the end of the range
    white = (1 - np.array(net.mean)) / np.array(net.std)
    images = np.minimum(images, white.reshape(1, 3, 1, 1)).astype(np.float32)
    found = {how: plausible.attack_of(net, how)(net.model(), images, "random") for how in plausible.PROTOCOLS}
    for how, beyond in (("usual", True), ("paper", False)):
        adversaries = np.stack(found[how].adversarial)
        pixels = adversaries * np.reshape(net.std, (1, 3, 1, 1)) + np.reshape(net.mean, (1, 3, 1, 1))
        assert (pixels.max() > 1 + 1e-4 or pixels.min() < -1e-4) == beyond
        assert np.abs(adversaries - images).max() <= 0.05 + 1e-5
    assert plausible.attack_of(net, "paper").loss == "cross_entropy"


def test_the_papers_mean_pos_is_of_the_positive_pixels_alone():
    parts = plausible.cut_image(np.zeros((3, 8, 8), dtype=np.float32), "grid")
    map = np.random.default_rng(0).normal(size=(3, 8, 8))
    map[:, :2, :2] = -1  # a part with no positive pixel
    cells = [map[:, i:i + 2, j:j + 2].ravel() for i in range(0, 8, 2) for j in range(0, 8, 2)]
    expected = [cell[cell > 0].mean() if (cell > 0).any() else 0.0 for cell in cells]
    np.testing.assert_allclose(plausible.mean_of_positive(parts, map), expected, rtol=1e-12)


def test_a_run_by_the_papers_protocol_says_so(pictures, tmp_path, monkeypatch):
    monkeypatch.setitem(architectures.KNOWN, "tiny-a", Architecture("tiny-a", lambda: Tiny(0).eval(), 32, 32))
    for name, value in {"COPIES": 2, "ITERATIONS": 30}.items():
        monkeypatch.setattr(plausible, name, value)
    plausible._loaded.cache_clear()
    folder = reproduce.plausible("all", str(pictures), 1.0, None, ("tiny-a",), tmp_path / "run", 1, 0, "paper")
    plausible._loaded.cache_clear()
    spec = Store.open(folder).manifest["spec"]
    assert (spec["protocol"], spec["steps"]["smoothed"], spec["few"]) == ("paper", 50, 5)
    assert len(fooled(list(Store.open(folder).records()))) > 0
    text = reproduce.report(folder)
    assert "smoothed IG takes 50 steps" in text
    assert "mean_pos counts negative pixels as 0" not in text
    with pytest.raises(ValueError, match="protocol must be one of usual, paper, got 'papers' \\(did you mean 'paper'"):
        reproduce.plausible("all", str(pictures), 1.0, None, ("tiny-a",), tmp_path / "other", 1, 0, "papers")
