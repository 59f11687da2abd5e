"""Training of the singing-voice detector (Praher et al. 2021, 4.2), which goes on where it was interrupted, bit for bit.

Everything that is drawn for an update follows from the seed and the update's number alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.backends.torch_modes import threads
from whytrust.core import generator, need
from whytrust.models import checkpoints
from whytrust.models.augmentation import BINS, Warp, span
from whytrust.models.hearing import Hearing
from whytrust.models.singing_voice import POOL, SingingVoiceNet
from whytrust.models.songs import BANDS, FRAME_RATE, FRAMES, REACH, Song
from whytrust.progress import EVERY, CaseProgress, Progress, duration

torch = need("torch", "torch")
APART = POOL * POOL
"""Frames from one answer to the next in a segment that is longer than an excerpt."""
TARGETS = (0.02, 0.98)
"""What the net is to answer where nobody sings, and where somebody does."""
KEEP_EVERY = 60.0
"""Seconds after which a checkpoint is written at the latest."""
OnUpdate = Callable[[int, float], None]
"""Told of the number of updates done and the loss of the last one."""


@dataclass(frozen=True)
class Schedule:
    """How a detector is trained; the same schedule, songs, version of torch and kind of processor give the same weights.

    As it stands it is the paper's, 40 000 updates, which take a processor's core some eight hours. Segments longer than 115
    frames give one more answer for every nine frames more: less work for as many answers, but those of one segment are alike.
    """

    epochs: int = 20
    updates: int = 2000  # an epoch
    batch: int = 32
    rate: float = 1e-3
    decay: float = 0.85  # of the rate, from one epoch to the next
    dropout: float = 0.5  # before each dense layer; a short training has no time for it
    frames: int = FRAMES  # of a segment
    augment: bool = True
    seed: int = 0
    threads: int = 1  # sums round differently with another number

    def __post_init__(self) -> None:
        """Refuse what could only fail later."""
        for name, least in (("epochs", 1), ("updates", 1), ("batch", 1), ("frames", FRAMES), ("seed", 0), ("threads", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
        if self.batch == 1 and self.frames < FRAMES + APART:
            raise ValueError(f"an update must have at least two answers, to normalise layers by, got batch 1 of segments "
                             f"of {self.frames} frames; take a larger batch or at least {FRAMES + APART} frames")
        if not (0 < self.rate < math.inf and 0 < self.decay <= 1):
            raise ValueError(f"rate must be above 0 and decay in (0, 1], got {self.rate!r} and {self.decay!r}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be a share in [0, 1), got {self.dropout!r}")

    @property
    def total(self) -> int:
        """All its updates."""
        return self.epochs * self.updates

    @property
    def span(self) -> int:
        """Frames of a song that a segment is made of."""
        return span(self.frames) if self.augment else self.frames


PAPER = Schedule()


@dataclass(frozen=True, eq=False)
class Material:
    """Magnitudes and labels of all songs, and a digest of them."""

    magnitudes: tuple[NDArray[np.float32], ...]  # (frames, 513) each; on disk where a folder was given
    labels: tuple[NDArray[np.bool_], ...]
    digest: str

    def segments(self, schedule: Schedule, update: int) -> tuple[NDArray[np.float32], NDArray[np.bool_], int]:
        """(batch, frames, 80) log-mel segments, (batch, answers) labels and a seed of the net's own, for this update.

        Each place in each song is as likely as any other, so a song is heard in proportion to its length.
        """
        rng = generator(schedule.seed, "update", update)
        starts = np.cumsum([0] + [len(one) - schedule.span + 1 for one in self.labels])
        centres = np.arange(REACH, schedule.frames - REACH, APART)
        heard = np.empty((schedule.batch, schedule.frames, BANDS), dtype=np.float32)
        wanted = np.empty((schedule.batch, len(centres)), dtype=bool)
        for row, place in enumerate(rng.integers(starts[-1], size=schedule.batch)):
            song = int(np.searchsorted(starts, place, side="right")) - 1
            there = slice(place - starts[song], place - starts[song] + schedule.span)
            warp = Warp.drawn(rng) if schedule.augment else Warp()
            heard[row] = warp(np.asarray(self.magnitudes[song][there]), schedule.frames)
            sources = np.rint(warp.moments(schedule.span, schedule.frames)[centres]).astype(np.intp)
            wanted[row] = self.labels[song][there][sources]
        return heard, wanted, int(rng.integers(2**63))


def train(songs: Sequence[Song], schedule: Schedule = PAPER, folder: str | os.PathLike[str] | None = None,
          on_update: OnUpdate | None = None, checkpoint: Path | None = None) -> SingingVoiceNet:
    """A net trained on songs; with a folder, magnitudes and checkpoints are kept there and an interrupted run goes on.

    Without one everything is held in memory: about 0.5 GB an hour of music. `checkpoint` names the file to go on from where
    magnitudes are not kept.
    """
    place = None if folder is None else Path(folder)
    material = prepared(songs, schedule, place)
    kept = checkpoint if place is None else place / f"checkpoint-seed-{schedule.seed}.safetensors"
    about = {"schedule": asdict(schedule), "data": material.digest, "torch": torch.__version__}
    with threads(schedule.threads), torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(generator(schedule.seed, "weights").integers(2**63)))
        net = SingingVoiceNet()
        for drop in net.drops:
            drop.p = schedule.dropout
        optimiser = torch.optim.Adam(net.parameters(), lr=schedule.rate)
        done = 0 if kept is None else checkpoints.resumed(kept, net, optimiser, about)
        _run(net.train(), optimiser, material, schedule, done,
             lambda at: None if kept is None else checkpoints.keep(kept, net, optimiser, at, about), on_update)
    net.eval()
    return net


def _run(net: Any, optimiser: Any, material: Material, schedule: Schedule, done: int, keep: Callable[[int], None],
         on_update: OnUpdate | None) -> None:
    """The updates that are left; a checkpoint after each epoch, each minute, and when it is interrupted."""
    progress, last = _Updates(schedule.total, done), time.monotonic()
    with progress, _interrupted_between_updates() as interrupted:
        try:
            while done < schedule.total:
                loss = _update(net, optimiser, material, schedule, done)
                done += 1
                progress.next(loss)
                if on_update is not None:
                    on_update(done, loss)
                if interrupted():
                    raise KeyboardInterrupt
                if done % schedule.updates == 0 or time.monotonic() - last > KEEP_EVERY:
                    keep(done)
                    last = time.monotonic()
        except KeyboardInterrupt:
            keep(done)
            raise


def _update(net: Any, optimiser: Any, material: Material, schedule: Schedule, update: int) -> float:
    """One step of Adam; its rate follows from the update's number."""
    heard, wanted, seed = material.segments(schedule, update)
    for group in optimiser.param_groups:
        group["lr"] = schedule.rate * schedule.decay ** (update // schedule.updates)
    torch.manual_seed(seed)
    logits = net.strided(torch.from_numpy(heard))
    targets = torch.from_numpy(np.where(wanted, TARGETS[1], TARGETS[0]).astype(np.float32))
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets)
    value = float(loss.detach())
    if not math.isfinite(value):
        raise ValueError(f"the loss must stay finite, got {value} at update {update + 1}; train with a lower rate than "
                         f"{schedule.rate:g}")
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return value


