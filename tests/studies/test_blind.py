"""Blind controls: rankings that cannot know the cause, of whatever an explainer gets to see."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import spearmanr

import whytrust as wt
from planted import GRID, marked_box, white_box
from whytrust.attacks import PGD
from whytrust.core import generator
from whytrust.domains.image import ImageParts
from whytrust.domains.tabular import TableParts, TableStatistics
from whytrust.domains.text import TextParts
from whytrust.explanation import Explanation
from whytrust.models.whitebox import MarkedCause
from whytrust.report import findings, gates
from whytrust.report.outcomes import Measured, outcomes
from whytrust.studies.blind import BlindControls, Explained, laid_over, placement, read_off

ATTACK = PGD(epsilon=0.5, units="input", bounds=None, iterations=20, stop="never")
MARKED = marked_box()


def middle(question, rng):
    """It sees neither the model nor the image."""
    return Explanation.of(question, "middle", np.isin(np.arange(16), [5, 6, 9, 10]) * 1.0)


# --- in audits --------------------------------------------------------------------------------------------------------


def any_bright_part(images):
    """Class 1 where the mean square of any part is large."""
    squares = np.asarray(images, dtype=float).reshape(len(images), 4, 2, 4, 2) ** 2
    most = 60 * (squares.mean(axis=(2, 4)).max(axis=(1, 2)) - 0.2)
    return np.column_stack([-most, most])


def test_a_change_that_can_be_seen_without_the_model_is_no_merit_in_recovery():
    """Where all parts but one are put back, that one has edges: whoever looks for edges finds it."""
    rng = np.random.default_rng(0)
    clean = rng.uniform(0.05, 0.25, (96, 8, 8))
    largest = rng.permutation(np.tile(np.arange(16), 6))
    size = np.where(largest[:, None, None] == GRID, 0.8, 0.6)
    changed = clean + size * rng.choice([-1.0, 1.0], clean.shape)
    model = wt.model(any_bright_part, output="logit", classes=["dark", "bright"])
    found = wt.audit(model, list(clean), ["edges"], "grid:4x4", adversaries=list(changed), trials=["flip", "recovery"], fill=0.0)
    recovery = found.findings["measures"]["recovery@1"]
    assert recovery["rates"]["edges"]["value"] > 0.9
    assert recovery["against_random"]["edges"]["p"] < 1e-6
    assert recovery["blind"]["edges"]["value"] == pytest.approx(recovery["rates"]["edges"]["value"], abs=0.02)
    assert "better" not in found.verdicts()["edges"].replace("no better", "")


@pytest.mark.parametrize("block", [1, 2])
def test_inputs_that_are_alone_in_their_block_have_blind_controls_too(block):
    inputs = list(MarkedCause(GRID).inputs(80, among=(5, 6, 9, 10)))
    found = wt.audit(MARKED, inputs, {"middle": middle, "occlusion": {}}, "grid:4x4", ATTACK, "flip", fill=0.0, block=block)
    flip = found.findings["measures"]["flip"]
    assert flip["against_random"]["middle"]["p"] < 1e-6
    assert flip["blind"]["shuffled:middle"]["n"] == 80
    assert not found.verdicts()["middle"].startswith("better")
    assert found.verdicts()["occlusion"] == "better than magnitude"


def test_inputs_of_one_source_are_not_each_others_controls():
    """Two films, in each the same part decides throughout: an explanation of one says nothing of the other."""
    first, second = (MarkedCause(GRID).inputs(16, seed, among=(part,)) for seed, part in ((0, 5), (1, 9)))
    found = wt.audit(MARKED, [*first, *second], {"occlusion": {}}, "grid:4x4", ATTACK, "flip", fill=0.0, groups=["a"] * 16 + ["b"] * 16)
    shuffled = found.findings["measures"]["flip@1"]["blind"]["shuffled:occlusion"]
    assert shuffled["n"] == 32
    assert shuffled["value"] == 0  # of the same source it would be 1


def test_a_note_says_where_scores_of_inputs_with_the_same_answer_are_missing():
    inputs = list(MarkedCause(GRID).inputs(60))
    found = wt.audit(MARKED, inputs, ["occlusion"], "grid:4x4", ATTACK, "flip", fill=0.0)
    assert found.verdicts()["occlusion"].startswith("better")
    assert not any("same answer" in note for note in found.findings["notes"])
    records = list(found.store.records())
    for blind in (record["trials"][0]["blind"][judge] for record in records[5:] for judge in ("any", "target")):
        del blind["same answer:occlusion"]
    (note,) = findings._without_answers(outcomes(records), found.findings["verdicts"], "image")
    assert "occlusion could not be compared with scores of other inputs with the same answer" in note


def test_a_gate_cannot_tell_where_blind_controls_are_not_known(monkeypatch):
    found = wt.audit(MARKED, list(MarkedCause(GRID).inputs(24)), {"occlusion": {}}, "grid:4x4", ATTACK, "flip", fill=0.0)
    assert gates.check(found.store, ["occlusion.flip > blind"])[0].code == gates.HOLDS
    monkeypatch.setattr(Measured, "controls_of", lambda self, name: {})
    assert gates.check(found.store, ["occlusion.flip > blind"])[0].code == gates.UNDECIDED


def test_the_truth_wins_where_a_guess_names_two_places_and_one_of_them_is_the_cause():
    """The guess turns every label with its second part, so that the truth leads by little over all k, and by half at one part."""
    def two(question, rng):
        return Explanation.of(question, "two", np.isin(np.arange(16), [5, 6]) + np.arange(16) * 1e-6)

    found = wt.audit(MARKED, list(MarkedCause(GRID).inputs(100, among=(5, 6))), {"occlusion": {}, "two": two}, "grid:4x4", ATTACK, "flip", fill=0.0)
    best = found.findings["measures"]["flip"]["blind"]["shuffled:two"]["value"]
    assert 0.95 < best < found.findings["measures"]["flip"]["rates"]["occlusion"]["value"]
    assert found.verdicts()["occlusion"] == "better than magnitude"
    assert not found.verdicts()["two"].startswith("better")
    assert [one.code for one in gates.check(found.store, ["occlusion.flip > blind"])] == [gates.HOLDS]
    assert gates.check(found.store, ["two.flip > blind"])[0].code != gates.HOLDS


def test_a_gate_fails_with_the_words_of_the_verdict_and_names_what_there_is():
    def backwards(question, rng):
        return Explanation.of(question, "backwards", np.arange(16) * -1.0 - 100 * np.isin(np.arange(16), [5, 6, 9, 10]))

    found = wt.audit(MARKED, list(MarkedCause(GRID).inputs(80, among=(5, 6, 9, 10))), {"backwards": backwards, "middle": middle}, "grid:4x4", ATTACK, "flip", fill=0.0)
    assert "the other way round: difference -" in gates.check(found.store, ["backwards.flip > blind"])[0].words
    no_better = gates.check(found.store, ["middle.flip > blind"])[0]
    assert (no_better.code, found.verdicts()["middle"]) == (gates.FAILS, "no better than a blind guess")
    assert "shown to be less than 0.05 above the best blind guess" in no_better.words
    with pytest.raises(ValueError, match=r"got 'midle' \(did you mean 'middle'\?\)"):
        gates.check(found.store, ["midle.flip > random"])
    with pytest.raises(ValueError, match=r"blind:shuffled, .*got 'blind:centr' \(did you mean 'blind:centre'\?\)"):
        gates.check(found.store, ["middle.flip > blind:centr"])


# --- which controls count ---------------------------------------------------------------------------------------------


def test_a_control_that_is_known_for_few_cases_does_not_count():
    own, nan = np.full(20, 0.5), np.nan
    few, half = np.where(np.arange(20) < 3, 1.0, nan), np.where(np.arange(20) < 10, 1.0, nan)
    blind = {"shuffled:x": own, "imitation:x": own, "shuffled:y": own, "centre": few, "size": half}
    measured = Measured("", {"x": own, "blind": own}, blind=blind)
    assert set(measured.controls_of("x")) == {"shuffled:x", "imitation:x", "size", "blind"}


@pytest.mark.parametrize("missing", ["shuffled:x", "imitation:x"])
def test_without_an_explainers_own_scores_of_other_inputs_nothing_can_be_said(missing):
    own, few = np.full(20, 0.5), np.where(np.arange(20) < 3, 1.0, np.nan)
    measured = Measured("", {"x": own, "blind": own}, blind={"shuffled:x": own, "imitation:x": own, "centre": own, missing: few})
    assert measured.controls_of("x") == {}


# --- imitation --------------------------------------------------------------------------------------------------------


def image(case):
    rng = generator(0, "image", case)
    rows, columns = np.mgrid[:24, :24]
    centres = rng.uniform(0, 24, (16, 2))
    labels = np.argmin((rows[..., None] - centres[:, 0]) ** 2 + (columns[..., None] - centres[:, 1]) ** 2, axis=-1)
    labels = np.unique(labels, return_inverse=True)[1].reshape(24, 24)
    return ImageParts(rng.normal(0, 1, labels.max() + 1)[labels] + rng.normal(0, 0.3, (24, 24)), labels, 0.0)


def row(case):
    return TableParts.cut(list(generator(0, "row", case).normal(0, 1, 14)), TableStatistics.fit(generator(0).normal(0, 1, (300, 14))))


def text(case):
    return TextParts.cut(" ".join(generator(0, "text", case).choice([f"{a}{'x' * b}" for a in "abcdefgh" for b in range(5)], 20)), "words")


def standard(values):
    return (values - np.mean(values)) / np.std(values)


def fixed(parts):
    """The same for every input: by place, by column, by position."""
    wave = np.sin(np.arange(24) / 3)
    if parts.domain == "image":
        return parts.pool(np.add.outer(wave, wave), "mean")
    return standard(np.resize(wave, len(parts.names)))


def said(scores, target=0):
    return SimpleNamespace(scores=scores, map=None, settings={}, target=target)


def imitated(make, score, control="imitation", target=lambda case: 0):
    """The mean rank correlation of an explainer's scores with their imitation, over 16 inputs."""
    explained = {}
    for case in range(16):
        parts = make(case)
        shown = read_off(parts, generator(0), {})
        explained[str(case)] = Explained(parts, shown, {"x": said(score(case, parts, shown), target(case))})
    made = BlindControls(explained)
    found = {case: made.of(case, one.parts, one.shown, [other for other in explained if other != case]) for case, one in explained.items()}
    return np.mean([spearmanr(found[case][f"{control}:x"][0], one.answers["x"].scores).statistic for case, one in explained.items()])


