"""The least that can pass for a song: noise, with a tone where somebody sings."""

import numpy as np

from whytrust.core import generator
from whytrust.models.songs import RATE, Song, Songs, SongSet


def song(number=0, seconds=4.0, sung=((1.0, 2.5),)):
    wave = generator(number, "noise").normal(size=int(seconds * RATE)) * 0.05
    for start, end in sung or ():
        moments = np.arange(int(start * RATE), min(int(end * RATE), len(wave)))
        wave[moments] += 0.3 * np.sin(2 * np.pi * 440 * moments / RATE)
    return Song(f"song {number}", wave.astype(np.float32), sung)


def song_set():
    """Two songs to train on, one to tune on, three to test on."""
    parts, first = [], 0
    for count in (2, 1, 3):
        parts.append(Songs(tuple(f"song {first + i}" for i in range(count)), lambda i, first=first: song(first + i)))
        first += count
    return SongSet("noise and tones", *parts)
