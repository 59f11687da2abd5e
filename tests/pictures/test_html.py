"""Nothing that a user supplies can become markup."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whitebox import examples
from whytrust.pictures import html, page
from whytrust.pictures.html import Markup, escape, join, tag
from whytrust.views import ImageView, TableView

HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style></title><b>", "' onclick='x", "]]><!--",
           "&lt;i&gt;&amp;", "\x00\x1b\ud800\ufffe", "javascript:alert(1)", "‮abc", "", " \n\t ", "a\r\nb")
ANY = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30), st.text(alphabet="<>&\"'/=! \x00onscript", max_size=30))


def test_plain_text_is_always_escaped_and_markup_never_twice() -> None:
    assert tag("p", "<b>", tag("span", "&"), title='"\'<') == '<p title="&quot;&#39;&lt;">&lt;b&gt;<span>&amp;</span></p>'
    assert join(["<", Markup("<p>"), None, 3]) == "&lt;<p>3"
    assert not isinstance(Markup("<p>") + "<i>", Markup)  # what is put together by hand counts as text again
    assert tag("p", Markup("<p>") + "<i>") == "<p>&lt;p&gt;&lt;i&gt;</p>"
    assert tag("p", title=Markup('"')) == '<p title="&quot;"></p>'


@pytest.mark.parametrize("wrong", [
    lambda: tag("script", "x"), lambda: tag("p", onclick="x"), lambda: tag("p", **{"a b": "x"}),
    lambda: tag("img", src="https://example.org/x.png"), lambda: tag("img", src="javascript:x"),
    lambda: tag("p", x=float("nan")), lambda: html.stylesheet("</style>"),
    lambda: html.stylesheet("p { background: url(http://x) }")])
def test_what_has_no_place_on_a_page_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError):
        wrong()  # type: ignore[operator]


@given(st.text())
@example("\x00\ud800\uffff")
def test_escaped_text_reads_back_as_itself(make: SimpleNamespace, text: str) -> None:
    assert make.read(str(tag("p", text))).elements[0].text.replace("\r", "") == html.clean(text).replace("\r", "")
    escape(text).encode("utf-8")  # raises where something UTF-8 cannot hold is left


def hostile_explanations(make: SimpleNamespace, words: list[str]) -> list[object]:
    a, b, c, d, e = words
    common = {"target_name": a, "model": b, "notes": (c, d), "rules": e, "method": d, "settings": {c: a, "samples": b},
              "standard_errors": np.full(2, 0.1), "undecided": (1,)}
    labels = np.array([[0, 1], [0, 1]], dtype=np.int32)
    return [
        make.explanation(make.text([a + "x", b + "y"], c), [0.5, -0.5], (a, b), **common),
        make.explanation(TableView((a, b), (c, d), (e, a)), [0.5, -0.5], (d, e), **common),
        make.explanation(TableView((a, b), (c, d), (e, a)), [0.1, 0.0], (d, e), **{**common, "method": "difference"}),
        make.explanation(ImageView(np.zeros((2, 2, 3), np.uint8), labels), [0.5, -0.5], (c, d), **common),
    ]


@examples(30)
@given(st.lists(ANY, min_size=5, max_size=5))
def test_a_page_holds_only_its_own_elements_whatever_the_words(make: SimpleNamespace, words: list[str]) -> None:
    explanations = hostile_explanations(make, words)
    for text in (page.document(explanations, title=words[0]), page.fragment(explanations)):
        found = make.read(text)
        assert found.faults == []
        assert {e.tag for e in found.elements} <= html.TAGS
        text.encode("utf-8")
        for element in found.elements:
            assert not any(name.startswith("on") for name in element.attributes)
            for name in ("src", "href", "action", "style"):
                value = element.attributes.get(name) or ""
                assert "javascript:" not in value
                assert name not in ("src", "href") or not value or value.startswith("data:")


def test_hostile_words_are_shown_as_they_are(make: SimpleNamespace) -> None:
    found = make.read(page.document(hostile_explanations(make, list(HOSTILE[:5])), title=HOSTILE[0]))
    assert found.all("title")[0].text == HOSTILE[0]
    assert found.all("h2")[0].text == f"{HOSTILE[1]} says {HOSTILE[0]}: 0.93"
    assert any(HOSTILE[2] in item.text for item in found.all("li"))
    assert found.all("pre")[0].text == HOSTILE[4]
