"""Small files that claim, or unpack to, more than any machine has; `python -m garbage.bombs` opens them one after the other.

It may take no more than ROOM for each, and writes a line of JSON: what was said, and how long that took.
"""

import base64
import contextlib
import gzip
import io
import json
import os
import resource
import struct
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

from garbage.kinds import BY_NAME
from garbage.trying import prepared
from whytrust import limits


def png(wide, high):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(10_000))) + chunk(b"IEND", b"")


def tiff(wide, high):
    raw = bytearray(BY_NAME["TIFF"].made())
    for tag, value in ((256, wide), (257, high)):
        at = raw.index(struct.pack("<HHI", tag, 4, 1))
        raw[at + 8:at + 12] = struct.pack("<I", value)
    return bytes(raw)


def bmp(wide, high):
    raw = bytearray(BY_NAME["BMP"].made())
    raw[18:26] = struct.pack("<ii", wide, high)
    return bytes(raw)


def gif(wide, high):
    raw = bytearray(BY_NAME["GIF"].made())
    raw[6:10] = struct.pack("<HH", wide, high)
    return bytes(raw)


def jpeg(wide, high):
    raw = bytearray(BY_NAME["JPEG"].made())
    at = raw.index(b"\xff\xc0")
    raw[at + 5:at + 9] = struct.pack(">HH", high, wide)
    return bytes(raw)


def wav(channels=1, rate=8000, claimed=0x7FFFFFF0, held=4000):
    body = bytes(held)
    form = struct.pack("<HHIIHH", 1, channels, rate, min(rate * channels * 2, 0xFFFFFFFF), channels * 2 & 0xFFFF, 16)
    return b"RIFF" + struct.pack("<I", 0x7FFFFFFF) + b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", claimed) + body


def flac():
    raw = bytearray(BY_NAME["FLAC"].made())
    packed = int.from_bytes(raw[18:26], "big")  # rate, channels, bits, and in the last 36 bits how many samples
    raw[18:26] = (packed | (1 << 36) - 1).to_bytes(8, "big")
    return bytes(raw)


def npy(shape, dtype="<f8"):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(800)


def npz(body):
    import zipfile
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in ("x_train", "y_train", "x_test", "y_test"):
            packed.writestr(f"{name}.npy", body)
    return out.getvalue()


def explanation(**changes):
    return json.dumps({**json.loads(BY_NAME["explanation of an image"].made()), **changes}).encode()


def array_of(size, claimed):
    return {"dtype": "uint8", "shape": claimed, "zlib": base64.b64encode(zlib.compress(bytes(size))).decode()}


def view(**changes):
    return {"view": {**json.loads(BY_NAME["explanation of an image"].made())["view"], **changes}}


def million_parts():
    many = limits.PARTS + 1
    return json.dumps({"format": 1, "scores": [0] * many, "names": ["a"] * many, "view": {"kind": "table"}}).encode()


def graph(axis=None, initializer=None):
    import onnx
    model = onnx.load_from_string(BY_NAME["ONNX"].made())
    if axis:
        model.graph.input[0].type.tensor_type.shape.dim[axis[0]].dim_value = axis[1]
    if initializer:
        model.graph.initializer[0].dims[0] = initializer
    return model.SerializeToString()


def config(**changes):
    return json.dumps({**json.loads(BY_NAME["Hugging Face config.json"].made()), **changes}).encode()


@dataclass(frozen=True)
class Sparse:
    """So many bytes of which the disk holds hardly any."""

    size: int
    begin: bytes = b""


