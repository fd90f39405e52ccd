# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logarithms and products of expressions of exponentials, as expressions that neither overflow nor cancel.

One set of rules for graphs and for the IR; see `graphc.ops.algebra`. Derivatives ask it for graphs (by
`graphc.gradient.stable`), the stabilize pass for the IR: values and derivatives know the same expressions.

A value that is not negative is ``exp(form.log)``. The logarithm of a product is a sum, that of a sum is
``logaddexp``, that of a difference ``x + log1mexp(y - x)``; what moves, selects, repeats or joins elements
does so with their logarithms, since it does not look at them. Sums with factors of unknown sign are divided
by the exponential of their largest exponent.

A function that is a multiple of what is small (tanh, log1p, 1 - exp) has the logarithm of its operand, and of
the factor, where the operand underflows, and its own elsewhere.

Values keep their shapes: a constant is a number only if it has one element, and is an array of logarithms
otherwise; every operand of an expression is an operand of what stands for it, so it broadcasts as before.

Source: signed and scaled logarithms of probabilities; PyTensor's `tensor/rewriting/math.py` and `special.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from graphc.ops.algebra import CLEAN, DEEPEST, MOST_PARTS, Algebra, Form, Prospects, V

_LN2 = math.log(2)


class Logarithms(Prospects[V]):
    """The rules, for one algebra. What is found out of values is remembered."""

    def __init__(self, algebra: Algebra[V]) -> None:
        super().__init__(algebra)
        self._forms: dict[V, Form[V] | None] = {}
        self._depth = 0

    # -- what is asked ---------------------------------------------------------------------------------------

    def log(self, v: V) -> Form[V] | None:
        """Of ``log(v)``; None where nothing is gained."""
        form = self.form(v)
        return form if form is not None and form.gained else None

    def log1p(self, v: V) -> Form[V] | None:
        """Of ``log1p(v)``."""
        terms = list(self._terms(v, 1))
        form = self._of_terms([(self.algebra.scalar(1, v), 1), *terms])
        return form._replace(between=(*form.between, v)) if form is not None and form.gained else None

    def form(self, v: V) -> Form[V] | None:
        """The logarithm of a value, None if nothing is known of it."""
        if v not in self._forms:
            self._forms[v] = None
            if self._depth < DEEPEST and self.prospect(v):
                self._depth += 1
                before = self.algebra.placed_after(v)
                self._forms[v] = self._form(v)
                self.algebra.placed(before)
                self._depth -= 1
        return self._forms[v]

    def _form(self, v: V) -> Form[V] | None:
        array = self.algebra.array(v)
        if array is not None:
            if array.size == 0 or not np.all((array >= 0) & (array < np.inf)):
                return None
            with np.errstate(divide="ignore"):
                return Form(self.algebra.literal(np.log(array), v), gained=False)
        name, operands = self.algebra.made_by(v)
        rule = _RULES.get(name)
        found = None if rule is None else rule(self, v, *operands)
        return None if found is None else found._replace(between=(*found.between, v))

    # -- parts -----------------------------------------------------------------------------------------------

    def _joined(self, log: V, *forms: Form[V], sure: bool = True) -> Form[V]:
        return Form(
            log,
            sure and all(form.sure for form in forms),
            any(form.gained for form in forms),
            all(form.shifted for form in forms if form.gained),
            any(form.plain for form in forms),
            tuple(root for form in forms for root in form.roots),
            tuple(v for form in forms for v in form.between),
        )

    def _or_plain(self, v: V) -> Form[V]:
        """The logarithm of a value as it stands, if nothing better is known."""
        form = self.form(v)
        if form is not None:
            return form
        return Form(self._made("log", v), self._never_negative(v), False, plain=True, roots=(v,))

    # -- sums ------------------------------------------------------------------------------------------------

    def _of_sum(self, v: V, *operands: V) -> Form[V] | None:
        terms = list(self._terms(v, 1))
        found = self._of_terms(terms)
        return self._of_product(v) if found is None and len(terms) == 1 else found

    def _of_terms(self, terms: list[tuple[V, int]]) -> Form[V] | None:
        if len(terms) > MOST_PARTS:
            return None
        if len(terms) == 1:
            ((v, sign),) = terms
            return self._of_negative(v) if sign < 0 else self.form(v)
        special = self._of_pair(terms) if len(terms) == 2 else None
        if special is not None:
            return special
        above: list[Form[V]] = []
        below: list[Form[V]] = []
        for v, sign in terms:
            form = self.form(v)
            if form is None or not form.sure or form.plain:
                return self._shifted_sum(terms)
            (above if sign > 0 else below).append(form)
        if not above or not any(form.gained for form in (*above, *below)):
            return None
        total = self._added(above)
        if below:
            total = self._subtracted(total, self._added(below))
        return None if all(form.shifted for form in (*above, *below) if form.gained) else total

    def _of_negative(self, v: V) -> Form[V] | None:
        """Of -expm1(x), and of other functions that are negative where their logarithm is known."""
        name, operands = self.algebra.made_by(v)
        if name == "expm1":
            return self._log1mexp(operands[0])._replace(sure=False)
        known = self._as_logarithm(v)
        form = None if known is None else self.form(self.negative(known.log))
        if known is not None and form is not None:
            return self._instead(known._replace(log=self.negative(known.log)), form)
        found = self._opposite(v) if name in ("log", "log1p", "log1mexp") else None
        return found and self._where_it_is(
            v, found, found.log, lambda x: self._made("log", self.negative(x)), -1
        )

    # -- what underflows -------------------------------------------------------------------------------------

    def log1mexp(self, x: V) -> Form[V] | None:
        """Of ``log1mexp(x)``: log(-x) where x underflows."""
        found = self._opposite(x)
        rule = partial(self._made, "log1mexp")
        return found and self._where_it_is(x, found, found.log, rule, -1)

    def _log1mexp(self, x: V) -> Form[V]:
        form = self.log1mexp(x)
        return Form(self._made("log1mexp", x), roots=(x,)) if form is None else form

    def _where_it_is(self, x: V, form: Form[V], near: V, far: Callable[[V], V], inside: float) -> Form[V]:
        """The logarithm of a function of a value whose own is known: ``near`` where the value underflows,
        ``far`` of it elsewhere. There it is of another number that has finite slopes.
        """
        least = self.algebra.scalar(-self.algebra.largest_exponent(form.log), form.log)
        gone = self._made("lt", form.log, least)
        there = self._made("switch", gone, self.algebra.scalar(inside, x), x)
        log = self._made("switch", gone, near, far(there))
        # What is near to it is as good as it was: in a sum nothing is gained.
        return Form(log, False, shifted=True, roots=form.roots, between=form.between)

    def _of_logarithm(self, v: V, x: V) -> Form[V] | None:
        """Of a logarithm that is another expression: ``log(1 + w)`` is ``log1p(w)``."""
        found = self._as_logarithm(v)
        form = None if found is None else self.form(found.log)
        if found is not None and form is not None:
            return self._instead(found, form)
        return self._of_linear(v, x) if self.algebra.made_by(v)[0] == "log1p" else None

    def _as_logarithm(self, v: V) -> Form[V] | None:
        name, operands = self.algebra.made_by(v)
        return (
            self.log1p(operands[0]) if name == "log1p" else self.log(operands[0]) if name == "log" else None
        )

    def _instead(self, found: Form[V], form: Form[V]) -> Form[V]:
        """The form of what stands for a value: roots of it that are no values of their own are not roots."""
        made, left = set(found.roots), [found.log]
        while left:
            v = left.pop()
            if v not in made:
                made.add(v)
                left += self.algebra.made_by(v)[1]
        made -= set(found.roots)
        roots = (*found.roots, *(root for root in form.roots if root not in made))
        return form._replace(roots=tuple(dict.fromkeys(roots)), between=(*form.between, *found.between))

    def _of_linear(self, v: V, x: V) -> Form[V] | None:
        """Of functions that are multiples of what is small."""
        name, operands = self.algebra.made_by(x)
        form = self.form(x)
        if form is None or not form.sure or not form.gained:
            return None
        if name == "switch" and self.algebra.number(operands[1]) == 1:
            return None  # as `_where_it_is` leaves it
        name, _ = self.algebra.made_by(v)
        slope, sure = _LINEAR[name]
        near = form.log if slope == 1 else self._plus(form.log, math.log(slope))
        found = self._where_it_is(x, form, near, lambda x: self._made("log", self._made(name, x)), 1)
        return found._replace(sure=sure)

    def _of_softplus(self, v: V, x: V) -> Form[V] | None:
        """It is an exponential where that is small."""
        name, operands = self.algebra.made_by(x)
        if name == "switch" and self.algebra.number(operands[1]) == 0:
            return None
        itself = Form(x, roots=(x,))
        found = self._where_it_is(x, itself, x, lambda x: self._made("log", self._made("softplus", x)), 0)
        return found._replace(sure=True)

    def _opposite(self, x: V) -> Form[V] | None:
        """The logarithm of -x, of what is known to be negative, as it is where it is small."""
        factors, between, positive = self._factors(x)
        forms: list[tuple[Form[V], int]] = []
        constant = 0.0
        for v, power in factors:
            number = self.algebra.number(v)
            if number is not None and number and math.isfinite(number):
                positive ^= number < 0
                constant += power * math.log(abs(number))
                continue
            form, turned = self._small(v)
            if form is None or not form.sure:
                return None
            positive ^= turned
            forms.append((form, power))
        if positive or not any(form.gained for form, _ in forms):
            return None
        total = self._summed(forms)
        log = self._plus(total.log, constant) if constant else total.log
        return total._replace(log=log, between=(*total.between, *between))

    def _small(self, v: V) -> tuple[Form[V] | None, bool]:
        """The logarithm of a value, or of the negative of it, as it is where it is small; true for that."""
        name, operands = self.algebra.made_by(v)
        if name == "log1mexp":
            return Form(operands[0], roots=(operands[0],), between=(v,)), True
        found = self._as_logarithm(v)
        if found is not None and self.algebra.made_by(found.log)[0] == name:
            return self.form(v), False  # the logarithm of a sum is that of another one, and so on
        form = None if found is None else self._opposite(found.log)
        form = form and found and self._instead(found, form)
        if form is None and name == "log":
            form = self._complement(operands[0])
        if form is None and name in ("log1p", "expm1"):
            form = self._opposite(operands[0])
        if form is None or not form.sure:
            return self.form(v), False
        return form._replace(between=(*form.between, v)), True

    def _of_pair(self, terms: list[tuple[V, int]]) -> Form[V] | None:
        """Of 1 - x and 1 + x, where a function has its own form."""
        for (one, first), (v, sign) in (terms, terms[::-1]):
            if first > 0 and self.algebra.number(one) == 1:
                found = self._complement(v) if sign < 0 else self._one_plus(v)
                if found is not None and not self._is_one_element(one):
                    return found._replace(log=self._made("second", one, found.log))
                if found is not None:
                    return found
        up, down = (next((v for v, sign in terms if sign == wanted), None) for wanted in (1, -1))
        sides = None if up is None or down is None else self._sides(up, down)
        if sides is None:
            return None
        found = self._subtracted(*sides)
        return found._replace(
            roots=tuple(dict.fromkeys(found.roots)), between=tuple(dict.fromkeys(found.between))
        )

    def _sides(self, v: V, w: V) -> tuple[Form[V], Form[V]] | None:
        """Two values whose difference is v - w, where v and w are distribution functions: 1 - w and 1 - v
        where these are smaller, as v and w are both 1 far out above. They are chosen before the difference,
        so that no slope is infinite.
        """
        (name, xs), (other, ys) = self.algebra.made_by(v), self.algebra.made_by(w)
        if name == other and name in _COMPLEMENTS:
            # 1 - f(x) and f(-x) are one for these functions, so the operands are chosen.
            (x,), (y,), rule = xs, ys, _COMPLEMENTS[name]
            above = self._made("lt", self.negative(x), y)
            first, second = (
                Form(
                    rule(self, self._made("switch", above, a, self.negative(b))), roots=(x, y), between=(v, w)
                )
                for a, b in ((y, x), (x, y))
            )
            return first, second
        upper = self._both(self._complement, w, v)
        lower = self._both(self.form, v, w) or self._both(self._one_plus, v, w)
        if not upper or not lower:
            return None
        above = self._made("lt", upper[0].log, lower[0].log)
        first, second = (
            self._joined(self._made("switch", above, x.log, y.log), x, y)
            for x, y in zip(upper, lower, strict=True)
        )
        return first, second

    def _both(self, rule: Callable[[V], Form[V] | None], v: V, w: V) -> list[Form[V]]:
        """The forms of two values, if both are certain."""
        found = [form for form in map(rule, (v, w)) if form is not None and form.sure and form.gained]
        return found if len(found) == 2 else []

    def _complement(self, v: V) -> Form[V] | None:
        array = self.algebra.array(v)
        if array is not None:
            return self._one_plus_numbers(v, -array)
        name, operands = self.algebra.made_by(v)
        if name == "select":
            return self._moved(v, operands, -1)
        if name == "second":
            found = self._complement(operands[1])
            return found and found._replace(
                log=self._made("second", operands[0], found.log), between=(*found.between, v)
            )
        half = self._half(v) or self._square_of_tanh(v)
        if half is not None:
            return half
        rule = _COMPLEMENTS.get(name)
        if rule is not None:
            x = operands[0]
            return Form(rule(self, x), roots=(x,), between=(v,))
        share = self._share(*operands) if name == "true_div" else None
        if share is not None:
            log = self.negative(self._made("softplus", self.negative(share.log)))
            return share._replace(log=log, between=(*share.between, v))
        form = self.form(v)
        if form is None or not form.sure or not form.gained:
            return None
        found = self.log1mexp(form.log)
        if found is None:
            return form._replace(log=self._made("log1mexp", form.log), sure=False)
        return found._replace(between=(*found.between, *form.between))

    def _one_plus_numbers(self, v: V, array: np.ndarray) -> Form[V] | None:
        """Of 1 plus constants; the numbers that are joined to a distribution function are its ends."""
        if array.size == 0 or not np.all((array >= -1) & (array < np.inf)):
            return None
        with np.errstate(divide="ignore"):
            return Form(self.algebra.literal(np.log1p(array), v), gained=False)

    def _half(self, v: V) -> Form[V] | None:
        """Of 1 - erfc(x) / 2 and 1 - (1 + erf(x)) / 2, the other tail."""
        factors, between, positive = self._factors(v)
        others = [x for x, power in factors if not self.is_number(x, 0.5 if power > 0 else 2)]
        if len(others) != 1 or len(factors) != 2 or not positive:
            return None
        name, operands = self.algebra.made_by(others[0])
        if name == "erfc":
            x = operands[0]
            log = self._made("log_ndtr", self.times(x, math.sqrt(2)))
            return Form(log, roots=(x,), between=(*between, others[0], v))
        terms = list(self._terms(others[0], 1))
        if len(terms) != 2 or any(sign < 0 for _, sign in terms):
            return None
        inside = [x for x, _ in terms if self.algebra.number(x) != 1]
        found = self._complement(inside[0]) if len(inside) == 1 else None
        if found is None or self.algebra.made_by(inside[0])[0] not in ("erf", "tanh"):
            return None
        log = self._plus(found.log, -_LN2)
        return found._replace(log=log, between=(*found.between, *between, others[0], v))

    def _square_of_tanh(self, v: V) -> Form[V] | None:
        """Of 1 - tanh(x) ** 2, the slope of what is squashed: 1 / cosh(x) ** 2."""
        root = self._root(v)
        if root is None or self.algebra.made_by(root)[0] != "tanh":
            return None
        (x,), (cosh, _) = self.algebra.made_by(root)[1], _LOGS["cosh"]
        return Form(self.times(cosh(self, x), -2), roots=(x,), between=(v, root))

    def _one_plus(self, v: V) -> Form[V] | None:
        array = self.algebra.array(v)
        if array is not None:
            return self._one_plus_numbers(v, array)
        name, operands = self.algebra.made_by(v)
        if name == "select":
            return self._moved(v, operands, 1)
        x = operands[0] if operands else v
        if name == "expm1":
            return Form(x, roots=(x,), between=(v,))
        if name not in ("erf", "tanh"):
            return None
        return Form(_COMPLEMENTS[name](self, self.negative(x)), roots=(x,), between=(v,))

    def _moved(self, v: V, operands: Sequence[V], sign: int) -> Form[V] | None:
        """Of 1 plus or minus what takes its elements from some values."""
        found = [self._one_plus(x) if sign > 0 else self._complement(x) for x in operands]
        if not any(found):
            return None
        forms = [
            Form(
                self._made("log1p", x if sign > 0 else self.negative(x)), False, False, plain=True, roots=(x,)
            )
            if form is None
            else form
            for x, form in zip(operands, found, strict=True)
        ]
        joined = self._joined(self.algebra.again(v, [form.log for form in forms]), *forms)
        return joined._replace(between=(*joined.between, v))

    def _added(self, forms: list[Form[V]]) -> Form[V]:
        # By position: equal terms, which have one form, are as many as they are.
        ones = [i for i, form in enumerate(forms) if self.is_number(form.log, 0) and len(forms) > 1][:1]
        rest = [form.log for i, form in enumerate(forms) if i not in ones]
        total = reduce(lambda x, y: self._made("logaddexp", x, y), rest)
        return self._joined(self._made("softplus", total) if ones else total, *forms)

    def _subtracted(self, above: Form[V], below: Form[V]) -> Form[V]:
        x, y = above.log, below.log
        if self.is_number(y, 0):
            difference = self.negative(x)
        else:
            # Of two that are infinite the difference is none.
            zero = self.algebra.scalar(0, x)
            difference = self._made("switch", self._made("eq", x, y), zero, self._made("sub", y, x))
        log = self._made("log1mexp", difference)
        log = log if self.is_number(x, 0) else self._made("add", x, log)
        return self._joined(log, above, below, sure=False)

    def _scaled(self, v: V) -> tuple[V | None, Form[V]] | None:
        """A factor, and the logarithm of the other ones; None without an exponential."""
        form = self.form(v)
        if form is not None and form.sure and not form.plain:
            return None, form
        root = self._root(v)
        if root is not None:
            return self._scaled_square(v, root)
        inside, moves = self._unmoved(v)
        part = self._scaled(inside) if moves else None
        if part is not None:
            factor, form = part
            form = form._replace(log=self._moved_again(moves, form.log), between=(*form.between, *moves))
            return None if factor is None else self._moved_again(moves, factor), form
        factors, between, positive = self._factors(v)
        forms, plain = self._sorted(factors, only_sure=True)
        if not plain or not any(form.gained for form, _ in forms):
            return None
        gained = self._summed(forms)
        roots = tuple(x for x, _ in plain)
        factor = self._quotient(plain, positive)
        return factor, gained._replace(roots=(*gained.roots, *roots), between=(*gained.between, *between))

    def _scaled_square(self, v: V, x: V) -> tuple[V | None, Form[V]] | None:
        part = self._scaled(x)
        if part is None:
            return None
        factor, form = part
        squared = None if factor is None else self._made("mul", factor, factor)
        return squared, form._replace(log=self.times(form.log, 2), between=(*form.between, v))

    def _size(self, factor: V | None, form: Form[V], log: str = "log") -> V:
        """The logarithm of a term; a rough one will do for what terms are divided by and then multiplied."""
        if factor is None:
            return form.log
        return self._made("add", form.log, self._made(log, self._made("abs", factor)))

    def _shifted(self, factor: V | None, form: Form[V], top: V) -> V:
        """``factor * exp(form.log - top)``; a factor of 0 does not meet an infinite exponential."""
        difference = self._made("sub", form.log, top)
        largest = self.algebra.scalar(self.algebra.largest_exponent(difference), difference)
        term = self._made("exp", self._made("minimum", difference, largest))
        return term if factor is None else self._made("mul", factor, term)

    def _finite(self, top: V) -> V:
        zero = self.algebra.scalar(0, top)
        return self.algebra.fixed(self._made("switch", self._made("isfinite", top), top, zero))

    def _shifted_sum(self, terms: list[tuple[V, int]]) -> Form[V] | None:
        found = self._sum_over_largest(terms)
        if found is None:
            return None
        total, form = found
        return form._replace(log=self._made("add", self._made("log", total), form.log), sure=False)

    def _sum_over_largest(self, terms: list[tuple[V, int]]) -> tuple[V, Form[V]] | None:
        """A sum divided by its largest term, and the logarithm of that."""
        if any(self.is_number(v, 1) for v, _ in terms):
            return None
        found: list[tuple[V | None, Form[V]]] = []
        for v, _ in terms:
            part = self._scaled(v)
            if part is None:
                return None
            found.append(part)
        if all(form.shifted for _, form in found if form.gained):
            return None
        top = reduce(partial(self._made, "maximum"), [self._size(*part, "rough_log") for part in found])
        shift = self._finite(top)
        signed = [(self._shifted(*part, shift), sign) for part, (_, sign) in zip(found, terms, strict=True)]
        total = self._signed_sum(signed)
        self._forms[total] = None
        return total, self._joined(self.algebra.fixed(top), *(form for _, form in found))

    def _of_reduced_sum(self, v: V, x: V) -> Form[V] | None:
        form = self.form(x)
        scaled = self._scaled(x) if form is None or not form.sure or form.plain else None
        if scaled is None:
            if form is None or not form.sure or not form.gained:
                return None
            if form.shifted:
                return Form(self._made("log", v), gained=False, roots=(v,))
            return form._replace(log=self.algebra.log_sum_exp(v, form.log))
        found = self._reduced_over_largest(v, *scaled)
        if found is None:
            return None
        total, form = found
        return form._replace(log=self._made("add", self._made("log", total), form.log), sure=False)

    def _reduced_over_largest(self, v: V, factor: V | None, form: Form[V]) -> tuple[V, Form[V]] | None:
        if form.shifted or factor is None:
            return None
        narrow = self._along(self.algebra.axes(v), form.log)
        if narrow is not None:  # one exponential for all terms
            (x,) = self.algebra.made_by(v)[1]
            total = self.algebra.again(v, [self._spread(x, factor)])
            self._forms[total] = None
            log = self._spread(self.algebra.spread(v, v), narrow)
            return total, form._replace(log=self.algebra.reduced(v, "max", log))
        top = self.algebra.reduced(v, "max", self._size(factor, form, "rough_log"))
        shift = self.algebra.spread(v, self._finite(top))
        total = self.algebra.again(v, [self._shifted(factor, form, shift)])
        self._forms[total] = None
        return total, form._replace(log=self.algebra.fixed(top))

    def _of_matrix_product(self, v: V, *operands: V) -> Form[V] | None:
        """Rows and columns of exponentials over their largest elements, where these are large or small."""
        parts, tops, forms = list(operands), [], []
        for i, x in enumerate(operands):
            form = self._sure(x)
            if form is None or form.plain or form.shifted or not form.gained:
                forms.append(Form(x, self._never_negative(x), False, plain=True, roots=(x,)))
                continue
            forms.append(form)
            top = self.algebra.largest(form.log, (-1, -2)[i])
            most = self.algebra.largest_exponent(x)
            below = self._made("minimum", self._plus(top, most / 4), self.algebra.scalar(0, top))
            tops.append(self._finite(self._made("maximum", self._plus(top, -0.45 * most), below)))
            parts[i] = self._made("exp", self._made("sub", form.log, tops[-1]))
        if not tops:
            return None
        total = self.algebra.again(v, parts)
        self._forms[total] = None
        return self._joined(reduce(partial(self._made, "add"), tops, self._made("log", total)), *forms)

    # -- products --------------------------------------------------------------------------------------------

    def _sorted(
        self, factors: list[tuple[V, int]], only_sure: bool
    ) -> tuple[list[tuple[Form[V], int]], list[tuple[V, int]]]:
        """The factors with logarithms, and the others; of unknown sign may be at most one."""
        found = [(v, power, self.form(v)) for v, power in factors]
        unsure = sum(not (self._never_negative(v) if form is None else form.sure) for v, _, form in found)
        least = only_sure or unsure > 1
        forms: list[tuple[Form[V], int]] = []
        plain: list[tuple[V, int]] = []
        for v, power, form in found:
            # Of a square alone nothing is gained in a product: it is one logarithm more.
            alone = form is not None and form.gained and form.plain and form.shifted
            if form is None or alone or (least and not form.sure):
                plain.append((v, power))
            else:
                forms.append((form, power))
        return forms, plain

    def _summed(self, forms: list[tuple[Form[V], int]]) -> Form[V]:
        log = self._signed_sum([(form.log, power) for form, power in forms])
        return self._joined(log, *(form for form, _ in forms))

    def _of_product(self, v: V, *operands: V) -> Form[V] | None:
        name, _ = self.algebra.made_by(v)
        root = self._root(v)
        if root is not None:
            return self._of_square(v, root)  # one factor, for its sign is known
        share = self._share(*operands) if name == "true_div" else None
        if share is not None:
            return share._replace(log=self.negative(self._made("softplus", share.log)))
        factors, between, positive = self._factors(v)
        factors, distribution = self._without_distribution(factors)
        forms, plain = self._sorted(factors, only_sure=False)
        forms += distribution
        if not (positive or plain) or not any(form.gained for form, _ in forms):
            return None
        if plain:
            value = self._quotient(plain, positive)
            self._forms.setdefault(value, None)
            sure = positive and all(self._never_negative(x) for x, _ in plain)
            roots = tuple(x for x, _ in plain)
            forms.append((Form(self._made("log", value), sure, False, plain=True, roots=roots), 1))
        total = self._summed(forms)
        return total._replace(between=(*total.between, *between))

    def _without_distribution(
        self, factors: list[tuple[V, int]]
    ) -> tuple[list[tuple[V, int]], list[tuple[Form[V], int]]]:
        """The factors without 0.5 * erfc(x), which is near 1 where the logarithms of both are not near 0."""
        # By position: equal factors are as many as they are.
        half = [i for i, (v, power) in enumerate(factors) if self.is_number(v, 0.5 if power > 0 else 2)]
        found = [
            i for i, (v, power) in enumerate(factors) if self.algebra.made_by(v)[0] == "erfc" and power > 0
        ]
        if not half or not found:
            return factors, []
        v, _ = factors[found[0]]
        x = self.algebra.made_by(v)[1][0]
        form = Form(self._made("log_ndtr", self.times(x, -math.sqrt(2))), roots=(x,), between=(v,))
        taken = (half[0], found[0])
        return [part for i, part in enumerate(factors) if i not in taken], [(form, 1)]

    def _share(self, v: V, whole: V) -> Form[V] | None:
        """Of exp(x) / (exp(x) + y) the logarithm of y / exp(x): what its sigmoid is the complement of."""
        if self.algebra.made_by(whole)[0] != "add":
            return None
        terms = list(self._terms(whole, 1))
        if len(terms) > MOST_PARTS or any(sign < 0 or not self.prospect(x) & CLEAN for x, sign in terms):
            return None
        found = [i for i, (term, _) in enumerate(terms) if self._are_same(term, v)]
        form = self._sure(v) if len(found) == 1 else None
        if form is None or form.plain:
            return None
        forms: list[Form[V]] = []
        for i, (term, _) in enumerate(terms):
            other = self.form(term) if i != found[0] else None
            if i != found[0] and (other is None or not other.sure or other.plain):
                return None
            forms += [] if other is None else [other]
        if not any(other.gained for other in (form, *forms)):
            return None
        total = self._added(forms)
        log = total.log if self.is_number(v, 1) else self._made("sub", total.log, form.log)
        joined = self._joined(log, form, total)
        return joined._replace(between=(*joined.between, whole), gained=True)

    def _of_power(self, v: V, x: V, y: V) -> Form[V] | None:
        if self._root(v) is not None:
            return self._of_square(v, x)
        form = self.form(x)
        number = (self._is_one_element(y) and self.algebra.number(y)) or 0.0
        if (form is None or not form.sure) and number and number % 2 == 0:
            square = self._of_square(v, x)
            return square and square._replace(log=self.times(square.log, number / 2))
        if form is None or not form.sure or (not form.gained and self.algebra.array(y) is not None):
            return None
        log = self._made("mul", form.log, y)
        if self.algebra.array(y) is None and self.algebra.array(x) is None:
            zero = self.algebra.scalar(0, y)
            log = self._made("switch", self._made("eq", y, zero), zero, log)
        return form._replace(log=log, gained=True, roots=(*form.roots, y))

    # -- other rules -----------------------------------------------------------------------------------------

    def _of_difference_of(self, name: str, x: V) -> Form[V]:
        """Of expm1(x) and sinh(x)."""
        twice = self.negative(x) if name == "expm1" else self.times(x, -2)
        found = self.log1mexp(twice) or Form(self._made("log1mexp", twice), roots=(x,))
        log = self._made("add", x, found.log)
        return found._replace(log=log if name == "expm1" else self._plus(log, -_LN2), sure=False)

    def _of_unary(self, v: V, x: V) -> Form[V]:
        name, _ = self.algebra.made_by(v)
        rule, sure = _LOGS[name]
        return Form(rule(self, x), sure, shifted=name == "exp" and self.is_shifted(x), roots=(x,))

    def _of_bessel(self, v: V, order: V, x: V) -> Form[V]:
        name, _ = self.algebra.made_by(v)
        log = self._made("log", self._made(f"{name}e", order, x))
        second, sign = (x, "sub") if name == "kv" else (self._made("abs", x), "add")
        return Form(self._made(sign, log, second), name == "kv", roots=(order, x))

    def _scaled_bessel(self, name: str, x: V) -> V:
        log = self._made("log", self._made(f"{name}e", x))
        return self._made("sub", log, x) if name[0] == "k" else self._made("add", log, self._made("abs", x))

    def _of_half(self, v: V, x: V) -> Form[V] | None:
        form = self.form(x)
        return None if form is None else form._replace(log=self.times(form.log, 0.5), sure=True)

    def _of_square(self, v: V, x: V) -> Form[V] | None:
        form = self._sure(x)
        if form is not None:
            return form._replace(log=self.times(form.log, 2))
        size = self._of_size(v, x)
        if size is None:  # it may overflow, without an exponential
            size = Form(self._made("log", self._made("abs", x)), shifted=True, plain=True, roots=(x,))
        return size._replace(log=self.times(size.log, 2))

    def _of_size(self, v: V, x: V) -> Form[V] | None:
        """Of an absolute value."""
        form = self._sure(x)
        if form is not None:
            return form
        factor, form = self._scaled(x) or (None, None)
        if form is None:
            return None
        return form._replace(log=self._size(factor, form), sure=True, plain=True)

    def _sure(self, x: V) -> Form[V] | None:
        form = self.form(x)
        return form if form is not None and form.sure else None

    def _of_cast(self, v: V, x: V) -> Form[V] | None:
        form = self.form(x)
        return None if form is None else form._replace(log=self.algebra.again(v, [form.log]))

    def _of_second(self, v: V, like: V, x: V) -> Form[V] | None:
        form = self.form(x)
        return None if form is None else form._replace(log=self._made("second", like, form.log))

    def _of_extreme(self, v: V, *operands: V) -> Form[V] | None:
        """Logarithms are in the order of what they are of."""
        forms = [form for form in map(self._sure, operands) if form is not None]
        if len(forms) < len(operands) or not any(form.gained for form in forms):
            return None
        name, _ = self.algebra.made_by(v)
        return self._joined(self._made(name, *(form.log for form in forms)), *forms)

    def _of_reduced_extreme(self, v: V, x: V) -> Form[V] | None:
        form = self._sure(x)
        return None if form is None else form._replace(log=self.algebra.again(v, [form.log]))

    def _of_reduced_product(self, v: V, x: V) -> Form[V] | None:
        form = self._sure(x)
        return None if form is None else form._replace(log=self.algebra.reduced(v, "sum", form.log))

    def _of_switch(self, v: V, condition: V, x: V, y: V) -> Form[V] | None:
        known = [self.form(x), self.form(y)]
        if not any(form is not None and form.gained for form in known):
            return None
        forms = [self._or_plain(x), self._or_plain(y)]
        return self._joined(self._made("switch", condition, *(form.log for form in forms)), *forms)

    def _of_select(self, v: V, *operands: V) -> Form[V] | None:
        known = [self.form(x) for x in operands]
        if not any(form is not None for form in known) or (
            len(operands) > 1 and not any(form is not None and form.gained for form in known)
        ):
            return None
        forms = [self._or_plain(x) for x in operands]
        return self._joined(self.algebra.again(v, [form.log for form in forms]), *forms)

    def _of_softmax(self, v: V, x: V) -> Form[V]:
        return Form(self.algebra.log_softmax(v), roots=(x,))


