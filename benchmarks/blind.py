"""How often does an audit call a blind explainer better than a blind guess, and how often one that knows the cause?

The audits are simulated, in four domains. Parts (segments of pictures and spectrograms, words, columns), blind controls,
measures and verdicts are those of real audits; what each part does to the label is planted. Half of that effect can be guessed:
from what the input shows without its model, from a fixed map, and from a map for each of four answers. The other half belongs
to this input alone. The label flips when the parts that are laid over the clean input have a planted share of the whole
effect. Nine explainers are blind by construction, and know the planted maps; three know the cause, two of them with noise.

    .venv/bin/python -m benchmarks.blind [--audits 405] [--inputs 100] [--domains …] [--explainers …]
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from whytrust import verdicts
from whytrust.core import Floats, generator
from whytrust.domains.audio import AudioParts
from whytrust.domains.image import ImageParts
from whytrust.domains.tabular import TableParts, TableStatistics
from whytrust.domains.text import TextParts
from whytrust.measures.case import ranked
from whytrust.measures.flips import settled_ks
from whytrust.report.findings import ADMITTED, judged
from whytrust.report.outcomes import outcomes
from whytrust.stats import area, rate
from whytrust.studies.blind import BlindControls, Controls, Explained, laid_over, read_off, word_counts

DOMAINS = ("image", "audio", "text", "tabular")
BANK, BLOCK, DRAWS, SIDE, ANSWERS = 600, 16, 10, 24, 4
KEPT = (1, 3, 5)
WORDS = [f"{a}{b}" for a in ("re", "un", "over", "mis", "", "out", "de") for b in
         ("a", "turn", "take", "do", "lead", "state", "consider", "place", "run", "mark", "standing", "it")]
BLIND = ("centre", "fixed map", "map an answer", "edges", "size", "another input's", "mean", "sum", "product")
"""What a domain has of these: in texts "edges" are rare words, "size" is length, "centre" is the beginning; in rows all
three are how unusual a value is. "fixed map" and "map an answer" are those that the cause follows. "sum" adds the fixed map to
all that can be read off the input, weighted by chance; "product" multiplies the map by that sum."""
SOUND = {"truth": 0.0, "nearly the truth": 0.35, "noisy truth": 0.7}
"""Explainers that know the cause, with noise of this deviation: correlations of 1, .94 and .82 with the truth."""


@dataclass
class Planted:
    """An input, what each of its parts does to the label, and what two explainers that know it say."""

    parts: Any
    effects: Floats
    share: float  # of all effects that turns the label
    change: Floats  # how much each part was changed
    answer: int
    seen: dict[str, Floats] = field(default_factory=dict)

    def flips(self, order: Any, ks: list[int]) -> Any:
        """Whether the first k parts of an order turn the label."""
        reached = np.cumsum(self.effects[order]) >= self.share * self.effects.sum()
        return reached[np.array(ks) - 1]


def drawn(domain: str, case: int) -> Any:
    """The parts of one input."""
    rng = generator(0, "parts", domain, case)
    if domain == "tabular":
        return TableParts.cut(list(rng.normal(0, 1, 12) * (1 + (rng.random(12) < 0.1) * 2)), _statistics())
    if domain == "text":
        return TextParts.cut(" ".join(rng.choice(WORDS, int(rng.integers(12, 24)))), "words")
    rows, columns = np.mgrid[:SIDE, :SIDE]
    centres = rng.uniform(0, SIDE, (16, 2))
    labels = np.argmin((rows[..., None] - centres[:, 0]) ** 2 + (columns[..., None] - centres[:, 1]) ** 2, axis=-1)
    labels = np.unique(labels, return_inverse=True)[1].reshape(SIDE, SIDE)
    texture = rng.uniform(0.05, 1, labels.max() + 1)[labels]
    values = rng.normal(0, 1, (SIDE, SIDE)) * texture + rng.normal(0, 1, labels.max() + 1)[labels]
    if domain == "image":
        return ImageParts(values, labels, 0.0)
    return AudioParts.cut(values, labels)


def _statistics() -> TableStatistics:
    return TableStatistics.fit(generator(0, "rows").normal(0, 1, (300, 12)))


def standard(values: Floats) -> Floats:
    spread = float(np.std(values))
    return (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))


def placed(parts: Any, fixed: Floats) -> Floats:
    """A map that is the same for every input, one number a part."""
    if isinstance(parts, TextParts):
        begins = np.array([spans[0][0] for spans in parts.spans]) / len(parts.text)
        return np.interp(begins, np.linspace(0, 1, len(fixed[0])), fixed[0])
    if isinstance(parts, TableParts):
        return np.resize(fixed[0], len(parts.names))
    return np.asarray(parts.pool(fixed, "mean"))


def habit(domain: str, answer: int | None = None) -> Floats:
    """The map that causes follow whatever the answer, or where it is this one."""
    return generator(0, "habit", domain, *([] if answer is None else [answer])).normal(0, 1, (SIDE, SIDE))


def counted(every: list[Any]) -> Any:
    return sum((word_counts(parts.text) for parts in every if isinstance(parts, TextParts)), Counter())


def bank(domain: str) -> list[Planted]:
    """Inputs with planted causes."""
    every = [drawn(domain, case) for case in range(BANK)]
    counts = counted(every)
    found = []
    for case, parts in enumerate(every):
        rng = generator(0, "effects", domain, case)
        shown = read_off(parts, rng, counts)
        answer = int(rng.integers(ANSWERS))
        maps = (placed(parts, habit(domain)), placed(parts, habit(domain, answer)))
        guessable = standard(np.sum([standard(v) for v in (*shown.values(), *maps)], axis=0))
        own = rng.normal(0, 1, len(guessable))
        effects = np.exp(1.5 * (guessable + own) / np.sqrt(2))
        change = effects * np.exp(rng.normal(0, 1, len(own)))
        noise = rng.normal(0, 1, len(own))
        seen = {name: standard(np.log(effects)) + deviation * noise for name, deviation in SOUND.items()}
        found.append(Planted(parts, effects, rng.uniform(0.2, 0.6), change, answer, seen))
    return found


def explained(kind: str, domain: str, cases: list[Planted], rng: np.random.Generator) -> list[Any]:
    """What one explainer says of every input of an audit."""
    out, counts = [], counted([one.parts for one in cases])
    weights = rng.uniform(0.2, 1, 1 + len(read_off(cases[0].parts, rng, counts)))
    for i, one in enumerate(cases):
        shown = read_off(one.parts, rng, counts)
        names = list(shown)
        map_ = None
        if kind in SOUND:
            scores = one.seen[kind]
        elif kind in ("fixed map", "map an answer"):
            fixed = habit(domain, one.answer if kind == "map an answer" else None)
            scores, map_ = placed(one.parts, fixed), fixed if domain in ("image", "audio") else None
        elif kind in ("sum", "product"):
            summed = [standard(values) for values in (placed(one.parts, habit(domain)), *shown.values())]
            scores = weights @ np.array(summed) if kind == "sum" else summed[0] * (weights[1:] @ np.array(summed[1:]))
        elif kind in ("another input's", "mean"):
            near = [cases[(i + step) % len(cases)] for step in range(7, 8 if kind != "mean" else 30)]
            scores = np.mean([standard(laid_over(_said(o.seen["noisy truth"]), o.parts, one.parts)) for o in near], axis=0)
        else:
            scores = shown[kind] if kind in shown else shown[names[("centre", "edges", "size").index(kind) % len(names)]]
        out.append(_said(scores, map_, one.answer))
    return out


def _said(scores: Floats, map_: Floats | None = None, answer: int = 0) -> Any:
    return SimpleNamespace(scores=scores, map=map_, settings={"pooling": "mean"}, target=answer)


def record(i: int, one: Planted, answers: dict[str, Any], blind: Controls, rng: np.random.Generator) -> dict[str, Any]:
    """What an audit records of an input."""
    d = len(one.effects)
    ks = settled_ks(d)
    orders = {name: ranked(e.scores, rng) for name, e in answers.items()}
    by_change = ranked(one.change, rng)
    orders |= {"magnitude": by_change, "magnitude_mean": by_change, "oracle": np.argsort(-one.effects)}
    guesses = {name: [ranked(row, rng) for row in rows] for name, rows in blind.items()}
    random = [rng.permutation(d) for _ in range(DRAWS)]
    flips = {name: "".join("01"[int(f)] for f in one.flips(order, ks)) for name, order in orders.items()}
    blind = {name: np.mean([one.flips(order, ks) for order in rows], axis=0).tolist() for name, rows in guesses.items()}
    rates = np.mean([one.flips(order, ks) for order in random], axis=0).tolist()
    variance = float(np.var([area(one.flips(order, ks).astype(float), ks, d) for order in random], ddof=1))
    recovery = {}
    for k in KEPT:
        kept = orders["magnitude"][:k]
        recovery[str(k)] = {"flipped": bool(one.flips(orders["magnitude"], [k])[0]),
                            "found": {name: len({*order[:k]} & {*kept}) for name, order in orders.items()},
                            "blind": {name: float(np.mean([len({*order[:k]} & {*kept}) for order in rows]))
                                      for name, rows in guesses.items()}}
    both = {"any": None, "target": None}
    trial = {"strength": "full", "k": ks, "flip": dict.fromkeys(both, flips), "random": dict.fromkeys(both, rates),
             "blind": dict.fromkeys(both, blind), "random_variance": dict.fromkeys(both, variance), "recovery": recovery}
    return {"case": str(i), "d": d, "source": None, "trials": [trial]}


def audited(cases: list[Planted], kind: str, domain: str, rng: np.random.Generator) -> verdicts.Verdict:
    """The verdict of an audit of one explainer."""
    said = explained(kind, domain, cases, rng)
    records, counts = [], counted([one.parts for one in cases])
    for start in range(0, len(cases), BLOCK):
        block = {str(i): Explained(one.parts, read_off(one.parts, rng, counts), {kind: said[i]})
                 for i, one in enumerate(cases[start:start + BLOCK], start)}
        made, names = BlindControls(block), list(block)
        for j, (name, one) in enumerate(block.items()):
            blind = made.of(name, one.parts, one.shown, names[j + 1:] + names[:j])
            records.append(record(start + j, cases[start + j], {kind: said[start + j]}, blind, rng))
    tried = outcomes(records, "full", [kind])
    return verdicts.overall({measure: found[kind] for measure, found in judged(tried, [kind], ADMITTED)[1].items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=405, help="of blind explainers, a domain")
    parser.add_argument("--inputs", type=int, default=100, help="of an audit")
    parser.add_argument("--domains", nargs="*", default=DOMAINS)
    parser.add_argument("--explainers", nargs="*", default=(*BLIND, *SOUND))
    asked = parser.parse_args()
    print(f"{'domain':9}{'explainer':18}{'audits':>7}  better than blind guesses (95% range)   other verdicts")
    for domain in asked.domains:
        start, cases, wins = time.process_time(), bank(domain), []
        for kind in asked.explainers:
            counts: dict[str, int] = {}
            for number in range(asked.audits // len(BLIND)):
                rng = generator(1, domain, kind, number)
                some = [cases[i] for i in rng.choice(BANK, asked.inputs, replace=False)]
                found = audited(some, kind, domain, rng).kind
                counts[found] = counts.get(found, 0) + 1
            total = sum(counts.values())
            won = [1.0] * sum(counts.pop(name, 0) for name in ("better_than_blind", "better_than_magnitude"))
            won += [0.0] * (total - len(won))
            wins += won if kind in BLIND else []
            _print(domain, kind, won, counts)
        if wins:
            _print(domain, "all blind ones", wins, {})
        print(f"{domain:9}{time.process_time() - start:.0f} s of processor time", flush=True)


def _print(domain: str, kind: str, won: list[float], counts: dict[str, int]) -> None:
    found = rate(won)
    rest = ", ".join(f"{count} {verdicts.SHORT[name]}" for name, count in sorted(counts.items()))  # type: ignore[index]
    share = f"{found.value:6.1%} ({found.low:.1%} to {found.high:.1%})"
    print(f"{domain:9}{kind:18}{len(won):7}  {share:38} {rest}", flush=True)


if __name__ == "__main__":
    main()
