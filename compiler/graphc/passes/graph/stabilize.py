# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces expressions that overflow or cancel by equal ones that do not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from graphc.ir.kinds import FOLDS, PRODUCTS, flags_of, fold_of, reduce, reduced_axes
from graphc.ir.patterns import broadcast_type, kind, negated, registrar, rules, unary
from graphc.ir.rewrite import Rewriter, RuleTable, apply_rules, is_tensor, tensor_type
from graphc.ir.traits.indexing import where_taken, where_updated
from graphc.ir.views import (
    JOINS,
    MOVES_AXES,
    REPEATS,
    RESHAPES,
    SAME_ARRAY,
    SELECTED,
    TAKES_PART,
    UPDATES,
    accumulates,
    axes_order,
    bounds_of,
    dimshuffle,
    inverse_order,
    reshaped,
    restored_order,
)
from graphc.ir.walk import named_attributes
from graphc.ops.elementwise import ROWS
from graphc.ops.stable import WHOLE, Stable
from graphc.passes import Pass
from graphc.passes.graph._lines import ALGEBRA, STABLE_FORMS
from graphc.passes.graph._shares import (
    SOFTMAX,
    log_of_softmax,
    may_be_merged,
    may_be_placed,
    promise_quotient,
    share_of_sum,
)
from graphc_dialects._mlir import ir

# The forms are written with differences: `1 + (-1) * x` is one. `log(exp(x))` is x without a rounding.
_NAMES = ("mul one", "mul self", "add of neg", "log of exp", "abs of exp")
_FIRST = [line for line in ALGEBRA if line.name in _NAMES]
RULES: RuleTable = rules(_FIRST)
for _name, _rules in rules(STABLE_FORMS, views=True).items():
    RULES.setdefault(_name, []).extend(_rules)
_rule = registrar(RULES)
_KNOWN = {f"graphc.{name}": name for name in (*ROWS, "cast", SOFTMAX)}


# Of values that are computed from more parts of inputs, nothing is said.
_MOST_SOURCES = 16
_Rows = frozenset[tuple[ir.Value, float, float]]


class _Sources:
    """The rows of a function's inputs that values are computed from.

    A sampler's function has one flat vector as input, of which parameters are slices: they are told apart by
    where they begin and end.
    """

    def __init__(self, rw: Rewriter) -> None:
        self._rw = rw
        # By value: inputs with the first row and the one behind the last; None if not known.
        self._known: dict[ir.Value, _Rows | None] = {}

    def are_apart(self, v: ir.Value, w: ir.Value) -> bool:
        one, other = self._of(v), self._of(w)
        if one is None or other is None:
            return False
        pairs = ((x, y) for x in one for y in other)
        return not any(x == y and max(a, c) < min(b, d) for (x, a, b), (y, c, d) in pairs)

    def _of(self, value: ir.Value) -> _Rows | None:
        stack, known = [value], self._known
        while stack:
            top, op = stack[-1], self._rw.defs.get(stack[-1])
            # The first operand of `second` has a shape only.
            read = [] if op is None else list(op.operands)[op.name == "graphc.second" :]
            left = [x for x in read if x not in known]
            if not left:
                known[top] = self._argument(top) if op is None else self._found(op, read)
                stack.pop()
            stack += left
        return known[value]

    def _argument(self, value: ir.Value) -> _Rows | None:
        """Those of loops are computed from others."""
        block = value.owner
        is_input = isinstance(block, ir.Block) and block.owner.operation.name == "func.func"
        return frozenset(((value, 0, math.inf),)) if is_input else None

    def _found(self, op: ir.Operation, read: list[ir.Value]) -> _Rows | None:
        if op.name in TAKES_PART and read[0] not in self._rw.defs and self._known[read[0]]:
            first, size, stride = (self._rw.constant(x) for x in bounds_of(op)[0])
            if all(isinstance(n, int) for n in (first, size, stride)) and size > 0 < stride:
                return frozenset(((read[0], first, first + (size - 1) * stride + 1),))
        found: set[tuple[ir.Value, float, float]] = set()
        for x in read:
            found.update(self._known[x] or ())
        known = not op.regions and all(self._known[x] is not None for x in read)
        return frozenset(found) if known and len(found) <= _MOST_SOURCES else None


