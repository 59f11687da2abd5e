import numpy as np

from whytrust.report.directions import directions, directions_of


def record(case, before, after, flips, status="ok"):
    k = list(range(1, len(flips) + 1))
    bits = {"flip": {judge: dict.fromkeys(("lime", "magnitude", "magnitude_mean", "oracle"), flips) for judge in
                     ("any", "target")}, "random": {judge: [0.5] * len(k) for judge in ("any", "target")}}
    trial = {"strength": "full", "label": 1, "k": k, **bits, "random_variance": {"any": 0.0, "target": 0.0}, "failed": {},
             "positive": {}, "fidelity": {}}
    return {"case": case, "status": status, "clean_label": ["a", "b", "c"].index(before), "clean_name": before,
            "label_name": after, "d": len(k), "source": None, "trials": [trial]}


def test_rates_are_apart_by_the_answers_before_and_after():
    records = [record("0", "a", "b", "0011"), record("1", "a", "b", "0001"), record("2", "b", "a", "1111"),
               {**record("3", "a", "b", "0000"), "status": "not fooled"}]
    first, second = directions_of(records, ["lime"])
    assert (first["before"], first["after"], first["n"], first["of"]) == ("a", "b", 2, 3)
    assert (second["before"], second["after"], second["n"], second["of"]) == ("b", "a", 1, 1)
    np.testing.assert_allclose(first["rates"]["flip@3"]["lime"]["value"], 0.5)
    np.testing.assert_allclose(second["rates"]["flip@3"]["lime"]["value"], 1.0)


def test_one_direction_and_very_many_are_not_told_apart():
    assert directions_of([record("0", "a", "b", "0011")], ["lime"]) == []
    many = [record(str(i), "abc"[i % 3], f"to {i}", "0011") for i in range(5)]
    assert directions_of(many, ["lime"]) == []
    assert directions({}) is None


def test_answers_are_escaped_on_the_page():
    records = [record("0", "a", "<b>", "0011"), record("1", "b", "a", "1111")]
    found = {"directions": directions_of(records, ["lime"]), "contenders": [{"name": "lime", "role": "explainer"}]}
    page = str(directions(found))
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "100%" in page


def test_an_answer_that_was_never_turned_is_a_direction_too():
    records = [record(str(i), "a", "b", "0011") for i in range(3)]
    records += [{**record(str(i), "b", "", "0000", "not fooled"), "trials": []} for i in range(3, 8)]
    first, second = directions_of(records, ["lime"])
    assert (first["before"], first["after"], first["n"], first["of"]) == ("a", "b", 3, 3)
    assert (second["before"], second["after"], second["n"], second["of"], second["rates"]) == ("b", "a", 0, 5, {})
    page = str(directions({"directions": [first, second], "contenders": [{"name": "lime", "role": "explainer"}]}))
    assert "0 of 5 inputs fooled (0%): nothing to explain." in page
