# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``einsum``: Einstein's summation convention, as transposes, sums and batched matrix products.

Operands are contracted two at a time.

Paths are those of ``numpy.einsum_path``: each step names positions in the list of what is left; these are
removed, and their product is put at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any

from graphc.graph.tensor.convert import as_tensor_variable
from graphc.ops.elementwise import cast_to
from graphc.ops.reduce import Reduce
from graphc.ops.shape import size_of
from graphc.ops.shaping import dimshuffle, specify_shape
from graphc.ops.table.arithmetic import promote
from graphc.tensor.products import contracted
from graphc.tensor.rearranging import diagonal
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable


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
    return prod(sizes[label] for label in labels)


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


__all__ = ["einsum"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@record()
class _Term:
    """A tensor whose axes have labels, all different."""

    value: TensorVariable
    labels: list[str]


def einsum(
    subscripts: str, *operands: TensorLike, optimize: bool | str | Sequence[object] | None = None
) -> TensorVariable:
    """Sums of products, as ``numpy.einsum``.

    Subscripts may have an ellipsis for axes that broadcast (an output without one sums over them), indices
    repeated within an operand for a diagonal, and no output, for which the indices that occur once are taken
    in alphabetical order. Axes broadcast where their size is statically 1.

    Args:
        subscripts: such as ``"ij,jk->ik"``; or the first operand, followed by its list of axis numbers, the
            second operand, and so on, with the list of the output's axes last, if it is given.
        operands: array-likes.
        optimize: the order of contraction: by default one of few multiplications, found from the static
            sizes (unknown ones are taken for equal); ``"optimal"``, ``"greedy"``, False for the order of the
            operands, or a path of ``numpy.einsum_path``.

    Raises:
        ValueError: subscripts do not fit the operands, or sizes of an index differ.

    Examples:
        >>> pt.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1]).eval()
        array([3, 7])
    """
    if not isinstance(subscripts, str):
        subscripts, given = _from_lists([subscripts, *operands])
    else:
        given = list(operands)
    tensors = [as_tensor_variable(x) for x in given]
    labels, output = _parse(subscripts, tensors)
    dtype = promote(*(x.type.numpy_dtype for x in tensors)).name if len(tensors) > 1 else tensors[0].dtype
    # Products of float16 are added up in float32, as NumPy's are.
    work = "float32" if dtype == "float16" else dtype
    terms = [_diagonals(cast_to(x, work), each, subscripts) for x, each in zip(tensors, labels, strict=True)]
    sizes = _sizes(terms, subscripts)
    terms = _without_ones(terms)
    path = find_path([frozenset(t.labels) for t in terms], frozenset(output), sizes, optimize)
    for step in path:
        chosen = [terms[i] for i in step]
        terms = [t for i, t in enumerate(terms) if i not in step]
        product = chosen[0]
        for position, other in enumerate(chosen[1:], 2):
            later = {label for t in (*terms, *chosen[position:]) for label in t.labels}
            product = _contract(product, other, later.union(output), output)
        terms.append(product)
    (last,) = terms
    return cast_to(_arrange(_summed(last, set(output)), output).value, dtype)


# -- subscripts ----------------------------------------------------------------------------------------------


def _from_lists(arguments: list[Any]) -> tuple[str, list[Any]]:
    """The form with operands and lists of axis numbers, as text."""

    def text(entries: Sequence[Any]) -> str:
        for entry in entries:
            if entry is not Ellipsis and not 0 <= entry < len(_LETTERS):
                raise ValueError(f"einsum: axes are numbered from 0 to {len(_LETTERS) - 1}, got {entry}")
        return "".join("..." if entry is Ellipsis else _LETTERS[entry] for entry in entries)

    pairs = len(arguments) // 2
    operands = arguments[: 2 * pairs : 2]
    inputs = ",".join(map(text, arguments[1 : 2 * pairs : 2]))
    return (f"{inputs}->{text(arguments[-1])}" if len(arguments) % 2 else inputs), operands


def _parse(subscripts: str, tensors: Sequence[TensorVariable]) -> tuple[list[list[str]], list[str]]:
    """Labels of the operands and of the output; axes under an ellipsis have labels of their own."""
    text = re.sub(r"\s", "", subscripts)
    sides = text.split("->")
    if len(sides) > 2 or not re.fullmatch(r"[A-Za-z,.]*", "".join(sides)):
        raise ValueError(f"einsum: {subscripts!r} is no list of subscripts such as 'ij,jk->ik'")
    parts = sides[0].split(",")
    if len(parts) != len(tensors) or not tensors:
        raise ValueError(
            f"einsum: {subscripts!r} has subscripts of {len(parts)} operands, but {len(tensors)} are given"
        )
    widths = [_ellipsis_width(part, x, subscripts) for part, x in zip(parts, tensors, strict=True)]
    most = max(widths)
    labels = [_expand(part, width, most) for part, width in zip(parts, widths, strict=True)]
    if len(sides) == 1:
        letters = [label for each in labels for label in each if label.isalpha()]
        return labels, [*_dots(most, most), *sorted(x for x in set(letters) if letters.count(x) == 1)]
    if sides[1].replace("...", "", 1).count("."):
        raise ValueError(f"einsum: an ellipsis is three dots, once in each part of {subscripts!r}")
    output = _expand(sides[1], most, most)
    known = {label for each in labels for label in each}
    for label in output:
        if label not in known or output.count(label) > 1:
            what = "occurs twice" if label in known else "is in no operand"
            raise ValueError(f"einsum: index {label!r} of the output of {subscripts!r} {what}")
    return labels, output


def _ellipsis_width(part: str, x: TensorVariable, subscripts: str) -> int:
    letters = part.replace("...", "", 1)
    if "." in letters:
        raise ValueError(f"einsum: an ellipsis is three dots, once in each part of {subscripts!r}")
    width = x.type.ndim - len(letters)
    if width < 0 or (width and "..." not in part):
        raise ValueError(
            f"einsum: the subscripts {part!r} of {subscripts!r} do not fit {x} with {x.type.ndim} dimensions"
        )
    return width


def _dots(width: int, most: int) -> list[str]:
    """Labels of the axes under an ellipsis, which is aligned on the right."""
    return [str(i) for i in range(most - width, most)]


def _expand(part: str, width: int, most: int) -> list[str]:
    before, dots, after = part.partition("...")
    return [*before, *(_dots(width, most) if dots else []), *after]


# -- one operand ---------------------------------------------------------------------------------------------


def _diagonals(x: TensorVariable, labels: list[str], subscripts: str) -> _Term:
    """An operand with indices that occur in it twice replaced by diagonals."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            m, n = x.type.shape[i], x.type.shape[j]
            if m is not None and n is not None and m != n:
                raise ValueError(f"einsum: sizes {m} and {n} of index {label!r} of {subscripts!r} differ")
            if m is None or n is None:
                # A diagonal alone would not find out that the sizes differ.
                size = size_of(x, i if n is None else j)
                x = specify_shape(x, [size if k in (i, j) else None for k in range(x.type.ndim)])
            x = diagonal(x, axis1=i, axis2=j)
            labels = [*(y for k, y in enumerate(labels) if k not in (i, j)), label]
    return _Term(x, labels)


def _sizes(terms: Sequence[_Term], subscripts: str) -> dict[str, int | None]:
    """The static size of each label; 1 gives way to others."""
    sizes: dict[str, int | None] = {}
    for term in terms:
        for label, size in zip(term.labels, term.value.type.shape, strict=True):
            have = sizes.get(label, 1)
            if have not in (None, 1) and size not in (None, 1) and have != size:
                raise ValueError(
                    f"einsum: sizes {have} and {size} of index {label!r} of {subscripts!r} differ"
                )
            if size != 1:
                sizes[label] = have if size is None and have != 1 else size
            sizes.setdefault(label, 1)
    return sizes


def _without_ones(terms: list[_Term]) -> list[_Term]:
    """The operands without axes of size 1 whose index has another size, or another place, elsewhere."""
    wide = {
        label
        for term in terms
        for label, size in zip(term.labels, term.value.type.shape, strict=True)
        if size != 1
    }
    result = []
    for term in terms:
        shape = term.value.type.shape
        drop = [i for i, label in enumerate(term.labels) if shape[i] == 1 and label in wide]
        if drop:
            keep = [i for i in range(len(shape)) if i not in drop]
            term = _Term(dimshuffle(term.value, tuple(keep)), [term.labels[i] for i in keep])
        wide.update(term.labels)
        result.append(term)
    return result


def _summed(term: _Term, keep: set[str]) -> _Term:
    """A term summed over the labels that are not kept."""
    axes = [i for i, label in enumerate(term.labels) if label not in keep]
    if not axes:
        return term
    kind = "or" if term.value.type.dtype == "bool" else "sum"
    return _Term(Reduce(kind, axes)(term.value), [x for x in term.labels if x in keep])


def _arrange(term: _Term, labels: Sequence[str]) -> _Term:
    """A term with its axes in another order, and 1s for labels that it lacks."""
    if list(labels) == term.labels:
        return term
    order = [term.labels.index(x) if x in term.labels else "x" for x in labels]
    return _Term(dimshuffle(term.value, tuple(order)), list(labels))


# -- two operands --------------------------------------------------------------------------------------------


def _contract(a: _Term, b: _Term, later: set[str], output: Sequence[str]) -> _Term:
    """The product of two terms, summed over the labels that nobody needs later."""
    a = _summed(a, later.union(b.labels))
    b = _summed(b, later.union(a.labels))
    shared = [x for x in a.labels if x in b.labels]
    summed = [x for x in shared if x not in later]
    batch = [x for x in shared if x in later]
    free = [[x for x in t.labels if x not in shared] for t in (a, b)]
    if not summed or not (free[0] or free[1]):
        every = [*batch, *free[0], *free[1], *summed]
        labels = sorted(every, key=lambda x: output.index(x) if x in output else len(output))
        product = _arrange(a, labels).value * _arrange(b, labels).value
        return _summed(_Term(product, labels), later)
    if _first(free[1], output) < _first(free[0], output):
        a, b, free = b, a, free[::-1]
    places = [[t.labels.index(x) for x in labels] for labels in (summed, batch) for t in (a, b)]
    return _Term(contracted(a.value, b.value, *places), [*batch, *free[0], *free[1]])


def _first(labels: Sequence[str], output: Sequence[str]) -> int:
    return min((output.index(x) for x in labels if x in output), default=len(output))
