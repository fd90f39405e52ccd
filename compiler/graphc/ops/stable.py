# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stable forms of products, powers and inverse functions; see `graphc.ops.logarithms` for the others."""

from __future__ import annotations

from typing import Generic, NamedTuple

import numpy as np

from graphc.ops.algebra import Form, V
from graphc.ops.logarithms import Logarithms

# What may become one with another factor of a product.
_MERGED = frozenset(("exp", "sigmoid", "pow", "add", "sub", "select"))
# Functions, and what they are the inverse functions of.
INVERSES = {
    "arctanh": "tanh",
    "arcsinh": "sinh",
    "arccosh": "cosh",
    "logit": "sigmoid",
    "erfinv": "erf",
    "erfcinv": "erfc",
    "ndtri": "ndtr",
    "ndtri_exp": "log_ndtr",
}


class Product(NamedTuple, Generic[V]):
    """A stable product, and from what and by what it is computed."""

    value: V
    roots: tuple[V, ...]
    between: tuple[V, ...]


class Stable(Logarithms[V]):
    """The rules of logarithms, and of what is made of them."""

    def product(self, v: V) -> Product[V] | None:
        """A product whose exponentials, and powers of a base, are one: exp(x) * exp(y) is exp(x + y)."""
        factors, between, positive = self._factors(v)
        known = sum(self.algebra.made_by(w)[0] in _MERGED for w, _ in factors)
        if known < 2 and not any(power < 0 for _, power in factors if known):
            return None
        kept: list[tuple[V, int, tuple[V, ...]]] = []
        gone = list(between)
        for w, power in factors:
            for i, (x, other, roots) in enumerate(kept):
                found = self._together(x, other, w, power)
                if found is not None:
                    gone += [y for y in (x, w) if y not in gone]
                    kept[i] = (found[0], 1, (*(roots or found[1]), *found[2]))
                    break
            else:
                kept.append((w, power, ()))
        for i, (w, power, roots) in enumerate(kept):
            share = self._share(self.algebra.scalar(1, w), w) if power < 0 and not roots else None
            if share is not None:
                gone.append(w)
                kept[i] = (self._made("sigmoid", self.negative(share.log)), 1, share.roots)
        if not any(used for _, _, used in kept):
            return None
        kept = [part for part in kept if not self.is_number(part[0], 1)] or kept[:1]
        sources = tuple(root for w, _, used in kept for root in (used or (w,)))
        value = self._quotient([(w, power) for w, power, _ in kept], positive)
        return Product(value, sources, tuple(gone))

    def _function(self, v: V) -> tuple[str, V | None, tuple[V, ...]]:
        """The exponential or sigmoid that computes a value, also one that is moved; its operand in this
        place, and that itself.
        """
        name, operands = self.algebra.made_by(v)
        if name == "select" and len(operands) == 1:
            name, x, roots = self._function(operands[0])
            return name, None if x is None else self.algebra.again(v, [x]), roots
        if name == "sub" and self.is_number(operands[0], 1):
            name, x, roots = self._function(operands[1])
            return (name, self.negative(x), roots) if name == "sigmoid" and x is not None else ("", None, ())
        return (name, operands[0], (operands[0],)) if name in ("exp", "sigmoid") else ("", None, ())

    def _together(self, v: V, power: int, w: V, other: int) -> tuple[V, tuple[V, ...], tuple[V, ...]] | None:
        """Two factors as one, and what of each it is computed from."""
        (name, x, roots), (second, y, more) = self._function(v), self._function(w)
        for part, whole, powers in ((v, w, (power, other)), (w, v, (other, power))):
            share = self._share(part, whole) if powers == (1, -1) else None
            if share is not None:
                return self._made("sigmoid", self.negative(share.log)), share.roots, ()
        if x is None or y is None:
            return self._powers_together(v, power, w, other)
        if name == second == "exp" and self._is_no_larger(x, y):
            first = x if power > 0 else self.negative(x)
            return self._made("exp", self._made("add" if other > 0 else "sub", first, y)), roots, more
        if not self._are_opposite(x, y):
            return None
        if name == second == "sigmoid" and power != other:  # sigmoid(x) / sigmoid(-x)
            return self._made("exp", x if power > 0 else y), roots, ()
        if name != second and power == other == 1:  # exp(x) * sigmoid(-x)
            return self._made("sigmoid", x if name == "exp" else y), roots, ()
        return None

    def _is_no_larger(self, x: V, y: V) -> bool:
        """True if a sum has no more elements than its operands: its exponential takes no longer."""
        shapes = [list(self.algebra.shape(v)) for v in (x, y)]
        return shapes[0] == shapes[1] or any(all(size == 1 for size in shape) for shape in shapes)

    def _are_opposite(self, x: V, y: V) -> bool:
        for a, b in ((x, y), (y, x)):
            name, operands = self.algebra.made_by(a)
            if name == "neg" and self._are_same(operands[0], b):
                return True
        return False

    def _powers_together(
        self, v: V, power: int, w: V, other: int
    ) -> tuple[V, tuple[V, ...], tuple[V, ...]] | None:
        (base, first), (same, second) = self._power(v), self._power(w)
        if base is None or same is None or not self._are_same(base, same):
            return None
        number = first * power + second * other
        if number:
            return self._made("pow", base, self.algebra.scalar(number, base)), (base,), ()
        # What was infinity times 0, or NaN, stays NaN.
        one, zero, none = (self.algebra.scalar(n, base) for n in (1, 0, np.nan))
        inside = self._made("logical_and", self._made("isfinite", base), self._made("ne", base, zero))
        return self._made("switch", inside, one, none), (base,), ()

    def _power(self, v: V) -> tuple[V | None, float]:
        """Base and exponent of a power with a whole number."""
        name, operands = self.algebra.made_by(v)
        number = self.algebra.number(operands[1]) if name == "pow" else None
        if number is None or not float(number).is_integer() or not self._is_one_element(operands[1]):
            return None, 0
        return operands[0], float(number)

    def power(self, v: V) -> Form[V] | None:
        """The exponent of what is a power, root or product of exponentials: exp(x) ** y is exp(x * y)."""
        name, operands = self.algebra.made_by(v)
        if name not in ("pow", "sqr", "sqrt", "prod") or self._function(operands[0])[0] != "exp":
            return None
        return self._form(v)

    def inverse(self, v: V) -> Product[V] | None:
        """x, of a function of its inverse function of x, which has lost what x was far out."""
        name, operands = self.algebra.made_by(v)
        if name not in INVERSES:
            return None
        moved: list[V] = []
        inside = operands[0]
        inner, parts = self.algebra.made_by(inside)
        while inner == "select" and len(parts) == 1:
            moved.append(inside)
            inside = parts[0]
            inner, parts = self.algebra.made_by(inside)
        found = self.inverse_of(name, inside)
        if found is None:
            return None
        for part in reversed(moved):
            found = self.algebra.again(part, [found])
        return Product(found, (parts[0],), (*moved, inside))

    def inverse_of(self, name: str, v: V) -> V | None:
        """x of what computes a value, if that is the function that the named one is the inverse of."""
        inner, parts = self.algebra.made_by(v)
        if inner != INVERSES[name]:
            return None
        return self._made("abs", parts[0]) if inner == "cosh" else parts[0]