class _Values:
    """The algebra of the values that a rewriter visits; see `graphc.ops.stable`."""

    def __init__(self, rw: Rewriter) -> None:
        self._rw = rw
        self.are_apart = _Sources(rw).are_apart
        self._made: dict[ir.Value, tuple[str, Sequence[ir.Value]]] = {}

    def made_by(self, v: ir.Value) -> tuple[str, Sequence[ir.Value]]:
        found = self._made.get(v)
        if found is None:
            op = self._rw.defs.get(v)
            if op is None:
                return "", ()
            found = self._made[v] = self._read(v, op)
        return found

    def _read(self, v: ir.Value, op: ir.Operation) -> tuple[str, Sequence[ir.Value]]:
        name = op.name
        short = _KNOWN.get(name)
        if short is not None:
            taken = op.operands[0] if short == "cast" else v
            floats = self._rw.dtype(v).kind == self._rw.dtype(taken).kind == "f"
            return (short, list(op.operands)) if floats else ("", ())
        if not _is_float(self._rw, v):
            return "", ()
        if name in UPDATES:
            return ("", ()) if accumulates(op) else ("select", list(op.operands)[:2])
        if name in JOINS:
            return "select", list(op.operands)
        if name in SELECTED:
            return "select", [op.operands[0]]
        if name in PRODUCTS and not any(flags_of(op)):
            return "dot", list(op.operands)
        return (fold_of(op) or "", [op.operands[0]]) if name in FOLDS else ("", ())

    def array(self, v: ir.Value) -> np.ndarray | None:
        array = self._rw.constant(v) if _is_float(self._rw, v) else None
        return array if isinstance(array, np.ndarray) else None

    def number(self, v: ir.Value) -> float | None:
        number = self._rw.splat(v)
        return None if number is None or number.dtype.kind == "c" else float(number)

    def shape(self, v: ir.Value) -> Sequence[int]:
        return [max(size, -1) for size in v.type.shape]

    def apply(self, name: str, *operands: ir.Value) -> ir.Value:
        type_ = broadcast_type(operands)
        if name in ("eq", "ne", "lt", "isfinite", "logical_and"):
            type_ = tensor_type(type_.shape, ir.IntegerType.get_signless(1))
        return self._rw.create(f"graphc.{name}", list(operands), type_)

    def scalar(self, number: float, like: ir.Value) -> ir.Value:
        return self._rw.scalar_like(number, like)

    def negative(self, x: ir.Value) -> ir.Value:
        return negated(self._rw, x)

    def literal(self, array: np.ndarray, like: ir.Value) -> ir.Value:
        return self._rw.literal(array, like.type)

    def again(self, v: ir.Value, operands: Sequence[ir.Value]) -> ir.Value:
        op = self._rw.defs[v]
        before = list(op.operands)
        types = [
            tensor_type(x.type.shape, y.type.element_type) for x, y in zip(before, operands, strict=False)
        ]
        cast = [self._rw.cast_static(y, type_) for y, type_ in zip(operands, types, strict=True)]
        attributes = named_attributes(op)
        return self._rw.create(op.name, [*cast, *before[len(cast) :]], v.type, **attributes)

    def axes(self, v: ir.Value) -> Sequence[int]:
        return reduced_axes(self._rw.defs[v])

    def reduced(self, v: ir.Value, kind: str, x: ir.Value) -> ir.Value:
        options = {"allow_empty": ir.BoolAttr.get(True)} if kind == "max" else {}
        return reduce(kind, x, reduced_axes(self._rw.defs[v]), v.type, self._rw.create, **options)

    def largest(self, x: ir.Value, axis: int) -> ir.Value:
        axis += len(x.type.shape)
        shape = [size for i, size in enumerate(x.type.shape) if i != axis]
        type_ = tensor_type(shape, x.type.element_type)
        top = reduce("max", x, [axis], type_, self._rw.create, allow_empty=ir.BoolAttr.get(True))
        return _with_axes_back(self._rw, top, x, [axis])

    def spread(self, v: ir.Value, total: ir.Value) -> ir.Value:
        reduction = self._rw.defs[v]
        return _with_axes_back(self._rw, total, reduction.operands[0], list(reduced_axes(reduction)))

    def log_sum_exp(self, v: ir.Value, x: ir.Value) -> ir.Value:
        return _log_sum_exp(self._rw, x, self._rw.defs[v])

    def log_softmax(self, v: ir.Value) -> ir.Value:
        return log_of_softmax(self._rw, self._rw.defs[v])

    def log_erfc(self, x: ir.Value) -> ir.Value:
        """log1p(-erf(x)) for x < 1, log(erfcx(x)) - x**2 for others."""
        rw, one, type_ = self._rw, self._rw.scalar_like(1, x), x.type
        limited = rw.create("graphc.minimum", [x, one], type_)
        near = unary(rw, "log1p", unary(rw, "neg", unary(rw, "erf", limited)))
        far = rw.create("graphc.sub", [unary(rw, "log", unary(rw, "erfcx", x)), unary(rw, "sqr", x)], type_)
        return self.apply("switch", self.apply("lt", x, one), near, far)

    def fixed(self, v: ir.Value) -> ir.Value:
        return v

    def placed_after(self, v: ir.Value) -> object:
        """Places the logarithm of a value where the value is computed, as good for other readers, and outside
        of the loop that this one is in.
        """
        return self._rw.move_after(v)

    def placed(self, before: object) -> None:
        self._rw.move_to(before)

    def largest_exponent(self, v: ir.Value) -> float:
        return float(np.log(np.finfo(self._rw.dtype(v)).max)) - 1