@pytest.mark.parametrize("make", [image, row, text])
def test_a_sum_of_blind_rankings_is_imitated_and_knowledge_is_not(make):
    def blind(case, parts, shown):
        varied = [standard(one) for one in shown.values() if np.ptp(one) > 0]
        return fixed(parts) + sum(weight * one for weight, one in zip((0.8, 0.5, 0.3, 0.2), varied, strict=False))

    assert imitated(make, blind) > 0.85
    for control in ("imitation", "curved imitation"):
        known = [imitated(make, lambda case, parts, shown, seed=seed: generator(seed, case).normal(0, 1, len(parts.names)), control)
                 for seed in range(1, 9)]
        assert abs(np.mean(known)) < 0.1


@pytest.mark.parametrize("make", [image, row, text])
def test_a_curved_function_of_what_an_input_shows_is_imitated_too(make):
    def neither_more_nor_less(case, parts, shown):
        return -np.abs(standard(next(one for one in shown.values() if np.ptp(one) > 0)))

    assert imitated(make, neither_more_nor_less, "curved imitation") > 0.75


@pytest.mark.parametrize("control", ["imitation", "curved imitation"])
def test_a_fixed_map_times_what_an_input_shows_is_imitated_too(control):
    """The sign of a column times how high its value is: at no place does it say the same in every input."""
    def times(case, parts, shown):
        return fixed(parts) * standard(shown["high"])

    assert imitated(row, times, control) > 0.75
    assert imitated(row, lambda case, *rest: (1 - 2 * (case % 2)) * times(case, *rest), control, lambda case: case % 2) > 0.7


