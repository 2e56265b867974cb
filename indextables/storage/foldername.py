"""The folder of a file that is found by its name: ``<4 letters>/<file name>``.

The letters are the file name's Java ``String.hashCode`` in base 26, so that any reader can derive
them. Java's ``Math.abs`` of the smallest integer stays negative; here it is 2^31, as arithmetic has
it.
"""

from __future__ import annotations


def java_hash(text: str) -> int:
    """Java's ``String.hashCode``: over UTF-16 units, wrapped to 32 bits, signed."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        value = (value * 31 + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def hash_directory(file_name: str) -> str:
    """Four letters, ``aaaa`` to ``zzzz``, the least significant last."""
    rest = abs(java_hash(file_name))
    letters = []
    for _ in range(4):
        rest, digit = divmod(rest, 26)
        letters.append(chr(ord("a") + digit))
    return "".join(reversed(letters))
