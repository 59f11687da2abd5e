"""Ways in which a file goes wrong, by accident or on purpose; each is a function of the bytes and a source of chance."""

import gzip
import io
import json
import re
import struct
import zipfile
import zlib

EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, 0x7FFFFFFFFFFFFFFF, (1 << 64) - 1)
NUMBERS = ("0", "-1", "1e999", "-1e999", "NaN", "Infinity", "nan", "inf", "9" * 30, "9" * 5000, "1" + "0" * 400, "0x7f", "1_000", "١", "-0.0",
           "1e-400", "00", "2147483648", "1000000000000", "4294967296")
VALUES = (None, True, False, 0, -1, 1, 10**30, 1e308, -1e-308, float("nan"), float("inf"), "", "x", "\x00", "\ud800", "../../etc/passwd", "<script>",
          "a" * 70_000, [], {}, [[]], [None], {"": None}, [1, 2, 3], {"zlib": "x"}, [[[[[[[[1]]]]]]]], [0] * 5000)


def place(rng, raw, most=None):
    """Somewhere, more often near the beginning, where files say what they hold."""
    end = max(min(len(raw), most or len(raw)), 1)
    return rng.randrange(min(end, 128)) if rng.random() < 0.5 else rng.randrange(end)


# --- bytes ------------------------------------------------------------------------------------------------------------


def cut_off(rng, raw):
    return raw[:place(rng, raw)]


def flipped(rng, raw):
    out = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        if out:
            out[place(rng, out)] ^= 1 << rng.randrange(8)
    return bytes(out)


def overwritten(rng, raw):
    start, length = place(rng, raw), rng.choice((1, 2, 4, 8, 64, 1000))
    return raw[:start] + rng.choice((b"\x00", b"\xff", b"A", b"\n"))[:1] * length + raw[start + length:]


def enormous(rng, raw):
    """A field of a head that says a number of something."""
    start, kind = place(rng, raw), rng.choice(("<H", ">H", "<I", ">I", "<Q", ">Q"))
    value = struct.pack(kind, rng.choice(EXTREMES) & ((1 << 8 * struct.calcsize(kind)) - 1))
    return raw[:start] + value + raw[start + len(value):]


def repeated(rng, raw):
    start, times = place(rng, raw), rng.choice((1, 2, 50))
    piece = raw[start:start + rng.choice((1, 4, 32, 500, 5000))]
    return raw[:start] + piece * times + raw[start:]


def inserted(rng, raw):
    start = place(rng, raw)
    return raw[:start] + rng.randbytes(rng.choice((1, 3, 16, 300))) + raw[start:]


def deleted(rng, raw):
    start = place(rng, raw)
    return raw[:start] + raw[start + rng.choice((1, 2, 4, 30, 1000)):]


def moved(rng, raw):
    one, two = sorted((place(rng, raw), place(rng, raw)))
    return raw[:one] + raw[two:] + raw[one:two]


def emptied(rng, raw):
    return rng.choice((b"", b"\x00", b"\n", b" ", rng.randbytes(rng.choice((1, 4, 100, 5000)))))


def headless(rng, raw):
    return raw[:rng.choice((4, 8, 12, 16, 32, 64))] + rng.randbytes(200)


BYTES = (cut_off, flipped, flipped, overwritten, enormous, enormous, repeated, inserted, deleted, moved, emptied, headless)


def spliced(rng, raw, other):
    """The beginning of one file and the end of another."""
    return raw[:place(rng, raw)] + other[place(rng, other):]


# --- texts ------------------------------------------------------------------------------------------------------------


def other_number(rng, raw):
    found = list(re.finditer(rb"-?\d+(\.\d+)?", raw))
    if not found:
        return flipped(rng, raw)
    one = rng.choice(found)
    return raw[:one.start()] + rng.choice(NUMBERS).encode() + raw[one.end():]


def other_encoding(rng, raw):
    text = raw.decode("utf-8", "replace")
    return rng.choice((lambda: b"\xef\xbb\xbf" + raw, lambda: text.encode("utf-16"), lambda: text.encode("utf-32"), lambda: b"\xff\xfe" + raw,
                       lambda: text.encode("utf-8").replace(b"e", b"\xe9"), lambda: raw.replace(b"a", b"\xed\xa0\x80")))()