# --- songs ------------------------------------------------------------------------------------------------------------


def prepared(songs: Sequence[Song], schedule: Schedule, folder: Path | None) -> Material:
    """Magnitudes of every song, worked out once; songs that cannot be trained on are one clear error."""
    if not len(songs):
        raise ValueError("there must be at least one song to train on, got none")
    hearing, digest = Hearing(None), hashlib.sha256()
    magnitudes, labels = [], []
    progress = CaseProgress("songs to spectrograms", len(songs))
    with progress:
        for number in range(len(songs)):
            song = songs[number]
            usable(song, schedule)
            labels.append(song.labels)
            own = hashlib.sha256(song.wave.tobytes()).hexdigest()
            digest.update(own.encode() + labels[-1].tobytes())
            magnitudes.append(_magnitude(hearing, song, own, folder))
            progress.finished(1)
    sung = np.concatenate(labels)
    if sung.all() or not sung.any():
        raise ValueError(f"songs to train on must hold frames with singing and frames without, got {len(songs)} songs with "
                         f"{'nothing but' if sung.all() else 'no'} singing; add others, or check their labels")
    return Material(tuple(magnitudes), tuple(labels), digest.hexdigest())


def usable(song: Song, schedule: Schedule) -> None:
    """Nothing, or one error that names the song: it must be labelled, long enough for a segment, finite and not silent."""
    if song.sung is None:
        _ = song.labels  # which says what is missing
    if song.frames < schedule.span:
        raise ValueError(f"{song.name} must be at least {schedule.span} frames ({schedule.span / FRAME_RATE:.2f} s) long, as a "
                         f"segment needs, got {song.frames} ({song.seconds:.2f} s); leave it out")
    try:
        Hearing(None).checked(song.wave)
    except ValueError as error:
        raise ValueError(f"{song.name}: {error}") from error


def _magnitude(hearing: Hearing, song: Song, own: str, folder: Path | None) -> NDArray[np.float32]:
    """(frames, 513), in memory or as a map of a file, which is named by the sound so that no other is taken for it."""
    if folder is None:
        return hearing.magnitude(song.wave)
    place = folder / "magnitudes" / f"{own[:32]}.npy"
    found = _mapped(place)
    if found is None or found.shape != (song.frames, BINS):
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(prefix=f".{place.stem}", suffix=".npy", dir=place.parent)
        os.close(handle)
        try:
            np.save(beside, hearing.magnitude(song.wave))
            os.replace(beside, place)
        finally:
            Path(beside).unlink(missing_ok=True)
        found = np.load(place, mmap_mode="r")
    return found


def _mapped(place: Path) -> NDArray[np.float32] | None:
    """What was kept, or None where nothing was, or only half of it."""
    try:
        found: NDArray[np.float32] = np.load(place, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return None
    return found


# --- while it runs ----------------------------------------------------------------------------------------------------


class _Updates(Progress):
    """How many updates are done, the loss (a mean that follows the last hundred or so), and how long it will take."""

    def __init__(self, total: int, before: int) -> None:
        super().__init__("training", EVERY)
        self.total, self.before, self.loss = total, before, math.nan

    def next(self, loss: float) -> None:
        """One more."""
        self.loss = loss if math.isnan(self.loss) else 0.98 * self.loss + 0.02 * loss
        self(1)

    def words(self, now: float) -> str:
        done = self.before + self.done
        left = (self.total - done) * (now - self.start) / max(self.done, 1)
        return f"update {done:,} of {self.total:,}, loss {self.loss:.3f}, about {duration(left)} left"


@contextlib.contextmanager
def _interrupted_between_updates() -> Iterator[Callable[[], bool]]:
    """Inside, Ctrl-C waits for the update in hand, whose half could not be gone on from; a second one does not wait."""
    asked = threading.Event()
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # somebody else's is left alone
        yield asked.is_set
        return

    def ask(number: int, frame: Any) -> None:
        if asked.is_set():
            raise SystemExit(130)
        asked.set()

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
