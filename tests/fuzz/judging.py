# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which differences between two evaluations are errors.

Results are compared with those of a plain interpreter of the graph as written. How far rounding may move
each element is measured, not assumed: the interpreter runs again with noise of some units in the last place,
on the results of operations that round and on the operands of those whose algorithm may differ. What the
noise moves by much, or flips (an index of a maximum, a NaN), is no evidence; what it leaves alone is equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.graph.basic import Apply, Constant, Variable
from graphc.graph.function_graph import FunctionGraph
from graphc.graph.thunks import perform_node
from graphc.graph.traversal import ancestors
from graphc.ops.elementwise import Elementwise
from graphc.ops.ifelse import IfElse

RUNS = 3
# In units in the last place.
NOISE = 4.0
# Digits after and before the binary point of numbers with which arithmetic is exact.
DYADIC = {
    "float16": (3, 5),
    "float32": (8, 10),
    "float64": (16, 24),
    "complex64": (8, 10),
    "complex128": (16, 24),
}

# Rows that round nothing, so that their results are as exact as their operands.
EXACT_ROWS = {
    *(
        "abs",
        "and",
        "ceil",
        "clip",
        "conj",
        "copysign",
        "eq",
        "floor",
        "ge",
        "gt",
        "identity",
        "imag",
        "invert",
    ),
    *("isfinite", "isinf", "isnan", "le", "lt", "logical_and", "logical_not", "logical_or", "logical_xor"),
    *(
        "maximum",
        "minimum",
        "ne",
        "neg",
        "or",
        "real",
        "round",
        "second",
        "sign",
        "signbit",
        "switch",
        "trunc",
    ),
    *("xor", "complex", "mod", "floor_div", "ldexp", "nextafter", "spacing"),
}
EXPONENTIALS = {"exp", "exp2", "expm1", "sinh", "cosh", "sigmoid", "softplus", "log1mexp"}
# What is 1 far out: of what is left of 1, stabilised forms know more digits.
SATURATED = {"erf", "tanh", "sigmoid", "ndtr"}
COMPARISONS = {"lt", "le", "gt", "ge", "eq", "neq"}
# Rows that round once, and linear operations: their error is that of their result.
ROUNDING_ROWS = {"add", "sub", "mul", "true_div", "sqr", "reciprocal"}
SUMS = {
    "Reduce",
    "Matmul",
    "Cumulative",
    "Running",
    "Join",
    "IncSubtensor",
    "Put",
    "Scatter",
    "LinearRecurrence",
}
EXACT_OPS = {
    *("DimShuffle", "Take", "Iota", "Join", "Compress", "FlatNonzero", "RepeatPositions", "ArgReduce"),
    *("BroadcastTo", "Reshape", "SpecifyShape", "Gather", "MakeVector", "Shape", "Shape_i", "Subtensor"),
    *("ArgPartition", "ArgSort", "Partition", "SearchSorted", "Sort", "TopK", "CountTrue", "Contained"),
    *("BinLength", "CountBins", "Histogram", "MaxPool", "Assert", "CheckAndRaise", "DisconnectedGrad"),
    *("_Identity", "IfElse", "ZeroGrad", "PivotToPermutation", "PermuteRows"),
}


def is_rounded(x: np.ndarray) -> np.ndarray:
    """Where numbers have so many digits that arithmetic with them rounds."""
    after, before = DYADIC[x.dtype.name]
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c":
            return is_rounded(np.real(x)) | is_rounded(np.imag(x))
        scaled = x.astype("float64") * 2.0**after
        return np.isfinite(x) & ((scaled != np.rint(scaled)) | (np.abs(x) >= 2.0**before))


class Noise:
    """Perturbs values like rounding does."""

    def __init__(self, seed: int) -> None:
        self.rng, self._sign = np.random.default_rng(seed), -1.0 if seed % 2 else 1.0

    def relative(
        self,
        x: np.ndarray,
        where: Any = True,
        scale: float = 0.0,
        made_in: np.ndarray | None = None,
        parts: bool = False,
    ) -> np.ndarray:
        """``x`` with some units in the last place more or less; of the largest element with ``scale``, and of
        the dtype of what it was ``made_in``; of both parts of complex numbers with ``parts``.
        """
        if x.dtype.kind not in "fc" or not x.size:
            return x
        real = np.real(x if made_in is None else made_in).dtype
        unit = NOISE * float(np.finfo(real).eps)
        u = self.rng.uniform(-1, 1, x.shape)
        if parts and x.dtype.kind == "c":
            u = u + 1j * self.rng.uniform(-1, 1, x.shape)
        with np.errstate(all="ignore"):
            size = np.abs(x).astype("float64")
            if scale:
                size = np.maximum(size, scale)
            moved = x.astype("complex128" if x.dtype.kind == "c" else "float64") + unit * u * size
            return np.where(np.isfinite(x) & where, moved, x).astype(x.dtype)

    def signed(self, x: np.ndarray) -> np.ndarray:
        """``x`` with zeros of one sign: that of a sum depends on how many zeros are added, and to what."""
        return np.where(x == 0, np.copysign(x, self._sign), x) if x.dtype.kind == "f" else x


