# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stable forms of products, powers and inverse functions; see `graphc.ops.logarithms` for the others."""

from __future__ import annotations

import math
from functools import reduce
from typing import Generic, NamedTuple, TypeAlias

import numpy as np

from graphc.ops.algebra import DEEPEST, GAINS, MOST_PARTS, SQUARE, Algebra, Form, V
from graphc.ops.logarithms import Logarithms

# Factors that may become one; a divisor that is a sum may with any other.
_MERGED = frozenset(("exp", "expm1", "sigmoid", "pow", "sub", "select"))
# Those that grow as exp(x), or fall as exp(-x).
BESSEL = frozenset(("i0", "i1", "iv", "k0", "k1", "kv"))
# What is small where exponentials are large.
_TAILS = frozenset(("sigmoid", "erfc", "ndtr"))
# Sums of more are not multiplied term by term.
_MOST_TERMS = 4
# What may overflow or is as large as what does.
_LARGE = frozenset(("exp", "exp2", "cosh", "logaddexp", "softplus"))
_QUOTIENTS = frozenset(("mul", "true_div", "reciprocal", "neg"))
# A factor, its power, and what it is computed from if that is not itself.
_Part: TypeAlias = tuple[V, int, tuple[V, ...]]
# Functions, and what they are the inverse functions of.
INVERSES = {
    "arctanh": "tanh", "arcsinh": "sinh", "arccosh": "cosh", "logit": "sigmoid", "erfinv": "erf",
    "erfcinv": "erfc", "ndtri": "ndtr", "ndtri_exp": "log_ndtr",
}  # fmt: skip
WHOLE = (*INVERSES, "xlogy", "xlog1py")


class Product(NamedTuple, Generic[V]):
    """A stable product, and from what and by what it is computed; the exponential that is its quotient."""

    value: V
    roots: tuple[V, ...]
    between: tuple[V, ...]
    share: V | None = None


