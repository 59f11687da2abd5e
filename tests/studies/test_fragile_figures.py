"""Figures of fragile explanations: whole, and drawn from whatever texts there are."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from studies import fragile_records as made
from whytrust.language.written import Written
from whytrust.studies import fragile_figures, fragile_run, fragile_sentences
from whytrust.studies.fragile_merging import Merged, read, write
from whytrust.studies.fragile_tables import Run

pil = pytest.importorskip("PIL.Image")

HOSTILE = (
    "<script>alert(1)</script> costs $5 and $6 _more_ ^than^ {that} \\frac | pipe", "هذا فيلم جميل جدا عن الحب والحرب في المدينة",
    "great film \x00 with a tab \t and \x1b escape and a \u202e turn", "no" * 80 + " is a very long word indeed", "a b c d")


def runs_in(place, **more):
    made.folder_of_runs(place, **more)
    return fragile_run.runs_in(place)


def words_of(figure):
    figure.canvas.draw()
    return [text for axes in figure.axes for piece in (axes, *axes.child_axes) for text in piece.texts if text.get_text()]


@pytest.mark.filterwarnings("ignore:Glyph")  # not every machine has every script
def test_hostile_texts_are_drawn_and_nothing_is_cut_off(tmp_path):
    (run,) = runs_in(tmp_path, models=("hf-" + "very-long-name-" * 5,), texts=HOSTILE, explainers=("lime",))
    figure = fragile_sentences.figure(run, ["00000", "00001", "00002", "00003"])
    whole, boxes = figure.bbox, [text.get_window_extent() for text in words_of(figure)]
    assert len(boxes) > 100
    assert min(box.x0 for box in boxes) >= whole.x0 - 1
    assert max(box.x1 for box in boxes) <= whole.x1 + 1
    assert min(box.y0 for box in boxes) >= whole.y0 - 1
    assert max(box.y1 for box in boxes) <= whole.y1 + 1
    drawn = fragile_figures.draw([run], tmp_path / "figures")
    assert len(drawn) == 4  # three violins, and the sentences
    assert all(min(pil.open(path).size) > 300 for path in drawn)


def test_titles_of_violins_stay_inside_of_the_figure(tmp_path):
    for _, name, figure in fragile_figures._figures(runs_in(tmp_path, models=("tfidf",)), (fragile_figures.VIOLINS,)):
        figure.canvas.draw()
        box = figure._suptitle.get_window_extent()
        assert box.x0 >= 0, name
        assert box.x1 <= figure.bbox.x1, name


def test_a_long_document_is_shown_around_its_swapped_words(tmp_path):
    text = " ".join(f"word{i}" for i in range(3000))
    (run,) = runs_in(tmp_path, models=("tfidf",), texts=(text,), deep=0.001)
    figure = fragile_sentences.figure(run, fragile_sentences.alike([run]))
    assert figure.get_figheight() < 12
    shown = {text.get_text() for text in words_of(figure)}
    for level in run.done[0]["paths"]["lom"][0]:
        assert any(f"[{level['after']}]" in word for word in shown)


def test_swapped_words_are_in_brackets_and_what_was_swapped_is_told(tmp_path):
    (run,) = runs_in(tmp_path, models=("tfidf",), texts=("a tedious film without any voice at all",))
    record = run.done[0]
    figure = fragile_sentences.figure(run, [record["case"]])
    shown = [text.get_text() for text in words_of(figure)]
    levels = record["paths"]["lom"][0]
    for level in levels:
        assert f"{level['before']} → {level['after']}" in shown
    bracketed = [word for word in shown if word.startswith("[")]
    assert len(bracketed) == sum(range(1, len(levels) + 1))  # one in the first row, two in the second, …


def test_colours_are_those_of_the_scores():
    text = Written.of("good bad plain")
    words = fragile_sentences._coloured(text, np.array([2.0, -1.0, 0.0]), text, range(3))
    strengths = {piece.strip("+−"): strength for run in words.runs for piece, strength in run if piece.strip()}
    assert strengths == {"good": 1.0, "bad": -0.5, "plain": 0.0}
    assert [piece for run in words.runs for piece, _ in run if piece.strip()] == ["good+", "bad−", "plain"]


def test_the_same_sentences_are_shown_of_every_model(tmp_path):
    runs = [run for run in runs_in(tmp_path, models=("minilm", "tfidf")) if run.explainer == "lime"]
    lost = Run(runs[0].dataset, "other", "lime", [r for r in runs[0].records if r["case"] != "00001"], runs[0].manifest)
    assert fragile_sentences.alike(runs) == ["00000", "00001", "00002"]
    assert fragile_sentences.alike([*runs, lost]) == ["00000", "00002", "00003"]
    assert fragile_sentences.alike([]) == []


@pytest.mark.parametrize("values", [[0.3], [0.5] * 20, [0.1, 0.9], [1.0, 1.0, 1.0, 1.0, 1.0 - 1e-12, 1.0]])
def test_values_without_a_shape_are_dots(values):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    fragile_figures._shape(axes, values, 2, 0.8, "red", side=-1)
    assert not axes.collections
    assert axes.lines[0].get_ydata().tolist() == values


@pytest.mark.parametrize("side", [-1, 1])
def test_half_a_violin_stays_on_its_side(side):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    fragile_figures._shape(axes, np.linspace(-0.5, 0.9, 40).tolist(), 2, 0.8, "red", side)
    across = axes.collections[0].get_paths()[0].vertices[:, 0]
    assert across.min() == (2 if side > 0 else pytest.approx(1.6, abs=0.01))
    assert across.max() == (2 if side < 0 else pytest.approx(2.4, abs=0.01))


def test_runs_without_any_swap_have_no_figure(tmp_path):
    made.write(tmp_path / "sst2" / "tfidf" / "lime", [(made.record("a", 5, {}, status="nothing to swap"), {})])
    assert fragile_figures.draw(fragile_run.runs_in(tmp_path), tmp_path / "figures") == []


def test_merged_pieces_are_kept_and_drawn(tmp_path):
    one = Merged("a net", "positive", "unflinchingly bleak", ((0, 13), (14, 19)), (0.1, -0.4), (0.6, -0.4), {"unflinchingly": ["un", "flinchingly"]})
    write([one], tmp_path / "sst2" / "minilm")
    assert read(tmp_path / "sst2" / "minilm") == [one]
    assert read(tmp_path) == []
    shown = [text.get_text() for text in words_of(fragile_sentences.merging([one]))]
    assert "Words of several pieces: unflinchingly = un + flinchingly" in shown
    assert shown.count("unflinchingly+") == 2
