"""The documents use words that a stranger knows, and say what is true of the repository.

The list below holds words and turns of phrase that readers did not understand: private jargon, and
phrases that are not idiomatic in a technical text. Code (blocks and ``code spans``) is not looked
at. Words with a special meaning belong in ``docs/glossary.md``. Docstrings, comments, messages and
other texts in the package and in the kernels follow the same list, but may use ``IDIOMS``.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs.blocks import DOCS, ROOT, pages

DOCUMENTS = [
    *pages(),
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "tests" / "data" / "native" / "README.md",
]
PACKAGE = ROOT / "indextables"
BANNED = (
    r"rooms?", r"house", r"skins?", r"doors?", r"the floor", r"ask(?:ed)? well",
    r"(?:is|are) said by", r"what is few", r"spell(?:ed|t|ings?)", r"mend(?:s|ed|ing)?", r"told",
    r"tells", r"kin", r"in vain", r"anew", r"hands? on", r"throws? away", r"thrown away",
    r"turn(?:ed|s)? round", r"whoever", r"(?:is|are) content", r"legs?", r"swe(?:ep|pt)\w*",
    r"lives? again", r"passed over", r"laid", r"no news", r"nobody", r"somebody",
)  # fmt: skip
WORDS = re.compile(r"\b(?:" + "|".join(BANNED) + r")\b", re.I)
IDIOMS = re.compile(
    r"\b(?:spell(?:ed|t|ings?)|told apart|(?:tells?|telling) [\w ]+? apart"
    r"|no room|room (?:for|is made))\b",
    re.I,
)
KERNELS_TO_REWORD = {
    "_avro_columns.pxd", "_colkeys.pyx", "_cursor.pyx", "_fuse_build.pxd", "_rows_blocks.pyx",
    "_rows_spell.pyx",
}  # fmt: skip
"""Kernels with such a word in a docstring: a change makes everybody compile them again, so they are
reworded with their next real change."""
GLOSSARY = (
    "split", "cross-reference (XRef)", "snapshot", "residual", "column index", "zone", "code",
    "manifest", "state", "checkpoint", "verdict", "pushdown", "layer 1", "layer 2", "needle",
    "verb",
)  # fmt: skip


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(text: str) -> str:
    """The text without code blocks and code spans; lines keep their numbers."""
    text = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_no_word_that_a_stranger_cannot_know(page: Path) -> None:
    found = [
        f"line {number}: {match[0]}"
        for number, line in enumerate(prose(page.read_text("utf-8")).splitlines(), 1)
        for match in WORDS.finditer(line)
    ]
    assert not found, f"{name_of(page)}: {found}"


def texts_of(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings, messages, other texts of several words, and comments, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def kernel_texts(source: str) -> Iterator[tuple[int, str]]:
    """The same of a Cython module, which Python cannot parse."""
    for match in re.finditer(r'"""(.*?)"""|"([^"\n]* [^"\n]*)"|#([^\n]*)', source, re.S):
        yield source.count("\n", 0, match.start()) + 1, match[0]


def strange_words(texts: Iterator[tuple[int, str]]) -> list[str]:
    return [
        f"line {start + number}: {match[0]}"
        for start, text in texts
        for number, line in enumerate(IDIOMS.sub("", prose(text.replace("``", "`"))).splitlines())
        for match in WORDS.finditer(line)
    ]


@pytest.mark.parametrize("folder", sorted({f.parent for f in PACKAGE.rglob("*.py")}), ids=name_of)
def test_code_speaks_the_same_language(folder: Path) -> None:
    found = {
        file.name: words
        for file in sorted(folder.glob("*.py"))
        if (words := strange_words(texts_of(file.read_text("utf-8"))))
    }
    assert not found


def test_kernels_speak_the_same_language() -> None:
    found = {
        file.name: words
        for file in sorted((ROOT / "pyx").rglob("*.p[yx]*"))
        if (words := strange_words(kernel_texts(file.read_text("utf-8"))))
    }
    assert set(found) <= KERNELS_TO_REWORD, found


def test_the_words_of_code_are_looked_for() -> None:
    source = (
        'def f():\n    """Nobody knows ``nobody``."""\n'
        '    x = "a room"  # whoever asks\n    laid = "leg"\n    y = "no room for it"\n'
    )
    assert strange_words(texts_of(source)) == ["line 2: Nobody", "line 3: room", "line 3: whoever"]
    assert strange_words(kernel_texts(source)) == [
        "line 2: Nobody", "line 3: room", "line 3: whoever",
    ]  # fmt: skip


def test_the_words_are_looked_for() -> None:
    text = "A room.\n\n```text\nthe house\n```\n`door` and the Skin\nmended\n"
    assert WORDS.findall(prose(text)) == ["room", "Skin", "mended"]


def test_the_glossary_explains_our_words() -> None:
    text = (DOCS / "glossary.md").read_text("utf-8")
    missing = [word for word in GLOSSARY if f"| {word} |" not in text]
    assert not missing
    rows = re.findall(r"^\| ([^|]+) \|", text, re.M)
    words = [row for row in rows if row != "word" and not row.startswith("---")]
    assert len(words) == len(set(words))
    for page in (ROOT / "README.md", DOCS / "index.md", DOCS / "architecture.md"):
        assert "glossary.md" in page.read_text("utf-8")


@pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)
def test_files_that_are_named_exist(page: Path) -> None:
    """Paths in code spans that start with a folder of the repository; ``*`` is a wildcard."""
    folders = "bench|docs|examples|indextables|pyx|tests"
    for path in re.findall(rf"`((?:{folders})/[\w./*-]+)`", page.read_text("utf-8")):
        assert any(ROOT.glob(path.rstrip("/"))) or path == "indextables/native/", path


def test_the_first_screen_shows_measured_figures() -> None:
    """Three rows with a peer and a run, equal to the committed results; the picture is labelled."""
    text = (ROOT / "README.md").read_text("utf-8")
    screen = text[: text.index("\n## ")]
    row = re.compile(
        r"^\| [^|]+ \| ([\d.,]+) ms \| ([\d.,]+) ms, [^|]+ \| `(\w+): ([^`]+)` \|$", re.M
    )
    shown = row.findall(screen)
    assert len(shown) == 3
    (date,) = re.findall(r"on (\d{4}-\d\d-\d\d):", screen)
    for ours, peer, suite, name in shown:
        results = json.loads((ROOT / "bench" / "results" / f"{suite}.json").read_text())
        assert results["context"]["when"].startswith(date), "put the new run into README.md"
        scale = {"ms": 1.0, "s": 1000.0}
        measured = [
            (line["ours"] * scale[line["unit"]], line["peer"] * scale[line["unit"]])
            for line in results["lines"]
            if line["name"] == name
        ]
        said = float(ours.replace(",", "")), float(peer.replace(",", ""))
        assert any(said == pytest.approx(pair, rel=0.02) for pair in measured), (
            name,
            measured,
            said,
        )
    assert "illustration" in screen.partition("funnel.svg")[2]
    assert "invented" in screen.partition("funnel.svg")[2]


def test_every_folder_says_what_it_decides() -> None:
    for file in sorted((ROOT / "indextables").rglob("__init__.py")):
        doc = ast.get_docstring(ast.parse(file.read_text("utf-8")))
        assert doc, f"{file.relative_to(ROOT)} has no docstring"
        assert not WORDS.findall(prose(doc)), file.relative_to(ROOT)
