"""captum's attribution methods, and anything else with `.attribute(inputs, target=…)` on tensors."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whytrust.explainers.foreign.calling import called, plain_settings, source_of, taken_by_source
from whytrust.explainers.laying import Laying, sense_of
from whytrust.explanation import Explanation
from whytrust.question import Question
from whytrust.views import ImageView, TextView


@dataclass(frozen=True, eq=False)
class Captum:
    """What does a captum method say of the parts?

    It gets the tensor that the user's net takes, after the model's preprocessing, and explains the net's own output: logits,
    where the net gives logits, whatever wt.model makes of them. Methods with a `feature_mask` get the parts as features unless
    another mask is given; per-pixel values are averaged over each part, which lets large parts look calm.
    """

    explainer: Any
    pooling: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """One call of `.attribute`."""
        net = source_of(question.model.function)
        explainer = self._made(net)
        name = _name(explainer)
        forward = getattr(explainer, "forward_func", None) or net
        inputs = _tensor(question, name, forward)
        given = {k: _as_tensor(v, inputs) if isinstance(v, np.ndarray) else v for k, v in self.options.items()}
        takes, notes = _parameters(explainer.attribute), []
        if _is_module(forward) and _is_module(net) and forward is not net:
            notes.append(f"{name} was made for another net than the model ({type(forward).__name__}): it explains that one.")
        if "feature_mask" in takes and "feature_mask" not in given and isinstance(question.parts.view, ImageView):
            mask = _feature_mask(question.parts.view, inputs)
            if mask is not None:
                given["feature_mask"] = mask
                notes.append("No feature_mask was given, so the parts are the features.")
        sign = 1.0
        if "target" in takes or "**" in takes:
            probe = called(name, lambda: _columns(forward, inputs, given), question, rng, forward)
            given["target"], sign, note = _target(question, probe)
            notes += note
        elif "target" not in takes:
            notes.append(f"{name} takes no target: its values do not depend on the class.")
        with warnings.catch_warnings():
            # The tensor is ours, and that captum turns its gradients on is what it is for.
            warnings.filterwarnings("ignore", "Input Tensor .* did not already require gradients")
            raw = called(name, lambda: explainer.attribute(inputs, **given), question, rng, forward)
        if isinstance(raw, tuple | list):
            raise ValueError(f"{name} must return one tensor, got {len(raw)}; leave out options such as "
                             "return_convergence_delta, and explain nets with one input")
        laid = Laying(question, name, self.pooling, stretch=True)(raw)
        return Explanation.of(question, name, sign * laid.scores, notes=(*notes, *laid.notes),
                              sense=sense_of(self.pooling) if sign > 0 else "signed",
                              settings={**plain_settings(self.options, self.pooling), **self._explains(question, forward)})

    @staticmethod
    def _explains(question: Question, forward: Any) -> dict[str, str]:
        """What the values speak of, where the model's score is something else than what the net returns."""
        return {"explains": "logit"} if question.model.output == "logit" and _is_module(forward) else {}

    def _made(self, net: Any) -> Any:
        if not isinstance(self.explainer, type):
            return self.explainer
        name = self.explainer.__name__
        if not _is_module(net):
            raise TypeError(f"{name} needs a torch module, and this model is {type(net).__name__}; pass an instance made with "
                            f"the net, such as method={name}(net)")
        try:
            return self.explainer(net)
        except Exception as error:
            raise TypeError(f"{name} could not be made from the model alone ({type(error).__name__}: {error}); pass an "
                            f"instance, such as method={name}(net, …)") from error


def _name(explainer: Any) -> str:
    library, name = type(explainer).__module__.split(".")[0], type(explainer).__name__
    inner = getattr(explainer, "attribution_method", None)
    return f"{library} {name}" + ("" if inner is None else f" of {type(inner).__name__}")


def _is_module(obj: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(obj, torch.nn.Module)


def _parameters(function: Callable[..., Any]) -> set[str]:
    """Names of a function's parameters, and ** where it takes any keyword."""
    found = inspect.signature(function).parameters.values()
    return {"**" if p.kind is p.VAR_KEYWORD else p.name for p in found}


def _tensor(question: Question, name: str, forward: Any) -> Any:
    """The input as the net takes it, on the net's device."""
    torch = sys.modules.get("torch")
    if torch is None:
        raise TypeError(f"{name} works on tensors, and torch is not loaded; give it a model that is a torch module")
    batch = taken_by_source(question)
    if isinstance(batch, list):
        raise TypeError(f"{name} works on tensors, and this model takes {type(batch[0]).__name__}; pass wt.model(net, "
                        "preprocess=) a function from texts to the net's tensor, or compute the values yourself and pass "
                        "method=array, one value a token")
    if isinstance(batch, torch.Tensor):
        tensor = batch.detach()
    else:
        array = np.ascontiguousarray(batch)
        whole = array.dtype.kind in "iu" and isinstance(question.parts.view, TextView)
        tensor = torch.from_numpy(array if whole else array.astype(np.float32))
    weights = next(iter(forward.parameters()), None) if hasattr(forward, "parameters") else None
    if weights is None:
        return tensor.to(getattr(question.model.function, "device", None) or tensor.device)
    return tensor.to(weights.device, weights.dtype if weights.is_floating_point() and tensor.is_floating_point() else None)


def _as_tensor(array: Any, like: Any) -> Any:
    """An array given as an option (baselines, a feature mask) where the inputs are."""
    return like.new_tensor(array) if array.dtype.kind == "f" else sys.modules["torch"].from_numpy(array).to(like.device)


def _feature_mask(view: ImageView, inputs: Any) -> Any:
    """(1, 1, H, W) or (1, H, W, 1) labels, where the net sees the image in its own size."""
    labels = sys.modules["torch"].from_numpy(view.labels.astype(np.int64)).to(inputs.device)
    if inputs.ndim == 4 and tuple(inputs.shape[2:]) == view.labels.shape:
        return labels[None, None]
    if inputs.ndim == 4 and tuple(inputs.shape[1:3]) == view.labels.shape:
        return labels[None, ..., None]
    return labels[None] if tuple(inputs.shape[1:]) == view.labels.shape else None


def _columns(forward: Any, inputs: Any, options: dict[str, Any]) -> int | None:
    """How many outputs an input has; None where the net returns one number without an axis for it."""
    extra = options.get("additional_forward_args")
    extra = () if extra is None else extra if isinstance(extra, tuple) else (extra,)
    with sys.modules["torch"].no_grad():
        shape = tuple(forward(inputs, *extra).shape)
    return None if len(shape) < 2 else int(shape[1])


def _target(question: Question, columns: int | None) -> tuple[int | None, float, list[str]]:
    """(the net's output to explain, sign, notes): a net with one output for two classes speaks of the second."""
    single, classes = columns in (None, 1), len(question.original)
    if not single:
        return question.target, 1.0, []
    index = None if columns is None else 0
    if classes == 1 or question.target == 1:
        return index, 1.0, []
    return index, -1.0, [f"The net has one output, for {question.model.class_name(1, 2)}: its values are negated."]