def largest(values: Iterable[np.ndarray]) -> float:
    """The largest finite magnitude."""
    found = 0.0
    for value in values:
        if value.dtype.kind in "fc" and value.size:
            with np.errstate(all="ignore"):
                sizes = np.abs(value).astype("float64")
            found = max(found, float(sizes[np.isfinite(sizes)].max(initial=0.0)))
    return found


def _is_widened(before: np.dtype[Any], after: np.dtype[Any]) -> bool:
    return before.kind in "fc" and after.kind in "fc" and np.finfo(after).eps < np.finfo(before).eps


def _is_exact(node: Apply) -> bool:
    row = node.op.row.name if isinstance(node.op, Elementwise) else ""
    return row in EXACT_ROWS or type(node.op).__name__ in EXACT_OPS


def _has_rounded(v: Variable) -> bool:
    """True if a value comes from arithmetic, not from inputs whose elements are moved at most."""
    while v.owner is not None and v.owner.inputs and _is_exact(v.owner):
        v = v.owner.inputs[0]
    return v.owner is not None


def _nodes_of(v: Variable) -> list[Apply]:
    """What a value is computed by."""
    return [x.owner for x in ancestors([v]) if x.owner is not None]


def _noisy(node: Apply, values: list[Any], noise: Noise) -> list[Any]:
    name = type(node.op).__name__
    row = node.op.row.name if isinstance(node.op, Elementwise) else ""
    if name == "Cast":
        # What is rounded and widened then differs by units of the narrow dtype, which it does not show.
        widened = _is_widened(values[0].dtype, node.outputs[0].type.numpy_dtype)
        narrow = values[0] if widened and _has_rounded(node.inputs[0]) else None
        # A stable form of what exponentials are divided by takes logarithms before it widens them.
        everywhere = narrow is not None and any(map(_is_exponential, _nodes_of(node.inputs[0])))
        return [noise.relative(y, everywhere or is_rounded(y), made_in=narrow)
                if y.dtype.kind in "fc" and y.dtype != values[0].dtype else y
                for y in perform_node(node, values)]  # fmt: skip
    if row in EXACT_ROWS or name in EXACT_OPS:
        return perform_node(node, values)
    if row in ROUNDING_ROWS or name in SUMS:
        scale = largest(values) if row in ("add", "sub") or name in SUMS else 0.0
        results = perform_node(node, values)
        exact = not any(
            v.dtype.kind in "fc" and is_rounded(v).any() for v in values if v.ndim or name in SUMS
        )
        if row in ("add", "sub") or name in SUMS:
            results = [noise.signed(y) if isinstance(y, np.ndarray) else y for y in results]
        if row in ("mul", "true_div", "sqr", "reciprocal") or exact:
            return [noise.relative(y, is_rounded(y)) if y.dtype.kind in "fc" else y for y in results]
        return [noise.relative(y, True, scale) if y.dtype.kind in "fc" else y for y in results]
    if row and len(values) == 1 and values[0].dtype.kind in "iu" and node.outputs[0].type.dtype in DYADIC:
        # Algorithms differ for whole numbers, too: a sine of a multiple of pi is 0, or nearly that.
        values = [values[0].astype(node.outputs[0].type.dtype)]
    moved = [noise.relative(np.asarray(v)) if isinstance(v, np.ndarray) else v for v in values]
    scale = 0.0 if row else 1.0
    results = perform_node(node, moved)
    return [
        noise.relative(y, is_rounded(y) if row else True, scale * largest([y]), parts=not row)
        if isinstance(y, np.ndarray) and y.dtype.kind in "fc"
        else y
        for y in results
    ]


