"""An audit that never ran: findings and gallery cases simulated from a model whose cause is known, in the shapes of real ones."""

from __future__ import annotations

import math

import numpy as np

EXPLAINERS = {  # how noisily each sees the true effect of a part; negative: it sees the opposite
    "occlusion": 0.15, "kernel_shap": 0.25, "lime": 0.35, "integrated_gradients": 0.8, "saliency/smoothgrad": 1.4,
    "grad_cam": 2.5, "edges": 40.0, "guided_backprop": -1.2}
KINDS = ("better_than_magnitude", "better_than_magnitude", "better_than_magnitude", "better_than_random", "better_than_random",
         "undecided", "no_better", "worse")
WORDS = {"better_than_magnitude": "better than random and magnitude", "better_than_random": "better than random, not than magnitude",
         "no_better": "no better than random", "worse": "worse than random", "undecided": "undecided"}
BASELINES = ("oracle", "magnitude", "magnitude_mean", "random")
ABOUT = {"occlusion": "hides one part at a time", "kernel_shap": "Shapley values by sampling", "lime": "a local linear model",
         "oracle": "the best parts that were found", "magnitude": "parts by the size of the change",
         "magnitude_mean": "the same per pixel", "random": "parts picked blindly"}
HOSTILE = ('<script>window.ran = 1</script>', '"><img src=x onerror="window.ran=1">', "</style></script><svg onload=window.ran=1>",
           "' onfocus='window.ran=1' autofocus='", "<!--", "&lt;b&gt;", "‮abc", "javascript:window.ran=1")


def rate(values):
    values = np.asarray(values, float)
    value, half = float(values.mean()), 1.96 * float(values.std()) / math.sqrt(len(values))
    return {"value": value, "low": max(0.0, value - half), "high": min(1.0, value + half), "n": len(values), "sources": len(values)}


def ranked(rng, effects, noise):
    if noise < 0:
        return np.argsort(effects + rng.normal(0, -noise, len(effects)), kind="stable")
    return np.argsort(-(effects + rng.normal(0, noise, len(effects))), kind="stable")


def bits(effects, order, threshold):
    return (np.cumsum(effects[order]) >= threshold).astype(int)


def simulated(n, d, names, seed=0):
    """bits[name] (n, d), orders[name] (n, d) and what k random parts would do."""
    rng = np.random.default_rng(seed)
    flips = {name: [] for name in (*names, "oracle", "magnitude", "magnitude_mean")}
    orders = {name: [] for name in flips}
    chance = []
    for _ in range(n):
        effects = rng.exponential(1.0, d)
        threshold = rng.uniform(0.1, 0.5) * effects.sum()
        noises = {**names, "oracle": 0.0, "magnitude": 0.7, "magnitude_mean": 1.0}
        for name, noise in noises.items():
            order = ranked(rng, effects, noise)
            orders[name].append(order)
            flips[name].append(bits(effects, order, threshold))
        chance.append(np.mean([bits(effects, rng.permutation(d), threshold) for _ in range(40)], axis=0))
    return {k: np.array(v) for k, v in flips.items()}, {k: np.array(v) for k, v in orders.items()}, np.array(chance)


def difference(one, other):
    gap = one - other
    half = 1.96 * float(gap.std()) / math.sqrt(len(gap))
    value = float(gap.mean())
    return {"value": value, "low": value - half, "high": value + half, "p": 0.01, "n": len(gap), "sources": len(gap),
            "error": half / 1.96, "freedom": len(gap) - 1.0, "p_holm": 0.02}


def measure(per_case, about):
    rates = {name: rate(values) for name, values in per_case.items()}
    low, high = rates["random"]["value"], rates["oracle"]["value"]
    others = {name: values for name, values in per_case.items() if name not in ("random",)}
    return {"about": about, "rates": rates,
            "against_random": {name: difference(v, per_case["random"]) for name, v in others.items()},
            "against_magnitude": {name: difference(v, per_case["magnitude"]) for name, v in others.items()},
            "normalised": {name: (r["value"] - low) / (high - low) if high > low else None for name, r in rates.items()}}


def curve(flips, chance, d):
    lines = {}
    for name, values in {**flips, "random": chance}.items():
        columns = [rate(values[:, k]) for k in range(d)]
        lines[name] = {part: [c[part] for c in columns] for part in ("value", "low", "high")}
    return {"unit": "parts", "x": list(range(1, d + 1)), "lines": lines}


