"""Reviews made up on the spot, in the layout of the multi-domain sentiment set."""

import numpy as np

GOOD, BAD = [f"good{i}" for i in range(6)], [f"bad{i}" for i in range(6)]
FILLER = [f"filler{i:02d}" for i in range(30)]


def write(folder, each=60, names=("books", "dvd"), seed=0):
    """Positive reviews have mostly good words, negative ones mostly bad ones; with pairs of words and counts, as the real ones."""
    rng = np.random.default_rng(seed)
    for name in names:
        (folder / name).mkdir(parents=True)
        for side, own, other in (("positive", GOOD, BAD), ("negative", BAD, GOOD)):
            lines = []
            for _ in range(each):
                words = [*rng.choice(own, 3, replace=False), *rng.choice(other, 1), *rng.choice(FILLER, rng.integers(4, 12), replace=False)]
                tokens = [f"{word}:{rng.integers(1, 3)}" for word in words] + [f"{words[0]}_{words[1]}:1", "<num>:2", "a:1"]
                lines.append(" ".join([*tokens, f"#label#:{side}"]))
            (folder / name / f"{side}.review").write_text("\n".join(lines) + "\n", encoding="latin-1")
    return folder
