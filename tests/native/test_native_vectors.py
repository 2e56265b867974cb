"""The committed vectors are what the plain-Python implementation makes of their inputs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))

import make_native_vectors as vectors


def test_vectors_are_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert vectors.main([]) == 0, capsys.readouterr().out
    assert set(vectors.REMAKERS) == {path.stem for path in vectors.HERE.glob("*.json")}


@pytest.mark.parametrize("name", sorted(vectors.REMAKERS))
def test_a_changed_answer_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "native"
    shutil.copytree(vectors.HERE, copy)
    monkeypatch.setattr(vectors, "HERE", copy)
    monkeypatch.setattr(vectors, "REMAKERS", {name: vectors.REMAKERS[name]})
    path = copy / f"{name}.json"
    body = json.loads(path.read_text("utf-8"))
    spoil(name, body)
    path.write_text(json.dumps(body, separators=(",", ":"), ensure_ascii=False) + "\n", "utf-8")
    assert vectors.main([]) == 1
    assert f"differs: {name}.json" in capsys.readouterr().out


def spoil(name: str, body: dict) -> None:  # type: ignore[type-arg]
    """Change one answer."""
    if name == "seeds":
        body["seeds_hex"][0] = "0" * 16
    elif name == "geometry":
        body["rows"][9][1] *= 2
    elif name == "fxhash_collisions":
        body["pairs"][0]["a"] += "x"
    else:
        rows = next(value for value in body.values() if isinstance(value, list))
        answer = {
            "fxhash64": "hash64_hex",
            "f64_display": "rust_display",
            "index_functions": "hash",
            "filters": "postcard_sha256",
            "probes": "positives",
            "bundles": "sha256",
        }
        rows[0][answer[name]] = "wrong"


def test_a_changed_filter_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "native"
    shutil.copytree(vectors.HERE, copy)
    monkeypatch.setattr(vectors, "HERE", copy)
    path = copy / "filters" / "bf8_sm42_n10.postcard.bin"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    assert vectors.main([]) == 1
