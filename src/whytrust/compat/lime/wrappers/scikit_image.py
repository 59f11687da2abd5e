"""scikit-image's segmentations with their parameters, as lime hands them about."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.compat.lime.utils.generic_utils import has_arg
from whytrust.core import need

ALGORITHMS = ("quickshift", "slic", "felzenszwalb")


class BaseWrapper:
    """A function and the parameters it will be called with."""

    def __init__(self, target_fn: Any = None, **target_params: Any) -> None:
        """Keep both; nothing is checked before `set_params`."""
        self.target_fn = target_fn
        self.target_params = target_params

    def set_params(self, **params: Any) -> None:
        """Replace all parameters; one that the function does not take is a ValueError."""
        self._check_params(params)
        self.target_params = params

    def filter_params(self, fn: Callable[..., Any], override: dict[str, Any] | None = None) -> dict[str, Any]:
        """The parameters that `fn` takes, with `override` over them."""
        return {**{name: value for name, value in self.target_params.items() if has_arg(fn, name)}, **(override or {})}

    def _check_params(self, parameters: Iterable[str]) -> None:
        function: Any = self if self.target_fn is None else self.target_fn
        function = function if inspect.isroutine(function) else function.__call__
        if isinstance(parameters, str) or not isinstance(parameters, Iterable):
            raise TypeError(f"parameters must be a list or a dict of names, got {parameters!r}")
        for name in parameters:
            if not has_arg(function, name):
                raise ValueError(f"{name!r} is not a parameter of {getattr(function, '__name__', function)}; it takes "
                                 f"{', '.join(inspect.signature(function).parameters)}")


class SegmentationAlgorithm(BaseWrapper):
    """scikit-image's quickshift, slic or felzenszwalb as a function of an image alone.

    lime drops parameters that the algorithm does not take without a word, so a misspelt one does nothing; here it is an error.
    `random_seed`, which scikit-image has renamed since, goes on working; algorithms without chance have no use for it.
    """

    def __init__(self, algo_type: str, **target_params: Any) -> None:
        """Look the algorithm up by name and check the parameters."""
        if algo_type not in ALGORITHMS:
            raise ValueError(f"algo_type must be one of {', '.join(ALGORITHMS)}, got {algo_type!r}; any function of an image "
                             "that returns an array of labels can be passed as segmentation_fn instead")
        function = getattr(need("skimage.segmentation", "image"), algo_type)
        self.algo_type = algo_type
        super().__init__(function, **_renamed(function, target_params))
        self._check_params(self.target_params)

    def set_params(self, **params: Any) -> None:
        """Replace all parameters; one that the algorithm does not take is a ValueError."""
        super().set_params(**_renamed(self.target_fn, params))

    def __call__(self, image: NDArray[Any]) -> NDArray[Any]:
        """The label of each pixel; an alpha channel is not looked at, and a single channel stands for three."""
        image = np.asarray(image)
        if image.ndim == 3 and image.shape[-1] == 4:
            image = image[..., :3]
        if image.ndim == 2 or image.shape[-1] == 1:
            image = np.repeat(image.reshape(*image.shape[:2], 1), 3, axis=2)
        return np.asarray(self.target_fn(image, **self.target_params))


def _renamed(function: Callable[..., Any], params: dict[str, Any]) -> dict[str, Any]:
    out = dict(params)
    if "random_seed" in out and not has_arg(function, "random_seed"):
        seed = out.pop("random_seed")
        if has_arg(function, "rng"):
            out["rng"] = seed
    return out