def interpret(
    wanted: Sequence[Variable], known: dict[Variable, Any], noise: Noise | None = None
) -> dict[Variable, Any]:
    """Run the nodes that variables need, one after the other, on NumPy, with nothing rewritten.

    Args:
        wanted: what to compute.
        known: values of inputs; it gains all that is computed.
        noise: perturbs results.
    """
    pending = [*reversed(wanted)]
    while pending:
        v = pending[-1]
        node = v.owner
        if v in known or node is None:
            pending.pop()
            continue
        chosen = _chosen(node, v, known) if isinstance(node.op, IfElse) else None
        missing = [x for x in chosen or node.inputs if x not in known and x.owner is not None]
        if missing:
            pending += reversed(missing)
        elif chosen is not None:
            # Of a conditional only what is needed is computed: the condition, then one side.
            if len(chosen) > 1:
                known[v] = _value(chosen[1], known)
        else:
            values = [_value(x, known) for x in node.inputs]
            results = perform_node(node, values) if noise is None else _noisy(node, values, noise)
            known.update(zip(node.outputs, results, strict=True))
    known.update((v, v.data) for v in wanted if isinstance(v, Constant))
    return known


def _chosen(node: Apply, v: Variable, known: Mapping[Variable, Any]) -> list[Variable]:
    """What an output of a conditional needs first, or next: the condition, and the value that it chooses."""
    condition = node.inputs[0]
    if condition.owner is not None and condition not in known:
        return [condition]
    side = 0 if np.any(_value(condition, known)) else 1
    return [condition, node.inputs[1 + side * len(node.outputs) + node.outputs.index(v)]]


def _value(x: Variable, known: Mapping[Variable, Any]) -> Any:
    return known.get(x, getattr(x, "data", None))


# Variables of a line, those that it reads, and what it is for values of these.
Exact = tuple[Sequence[Variable], Sequence[Variable], Callable[..., Sequence[Any]]]


def expected(
    wanted: Sequence[Variable],
    given: Mapping[Variable, Any],
    runs: int = RUNS,
    exact: Sequence[Exact] = (),
) -> list[Expectation]:
    """What variables are, and how far noise moves them.

    Args:
        wanted: the variables. given: values of inputs. runs: how often noise is tried.
        exact: lines whose value is that of a closed form, in order.
    """
    base = _told(given, exact, None)
    interpret(wanted, base)
    in_range = not any(_leaves_range(v, base) for v in base)
    moved = [_or_nothing(wanted, given, Noise(seed), exact) for seed in range(runs)]
    found = [Expectation(base[v], [m[v] for m in moved if m is not None], all(moved)) for v in wanted]
    chosen = not in_range and any(_compares_what_is_none(v, base) for v in base)
    for expectation in found if not in_range else ():
        expectation.spare_overflow()
        expectation.comparable &= not chosen
    return found


def _told(given: Mapping[Variable, Any], exact: Sequence[Exact], noise: Noise | None) -> dict[Variable, Any]:
    """Values of inputs, and of lines that have a closed form."""
    known = dict(given)
    for names, reads, form in exact:
        values = [_value(v, interpret(reads, known, noise)) for v in reads]
        found = form([v if noise is None else noise.relative(v) for v in values])
        known.update(zip(names, found if noise is None else map(noise.signed, found), strict=True))
    return known


def _leaves_range(v: Variable, known: Mapping[Variable, Any]) -> bool:
    """Whether an exponential of a number is no number, or 0, or a function of one has its limit: stabilised
    forms know better than the graph.

    Values within a loop are not known here: one with an exponential in its body counts when its rows are no
    numbers.
    """
    node = v.owner
    if node is None:
        return False
    if (inner := getattr(node.op, "fgraph", None)) is not None:
        y = np.asarray(known[v])
        return _has_exponential(inner) and y.dtype.kind in "fc" and not np.isfinite(y).all()
    x, y = _value(node.inputs[0], known), known[v]
    if "fft" in type(node.op).__name__.lower():  # sums of all: the algorithm says where there is a number
        return x is not None and not np.isfinite(x).all()
    if isinstance(node.op, Elementwise) and node.op.row.name in SATURATED and x is not None:
        return bool(np.any(np.isfinite(x) & ((abs(y) == 1) | (y == 0))))
    if not _is_exponential(node):
        return False
    return bool(x is not None and np.any(np.isfinite(x) & (~np.isfinite(y) | (y == 0))))


def _compares_what_is_none(v: Variable, known: Mapping[Variable, Any]) -> bool:
    """Whether a comparison has an operand that is no number."""
    op = v.owner.op if v.owner is not None else None
    if not isinstance(op, Elementwise) or op.row.name not in COMPARISONS:
        return False
    values = [_value(x, known) for x in v.owner.inputs]
    return any(x is not None and x.dtype.kind in "fc" and not np.isfinite(x).all() for x in values)


def _is_exponential(node: Apply) -> bool:
    return isinstance(node.op, Elementwise) and node.op.row.name in EXPONENTIALS


