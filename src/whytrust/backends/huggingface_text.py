"""Texts for Hugging Face classifiers: tokenised once, grouped by length, and how much of a text is read."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.backends.torch_cuts import Tail, as_array, cut, used
from whytrust.backends.torch_modes import evaluating
from whytrust.checked import Refused
from whytrust.core import Batch, Floats, need

TOKENS_AT_ONCE = 2048
"""Tokens of one forward pass. From 256 to 4096 the time per text was the same on a CPU; more only takes memory."""
TEXTS_AT_ONCE = 64
UNKNOWN_LENGTH = 512
"""Tokens a text may have where neither the tokenizer nor the model says."""
_NO_LIMIT = 10**9  # tokenizers say 1e30 where they know of no limit


@dataclass(frozen=True, eq=False)
class TextScores:
    """A text classifier's scores, each text by itself: texts of exactly one length share a forward pass, so none is padded.

    A text without any token (an empty one, for a tokenizer that adds no special tokens) is shown as the tokenizer's first of
    bos, eos, cls, unk and pad token, since no model reads nothing.
    """

    model: Any
    tokenizer: Any
    max_length: int
    apply: str
    settings: dict[str, Any] = field(default_factory=dict)
    source: Any = field(default=None, repr=False)

    @property
    def kind(self) -> str:
        """A few words for a reader."""
        return f"Hugging Face {type(self.model).__name__} with its tokenizer, at most {self.max_length} tokens"

    @property
    def device(self) -> str:
        """Where the model is, and its inputs go."""
        return str(next(self.model.parameters()).device)

    def __call__(self, batch: Batch) -> Floats:
        """(n, labels) for n texts; equal texts are asked once."""
        texts = _texts(batch)
        places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        columns = self._columns(list(places))
        lengths = np.array([len(ids) for ids in columns["input_ids"]])
        scores = np.empty((len(places), int(self.model.config.num_labels)))
        with evaluating(self.model), need("torch", "torch").no_grad():
            for rows in _buckets(lengths):
                scores[rows] = self._forward({name: [values[i] for i in rows] for name, values in columns.items()})
        return applied(self.apply, scores)[[places[text] for text in texts]]

    def reads(self, text: str) -> int:
        """How many characters of the text the model takes in: up to the end of the last token that fits."""
        if not self.tokenizer.is_fast:
            return self._reads_by_search(text)
        encoding = self._encoding(text)
        if not encoding.overflowing:
            return len(text)
        self._refuse_left(text)
        return max((end for (_, end), special in zip(encoding.offsets, encoding.special_tokens_mask, strict=True)
                    if not special), default=0)

    def tokens(self, text: str) -> list[tuple[int, int]]:
        """Where in the text the tokens stand that the model reads; special tokens and spaces around a token left out."""
        if not self.tokenizer.is_fast:
            raise TypeError(f"{type(self.tokenizer).__name__} does not say where its tokens stand in a text; "
                            "load the tokenizer's fast form")
        encoding = self._encoding(text)
        pairs = zip(encoding.offsets, encoding.special_tokens_mask, strict=True)
        return [_trimmed(text, start, end) for (start, end), special in pairs if not special]

    def pullback(self, batch: Batch, preprocess: Any = None) -> Any:
        """Texts cannot be moved by a little, so they have no gradient."""
        raise Refused("a text has no gradient, its embedding has: saliency, integrated_gradients and the like ask there by "
                      "themselves; an attack on a text must swap words")

    def cut(self, at: str | None, batch: Batch, preprocess: Any) -> tuple[Floats, Tail, dict[str, Any]]:
        """The model cut at a layer, its embedding of tokens by default, for a batch of one text."""
        if preprocess is not None:
            raise Refused("a model that preprocesses texts cannot be cut, for where its tokens stand is not known; leave "
                          "preprocess out, the tokenizer does its work")
        torch, (text,) = need("torch", "torch"), _texts(batch)
        columns = self._columns([text])
        where = next(self.model.parameters()).device
        one = {name: torch.tensor(values, device=where) for name, values in columns.items()}

        def run(n: int) -> Any:
            logits = self.model(**{name: tensor.repeat(n, 1) for name, tensor in one.items()}, **self._extra).logits
            return torch.sigmoid(logits) if self.apply == "sigmoid" else logits

        alone = 1 if getattr(self.model.config, "pad_token_id", None) is None else None
        embeddings = self._embeddings()
        name = at or next((n for n in embeddings if used(self.model, n, run, (self.model,)) == 1), next(iter(embeddings)))
        values, tail, places = cut(self.model, name, run, (self.model,), alone)
        if len(values) == one["input_ids"].shape[1]:
            places["spans"] = self._spans(text, len(values))
        pad = self.tokenizer.pad_token_id
        if name in embeddings and pad is not None:
            with torch.no_grad():
                places["absent"] = as_array(embeddings[name](torch.full_like(one["input_ids"], pad)))[0]
        return values, tail, places

    def _embeddings(self) -> dict[str, Any]:
        """The layers that turn tokens into vectors, by name; a model of two halves has one for each, with the same weights."""
        weight = self.model.get_input_embeddings().weight
        return {name: layer for name, layer in self.model.named_modules()
                if getattr(layer, "weight", None) is weight and hasattr(layer, "num_embeddings")}

    def _spans(self, text: str, n: int) -> tuple[tuple[int, int] | None, ...]:
        """Where in the text each token stands; None for special tokens."""
        if not self.tokenizer.is_fast:
            raise Refused(f"{type(self.tokenizer).__name__} does not say where its tokens stand in a text; load the "
                          "tokenizer's fast form")
        encoding = self._encoding(text)
        found = [None if special else _trimmed(text, start, end)
                 for (start, end), special in zip(encoding.offsets, encoding.special_tokens_mask, strict=True)]
        return tuple(found) if len(found) == n else (None,) * n  # an empty text's stand-in stands nowhere

    def _columns(self, texts: list[str]) -> dict[str, list[list[int]]]:
        """What the tokenizer has for each text, by the model's names for it."""
        columns = {name: list(values) for name, values in self._tokenised(texts).items()}
        empty = [i for i, ids in enumerate(columns["input_ids"]) if not ids]
        if empty:
            stand_in = self._stand_in()
            for name, values in columns.items():
                for i in empty:
                    values[i] = [stand_in if name == "input_ids" else int(name == "attention_mask")]
        largest, known = max(map(max, columns["input_ids"]), default=0), self.model.get_input_embeddings().weight.shape[0]
        if largest >= known:
            raise Refused(f"the tokenizer must be the model's own: {type(self.tokenizer).__name__} gives a token the number "
                          f"{largest}, and {type(self.model).__name__} knows {known}; load both from one folder")
        return columns

    def _stand_in(self) -> int:
        for name in ("bos", "eos", "cls", "unk", "pad"):
            token = getattr(self.tokenizer, f"{name}_token_id", None)
            if token is not None:
                return int(token)
        raise ValueError(f"{type(self.tokenizer).__name__} makes no token of an empty text and has no special token to stand "
                         "for it; pass fill='…' so that hidden words leave something behind")

    def _tokenised(self, texts: Any, **more: Any) -> Any:
        with _unchanged(self.tokenizer):
            return self.tokenizer(texts, truncation=True, max_length=self.max_length, **self.settings, **more)

    def _encoding(self, text: str) -> Any:
        return self._tokenised([text], return_offsets_mapping=True).encodings[0]

    def _forward(self, inputs: dict[str, Any]) -> Any:
        n = len(inputs["input_ids"])
        # A decoder without a pad token does not know where a text of a batch ends, even where all are equally long.
        if n > 1 and getattr(self.model.config, "pad_token_id", None) is None:
            return np.concatenate([self._forward({k: v[i:i + 1] for k, v in inputs.items()}) for i in range(n)])
        torch = need("torch", "torch")
        where = next(self.model.parameters()).device
        tensors = {name: torch.tensor(values, device=where) for name, values in inputs.items()}
        return logits_of(self.model, self.model(**tensors, **self._extra), n)

    @property
    def _extra(self) -> dict[str, bool]:
        """A cache is for writing text; here it would only take memory."""
        return {"use_cache": False} if "use_cache" in inspect.signature(self.model.forward).parameters else {}

    def _reads_by_search(self, text: str) -> int:
        """For tokenizers without offsets: the longest run of whole words that fits, by halving, and a bit of the next word."""
        def count(prefix: str) -> int:
            with _unchanged(self.tokenizer):
                return len(self.tokenizer(prefix, truncation=False, verbose=False, **self.settings)["input_ids"])

        if count(text) <= self.max_length:
            return len(text)
        self._refuse_left(text)
        spans = [match.span() for match in re.finditer(r"\S+", text)]
        fits, over = 0, len(spans)
        while over - fits > 1:
            middle = (fits + over) // 2
            fits, over = (middle, over) if count(text[:spans[middle - 1][1]]) <= self.max_length else (fits, middle)
        end = spans[fits - 1][1] if fits else 0
        return end if count(text[:end]) == self.max_length else spans[fits][0] + 1

    def _refuse_left(self, text: str) -> None:
        if getattr(self.tokenizer, "truncation_side", "right") == "left":
            raise ValueError(f"the text is longer than the model's {self.max_length} tokens and its tokenizer cuts off the "
                             "beginning; pass the part of the text that the model should read, or set "
                             "tokenizer.truncation_side = 'right'")


