"""Atheism and Christianity from 20 newsgroups, as Ribeiro et al. (2016, § 6.1) use them: what of a post did its author write?

A post has a frame (its header, the line that says whom it quotes, a signature, addresses) and what is written in it, some of
which is quoted from others. A model that reads the frame does well on posts of the same weeks and groups, and nowhere else.
Where the paper measures that on web pages that can no longer be had, the stand-in here is the test posts without their frame,
without what is quoted from others, and without the names of authors.

The rules know how people quoted and signed in 1993. They miss some signatures, and take a last line that names its author for
one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from whytrust import files

GROUPS = ("alt.atheism", "soc.religion.christian")
CLASSES = ("atheism", "christian")
SPLITS = ("train", "test")
TOKEN = r"(?u)\b\w\w+\b"
"""A word, as scikit-learn's vectorisers find it; texts are in lower case before they are asked."""
NAMED = ("from", "reply-to", "organization")
"""Lines of a header that say who wrote."""
_WORD = re.compile(TOKEN)
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*)")
_IN_ADDRESS = r"[^\s<>()\[\]\"',;]"
# Each begins where nothing that could belong to it stands before, and goes back over nothing: long lines are read once.
_ADDRESS = re.compile(rf"<[^<>\s@!]*+[@!][^<>\s]*+>|(?<!{_IN_ADDRESS}){_IN_ADDRESS}+@{_IN_ADDRESS}+|<[\w.$%-]{{8,}}+>")
_QUOTED = re.compile(r"[ \t]{0,4}(?:[>|}#]|:(?![-'=)(DPp])|[A-Za-z]{1,4}>)")
_BEGINS_QUOTE = re.compile(r"[ \t>|:]*in (?:article|message|<|a (?:previous|recent) (?:article|post))", re.IGNORECASE)
_SAYS = re.compile(r"\b(?:writes?|wrote|says|said|responds|responded|asks|asked)\b[^.?!]{0,12}[:;.…-]*[ \t]*$", re.IGNORECASE)
_DRAWN = frozenset("-=_*~+#/\\|. ")
_SIGNED = re.compile(r"-- ?$")
_ATTRIBUTION = 4  # lines that saying whom one quotes may take
_LONG = 30  # lines that a signature may have below its mark
_SHORT = 12  # … below a drawn line
_LAST_WORDS = 5  # … and without either


@dataclass(frozen=True)
class Divided:
    """A post in pieces: what was written in it, what was quoted, and its frame."""

    subject: str
    header: str
    said_by: str  # the lines that say whom a post quotes
    quoted: str
    written: str
    signature: str


@dataclass(frozen=True)
class Post:
    """One post: its group by number, and its text as it is in the file."""

    name: str
    label: int
    raw: str

    @property
    def text(self) -> str:
        """The whole post as a model reads it, in lower case."""
        return self.raw.lower()

    @cached_property
    def divided(self) -> Divided:
        """Its pieces."""
        return divide(self.raw)


@dataclass(frozen=True)
class Newsgroups:
    """Both groups, with the split by date that everybody uses."""

    train: tuple[Post, ...]
    test: tuple[Post, ...]


def read(folder: str | Path) -> Newsgroups:
    """Posts from 20news-bydate-{train,test}/{alt.atheism,soc.religion.christian}/NUMBER, in the order of their names."""
    root = Path(folder)
    found = {}
    for split in SPLITS:
        posts: list[Post] = []
        for label, group in enumerate(GROUPS):
            place = root / f"20news-bydate-{split}" / group
            there = files.inside(place) if place.is_dir() else []
            paths = [p for p in there if p.parent == place and p.is_file() and not p.name.startswith(".")]
            if not paths:
                raise ValueError(f"--data must name a folder of 20 newsgroups with posts in "
                                 f"20news-bydate-{{train,test}}/{{{','.join(GROUPS)}}}, and {place} "
                                 f"{'holds none' if place.is_dir() else 'is not there'}; unpack 20news-bydate.tar.gz and name "
                                 "the folder that it made")
            posts += [Post(f"{group}/{path.name}", label, files.text(path, "a post", encoding="latin-1")) for path in paths]
        found[split] = tuple(posts)
    return Newsgroups(**found)


def words(text: str) -> list[str]:
    """The words of a text, in lower case and in order."""
    return _WORD.findall(text.lower())


# --- a post in pieces -------------------------------------------------------------------------------------------------