def findings(n=280, d=16, names=None, kinds=KINDS, kind="image", seed=0):
    names = dict(names or EXPLAINERS)
    flips, _, chance = simulated(n, d, names, seed)
    everything = {**flips, "random": chance}
    rng = np.random.default_rng(seed + 1)
    target, _, target_chance = simulated(max(n // 2, 2), d, {k: v * 1.5 for k, v in names.items()}, seed + 2)
    measures = {"flip@3": measure({k: v[:, 2] for k, v in everything.items()}, "share turned by the 3 best parts"),
                "flip": measure({k: v[:, :-1].mean(axis=1) for k, v in everything.items()}, "mean over every number of parts")}
    best = sorted(names, key=lambda name: -measures["flip"]["rates"][name]["value"])
    kind_of = dict(zip(best, kinds, strict=False))
    contenders = [{"name": name, "role": "explainer", "about": ABOUT.get(name, "")} for name in best]
    contenders += [{"name": name, "role": "baseline", "about": ABOUT[name]} for name in BASELINES]
    verdicts = [{"name": name, "kind": kind_of.get(name, "undecided"), "words": WORDS[kind_of.get(name, "undecided")],
                 "why": f"{name} turns {100 * measures['flip@3']['rates'][name]['value']:.0f} of 100 answers with 3 parts.",
                 "unstable": i == 3, "n": n, "needed": 940 if kind_of.get(name, "undecided") == "undecided" else None,
                 "by_measure": {"flip": {"kind": kind_of.get(name), "words": WORDS[kind_of.get(name, "undecided")]}}}
                for i, name in enumerate(best)]
    recovery = []
    for k in (1, 2, 3):
        finds = {**{name: 0.93 - 0.11 * i for i, name in enumerate(best[:9])}, **dict.fromkeys(best[9:], 0.05), "magnitude": 0.8, "oracle": 0.98}
        counts = {name: np.bincount(rng.binomial(k, p, 52), minlength=k + 1).tolist() for name, p in finds.items()}
        share = [math.comb(k, j) * math.comb(d - k, k - j) / math.comb(d, k) for j in range(k + 1)]
        recovery.append({"k": k, "n": 52, "counts": counts, "random": share})
    hits, misses = rng.beta(8, 2, 170), rng.beta(5, 2, 110)
    return {
        "format": 1, "title": "Can explanations of digits CNN be trusted?", "study": "audit", "model": {"name": "digits CNN"},
        "data": {"inputs": 300, "sources": 300, "what": "scikit-learn's handwritten digits"}, "kind": kind,
        "counts": {"inputs": 300, "adversaries": n, "not_fooled": 17, "failed": 3},
        "failures": [{"case": f"{i:04d}", "error": "the model returned NaN; look at this input"} for i in range(3)],
        "explainer_failures": {"grad_cam": {"count": 2, "first": "no convolution was found before the last layer"}},
        "contenders": contenders, "admitted": ["flip", "recovery@3"], "verdicts": verdicts, "measures": measures,
        "curves": {"any": curve(flips, chance, d), "target": curve(target, target_chance, d)}, "recovery": recovery,
        "fidelity": [{"name": "lime", "trial": "flip@3", "hits": hits.tolist(), "misses": misses.tolist(),
                      "auc": {"value": 0.62, "low": 0.55, "high": 0.69, "n": 280, "sources": 280},
                      "words": "Hits fit a little better than misses, too little to tell them apart by the fit."}],
        "attack": {"method": "pgd", "settings": {"epsilon": 0.06, "step": 0.01, "norm": "linf"}, "success": rate([1] * 28 + [0] * 2),
                   "accuracy_before": 0.97, "accuracy_after": 0.06, "linf": {"median": 0.06, "max": 0.06},
                   "l2": {"median": 1.91, "max": 2.4}, "relative_l2": {"median": 0.031, "max": 0.055},
                   "iterations": {"median": 11, "max": 40}, "margin": {"median": 0.21, "max": 0.9}},
        "strengths": {"names": ["margin 0", "half", "full"], "adversaries": [n, n, n], "stable": False,
                      "rates": {c["name"]: [max(0.0, min(1.0, measures["flip"]["rates"][c["name"]]["value"] + step * (i % 3 - 1)))
                                            for step in (-0.04, 0.0, 0.03)] for i, c in enumerate(contenders)},
                      "words": "The order of integrated_gradients and saliency/smoothgrad changes with the strength."},
        "pairs": [{"first": a, "second": b, "value": 0.01 * (i + 1), "low": 0.01 * i, "high": 0.01 * (i + 2), "p_holm": 0.2 / (i + 1) ** 2,
                   "words": "no clear difference" if i < 3 else f"{a} is better"}
                  for i, (a, b) in enumerate((a, b) for j, a in enumerate(best) for b in best[j + 1:])],
        "calls": {"asked": 1_204_300, "distinct": 980_112},
        "spec": {"model": "digits", "inputs": 300, "attack": {"method": "pgd", "epsilon": 0.06}, "parts": "grid:4x4",
                 "explainers": best, "recovery": [1, 2, 3]},
        "repeat": {"command": "whytrust audit digits --inputs 300 --attack pgd --parts grid:4x4 --seed 0 --out audit/"},
        "versions": {"whytrust": "0.1.0", "numpy": "2.4.6", "python": "3.11"}, "seed": 0,
        "caveats": ["The attack is one cause among many: an explainer may be right about others and wrong here.",
                    "Parts laid over a clean input make inputs that the model has never seen.",
                    "The oracle is the best set found, not the best there is.",
                    "A verdict holds for this model and these inputs alone."]}


def record(number, d, order_by_name, bits_by_name, chance, **values):
    return {"case": f"{number:04d}", "name": f"case {number}", "source": None, "status": "ok", "error": None, "truth": 3,
            "clean_label": 3, "label": 5, "clean_name": "3", "label_name": "5", "d": d, "channels_first": False,
            "trials": [{"strength": "full", "attack": {}, "label": 5,
                        "flip": {"any": {k: "".join(map(str, v)) for k, v in bits_by_name.items()}, "target": {}},
                        "random": {"any": [float(c) for c in chance], "target": []},
                        "order": {k: [int(p) for p in v] for k, v in order_by_name.items()}, "failed": {}}], **values}


def cases(how_many, labels_of, picture_of, d, names=None, **values):
    """[(record, arrays)] of simulated cases."""
    flips, orders, chance = simulated(how_many, d, dict(names or EXPLAINERS), seed=7)
    out = []
    for i in range(how_many):
        clean, adversarial = picture_of(i)
        one = record(i, d, {k: v[i] for k, v in orders.items()}, {k: v[i] for k, v in flips.items()}, chance[i], **values)
        out.append((one, {"clean": clean, "adversarial": adversarial, "labels": labels_of(i)}))
    return out


def digit_cases(how_many=3, names=None):
    rng = np.random.default_rng(3)

    def picture(i):
        ys, xs = np.mgrid[:8, :8]
        clean = np.clip(16 * np.exp(-((np.hypot(xs - 3.5, ys - 3.5) - 2.4) ** 2)), 0, 16)
        return clean, np.clip(clean + rng.normal(0, 1.2, (8, 8)), 0, 16)

    labels = np.arange(8)[:, None] // 2 * 4 + np.arange(8)[None] // 2
    return cases(how_many, lambda i: labels, picture, 16, names)


def photo_like(seed, side=224):
    """Smooth shades with edges and fine grain: packs about as badly as a photograph."""
    rng = np.random.default_rng(seed)
    ys, xs = np.mgrid[:side, :side] / side
    out = np.zeros((side, side, 3))
    for _ in range(14):
        x, y, r = rng.random(3)
        out += np.exp(-((xs - x) ** 2 + (ys - y) ** 2) / (0.01 + 0.1 * r * r))[..., None] * rng.random(3)
    for _ in range(8):
        x, y, r = rng.random(3)
        inside = np.hypot(xs - x, ys - y) < 0.06 + 0.16 * r
        out[inside] = 0.4 * out[inside] + rng.random(3)
    out = out / out.max() + rng.normal(0, 0.02, out.shape)
    return np.clip(out, 0, 1)


def voronoi(seed, d, side=224):
    rng = np.random.default_rng(seed)
    root = math.isqrt(d)
    centres = np.stack(np.meshgrid(np.arange(root), np.arange(root)), -1).reshape(-1, 2)[:d] + rng.random((root * root, 2))[:d] * 0.9
    ys, xs = np.mgrid[:side, :side] * root / side
    wobble = 0.12 * np.sin(xs * 9 + seed) + 0.12 * np.sin(ys * 11)
    return np.argmin([(xs + wobble - cx) ** 2 + (ys + wobble - cy) ** 2 for cx, cy in centres], axis=0).astype(np.int32)


def photo_cases(how_many=2, d=16, channels_first=True, names=None):
    rng = np.random.default_rng(4)

    def picture(i):
        clean = photo_like(i).astype(np.float32)
        adversarial = np.clip(clean + rng.choice([-0.03, 0.03], clean.shape), 0, 1).astype(np.float32)
        return (np.moveaxis(a, -1, 0) if channels_first else a for a in (clean, adversarial))

    return cases(how_many, lambda i: voronoi(i, d), picture, d, names, channels_first=channels_first, clean_name="Egyptian cat",
                 label_name="tabby")


def row_cases(how_many=2):
    rng = np.random.default_rng(5)
    names = tuple(f"mean {word}" for word in ("radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity",
                                              "symmetry"))

    def picture(i):
        clean = rng.random(8) * 100
        adversarial = clean.copy()
        adversarial[:5] += rng.normal(0, 3, 5)
        return clean, adversarial

    out = cases(how_many, lambda i: np.arange(8), picture, 8, columns=list(names), clean_name="benign", label_name="malignant")
    for _, arrays in out:
        del arrays["labels"]
    return out


# A sound in two halves, a low and then a high tone, with a change that lies in one part alone.
SOUND = {"rate": 8000, "seconds": 1.0, "hertz": [50 * 1.11 ** i for i in range(41)], "moment": "1:23.4 of the song"}
SOUND_LABELS = (np.arange(50)[:, None] // 10 * 4 + np.arange(40)[None] // 10).astype(np.int32)


def sound_waves(number=0):
    """Clean and adversarial, (8000,): 200 Hz, then 1500 Hz; the change is a whisper at 700 Hz between 0.6 and 0.8 s (part 14)."""
    rng = np.random.default_rng(number)
    t = np.arange(8000) / 8000
    clean = 0.4 * np.where(t < 0.5, np.sin(2 * np.pi * 200 * t), np.sin(2 * np.pi * 1500 * t)) + 0.01 * rng.normal(size=8000)
    change = 0.005 * np.sin(2 * np.pi * 700 * t) * ((t >= 0.6) & (t < 0.8))
    return clean.astype(np.float32), (clean + change).astype(np.float32)


def log_bands(wave, frames=50, bands=40):
    """(frames, bands): the logarithm of the mean magnitude in each band around each moment."""
    hop = len(wave) // frames
    padded = np.pad(np.asarray(wave, float), 256)
    spectra = np.abs(np.fft.rfft([padded[t * hop: t * hop + 512] * np.hanning(512) for t in range(frames)]))
    band = np.clip(np.searchsorted(SOUND["hertz"], np.arange(257) * 8000 / 512, side="right") - 1, -1, bands - 1)
    return np.log(1e-4 + np.stack([spectra[:, band == f].mean(axis=1) if (band == f).any() else spectra[:, 0] for f in range(bands)],
                                  axis=1)).astype(np.float32)


def sound_cases(how_many=2, names=None, **sound):
    """[(record, arrays)] of simulated sounds, cut into 5 stretches of 4 ranges of bands."""
    parts = [f"stretch {t}, range {f}" for t in range(5) for f in range(4)]
    out = cases(how_many, lambda i: SOUND_LABELS, lambda i: tuple(map(log_bands, sound_waves(i))), 20, names, parts=parts,
                source="a song.mp3", clean_name="no singing", label_name="singing", sound={**SOUND, **sound})
    for i, (_, arrays) in enumerate(out):
        arrays["clean_wave"], arrays["adversarial_wave"] = sound_waves(i)
    return out


def text_cases(how_many=2, names=None, words=12, swapped=(2, 5), vocabulary=("plain", "word", "here", "and", "there")):
    """[(record, arrays)] of simulated texts; at the swapped places stand old and new words."""
    dims = {**dict(names or EXPLAINERS)}
    flips, orders, chance = simulated(how_many, words, dims, seed=9)
    out = []
    for i in range(how_many):
        plain = [vocabulary[(i + place) % len(vocabulary)] for place in range(words)]
        before = [f"old{place}" if place in swapped else word for place, word in enumerate(plain)]
        after = [f"new{place}" if place in swapped else word for place, word in enumerate(plain)]
        one = record(i, words, {k: v[i] for k, v in orders.items()}, {k: v[i] for k, v in flips.items()}, chance[i],
                     clean_name="good", label_name="bad", text={"characters": 99, "unread": 0}, parts=after)
        del one["channels_first"]
        rng = np.random.default_rng(i)
        one["trials"][0]["scores"] = {name: rng.normal(size=words).tolist() for name in dims}
        out.append((one, {**bytes_of("clean", before), **bytes_of("adversarial", after)}))
    return out


def bytes_of(name, words, between=" "):
    """A text as it is stored: its bytes, and where its words are."""
    starts = np.cumsum([0, *(len(word) + len(between) for word in words[:-1])])
    spans = np.column_stack([starts, starts + [len(word) for word in words]]).astype(np.int32)
    return {name: np.frombuffer(between.join(words).encode("utf-8", "surrogatepass"), np.uint8), f"{name}_spans": spans}
