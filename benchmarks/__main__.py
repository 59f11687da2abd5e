"""whytrust beside its peers: model calls to a given accuracy, time in units of the bare model, gradients and attacks."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

for _library in ("OMP", "OPENBLAS", "MKL"):  # before numpy is imported
    os.environ[f"{_library}_NUM_THREADS"] = "1"

HERE = Path(__file__).parent
PEER_SAMPLES = (800, 1600, 3200, 6400)
REPEATS = 20
OUR_SAMPLES = (100, 141, 200, 283, 400, 566, 800, 1131, 1600, 2263, 3200, 4525, 6400)


def main() -> None:
    asked = _arguments()
    import torch

    from benchmarks import calls, cases, flipping, flips, fragile, gradients, kept, memory, picks, picture, speed, table
    from benchmarks.stability import measure as explained_again

    measured = kept.fingerprint()  # of the code that was just imported
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=FutureWarning)  # of lime and captum
    inputs = 1 if asked.quick else 5
    theirs = PEER_SAMPLES[:1] if asked.quick else PEER_SAMPLES
    ours = [n for n in OUR_SAMPLES if n <= max(theirs)]
    print("asking the models about everything that can be drawn …", file=sys.stderr, flush=True)
    domains = [cases.text_cases("reviews/forest", 14, inputs), cases.image_cases("image", "digits", "grid:7x2", inputs),
               cases.table_cases(8, inputs)]
    if asked.photos:
        domains.append(cases.image_cases("photo", "photos", "grid:11x1", 1))
    results = [calls.measure(domain, theirs, ours, REPEATS) for domain in domains]
    print("timing …", file=sys.stderr, flush=True)
    times = speed.measure(asked.quick)
    print("timing gradients and attacks …", file=sys.stderr, flush=True)
    pulled, turned = gradients.measure(asked.quick), flips.measure(asked.quick)
    picked = picks.measure(asked.quick)
    print("explaining texts with several seeds …", file=sys.stderr, flush=True)
    repeated = explained_again(asked.quick)
    print("flipping pixels …", file=sys.stderr, flush=True)
    walked = flipping.measure(asked.quick)
    print("attacking explanations …", file=sys.stderr, flush=True)
    fooled = fragile.measure(asked.quick)
    print("weighing …", file=sys.stderr, flush=True)
    weights, of_steps = memory.measure(asked.quick), gradients.weigh(asked.quick)
    print(table.calls_table(results), table.speed_table(times), table.memory_table(weights), table.gradients_table(pulled),
          table.steps_table(of_steps), table.flips_table(turned), table.flipping_table(walked), table.picks_table(picked),
          table.fragile_table(fooled), table.stability_table(repeated), sep="\n\n")
    asked.into.mkdir(parents=True, exist_ok=True)
    whole = {"versions": kept.versions(), "source_sha256": measured, "calls_to_accuracy": results, "speed": times,
             "memory": weights, "gradients": pulled, "memory_of_steps": of_steps, "flips": turned, "flipping": walked,
             "picks": picked, "fragile": fooled, "stability": repeated}
    kept.write(whole, asked.into / "results.json")
    picture.draw(results, asked.into / "calls_to_accuracy.png")
    print(f"wrote results.json and calls_to_accuracy.png to {asked.into}", file=sys.stderr)
    if kept.fingerprint() != measured:
        print("src/whytrust was edited meanwhile: these numbers are of the code as it was at the start", file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one input a domain, N 800 only: does it run? (two minutes)")
    parser.add_argument("--photos", action="store_true", help="also EfficientNet-Lite0 on a photograph in 11 parts")
    parser.add_argument("--into", type=Path, help="folder for results (benchmarks/, or build/bench with --quick)")
    asked = parser.parse_args()
    asked.into = asked.into or (Path("build/bench") if asked.quick else HERE)
    return asked


if __name__ == "__main__":
    main()