_Rule = Callable[..., Any]
_COMPLEMENTS: dict[str, _Rule] = {
    "sigmoid": lambda s, x: s.negative(s._made("softplus", x)),
    "erf": lambda s, x: s.algebra.log_erfc(x),
    "ndtr": lambda s, x: s._made("log_ndtr", s.negative(x)),
    "tanh": lambda s, x: s._plus(s.negative(s._made("softplus", s.times(x, 2))), _LN2),
}
# With whether the function is never negative.
_LOGS: dict[str, tuple[_Rule, bool]] = {
    "exp": (lambda s, x: x, True),
    "exp2": (lambda s, x: s.times(x, _LN2), True),
    "sigmoid": (lambda s, x: s.negative(s._made("softplus", s.negative(x))), True),
    "erfc": (lambda s, x: s.algebra.log_erfc(x), True),
    "ndtr": (lambda s, x: s._made("log_ndtr", x), True),
    "cosh": (lambda s, x: s._plus(s._made("logaddexp", x, s.negative(x)), -_LN2), True),
    "i0": (lambda s, x: s._scaled_bessel("i0", x), True),
    "i1": (lambda s, x: s._scaled_bessel("i1", x), False),
    "k0": (lambda s, x: s._scaled_bessel("k0", x), True),
    "k1": (lambda s, x: s._scaled_bessel("k1", x), True),
}
# Functions that are multiples of their operand where it is small: the factor, and whether they are never
# negative of what is not.
_LINEAR: dict[str, tuple[float, bool]] = {
    **dict.fromkeys(("tanh", "arctan", "arcsinh", "arctanh", "arcsin"), (1, True)),
    "log1p": (1, True),
    **dict.fromkeys(("sin", "tan"), (1, False)),
    "erf": (2 / math.sqrt(math.pi), True),
    "erfinv": (math.sqrt(math.pi) / 2, True),
}
_RULES: dict[str, _Rule] = {
    **dict.fromkeys(_LOGS, Logarithms._of_unary),
    **dict.fromkeys(_LINEAR, Logarithms._of_linear),
    **{name: lambda rules, v, x, name=name: rules._of_difference_of(name, x) for name in ("expm1", "sinh")},
    **dict.fromkeys(("log", "log1p"), Logarithms._of_logarithm),
    "softplus": Logarithms._of_softplus,
    **dict.fromkeys(("iv", "kv"), Logarithms._of_bessel),
    **dict.fromkeys(("add", "sub", "neg"), Logarithms._of_sum),
    **dict.fromkeys(("mul", "true_div", "reciprocal"), Logarithms._of_product),
    **dict.fromkeys(("maximum", "minimum", "clip"), Logarithms._of_extreme),
    **dict.fromkeys(("max", "min"), Logarithms._of_reduced_extreme),
    "identity": lambda rules, v, x: rules._sure(x),
    "cast": Logarithms._of_cast,
    "second": Logarithms._of_second,
    "pow": Logarithms._of_power,
    "sqr": lambda rules, v, x: rules._of_square(v, x),
    "abs": lambda rules, v, x: rules._of_size(v, x),
    "sqrt": Logarithms._of_half,
    "sum": Logarithms._of_reduced_sum,
    "prod": Logarithms._of_reduced_product,
    "switch": Logarithms._of_switch,
    "select": Logarithms._of_select,
    "softmax": Logarithms._of_softmax,
    "dot": Logarithms._of_matrix_product,
}
