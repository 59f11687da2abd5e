"""What makes a run this run: things set up in Python, told the same the next time, and otherwise where they differ."""

import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from whytrust.explainers.lime import Lime
from whytrust.explainers.parzen import Parzen
from whytrust.studies.described import told, words


def made(size, scratch=()):
    notes = list(scratch)

    def explain(model, inputs, targets, by=1.0):
        notes.append(len(inputs))
        return np.full(len(inputs), size * by)

    return explain


def half(value):
    return value / 2


def double(value):
    return value * 2


@dataclass(frozen=True)
class Holder:
    function: object
    size: int = 3


class Trainer:
    def __init__(self, size):
        self.size, self.seen = size, []

    def train(self, inputs):
        self.seen.append(len(inputs))
        return self.size


def named_alike(by):
    return (lambda x: x * 2) if by == 2 else (lambda x: x * 3)


LONG_VOCABULARY = [f"word{i:03d}" for i in range(60)]


def recursive():
    def again(n):
        return again(n - 1) if n else 0

    return again


@pytest.mark.parametrize(("one", "other"), [
    (made(1), made(2)), (half, double), (partial(half, value=1), partial(half, value=2)), (partial(half, 1), partial(double, 1)),
    (lambda x: x, lambda x: -x), (lambda x, by=1: x * by, lambda x, by=2: x * by), (lambda x, *, by=1: x, lambda x, *, by=2: x),
    (Trainer(3).train, Trainer(5).train), (Trainer(3), Trainer(5)),
    (make_pipeline(CountVectorizer(vocabulary=LONG_VOCABULARY)), make_pipeline(CountVectorizer(vocabulary=LONG_VOCABULARY[:-1]))),
    (FunctionTransformer(named_alike(2)), FunctionTransformer(named_alike(3))), ([np.arange(2000)], [np.arange(2000)[::-1]]),
    ({"a": np.arange(2000)}, {"a": np.arange(2000)[::-1]}), (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
    (lambda w: w in {"a", "b"}, lambda w: w in {"a", "c"}), (frozenset("ab"), frozenset("ac")),
    (np.arange(2000.0), np.arange(2000.0)[::-1]), (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})),
    (Lime(samples=100), Lime(samples=200)), (Holder(half), Holder(double)), (Holder(half), Holder(half, 4)),
    (Parzen(background=np.arange(4000.0).reshape(-1, 2)), Parzen(background=np.arange(4000.0)[::-1].reshape(-1, 2)))],
    ids=["closure", "function", "partial's value", "partial's function", "lambda", "default", "keyword default", "bound method",
         "object", "elided vocabulary", "functions of one name", "arrays in a list", "arrays in a dict", "names of columns",
         "a set in the code", "frozenset", "array", "table",
         "setting", "function in a dataclass", "setting beside a function", "array in a dataclass"])
def test_what_differs_is_told_otherwise(one, other):
    assert told(one) == told(one)
    assert told(one) != told(other)
    assert words(one) != words(other)


class Sized:
    limit = 0.5

    def __init__(self, size, table=None):
        self.size, self.table, self.calls, self.seconds = size, table, 0, None

    def __call__(self, batch):
        self.calls += 1
        self.seconds = 1.5 * self.calls
        return self.doubled * len(batch)

    @cached_property
    def doubled(self):
        return self.size * 2


class Remembering(Sized):
    def __call__(self, batch):
        self.table[len(batch)] = batch
        return self.size


def classes(by):
    """Two of the same name, but for what their methods do, or hold."""
    class Metric:
        about = by if isinstance(by, str) else "about"

        def __call__(self, judged, rng):
            return 0.0 if by == 1 else 1.0

    @dataclass(frozen=True)
    class Setting:
        size: int = 3
        run = (lambda self: 0) if by == 1 else (lambda self: 1)

    return Metric(), Setting(), partial(Metric().__call__, 1), type("Inner", (type(Metric()),), {})()


def test_an_object_of_ones_own_class_is_told_by_its_code_and_what_it_holds():
    for one, again, other in zip(classes(1), classes(1), classes(2), strict=True):
        assert told(one) == told(again) != told(other)
        assert " at 0x" not in told(one)
    assert told(classes("a")[0]) != told(classes("b")[0])
    weights = np.arange(3.0)
    assert told(Sized(1, weights)) == told(Sized(1, weights.copy())) != told(Sized(1, weights + 1))
    assert told(Sized(1)) != told(Sized(2))
    assert told(Sized(1, {"a": 1})) != told(Sized(1, {"a": 2}))


def test_what_an_object_counts_and_remembers_while_it_runs_is_not_told():
    for one, again in ((Sized(3, {"a": 1}), Sized(3, {"a": 1})), (Remembering(3, {}), Remembering(3, {}))):
        before = told(one)
        one([1, 2])
        one([1, 2, 3])
        assert told(one) == before == told(again)


def test_what_a_function_writes_down_while_it_runs_makes_no_other_run():
    explain = made(1)
    before = told(explain)
    explain(None, [1, 2], None)
    assert told(explain) == before == told(made(1, scratch=(5,)))
    trainer = Trainer(3)
    before = told(trainer.train)
    trainer.train([1, 2])
    assert told(trainer.train) == before


def test_a_function_that_holds_itself_is_told():
    assert told(recursive()) == told(recursive())


def test_what_is_long_is_told_by_a_hash():
    long = Parzen(background=["some words"] * 200)
    assert len(words(long)) < 60
    assert words(long) != words(Parzen(background=["some word"] * 200))


def test_another_process_tells_the_same(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from whytrust.studies.described import told\n"
                    "def outer(by):\n    def inner(x, more={'a', 'b', 'c'}):\n        return x * by if x in {'d', 'e', 'f'} else by\n"
                    "    return inner\n"
                    "from dataclasses import dataclass\n"
                    "class Plain:\n    known = ('m', 'n')\n    def __call__(self, x):\n        return x in {'o', 'p', 'q'}\n"
                    "@dataclass(frozen=True)\nclass Data:\n    size: int = 3\n    held: object = Plain()\n"
                    "    def __call__(self, x, more={'r', 's'}):\n        return super().__init__() or x in {'t', 'u', 'v'}\n"
                    "print(told(outer(frozenset({'g', 'h', 'i'}))), told({'j', 'k', 'l'}), told(Plain()), told(Data()))\n")
    said = {subprocess.run([sys.executable, file], env={"PYTHONHASHSEED": str(seed)}, text=True, check=True,
                           capture_output=True).stdout for seed in range(3)}
    assert len(said) == 1