def test_a_map_or_a_list_of_words_for_each_answer_is_its_own_control():
    """Two answers, and the opposite scores for the other one: the mean over both says nothing, that over one is the map."""
    for make in (image, row, text):
        inputs = {str(case): make(case) for case in range(16)}
        own = (lambda parts: np.array([len(name.split(" ")[0]) + ord(name[0]) % 7 for name in parts.names], float)) if make is text else fixed
        explained = {case: Explained(parts, read_off(parts, generator(0), {}), {"x": said((1 - 2 * (int(case) % 2)) * own(parts), int(case) % 2)})
                     for case, parts in inputs.items()}
        made, name, alike = BlindControls(explained), "same answer words:x" if make is text else "same answer:x", []
        for case, one in explained.items():
            found = made.of(case, one.parts, one.shown, [other for other in explained if other != case])
            known = found[name][0] != 0  # of a word that is in no other text nothing is known
            alike.append(spearmanr(found[name][0][known], one.answers["x"].scores[known]).statistic)
        assert np.mean(alike) > 0.8


def shares(of, parts):
    rows, columns, values = placement(of, parts)
    found = np.zeros((len(parts.names), len(of.names)))
    np.add.at(found, (rows, columns), values)
    return found


@pytest.mark.parametrize("make", [image, row, text])
def test_an_input_lies_where_it_lies(make):
    """Every part of an input has its whole place in itself, and rows of a placement are shares."""
    one, other = make(0), make(1)
    np.testing.assert_allclose(shares(one, one), np.eye(len(one.names)), atol=1e-12)
    np.testing.assert_allclose(shares(other, one).sum(axis=1), 1)
    scores = np.arange(len(one.names), dtype=float)
    assert laid_over(SimpleNamespace(scores=scores, map=None, settings={}), one, one) == pytest.approx(scores)


def test_scores_of_a_text_are_laid_over_another_between_its_words():
    """Against numpy's interpolation by position."""
    one, other = text(0), text(1)
    scores = generator(2).normal(0, 1, len(other.names))
    places = [np.array([spans[0][0] for spans in parts.spans]) / len(parts.text) for parts in (one, other)]
    np.testing.assert_allclose(shares(other, one) @ scores, np.interp(places[0], places[1], scores))


def test_white_boxes_show_no_cause_to_blind_controls():
    """The premise of these tests: no control names the part that decides in MarkedCause."""
    inputs = MarkedCause(GRID).inputs(160)
    found = wt.audit(MARKED, list(inputs), {"occlusion": {}}, "grid:4x4", ATTACK, "flip", fill=0.0)
    rates = found.findings["measures"]["flip"]["blind"]
    assert all(abs(rate["value"] - 0.5) < 0.12 for rate in rates.values()), rates
    assert white_box().classes
