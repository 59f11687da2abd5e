"""Quantus as an oracle where it means the same, our metrics called its way, its metrics in our lab; and where it is wrong."""

import importlib.util
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import whytrust as wt  # noqa: E402
from whytrust.compat.quantus import FromQuantus, Styled  # noqa: E402
from whytrust.core import generator  # noqa: E402
from whytrust.domains.image import ImageParts  # noqa: E402
from whytrust.lab import Pictures  # noqa: E402
from whytrust.measures.amounts import FaithfulnessCorrelation  # noqa: E402
from whytrust.measures.flipping import walk  # noqa: E402
from whytrust.measures.judged import Judged  # noqa: E402
from whytrust.measures.pointing import RelevanceMass  # noqa: E402
from whytrust.question import Question  # noqa: E402
from whytrust.studies.metrics_cases import LabCase  # noqa: E402
from whytrust.studies.metrics_findings import findings  # noqa: E402
from whytrust.studies.metrics_told import outcome_of  # noqa: E402

QUIET = {"disable_warnings": True, "display_progressbar": False, "return_aggregate": False}


@pytest.fixture(scope="module")
def quantus():
    """Quantus without zennit, whose import wants a torchvision that is not there."""
    if importlib.util.find_spec("quantus") is None:
        pytest.skip("quantus is not installed")
    real = importlib.util.find_spec
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "zennit" else real(name, *more))
        return importlib.import_module("quantus")


RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(3, 36))
X = RNG.uniform(0.1, 1, size=(4, 1, 6, 6))
X[:, 0, 0, 0] = 0  # what Quantus calls black is the least value
Y = np.array([0, 1, 2, 1])
NET = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 3, bias=False)).double()
with torch.no_grad():
    NET[1].weight.copy_(torch.from_numpy(WEIGHTS))
TRUTH = WEIGHTS[Y].reshape(4, 1, 6, 6) * X
NOISE = RNG.normal(size=X.shape)
MASKS = RNG.random(X.shape) < 0.3


class Doubled(torch.nn.Module):
    """The same net for the single precision that Quantus insists on."""

    def forward(self, batch):
        return NET(batch.double())


def theirs(metric, a, **more):
    return np.asarray(metric(model=Doubled().eval(), x_batch=X.astype(np.float32), y_batch=Y, a_batch=a, device="cpu",
                             softmax=False, channel_first=True, **more), dtype=float)


def ours(name, a, **more):
    return np.array(Styled(name)(model=wt.model(lambda b: np.asarray(b).reshape(len(b), -1) @ WEIGHTS.T, layout="NCHW"),
                                 x_batch=X, y_batch=Y, a_batch=a, **more))


def judged(i, a):
    model = wt.model(lambda b: np.asarray(b).reshape(len(b), -1) @ WEIGHTS.T, layout="NCHW")
    question = Question(model, ImageParts.cut(X[i], "pixels", fill=0.0, layout="NCHW"), int(Y[i]))
    return Judged(question, a[i].ravel(), truth=MASKS[i, 0])


@pytest.mark.parametrize("a", [TRUTH, NOISE], ids=["truth", "noise"])
def test_pixel_flipping_has_the_same_curve(quantus, a):
    curves = theirs(quantus.PixelFlipping(features_in_step=1, perturb_baseline="black", normalise=False, **QUIET), a)
    for i in range(4):
        np.testing.assert_allclose(walk(judged(i, a), generator(0), 100).scores[1:], curves[i], atol=1e-4)


@pytest.mark.parametrize("a", [TRUTH, NOISE], ids=["truth", "noise"])
def test_faithfulness_correlation_is_the_same_but_for_its_draws(quantus, a):
    np.random.seed(0)  # noqa: NPY002
    metric = quantus.FaithfulnessCorrelation(nr_runs=1500, subset_size=9, perturb_baseline="black", normalise=False, **QUIET)
    np.testing.assert_allclose(ours(FaithfulnessCorrelation(1500), a), theirs(metric, a), atol=0.12)


def test_the_pointing_game_and_relevance_ranks_are_the_same(quantus):
    for a in (TRUTH, NOISE, np.abs(NOISE)):
        pointing = theirs(quantus.PointingGame(normalise=False, **QUIET), a, s_batch=MASKS)
        np.testing.assert_array_equal(ours("pointing_game", a, s_batch=MASKS), pointing)
        ranks = theirs(quantus.RelevanceRankAccuracy(normalise=False, **QUIET), a, s_batch=MASKS)
        np.testing.assert_allclose(ours("relevance_rank", a, s_batch=MASKS), ranks)


