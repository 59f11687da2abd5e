"""How much a file may hold: what is beyond is refused before any memory is asked for.

All are far above what is met in earnest and far below what would bring a machine down. A file says how large it is in its first
bytes, and whoever wrote it may have lied: a limit holds for what a file claims as well as for what it turns out to hold.
"""

from __future__ import annotations

MIB, GIB = 1 << 20, 1 << 30

PIXELS = 170_000_000
"""Of an image, such as 13,000 × 13,000."""
IMAGE = 2 * GIB
"""Bytes of an image file."""
SCANS = 100
"""Of a JPEG, each of which may go over all of its pixels; a progressive one has ten."""
EXIF = 16 * MIB
"""Bytes of what a camera noted in a JPEG."""
SAMPLES = 500_000_000
"""Of a sound, all channels together, as it is stored and as it is resampled: three hours at 44.1 kHz, or one hour of stereo."""
ARRAY = 8 * GIB
"""Bytes of the numbers in a .npy file, and of all arrays of a .npz file together."""
SWOLLEN = 200
"""An array of a .npz file may unpack to so many times its size, or to 256 MiB; pictures and sounds do to ten times."""
TABLE = 2 * GIB
"""Bytes of a .csv or .tsv file."""
COLUMNS = 100_000
"""Of a .csv or .tsv file."""
TEXT = GIB
"""Bytes of a text file: a text, a text or a class a line, pairs of words, .lab, lists of songs."""
LINE = 16 * MIB
"""Bytes of one line of a text file or a table."""
JSON = 512 * MIB
"""Bytes of a JSON file: an explanation, a gallery, a pick, statistics of a table."""
ENTRIES = 2_000_000
"""Files and folders in a folder of data and its sub-folders; ImageNet has 1.3 million."""
PARTS = 1_000_000
"""Parts of one explanation that is read."""
WEIGHED = 1 << 16
"""Parts of one input that are hidden one by one or fitted together; gradients have no such limit."""
VIEW = GIB
"""Bytes of all arrays together that an explanation shows its input by."""
RUN = 2 * GIB
"""Bytes of a manifest, or of the records of one block, in the folder of a run; a manifest of ten million cases has a tenth."""
SPEC = MIB
"""Bytes of a .toml file."""
KEYS = 16
"""Names that a key of a .toml file may be made of, as a.b.c is made of three."""
VECTORS = 64 * GIB
"""Bytes of a file of word vectors, unpacked."""
DIMENSIONS = 100_000
"""Numbers of a word vector."""
UNPACKED = 50
"""A .gz file may unpack to so many times its size; numbers do to three times, and what is made for it to a thousand."""
FEED = 1 << 28
"""Numbers in one input that an ONNX graph asks for, where its shape is fixed."""
LAYERS = 256
"""Layers, heads of a layer, and whatever else is no size, that the config.json of a Hugging Face folder may ask for."""
MODULES = 20_000
"""Layers and pieces of layers that a model may be built of by it; one of 256 layers has 5,000."""
LABELS = 100_000
"""Classes that it may ask for."""
WEIGHTS = 16
"""Weights that a Hugging Face model may have for each byte of its files; four bits a weight, the least in use, are two."""
