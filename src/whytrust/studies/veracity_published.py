"""The numbers of Praher, Prinz, Flexer, Widmer (2021), and of the sound half of Hoedt et al. (2022), as printed.

They are of the Jamendo songs and a net trained on them. On other music a number of theirs is no target: it says what they saw.
"""

from __future__ import annotations

from collections.abc import Mapping

CITATIONS = {
    "Praher et al. (2021)": "V. Praher, K. Prinz, A. Flexer, G. Widmer: On the veracity of local, model-agnostic explanations "
                            "in audio classification: targeted investigations with adversarial examples. ISMIR, 2021",
    "Hoedt et al. (2022)": "K. Hoedt, V. Praher, A. Flexer, G. Widmer: Constructing adversarial examples to investigate the "
                           "plausibility of explanations in deep audio and image classifiers. Neural Computing and "
                           "Applications, 2022"}
SIGNALS = {"waveform": "waveform", "magnitude": "spectrogram"}
"""What is attacked, and what the papers call it; Hoedt et al. have the spectrogram alone."""
DIRECTIONS = {"no sing": "“no sing” → “sing”", "sing": "“sing” → “no sing”"}
"""By what the detector said before."""

DETECTOR: Mapping[str, tuple[float, float]] = {"error": (11.54, 0.96), "recall": (89.61, 1.71), "specificity": (87.46, 1.00)}
"""§ 4.2: per cent of the frames of the test songs, mean and standard deviation of five nets."""
THRESHOLD = 0.51
SUCCESS: Mapping[str, float] = {"waveform": 60.5, "magnitude": 28.4}
"""§ 4.3: per cent of all excerpts whose answer was turned."""
SETTINGS: Mapping[str, Mapping[str, float]] = {"waveform": {"epsilon": 0.01, "step": 0.0003, "alpha": 2.0},
                                               "magnitude": {"epsilon": 0.1, "step": 0.0005, "alpha": 15.0}}
"""§ 4.3; those of the spectrogram are also Table 5 of Hoedt et al."""
ITERATIONS, SAMPLES = 1000, 8192
SONGS, EACH = 16, 10

FLIPS: Mapping[str, Mapping[str, float]] = {"waveform": {"no sing": 53, "sing": 21}, "magnitude": {"no sing": 41, "sing": 32}}
"""Table 1: label-flip rates in per cent for LIME's k = 3; those of the spectrogram also § 5.1.1 of Hoedt et al."""
POSITIVE: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "waveform": {"no sing": {"lime": 86, "magnitude": 99}, "sing": {"lime": 49, "magnitude": 74}},
    "magnitude": {"no sing": {"lime": 91, "magnitude": 98}, "sing": {"lime": 44, "magnitude": 55}}}
"""Table 2: all segments with a positive weight, and as many by the norm of the perturbation."""
LOCALISED: Mapping[str, int] = {"1": 52, "3": 146, "5": 215}
"""Figure 3 of Hoedt et al.: excerpts of spectrogram attacks, both directions, that are still flipped by the k largest."""
