"""Where a run took place: processor, memory, versions of everything compared."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from typing import Any

PACKAGES = (
    "indextables",
    "tantivy",
    "pyarrow",
    "numpy",
    "deltalake",
    "pyiceberg",
    "duckdb",
    "pylance",
    "pyxorfilter",
    "fastavro",
    "pyspark",
    "s3fs",
)


def processor() -> str:
    """Model and number of the processors; names the machine in a baseline."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if "model name" in line]
    except OSError:
        names = []
    return f"{names[0] if names else model}, {os.cpu_count()} processors"


def memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def context() -> dict[str, Any]:
    """Everything a reader needs to judge the figures of a run."""
    settings = {k: v for k, v in sorted(os.environ.items()) if _is_setting(k)}
    return {
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": processor(),
        "memory_gb": round(memory_gb(), 1),
        "system": f"{platform.system()} {platform.release()}",
        "versions": versions(),
        "load": round(os.getloadavg()[0], 1),
        "settings": settings,
    }


def _is_setting(name: str) -> bool:
    """Sizes and forms of a run; where its files lie says nothing about its figures."""
    return name.startswith(("BENCH_", "INDEXTABLES_BENCH")) and not name.endswith(
        ("_RESULTS", "_DIR")
    )