def _is_float(rw: Rewriter, v: ir.Value) -> bool:
    return is_tensor(v) and kind(rw, v) == "f"


def _rules_of(rw: Rewriter) -> Stable[ir.Value]:
    found = rw.notes.get(Stable)
    if not isinstance(found, Stable):
        found = rw.notes[Stable] = Stable(_Values(rw))
    return found


@_rule("log", "log1p", "log2", "log10", "log1mexp")
def logarithm(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """Of an expression of exponentials."""
    rules, (v,) = _rules_of(rw), op.operands
    limited = op.name == "graphc.log1p" and _is_limited(rw, v)
    if limited or not _is_float(rw, op.results[0]) or rw.defs.get(v) is None:
        return None
    found = rules.logarithm(op.name.removeprefix("graphc."), v)
    return found and found.value


def _is_limited(rw: Rewriter, v: ir.Value) -> bool:
    """True if it is -erf(minimum(x, 1)), as `log_erfc` leaves it."""
    x = rw.operand_of(v, "graphc.neg")
    x = None if x is None else rw.operand_of(x, "graphc.erf")
    return x is not None and rw.defining(x, "graphc.minimum") is not None


@_rule(*WHOLE)
def function_of_inverse(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    found = _rules_of(rw).inverse(op.results[0]) if all(_is_float(rw, x) for x in op.operands) else None
    return found and found.value


@_rule("pow", "sqr", "sqrt", "reduce_prod")
def power_of_exponential(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """exp(x) ** y -> exp(x * y); the product of exponentials -> the exponential of the sum."""
    form = _rules_of(rw).power(op.results[0]) if _is_float(rw, op.results[0]) else None
    return None if form is None else unary(rw, "exp", form.log)


@_rule("sqrt")
def root_of_squares(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """sqrt(x**2 + y**2) -> hypot(x, y)."""
    length = _rules_of(rw).root(op.results[0]) if _is_float(rw, op.results[0]) else None
    return None if length is None else length.value


# -- sums of exponentials ------------------------------------------------------------------------------------


def _with_axes_back(rw: Rewriter, value: ir.Value, like: ir.Value, axes: list[int]) -> ir.Value:
    """Inserts axes of size 1 where a reduction of `like` removed them."""
    type_ = like.type
    result = tensor_type(
        [1 if axis in axes else size for axis, size in enumerate(type_.shape)], type_.element_type
    )
    return dimshuffle(value, restored_order(len(type_.shape), axes), result, rw.create)


def _log_sum_exp(rw: Rewriter, x: ir.Value, reduction: ir.Operation) -> ir.Value:
    """The shifted form. The shift is 0 where the maximum is not finite, so that no inf - inf appears."""
    axes, type_ = reduced_axes(reduction), reduction.results[0].type
    top = reduce("max", x, axes, type_, rw.create, allow_empty=ir.BoolAttr.get(True))
    finite = rw.create("graphc.isfinite", [top], tensor_type(type_.shape, ir.IntegerType.get_signless(1)))
    shift = rw.create("graphc.switch", [finite, top, rw.scalar_like(0, top)], type_)
    centred = rw.create("graphc.sub", [x, _with_axes_back(rw, shift, x, list(axes))], x.type)
    total = reduce("sum", unary(rw, "exp", centred), axes, type_, rw.create)
    return rw.create("graphc.add", [unary(rw, "log", total), shift], type_)


_rule("true_div", "mul")(share_of_sum)


@_rule("true_div", "mul")
def product_of_exponentials(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """exp(x) * exp(y) -> exp(x + y); x ** 100 * x ** -100 -> 1."""
    if not _is_float(rw, op.results[0]) or not all(may_be_merged(rw, v) for v in op.operands):
        return None
    return _product(rw, op.results[0])


def _product(rw: Rewriter, *values: ir.Value) -> ir.Value | None:
    found = _rules_of(rw).product(*values)
    if found is not None and found.share is not None:
        promise_quotient(rw, found.share)
    return None if found is None else found.value


# -- quotients whose elements were placed --------------------------------------------------------------------

# As far as a quotient is looked for, in values.
_MOST_PLACES = 64


@_rule("mul")
def product_with_placed_quotient(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """f * put(zeros, i, w / d) -> put(zeros, i, f[i] * (w / d)), where d underflows and f does.

    So derivatives of logarithms are made, by the chain rule, where what a logarithm is of was sliced, joined,
    taken at indices, or a difference of such.
    """
    if not _is_float(rw, op.results[0]):
        return None
    for f, x in (list(op.operands), list(op.operands)[::-1]):
        if may_be_placed(rw, x) and x.type == op.results[0].type and may_be_merged(rw, f):
            found = _placed_of(rw).whole_product(f, x)
            if found is not None:
                return found
    return None


def _placed_of(rw: Rewriter) -> _Placed:
    found = rw.notes.get(_Placed)
    if not isinstance(found, _Placed):
        found = rw.notes[_Placed] = _Placed(rw)
    return found


def _broadcasts(f: ir.Value, x: ir.Value) -> bool:
    """True if a value has axes that are repeated to have another shape."""
    shape, wanted = f.type.shape, x.type.shape
    return len(shape) != len(wanted) or any(n == 1 != m for n, m in zip(shape, wanted, strict=True))


def _spread(rw: Rewriter, f: ir.Value, x: ir.Value) -> ir.Value:
    """A factor in the shape of a product."""
    return rw.create("graphc.second", [x, f], x.type) if _broadcasts(f, x) else f


class _Placed:
    """Products with what consists of elements of quotients."""

    def __init__(self, rw: Rewriter) -> None:
        self._rw = rw
        # By value, of what its elements are divided; nothing where some are not.
        self._known: dict[ir.Value, tuple[ir.Value, ...]] = {}
        self._busy = False

    def whole_product(self, f: ir.Value, x: ir.Value) -> ir.Value | None:
        """``f * x``, if all of x that is not 0 consists of quotients that f is a factor of.

        Nothing is made before that is known to be possible, so that a search takes no time in large graphs.
        """
        divisors = () if self._busy else self._divisors(x)
        apart = _rules_of(self._rw).algebra.are_apart
        if not divisors or (_broadcasts(f, x) and all(apart(f, w) for w in divisors)):
            return None
        self._busy = True
        found = self.product(_spread(self._rw, f, x), x)
        self._busy = False
        return found

    def _divisors(self, x: ir.Value) -> tuple[ir.Value, ...]:
        """Divisors with logarithms of a value of which each element is 0 or a quotient by one."""
        if x not in self._known:
            self._known[x] = self._find_divisors(x)
        return self._known[x]

    def _find_divisors(self, x: ir.Value) -> tuple[ir.Value, ...]:
        left = [x]
        seen: set[ir.Value] = set()
        divisors: list[ir.Value] = []
        while left:
            v = left.pop()
            op = self._rw.defs.get(v)
            if v in seen:
                continue
            if op is None or len(seen) > _MOST_PLACES or self._known.get(v) == ():
                return ()
            seen.add(v)
            inside = self._inside(op)
            own = [] if inside else _rules_of(self._rw).known_divisors(v)
            if not inside and not own:
                return ()
            left += [w for w in inside if not self._is_zero(w)]
            divisors += own
        return tuple(dict.fromkeys(divisors))

    def _inside(self, op: ir.Operation) -> list[ir.Value]:
        """The values of whose elements an operation places some."""
        operands, name = list(op.operands), op.name
        if name in _QUOTIENTS or not may_be_placed(self._rw, op.results[0]):
            placed = [operands[i] for i in _LINEAR.get(name, ()) if may_be_placed(self._rw, operands[i])]
            return placed[:1] if name in _QUOTIENTS else []
        if name in _LINEAR:
            return [operands[i] for i in _LINEAR[name]]
        return operands[:2] if name in UPDATES else operands[:1]

    def product(self, f: ir.Value, x: ir.Value) -> ir.Value | None:
        """``f * x``, of one shape; None if there is no quotient in x that f is a factor of."""
        op = self._rw.defs.get(x)
        if op is None:
            return None
        if may_be_placed(self._rw, x):
            found = self._moved(f, op)
            if found is not None or op.name not in _QUOTIENTS:
                return found
        found = _product(self._rw, f, x) if may_be_merged(self._rw, x) else None
        return None if found is None else self._rw.cast_static(found, x.type)

    def _moved(self, f: ir.Value, op: ir.Operation) -> ir.Value | None:
        name, operands = op.name, list(op.operands)
        if name in _LINEAR:
            return self._terms(f, op, _LINEAR[name])
        if name in UPDATES:
            return self._update(f, op)
        back = self._back(f, op)
        made = None if back is None else self.product(back, operands[0])
        return None if made is None else self._again(op, [made, *operands[1:]])

    def _terms(self, f: ir.Value, op: ir.Operation, linear: Sequence[int]) -> ir.Value | None:
        """Of what is linear in some of its operands together."""
        operands = list(op.operands)
        if any(operands[i].type != op.results[0].type and not self._is_zero(operands[i]) for i in linear):
            return None
        if op.name in _QUOTIENTS:  # of one of its operands
            linear = [i for i in linear if may_be_placed(self._rw, operands[i])][:1]
        found = {i: self.product(f, operands[i]) for i in linear if not self._is_zero(operands[i])}
        for i, made in found.items():
            if made is None:
                return None
            operands[i] = made
        return self._again(op, operands) if found else None

    def _update(self, f: ir.Value, op: ir.Operation) -> ir.Value | None:
        x, y, *rest = op.operands
        taken = where_updated(op, f, self._rw.create)
        base = x if self._is_zero(x) else self.product(f, x)
        new = self.product(taken, y)
        return None if new is None or base is None else self._again(op, [base, new, *rest])

    def _back(self, f: ir.Value, op: ir.Operation) -> ir.Value | None:
        """The values of f at the places of the elements that an operation takes; 0 elsewhere."""
        rw, x, name = self._rw, op.operands[0], op.name
        if name in MOVES_AXES:
            order = inverse_order(axes_order(op), len(x.type.shape))
            return dimshuffle(f, order, x.type, rw.create)
        if name in SAME_ARRAY or (name in REPEATS and not _broadcasts(x, f)):
            return rw.cast_static(f, x.type)
        rank = len(x.type.shape)
        if name in RESHAPES:
            return reshaped(f, [rw.dim(x, axis) for axis in range(rank)], x.type, rw.create)
        if name in TAKES_PART:
            return where_taken(op, rw.full_like(0, x), f, rw.create)
        return None

    def _is_zero(self, x: ir.Value) -> bool:
        number = self._rw.splat(x)
        return number is not None and number == 0

    def _again(self, op: ir.Operation, operands: list[ir.Value]) -> ir.Value:
        attributes = named_attributes(op)
        return self._rw.create(op.name, operands, op.results[0].type, **attributes)


_QUOTIENTS = ("graphc.mul", "graphc.true_div", "graphc.reciprocal")
# What is linear in these operands.
_LINEAR = {
    "graphc.neg": (0,),
    "graphc.add": (0, 1),
    "graphc.sub": (0, 1),
    "graphc.mul": (0, 1),
    "graphc.true_div": (0,),
    "graphc.switch": (1, 2),
}


class Stabilize(Pass):
    """Rewrites real floating-point expressions into numerically safer forms.

    | pattern | becomes | what was wrong |
    |---|---|---|
    | `exp(x) - 1`, `1 - exp(x)` | `expm1(x)`, `-expm1(x)` | all digits lost for small x |
    | `1 - sigmoid(x)`, `1 - ndtr(x)` | `sigmoid(-x)`, `ndtr(-x)` | 0 far out |
    | `1 - tanh(x)`, `1 + tanh(x)` | `2 sigmoid(-2 x)`, `2 sigmoid(2 x)` | 0 far out |
    | `1 - erf(x)`, `1 + erf(x)` | `erfc(x)`, `erfc(-x)` | 0 for x > 6; lost digits |
    | `1 / (1 + exp(-x))`, `exp(x) / (1 + exp(x))` | `sigmoid(x)` | nan or lost digits when exp overflows |
    | `exp(x) / (exp(x) + exp(y) + ...)` | `sigmoid(x - logaddexp(y, ...))` | as above |
    | `exp(x) / sum(exp(x))` | `softmax(x)` | nan when exp overflows |
    | `exp(x) * (w / sum(exp(x)))` | `softmax(x) * w` | as above; nan when all exp underflow |
    | `exp(x) * exp(y)`, `exp(x) / exp(y)` | `exp(x + y)`, `exp(x - y)` | 0 times infinity |
    | `exp(x) ** y`, `prod(exp(x))` | `exp(x * y)`, `exp(sum(x))` | as above |
    | `exp(x) * sigmoid(-x)` | `sigmoid(x)` | as above |
    | `sigmoid(x) / (1 - sigmoid(x))` | `exp(x)` | infinite for x > 37 |
    | `x ** 100 * x ** -100` | `x ** 0` | 0 times infinity, where x is neither |
    | `V / W`, `exp(x) * V` | `exp(log(V) - log(W))`, `exp(x + log(V))` | 0 / 0, 0 times infinity |
    | `V * put(zeros, i, w / W)` | `put(zeros, i, w * (V[i] / W))` | as above |
    | `exp(x) * sum(w / W)`, `exp(x)` a term of W | `sum(exp(log(w) - log(W)))`, shifted | 0 times infinity |
    | `i1(x) / i0(x)`, sums of `iv` over one, of `kv` | of `ive`, of `kve` | infinity over infinity |
    | `exp(x) / expm1(x)` | `-1 / expm1(-x)` | infinity over infinity |
    | `arctanh(tanh(x))`, `logit(sigmoid(x))`, ... | `x` | infinite far out |
    | `arcsinh(V)`, `arccosh(V)` | the logarithm of V, and a term that goes to log(2) | V overflows |
    | `sqrt(x**2 + y**2)`, `sqrt(1 + x**2)` | `hypot(x, y)`, `hypot(1, x)` | x**2 over- or underflows |
    | `log1p(x**2)` | `2 log1p(abs(x))` for x > 2**60 | x**2 overflows |
    | `log(V)`, `log1p(V)`, `log2(V)`, `log10(V)` | the logarithm of V | V over- or underflows |
    | `xlogy(x, V)`, `xlog1py(x, V)` | x times the logarithm | as above |
    | `log1mexp(-V)` | the logarithm of V where V underflows | -inf |

    V and W are expressions of exponentials; their logarithms are made of those of their parts:

    | V | its logarithm |
    |---|---|
    | `exp(x)`, `exp2(x)`, `c ** x`, constants | `x`, `x log(2)`, `x log(c)`, constants |
    | `sigmoid(x)`, `softmax(x)`, `ndtr(x)` | `-softplus(-x)`, `log_softmax(x)`, `log_ndtr(x)` |
    | `erfc(x)` | for x >= 1 `log(erfcx(x)) - x**2` |
    | `expm1(x)`, `sinh(x)`, `cosh(x)` | `x + log1mexp(-x)`, ... |
    | `iv(v, x)`, `kv(v, x)` and those of orders 0, 1 | `log(ive(v, x)) + abs(x)`, `log(kve(v, x)) - x` |
    | `softplus(x)`, `-log(1 - V)` | `x` and that of V where they underflow |
    | `tanh(V)`, `sin(V)`, `log1p(V)`, `erf(V)`, ... | that of V and of its factor where V underflows |
    | terms, `sum` | `logaddexp`, `softplus`; `m + log(sum(exp(x - m)))`, m the maximum |
    | matrix products | `m + n + log(exp(x - m) @ exp(y - n))`, m and n of rows and columns |
    | differences | `x + log1mexp(y - x)` |
    | `w * exp(x) + u * exp(y)`, w and u of unknown sign | `m + log(w * exp(x - m) + u * exp(y - m))` |
    | products, quotients, powers, roots, `prod` | sums, differences, multiples |
    | even powers, `abs` of what may be negative | multiples of the logarithm of its size |
    | `maximum`, `minimum`, `clip`, `max`, `min`, `switch`, casts | the same of the logarithms |
    | views, slices, elements at indices or masks | the same of the logarithm |
    | sorted, repeated, joined, assigned elements | the same of the logarithms |

    Of a sum of a positive number and what is at most 1, as `log(sigmoid(x) + 1e-9)`, nothing is gained, and
    it stays: it has one exponential and not two.
    Quotients are looked for behind slices, indices, sums, masks and broadcasts: so the chain rule makes
    derivatives of logarithms, and the factors stand at both ends.
    Exponentials of arrays that broadcast against each other stay factors: their product has more elements.
    So do divisors and factors of which one has more elements, where they are computed from different inputs,
    or different slices of one: these underflow together by chance only. An exponent that all terms of a sum
    have is a factor of the sum.
    Functions are found behind what only moves or selects elements. A constant counts as a number where it has
    one element; ones that broadcast keep their shape.
    In `log(sum(exp(x)))` the shift m is 0 where the maximum is infinite or NaN: rows of -inf give -inf, and
    +inf and NaN come through. The softmax of a quotient is `guarded` in the same way, so that +inf makes NaN
    only where it stands and 0 elsewhere, as the quotient has it. Exponential and sum are found as factors of
    one product, with views, broadcasts, signs and other factors between, as derivatives by the chain rule
    have them. Sums that are shifted by a maximum already are recognised and stay. Where the original is
    finite and accurate, results agree to a few units in the last place of what is exponentiated.

    The rules are those by which derivatives are taken (`graphc/ops/logarithms.py`): values and derivatives
    know the same expressions. The logarithm of a value is computed where the value was, outside of loops that
    only read it, and once for all that ask for it.

    Source: PyTensor's `tensor/rewriting/math.py` (names `log1p`, `local_log_sum_exp`, `local_1msigmoid`,
    ...); M. Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.
    """

    stage = "graph"
    lines = STABLE_FORMS

    def run(self, module: ir.Module) -> None:
        apply_rules(module, RULES, self.count)
