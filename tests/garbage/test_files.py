"""Files that are small and would take hours, or a machine's memory, are refused at once; good ones beside them are read as they are."""

import io
import json
import time
import zipfile

import numpy as np
import pytest
from PIL import Image

import whytrust as wt
from garbage.kinds import BY_NAME
from whytrust import files, limits
from whytrust.domains import image

pandas = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def at_once():
    start = time.process_time()
    yield
    assert time.process_time() - start < 5


# --- tables -----------------------------------------------------------------------------------------------------------

MANY = limits.COLUMNS
WIDE = [
    ("a heading of two lines", b'"a\n"' + b",b" * MANY + b"\n" + b"1," * MANY + b"1\n", "at most 100,000 columns"),
    ("a heading of many lines", b'"a\n"' + b',"\n"' * MANY + b"\n1\n", "at most 100,000 columns"),
    ("a name with a quote, then lines", b'x","\n"' + b',"\n"' * MANY + b"\n1\n", "as wide as its heading|at most 100,000 columns"),
    ("a first row beyond the limit", b"a\n" + b"1," * MANY + b"1\n", "at most 100,000 columns"),
    ("a first row of several lines", b"a\n" + b'"\n",' * MANY + b"1\n", "at most 100,000 columns"),
    ("rows of names", b"a\n" + b"1," * 90_000 + b"1\n", "as wide as its heading.*90,001 cells below 1 names"),
    ("blank lines before it", b"\n \n" + b",b" * MANY + b"\n", "at most 100,000 columns"),
    ("ends of lines as on old machines", b"a\r" + b"1," * MANY + b"1\r", "at most 100,000 columns"),
    ("columns of one name", b"b," * 50_000 + b"b\n" + b"1," * 50_000 + b"1\n", "names of their own.*1,000"),
]


@pytest.mark.parametrize(("raw", "words"), [one[1:] for one in WIDE], ids=[one[0] for one in WIDE])
def test_a_table_that_is_wider_than_it_looks_is_refused(raw, words, tmp_path):
    (tmp_path / "t.csv").write_bytes(raw)
    with pytest.raises(ValueError, match=words):
        files.table(tmp_path / "t.csv")


GOOD = [
    (b"a,b\n1,2\n3,4\n", {"a": [1, 3], "b": [2, 4]}), (b'\xef\xbb\xbf"a",b\r\n1,2\r\n', {"a": [1], "b": [2]}), (b"\n \na,b\n\n1,2", {"a": [1], "b": [2]}),
    (b"a,a,b\n1,2,3\n", {"a": [1], "a.1": [2], "b": [3]}), (b",a\n0,7\n", {"Unnamed: 0": [0], "a": [7]}), (b'"a\nb",c\n"1,2\n3",4\n', {"a\nb": ["1,2\n3"], "c": [4]}),
    (b'a,b\n5" wide,"say ""so"", twice"\n', {"a": ['5" wide'], "b": ['say "so", twice']}), (b"a,b\n", {"a": [], "b": []}), (b"a\n1\n2\n", {"a": [1, 2]}),
]


@pytest.mark.parametrize(("raw", "expected"), GOOD)
def test_good_tables_are_read_as_they_are_written(raw, expected, tmp_path):
    (tmp_path / "t.csv").write_bytes(raw)
    assert files.table(tmp_path / "t.csv").to_dict("list") == expected


def test_rows_may_have_names_or_end_with_a_separator(tmp_path):
    (tmp_path / "named.csv").write_bytes(b"a,b\nfirst,1,2\nsecond,3,4\n")
    named = files.table(tmp_path / "named.csv")
    assert (named.index.tolist(), named.to_dict("list")) == (["first", "second"], {"a": [1, 3], "b": [2, 4]})
    (tmp_path / "ended.csv").write_bytes(b"a,b\n1,2,\n3,4,\n")
    assert files.table(tmp_path / "ended.csv").to_dict("list") == {"a": [1, 3], "b": [2, 4]}


def test_thousands_of_columns_are_read(tmp_path):
    (tmp_path / "t.csv").write_text(",".join(f"c{i}" for i in range(20_000)) + "\n" + ",".join("1" * 20_000) + "\n")
    assert files.table(tmp_path / "t.csv").shape == (1, 20_000)


def test_a_quote_that_is_closed_far_away_hides_no_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_HEAD", 10_000)
    (tmp_path / "t.csv").write_bytes(b'"' + b"a\n" * 6000 + b'"' + b",b" * MANY + b"\n1\n")
    with pytest.raises(ValueError, match="heading and its first row must have at most"):
        files.table(tmp_path / "t.csv")


# --- pictures ---------------------------------------------------------------------------------------------------------


def progressive(scans, **options):
    """A JPEG whose last scan stands there so many times more."""
    out = io.BytesIO()
    Image.fromarray(np.arange(4096, dtype=np.uint8).reshape(64, 64)).save(out, "JPEG", progressive=True, **options)
    raw = out.getvalue()
    at = raw.rindex(b"\xff\xda")
    return raw[:at] + raw[at:-2] * (scans + 1) + raw[-2:]


EXIF = b"\xff\xe1" + (65533).to_bytes(2, "big") + b"Exif\0\0" + b"A" * 65525


