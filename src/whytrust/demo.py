"""`make demo`: one photograph, one review, one table row and one sound, explained on one page."""

from __future__ import annotations

import sys
import time

import whytrust
from whytrust.explanation import Explanation, Gallery
from whytrust.models import demos

SHOWN: tuple[tuple[str, int, dict[str, int]], ...] = (
    ("photos", 0, {"samples": 300}), ("reviews", 6, {}), ("tabular", 2, {}), ("sound", 0, {}))


def main(path: str) -> int:
    """Explain the four, write the page, and say in words what each shows."""
    found: list[Explanation] = []
    for name, index, options in SHOWN:
        start = time.monotonic()
        print(f"demo:{name} …", end=" ", flush=True, file=sys.stderr)
        demo = demos.load(name)
        model = whytrust.model(demo.model, **demo.model_options)
        found.append(whytrust.explain(model, demo.inputs[index], **{**demo.explain_options, **options}))
        print(f"{time.monotonic() - start:.1f} s", file=sys.stderr)
    for explanation in found:
        print(f"\n{explanation}")
    written = Gallery(tuple(found), "Four predictions, explained").save(path)
    print(f"\nThe page with pictures: {written.resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "report.html"))