def test_relevance_mass_is_the_same_for_positive_scores_and_theirs_is_no_share_for_others(quantus):
    metric = quantus.RelevanceMassAccuracy(normalise=False, **QUIET)
    positive = np.abs(NOISE)
    np.testing.assert_allclose(ours("relevance_mass", positive, s_batch=MASKS), theirs(metric, positive, s_batch=MASKS))
    odd = theirs(metric, NOISE, s_batch=MASKS)
    assert ((odd < 0) | (odd > 1)).any()  # sums of signed scores are divided by each other
    mine = ours("relevance_mass", NOISE, s_batch=MASKS)
    assert ((mine >= 0) & (mine <= 1)).all()
    assert RelevanceMass()(judged(0, NOISE), generator(0)) == pytest.approx(mine[0])


def test_their_completeness_asks_for_equality_to_the_last_bit(quantus):
    exact = TRUTH.sum(axis=(1, 2, 3)) - 0  # what the linear model loses behind black
    scores = NET(torch.from_numpy(X)).detach().numpy()[np.arange(4), Y]
    np.testing.assert_allclose(exact, scores, atol=1e-9)  # the attribution is complete
    said = theirs(quantus.Completeness(normalise=False, perturb_baseline="black", **QUIET), TRUTH)
    assert not said.all()  # and is called incomplete, for its rounding
    np.testing.assert_allclose(ours("completeness", TRUTH), 0, atol=1e-9)


def test_their_weighted_pointing_game_fails_at_the_first_hit(quantus):
    with pytest.raises(TypeError, match="boolean array indexing"):  # its weights are to be stored into an array of booleans
        theirs(quantus.PointingGame(weighted=True, normalise=False, **QUIET), MASKS.astype(float), s_batch=MASKS)


