"""Audits of texts: words are swapped, and a model that looks for one word tells which of them turned the answer."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import whytrust as wt
from report.reading import Page
from studies.specs import stop_after, told, written
from studies.swapped import SWAPS, Swapping, looking, texts
from synonyms import Synonyms
from whytrust.explainers.baselines import Random
from whytrust.explanation import Explanation
from whytrust.studies.data import gather

EXACT = {"lime": {"samples": 200}, "kernel_shap": {"samples": 200}, "occlusion": {}}
TEXTS = texts(40)


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    explainers = {**EXACT, "random scores": Random()}
    return wt.audit(looking(), TEXTS, explainers, attack=Swapping(), out=tmp_path_factory.mktemp("texts") / "run")


def rates(found):
    return {row["name"]: row for row in found.table()}


# --- the known answer -------------------------------------------------------------------------------------------------


def test_explainers_that_are_exact_find_the_word_that_turned_the_answer(audit):
    found = rates(audit)
    for name in EXACT:
        assert found[name]["flip@1"] == 1.0
        # The same word in every text: what an explainer says of it in other texts will do.
        assert audit.findings["measures"]["flip"]["blind"][f"shuffled words:{name}"]["value"] == 1.0
        assert found[name]["verdict"].startswith(("no better than a blind guess", "undecided"))
    assert found["oracle"]["flip@1"] == 1.0
    assert found["random scores"]["verdict"].startswith(("undecided", "no better"))


PRAISE, BLAME = ("fine", "warm", "clever", "witty", "fresh"), ("dull", "cold", "silly", "flat", "stale")


def after_very(texts):
    """Bad where the word after "very" is one of blame; other words of blame do nothing."""
    return [0.9 if text.split("very ")[-1].split(",")[0] in BLAME else 0.2 for text in texts]


def test_a_cause_that_no_word_has_of_itself_is_found_by_those_who_look_at_the_text_alone(tmp_path):
    rng, given = np.random.default_rng(0), []
    for _ in range(60):
        opinions = rng.permutation([f"very {rng.choice(PRAISE)}", *rng.choice([*BLAME, *PRAISE], 5)])
        given.append("".join(f"{thing} {opinion}, " for thing, opinion in zip(rng.permutation(["plot", "cast", "music", "pace", "score", "end"]), opinions, strict=True)))
    swap = dict(zip(PRAISE, BLAME, strict=True))
    model = wt.model(after_very, threshold=0.5, classes=["good", "bad"])
    explainers = {"occlusion": {}, "last": LastWords(), "random scores": Random()}
    found = wt.audit(model, given, explainers, trials=["flip"], out=tmp_path / "run", attack={
        "method": "word_swap", "candidates": lambda text, place: [swap[text.words[place]]] if text.words[place] in swap else [], "constraints": ["stop_words"]})
    assert found.verdicts()["occlusion"] == "better than blind guesses"
    assert not found.verdicts()["last"].startswith("better")
    assert not found.verdicts()["random scores"].startswith("better")


class LastWords:
    """The later a word, the more: it sees neither the model nor the words."""

    def __call__(self, question, rng):
        return Explanation.of(question, "last", np.arange(question.d) * 1.0, sense="nothing")


def test_of_three_swapped_words_magnitude_does_not_know_which(audit):
    assert rates(audit)["magnitude"]["flip@1"] == pytest.approx(1 / 3, abs=4 * np.sqrt(2 / 9 / 40))
    assert rates(audit)["magnitude"]["flip@3"] == 1.0
    assert rates(audit)["random"]["flip@1"] == pytest.approx(np.mean([1 / len(text.split()) for text in TEXTS]), abs=0.05)


def test_nobody_is_compared_with_magnitude_which_is_told_the_swapped_words(audit):
    measures = audit.findings["measures"]
    assert all(not one["against_magnitude"] for one in measures.values())
    assert audit.findings["kind"] == "text"


def test_recovery_keeps_swaps_that_still_turn_the_answer(audit):
    """One swap of three is kept, by chance the one that matters in a third of the texts; then it is the whole cause."""
    kept = [record["trials"][0]["recovery"]["1"] for record in audit.store.records()]
    still = [one for one in kept if one["flipped"]]
    assert 0 < len(still) < len(kept)
    assert all(one["found"]["occlusion"] == 1 for one in still)
    assert all(record["trials"][0]["recovery"]["3"]["flipped"] for record in audit.store.records())
    assert all(set(record["trials"][0]["recovery"]) == {"1", "3"} for record in audit.store.records())  # five were not swapped


def test_a_record_says_what_was_swapped(audit):
    for record, text in zip(audit.store.records(), TEXTS, strict=True):
        facts = record["attack"]
        assert set(facts["swaps"].split(", ")) == {f"{before} → {after}" for before, after in SWAPS.items()}
        assert (facts["swapped"], facts["words"]) == (3, len(text.split()))
        assert facts["share"] == pytest.approx(3 / len(text.split()))
        assert facts["margin"] == pytest.approx(0.8)
        assert facts["absence"] is False
        assert (record["clean_name"], record["label_name"]) == ("good", "bad")
        assert text.startswith(record["name"].removesuffix(" …"))


def test_the_arrays_hold_both_texts_and_where_their_words_are(audit):
    for record, text in zip(audit.store.records(), TEXTS, strict=True):
        arrays = audit.store.arrays(record["case"])
        clean, changed = (bytes(arrays[name]).decode() for name in ("clean", "adversarial"))
        assert clean == text
        assert [changed[a:b] for a, b in arrays["adversarial_spans"]] == [SWAPS.get(word, word) for word in text.rstrip(".").split()]


def test_an_answer_that_turns_for_lack_of_a_word_is_counted_apart(tmp_path):
    """Bad where "fine" is missing: what was put in its place says nothing, and no explainer of the changed text can know."""
    found = wt.audit(looking("fine", missed=True), TEXTS[:12], ["occlusion"], attack=Swapping(), out=tmp_path / "run")
    assert all(record["attack"]["absence"] for record in found.store.records())
    there, gone = found.findings["absences"]
    assert (there["n"], gone["n"], gone["of"]) == (0, 12, 12)
    scores = [record["trials"][0]["scores"]["occlusion"] for record in found.store.records()]
    assert not np.any(scores[0])
    page = found.save_html(tmp_path / "page.html").read_text()
    assert "A new word, or a missing one?" in page
    assert "12 of 12 texts (100%)" in page


def test_the_page_tells_of_words_and_texts(audit, tmp_path):
    page = audit.save_html(tmp_path / "page.html").read_text(encoding="utf-8")
    for words in ("A few words of 40 of 40 texts were swapped", "How few words turn the answer?", "Are the guilty words found?",
                  "the attack may favour them", "Words swapped", "3 (at most 3)"):
        assert words in page
    read = Page(page)
    settings = read.by_id("repeat")
    spoken = " ".join(one.text for one in read.elements if not one.children and one.tag not in ("script", "style")
                      and settings not in one.parents)
    assert not re.findall(r"(?i).{40}\b(?:parts?|pixels?|pictures?|inputs?|columns?)\b", spoken)
    assert "than magnitude" not in spoken
    assert "no better than a blind guess" in str(audit)
    json.dumps(audit.to_json(), allow_nan=False)


# --- the same bits ----------------------------------------------------------------------------------------------------


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for kind in ("records", "arrays") for p in sorted((folder / kind).iterdir())}


def run(folder, **options):
    return wt.audit(looking(), TEXTS[:11], EXACT, attack=Swapping(), draws=2, block=3, out=folder, **options)


def test_jobs_change_nothing(tmp_path):
    run(tmp_path / "one", jobs=1)
    run(tmp_path / "two", jobs=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_an_interrupted_audit_goes_on_to_the_same_records(tmp_path, monkeypatch):
    run(tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "stopped")
    assert len(list((tmp_path / "stopped" / "records").iterdir())) == 2
    run(tmp_path / "stopped")
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


def test_another_attack_or_another_text_is_another_run(tmp_path):
    run(tmp_path / "run")
    with pytest.raises(ValueError, match=r"another spec.*attack"):
        wt.audit(looking(), TEXTS[:11], EXACT, attack=Swapping((("fine", "terrible"),)), draws=2, block=3, out=tmp_path / "run")
    with pytest.raises(ValueError, match="another spec"):
        wt.audit(looking(), [*TEXTS[:10], TEXTS[20]], EXACT, attack=Swapping(), draws=2, block=3, out=tmp_path / "run")


# --- what cannot be audited -------------------------------------------------------------------------------------------


def test_texts_that_cannot_be_worked_on_are_told_and_the_others_go_on(tmp_path):
    some = [TEXTS[0], "fine", "quiet and long", "", "fine, or not", 7]
    found = wt.audit(looking(), some, ["occlusion"], attack=Swapping(), out=tmp_path / "run")
    states = [record["status"] for record in found.store.records()]
    assert states == ["ok", "failed", "not fooled", "failed", "ok", "failed"]
    errors = [record.get("error") or "" for record in found.store.records()]
    assert "a text must have at least two words that the model reads, got 'fine'" in errors[1]
    assert "which is empty" in errors[3]
    assert "a text must be a str, got int" in errors[5]
    assert found.findings["attack"]["idle"] == 1
    page = found.save_html(tmp_path / "page.html").read_text()
    assert "Nothing to swap" in page
    assert "3 texts could not be worked on" in page


def test_where_nothing_flips_the_finding_says_what_to_try(tmp_path):
    found = wt.audit(looking("never"), TEXTS[:2], ["occlusion"], attack=Swapping(), out=tmp_path / "run")
    assert found.findings["counts"]["not_fooled"] == 2
    assert found.verdicts() == {"occlusion": "undecided: no input could be fooled with this attack; try a stronger one: allow more "
                                             "swaps (most), fewer constraints or other candidates"}
    assert "None of 2 inputs could be changed" in found.save_html(tmp_path / "page.html").read_text()


def test_an_attack_s_word_is_not_taken_for_it(tmp_path):
    class Boasting(Swapping):
        """Claims that the text was of another class before."""

        def __call__(self, model, text, on_calls=None):
            made = super().__call__(model, text, on_calls)
            made.label, made.flipped = 1 - made.clean_label, True
            return made

    found = wt.audit(looking(), [*TEXTS[:2], "quiet movie indeed"], ["occlusion"], attack=Boasting(), out=tmp_path / "run")
    assert [record["status"] for record in found.store.records()] == ["ok", "ok", "not fooled"]


def test_an_attack_that_adds_words_is_that_text_s_failure(tmp_path):
    def adding(model, text, on_calls=None):
        made = Swapping()(model, text, on_calls)
        if "quiet" in text:
            made.text = replace(made.text, text=f"very {made.text.text}")
        return made

    found = wt.audit(looking(), TEXTS[:6], ["occlusion"], attack=adding, out=tmp_path / "run")
    failed = [record for record in found.store.records() if record["status"] == "failed"]
    assert len(failed) == sum("quiet" in text for text in TEXTS[:6]) > 0
    assert "another text must have as many parts" in failed[0]["error"]


def test_what_the_model_does_not_read_is_neither_swapped_nor_a_part(tmp_path):
    some = [f"fine and early; {filler} film, fine story" for filler in ("quiet", "long", "local")]
    found = wt.audit(looking(limit=16), some, ["occlusion"], attack=Swapping(), out=tmp_path / "run")
    for record, text in zip(found.store.records(), some, strict=True):
        assert record["d"] == 3
        assert record["attack"]["swaps"] == "fine → terrible"
        assert record["text"] == {"characters": len(text), "unread": len(text) - 16}
    assert "more characters of this text the model does not read" in found.save_html(tmp_path / "page.html").read_text()


@pytest.mark.parametrize(("wrong", "message"), [
    ({"parts": "bag"}, "texts are audited by their words, which are what is swapped: parts must be 'words', got 'bag'"),
    ({"parts": "grid:4x4"}, "parts must be 'words'"),
    ({"split": r"\S+"}, "split cannot be used with texts in an audit"),
    ({"attack": {"method": Swapping(), "strengths": [0]}}, "have no strengths"),
    ({"attack": {"targets": "random"}}, "leave targets out"),
    ({"attack": "pgd"}, "texts are audited with attack='word_swap', got 'pgd'"),
    ({"attack": "word_swop"}, r"did you mean 'word_swap'"),
    ({"attack": {"most": 0}}, "most must be the share of words that may be swapped"),
    ({"attack": {"mosst": 0.5}}, r"word_swap has no option 'mosst' \(did you mean 'most'"),
    ({"attack": {"method": Swapping(), "most": 0.5}}, "an attack of your own is set where it is made"),
    ({"cut_on": "adversarial"}, "leave cut_on out"),
    ({"background": TEXTS}, "texts are audited without a background"),
])
def test_what_is_written_wrong_is_told_before_anything_is_done(tmp_path, wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        wt.audit(looking(), TEXTS[:3], out=tmp_path / "run", **{"explainers": ["occlusion"], "attack": Swapping(), **wrong})
    assert not (tmp_path / "run").exists()


def test_parts_may_be_called_words_and_hidden_ones_may_be_masked(tmp_path):
    found = wt.audit(looking(), TEXTS[:3], ["occlusion"], "words", Swapping(), "flip", tmp_path / "run", fill="[MASK]")
    assert found.findings["counts"]["adversaries"] == 3


# --- the attack itself ------------------------------------------------------------------------------------------------

WORDS = {"candidates": Synonyms({"fine": ["good", "terrible"], "film": ["movie"], "quiet": ["calm"]}), "constraints": ["stop_words"]}


def test_word_swap_swaps_the_word_that_decides_and_no_other(tmp_path):
    found = wt.audit(looking(), TEXTS[:8], EXACT, attack={"method": "word_swap", **WORDS}, out=tmp_path / "run")
    assert [record["attack"]["swaps"] for record in found.store.records()] == ["fine → terrible"] * 8
    assert all(rates(found)[name]["flip@1"] == 1.0 for name in (*EXACT, "magnitude", "oracle"))
    assert found.findings["attack"]["settings"]["constraints"] == ["stop_words"]


def test_word_swap_gives_the_same_bytes_in_two_processes(tmp_path):
    for jobs in (1, 2):
        wt.audit(looking(), TEXTS[:5], ["occlusion"], attack=WORDS, out=tmp_path / str(jobs), jobs=jobs, block=2, draws=2)
    assert contents(tmp_path / "1") == contents(tmp_path / "2")


def test_at_most_a_share_of_the_words_is_swapped(tmp_path):
    """Two words count, and the model says otherwise only where both are gone."""
    both = wt.model(lambda texts: [0.3 + 0.25 * len({"fine", "film"} & set(text.rstrip(".").split())) for text in texts], threshold=0.5)
    some = [text for text in TEXTS if len(text.split()) == 11][:3]
    found = wt.audit(both, some, ["occlusion"], attack={**WORDS, "most": 0.19}, out=tmp_path / "run")
    assert [record["attack"]["swapped"] for record in found.store.records()] == [2, 2, 2]
    found = wt.audit(both, some, ["occlusion"], attack={**WORDS, "most": 0.17}, out=tmp_path / "fewer")
    assert [record["status"] for record in found.store.records()] == ["not fooled"] * 3


@pytest.mark.parametrize(("attack", "message"), [
    ({"candidates": "thesaurrus"}, r"candidates must be among .*did you mean 'thesaurus'"),
    ({"candidates": "pairs:/nowhere"}, "/nowhere"),
    ({"constraints": ["stop_word"]}, r"did you mean 'stop_words'"),
])
def test_a_source_or_a_rule_that_nobody_knows_is_told_before_anything_is_done(tmp_path, attack, message):
    with pytest.raises((ValueError, OSError), match=message):
        wt.audit(looking(), TEXTS[:3], ["occlusion"], attack=attack, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_reviews_preset_runs(tmp_path, capsys):
    pytest.importorskip("torch")
    code, out, _ = told(capsys, "audit", "reviews", "--limit", 4, "--out", tmp_path / "run", "--explainers", "occlusion", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["attack"]["settings"]["candidates"] == "thesaurus"
    assert found["kind"] == "text"
    assert found["attack"]["accuracy_before"] is not None
    assert found["attack"]["share"]["max"] <= 0.5


def test_a_net_of_texts_is_tried_with_gradients_too(tmp_path):
    """A net that reads tokens: its explainers are pooled from the embedding of each onto words."""
    pytest.importorskip("transformers")
    from backends.test_huggingface import bert, bert_tokenizer
    some = ["the film is good", "a dull slow film and a cold scene", "the actor was warmly funny", "the plot was not very good"]
    swaps = Synonyms({"film": ["music", "plot", "scene"], "actor": ["end", "start"], "good": ["bad", "dull", "cold"],
                      "very": ["un", "slow"], "plot": ["music", "it"], "dull": ["warm"], "funny": ["cold"], "warmly": ["bad"]})
    found = wt.audit((bert(), bert_tokenizer()), some, attack={"candidates": swaps, "constraints": ["repeat"], "most": 1.0},
                     out=tmp_path / "run")
    assert set(found.verdicts()) == {"lime", "kernel_shap", "occlusion", "saliency", "integrated_gradients", "input_x_gradient"}
    assert found.findings["explainer_failures"] == {}
    assert found.findings["counts"]["adversaries"] > 0


# --- where texts come from --------------------------------------------------------------------------------------------


def values(data):
    return [data.read(item) for item in data.items]


def test_a_file_has_a_text_a_line_and_a_folder_one_a_file(tmp_path):
    (tmp_path / "texts.txt").write_bytes("a good film\r\n\n  \n“bad” plot\n".encode())
    assert values(gather(tmp_path / "texts.txt")) == ["a good film", "“bad” plot"]
    assert gather(str(tmp_path / "texts.txt")).what == "2 texts"
    for name, label in (("one", "pos"), ("two", "neg")):
        (tmp_path / "folder" / label).mkdir(parents=True)
        (tmp_path / "folder" / label / f"{name}.txt").write_text(f"this is {name}\nwith two lines", encoding="utf-8")
    data = gather(tmp_path / "folder")
    assert data.what == "2 texts of folder in 2 class folders"
    assert {item.truth: value for item, value in zip(data.items, values(data), strict=True)} == {
        "neg": "this is two\nwith two lines", "pos": "this is one\nwith two lines"}


def test_a_series_and_a_tuple_are_lists_of_texts():
    pandas = pytest.importorskip("pandas")
    assert values(gather(pandas.Series(["a b", "c d"]))) == values(gather(("a b", "c d"))) == ["a b", "c d"]


@pytest.mark.parametrize(("content", "message"), [(b"\n \n", "must hold a text a line, got none"), (b"\xff\xfe bad", "must be a text file in UTF-8"),
                                                  (None, "does not exist")])
def test_a_file_without_texts_is_one_error(tmp_path, content, message):
    if content is not None:
        (tmp_path / "texts.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        gather(tmp_path / "texts.txt")


def test_a_text_of_lone_surrogates_and_nul_is_kept_as_it_is(tmp_path):
    strange = "fine \ud800 \x00 film\x00"
    found = wt.audit(looking(), [strange, TEXTS[0]], ["occlusion"], attack=Swapping(), out=tmp_path / "run")
    shown = found.gallery()[0].text
    assert (shown.before, shown.after) == (strange, strange.replace("fine", "terrible").replace("film", "movie"))
    assert "terrible" in found.save_html(tmp_path / "page.html").read_text(encoding="utf-8")


# --- from the command line --------------------------------------------------------------------------------------------

SPEC = """
model = "looking.py:model"
inputs = "texts.csv"
column = "said"
labels = "felt"
explainers = ["occlusion"]

