"""`make demo`: explanations of a small net put on trial, with a verdict on each explainer and a page."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from whytrust import auditing
from whytrust.studies import spec

RUN = Path("runs/demo")
JOBS = 2


def main(path: str) -> int:
    """Audit the digits, say the verdicts and where the page is. A run that was interrupted goes on."""
    print("training a small net on handwritten digits, then putting explanations of it on trial …", file=sys.stderr)
    study = replace(spec.load("digits"), command=f"whytrust audit digits --out {RUN} --jobs {JOBS}")
    found = auditing.run(study, RUN, JOBS)
    written = found.save_html(path)
    print(f"{found}\n\nThe page with pictures: {written.resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "report.html"))
