"""Any text, wherever a page shows what came from outside: it reads back as it was, and no element comes of it."""

import base64
import hashlib
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.hostile import PAGES, PAYLOADS, Words, explanation
from report.reading import Page
from whitebox import examples
from whytrust.pictures import bars, html, lettering

ANY = st.one_of(st.sampled_from(PAYLOADS[:-1]), st.text(st.characters(exclude_categories=()), max_size=30),
                st.text("<>&\"'/=!-`${}()[]|\\;:#% \x00\n\u202eonscript", max_size=30))
PLAIN = {kind: Page(make(Words([f"word{i:04d}" for i in range(400)]))) for kind, make in PAGES.items()}


def policy(read):
    (found,) = [e.attributes["content"] for e in read.all("meta") if e.attributes.get("http-equiv") == "Content-Security-Policy"]
    return dict(part.split(" ", 1) for part in found.split("; "))


def digest(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@examples(25)
@given(st.lists(ANY, min_size=3, max_size=12), st.sampled_from(sorted(PAGES)))
def test_any_words_leave_a_page_with_the_elements_and_attributes_that_it_has(texts, kind):
    read = Page(PAGES[kind](Words(texts)))
    assert read.faults == []
    assert {e.tag for e in read.elements} <= html.TAGS | {"script"}
    assert len(read.all("script")) == len(PLAIN[kind].all("script"))
    known = {name for e in PLAIN[kind].elements for name in e.attributes} | {"stroke-dasharray"}
    assert {name for e in read.elements for name in e.attributes} <= known
    for element in read.elements:
        assert "style" not in element.attributes
        for name in ("href", "src"):
            assert re.fullmatch(r"#[A-Za-z][\w-]*|data:(image/png|audio/wav);base64,[\w+/=]+", element.attributes.get(name) or "#x")


@examples(40)
@given(ANY)
def test_any_word_reads_back_from_the_page_of_an_explanation(text):
    read = Page(explanation(lambda: text, "table").as_html())
    shown = html.clean(text).replace("\r", "")
    assert all(cell.text.replace("\r", "") == shown for cell in read.all("td", "value"))
    assert [e.text.replace("\r", "") for e in read.all("pre")] == [shown]


@pytest.mark.parametrize("kind", PAGES)
def test_every_page_allows_its_own_style_and_script_by_their_hash_and_nothing_else(kind):
    read, rules = PLAIN[kind], policy(PLAIN[kind])
    (style,) = read.all("style")
    scripts = [e.text for e in read.all("script")]
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["style-src"] == digest(style.text)
    assert rules["script-src"] == (digest(scripts[0]) if scripts else "'none'")
    assert rules.get("img-src", "data:") == "data:"
    assert ("media-src" in rules) == bool(read.all("audio"))
    assert set(rules) <= {"default-src", "style-src", "script-src", "img-src", "media-src", "base-uri", "form-action"}
    assert {e.attributes["content"] for e in read.all("meta") if e.attributes.get("name") == "referrer"} == {"no-referrer"}
    head = [e.attributes.get("http-equiv") or e.tag for e in read.all("head")[0].children]
    assert head[:2] == ["meta", "Content-Security-Policy"]  # before anything that it is to judge


def test_a_style_of_one_element_becomes_a_rule_and_wins():
    text = html.document("t", ".a { width: 9% }", html.tag("p", "x", style="width:5%;color:#333", class_="a"), html.tag("b", style="width:5%;color:#333"))
    assert 'style="' not in text
    assert '[data-look="0"] { width:5% !important; color:#333 !important; }' in text
    assert text.count('data-look="0"') == 3


@pytest.mark.parametrize("wrong", ["width:5%;background:url(x)", "width:5%}*{color:red", "width:expression(1)/**/", r"background:u\72l(x)", "@import x"])
def test_a_style_that_is_more_than_a_look_is_refused(wrong):
    with pytest.raises(ValueError):
        html.tag("p", style=wrong)


@pytest.mark.parametrize("name", ["fill", "stroke", "mask", "filter"])
def test_no_attribute_of_a_drawing_holds_an_address(name):
    with pytest.raises(ValueError):
        html.tag("rect", **{name: "URL(https://example.invalid/x)"})


@pytest.mark.parametrize("letters", ["Donau", "e\u0336", "中", " a"])
def test_a_name_of_megabytes_is_cut_at_once(letters):
    begun = time.monotonic()
    for fit in (bars.fit, lettering.fit):
        short = fit(letters * 400_000, 2.0 if fit is lettering.fit else 200.0, 9.0)
        assert "…" in short
        assert len(short) <= 400
    assert time.monotonic() - begun < 3
