# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces expressions by cheaper ones of the same value.

`RULES` has the rules of an operation in the order in which they are tried: first those that compute one
number in the place of many equal ones, then the rules of one line, sums and products, functions and
comparisons, reductions and views, and last those that move negations to the end, where they cancel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.ir.kinds import FOLDS, fold_of, reduced_axes
from graphc.ir.patterns import is_normal, is_unit, kind, negated, registrar, rules, split_constant, unit_splat
from graphc.ir.references import evaluate
from graphc.ir.rewrite import Rewriter, RuleTable, apply_rules, tensor_type
from graphc.ir.views import MOVES_AXES, REPEATS, axes_order, dimshuffle, repeated
from graphc.ir.walk import named_attributes
from graphc.passes import Pass
from graphc.passes.graph import _functions, _structure, _updates
from graphc.passes.graph._lines import ALGEBRA, SIGNS

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir

RULES: RuleTable = {}
_rule = registrar(RULES)
_FUNCTIONS = "cast exp log log1p expm1 sqr sqrt neg abs sigmoid softplus tanh reciprocal".split()
_OF_SEVERAL = "add sub mul true_div pow maximum minimum eq ne lt le gt ge switch".split()
# Elements of a literal that is computed here; what is larger bloats the program.
_LITERAL = 64


def _then(table: RuleTable) -> None:
    for name, found in table.items():
        RULES.setdefault(name, []).extend(found)


