"""The site is whole: every page has its place, every link leads somewhere, nothing is stale."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs.blocks import DOCS, ROOT, pages

import indextables
from indextables import errors
from indextables.cli.app import cli
from indextables.cli.main import main  # noqa: F401

LINK = re.compile(r"\]\(([^)\s]+)\)")
OTHERS = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ +(.*?)\s*$", page.read_text("utf-8"), re.M)
    plain = (re.sub(r"[^\w\s-]", "", head).strip().lower() for head in heads)
    return {re.sub(r"[-\s]+", "-", head) for head in plain}


@pytest.mark.parametrize("page", [*pages(), *OTHERS], ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    for target in LINK.findall(text):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        place = (page.parent / name).resolve() if name else page
        assert place.exists(), f"{page.name} links to {target}"
        assert page.parent != DOCS or place.is_relative_to(DOCS), f"{target} is not on the site"
        assert not anchor or anchor in anchors(place), f"{page.name} links to {target}"


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"[\w-]+(?:/[\w-]+)*\.md", (ROOT / "mkdocs.yml").read_text())
    there = {str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md")}
    assert set(listed) == there
    assert len(listed) == len(set(listed))


def test_every_error_is_described() -> None:
    page = (DOCS / "errors.md").read_text()
    classes = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.IndexTablesError)
    ]
    for found in classes:
        assert f"| {found.code} | `{found.__name__}` |" in page


def test_every_command_is_described() -> None:
    page = (DOCS / "cli.md").read_text()
    for name in cli.commands:
        assert re.search(rf"`{name}\b", page), name


def test_every_public_name_is_described() -> None:
    text = "".join(p.read_text() for p in pages())
    for name in set(indextables.__all__) - {"__version__"}:
        assert re.search(rf"\b{re.escape(name)}\b", text), name


def test_figures_promise_no_more_than_was_measured() -> None:
    """Within a factor of two: benchmarks are repeated, and machines differ."""
    known = {}
    for file in (ROOT / "bench/baseline.json", *(ROOT / "bench" / "results").glob("*.json")):
        for line in json.loads(file.read_text()).get("lines", []):
            key = f"{line['suite']}: {line['name']}", line["peer_name"]
            known[key] = line["peer"] / line["ours"]
    row = re.compile(r"^\| (\w+: .+?) \| ([\d.,]+) \S+ \| ([\d.,]+) \S+, (\w+) \|$", re.M)
    shown = row.findall((DOCS / "comparison.md").read_text())
    assert len(shown) >= 8
    for name, ours, theirs, peer in shown:
        claim = float(theirs.replace(",", "")) / float(ours.replace(",", ""))
        measured = known.get((name, peer), claim)
        assert claim <= 2 * measured, f"{name}: {claim:.3g} is shown, {measured:.3g} was measured"


def test_pages_speak_of_the_project_alone() -> None:
    words = re.compile(r"/(?:work|root|home|Users)/|\bTODO\b|\bissue \d|\bhelper\b", re.I)
    for page in [*pages(), *OTHERS]:
        assert not words.search(page.read_text()), page.name


@pytest.mark.slow
def test_the_site_builds(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed; make docs installs it")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "index.html").exists()
    assert (tmp_path / "search" / "search_index.js").read_text().startswith("var __index")
    for page in tmp_path.rglob("*.html"):
        text = page.read_text()
        assert not re.search(r"""<(?:script|link)[^>]+(?:src|href)=["']?https?://""", text), page
        assert "assets/iframe-worker.js" in text or page.name == "404.html"


def test_the_site_works_from_disk() -> None:
    """Search is built in, and what a browser lacks for pages from disk comes with the site."""
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "  - offline\n" in settings
    assert "polyfills: [assets/iframe-worker.js]" in settings
    assert (DOCS / "assets" / "iframe-worker.js").exists()
    assert "use_directory_urls: false" in settings


def test_no_block_says_that_it_is_not_run() -> None:
    for page in pages():
        assert 'title="not run"' not in page.read_text(), page.name
