"""Audits of the embedded models, and which explainers are tried where nobody says."""

from __future__ import annotations

from typing import Any

EXPLAINERS = ("lime", "saliency", "integrated_gradients", "guided_backprop", "grad_cam", "integrated_gradients/smoothgrad")
WITHOUT_GRADIENTS = ("lime", "kernel_shap", "occlusion")
OF_TEXTS = (*WITHOUT_GRADIENTS, "saliency", "integrated_gradients", "input_x_gradient")
PRESETS: dict[str, dict[str, Any]] = {
    "digits": {"model": "demo:digits", "inputs": "demo", "parts": "grid:4x4", "fill": 0.0,
               "explainers": {name: {"samples": 500} if name == "lime" else {} for name in EXPLAINERS},
               "attack": {"method": "pgd", "targets": "random", "epsilon": 4.0, "units": "input", "bounds": [0, 16],
                          "iterations": 60, "stop": "never", "strengths": [0.0, 2.0]}},
    "photos": {"model": "demo:photos", "inputs": "demo", "block": 8, "parts": "slic:16", "fill": 127.0,
               "explainers": {name: {"samples": 512} if name == "lime" else {} for name in
                              ("lime", "saliency", "integrated_gradients", "guided_backprop", "grad_cam",
                               "saliency/smoothgrad", "guided_backprop/smoothgrad")},
               "attack": {"method": "pgd", "targets": "random", "epsilon": 6.4, "step": 1.28, "units": "input",
                          "bounds": [0, 255], "iterations": 100, "stop": "never", "strengths": [0.0]}},
    "reviews": {"model": "demo:reviews", "inputs": "demo", "limit": 100,
                "explainers": {name: {} for name in WITHOUT_GRADIENTS},
                "attack": {"method": "word_swap", "candidates": "thesaurus", "most": 0.5,
                           "constraints": ["repeat", "stop_words", "part_of_speech", "sentence_similarity"]}},
    "singing": {"model": "demo:singing", "inputs": "demo", "excerpts": 2, "batch_size": 8,
                "explainers": {name: {"samples": 1024} if name == "lime" else {} for name in
                               ("lime", "saliency", "integrated_gradients", "guided_backprop", "grad_cam", "occlusion")},
                "attack": {"method": "carlini_wagner", "signal": "waveform", "iterations": 150, "strengths": [0.0]}},
    "tabular": {"model": "demo:tabular", "inputs": "demo", "explainers": {name: {} for name in WITHOUT_GRADIENTS},
                "attack": "nearest"},
}
"""Audits of the embedded models."""


THIRTEEN = ("lime", *(f"{name}{how}" for how in ("", "/smoothgrad", "/smoothgrad2", "/vargrad") for name in
                      ("integrated_gradients", "saliency", "guided_backprop")))
"""The explainers of Hoedt et al. (2022)."""
