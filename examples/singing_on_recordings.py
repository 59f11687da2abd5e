"""What does the embedded detector of singing, trained on synthesised music, make of recordings?

    python examples/singing_on_recordings.py --pitch voice.wav:voice_f0.csv --instrumental a.ogg b.ogg --sung song.mp3

A pitch file has lines "seconds,hertz", 0 where nobody sings: that is taken for the truth.
"""

import argparse
import csv
from itertools import pairwise

from whytrust.models.singing_demo import detector
from whytrust.studies.detector import tried_on


def sung(path, gap=0.0):
    """Stretches with a pitch; pauses shorter than `gap` seconds belong to them."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = [(float(seconds), float(hertz)) for seconds, hertz in csv.reader(file)]
    found = []
    for (start, hertz), (end, _) in pairwise(rows):
        if hertz > 0:
            joins = found and start - found[-1][1] <= max(gap, 1e-9)
            found[-1 if joins else len(found):] = [(found[-1][0] if joins else start, end)]
    return tuple(found)


def main(arguments=None):
    """A line a recording."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pitch", nargs="*", default=[], metavar="SOUND:CSV")
    parser.add_argument("--instrumental", nargs="*", default=[])
    parser.add_argument("--sung", nargs="*", default=[])
    options = parser.parse_args(arguments)
    net, facts = detector()
    print(f"threshold {facts['threshold']}, error on {facts['test']['frames']} frames of synthesised pieces "
          f"{facts['test']['error']:.1%}, recall {facts['test']['recall']:.1%}, specificity {facts['test']['specificity']:.1%}")
    truths = [(one.rpartition(":")[0], sung(one.rpartition(":")[2], gap)) for one in options.pitch for gap in (0.0, 0.2)]
    truths += [(one, ()) for one in options.instrumental] + [(one, None) for one in options.sung]
    for path, truth in truths:
        (row,) = tried_on(net, facts["threshold"], {path: truth})
        right = "unknown" if row["error"] is None else f"{1 - row['error']:.1%}"
        print(f"{row['name']}: {row['seconds']:.0f} s, called singing {row['called_singing']:.1%}, frames right {right}")


if __name__ == "__main__":
    main()
