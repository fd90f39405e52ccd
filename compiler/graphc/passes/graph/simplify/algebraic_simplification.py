# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces expressions by cheaper ones of the same value.

The rules of the algebraic-simplification pass, from the files that hold them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.ir.patterns import rules
from graphc.ir.rewrite import RuleTable, apply_rules
from graphc.passes.graph.simplify import _arithmetic, _functions, _logic, _repeated, _signs, _structure
from graphc.passes.graph.simplify._lines import ALGEBRA, SIGNS
from graphc.passes.manager.base import Pass

if TYPE_CHECKING:
    from graphc_dialects._mlir import ir


RULES: RuleTable = {}
_MODULES = (_arithmetic, _functions, _logic, _structure, _signs)
for _table in (_repeated.RULES, rules(ALGEBRA), *(module.RULES for module in _MODULES)):
    for _name, _rules in _table.items():
        RULES.setdefault(_name, []).extend(_rules)


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
    * dimshuffle of dimshuffle, reshape of reshape (where the inner one cannot fail); a reshape that inserts
      and drops axes of size 1 to a dimshuffle.

    Rounding:

    * `(x + c) + d` to `x + (c + d)`: integers (exact), and floats if c and d have one sign, so that tricks
      with large constants keep working;
    * `sqr(abs(x))` of a complex x to the sum of the squares of its parts, infinite where one of them is;
    * pow with exponent 0 to 4, -1 to -4, 1/2, -1/2, 3/2 to products and roots;
    * `exp(log(x))`, `exp(log1p(x))`, `expm1(log(x))`, `expm1(log1p(x))`, `sqr(sqrt(x))` to x, 1 + x, x - 1,
      x, x, with NaN outside the domain as before;
    * sums of a number that is repeated a known number of times to a product;
    * `sum(-x)` to `-sum(x)`; `sum(x * c)` to `sum(x) * c` for integers, and floats with finite abs(c) >= 1;
    * reductions of reductions, over no axes, over axes of size 1; sums over a permuted operand;
    * x + zeros of which some elements were set or increased to x with these increased, as in gradients of
      rows and parts (a zero of x keeps its sign there);
    * an array of which one condition chooses whether a part is changed to the array with that part chosen.

    Rounding and wider:

    * `(x * c) * d`, `(x / c) / d`, `(x * c) / d` to one operation, if the combined constant is neither zero,
      subnormal nor infinite.

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
