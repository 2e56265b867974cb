"""The page of a plan in a real browser, where there is one, and its parts where there is none."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

import indextables
from indextables.planner import Plan
from indextables.planner.explain.html import MOST_DROPPED

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
SEARCH = """<script>
var box=document.querySelector('.itplan input');box.value='DROPPED day=4';
box.dispatchEvent(new Event('input'));
document.title=matchMedia('(prefers-color-scheme:dark)').matches+' '
  +getComputedStyle(document.querySelector('.card')).backgroundColor+' '
  +[].filter.call(document.querySelectorAll('.splits tr'),function(r){return !r.hidden}).length+' '
  +(document.documentElement.scrollWidth<=innerWidth);
</script>"""
MODES = {"light": ("1", "false rgb(246, 248, 250)"), "dark": ("0", "true rgb(28, 35, 44)")}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    path = str(tmp_path_factory.mktemp("page") / "t")
    data = pa.table({"day": [k // 4 for k in range(24)], "x": list(range(24)), "s": ["<b>"] * 24})
    options = {"spark.indextables.storage.fsync": "false"}
    indextables.write(data, path, partition_by=["day"], rows_per_split=2, options=options)
    return indextables.open(path).plan("day BETWEEN 1 AND 4 AND x < 15 AND (s = '<b>' OR x != 8)")


def test_kept_and_dropped_splits_are_listed_with_the_reason(plan: Plan) -> None:
    text = plan.explain("html")
    outcomes = re.findall(r"class='chip (must|may|gone)'>([^<]*)<", text)
    assert len(outcomes) == plan.report.splits_total == 12
    assert outcomes.count(("must", "every row matches")) == plan.must_match == 5
    assert outcomes.count(("gone", "dropped by partition day")) == 4
    assert outcomes.count(("gone", "dropped by min/max x, s")) == 2
    assert "more splits are not listed" not in text


def test_a_page_of_many_splits_stays_short(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_DROPPED < 10_000
    page = import_module("indextables.planner.explain.html")
    monkeypatch.setattr(page, "MOST_DROPPED", 3)
    monkeypatch.setattr(page, "MOST_SPLITS", 2)
    text = plan.explain("html")
    assert text.count("<tr><td><code>day=") == 5
    assert "7 more splits are not listed" in text


def test_a_plan_of_nothing_has_a_page(plan: Plan) -> None:
    table = plan.planner.plan("x = 100")
    assert "Reads 0 of 12 splits" in table.explain("html")
    assert "class='none'" in table.explain("html")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("mode", MODES)
def test_the_page_in_a_browser(plan: Plan, mode: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    file.write_text(plan.explain("html").replace("</body>", SEARCH + "</body>"))
    setting, expected = MODES[mode]
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--window-size=500,900",
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--blink-settings=preferredColorScheme={setting}", "--dump-dom", file.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title is not None, done.stderr
    assert title[1] == f"{expected} 2 true"
    assert "2 of 12 shown" in done.stdout
    assert "&lt;b&gt;" in done.stdout
