"""Figures 9 and 10 of Ribeiro et al. (2016) on a made-up corpus in the layout of 20 newsgroups, where the header tells the group."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.svm import SVC

from whytrust import engine
from whytrust.core import generator
from whytrust.store import Store
from whytrust.studies import lime_religion, lime_religion_data, lime_religion_models, markdown
from whytrust.studies.lime_religion_data import Post, author_names, bare, divide, foreign_shares, read
from whytrust.studies.lime_religion_readers import Explained, Readers

REAL = os.environ.get("WHYTRUST_NEWSGROUPS", "")
POST = """From: strom@watson.example.com (Rob Strom)
Subject: Re: prayer in schools
Distribution: usa
Organization: Example Research
NNTP-Posting-Host: cyclops.example.com
Lines: 15

In article <N4HY.93Apr5120934@harder.example.org>, n4hy@harder.example.org
 (Bob McGwier) writes:

> I hate this policy.
|> It is wrong.
: So it is.
BM> Indeed.

Can somebody reconcile the contradiction, said Rob?
He wrote to me@home.example.org about faith :-)
:-) really

> And a last one

--\x20
Rob Strom, strom@watson.example.com
Example Research, Yorktown Heights
"""


# --- a post in pieces -------------------------------------------------------------------------------------------------


def test_a_post_is_divided_into_what_its_author_wrote_and_the_rest():
    post = divide(POST)
    assert post.subject == "prayer in schools"
    assert post.header.startswith("From: strom")
    assert post.header.endswith("Lines: 15")
    assert post.said_by.split("\n") == ["In article <N4HY.93Apr5120934@harder.example.org>, n4hy@harder.example.org", " (Bob McGwier) writes:"]
    assert post.quoted.split("\n") == ["> I hate this policy.", "|> It is wrong.", ": So it is.", "BM> Indeed.", "> And a last one"]
    assert [line for line in post.written.split("\n") if line] == [
        "Can somebody reconcile the contradiction, said Rob?", "He wrote to me@home.example.org about faith :-)", ":-) really"]
    assert post.signature.startswith("-- \nRob Strom")


@pytest.mark.parametrize(("body", "signature"), [
    ("I think so.\n\n--\nAnn", "--\nAnn"),
    ("I think so.\n\n+-=-+-=-+-=-+\n====----====\nAnn | wisdom\n=============\n", "+-=-+-=-+-=-+\n====----====\nAnn | wisdom\n=============\n"),
    ("I think so.\n\nAnn Lee\nann@example.com\n\n", "Ann Lee\nann@example.com\n\n"),
    ("I think so.\n\nAnn", "Ann"),
    ("I think so.\n\nIt is Ann who said so, and many others with her said the very same thing.", ""),
    ("Ann", ""),  # a post that is one line is what was written
    ("--\n" + "a line\n" * 40, ""),  # a mark so far up begins no signature
    ("I think so.\n\n> quoted Ann", ""),
    ("", ""),
])
def test_signatures(body, signature):
    post = divide(f"From: ann@example.com (Ann Lee)\nSubject: x\n\n{body}")
    assert post.signature == signature
    assert "\n".join(part for part in (post.written, post.quoted) if part).strip() or not body or signature


@pytest.mark.parametrize(("line", "is_one"), [
    ("In article <1@example.com> ann@example.com (Ann) writes:", True), ("ann@example.com (Ann) writes:", True),
    ("In <1993Apr@example.com> Ann wrote:", True), (">In article <4949@eastman.UUCP> dps@example.com writes:", True),
    ("In article 11853@vice.example.com, bob@vice.example.com (Bob) said:", True),
    ("In article four of the creed it is said.", False), ("Paul writes:", False), ("as he wrote to them long ago", False)])
def test_lines_that_say_whom_a_post_quotes(line, is_one):
    post = divide(f"From: x@example.com\n\n{line}\nWhat follows.\n")
    assert (post.said_by == line) == is_one


@pytest.mark.parametrize("line", ["a" * 200_000, "<" + "@" * 50_000, " " * 5000 + "x", " \t" * 2500 + "x", "-" * 50_000 + "x", "says " + ":" * 5000 + " " * 5000 + "x"])
def test_long_lines_are_read_once(line):
    start = time.process_time()
    divide(f"From: {line}\nSubject: x\n\n{line}\nwrote:\n> {line}\n\n{line}\n")
    assert time.process_time() - start < 2


@pytest.mark.parametrize(("line", "address"), [("mail a.b@c.org, now", "a.b@c.org"), ("(a@b)", "a@b"), ("<a!b!c>", "<a!b!c>"), ("see <1993Apr5.020504.199@host> there", "<1993Apr5.020504.199@host>"),
                                               ("<12345678>", "<12345678>"), ("at @ home", None), ("<short>", None)])
def test_addresses_are_found(line, address):
    found = lime_religion_data._ADDRESS.search(line)
    assert (found[0] if found else None) == address


def test_a_post_without_a_header_is_all_body_and_other_line_ends_are_known():
    assert divide("I think\n\nso").written == "I think\n\nso"
    assert divide("From: a@b.example\r\nSubject: x\r\n\r\nI think so.\r\n").written.strip() == "I think so."
    assert divide("From: a@b.example\nOrganization: one\n two\n\nbody").header.endswith(" two")


def test_words_of_the_frame_are_foreign_and_names_are_those_of_authors():
    posts = [Post("a", 0, POST)] + [Post(str(i), 1, f"From: {who}@example.com ({who} Christian)\nOrganization: University of Acme\n\n"
                                         f"The christian faith of {word} is old.\n") for i, (who, word) in enumerate(
        zip(["Kent", "Kent", "Kent"], ["john", "paul", "kent"], strict=True))]
    shares = foreign_shares(posts)
    assert shares["university"] == shares["acme"] == shares["nntp"] == shares["writes"] == 1
    assert shares["kent"] == pytest.approx(6 / 7)  # name and address of three posts, once in a text
    assert shares["faith"] == shares["prayer"] == shares["hate"] == 0
    assert shares["christian"] == 0.5
    names = author_names(posts)
    assert {"kent", "acme", "university", "strom"} <= names
    assert names.isdisjoint({"christian", "of", "faith", "nntp"})
    assert bare(posts[3], names) == "the christian faith of   is old."
    assert "@" not in bare(posts[0], names)
    assert bare(Post("q", 0, "From: a@b.example\n\n> all quoted\n"), names) == ""


def test_a_wrong_folder_is_told_clearly(tmp_path):
    with pytest.raises(ValueError, match=r"20news-bydate-train.alt.atheism is not there"):
        read(tmp_path)
    (tmp_path / "20news-bydate-train" / "alt.atheism").mkdir(parents=True)
    with pytest.raises(ValueError, match="holds none"):
        read(tmp_path)


# --- models -----------------------------------------------------------------------------------------------------------


def test_the_machine_is_scikit_learns():
    rng = generator(5)
    words = [" ".join(rng.choice([f"w{i}" for i in range(40)], 12)) for _ in range(80)]
    labels = np.array(["a", "b"])[[len(set(text.split()) & {"w1", "w2", "w3", "w4"}) > 1 for text in words] * np.ones(80, int)]
    matrix = CountVectorizer(binary=True).fit_transform(words)
    ours, theirs = lime_religion_models.GramSVC(10.0, 0.05).fit(matrix, labels), SVC(C=10.0, gamma=0.05).fit(matrix, labels)
    np.testing.assert_allclose(ours.decision_function(matrix), theirs.decision_function(matrix), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(matrix), theirs.predict(matrix))
    wide = sparse.hstack([matrix, sparse.csr_matrix((80, 20000))], format="csr")
    assert lime_religion_models.GramSVC(10.0, 0.05).fit(wide, labels).decision_function(wide) == pytest.approx(ours.decision_function(matrix))
    assert lime_religion_models.tuned(matrix, labels) == lime_religion_models.tuned(matrix, labels)


# --- readers ----------------------------------------------------------------------------------------------------------


def test_readers_choose_the_model_with_less_foreign_evidence():
    bad, good = [["host", 2.0, True], ["grace", 1.0, False]], [["grace", 1.0, False], ["faith", -3.0, False]]
    for swap, expected in ((False, 1.0), (True, 0.0)):
        models = {"original": good if swap else bad, "cleaned": bad if swap else good}
        one = Explained("lime", dict.fromkeys(range(10), models))
        for how in ("random", "submodular"):
            answers = Readers(40, 0, 3, 2)(one, how)  # who overlooks "host", one in ten, sees no difference
            assert abs(answers.right["careful"].mean() - expected) < 0.25
            assert answers.foreign["cleaned" if swap else "original"] == pytest.approx(2 / 3)


def test_equal_evidence_is_decided_by_a_coin_and_random_explanations_are_no_better():
    same = [["host", 2.0, True], ["grace", 1.0, False]]
    tie = Readers(400, 0, 3, 2)(Explained("lime", {i: {"original": same, "cleaned": same} for i in range(8)}), "random")
    assert tie.right["careful"].mean() == pytest.approx(0.5, abs=0.08)
    every = [[f"w{i}", 0.0, i % 4 == 0] for i in range(30)]
    floor = Readers(200, 0, 3, 6)(Explained("random", {i: {"original": every, "cleaned": every} for i in range(8)}), "submodular")
    assert floor.right["careful"].mean() == pytest.approx(0.5, abs=0.1)
    empty = Readers(50, 0, 3, 6)(Explained("lime", {i: {"original": [], "cleaned": []} for i in range(4)}), "submodular")
    assert 0.2 < empty.right["careful"].mean() < 0.8


# --- whole runs -------------------------------------------------------------------------------------------------------

SIDES = {"alt.atheism": ["doubt", "reason", "proof", "logic", "evidence", "atheist"],
         "soc.religion.christian": ["faith", "prayer", "grace", "psalm", "church", "christ"]}
NOISE = [f"word{i}" for i in range(40)]


def corpus(folder: Path) -> Path:
    """The header tells the group without fail; what is written leans to it."""
    rng = generator(7, "corpus")
    for split, count in (("train", 40), ("test", 15)):
        for group, other in zip(SIDES, reversed(SIDES), strict=True):
            place = folder / f"20news-bydate-{split}" / group
            place.mkdir(parents=True)
            for number in range(count):
                own = [str(rng.choice(SIDES[group if rng.random() < 0.75 else other])) for _ in range(4)]
                text = " ".join([*own, *(str(w) for w in rng.choice(NOISE, 10, replace=False))])
                host = "rutgers" if group.startswith("soc") else "keith"
                (place / f"{number:05d}").write_text(
                    f"From: {host}@example.com ({host} Poster)\nOrganization: {host} institute\nNNTP-Posting-Host: {host}.example.com\n\n"
                    f"{text}.\n\nthe end of caf\xe9 talk\n", encoding="latin-1")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return corpus(tmp_path_factory.mktemp("news"))


def test_figure_9_from_the_posts_to_the_page(data, tmp_path, monkeypatch):
    out = lime_religion.run("fig9", data, 0.1, tmp_path / "run", 1, 0, samples=200)
    found = json.loads(lime_religion.report(out, as_json=True))
    monkeypatch.setattr(lime_religion, "findings", lambda store: found)  # it was worked out; readers take their time
    assert found["cases"]["done"] == found["cases"]["of"]
    assert found["cases"]["failed"] == 0
    cells = {(row[0], row[1]): row[2] for row in found["tables"][1]["rows"]}
    assert len(cells) == 6
    assert cells["LIME", "submodular pick"]["n"] == 10
    assert cells["LIME", "submodular pick"]["value"] > 0.9 > cells["random explanations", "random pick"]["value"]
    models = next(Store.open(out).records())
    assert models["original"]["world"] < models["original"]["test"]
    page = (out / "tables.md").read_text()
    assert page == lime_religion.report(out, experiment="fig9")
    assert "Simulated readers take the place of the people" in page
    assert (out / "figures" / "lime-fig9.png").stat().st_size > 10_000
    assert lime_religion.is_reproduction(out)
    assert lime_religion.run("fig9", None, 1.0, out, 1, 0) == out  # from the records alone
    with pytest.raises(ValueError, match="holds a run of fig9"):
        lime_religion.report(out, experiment="fig10")


def test_figure_10_from_the_posts_to_the_page_and_the_same_when_continued(data, tmp_path):
    study = lime_religion.repair(str(data), 0.2, 0, 200)
    assert study.readers == (2, 1, 1)
    half = tmp_path / "run"
    store = Store.create(half, {**study.manifest(), "blocks": study.blocks()})
    for block in study.blocks()[:3]:
        store.write(block, study.work(block, lambda calls: None))
    store.close()
    out = lime_religion.run("fig10", data, 0.2, half, 1, 0, samples=200)
    whole = engine.run(lime_religion.repair(str(data), 0.2, 0, 200), tmp_path / "whole")
    assert list(whole.records()) == list(Store.open(out).records())
    found = lime_religion.findings(whole)
    assert found["experiment"] == "fig10"
    assert found["tables"][0]["rows"][0][0] == "accuracy before, real world"
    assert "200" in (out / "tables.md").read_text()
    assert (out / "figures" / "lime-fig10.png").stat().st_size > 10_000
    reference = next(whole.records())
    assert reference["oracle"]["accuracy"] >= reference["accuracy"]


def test_a_run_that_has_only_begun_can_be_told(data, tmp_path):
    study = lime_religion.ChoiceStudy(str(data), samples=200)
    store = Store.create(tmp_path / "run", {**study.manifest(), "blocks": study.blocks()})
    assert lime_religion.findings(store)["answer"] == ["Nothing is finished yet."]
    assert "0 of" in markdown.told(lime_religion.findings(store))


@pytest.mark.parametrize(("experiment", "scale", "told"), [("fig11", 1.0, "did you mean 'fig10'|did you mean 'fig1"), ("fig9", 0.0, "scale"), ("fig10", 2.0, "scale")])
def test_what_cannot_be_run_is_refused(data, tmp_path, experiment, scale, told):
    with pytest.raises(ValueError, match=told):
        lime_religion.run(experiment, data, scale, tmp_path / "run", 1, 0)
    with pytest.raises(ValueError, match="--data must name"):
        lime_religion.run("fig9", None, 1.0, tmp_path / "run", 1, 0)




@pytest.mark.skipif(not REAL, reason="WHYTRUST_NEWSGROUPS names no folder with 20news-bydate-train and -test")
def test_on_the_real_posts_test_accuracy_misleads_as_it_does_in_the_paper():
    study = lime_religion.ChoiceStudy(REAL)
    assert {name: study.data.counts()[name] for name in ("training", "test")} == {"training": 863, "test": 717}
    assert {"nntp", "host", "edu", "writes", "rutgers"} <= study.data.foreign
    assert study.data.foreign.isdisjoint({"god", "christian", "faith", "islamic", "of", "you"})
    (models,) = study.work(study.blocks()[0], lambda calls: None)
    original, cleaned = models.record["original"], models.record["cleaned"]
    assert original["test"] > cleaned["test"] > 0.85
    assert original["world"] < 0.62 < 0.68 < cleaned["world"]