class Stable(Logarithms[V]):
    """The rules of logarithms, and of what is made of them.

    Args:
        algebra: of the values.
        derived: whether derivatives are taken of what is made.
    """

    def __init__(self, algebra: Algebra[V], derived: bool = False) -> None:
        super().__init__(algebra)
        self._derived = derived
        # Exponentials that are quotients: other factors may keep them from overflowing.
        self._quotients: set[V] = set()
        self._magnitudes: dict[V, tuple[Form[V] | None, V | None]] = {}
        self._tails: dict[V, bool] = {}

    def logarithm(self, name: str, v: V) -> Product[V] | None:
        """Of ``log(v)``, or of the function of that kind that is named."""
        rule = {"log1p": self.log1p, "log1mexp": self.log1mexp}.get(name, self.log)
        form = rule(v)
        if form is None:
            return self.log1p_of_square(v) if name == "log1p" else None
        base = {"log2": 2, "log10": 10}.get(name)
        log = form.log if base is None else self.times(form.log, 1 / math.log(base))
        return Product(log, form.roots, form.between)

    def product(self, *values: V) -> Product[V] | None:
        """A product whose exponentials, and powers of a base, are one: exp(x) * exp(y) is exp(x + y).

        What underflows, over a divisor that does, is the exponential of a difference: it is `Product.share`,
        so that other factors of it are found where the product is multiplied again.

        Args:
            values: what is multiplied.
        """
        found = [self._factors(v) for v in values]
        factors = [part for parts, _, _ in found for part in parts]
        positive = sum(not same for _, _, same in found) % 2 == 0
        distributed = None if self._derived else self._distributed(factors, positive)
        if distributed is not None:
            return distributed
        factors, unscaled, scales = self._without_scales(factors)
        kept, gone = self._merged(factors)
        gone += [*scales, *(v for _, between, _ in found for v in between)]
        share, kept, more = self._shared([*kept, *unscaled])
        gone += more
        for i, (w, power, roots) in enumerate(kept if share is None else ()):
            is_sum = power < 0 and not roots and self.algebra.made_by(w)[0] == "add"
            part = self._share(self.algebra.scalar(1, w), w) if is_sum else None
            if part is not None:
                gone.append(w)
                kept[i] = (self._made("sigmoid", self.negative(part.log)), 1, part.roots)
        if not any(used for _, _, used in kept):
            return None
        kept = [part for part in kept if not self.is_number(part[0], 1)] or kept[:1]
        sources = tuple(self._origins.get(root, root) for w, _, used in kept for root in (used or (w,)))
        value = self._quotient([(w, power) for w, power, _ in kept], positive)
        return Product(value, sources, tuple(dict.fromkeys(gone)), share)

    def _without_scales(
        self, factors: list[tuple[V, int]]
    ) -> tuple[list[tuple[V, int]], list[_Part[V]], list[V]]:
        """Factors without the exponential that Bessel functions of one argument have, above and below a bar;
        scaled ones, and what is gone.
        """
        roots = [(self._root(v), (v, power)) for v, power in factors]
        left = [p for root, part in roots for p in ([part] if root is None else [(root, part[1])] * 2)]
        gone = [v for root, (v, _) in roots if root is not None]
        parts: list[_Part[V]] = []
        for below in [v for v, power in left if power < 0 and self.algebra.made_by(v)[0] in BESSEL]:
            for above in [v for v, power in left if power > 0]:
                pair = [self._unscaled(above, 1, below), self._unscaled(below, -1, below)]
                if pair[0] is not None:
                    left.remove((above, 1))
                    left.remove((below, -1))
                    parts += [part for part in pair if part is not None]
                    gone += [above, below]
                    break
        return (left, parts, gone) if parts else (factors, [], [])

    def _unscaled(self, v: V, power: int, like: V) -> _Part[V] | None:
        """A sum of products, each with a Bessel function of the argument of one, over what these have as a
        factor: exp(x), or exp(-x).
        """
        letter, (*_, x) = self.algebra.made_by(like)
        total: list[V] = []
        sources: list[V] = []
        for term, sign in self._terms(v, 1):
            factors, _, positive = self._factors(term)
            for w, own in factors:
                name, operands = self.algebra.made_by(w)
                if name in BESSEL and name[0] == letter[0] and own > 0 and self._are_same(operands[-1], x):
                    break
            else:
                return None
            factors.remove((w, 1))
            scaled = [(self._made(f"{name}e", *operands), 1), *factors]
            total.append(self._quotient(scaled, positive == (sign > 0)))
            sources += (*operands, *(w for w, _ in factors))
        return reduce(lambda x, y: self._made("add", x, y), total), power, tuple(sources)

    def _merged(self, factors: list[tuple[V, int]]) -> tuple[list[_Part[V]], list[V]]:
        """Factors, those that have become one with what they are computed from, and those that are gone."""
        gone: list[V] = []
        kept: list[_Part[V]] = []
        for w, power in factors:
            for i, (x, other, roots) in enumerate(kept):
                found = self._together(x, other, w, power)
                if found is not None:
                    gone += [y for y in (x, w) if y not in gone]
                    kept[i] = (found[0], 1, (*(roots or found[1]), *found[2]))
                    break
            else:
                kept.append((w, power, ()))
        return kept, gone

    def _shared(self, parts: list[_Part[V]]) -> tuple[V | None, list[_Part[V]], list[V]]:
        """Factors with logarithms as one exponential, if a divisor is among them; and what it replaces."""
        nothing: tuple[None, list[_Part[V]], list[V]] = None, list(parts), []
        kept, moved = self._behind_moves(parts)
        divided = {v for v, power, _ in kept if self._divides(v, power) or v in self._quotients}
        divided |= self._sums_of_shares([v for v, power, _ in kept if power > 0])
        candidates = any(self._is_tail(v) for v, _, _ in kept)
        # These first: most have no logarithm, and then none is made of the other factors.
        divisors = [(v, power) for v, power, _ in kept if v in divided]
        if not candidates and all(self._helpful(*part) is None for part in divisors):
            return nothing
        sums = [self._summands(v) for v, power, _ in kept if power < 0]
        if any(self._are_same(x, v) for x in sums if x is not None for v, power, _ in kept if power > 0):
            return nothing  # a softmax
        forms: list[tuple[Form[V], int]] = []
        rest: list[_Part[V]] = []
        above: list[V] = []
        below: list[V] = []
        tails = large = 0
        for v, power, roots in kept:
            found = self._helpful(v, power)
            if found is None:
                rest.append((v, power, roots))
                continue
            form, sign = found
            form = form._replace(roots=roots or form.roots)
            forms.append((form, power))
            rest += [] if sign is None else [(sign, power, form.roots)]
            if power > 0:
                above.append(v)
            if v in divided:
                below.append(v)
            small = self._is_tail(v)
            tails += power > 0 and small
            # exp(x - exp(x)) is small far out, and large where another factor is small.
            either = not small or self.algebra.made_by(v)[0] == "exp"
            large += power > 0 and either and not form.shifted and not self._is_bounded(v)
        if (
            not above
            or not (below or (tails and large))
            or self._are_apart([v for v in above if v not in divided], below)
            or len(forms) < 2
            or all(form.shifted for form, _ in forms)
        ):
            return nothing
        total = self._summed(forms)
        share = self._made("exp", total.log)
        self._quotients.add(share)
        return share, [*rest, (share, 1, total.roots)], [*moved, *total.between]

    def _divides(self, v: V, power: int) -> bool:
        """True for a divisor, and a factor with an exponent below 0."""
        name, operands = self.algebra.made_by(v)
        exponent = self.algebra.number(operands[1]) if name == "pow" else None
        return power < 0 or (name == "pow" and (exponent is None or exponent < 0))

    def _of_terms(self, terms: list[tuple[V, int]]) -> Form[V] | None:
        """Of a sum of what is at most 1 and a number that does not underflow, nothing is gained."""
        numbers = [self._is_far_from_limits(v) for v, _ in terms]
        if any(numbers) and all(
            sign > 0 and (number or (self._has_logarithm(v) and self._is_bounded(v)))
            for (v, sign), number in zip(terms, numbers, strict=True)
        ):
            return None
        return super()._of_terms(terms)

    def _is_far_from_limits(self, v: V) -> bool:
        """True for positive numbers, but for 1: with it the sum has a logarithm near 0."""
        array = self.algebra.array(v)
        if array is None or array.size == 0:
            return False
        limit = np.exp(self.algebra.largest_exponent(v))
        return bool(np.all((array > 1 / limit) & (array < limit) & (array != 1)))

    def _are_apart(self, above: list[V], below: list[V]) -> bool:
        """True if no factor underflows where a divisor does, since both are of different numbers, and one
        exponential of both has more elements.
        """
        pairs = [(v, w) for v in above for w in below]
        shapes = ([list(self.algebra.shape(self._unmoved(v)[0])) for v in pair] for pair in pairs)
        return (
            bool(pairs)
            and all(one != other for one, other in shapes)
            and all(self.algebra.are_apart(*pair) for pair in pairs)
        )

    def _is_bounded(self, v: V, depth: int = 0) -> bool:
        """True if a value overflows nowhere by its exponentials: it is a product with what is at most 1."""
        v, _ = self._unmoved(v)
        name, operands = self.algebra.made_by(v)
        if name == "exp":
            negative, rest = self._without_numbers(operands[0])
            values = [w for w, _ in rest]
            return negative and all(self._never_negative(w) or values.count(w) % 2 == 0 for w in values)
        form = None if name in _TAILS or name == "softmax" else self.form(v)
        if form is None or not form.gained:
            return True
        factors = [(operands[0], 1)] if name == "sum" else self._factors(v)[0]
        inside = (name == "sum" or len(factors) > 1) and depth < DEEPEST
        return inside and all(power > 0 and self._is_bounded(w, depth + 1) for w, power in factors)

    def _is_tail(self, v: V) -> bool:
        """True for what is small where exponentials are large: tails, their slopes, exp(-exp(x))."""
        if v not in self._tails:
            self._tails[v] = self._find_tail(v)
        return self._tails[v]

    def _find_tail(self, v: V) -> bool:
        name, operands = self.algebra.made_by(v)
        if name == "exp":
            return any(self._falls(w, sign) for w, sign in self._terms(operands[0], 1))
        if name == "sub" and self.algebra.number(operands[0]) == 1:
            return self._square_of_tanh(operands[1]) is not None
        return name in _TAILS

    def _falls(self, v: V, sign: int) -> bool:
        """True for -exp(x) and the like."""
        negative, rest = self._without_numbers(v)
        if negative == (sign < 0) or len(rest) != 1 or rest[0][1] < 0:
            return False
        inside = (self.algebra.made_by(w)[0] for w, above in self._terms(rest[0][0], 1) if above > 0)
        return not _LARGE.isdisjoint(inside)

    def _without_numbers(self, v: V) -> tuple[bool, list[tuple[V, int]]]:
        """If the numbers among the factors of a value make it negative, and the other factors."""
        factors, _, positive = self._factors(v)
        numbers = [self.algebra.number(w) for w, _ in factors]
        below = sum(number is not None and number < 0 for number in numbers) + (not positive)
        return below % 2 == 1, [part for part, n in zip(factors, numbers, strict=True) if n is None]

    def _distributed(self, factors: list[tuple[V, int]], positive: bool) -> Product[V] | None:
        """exp(x) * (exp(y - exp(x)) - exp(z - exp(x))) term by term: all underflow, and exp(x) overflows."""
        large = next((v for v, power in factors if power > 0 and self._grows(v)), None)
        if large is None:
            return None
        for part in factors:
            terms = list(self._terms(part[0], 1)) if part[1] > 0 else []
            if not 2 <= len(terms) <= _MOST_TERMS or not all(self._has_tail(term) for term, _ in terms):
                continue
            made = [(self.product(term, large), sign) for term, sign in terms]
            values = [(found.value, sign) for found, sign in made if found is not None]
            if len(values) == len(terms):
                rest = [*factors, (self._signed_sum(values), 1)]
                rest.remove(part)
                rest.remove((large, 1))
                return Product(self._quotient(rest, positive), (), ())
        return None

    def _grows(self, v: V) -> bool:
        return self.algebra.made_by(v)[0] == "exp" and not self._is_tail(v)

    def _has_tail(self, v: V) -> bool:
        """True if a value has a factor like exp(-exp(x))."""
        return any(
            power > 0 and self.algebra.made_by(w)[0] == "exp" and self._is_tail(w)
            for w, power in self._factors(v)[0]
        )

    def _helpful(self, v: V, power: int) -> tuple[Form[V], V | None] | None:
        """The magnitude of a factor, if a product gains by its logarithm."""
        form, sign = self._magnitude(v) if self.prospect(v) & GAINS else (None, None)
        if form is None or not (form.sure and form.gained):
            return None
        return None if form.plain and (power > 0 or form.shifted) else (form, sign)

    def _sums_of_shares(self, factors: list[V]) -> set[V]:
        """Sums along axes of what is divided by a sum of exponentials, of which another factor is one:
        exp(x) * sum(w / sum(exp(x))), the slopes of equal rows together.
        """
        exponents = [x for x in map(self._exponent, factors) if x is not None]
        sums = [(v, self._summands(v)) for v in factors if exponents]
        return {
            v
            for v, x in sums
            for divisor, power in (() if x is None else self._factors(self._unmoved(x)[0])[0])
            for whole in (self._summands(divisor), divisor)
            for term, _ in (() if whole is None or power > 0 else self._terms(self._unmoved(whole)[0], 1))
            if any(self._are_same(x, y) for x in exponents for y in (self._exponent(term),) if y is not None)
        }

    def _exponent(self, v: V) -> V | None:
        """Of a moved exponential, before it or what it is of was moved."""
        name, operands = self.algebra.made_by(self._unmoved(v)[0])
        return self._unmoved(operands[0])[0] if name == "exp" else None

    def _behind_moves(self, parts: list[_Part[V]]) -> tuple[list[_Part[V]], list[V]]:
        """Factors of products and quotients whose elements were moved, in the same place; what is gone."""
        kept: list[_Part[V]] = []
        gone: list[V] = []
        for v, power, roots in parts:
            inside, moves = self._unmoved(v) if not roots else (v, [])
            divided = moves and self.algebra.made_by(inside)[0] in _QUOTIENTS
            factors, between, positive = self._factors(inside) if divided else ([], (), True)
            if not any(power < 0 or w in self._quotients for w, power in factors):
                kept.append((v, power, roots))
                continue
            gone += [*moves, *between]
            if not positive:
                kept.append((self.algebra.scalar(-1, v), 1, ()))
            kept += [(self._moved_again(moves, w), power * own, ()) for w, own in factors]
        return kept, gone

    def known_divisors(self, v: V) -> list[V]:
        """Of what a value is divided by, or was, that which has a logarithm."""
        factors, _, _ = self._factors(v)
        return [w for w, power in factors if w in self._quotients or (power < 0 and self._has_logarithm(w))]

    def _has_logarithm(self, v: V) -> bool:
        form, _ = self._magnitude(v) if self.prospect(v) & (GAINS | SQUARE) else (None, None)
        return form is not None and form.sure and form.gained

    def _summands(self, v: V) -> V | None:
        """The operand of a sum along axes."""
        name, operands = self.algebra.made_by(self._unmoved(v)[0])
        return operands[0] if name == "sum" else None

    def _magnitude(self, v: V) -> tuple[Form[V] | None, V | None]:
        """The logarithm of one factor of a value, and the other, which may be negative: a sign, or a sum."""
        if v not in self._magnitudes:
            self._magnitudes[v] = None, None
            self._magnitudes[v] = self._find_magnitude(v)
        return self._magnitudes[v]

    def _find_magnitude(self, v: V) -> tuple[Form[V] | None, V | None]:
        form = self.form(v)
        if form is None or form.sure or not form.gained:
            return form, None
        name, operands = self.algebra.made_by(v)
        if name == "select" and len(operands) == 1:
            form, factor = self._magnitude(operands[0])
            if form is None or factor is None:
                return None, None
            form = form._replace(log=self.algebra.again(v, [form.log]), between=(*form.between, v))
            return form, self._moved_again([v], factor)
        if name in ("expm1", "sinh"):
            form, sign = self._size_of_difference(name, operands[0])
            return form._replace(sure=True, between=(*form.between, v)), sign
        found: tuple[V, Form[V]] | None = None
        if name in ("add", "sub"):
            terms = list(self._terms(v, 1))
            size = self._size_of_terms(terms)
            if size is not None:
                return size[0]._replace(between=(*size[0].between, v)), size[1]
            found = self._sum_over_largest(terms) if len(terms) <= MOST_PARTS else None
        elif name == "sum":
            scaled = self._scaled(operands[0])
            found = None if scaled is None else self._reduced_over_largest(v, *scaled)
        if found is None:
            return None, None
        total, form = found
        return form._replace(sure=True, between=(*form.between, v)), total

    def _size_of_terms(self, terms: list[tuple[V, int]]) -> tuple[Form[V], V] | None:
        """Of a difference, where the terms of both sides have logarithms."""
        up, down = ([w for w, sign in terms if sign == wanted] for wanted in (1, -1))
        sides = self._sides(up[0], down[0]) if len(up) == len(down) == 1 else None
        if sides is None:
            forms = [[self._sure(w) for w in side] for side in (up, down)]
            known = [[form for form in side if form is not None and not form.plain] for side in forms]
            if not up or not down or [len(side) for side in known] != [len(up), len(down)]:
                return None
            sides = self._added(known[0]), self._added(known[1])
        first, second = sides
        high, low = (
            first._replace(log=self._made(name, first.log, second.log)) for name in ("maximum", "minimum")
        )
        roots = tuple(dict.fromkeys((*first.roots, *second.roots)))
        between = tuple(dict.fromkeys((*first.between, *second.between)))
        found = self._subtracted(high, low)._replace(roots=roots, between=between, sure=True)
        return found, self._sign(self._made("lt", first.log, second.log), found.log)

    def _size_of_difference(self, name: str, x: V) -> tuple[Form[V], V]:
        """Of expm1(x) and sinh(x)."""
        negative = self.log1mexp(x) if name == "expm1" else None
        one = self.algebra.scalar(1, x)
        if negative is not None:  # of what is known to be negative
            return negative, self.negative(one)
        positive = self.form(x)
        if positive is not None and positive.sure:
            return self._of_difference_of(name, x), one
        size = self._made("abs", x)
        form = self._of_difference_of(name, size)
        log = form.log
        zero = self.algebra.scalar(0, x)
        below = self._made("lt", x, zero)
        if name == "expm1":
            log = self._made("switch", below, self._made("sub", log, size), log)
        return Form(log, roots=(x,)), self._sign(below, log)

    def _of_size(self, v: V, x: V) -> Form[V] | None:
        """Of an absolute value, also of a difference."""
        found = super()._of_size(v, x)
        if found is not None:
            return found
        form, factor = self._magnitude(x)
        if form is None or not form.sure or not form.gained:
            return None
        return form._replace(log=self._size(factor, form), plain=True)

    def _sign(self, below: V, like: V) -> V:
        one, minus = (self.algebra.scalar(number, like) for number in (1, -1))
        return self._made("switch", below, minus, one)

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
        names = self.algebra.made_by(v)[0], self.algebra.made_by(w)[0]
        divisor = names[power > 0] if power != other else ""
        if divisor != "add" and not _MERGED.issuperset(names):
            return None
        (name, x, roots), (second, y, more) = self._function(v), self._function(w)
        for part, whole, powers in ((v, w, (power, other)), (w, v, (other, power))):
            share = self._share(part, whole) if powers == (1, -1) else None
            if share is not None:
                return self._made("sigmoid", self.negative(share.log)), share.roots, ()
            if powers == (1, -1) and not self._derived and self._is_over_difference(part, whole):
                (x,) = self.algebra.made_by(part)[1]
                below = self._made("expm1", self.negative(x))
                return self.negative(self._made("reciprocal", below)), (x,), ()
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

    def _is_over_difference(self, v: V, w: V) -> bool:
        """True for exp(x) / expm1(x), which is -1 / expm1(-x)."""
        (name, operands), (other, parts) = self.algebra.made_by(v), self.algebra.made_by(w)
        return name == "exp" and other == "expm1" and self._are_same(operands[0], parts[0])

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
        """x, of a function of its inverse function of x, which has lost what x was far out; x * log(y), of
        xlogy and xlog1py.
        """
        name, operands = self.algebra.made_by(v)
        if name in ("xlogy", "xlog1py"):
            form = self.log(operands[1]) if name == "xlogy" else self.log1p(operands[1])
            return form and self._times_logarithm(operands[0], form)
        if name not in INVERSES:
            return None
        inside, moved = self._unmoved(operands[0])
        found = self.inverse_of(name, inside)
        if found is None:
            rule = _OF_LARGE.get(name)
            form = self.log(operands[0]) if rule is not None and not self._is_limited(operands[0]) else None
            if rule is None or form is None or not form.sure or form.plain:
                return None
            return Product(rule(self, form.log), form.roots, form.between)
        return Product(
            self._moved_again(moved, found), (self.algebra.made_by(inside)[1][0],), (*moved, inside)
        )

    def _is_limited(self, v: V) -> bool:
        """True if it is exp(minimum(x, 1)), as `_arcsinh` leaves it."""
        name, operands = self.algebra.made_by(v)
        name, operands = self.algebra.made_by(operands[0]) if name == "exp" else ("", ())
        return name == "minimum" and self.algebra.number(operands[1]) == 1

    def _arcsinh(self, x: V) -> V:
        """Of exp(x): x + log1p(sqrt(1 + exp(-2 * x))) where x is not small."""
        one = self.algebra.scalar(1, x)
        near = self._made("arcsinh", self._made("exp", self._made("minimum", x, one)))
        rest = self._made("exp", self.times(self._made("maximum", x, one), -2))
        root = self._made("sqrt", self._made("add", self.algebra.scalar(1, x), rest))
        far = self._made("add", x, self._made("log1p", root))
        return self._made("switch", self._made("lt", x, one), near, far)

    def _arccosh(self, x: V) -> V:
        """Of exp(x): x + log1p(sqrt(1 - exp(-2 * x)))."""
        root = self._made("sqrt", self.negative(self._made("expm1", self.times(x, -2))))
        return self._made("add", x, self._made("log1p", root))

    # -- squares that overflow -------------------------------------------------------------------------------

    def root(self, v: V) -> Product[V] | None:
        """sqrt(x**2 + y**2) and sqrt(1 + x**2) as lengths, which overflow only if the result does."""
        name, operands = self.algebra.made_by(v)
        terms = list(self._terms(operands[0], 1)) if name == "sqrt" else []
        if not 2 <= len(terms) <= 3 or any(sign < 0 for _, sign in terms):
            return None
        sides: list[V] = []
        for term, _ in terms:
            number, side = self.algebra.number(term), self._root(term)
            if number is not None and 0 < number < np.inf:
                side = self.algebra.scalar(number**0.5, term) if self._is_one_element(term) else None
            if side is None:
                return None
            sides.append(side)
        length = reduce(lambda x, y: self._made("hypot", x, y), sides)
        return Product(length, tuple(sides), (operands[0], *(term for term, _ in terms)))

    def log1p_of_square(self, v: V) -> Product[V] | None:
        """2 * log1p(abs(x)), for log1p(x**2), where 1 / x is less than the rounding of a logarithm."""
        factors, _, positive = self._factors(v)
        roots = [x for x in (self._root(w) for w, power in factors if power > 0) if x is not None]
        numbers = [(self.algebra.number(w), power) for w, power in factors if self._root(w) is None]
        narrow = self.algebra.largest_exponent(v) < 20
        if len(roots) != 1 or len(numbers) != len(factors) - 1 or not positive or narrow:
            return None
        scale = 1.0
        for number, power in numbers:
            if number is None or not 0 < number < np.inf:
                return None
            scale *= number**power
        size = self._made("abs", roots[0])
        size = size if scale == 1 else self.times(size, scale**0.5)
        most = 2.0**60 if self.algebra.largest_exponent(v) > 100 else 2.0**30
        inside = self._made("lt", size, self.algebra.scalar(most, size))
        one, two = (self.algebra.scalar(number, size) for number in (1, 2))
        log = self._made("log1p", self._made("switch", inside, v, size))
        return Product(self._made("mul", self._made("switch", inside, one, two), log), (v, roots[0]), ())

    def _times_logarithm(self, x: V, form: Form[V]) -> Product[V]:
        """0 where x is, unless the logarithm is no number. The slope by x is the logarithm there, too."""
        value = self._made("mul", x, form.log)
        if not self._derived:
            zero, same = self.algebra.scalar(0, x), self._made("eq", form.log, form.log)
            absent = self._made("logical_and", self._made("eq", x, zero), same)
            value = self._made("switch", absent, zero, value)
        return Product(value, (x, *form.roots), form.between)

    def inverse_of(self, name: str, v: V) -> V | None:
        """x of what computes a value, if that is the function that the named one is the inverse of."""
        inner, parts = self.algebra.made_by(v)
        if inner != INVERSES[name]:
            return None
        return self._made("abs", parts[0]) if inner == "cosh" else parts[0]


# Inverse functions of what is large, from its logarithm.
_OF_LARGE = {"arcsinh": Stable._arcsinh, "arccosh": Stable._arccosh}
