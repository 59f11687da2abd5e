"""A net that knows spoken digits: trained, attacked on the waveform, explained on its spectrogram, and its explainers audited.

    python examples/spoken_digits.py --data recordings --out runs/spoken

`recordings` holds files {digit}_{speaker}_{number}.wav, as the free spoken digit dataset has them; numbers 0 to 4 are for
testing.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

import whytrust as wt
from whytrust.domains.audio import read
from whytrust.models.front_end import FrontEnd

RATE, SECONDS = 8000, 0.8
FRONT_END = FrontEnd(rate=RATE, n_fft=256, hop=80, bands=40, low=60.0, high=3800.0, floor=0.01)  # 100 frames a second


class DigitNet(torch.nn.Module):
    """(n, 81, 40) log-mel spectrograms -> (n, 10) logits."""

    def __init__(self):
        """Three convolutions, and what they found anywhere."""
        super().__init__()
        nn = torch.nn
        self.bands = nn.BatchNorm1d(40, affine=False)
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 10 * 5, 10))

    def forward(self, log_mel):
        """Each band less its mean, in units of its spread, then the layers."""
        return self.layers(self.bands(log_mel.transpose(1, 2)).transpose(1, 2)[:, None])


def load(folder):
    """(waves, digits, is for testing): the middle of long recordings, silence after short ones."""
    waves, digits, testing = [], [], []
    for path in sorted(Path(folder).glob("*.wav")):
        digit, _, number = path.stem.split("_")
        wave, wanted = read(path, RATE)[0], round(SECONDS * RATE)
        start = max(0, (len(wave) - wanted) // 2)
        waves.append(np.pad(wave[start:start + wanted], (0, max(0, wanted - len(wave)))))
        digits.append(int(digit))
        testing.append(int(number) < 5)
    if not waves:
        raise SystemExit(f"{folder} holds no .wav files named digit_speaker_number.wav")
    return np.stack(waves), np.array(digits), np.array(testing)


def train(waves, digits, epochs, seed=0):
    """A net in a minute or two; noise and shifts in time keep it from learning the recordings by heart."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    rng, net = np.random.default_rng(seed), DigitNet()
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    for _ in range(epochs):
        for rows in np.array_split(rng.permutation(len(waves)), -(-len(waves) // 32)):
            batch = np.stack([np.roll(wave, rng.integers(-800, 801)) for wave in waves[rows]])
            batch = batch + rng.normal(scale=0.001, size=batch.shape)
            loss = torch.nn.functional.cross_entropy(net(FRONT_END(torch.tensor(batch, dtype=torch.float32))),
                                                     torch.tensor(digits[rows]))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        schedule.step()
    return net.eval()


def main(arguments=None):
    """Train, test, explain one recording, audit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="a folder of digit_speaker_number.wav")
    parser.add_argument("--out", default="runs/spoken", help="the run's folder; resumes what is there")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--limit", type=int, default=100, help="recordings on trial, evenly spread")
    parser.add_argument("--samples", type=int, default=1000, help="of LIME")
    parser.add_argument("--iterations", type=int, default=100, help="of the attack")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)

    waves, digits, testing = load(options.data)
    net = train(waves[~testing], digits[~testing], options.epochs)
    model = wt.model(net, preprocess=FRONT_END, output="logit", classes=[str(i) for i in range(10)], name="spoken digits CNN")
    right = model.labels(model(waves[testing])) == digits[testing]
    print(f"trained on {(~testing).sum()} recordings; {right.mean():.1%} of {testing.sum()} others are right")

    explained = wt.explain(model, waves[testing][0], "lime", parts="tf:5x4", rate=RATE, samples=options.samples)
    print(f"why {explained.target_name!r}?", explained.as_list()[:3])

    audit = wt.audit(
        model, waves[testing], {"lime": {"method": "lime", "samples": options.samples}, "saliency": "saliency",
                                "integrated_gradients": "integrated_gradients", "guided_backprop": "guided_backprop",
                                "grad_cam": "grad_cam", "occlusion": "occlusion"},
        attack={"method": "carlini_wagner", "iterations": options.iterations, "alpha": 20.0, "strengths": [0.0]},
        explain_on="preprocessed", labels=[str(d) for d in digits[testing]], limit=options.limit, out=options.out,
        jobs=options.jobs)
    print(audit)
    print(audit.save_html(Path(options.out) / "report.html"))


if __name__ == "__main__":
    main()