@pytest.mark.parametrize(("raw", "words"), [
    (progressive(limits.SCANS), "at most 100 scans"), (progressive(0)[:2] + EXIF * 300 + progressive(0)[2:], "at most 16 MiB of Exif"),
    (b"\xff\xd8" + b"\xff\xff" + progressive(limits.SCANS)[2:], "at most 100 scans")])
def test_a_jpeg_that_would_be_decoded_for_minutes_is_refused(raw, words, tmp_path):
    (tmp_path / "x.png").write_bytes(raw)
    with pytest.raises(ValueError, match=words):
        image.read(tmp_path / "x.png")


@pytest.mark.parametrize("raw", [
    progressive(20), progressive(0) + b"\xff\xda" * 1000, progressive(0, exif=b"Exif\0\0" + b"\xff\xda" * 300 + b"Exif\0\0" * 300),
    progressive(0)[:2] + EXIF * 20 + progressive(0)[2:]], ids=["several scans", "a film behind it", "marks within its notes", "long notes"])
def test_good_jpegs_are_read(raw, tmp_path):
    (tmp_path / "x.jpg").write_bytes(raw)
    np.testing.assert_array_equal(image.read(tmp_path / "x.jpg"), np.asarray(Image.open(io.BytesIO(progressive(0)))))


# --- TOML -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [r'"\"a"', r'"a\\"', "'a'", "a", '"a.b"'])
def test_keys_of_many_names_are_refused_however_they_are_quoted(name, tmp_path):
    (tmp_path / "t.toml").write_text(".".join([name] * 5000) + " = 1\n")
    with pytest.raises(ValueError, match="at most 16 names"):
        files.toml(tmp_path / "t.toml")
    (tmp_path / "t.toml").write_text(".".join([name] * 16) + " = 1\n")
    assert len(files.toml(tmp_path / "t.toml")) == 1


# --- arrays -----------------------------------------------------------------------------------------------------------


def packed(path, head, size, method=zipfile.ZIP_DEFLATED):
    """A .npz file of one array of zeros, so many bytes long."""
    with zipfile.ZipFile(path, "w", method) as made, made.open("x.npy", "w") as member:
        member.write(head)
        for start in range(0, size, 1 << 20):
            member.write(bytes(min(1 << 20, size - start)))


def head_of(shape):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return out.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
@pytest.mark.parametrize("claims", [False, True])
def test_an_array_that_swells_a_thousandfold_is_refused_and_a_small_one_read(method, claims, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MUCH", 1 << 21)
    packed(tmp_path / "small.npz", head_of((1 << 20,)), 1 << 20, method)
    assert not files.arrays(tmp_path / "small.npz", ["x"])["x"].any()
    packed(tmp_path / "x.npz", head_of((1 << 22,)), 1 << 22, method)
    if claims:  # that it is packed in more than the file has
        raw = bytearray((tmp_path / "x.npz").read_bytes())
        at = raw.index(b"PK\x01\x02") + 20
        raw[at:at + 4] = (1 << 21).to_bytes(4, "little")
        (tmp_path / "x.npz").write_bytes(raw)
    with pytest.raises(ValueError, match=r"at most 200 times its size, and x\.npy does to 4"):
        files.arrays(tmp_path / "x.npz", ["x"])


def test_a_constant_picture_is_read_from_a_packed_file(tmp_path):
    picture = np.full((4000, 4000, 3), 255, np.uint8)
    np.savez_compressed(tmp_path / "x.npz", x=picture)
    assert (files.arrays(tmp_path / "x.npz", ["x"])["x"] == picture).all()


@pytest.mark.parametrize("claimed", [(1 << 30, b"\x02\0", 4), (60_000, b"\x01\0", 2)])
def test_the_head_of_an_array_is_not_read_where_it_claims_too_much(claimed, tmp_path):
    length, version, room = claimed
    head = b"\x93NUMPY" + version + length.to_bytes(room, "little")
    packed(tmp_path / "x.npz", head, 1 << 24)
    (tmp_path / "x.npy").write_bytes(head + bytes(1 << 16))
    for read in (lambda: files.arrays(tmp_path / "x.npz", ["x"]), lambda: files.array(tmp_path / "x.npy")):
        with pytest.raises(ValueError, match=r"its head must have at most 9\.766 KiB"):
            read()


# --- explanations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", [{"rate": 2**40}, {"rate": 10**400}, {"seconds": 10**400}, {"seconds": 1e300}, {"top_hz": 10**400}, {"top_hz": 1e300}, {"rate": 0}, {"seconds": True}])
def test_a_sound_beyond_all_measure_is_refused(told, tmp_path):
    data = json.loads(BY_NAME["explanation of a sound"].made())
    data["view"] |= told
    (tmp_path / "e.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match="does not fit its"):
        wt.Explanation.load(tmp_path / "e.json")


@pytest.mark.parametrize("told", [{"rate": 10**7}, {"seconds": 1e9}, {"seconds": 1e-300}, {"top_hz": 1e9}])
def test_a_sound_within_measure_is_drawn(told, tmp_path):
    data = json.loads(BY_NAME["explanation of a sound"].made())
    data["view"] |= told
    (tmp_path / "e.json").write_text(json.dumps(data))
    wt.Explanation.load(tmp_path / "e.json").save(tmp_path / "e.html")
    assert (tmp_path / "e.html").stat().st_size > 1000
