"""Whatever comes in, what comes out is an explanation or one clear error: never a crash, a warning or a NaN."""

import os
import warnings
import zlib

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import whytrust as wt
from whitebox import examples
from whytrust.explainers import NAMES

PARTS = st.sampled_from([None, "grid:2x2", "grid:3x1", "slic:5", "words", "bag", "sentences", "time:4", "tf:2x2", "columns", "x:1", ""])
METHODS = st.sampled_from(["lime", "occlusion", "random", "kernel_shap", "edges", "saliency", "grad_cam"])
NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=32)
INPUTS = st.one_of(
    st.text(max_size=40).filter(lambda text: not os.path.isdir(text)),  # "/" would explain every image on the machine
    st.none(), st.integers(), st.lists(NUMBERS, max_size=5), st.binary(max_size=8),
    arrays.arrays(np.float32, arrays.array_shapes(min_dims=0, max_dims=3, max_side=6), elements=NUMBERS),
    arrays.arrays(np.uint8, arrays.array_shapes(min_dims=2, max_dims=3, max_side=8)))


def any_model(kind):
    def model(batch):
        sums = np.array([zlib.crc32(i.encode("utf-8", "surrogatepass") if isinstance(i, str) else np.asarray(i).tobytes()) % 7
                         for i in batch], dtype=float)
        return {"flat": sums, "two": np.column_stack([sums, 1 - sums]), "constant": np.ones((len(batch), 3)),
                "nan": sums * np.nan, "short": sums[:-1], "words": [str(s) for s in sums]}[kind]
    return model


@examples(150)
@given(item=INPUTS, parts=PARTS, method=METHODS, kind=st.sampled_from(["flat", "two", "constant", "nan", "short", "words"]),
       options=st.fixed_dictionaries({}, optional={
           "samples": st.sampled_from([1, 9, 60, "auto", "x"]), "features": st.sampled_from([1, 3, "all"]), "seed": st.integers(-1, 3),
           "target": st.sampled_from([0, 1, -1, "a", [0], "top:1"]), "variant": st.sampled_from(["paper", "reference"]),
           "family": st.sampled_from(["linear", "tree", "auto"]), "batch_size": st.sampled_from([1, 3, 0])}))
def test_anything_is_explained_or_refused(item, parts, method, kind, options):
    if method != "lime":
        options = {k: v for k, v in options.items() if k in ("seed", "target", "batch_size")}
    if options.get("samples") == "auto":
        options["budget"] = 400  # a model without any order in it is never decided
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = wt.explain(any_model(kind), item, method, parts=parts, **options)
        except (ValueError, TypeError):
            return
    for one in found if isinstance(found, list) else [found]:
        assert np.isfinite(one.scores).all()
        assert one.as_html()


@examples(60)
@given(background=arrays.arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 4)),
                                elements=st.one_of(st.integers(-3, 3).map(float), NUMBERS)),
       bins=st.sampled_from(["quartile", "decile", None, "thirds"]), values=st.sampled_from(["training", "normal"]),
       samples=st.sampled_from([30, 200]))
def test_any_table_is_explained_or_refused(background, bins, values, samples):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = wt.explain(lambda b: np.nan_to_num(b).clip(-9, 9).sum(axis=1), background[0], background=background, bins=bins,
                               values=values, samples=samples)
        except (ValueError, TypeError):
            return
    assert np.isfinite(found.scores).all()
    assert np.isfinite(found.standard_errors).all()


@examples(40)
@given(data=st.data(), method=st.sampled_from([e for e in NAMES if NAMES[e].gradients]), dtype=st.sampled_from(["u1", "f4", "f8"]),
       grey=st.booleans(), pooling=st.sampled_from([None, "mean", "mean_abs", "mean_pos", "sum"]),
       explains=st.sampled_from(["logit", "score"]), batch_size=st.sampled_from([None, 1, 3]))
def test_any_image_has_gradients_or_one_clear_error(data, method, dtype, grey, pooling, explains, batch_size):
    height, width = data.draw(st.integers(2, 9)), data.draw(st.integers(2, 9))
    shape = (height, width) if grey else (height, width, 3)
    values = st.integers(0, 255) if dtype == "u1" else st.floats(-1e6, 1e6, width=32)
    image = data.draw(arrays.arrays(np.dtype(dtype), shape, elements=values, fill=st.nothing()))
    channels = 1 if grey else 3
    net = torch.nn.Sequential(torch.nn.Conv2d(channels, 2, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(2))
    net(torch.zeros(1, channels, height, width))
    more = ({"steps": 2} if "integrated" in method else {}) | ({"samples": 3} if "/" in method else {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = wt.explain(wt.model(net, output="logit"), image, method, parts="grid:2x2", pooling=pooling, explains=explains,
                               batch_size=batch_size, **more)
        except (ValueError, TypeError):
            return
    assert found.scores.shape == (4,)
    assert np.isfinite(found.scores).all()
    assert found.as_html()
