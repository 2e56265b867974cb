"""Edit distance: insertions, deletions, replacements, and swaps of neighbours.

The restricted form ("optimal string alignment"): no character takes part in two edits.
"""

from __future__ import annotations


def within_edits(
    wanted: str, word: str, distance: int, prefix: bool = False, same: int = 0
) -> bool:
    """Whether ``word`` (with ``prefix``: some beginning of it) is at most so many edits away.

    The first ``same`` characters may not differ.
    """
    if word[:same] != wanted[:same]:
        return False
    if not prefix and abs(len(wanted) - len(word)) > distance:
        return False
    before: list[int] = []
    row = list(range(len(word) + 1))
    for i, a in enumerate(wanted, 1):
        following = [i]
        for j, b in enumerate(word, 1):
            best = min(row[j] + 1, following[j - 1] + 1, row[j - 1] + (a != b))
            if i > 1 and j > 1 and a == word[j - 2] and wanted[i - 2] == b:
                best = min(best, before[j - 2] + 1)
            following.append(best)
        before, row = row, following
        if min(row) > distance and min(before) > distance:
            return False
    return (min(row) if prefix else row[-1]) <= distance
