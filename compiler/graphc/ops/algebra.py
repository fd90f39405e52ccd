# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Interface that rules of stable forms are written on: values of a graph or of the IR, taken apart and made.

An `Algebra` says what a value is made by, and makes new ones. `Expressions` reads sums, products and numbers
of it. A `Form` is what rules find out: the logarithm of a value, and what it is computed from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_, or_
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

V = TypeVar("V")

# Larger expressions are taken as they are.
MOST_PARTS, DEEPEST = 64, 40
# What is more than its name and operands.
_STRUCTURED = frozenset(("sum", "prod", "max", "min", "softmax", "select", "cast"))

# What a value may have: a logarithm by which a product gains; one that is certain and has no plain logarithm;
# terms that all have such; no sign; the logarithm of a square, by which nothing is gained unless a function
# of it underflows; one of 1 plus the value, and of 1 minus it; a factor that is certain and gains; terms that
# all have one.
GAINS, CLEAN, TERMS, POSITIVE, SQUARE, ONE_PLUS, ONE_MINUS, FACTOR, SCALED = (1 << bit for bit in range(9))
_SURE = CLEAN | TERMS | POSITIVE

_ALWAYS = {
    **dict.fromkeys(("exp", "exp2", "sigmoid", "erfc", "ndtr", "cosh", "softplus", "softmax"), GAINS | _SURE),
    **dict.fromkeys(("log", "log1p", "i0", "k0", "k1", "kv"), GAINS | _SURE),
    **dict.fromkeys(("sinh", "i1", "iv"), GAINS),
    "expm1": GAINS | ONE_PLUS,
}
_LINEAR = frozenset(("tanh", "arctan", "arcsinh", "arctanh", "arcsin", "sin", "tan", "erf", "erfinv"))
_SAME = frozenset(("identity", "cast", "abs", "max", "min", "prod", "sqrt", "sum", "sqr", "pow"))
_FACTORS = frozenset(("mul", "true_div", "reciprocal", "dot"))
_SIDES = frozenset(("switch", "select", "second"))
_ORDERED = frozenset(("maximum", "minimum", "clip"))
_PASSED = frozenset(("add", "sub", "neg")) | _LINEAR | _SAME | _FACTORS | _SIDES | _ORDERED
# All functions whose values may have a logarithm.
KNOWN = _PASSED.union(_ALWAYS)


class Algebra(Protocol[V]):
    """Values of one kind: variables of a graph, or of the IR."""

    def made_by(self, v: V) -> tuple[str, Sequence[V]]:
        """The maker of a value and its operands: the name of an elementwise function; "sum", "prod", "max"
        and "min" along axes; "softmax"; "select" for what takes its elements from all of its operands; ""
        else.
        """

    def array(self, v: V) -> np.ndarray | None:
        """The array that a value is, if that is known and it consists of floats."""

    def apply(self, name: str, *operands: V) -> V:
        """An elementwise function."""

    def scalar(self, number: float, like: V) -> V:
        """A number with the rank and dtype of a value."""

    def negative(self, x: V) -> V:
        """``-x``. What stands for a variable of a graph is computed from its roots themselves, not from what
        these are the negative of.
        """

    def literal(self, array: np.ndarray, like: V) -> V:
        """An array of the shape and dtype of a known one."""

    def number(self, v: V) -> float | None:
        """The number that all elements of a value are known to be."""

    def shape(self, v: V) -> Sequence[int]:
        """The sizes of a value, negative where they are not known."""

    def again(self, v: V, operands: Sequence[V]) -> V:
        """A value computed anew, of other operands of the same shapes."""

    def axes(self, v: V) -> Sequence[int]:
        """The axes of the reduction that computes a value."""

    def are_apart(self, v: V, w: V) -> bool:
        """True if two values are known to be computed from different elements of the inputs."""

    def reduced(self, v: V, kind: str, x: V) -> V:
        """Another reduction along the axes of the one that computes a value."""

    def largest(self, x: V, axis: int) -> V:
        """The largest element along an axis, which stays with size 1."""

    def spread(self, v: V, total: V) -> V:
        """A value of the shape of a reduction, with the axes that it removed."""

    def log_sum_exp(self, v: V, x: V) -> V:
        """``log(sum(exp(x)))`` along the axes of the sum that computes a value."""

    def log_softmax(self, v: V) -> V:
        """The logarithm of the softmax that computes a value."""

    def log_erfc(self, x: V) -> V:
        """``log(erfc(x))``."""

    def fixed(self, v: V) -> V:
        """A value that derivatives do not pass through."""

    def placed_after(self, v: V) -> object:
        """New values are computed after this one, until what is returned goes to `placed`."""

    def placed(self, before: object) -> None:
        """New values are computed where they were before."""

    def largest_exponent(self, v: V) -> float:
        """The largest x for which exp(x) is finite in the dtype of a value."""


