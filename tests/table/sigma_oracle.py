"""Sigma rules evaluated on events in plain Python, from the YAML itself; and rules for tests."""
# ruff: noqa: E501

from __future__ import annotations

import base64
import re
from fnmatch import fnmatchcase
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any

import yaml


def glob(pattern: str, value: str, cased: bool) -> bool:
    """Sigma's wildcards: a backslash before one, or before a backslash at that place, is plain."""
    out, i = "", 0
    while i < len(pattern):
        char = pattern[i]
        following = pattern[i + 1 : i + 2]
        if char == "\\" and following in ("*", "?", "\\") and following:
            out += re.escape(following)
            i += 2
            continue
        out += ".*" if char == "*" else "." if char == "?" else re.escape(char)
        i += 1
    return re.fullmatch(out, value, re.S | (0 if cased else re.I)) is not None


def one(value: Any, wanted: Any, modifiers: list[str], event: dict[str, Any]) -> bool:
    if "exists" in modifiers:
        return (value is not None) == bool(wanted)
    if "fieldref" in modifiers:
        other = event.get(wanted)
        return value is not None and other is not None and value == other
    if wanted is None:
        return value is None
    if value is None:
        return False
    for name, test in (("lt", "__lt__"), ("lte", "__le__"), ("gt", "__gt__"), ("gte", "__ge__")):
        if name in modifiers:
            return bool(getattr(float(value), test)(float(wanted)))
    if "cidr" in modifiers:
        try:
            return ip_address(value) in ip_network(wanted)
        except ValueError:
            return False
    if "re" in modifiers:
        flags = (re.I if "i" in modifiers else 0) | (re.S if "s" in modifiers else 0)
        return re.search(wanted, value, flags) is not None
    if isinstance(value, bool) or isinstance(wanted, bool):
        return str(value).lower() == str(wanted).lower()
    if isinstance(value, int):
        return value == int(wanted)
    texts = [str(wanted)]
    if "base64" in modifiers:
        texts = [base64.b64encode(t.encode()).decode() for t in texts]
    if "windash" in modifiers:
        dashes = "-/\u2013\u2014\u2015"
        texts = [re.sub(r"(?<=\s)[-/]|^[-/]", d, t) for t in texts for d in dashes]
    for text in texts:
        if "contains" in modifiers:
            text = f"*{text}*"
        elif "startswith" in modifiers:
            text = f"{text}*"
        elif "endswith" in modifiers:
            text = f"*{text}"
        if glob(text, value, "cased" in modifiers):
            return True
    return False


def item(key: str, wanted: Any, event: dict[str, Any]) -> bool:
    field, *modifiers = key.split("|")
    values = wanted if isinstance(wanted, list) else [wanted]
    found = [one(event.get(field), v, modifiers, event) for v in values]
    return all(found) if "all" in modifiers else any(found)


def keyword(word: Any, event: dict[str, Any]) -> bool:
    return any(glob(f"*{word}*", v, False) for v in event.values() if isinstance(v, str))


def selection(body: Any, event: dict[str, Any]) -> bool:
    if isinstance(body, list):
        return any(selection(b, event) if isinstance(b, dict) else keyword(b, event) for b in body)
    if not isinstance(body, dict):
        return keyword(body, event)
    if list(body) == ["|all"]:
        return all(keyword(word, event) for word in body["|all"])
    return all(item(key, wanted, event) for key, wanted in body.items())


@lru_cache(1)
def detection_of(rule: str) -> Any:
    return yaml.safe_load(rule)["detection"]


def holds(rule: str, event: dict[str, Any]) -> bool:
    """Does a rule detect an event?"""
    detection = detection_of(rule)
    names = [name for name in detection if name != "condition"]

    def of(match: re.Match[str]) -> str:
        listed = [n for n in names if match[2] == "them" or fnmatchcase(n, match[2])]
        votes = [selection(detection[n], event) for n in listed]
        return str(all(votes) if match[1] == "all" else sum(votes) >= int(match[1]))

    text = re.sub(r"\b(all|\d+) of ([\w*]+)", of, detection["condition"])
    values = {name: selection(detection[name], event) for name in names}
    return bool(eval(text, {"__builtins__": {}}, values))


HEAD = "title: rule {}\nid: 00000000-0000-4000-8000-{:012d}\nstatus: test\nlogsource:\n  category: process_creation\n  product: windows\ndetection:\n{}\nlevel: high\n"
SELECTIONS = [
    "Image: 'C:\\Windows\\System32\\cmd.exe'",
    "Image|endswith: '\\cmd.exe'",
    "Image|startswith: 'C:\\windows'",
    "Image|contains: 'system32'",
    "Image|endswith: ['\\CMD.exe', '\\powershell.exe']",
    "CommandLine|contains|all: ['-enc', 'bypass']",
    "CommandLine|contains: ['whoami', 'net user', '100%']",
    "CommandLine|re: '(?:net|sc)\\s+(user|stop)'",
    "CommandLine|re|i: 'WHO.MI'",
    "CommandLine|contains|cased: 'WhoAmI'",
    "CommandLine: '*who?mi*'",
    "CommandLine: 'a\\*b'",
    "CommandLine|contains: '_'",
    "CommandLine|windash|contains: ' -enc '",
    "CommandLine|base64|contains: 'secret'",
    "CommandLine: null",
    "CommandLine: ''",
    "User: 'root'",
    "User|exists: true",
    "User|exists: false",
    "EventID: 4688",
    "EventID: [1, 4688, 7]",
    "EventID|gt: 100",
    "EventID|lte: 7",
    "EventID|gte: 7\n    EventID|lt: 5000",
    "ParentImage|fieldref: Image",
    "DestinationIp|cidr: 10.0.0.0/8",
    "DestinationIp|cidr: ['192.168.1.0/24', '172.16.0.0/12']",
    "DestinationIp|cidr: 10.1.2.3/32",
    "Elevated: true",
    "Elevated: 'false'",
    "Image|endswith: '\\cmd.exe'\n    CommandLine|contains: 'whoami'\n    EventID: 1",
]
CONDITIONS = [
    "selection and not filter",
    "selection or filter",
    "not selection",
    "not (selection or filter)",
    "1 of sel*",
    "all of them",
    "1 of them",
    "all of sel* and not 1 of filter*",
    "(selection and selection2) or not filter",
]


def rules() -> list[str]:
    """One rule for every selection, and every condition over several selections."""
    made = [f"  selection:\n    {s}\n  condition: selection" for s in SELECTIONS]
    made += [f"  selection:\n    {s}\n  condition: not selection" for s in SELECTIONS[::3]]
    for number, condition in enumerate(CONDITIONS):
        for shift in (0, 11, 19):
            a, b, c = (SELECTIONS[(number + shift + k) % len(SELECTIONS)] for k in (0, 7, 13))
            parts = f"  selection:\n    {a}\n  selection2:\n    {b}\n  filter:\n    {c}\n"
            made.append(f"{parts}  condition: {condition}")
    words = ["  keywords:\n    - whoami\n    - '4688'\n  condition: keywords"]
    words.append("  keywords:\n    '|all':\n      - cmd\n      - who*mi\n  condition: keywords")
    words.append(
        "  keywords:\n    - secret\n  selection:\n    EventID: 1\n  condition: selection and not keywords"
    )
    listed = "  selection:\n    - Image|endswith: cmd.exe\n      EventID: 1\n    - User: root\n  condition: selection"
    return [HEAD.format(i, i, body) for i, body in enumerate([*made, *words, listed])]