GIB = limits.GIB
ROOM = 300 << 20
BOMBS = [  # (what it is, its kind, the file, what the error says)
    ("PNG of 100,000 × 100,000", "PNG", png(100_000, 100_000), "pixels"), ("PNG just beyond the limit", "PNG", png(13_100, 13_000), "at most 170,000,000 pixels"),
    ("TIFF of 100,000 × 100,000", "TIFF", lambda: tiff(100_000, 100_000), "pixels"), ("BMP of 100,000 × 100,000", "BMP", lambda: bmp(100_000, 100_000), "pixels"),
    ("GIF of 65,535 × 65,535", "GIF", lambda: gif(65_535, 65_535), "pixels"), ("JPEG of 65,535 × 65,535", "JPEG", lambda: jpeg(65_535, 65_535), "pixels"),
    ("image of 3 GiB", "PNG", Sparse(3 * GIB, b"\x89PNG\r\n\x1a\n"), "at most 2 GiB"),
    ("FLAC of 68 billion samples", "FLAC", flac, "at most 500,000,000 samples"), ("WAV of 1 sample a second, to be resampled", "WAV", wav(1, 1, 400_000, 400_000), "at most 500,000,000 samples"),
    ("sparse WAV of 4 GiB", "WAV", Sparse(4 * GIB - 1, wav(claimed=0xFFFFFFF0 - 100)), "at most 500,000,000 samples"),
    (".npy of 10¹² numbers", ".npy, a spectrogram", npy((10**12,)), "at most 8 GiB"), (".npy of 10³⁶ numbers", ".npy, a spectrogram", npy((10**18, 10**18)), "at most 8 GiB"),
    (".npy of 4 GiB that are not there", ".npy, a spectrogram", npy((1 << 29,)), "cut off"), (".npy of 10¹² rows of nothing", ".npy, a spectrogram", npy((10**12, 0)), "not be empty"),
    (".npy of 10¹² empty texts", ".npy, a spectrogram", npy((10**12,), "<U0"), "not be empty"), (".npy of objects", ".npy, a spectrogram", npy((3,), "|O"), "pickle"),
    (".npz of 10¹² numbers", ".npz", lambda: npz(npy((10**12,))), "at most 8 GiB"),
    (".npz that unpacks to 9 GiB", ".npz", lambda: large_npz(9 * GIB), "unpack to 9 GiB"),
    (".gz of zeros", "word vectors, packed", lambda: gzip.compress(bytes(20 << 20)), "text format"),
    (".gz of one line again and again", "word vectors, packed", lambda: gzip.compress((b"a" + b" 0" * 500 + b"\n") * 30_000), "at most 50 times its size"),
    ("a first line that promises 10¹⁵ words", "word vectors", b"999999999999999 3\na 1 2 3\n", "cut off"),
    ("an explanation of a million parts and one", "explanation of a row", million_parts, "at most 1,000,000 parts"),
    ("an explanation nested 100,000 deep", "explanation of a row", b"[" * 100_000 + b"]" * 100_000, "recursion"),
    ("an explanation of 600 MiB", "explanation of a row", Sparse(600 << 20, b"{"), "at most 512 MiB"),
    ("an explanation whose image has 10¹² pixels", "explanation of an image", lambda: explanation(**view(pixels=array_of(10, [10**6, 10**6, 1]))), "at most 1,073,741,824 bytes"),
    ("an explanation whose image unpacks to more than it says", "explanation of an image", lambda: explanation(**view(pixels=array_of(50 << 20, [2, 2, 3]))), "got more"),
    ("TOML nested 100,000 deep", "TOML", b"model = " + b"[" * 100_000, "recursion"), ("TOML with a key of 60,000 names", "TOML", b"a." * 60_000 + b"a = 1", "at most 16 names"),
    ("TOML of 2 MiB", "TOML", Sparse(2 << 20), "at most 1 MiB"), ("ONNX that takes 10¹² numbers", "ONNX", lambda: graph(axis=(1, 10**12)), "must be an ONNX model"),
    ("ONNX made for 10¹² rows at a time", "ONNX", lambda: graph(axis=(0, 10**12)), "at most 268,435,456"), ("ONNX with a weight of 10¹² rows", "ONNX", lambda: graph(initializer=10**12), "must be an ONNX model"),
    (".csv with a line of 1 GB", ".csv, background", Sparse(10**9, b"a,b\n"), "lines may have at most 16 MiB"), (".csv of 3 GiB", ".csv, background", Sparse(3 * GIB), "at most 2 GiB"),
    (".csv of 200,000 columns", ".csv, background", b"a," * 200_000 + b"a\n" + b"1," * 200_000 + b"1\n", "at most 100,000 columns"),
    (".tsv with a line of 1 GB", ".tsv, texts", Sparse(10**9, b"text\tlabel\n"), "lines may have at most 16 MiB"),
    (".txt with a line of 1 GB", ".txt, a text", Sparse(10**9), "lines may have at most 16 MiB"), (".txt of 2 GiB", ".txt, a text", Sparse(2 * GIB), "at most 1 GiB"),
    (".txt of 300,000 words", ".txt, a text", b"word " * 300_000, "at most 65,536 parts"), (".lab with a line of 1 GB", ".lab", Sparse(10**9), "lines may have at most 16 MiB"),
    ("pairs in a line of 1 GB", "pairs of words", Sparse(10**9), "lines may have at most 16 MiB"), ("safetensors with a head of 2⁶⁰ bytes", "safetensors, a detector", struct.pack("<Q", 1 << 60) + b"{}", "header"),
    ("safetensors of 10¹⁵ numbers", "safetensors, a detector", lambda: tensors([10**15], [0, 4 * 10**15]), "safetensors"),
    ("Hugging Face, 10⁹ layers", "Hugging Face config.json", lambda: config(num_hidden_layers=10**9), "at most 256"), ("Hugging Face, 10⁹ classes", "Hugging Face config.json", lambda: config(num_labels=10**9), "at most 100,000"),
    ("Hugging Face, 10¹² words", "Hugging Face config.json", lambda: config(vocab_size=10**12), "must bring the weights"),
    ("ARPA with a line of 1 GB", "language model, ARPA", Sparse(10**9), "lines may have at most 16 MiB"),
]


def tensors(shape, offsets):
    head = json.dumps({"w": {"dtype": "F32", "shape": shape, "data_offsets": offsets}}).encode()
    return struct.pack("<Q", len(head)) + head + bytes(16)


def large_npz(size):
    """A member that claims so many bytes, in the two places where a .zip says it."""
    raw = bytearray(npz(npy((100,))))
    real = struct.pack("<I", len(npy((100,))))
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = 0
        while (start := raw.find(mark, start)) >= 0:
            assert raw[start + at:start + at + 4] == real
            raw[start + at:start + at + 4] = struct.pack("<I", size // 4)
            start += 4
    return bytes(raw)


def main():
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        for what, name, made, _ in BOMBS:
            kind = BY_NAME[name]
            with tempfile.TemporaryDirectory() as folder:
                path = prepared(kind, folder)
                if isinstance(made, Sparse):
                    path.write_bytes(made.begin)
                    os.truncate(path, made.size)
                else:
                    path.write_bytes(made if isinstance(made, bytes) else made())
                start = time.monotonic()
                try:
                    with little_room():
                        kind.door(path)
                    said = None
                except Exception as error:
                    said = f"{type(error).__name__}: {error}"
                sys.stdout.write(json.dumps({"what": what, "said": said, "seconds": time.monotonic() - start}) + "\n")


@contextlib.contextmanager
def little_room():
    """Inside, whoever asks for much memory is refused it."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    usual = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, usual)


if __name__ == "__main__":
    main()