@_rule(*_FUNCTIONS, *MOVES_AXES)
def function_of_literal(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Functions of literals that other rules make: constants have been folded before."""
    array = rw.constant(op.operands[0])
    if not isinstance(array, np.ndarray) or array.size > _LITERAL:
        return None
    result = evaluate(op, [array], rw.dtype(op.results[0]))
    return rw.literal(result, tensor_type(result.shape, op.results[0].type.element_type))


@_rule(*_FUNCTIONS)
def function_of_repeated(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """f(broadcast_to(x, ...)) -> broadcast_to(f(x), ...)."""
    view = rw.defined_by(op.operands[0], REPEATS)
    if view is None:
        return None
    x, *sizes = view.operands
    type_ = op.results[0].type
    narrow = tensor_type(x.type.shape, type_.element_type)
    return repeated(rw.create(op.name, [x], narrow, **named_attributes(op)), sizes, type_, rw.create)


@_rule(*_OF_SEVERAL)
def repeated_operand(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """An operand with one number in all places, where another has the result's shape: the number alone. Of
    nothing but such operands: one number.
    """
    operands = list(op.operands)
    numbers = [rw.splat(v) for v in operands]
    if all(number is None for number in numbers):
        return None
    if all(number is not None for number in numbers) and any(rw.can_replace(op, v) for v in operands):
        return rw.full_like(evaluate(op, numbers, rw.dtype(op.results[0])).item(), op.results[0])
    for i, v in enumerate(operands):
        number = None if is_unit(v) else numbers[i]
        others = operands[:i] + operands[i + 1 :]
        if number is None or not any(not is_unit(x) and rw.can_replace(op, x) for x in others):
            continue
        operands[i] = rw.scalar_like(number, v)
        return rw.create(op.name, operands, op.results[0].type, **named_attributes(op))
    return None


@_rule(*FOLDS)
def reduction_of_repeated(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Of one number, a known number of times."""
    x, result, fold = op.operands[0], op.results[0], fold_of(op)
    number = None if fold == "prod" else rw.splat(x)
    count = 1
    for axis in reduced_axes(op):
        count *= max(x.type.shape[axis], 0)
    if number is None or not count or kind(rw, x) not in "biuf" or rw.dtype(x) != rw.dtype(result):
        return None
    if fold == "sum":
        if kind(rw, x) == "b":
            return None
        with np.errstate(all="ignore"):
            number = np.multiply(number, np.asarray(count).astype(number.dtype))
    return rw.full_like(number, result)


_then(rules(ALGEBRA))


def _constant_like(rw: Rewriter, number: np.generic, op: ir.Operation) -> ir.Value:
    return rw.scalar_like(number, op.results[0])


@_rule("neg")
def neg_of(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """-(x * c) -> x * -c."""
    inner = rw.defining(op.operands[0], "graphc.mul")
    found = None if inner is None or kind(rw, op.results[0]) not in "if" else split_constant(rw, inner)
    if found is None:
        return None
    x, number = found
    with np.errstate(all="ignore"):
        return rw.create("graphc.mul", [x, _constant_like(rw, -number, op)], op.results[0].type)


@_rule("mul", "true_div")
def signs_of_factors(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """(-x) * c -> x * -c; the same for quotients."""
    if kind(rw, op.results[0]) not in "if":
        return None
    x, y = op.operands
    inner_x, inner_y = rw.operand_of(x, "graphc.neg"), rw.operand_of(y, "graphc.neg")
    for inner, other, swapped in ((inner_x, y, False), (inner_y, x, True)):
        number = None if inner is None else unit_splat(rw, other)
        if number is not None:
            with np.errstate(all="ignore"):
                flipped = _constant_like(rw, -number, op)
            return rw.create(op.name, [flipped, inner] if swapped else [inner, flipped], op.results[0].type)
    return None


@_rule("add")
def gather_added_constants(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """(x + c) + d -> x + (c + d)."""
    outer = split_constant(rw, op)
    inner_op = None if outer is None else rw.defining(outer[0], "graphc.add")
    inner = None if inner_op is None else split_constant(rw, inner_op)
    if outer is None or inner is None or kind(rw, op.results[0]) not in "iuf":
        return None
    x, c, d = inner[0], inner[1], outer[1]
    with np.errstate(all="ignore"):
        total = c + d
    if kind(rw, op.results[0]) == "f" and (np.sign(c) != np.sign(d) or not np.isfinite(total)):
        return None
    return rw.create("graphc.add", [x, _constant_like(rw, total, op)], op.results[0].type)


def _as_factor(rw: Rewriter, op: ir.Operation | None) -> tuple[Any, Any, bool] | None:
    """(x, c, divides) of x * c, c * x and x / c."""
    if op is None or op.name not in ("graphc.mul", "graphc.true_div"):
        return None
    if op.name == "graphc.mul":
        found = split_constant(rw, op)
        return None if found is None else (*found, False)
    x, y = op.operands
    number = unit_splat(rw, y)
    return None if number is None or kind(rw, x) != "f" else (x, number, True)


@_rule("mul", "true_div")
def gather_factors(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Two multiplications or divisions by constants in a row become one.

    The combined constant must be normal, so that neither (x * 1e200) * 1e200 nor x * 1e-200 * 1e-200 loses
    values.
    """
    outer = _as_factor(rw, op)
    inner = None if outer is None else _as_factor(rw, rw.defs.get(outer[0]))
    if outer is None or inner is None or kind(rw, op.results[0]) not in "iuf":
        return None
    (x, c, inner_divides), (_, d, outer_divides) = inner, outer
    divides = inner_divides and outer_divides
    with np.errstate(all="ignore"):
        mixed = c / d if outer_divides else d / c
        number = c * d if inner_divides == outer_divides else mixed
    if not (is_normal(number) and is_normal(c) and is_normal(d)):
        return None
    name = "graphc.true_div" if divides else "graphc.mul"
    return rw.create(name, [x, _constant_like(rw, number, op)], op.results[0].type)


@_rule("true_div")
def div_by_power_of_two(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    x, y = op.operands
    number = unit_splat(rw, y) if kind(rw, x) == "f" else None
    if number is None or not is_normal(number) or abs(np.frexp(number)[0]) != 0.5:
        return None
    with np.errstate(all="ignore"):
        inverse = number.dtype.type(1) / number
    return (
        rw.create("graphc.mul", [x, _constant_like(rw, inverse, op)], op.results[0].type)
        if is_normal(inverse)
        else None
    )


_then(_functions.RULES)
_then(_structure.RULES)
_then(_updates.RULES)
_then(rules(SIGNS))


@_rule(*MOVES_AXES)
def sign_of_view(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """A view of -x, but of numbers: these are negated before they get axes."""
    x = rw.operand_of(op.operands[0], "graphc.neg")
    if x is None or not x.type.shape or kind(rw, x) != "f":
        return None
    return negated(rw, dimshuffle(x, axes_order(op), op.results[0].type, rw.create))


class AlgebraicSimplification(Pass):
    """Algebraic identities on elementwise operations, reductions and views.

    *Exact* rules give the same bits, but for the sign of a zero; *rounding* rules may differ in the last
    place; *wider* rules give a finite value where the original overflowed or was NaN on the way. No rule
    makes a finite value infinite or NaN, and none
    drops the shape check of the operation it replaces (a computation that is not needed any
    more goes with its checks).

    Rules of one line are in the table; those with reciprocals, and `sqrt(sqr(x))` and `log(exp(x))`, are
    rounding and wider, the others exact. (`x * 0` and `x - x` stay for floats, which may be NaN or inf.)
    Besides, exact:

    * `~~x`, `not not x`, `x / c` to `x * (1 / c)` for c a power of two;
    * `sqr(abs(x))`, `abs(abs(x))`, `abs(sqr(x))`, rounding of rounded or integer values;
    * `maximum(x, x)`, `maximum(maximum(x, y), y)`, constants of nested maxima; the same for minimum, and, or;
    * `x < x`, and all comparisons of integers with themselves, to constants; `not (a == b)` to `a != b`; of
      integers also `not (a < b)` to `a >= b`;
    * `switch` with a constant or negated condition, or equal branches;
    * `second(x, y)` to y of that shape, `conj` and `real` of reals;
    * `cast` of a lossless `cast`, casts to the own dtype;
    * an elementwise function of an expanded scalar to the function of the scalar, expanded;
    * functions of what is repeated (`broadcast_to`) to repeated results; an operand with one number in all
      places to the number; maxima, minima, `all` and `any` of one number to the number;
    * views of -x to negated views;
    * `log1mexp(y - x)` where a slope needs that of the distance of x and y, to this one, but NaN for y > x;
    * dimshuffle of dimshuffle, reshape of reshape (where the inner one cannot fail); a reshape that inserts
      and drops axes of size 1 to a dimshuffle.

    Rounding:

    * `(x + c) + d` to `x + (c + d)`: integers (exact), and floats if c and d have one sign, so that tricks
      with large constants keep working;
    * `sqr(abs(x))` of a complex x to the sum of the squares of its parts, infinite where one of them is;
    * pow with a whole exponent from -7 to 7, 1/2, -1/2 or 3/2 to products and roots;
    * `exp(log(x))`, `exp(log1p(x))`, `expm1(log(x))`, `expm1(log1p(x))`, `sqr(sqrt(x))` to x, 1 + x, x - 1,
      x, x, with NaN outside the domain as before;
    * sums of a number that is repeated a known number of times to a product;
    * `sum(-x)` to `-sum(x)`; `sum(x * c)` to `sum(x) * c` for integers, and floats with finite abs(c) >= 1;
    * reductions of reductions, over no axes, over axes of size 1; sums over a permuted operand;
    * x + zeros of which some elements were set or increased to x with these increased, as in gradients of
      rows and parts (a zero of x keeps its sign there); the same for differences;
    * an array of which one condition chooses whether a part is changed to the array with that part chosen;
    * in loops, `where(arange(n) == i, y, x)` of a state or zeros x, and `arange(n) == i` as numbers, to an
      update of the one element that is meant; elements at positions of a function of an array and numbers to
      the function of these elements.

    Rounding and wider:

    * `(x * c) * d`, `(x / c) / d`, `(x * c) / d` to one operation, if the combined constant is neither zero,
      subnormal nor infinite;
    * products, quotients and what is 0 of 0, of zeros of which some elements were set or increased, to zeros
      with the results for these elements, and their sums to sums of these, as in steps along gradients of
      rows (0 times infinity is 0 there). Outside of loops, a factor that is no number is for few elements.
      Zeros that were updated in another shape, by indices along several axes, are computed with in that one.

    `pow(x, 1/2)` is the square root, but inf for -inf, as in C. (`x ** 0.5` of a graph is `sqrt(x)`, which is
    NaN there, as in NumPy.) Powers of -1/2 and 3/2 give 0 and inf there. For smaller constants
    `sum(x * c)` stays, because sum(x) can overflow.

    Source: PyTensor's `tensor/rewriting/math.py` and `elemwise.py` (`local_add_neg_to_sub`,
    `local_pow_specialize`, `AlgebraicCanonizer`, ...).
    """

    stage = "graph"
    lines = (*ALGEBRA, *SIGNS)

    def run(self, module: ir.Module) -> None:
        apply_rules(module, RULES, self.count)