[attack]
candidates = "pairs:pairs.txt"
constraints = ["stop_words"]
"""


@pytest.fixture
def place(tmp_path):
    pandas = pytest.importorskip("pandas")
    (tmp_path / "looking.py").write_text("from studies.swapped import looking\nmodel = looking()\n")
    (tmp_path / "pairs.txt").write_text("".join(f"{before} {after}\n" for before, after in SWAPS.items()))
    table = pandas.DataFrame({"said": TEXTS[:8], "felt": ["good"] * 6 + ["bad"] * 2})
    table.to_csv(tmp_path / "texts.csv", index=False)
    return tmp_path


def test_a_column_of_a_table_is_audited_from_a_spec(place, capsys):
    code, out, _ = told(capsys, "audit", written(place, "spec.toml", SPEC), "--out", place / "run", "--json")
    assert code == 0
    assert json.loads(out)["attack"]["accuracy_before"] == 0.75
    assert json.loads(out)["counts"]["adversaries"] == 8
    assert (place / "run" / "report.html").is_file()


def test_a_dry_run_counts_and_writes_nothing(place, capsys):
    code, out, _ = told(capsys, "audit", written(place, "spec.toml", SPEC), "--out", place / "run", "--dry-run")
    assert code == 0
    assert "8 inputs in blocks of up to 16: about" in out
    assert not (place / "run").exists()


def test_a_column_that_does_not_exist_is_told(place, capsys):
    code, _, err = told(capsys, "audit", written(place, "spec.toml", SPEC.replace('"said"', '"sayd"')))
    assert code == 2
    assert "column must be one of the file's (said, felt), got 'sayd' (did you mean 'said'?)" in err
