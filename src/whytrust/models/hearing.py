"""A singing-voice net that hears whole songs: an answer a frame, gradients down to the samples, and memory that stays flat.

A song is worked on in chunks of frames. A chunk brings the frames on either side that its excerpts reach into, so the chunks'
answers are those of the whole, and their gradients add up to its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.backends.torch_modes import evaluating
from whytrust.core import Floats, need
from whytrust.models.front_end import FrontEnd
from whytrust.models.songs import BANDS, FRAME_RATE, FRAMES, REACH, SILENT

torch = need("torch", "torch")
CHUNK = 1024
"""Frames whose answers are worked out together; some 200 MB."""
SIGNALS = ("waveform", "magnitude")
Weights = Callable[[Floats, slice], Floats]
"""(logits of some frames, which frames) -> how much each counts."""


@dataclass(frozen=True, eq=False)
class Hearing:
    """Where in this song does somebody sing?

    `signal` says what a song comes as, and what gradients are of: a "waveform" (samples,) at the front end's rate, or the
    "magnitude" of its short-time Fourier transform, (frames, bins). Beyond both ends there is silence, so the first and last
    0.8 seconds are judged by excerpts that hold some.
    """

    net: Any
    signal: str = "waveform"
    chunk: int = CHUNK
    front_end: FrontEnd = field(default_factory=FrontEnd)

    def __post_init__(self) -> None:
        """Refuse what could only fail later."""
        if self.signal not in SIGNALS:
            raise ValueError(f"signal must be one of {', '.join(SIGNALS)}, got {self.signal!r}")
        if isinstance(self.chunk, bool) or not isinstance(self.chunk, int) or self.chunk < 1:
            raise ValueError(f"chunk must be a whole number of frames >= 1, got {self.chunk!r}")

    def probabilities(self, song: Any) -> Floats:
        """(frames,): the chance that somebody sings, as the net sees it."""
        logits = self.logits(song)
        return np.asarray(np.exp(-np.logaddexp(0, -logits)))

    def logits(self, song: Any) -> Floats:
        """(frames,): above 0 the net thinks that somebody sings."""
        signal = self.checked(song)
        out = np.empty(self.frames(signal))
        with evaluating(self.net), torch.no_grad():
            for frames in self._chunks(len(out)):
                out[frames] = self._logits(self._piece(signal, frames)[0], frames, len(out)).double().numpy()
        return out

    def log_mel(self, song: Any) -> NDArray[np.float32]:
        """(frames, 80): what the net is shown."""
        signal = self.checked(song)
        out = np.empty((self.frames(signal), BANDS), dtype=np.float32)
        with torch.no_grad():
            for frames in self._chunks(len(out)):
                piece = self._piece(signal, frames, reach=0)[0]
                out[frames] = self._log_mel(piece).numpy()
        return out

    def magnitude(self, song: Any) -> NDArray[np.float32]:
        """(frames, bins) of a waveform: what is attacked as a "magnitude"."""
        signal = self.checked(song)
        if self.signal != "waveform":
            return signal
        bins = self.front_end.magnitude.n_fft // 2 + 1
        out = np.empty((self.frames(signal), bins), dtype=np.float32)
        with torch.no_grad():
            for frames in self._chunks(len(out)):
                out[frames] = self.front_end.magnitude.framed(self._piece(signal, frames, reach=0)[0][None])[0].numpy()
        return out

    def resynthesised(self, wave: Any, magnitude: NDArray[Any]) -> NDArray[np.float32]:
        """A waveform with these magnitudes and the phases of `wave`, as near as there is one: not every magnitude is a sound's.

        A negative magnitude, which an attack may ask for, is none.
        """
        given = torch.from_numpy(np.asarray(wave, dtype=np.float32))
        part, wanted = self.front_end.magnitude, torch.from_numpy(np.maximum(np.asarray(magnitude, dtype=np.float32), 0)).T
        options = {"n_fft": part.n_fft, "hop_length": part.hop, "window": torch.hann_window(part.n_fft), "center": True}
        spectrum = torch.stft(given, **options, pad_mode="constant", return_complex=True)
        phases = torch.where(spectrum.abs() > 0, spectrum / spectrum.abs().clamp(min=1e-30), 1.0 + 0j)
        return np.asarray(torch.istft(wanted * phases, **options, length=len(given)).numpy())

    def vjp(self, song: Any, weights: Weights) -> tuple[Floats, NDArray[np.float32]]:
        """(logits, gradient of Σ weight · logit with respect to the song); weights may depend on the logits of their frames."""
        signal = self.checked(song)
        logits, gradient = np.empty(self.frames(signal)), np.zeros(signal.shape, dtype=np.float32)
        with evaluating(self.net), torch.inference_mode(False), torch.enable_grad():
            for frames in self._chunks(len(logits)):
                piece, place, inside = self._piece(signal, frames)
                leaf = piece.requires_grad_()
                found = self._logits(leaf, frames, len(logits))
                logits[frames] = found.detach().double().numpy()
                pulled = torch.as_tensor(np.asarray(weights(logits[frames], frames), dtype=np.float32))
                gradient[place] += torch.autograd.grad(found, leaf, pulled)[0].numpy()[inside]
        return logits, gradient

    # --- checks ---------------------------------------------------------------------------------------------------

    def frames(self, signal: NDArray[Any]) -> int:
        """How many frames a song has."""
        return len(signal) if self.signal == "magnitude" else 1 + len(signal) // self.front_end.magnitude.hop

    def checked(self, song: Any) -> NDArray[np.float32]:
        """The song as float32, or one clear error: long enough, finite, and not silent."""
        signal = np.asarray(song)
        bins = self.front_end.magnitude.n_fft // 2 + 1
        right = signal.ndim == 1 if self.signal == "waveform" else signal.ndim == 2 and signal.shape[1] == bins
        if signal.dtype.kind != "f" or not right:
            wanted = "(samples,)" if self.signal == "waveform" else f"(frames, {bins})"
            raise ValueError(f"a song must be an array of floats {wanted}, one channel at {self.front_end.magnitude.rate} Hz, "
                             f"got {signal.dtype} of shape {signal.shape}; front_end.prepare(wave, rate) makes such a waveform")
        if self.frames(signal) < FRAMES:
            raise ValueError(f"a song must be at least an excerpt long, {FRAMES} frames or {FRAMES / FRAME_RATE:.2f} s, got "
                             f"{self.frames(signal)} frames, {self.frames(signal) / FRAME_RATE:.2f} s; pass a longer one")
        if not np.isfinite(signal).all():
            raise ValueError(f"a song must be finite, got {int((~np.isfinite(signal)).sum())} values that are not; mend the "
                             "recording first")
        if not signal.any():
            raise ValueError("a song must not be silent from beginning to end, got zeros alone; is the channel empty?")
        return signal.astype(np.float32, copy=False)

    # --- pieces ---------------------------------------------------------------------------------------------------

    def _chunks(self, frames: int) -> Iterator[slice]:
        for start in range(0, frames, self.chunk):
            yield slice(start, min(start + self.chunk, frames))

    def _piece(self, signal: NDArray[np.float32], frames: slice, reach: int = REACH) -> tuple[Any, slice, slice]:
        """(what the excerpts of these frames hear of the song, where that lies in the song, and where in the piece)."""
        first, last = max(frames.start - reach, 0), min(frames.stop + reach, self.frames(signal))
        if self.signal == "magnitude":
            return torch.from_numpy(signal[first:last].copy()), slice(first, last), slice(0, last - first)
        hop, n_fft = self.front_end.magnitude.hop, self.front_end.magnitude.n_fft
        begin, end = first * hop - n_fft // 2, (last - 1) * hop + n_fft // 2
        low, high = max(begin, 0), min(end, len(signal))
        piece = np.zeros(end - begin, dtype=np.float32)  # silence beyond the ends
        piece[low - begin:high - begin] = signal[low:high]
        return torch.from_numpy(piece), slice(low, high), slice(low - begin, high - begin)

    def _log_mel(self, piece: Any) -> Any:
        magnitudes = piece if self.signal == "magnitude" else self.front_end.magnitude.framed(piece[None])[0]
        return self.front_end.log_mel(magnitudes[None])[0]

    def _logits(self, piece: Any, frames: slice, total: int) -> Any:
        """Logits of these frames, from a piece that holds what their excerpts reach."""
        before, after = max(REACH - frames.start, 0), max(frames.stop + REACH - total, 0)
        padded = torch.nn.functional.pad(self._log_mel(piece), (0, 0, before, after), value=SILENT)
        return self.net.song(padded[None])[0]
