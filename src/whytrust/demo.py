"""`make demo`: explanations of a small net put on trial, with a verdict on each explainer and a page."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path

from whytrust import auditing
from whytrust.studies import spec

JOBS = 2


def main(path: str) -> int:
    """Audit the digits, say the verdicts and where the page is. A run that was interrupted goes on."""
    print("training a small net on handwritten digits, then putting explanations of it on trial …", file=sys.stderr)
    study = spec.load("digits")
    # Named by what it is: the demo of another version is another run, and is left alone.
    identity = hashlib.blake2b(json.dumps(study.manifest()).encode(), digest_size=4).hexdigest()
    folder = Path("runs") / f"demo-{identity}"
    found = auditing.run(replace(study, command=f"whytrust audit digits --out {folder} --jobs {JOBS}"), folder, JOBS)
    written = found.save_html(path)
    print(f"{found}\n\nThe page with pictures: {written.resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "report.html"))