def test_their_infidelity_takes_slopes_and_ours_contributions(quantus):
    slopes = np.broadcast_to(WEIGHTS[Y].reshape(4, 1, *X.shape[2:]), X.shape)
    metric = quantus.Infidelity(perturb_patch_sizes=[X.shape[-1] // 2], n_perturb_samples=2, normalise=False, **QUIET)
    np.testing.assert_allclose(theirs(metric, slopes), 0, atol=1e-6)  # it multiplies by the change of the input itself
    assert (theirs(metric, TRUTH) > 1e-3).all()  # so that what each pixel contributes is called unfaithful
    np.testing.assert_allclose(ours("infidelity", TRUTH), 0, atol=1e-20)
    assert (ours("infidelity", slopes) > 1e-3).all()


def test_their_infidelity_piles_up_what_it_hides_from_block_to_block(quantus):
    seen = []

    class Watched(Doubled):
        def forward(self, batch):
            seen.append(batch.detach().numpy().copy())
            return super().forward(batch)

    metric = quantus.Infidelity(perturb_patch_sizes=[X.shape[-1] // 2], n_perturb_samples=1, normalise=False, **QUIET)
    metric(model=Watched().eval(), x_batch=X.astype(np.float32), y_batch=Y, a_batch=TRUTH, device="cpu", softmax=False,
           channel_first=True)
    hidden = [float((batch == 0).mean()) for batch in seen[-4:]]
    np.testing.assert_allclose(hidden, [0.25, 0.5, 0.75, 1.0], atol=0.02)  # four blocks, of which one each should be hidden


def test_our_metrics_are_called_their_way():
    values = ours("pixel_flipping", TRUTH)
    assert values.shape == (4,)
    assert (values >= ours("pixel_flipping", NOISE)).all()
    three = np.repeat(TRUTH, 3, axis=1) / 3
    assert len(Styled("infidelity")(model=wt.model(lambda b: np.asarray(b).mean(axis=1).reshape(len(b), -1) @ WEIGHTS.T,
                                                   layout="NCHW"), x_batch=np.repeat(X, 3, axis=1), y_batch=Y, a_batch=three)) == 4

    def explain(model, inputs, targets):
        return WEIGHTS[targets].reshape(-1, 1, 6, 6) * np.asarray(inputs)

    moved = ours("max_sensitivity", TRUTH, explain_func=explain)
    assert ((moved > 0) & (moved < 0.2)).all()


@pytest.mark.parametrize(("change", "words"), [
    ({"y_batch": Y[:2]}, "one entry for each input"), ({"a_batch": np.ones((4, 1, 5, 5))}, "one number for each of 36"),
    ({"a_batch": np.full(X.shape, math.nan)}, "finite")])
def test_batches_that_do_not_fit_are_refused(change, words):
    given = {"model": wt.model(lambda b: np.asarray(b).reshape(len(b), -1) @ WEIGHTS.T, layout="NCHW"), "x_batch": X,
             "y_batch": Y, "a_batch": TRUTH}
    with pytest.raises(ValueError, match=words):
        Styled("pixel_flipping")(**{**given, **change})


def test_their_metrics_stand_trial_in_our_lab(quantus):
    metrics = [FromQuantus(quantus.FaithfulnessCorrelation(nr_runs=40, subset_size=36, perturb_baseline="black", **QUIET)),
               FromQuantus(quantus.RelevanceMassAccuracy(**QUIET), aspect="plausibility", needs=("truth",)),
               FromQuantus(quantus.PixelFlipping(features_in_step=3, perturb_baseline="black", **QUIET), "theirs", higher=False)]
    lab = Pictures()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    records = [{"lab": lab.name, **LabCase(lab, case, metrics).record()} for case in range(12)]
    assert all(not record["errors"] for record in records)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002, their draws leave no trace
    assert records[0] == {"lab": lab.name, **LabCase(lab, 0, metrics).record()}
    found = findings(records, {metric.about.name: metric.about for metric in metrics})
    said = {(one.metric, one.test): outcome_of([x for x in found if (x.metric, x.test) == (one.metric, one.test)])
            for one in found}
    assert said["quantus/FaithfulnessCorrelation", "truth"] == "passed"
    assert said["theirs", "shared"] == "passed"
    assert said["quantus/RelevanceMassAccuracy", "shared"] == "failed"
    assert ("theirs", "baseline") not in said  # they hide pixels behind a baseline of their own


def test_colour_pictures_with_channels_last_are_turned_for_them(quantus):
    picture = np.random.default_rng(0).random((4, 4, 3))
    weights = np.random.default_rng(1).normal(size=48)
    model = wt.model(lambda batch: np.asarray(batch).reshape(len(batch), -1) @ weights, name="colours")
    metric = FromQuantus(quantus.PixelFlipping(features_in_step=4, perturb_baseline="black", **QUIET), "theirs", higher=False)
    found = wt.measure(model, picture, "occlusion", [metric], parts="pixels", fill=0.0)
    assert np.isfinite(found.values["theirs"]["occlusion"]).all()


def test_whatever_they_raise_is_told_of_the_metric(quantus):
    broken = FromQuantus(quantus.FaithfulnessCorrelation(nr_runs=3, subset_size=10**6, **QUIET))
    assert "FaithfulnessCorrelation of Quantus raised" in LabCase(Pictures(), 0, [broken]).record()["errors"][
        "quantus/FaithfulnessCorrelation"]
    with pytest.raises(ValueError, match="does not say which way is better"):
        _ = FromQuantus(lambda **given: [0.0]).about
    with pytest.raises(TypeError, match=r"must be made first, .* got the class PointingGame"):
        FromQuantus(quantus.PointingGame)


def test_the_same_settings_are_written_the_same(quantus):
    one, other = (repr(FromQuantus(quantus.FaithfulnessCorrelation(nr_runs=3, subset_size=8, **QUIET))) for _ in range(2))
    assert one == other
    assert "0x" not in one
    assert one != repr(FromQuantus(quantus.FaithfulnessCorrelation(nr_runs=4, subset_size=8, **QUIET)))
    black, mean = (repr(FromQuantus(quantus.PixelFlipping(perturb_baseline=how, **QUIET), options={"f": theirs}))
                   for how in ("black", "mean"))
    assert black != mean
    assert "0x" not in black


def test_attributions_are_asked_for_where_they_are_not_given():
    weights = np.random.default_rng(0).normal(size=(16, 3))
    net = wt.model(lambda batch: np.asarray(batch, float).reshape(len(batch), -1) @ weights, layout="NCHW", name="net")
    x, y = np.random.default_rng(1).uniform(size=(4, 1, 4, 4)), np.array([0, 1, 2, 0])

    def explain(model, inputs, targets):
        return np.asarray(inputs) * weights.T[np.asarray(targets)].reshape(-1, 1, 4, 4)

    given = Styled("infidelity")(net, x, y, explain(net, x, y))
    np.testing.assert_allclose(given, 0, atol=1e-20)
    assert Styled("infidelity")(net, x, y, explain_func=explain) == given
    assert Styled("infidelity")(net, x, np.eye(3)[y], explain(net, x, y)) == given  # one-hot
    assert Styled("infidelity")(net, x, y[:, None], explain(net, x, y)) == given  # a column
    with pytest.raises(ValueError, match="softmax is for a net as it is"):
        Styled("infidelity")(net, x, y, explain(net, x, y), softmax=True)
    for change, words in (({"a_batch": None}, "a_batch must be given, or explain_func"), ({"channel_first": False}, "channels first")):
        with pytest.raises(ValueError, match=words):
            Styled("infidelity")(**{"model": net, "x_batch": x, "y_batch": y, "a_batch": explain(net, x, y), **change})
    for metric, words in (("pointing_game", "needs s_batch"), ("max_sensitivity", "needs explain_func")):
        with pytest.raises(ValueError, match=words):
            Styled(metric)(net, x, y, explain(net, x, y))
    with pytest.raises(ValueError, match="did you mean 'pixel_flipping'"):
        Styled("Pixelflipping")