class Form(NamedTuple, Generic[V]):
    """The logarithm of a value.

    Attributes:
        log: the logarithm; NaN where the value is negative.
        sure: whether the value is certain not to be negative.
        gained: whether an exponential has gone.
        shifted: whether no exponential in it can overflow, because a maximum has been subtracted.
        plain: whether it has the logarithm of something else, whose own derivative is infinite at 0.
        roots: what the logarithm is computed from.
        between: what the value is computed by, after these.
    """

    log: V
    sure: bool = True
    gained: bool = True
    shifted: bool = False
    plain: bool = False
    roots: tuple[V, ...] = ()
    between: tuple[V, ...] = ()


class Expressions(Generic[V]):
    """Sums, products and numbers of an algebra."""

    def __init__(self, algebra: Algebra[V]) -> None:
        self.algebra = algebra
        # Factors that were moved, and what they are in the graph, where derivatives go on.
        self._origins: dict[V, V] = {}
        self._products: dict[V, tuple[list[tuple[V, int]], tuple[V, ...], bool]] = {}

    def _made(self, name: str, *operands: V) -> V:
        return self.algebra.apply(name, *operands)

    def times(self, x: V, number: float) -> V:
        """A value times a number."""
        return self._made("mul", x, self.algebra.scalar(number, x))

    def _plus(self, x: V, number: float) -> V:
        return self._made("add", x, self.algebra.scalar(number, x))

    def negative(self, x: V) -> V:
        """``-x``."""
        return self.algebra.negative(x)

    def _are_same(self, v: V, w: V, depth: int = 4) -> bool:
        """True if two values are one: graphs have equal nodes."""
        if v == w:
            return True
        (name, operands), (other, parts) = self.algebra.made_by(v), self.algebra.made_by(w)
        if "abs" in (name, other) and name != other and depth:
            inside, whole = (operands[0], w) if name == "abs" else (parts[0], v)
            return self._never_negative(inside) and self._are_same(inside, whole, depth - 1)
        if not name:
            number = self.algebra.number(v)
            return number is not None and self.is_number(v, number) and self.is_number(w, number)
        if name != other or name in _STRUCTURED or not depth:
            return False
        return all(self._are_same(x, y, depth - 1) for x, y in zip(operands, parts, strict=True))

    def is_number(self, v: V, number: float) -> bool:
        """True if a value is one number, not an array of it."""
        return self.algebra.number(v) == number and self._is_one_element(v)

    def _is_one_element(self, v: V) -> bool:
        return all(size == 1 for size in self.algebra.shape(v))

    def _never_negative(self, v: V, depth: int = 0) -> bool:
        name, operands = self.algebra.made_by(v)
        if name in ("mul", "add", "true_div", "maximum", "select", "sum", "reciprocal") and depth < DEEPEST:
            twice = name == "mul" and operands[0] == operands[1]
            return twice or all(self._never_negative(x, depth + 1) for x in operands)
        number = self.algebra.number(v)
        return name in ("sqr", "abs", "exp", "softplus", "sqrt") or (number is not None and number >= 0)

    def _terms(self, v: V, sign: int) -> Iterator[tuple[V, int]]:
        left, seen = [(v, sign)], 0
        while left:
            v, sign = left.pop()
            name, operands = self.algebra.made_by(v)
            if name in ("add", "sub", "neg") and seen < MOST_PARTS:
                seen += 1
                last = sign if name == "add" else -sign
                left += zip(operands[::-1], (last, sign), strict=False)
            else:
                yield v, sign

    def _factors(self, v: V) -> tuple[list[tuple[V, int]], tuple[V, ...], bool]:
        """Factors of a value, a function that computes it of these, and whether it has their sign."""
        if v not in self._products:
            self._products[v] = self._find_factors(v)
        factors, between, positive = self._products[v]
        return list(factors), between, positive

    def _find_factors(self, v: V) -> tuple[list[tuple[V, int]], tuple[V, ...], bool]:
        left, found, between, positive = [(v, 1)], [], [], True
        while left:
            v, power = left.pop()
            name, operands = self.algebra.made_by(v)
            if name in ("mul", "true_div", "reciprocal", "neg") and self._root(v) is None:
                positive ^= name == "neg"
                last = -power if name in ("true_div", "reciprocal") else power
                left += zip(operands[::-1], (last, power), strict=False)
                between.append(v)
            elif name == "pow" and self.is_number(operands[1], -1):
                left.append((operands[0], -power))
                between.append(v)
            else:
                found.append((v, power))
            if len(found) + len(left) > MOST_PARTS:
                return [], (), True
        return found, tuple(between), positive

    def _unmoved(self, v: V) -> tuple[V, list[V]]:
        """The value that has the elements of another one, and what moves them, outermost first."""
        moves: list[V] = []
        name, operands = self.algebra.made_by(v)
        while name == "second" or (name == "select" and len(operands) == 1):
            moves.append(v)
            v = operands[name == "second"]
            name, operands = self.algebra.made_by(v)
        return v, moves

    def _moved_again(self, moves: Sequence[V], w: V) -> V:
        """Other elements moved as those that a value has."""
        origin = self._origins.setdefault(w, w)
        for move in reversed(moves):
            name, operands = self.algebra.made_by(move)
            if name == "select":
                w = self._spread(operands[0], w)
                self._origins[w] = origin
            w = self.algebra.again(move, [w]) if name == "select" else self._made("second", operands[0], w)
            self._origins[w] = origin
        return w

    def _spread(self, v: V, w: V) -> V:
        """An operand in the shape of what it is an operand of."""
        sizes = zip(self.algebra.shape(v), self.algebra.shape(w), strict=True)
        return self._made("second", v, w) if any(n == 1 != m for m, n in sizes) else w

    def _along(self, axes: Sequence[int], x: V, depth: int = 8) -> V | None:
        """A value with size 1 along axes on which all its elements are equal."""
        if all(self.algebra.shape(x)[axis] == 1 for axis in axes):
            return x
        number = self.algebra.number(x)
        if number is not None:
            return self.algebra.scalar(number, x)
        name, operands = self.algebra.made_by(x)
        if name == "second":
            return self._along(axes, operands[1], depth)
        if name not in ("add", "sub", "mul", "neg") or not depth:
            return None
        found = [v for v in (self._along(axes, v, depth - 1) for v in operands) if v is not None]
        return self._made(name, *found) if len(found) == len(operands) else None

    def _multiplied(self, factors: list[V]) -> V:
        return reduce(lambda x, y: self._made("mul", x, y), factors)

    def _quotient(self, factors: list[tuple[V, int]], positive: bool = True) -> V:
        """Factors multiplied and divided; with the other sign if not ``positive``."""
        above = [v for v, power in factors if power > 0]
        below = [v for v, power in factors if power < 0]
        if not below:
            value = self._multiplied(above)
        elif above:
            value = self._made("true_div", self._multiplied(above), self._multiplied(below))
        else:
            value = self._made("reciprocal", self._multiplied(below))
        return value if positive else self.negative(value)

    def is_shifted(self, x: V) -> bool:
        """True if a maximum has been subtracted from ``x``: its exponential does not overflow."""
        name, operands = self.algebra.made_by(x)
        if name == "minimum":
            name, operands = self.algebra.made_by(operands[0])
        if name != "sub":
            return False
        m = operands[1]
        for _ in range(DEEPEST):
            name, operands = self.algebra.made_by(m)
            if name in ("max", "maximum"):
                return True
            if name not in ("switch", "select", "identity", "second", "fixed"):
                return False
            sides = operands[1:] if name == "switch" else operands[-1:]
            # Of a guarded maximum one side is a constant.
            m = next((side for side in sides if self.algebra.array(side) is None), sides[0])
        return False

    def _root(self, v: V) -> V | None:
        """Root of a value that is a square; else None."""
        name, operands = self.algebra.made_by(v)
        is_square = name == "sqr" or (name == "mul" and self._are_same(operands[0], operands[1]))
        is_square |= name == "pow" and self.is_number(operands[1], 2)
        return operands[0] if is_square else None

    def _signed_sum(self, terms: Sequence[tuple[V, int]]) -> V:
        first, sign = terms[0]
        total = first if sign > 0 else self.negative(first)
        for v, sign in terms[1:]:
            total = self._made("add" if sign > 0 else "sub", total, v)
        return total