def other_lines(rng, raw):
    lines = raw.split(b"\n")
    one = rng.randrange(len(lines))
    return rng.choice((
        lambda: b"\n".join([*lines[:one], lines[one], *lines[one:]]), lambda: b"\n".join([*lines[:one], *lines[one + 1:]]),
        lambda: b"\r".join(lines), lambda: b"\r\n".join(lines), lambda: b"\n".join(lines[::-1]), lambda: b"\x00".join(lines),
        lambda: b"\n".join([*lines[:one], lines[one] * 50, *lines[one + 1:]]), lambda: b"\n" * 5000 + raw, lambda: b"\xe2\x80\xa8".join(lines)))()


def long_line(rng, raw):
    start = place(rng, raw)
    return raw[:start] + rng.choice((b"x", b" ", b",", b"\t", b"9", b'"', b"\\", b"[", b"{\"a\":", b"#", b"a.", b"'")) * 200_000 + raw[start:]


def nested(rng, raw):
    depth, (left, right) = rng.choice((50, 5000, 100_000)), rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"{a=", b"}"), (b"(", b")")))
    found = list(re.finditer(rb"-?\d+(\.\d+)?", raw)) or list(re.finditer(rb".", raw))
    start, end = rng.choice(found).span() if found else (0, 0)
    return raw[:start] + left * depth + b"1" + right * depth + raw[end:]


def other_words(rng, raw):
    words = re.findall(rb"[\w.]+|[^\w\s]", raw)
    if len(words) < 2:
        return flipped(rng, raw)
    return raw.replace(rng.choice(words), rng.choice((*rng.sample(words, 2), b"", b"\x00", b"NaN", b"'", b'"', b"\\", b"../..", b"true")), rng.choice((1, -1)))


TEXTS = (other_number, other_number, other_encoding, other_lines, long_line, nested, other_words, other_words)


# --- what is inside -----------------------------------------------------------------------------------------------------


def other_json(rng, raw):
    """A JSON file with something else in one of its places, or a key less, or the same one twice."""
    data = json.loads(raw)
    for _ in range(rng.choice((1, 1, 1, 3))):
        data = _elsewhere(rng, data)
    out = json.dumps(data)
    if rng.random() < 0.05 and out.startswith("{") and len(out) > 2:
        out = out[:-1] + "," + out[1:]
    return out.encode()


def other_toml(rng, raw):
    """A spec in which a key has another value, or a value another key."""
    lines = raw.decode().splitlines()
    for _ in range(rng.choice((1, 1, 1, 2))):
        at = rng.choice([i for i, line in enumerate(lines) if " = " in line])
        key, _, value = lines[at].partition(" = ")
        values = (*(line.partition(" = ")[2] for line in lines if " = " in line), *NUMBERS, *map(json.dumps, VALUES[1:12]), '"demo"', '"folder"', '"none"', "[]",
                  "{}", "[[]]", '"a.csv"', "1979-05-27", '["lime", 3]', "{method = 3}", '{method = "pgd", targets = []}', '"../../../etc/passwd"', '"slic:-1"', "[1e400]")
        lines[at] = f"{key} = {rng.choice(values)}" if rng.random() < 0.8 else f"{rng.choice(SPEC_KEYS)} = {value}"
    return "\n".join(lines).encode()


SPEC_KEYS = ("column", "size", "resize", "rate", "seconds", "explain_on", "excerpts", "groups", "labels", "fill", "cut_on", "batch_size", "block", "nothing")


def _elsewhere(rng, data):
    if isinstance(data, dict) and data and rng.random() < 0.9:
        key = rng.choice(list(data))
        if rng.random() < 0.08:
            return {k: v for k, v in data.items() if k != key}
        return {**data, key: _elsewhere(rng, data[key])}
    if isinstance(data, list) and data and rng.random() < 0.7:
        at = rng.randrange(len(data))
        return rng.choice((lambda: [*data[:at], _elsewhere(rng, data[at]), *data[at + 1:]], lambda: data[:at], lambda: data + data))()
    return rng.choice(VALUES)


def rechecked_png(rng, raw):
    """Chunks with something else in them, and sums that fit."""
    out, at, number = raw[:8], 8, 0
    chosen = rng.randrange(4)
    while at + 12 <= len(raw):
        (length,), kind = struct.unpack(">I", raw[at:at + 4]), raw[at + 4:at + 8]
        body = raw[at + 8:at + 8 + length]
        if number == chosen or (kind == b"IHDR" and rng.random() < 0.5):
            body = zlib.compress(rng.choice(BYTES)(rng, zlib.decompress(body))) if kind == b"IDAT" and rng.random() < 0.7 else rng.choice(
                (flipped, enormous, overwritten, cut_off))(rng, body)
        out += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        at, number = at + 12 + length, number + 1
    return out


