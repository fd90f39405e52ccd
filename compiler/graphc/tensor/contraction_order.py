# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in which the operands of an `einsum` are contracted, two at a time.

Paths are those of ``numpy.einsum_path``: each step names positions in the list of what is left; these are
removed, and their product is put at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

Labels = frozenset[str]
Path = list[tuple[int, ...]]

# Stands for a size that is not known when the graph is built.
UNKNOWN = 64
# Up to so many operands all orders are compared: the number of splits of subsets is 3**n.
_EXHAUSTIVE = 7


def find_path(
    terms: Sequence[Labels],
    output: Labels,
    sizes: Mapping[str, int | None],
    optimize: bool | str | Sequence[object] | None,
) -> Path:
    """A contraction path.

    Args:
        terms: labels of each operand.
        output: labels of the result.
        sizes: of each label; None where it is not known.
        optimize: True or None (chosen by the number of operands), ``"optimal"``, ``"greedy"``, False (from
            the left to the right), or a path.

    Raises:
        ValueError: none of these.
    """
    if isinstance(optimize, list | tuple):
        return _checked(optimize, len(terms))
    known = {label: UNKNOWN if size is None else max(size, 1) for label, size in sizes.items()}
    if optimize is False or len(terms) <= 2:
        return _left_to_right(len(terms))
    if optimize == "optimal" or (optimize in (None, True) and len(terms) <= _EXHAUSTIVE):
        return _optimal(terms, output, known)
    if optimize in (None, True, "greedy"):
        return _greedy(terms, output, known)
    raise ValueError(
        f'optimize must be True, False, "optimal", "greedy" or a contraction path, got {optimize!r}'
    )


def _checked(path: Iterable[Any], count: int) -> Path:
    steps = [tuple(int(i) for i in step) for step in path if step != "einsum_path"]
    left = count
    for step in steps:
        if not step or len(set(step)) != len(step) or not all(0 <= i < left for i in step):
            raise ValueError(f"step {step} of the contraction path does not name some of {left} operands")
        left -= len(step) - 1
    if left != 1:
        raise ValueError(f"the contraction path {steps} leaves {left} of {count} operands")
    return steps


def _left_to_right(count: int) -> Path:
    # The product comes last in the list, so it is the last of what is left from the second step on.
    return [(0, 1), *((0, left - 1) for left in range(count - 1, 1, -1))] if count > 1 else []


def _product(labels: Iterable[str], sizes: Mapping[str, int]) -> int:
    total = 1
    for label in labels:
        total *= sizes[label]
    return total


def _optimal(terms: Sequence[Labels], output: Labels, sizes: Mapping[str, int]) -> Path:
    """The path of fewest multiplications, by dynamic programming over subsets of operands."""
    count = len(terms)
    everything = (1 << count) - 1
    kept: dict[int, Labels] = {}
    for subset in range(1, everything + 1):
        inside = frozenset().union(*(terms[i] for i in range(count) if subset >> i & 1))
        outside = output.union(*(terms[i] for i in range(count) if not subset >> i & 1))
        kept[subset] = inside & outside
    best: dict[int, tuple[int, int]] = {1 << i: (0, 0) for i in range(count)}
    for subset in range(1, everything + 1):
        if subset in best:
            continue
        lowest = subset & -subset
        choices = []
        part = (subset - 1) & subset
        while part:
            if part & lowest:
                rest = subset ^ part
                cost = _product(kept[part] | kept[rest], sizes)
                choices.append((best[part][0] + best[rest][0] + cost, part))
            part = (part - 1) & subset
        best[subset] = min(choices)
    steps: list[tuple[int, int]] = []

    def walk(subset: int) -> None:
        part = best[subset][1]
        if part:
            walk(part)
            walk(subset ^ part)
            steps.append((part, subset ^ part))

    walk(everything)
    return _positions(steps, [1 << i for i in range(count)])


def _positions(steps: Sequence[tuple[int, int]], left: list[int]) -> Path:
    """Pairs of sets of operands as positions in the list of what is left."""
    path: Path = []
    for a, b in steps:
        i, j = sorted((left.index(a), left.index(b)))
        path.append((i, j))
        left = [x for position, x in enumerate(left) if position not in (i, j)] + [a | b]
    return path


def _greedy(terms: Sequence[Labels], output: Labels, sizes: Mapping[str, int]) -> Path:
    """At each step the pair whose product saves most elements, then the one of fewest multiplications."""
    left = list(terms)
    path: Path = []
    while len(left) > 1:
        counts: dict[str, int] = dict.fromkeys(output, 1)
        for term in left:
            for label in term:
                counts[label] = counts.get(label, 0) + 1

        def result(a: Labels, b: Labels, counts: Mapping[str, int] = counts) -> Labels:
            return frozenset(x for x in a | b if counts[x] > (x in a) + (x in b))

        def cost(pair: tuple[int, int], left: Sequence[Labels] = left) -> tuple[int, int]:
            a, b = left[pair[0]], left[pair[1]]
            saved = _product(result(a, b), sizes) - _product(a, sizes) - _product(b, sizes)
            return saved, _product(a | b, sizes)

        i, j = min(combinations(range(len(left)), 2), key=cost)
        path.append((i, j))
        product = result(left[i], left[j])
        left = [x for position, x in enumerate(left) if position not in (i, j)] + [product]
    return path
