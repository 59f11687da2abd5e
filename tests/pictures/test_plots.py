"""Figures that show everything and cut nothing off."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from whytrust.pictures import lettering, plots

KINDS = ("image", "text", "sound", "bare sound", "table")


def texts(figure: Any) -> list[Any]:
    return [t for t in figure.findobj(lambda artist: hasattr(artist, "get_text")) if t.get_text()]


def cut_off(figure: Any) -> list[str]:
    """Texts that reach over the edge of the figure."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    edge = figure.bbox
    out = []
    for text in texts(figure):
        box = text.get_window_extent(canvas.get_renderer())
        if box.x0 < edge.x0 - 2 or box.x1 > edge.x1 + 2 or box.y0 < edge.y0 - 2 or box.y1 > edge.y1 + 2:
            out.append(text.get_text())
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_whole(make: SimpleNamespace, kind: str, tmp_path: Path) -> None:
    e = make.kinds()[kind]
    figure = plots.figure([e])
    assert cut_off(figure) == []
    assert any("net says cat: 0.93" in t.get_text() for t in texts(figure))
    plots.save([e], tmp_path / "e.png")
    assert Image.open(tmp_path / "e.png").size[0] == round(5.6 * 150)


def test_bars_and_ranges_have_the_scores_sizes(make: SimpleNamespace) -> None:
    e = make.explanation(make.table(), [0.4, -0.2, 0.1], standard_errors=np.array([0.05, 0.1, 0.02]))
    axes = plots.figure([e]).axes[0]
    assert [p.get_width() for p in axes.patches] == pytest.approx([0.4, -0.2, 0.1])
    spans = [segment[:, 0] for lines in axes.collections for segment in lines.get_segments()]
    assert np.allclose(spans, [[0.302, 0.498], [-0.396, -0.004], [0.0608, 0.1392]])


def test_several_positive_images_begin_with_the_image_itself(make: SimpleNamespace) -> None:
    view = make.image()
    pair = [make.explanation(view, s, target_name=t, notes=(f"Care with {t}.",))
            for s, t in (([1, -1, 0, 0, 0, 0], "a"), ([-1, 1, 0, 0, 0, 0], "b"))]
    figure = plots.figure(pair, style="positive")
    images = [axes.images[0] for axes in figure.axes if axes.images]
    assert len(images) == 3
    assert "The image" in [t.get_text() for t in figure.texts]
    assert {"⚠ Care with a.", "⚠ Care with b."} <= {t.get_text() for t in texts(figure)}
    assert cut_off(figure) == []


@pytest.mark.parametrize("scores", [np.zeros(200), np.linspace(-1, 1, 200), np.array([0.3]), np.full(3, 1e-12)])
def test_many_parts_one_part_and_no_scores(make: SimpleNamespace, scores: np.ndarray) -> None:
    words = [f"word{i}" for i in range(len(scores))]
    views = (make.text(words), make.table(len(scores)))
    figure = plots.figure([make.explanation(view, scores, words) for view in views])
    assert cut_off(figure) == []


@pytest.mark.filterwarnings("ignore:Glyph")  # a machine without a font for a script draws boxes and says so
@pytest.mark.parametrize("word", ["supercalifragilistic" * 12, "שלום עולם", "映画は素晴らしい" * 9, "😀👍🏽",
                                  "$x_1$ costs $5", "a\x00\tb", "\ud800"])
def test_any_script_and_very_long_words(make: SimpleNamespace, word: str) -> None:
    view = make.text([word, "end"])
    figure = plots.figure([make.explanation(view, [0.5, -0.2], [word, "end"], target_name=word[:60], notes=(word,))] * 2)
    assert cut_off(figure) == []


def test_long_texts_end_with_a_sentence_that_says_so(make: SimpleNamespace) -> None:
    words = [f"word{i}" for i in range(2000)]
    figure = plots.figure([make.explanation(make.text(words), np.ones(2000), words)])
    assert "… the text goes on" in [t.get_text() for t in texts(figure)]
    assert figure.get_figheight() < 20


def test_many_explanations_start_new_rows(make: SimpleNamespace) -> None:
    figure = plots.figure(list(make.kinds().values()) * 2, top=3)
    assert figure.get_figwidth() == pytest.approx(4 * 3.9)
    assert cut_off(figure) == []


@pytest.mark.parametrize("ending", ["svg", "pdf"])
def test_other_endings(make: SimpleNamespace, ending: str, tmp_path: Path) -> None:
    plots.save([make.kinds()["image"]], tmp_path / f"e.{ending}", top=2, width=4.0)
    assert (tmp_path / f"e.{ending}").stat().st_size > 1000


@pytest.mark.parametrize("options", [{"style": "loud"}, {"top": 0}, {"top": 2.5}, {"width": 1.0}])
def test_options_that_mean_nothing_are_refused(make: SimpleNamespace, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        plots.figure([make.kinds()["table"]], **options)
    with pytest.raises(ValueError, match="at least one"):
        plots.figure([])


def test_wrapped_lines_fit_and_lose_nothing() -> None:
    text = "Some words, and averyveryverylongwordwithoutanyblanks" * 5
    lines = lettering.wrap(text, 1.5, 9)
    assert all(lettering.width(line, 9) <= 1.5 for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert lettering.wrap("", 1, 9) == [""]
    assert lettering.width(lettering.fit(text, 1.0, 9), 9) <= 1.0