class Prospects(Expressions[V]):
    """Bounds on what the rules of logarithms find, read off a graph before any logarithm is made.

    In large graphs most products gain nothing. To find that out by the logarithms of their factors makes
    those of all that these are computed from. A bound is a union of what a value may have. It never misses a
    form, and is found once for each value, from those of its operands.
    """

    def __init__(self, algebra: Algebra[V]) -> None:
        super().__init__(algebra)
        self._prospects: dict[V, int] = {}

    def prospect(self, v: V) -> int:
        """The bound of a value; 0 if nothing is known of its logarithm."""
        known, stack = self._prospects, [v]
        while stack:
            top = stack[-1]
            if top not in known:
                name, operands = self.algebra.made_by(top)
                read = list(operands)[name in ("switch", "second") :] if name in _PASSED else []
                left = [x for x in read if x not in known]
                if left:
                    stack += left
                    continue
                found = self._prospect(top, name, read)
                found |= FACTOR if found & GAINS and found & POSITIVE else 0
                known[top] = found | (SCALED if found & (FACTOR | CLEAN) else 0)
            stack.pop()
        return known[v]

    def _prospect(self, v: V, name: str, read: list[V]) -> int:
        if name in _ALWAYS:
            return _ALWAYS[name]
        if not read:
            array = self.algebra.array(v)
            return _SURE if array is not None and np.all((array >= 0) & (array < np.inf)) else 0
        found = [self._prospects[x] for x in read]
        some, every = reduce(or_, found), reduce(and_, found)
        if name in _LINEAR:
            small = GAINS | _SURE if some & (GAINS | SQUARE) and some & POSITIVE else 0
            return small | (ONE_PLUS | ONE_MINUS if name in ("tanh", "erf") else 0)
        if name in _SAME:
            return self._of_one(name, found[0])
        if name in _FACTORS:
            square = SQUARE | POSITIVE if self._root(v) is not None else 0
            return some & (GAINS | FACTOR) | every & (_SURE | ONE_MINUS) | square
        if name in _SIDES:
            return some & ~_SURE | every & _SURE
        if name == "neg":
            inside, operands = self.algebra.made_by(read[0])
            if inside == "neg":
                return self._prospects[operands[0]]
            return some if inside in ("log", "log1p", "log1mexp") else some & ~(CLEAN | POSITIVE)
        if name in _ORDERED:
            sure = POSITIVE if name == "maximum" and some & POSITIVE else 0
            return (some & (GAINS | SQUARE) if every & POSITIVE else 0) | every & _SURE | sure
        return self._of_two(name, read, found)

    def _of_one(self, name: str, found: int) -> int:
        """Of what has one operand, or one whose logarithm counts."""
        found &= ~ONE_PLUS if name in ("sqr", "pow") else ~(ONE_PLUS | ONE_MINUS)
        if name in ("sqr", "pow", "abs"):
            found |= POSITIVE | (0 if name == "abs" else SQUARE) | (GAINS if found & FACTOR else 0)
        if name == "pow" and found & (GAINS | CLEAN):
            return found | GAINS | _SURE
        # A root is certain to be what it is, and so is a sum of squares.
        if name == "sqrt":
            found |= POSITIVE | (_SURE if found & GAINS else 0)
        if name == "sum":
            return found & ~FACTOR | (_SURE if found & SQUARE else 0) | (GAINS if found & FACTOR else 0)
        return found

    def _of_two(self, name: str, read: list[V], found: list[int]) -> int:
        """Of a sum or difference."""
        some, every = reduce(or_, found), reduce(and_, found)
        sure = every & _SURE if name == "add" else every & TERMS
        minus = name == "sub" or any(self.algebra.made_by(x)[0] == "neg" for x in read)
        has_one = any(self.is_number(x, 1) for x in read)
        moved = ONE_PLUS | ONE_MINUS if minus else ONE_PLUS if has_one else 0
        has_form = some & moved and all(part & (moved | POSITIVE) for part in found)
        if has_form or (has_one and minus and all(found)):
            return GAINS | _SURE
        if some & GAINS and every & TERMS:
            return GAINS | SCALED | sure
        if has_one and not minus:
            return sure
        scaled = every & SCALED | (GAINS if some & (GAINS | FACTOR) and every & SCALED else 0)
        return scaled | sure