def repacked_gz(rng, raw):
    return gzip.compress(rng.choice((*BYTES, *TEXTS))(rng, gzip.decompress(raw)), mtime=0)


def repacked_npz(rng, raw):
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as packed, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        names = packed.namelist()
        chosen = rng.choice(names)
        for name in names:
            body = packed.read(name)
            made.writestr(rng.choice((name, name, "../" + name, "/" + name, "x" * 300)) if name == chosen else name,
                          rng.choice((other_head, flipped, cut_off, headless))(rng, body) if name == chosen else body)
    return out.getvalue()


def other_head(rng, raw):
    """The head of a .npy file with another shape, dtype or order, and its own length."""
    (length,) = struct.unpack("<H", raw[8:10])
    head = raw[10:10 + length].rstrip()
    new = rng.choice((other_number, other_words, nested, other_dtype, other_dtype))(rng, head)[:60_000]
    return raw[:8] + struct.pack("<H", len(new) + 1) + new + b"\n" + raw[10 + length:]


def other_dtype(rng, raw):
    kind = rng.choice((b"|O", b"|V0", b"<U0", b"|V9999999999", b"<U3", b"|S1", b"<c8", b"<M8[s]", b"<f2", b"<i1", b">f8", b"<f16", b"|b1", b"q", b"", b"f4,f4", b"(1000000,)f4"))
    return re.sub(rb"'descr': '[^']*'", b"'descr': '" + kind + b"'", raw)


def other_tensors(rng, raw):
    """A safetensors file with another head, as long as it says."""
    (length,) = struct.unpack("<Q", raw[:8])
    head = raw[8:8 + length]
    new = other_json(rng, head) if rng.random() < 0.7 else rng.choice(TEXTS)(rng, head)
    told = rng.choice((len(new), len(new), len(new), 1 << 60, 0, len(raw) * 2))
    return struct.pack("<Q", told) + new + raw[8 + length:]


def other_graph(rng, raw):
    """An ONNX graph that is well-formed and means something else."""
    import onnx
    model = onnx.load_from_string(raw)
    sizes = [axis for one in (*model.graph.input, *model.graph.output) for axis in one.type.tensor_type.shape.dim]
    choices = [lambda: setattr(rng.choice(sizes), "dim_value", rng.choice((0, -1, 1, 7, 1 << 31, 1 << 40, (1 << 63) - 1))),
               lambda: setattr(rng.choice(model.graph.node), "op_type", rng.choice(("Add", "Conv", "Reshape", "Loop", "If", "Tile", "", "NoSuch", "Softmax"))),
               lambda: setattr(rng.choice(model.graph.input).type.tensor_type, "elem_type", rng.randrange(25)),
               lambda: setattr(model.opset_import[0], "version", rng.choice((0, 1, 99, -1, 1 << 40))),
               lambda: setattr(model, "ir_version", rng.choice((0, 1, 99, -1))),
               lambda: rng.choice(model.graph.node).input.append("nobody"), lambda: model.graph.node.pop(), lambda: model.graph.initializer.pop()]
    if model.graph.initializer:
        one = rng.choice(model.graph.initializer)
        choices += [lambda: one.dims.__setitem__(0, rng.choice((0, -1, 1 << 20, 1 << 40, (1 << 63) - 1))), lambda: setattr(one, "data_type", rng.randrange(25)),
                    lambda: setattr(one, "raw_data", rng.choice((b"", one.raw_data[:-1], one.raw_data * 2, b"\xff" * len(one.raw_data))))]
    for _ in range(rng.choice((1, 1, 2))):
        rng.choice(choices)()
    return model.SerializeToString()


def mutated(rng, raw, others, text=False, deep=None):
    """One malformed file: what is inside it goes wrong, or the file, in one way or several."""
    if deep is not None and rng.random() < 0.5:
        return deep(rng, raw)
    ways = (*BYTES, *TEXTS, *TEXTS) if text else BYTES
    out = raw
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        out = spliced(rng, out, rng.choice(others)) if rng.random() < 0.05 else rng.choice(ways)(rng, out)
    return out