def _texts(batch: Batch) -> list[str]:
    if isinstance(batch, np.ndarray) and batch.ndim > 1:
        raise TypeError(f"the model reads texts, and the input is an array of shape {batch.shape[1:]}; pass a text")
    if isinstance(batch, str) or hasattr(batch, "columns"):
        raise TypeError(f"a batch of texts must be a list of strings, got {type(batch).__name__}; pass [text]")
    for one in batch:
        if not isinstance(one, str):
            pair = "; a pair of texts cannot be asked, join them to one text" if isinstance(one, Sequence | dict) else ""
            raise TypeError(f"a batch of texts must be a list of strings, got one of {type(one).__name__}{pair}")
    return [str(one) for one in batch]


def _buckets(lengths: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Rows of exactly one length, shortest first, at most so many at once."""
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        size = int(np.clip(TOKENS_AT_ONCE // length, 1, TEXTS_AT_ONCE))
        yield from (rows[start:start + size] for start in range(0, len(rows), size))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    if not piece.strip():
        return start, end
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


@contextlib.contextmanager
def _unchanged(tokenizer: Any) -> Iterator[None]:
    """A fast tokenizer remembers the last truncation and padding asked of it, and would save them to disk."""
    backend = getattr(tokenizer, "backend_tokenizer", None) if tokenizer.is_fast else None
    before = None if backend is None else (backend.truncation, backend.padding)
    try:
        yield
    finally:
        if backend is not None and before is not None:
            truncation, padding = before
            backend.no_truncation() if truncation is None else backend.enable_truncation(**truncation)
            backend.no_padding() if padding is None else backend.enable_padding(**padding)


def longest(model: Any, tokenizer: Any, asked: int | None, own: int | None) -> int:
    """Tokens the model may be given: as asked, as the pipeline is set, or as many as tokenizer and model can take."""
    positions = [getattr(model.config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        # RoBERTa and its kin count positions from behind the padding's, and so have fewer than they say.
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            positions.append(module.num_embeddings - module.padding_idx - 1)
    model_takes = min((p for p in positions if isinstance(p, int) and p > 0), default=_NO_LIMIT)
    least = tokenizer.num_special_tokens_to_add() + 1
    if asked is not None:
        whole = isinstance(asked, int | np.integer) and not isinstance(asked, bool)
        if not whole or not least <= asked <= model_takes:
            most = f"to {model_takes}" if model_takes < _NO_LIMIT else "up"
            raise ValueError(f"max_length must be a whole number of tokens from {least} {most}, got {asked!r}")
        return int(asked)
    known = [n for n in (own, tokenizer.model_max_length, model_takes) if n is not None and n < _NO_LIMIT]
    return int(max(min(known, default=UNKNOWN_LENGTH), least))


# --- any classifier ----------------------------------------------------------------------------------------------------


def logits_of(model: Any, outputs: Any, n: int) -> Any:
    """The model's (n, labels) outputs as an array, or one clear error."""
    logits, labels = getattr(outputs, "logits", None), int(model.config.num_labels)
    if logits is None or tuple(logits.shape) != (n, labels):
        came = "no logits" if logits is None else f"logits of shape {tuple(logits.shape)}"
        raise ValueError(f"{type(model).__name__} must give logits of shape ({n}, {labels}), one a label, got {came}")
    return logits.detach().cpu().double().numpy()


def applied(apply: str, scores: Floats) -> Floats:
    """The sigmoid of each score where that is asked, else the scores themselves."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * scores)) if apply == "sigmoid" else scores)