def divide(raw: str) -> Divided:
    """Header, attributions, quotations, signature, and what is left: the author's own words."""
    header, body = _header(raw)
    subject = next((value for field, value in _fields(header) if field == "subject"), "")
    subject = re.sub(r"^(?:\s*(?:re|fwd?)\s*[:\^]\s*)+", "", subject, flags=re.IGNORECASE)
    lines = body.split("\n")
    end = _signature(lines, {w for field, value in _fields(header) if field == "from" for w in words(_ADDRESS.sub(" ", value))})
    said, quoted, written = list[str](), list[str](), list[str]()
    place = 0
    while place < end:
        taken = _attribution(lines[place:end])
        if taken:
            said += lines[place:place + taken]
            place += taken
            continue
        (quoted if _QUOTED.match(lines[place]) else written).append(lines[place])
        place += 1
    return Divided(subject, header, "\n".join(said), "\n".join(quoted), "\n".join(written), "\n".join(lines[end:]))


def _header(raw: str) -> tuple[str, str]:
    """Up to the first empty line, where the post begins as a header does."""
    raw = raw.replace("\r\n", "\n").lstrip("\n")
    head, _, body = raw.partition("\n\n")
    return (head, body) if _FIELD.match(head) else ("", raw)


def _fields(header: str) -> list[tuple[str, str]]:
    """(name, value) of each line of a header; a line that begins with a space goes on with the one before."""
    found: list[tuple[str, str]] = []
    for line in header.split("\n"):
        match = _FIELD.match(line)
        if match and not line[:1].isspace():
            found.append((match[1].lower(), match[2]))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
    return found


def _attribution(lines: Sequence[str]) -> int:
    """How many lines here say whom the post quotes; 0 where none does."""
    if not _ADDRESS.search(lines[0]):
        return 0
    if _SAYS.search(lines[0]):
        return 1
    if not _BEGINS_QUOTE.match(lines[0]):
        return 0
    for more, line in enumerate(lines[:_ATTRIBUTION]):
        if more and not line.strip():
            break
        if _SAYS.search(line):
            return more + 1
    return 1


def _is_drawn(line: str) -> bool:
    """Is a line a drawn one, of four strokes or more? Spaces beside strokes count among them."""
    strokes = line.strip(" \t")
    if not strokes.strip() or not _DRAWN.issuperset(strokes):
        return False
    before, after = line.split(strokes, 1)
    return len(strokes) + len(before) - len(before.rstrip(" ")) + len(after) - len(after.lstrip(" ")) >= 4


def _signature(lines: Sequence[str], author: set[str]) -> int:
    """The line on which the signature begins; the number of lines where there is none."""
    last = len(lines)
    while last and not lines[last - 1].strip():
        last -= 1
    for place in reversed(range(max(last - _LONG, 0), last)):
        if _SIGNED.match(lines[place]):
            return place
    rules = [place for place in range(max(last - _SHORT, 0), last) if _is_drawn(lines[place])]
    if rules:
        return rules[0]
    first = last
    while first and lines[first - 1].strip():
        first -= 1
    block = "\n".join(lines[first:last])
    own = author & set(words(_ADDRESS.sub(" ", block)))
    is_short = last - first <= _LAST_WORDS and not any(_QUOTED.match(line) for line in lines[first:last])
    if is_short and first and (_ADDRESS.search(block) or (own and len(words(block)) <= 12)):
        return first
    return len(lines)


# --- which words are of the frame -------------------------------------------------------------------------------------


def places(posts: Iterable[Post]) -> tuple[Counter[str], Counter[str]]:
    """How often each word stands in the frame of a post, and how often in what people write, quoted or not.

    A subject is written, the word "Subject" before it is not. What is quoted counts as written here: it is other people's words
    on the matter, and a rare word would else be of the frame by the chance of having been quoted.
    """
    frame, written = Counter[str](), Counter[str]()
    for post in posts:
        pieces = post.divided
        text = "\n".join((pieces.subject, pieces.quoted, pieces.written))
        own = Counter(words(_ADDRESS.sub(" ", text)))
        everything = Counter(words(post.raw))
        written += own
        frame += everything - own
    return frame, written


def foreign_shares(posts: Iterable[Post]) -> dict[str, float]:
    """For every word of these posts, the share of its occurrences that lie in the frame: above ½ it is foreign."""
    frame, written = places(posts)
    return {word: frame[word] / (frame[word] + written[word]) for word in {*frame, *written}}


def author_names(posts: Iterable[Post]) -> frozenset[str]:
    """Words of the lines that say who wrote, where most of their occurrences lie in the frame.

    So "Rutgers" and "Kent" are names, and "Christian", "John" and "of" are not, whoever is called so.
    """
    posts = list(posts)
    shares = foreign_shares(posts)
    who = {word for post in posts for field, value in _fields(post.divided.header) if field in NAMED for word in words(value)}
    return frozenset(word for word in who if shares[word] > 0.5)


def bare(post: Post, names: frozenset[str]) -> str:
    """What the author wrote, in lower case: no header, quotations, signature, addresses or names of authors; "" if nothing."""
    text = _ADDRESS.sub(" ", post.divided.written).lower()
    text = _WORD.sub(lambda word: " " if word.group() in names else word.group(), text)
    return text.strip() if _WORD.search(text) else ""