def _has_exponential(graph: FunctionGraph) -> bool:
    """Whether a graph has one, in loops within it too."""
    return any(
        _is_exponential(node) or (hasattr(node.op, "fgraph") and _has_exponential(node.op.fgraph))
        for node in graph.nodes
    )


def _or_nothing(
    wanted: Sequence[Variable], given: Mapping[Variable, Any], noise: Noise, exact: Sequence[Exact] = ()
) -> dict[Variable, Any] | None:
    try:
        return interpret(wanted, _told(given, exact, noise), noise)
    except Exception:
        return None


def raises_anyway(wanted: Sequence[Variable], given: Mapping[Variable, Any], runs: int = RUNS) -> bool:
    """Whether a program that fails also does with noise."""
    return all(_or_nothing(wanted, given, Noise(seed)) is None for seed in range(runs))


def factors_what_is_none(wanted: Sequence[Variable], given: Mapping[Variable, Any]) -> bool:
    """Whether a Cholesky factor is of a matrix that is not finite: LAPACK's routines raise, or give NaN."""
    known = interpret(wanted, dict(given))
    nodes = [v.owner for v in known if v.owner is not None and "Cholesky" in str(v.owner.op)]
    return any(not np.isfinite(_value(node.inputs[0], known)).all() for node in nodes)


class Expectation:
    """A value and how sure it is.

    Args:
        value: without noise. moved: with it. sure: whether there always was a value.

    Attributes:
        value: without noise. comparable: whether it can be compared.
        sure: for each element, whether it can be compared at all.
        tolerance: of each element.
    """

    def __init__(self, value: np.ndarray, moved: Sequence[np.ndarray], sure: bool = True) -> None:
        self.value = value = np.asarray(value)
        self.comparable = sure and all(m.shape == value.shape for m in moved)
        if not self.comparable:
            return
        if value.dtype.kind not in "fc":
            self.sure = np.ones(value.shape, bool)
            for m in moved:
                self.sure &= m == value
            return
        with np.errstate(all="ignore"):
            self.sure = np.ones(value.shape, bool)
            spread = np.zeros(value.shape)
            for m in moved:
                self.sure &= _pattern(m) == _pattern(value)
                spread = np.fmax(spread, np.where(np.isfinite(value), np.abs(m - value), 0).astype("float64"))
            spread = np.where(self.sure, spread, 0.0)
            size = np.where(np.isfinite(value), np.abs(value), 0).astype("float64")
            eps = float(np.finfo(value.real.dtype).eps)
            typical = float(np.median(spread)) if spread.size else 0.0
            rounded = 64 * eps * np.where(spread > 0, np.maximum(size, 1e-3 * size.max(initial=0.0)), size)
            self.tolerance = (
                50 * np.maximum(spread, typical) + rounded + 8 * float(np.finfo(value.real.dtype).tiny)
            )
            self.sure &= (
                self.tolerance <= 1e-2 * np.maximum(size, typical) + 1e-3 * size.max(initial=0.0) + 1e-300
            )

    def spare_overflow(self) -> None:
        """Take what is no number for no evidence."""
        if self.comparable and self.value.dtype.kind in "fc":
            self.sure = self.sure & np.isfinite(self.value)

    @property
    def evidence(self) -> bool:
        """Whether there is anything to compare."""
        return self.comparable and (bool(self.sure.any()) or not self.value.size)

    def difference(self, got: Any) -> str:
        """How a result differs, or an empty text."""
        want = self.value
        got = np.asarray(got)
        if got.dtype != want.dtype:
            return f"dtype {got.dtype}, expected {want.dtype}"
        if not self.comparable:
            return ""
        if got.shape != want.shape:
            return f"shape {got.shape}, expected {want.shape}"
        with np.errstate(all="ignore"):
            if want.dtype.kind not in "fc":
                wrong = self.sure & (got != want)
            else:
                near = np.abs(got - want) <= self.tolerance
                special = _pattern(want) != 0
                wrong = self.sure & np.where(special, _pattern(got) != _pattern(want), ~near)
        if not wrong.any():
            return ""
        place = np.unravel_index(int(np.argmax(wrong)), want.shape)
        where = f"{int(wrong.sum())} of {wrong.size} elements, at {[int(i) for i in place]}"
        return f"{where}: {got[place]!r}, expected {want[place]!r}"


def _pattern(x: np.ndarray) -> np.ndarray:
    """0 where finite, 1 NaN, 2 and 3 infinities; complex numbers that are not finite are all alike."""
    if x.dtype.kind == "c":
        return np.where(np.isfinite(x), 0, 1)
    return np.where(np.isfinite(x), 0, np.where(np.isnan(x), 1, np.where(x > 0, 2, 3)))
