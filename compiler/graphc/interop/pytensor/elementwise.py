# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise ops: PyTensor's scalar ops, and what applies them to tensors and reduces with them.

``ScalarLoop``: PyTensor's loops for each element, inside elementwise ops.

Sums, products and quotients of PyTensor in the forms that its rewrites give them.

Log densities and their gradients need some of PyTensor's rewrites to stay finite where numbers get large.
These are made here as nodes are converted, which takes no time, in place of rewriting the graph:

- what is added and subtracted again cancels: ``y + a - 1 - y + 1`` is ``a``, and zeros are left out
  (`local_add_canonizer`);
- so does what is multiplied and divided by: ``g / f(x) * f(x)`` is ``g`` (`local_mul_canonizer`);
- ``(1 - a / s) * s`` is ``s - a`` (`local_greedy_distributor`);
- what all terms of a sum are divided by is divided by afterwards, and what masks all of them masks the sum
  (`local_sum_prod_of_mul_or_div`; other factors stay, as sums without them can overflow);
- zeros times or divided by anything are zeros, and a `switch` by a number, or between equal numbers, is a
  side of it, also of numbers that are computed of numbers: at an end of their support the derivatives of distribution functions
  have infinities that zeros outweigh (`constant_folding`, `local_mul_zero`, `local_zero_div`,
  `local_useless_switch`);
- logarithms, and powers that vary, of ``y / exp(x)`` are those of ``exp(log(y) - x)``, for data y above 0;
- zeros of a `switch` stay zeros when they are multiplied or divided, also by infinities: derivatives of the
  side that was not chosen do not count (`local_mul_switch_sink`, `local_div_switch_sink`). They stay zeros
  wherever they are moved, summed, or added to others before that.

All differ from NumPy where an infinity or a NaN cancels; PyTensor's rewrites do in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from pytensor.graph.basic import Apply
from pytensor.scalar.basic import Composite
from pytensor.scalar.loop import ScalarLoop

import graphc
import graphc.tensor as pt
from graphc.graph.basic import Constant
from graphc.interop.pytensor.convert import Converter, NoConversion, Values, converts, real_cast
from graphc.interop.pytensor.equal_rows import equal_row
from graphc.ops.advanced import Take
from graphc.ops.checks import CheckAndRaise
from graphc.ops.dimshuffle import DimShuffle
from graphc.ops.elementwise import Cast, Elementwise, masked
from graphc.ops.shaping import BroadcastTo, Reshape, SpecifyShape
from graphc.ops.subtensor import Subtensor

if TYPE_CHECKING:
    from pytensor.graph.op import Op

    from graphc.graph.basic import Variable
    from graphc.interop.pytensor.convert import Result


# Longer sums and products are taken as they stand.
_MOST_TERMS, _MOST_FACTORS = 8, 24

# What takes elements of a tensor, or gives it other axes, by sizes and positions.
_SELECTIONS = (Reshape, Subtensor, Take)

# A variable, and 1 or -1: added or subtracted, multiplied or divided by.
Term: TypeAlias = "tuple[Variable, int]"


def product(factors: list[Variable]) -> Variable:
    """The product of tensors of one dtype."""
    if factors[0].type.kind == "f" and any(_number(factor) == 0 for factor in factors):
        return _in_shape_of(reduce(pt.mul, factors), _constant(0, factors[0]))
    for i, factor in enumerate(factors):
        if len(factors) > 1 and _number(factor) == 1 and all(n == 1 for n in factor.type.shape):
            return product([*factors[:i], *factors[i + 1 :]])
        found = _masked(factor)
        if found is not None:
            condition, kept, first = found
            return masked(condition, product([*factors[:i], kept, *factors[i + 1 :]]), first)
    return _ratio([(factor, 1) for factor in factors])


def quotient(x: Variable, y: Variable) -> Variable:
    """``x / y`` of tensors of one dtype."""
    if x.type.kind == "f" and _number(x) == 0:
        return _in_shape_of(pt.true_div(x, y), _constant(0, x))
    found = _masked(x)
    if found is None:
        return _ratio([(x, 1), (y, -1)])
    condition, kept, first = found
    return masked(condition, quotient(kept, y), first)


def negative(x: Variable) -> Variable:
    """``-x``."""
    found = _masked(x)
    if found is None:
        return pt.neg(x)
    condition, kept, first = found
    return masked(condition, pt.neg(kept), first)


def total(terms: list[Term]) -> Variable:
    """The sum of tensors of one dtype, some of them negated."""
    plain = _sum(terms)
    if plain.type.kind != "f":
        return plain
    flat = [part for v, sign in terms for part in _parts(v, sign)]
    kept = _with_one_number(_cancelled(flat)) if len(flat) <= _MOST_TERMS else flat
    # Conditions have no slopes, but zeros of their shape among the derivatives, which would hide a mask.
    kept = [term for term in kept if _number(term[0]) != 0]
    if len(kept) == len(flat):
        return plain
    return _in_shape_of(plain, _sum(kept) if kept else _constant(0, plain))


def summed(x: Variable, axes: tuple[int, ...], reduce_sum: Callable[[Variable], Variable]) -> Variable:
    """The sum of a tensor of floats along axes.

    Args:
        x: the tensor.
        axes: those that the sum removes.
        reduce_sum: computes the sum as it stands.
    """
    found = _masked(x) if axes else None
    if found is not None:
        condition, kept, first = found
        one = _one_along(condition, axes)
        if one is not None:
            return masked(one, summed(_in_shape_of(x, kept), axes, reduce_sum), first)
    factors = _factors(x, 1) if axes and x.type.kind == "f" else []
    outside = [_outside(v, power, axes) for v, power in factors]
    rest = [factor for factor, found in zip(factors, outside, strict=True) if found is None]
    if len(rest) in (0, len(factors)) or len(factors) > _MOST_FACTORS:
        return reduce_sum(x)
    total = reduce_sum(_in_shape_of(x, _quotient(rest)))
    common = [
        (pt.cast(found, total.type.dtype), power)
        for found, (_, power) in zip(outside, factors, strict=True)
        if found is not None
    ]
    return _quotient([(total, 1), *common])


def _outside(v: Variable, power: int, axes: tuple[int, ...]) -> Variable | None:
    """A factor of all terms of a sum as one of the sum, None if it stays inside."""
    if power > 0 and not _is_mask(v):
        return None
    return _one_along(v, axes, rows=power > 0)


def _one_along(v: Variable, axes: tuple[int, ...], rows: bool = True) -> Variable | None:
    """The common value of all elements along axes, without these axes, if they are known to be equal.

    Args:
        v: the variable.
        axes: its axes.
        rows: whether equal rows of computed variables count.
    """
    v = _before_broadcast(v)
    if all(v.type.shape[axis] == 1 for axis in axes):
        return pt.dimshuffle(v, [axis for axis in range(v.type.ndim) if axis not in axes])
    if not rows or axes != tuple(range(len(axes))):
        return None
    row: Variable | None = v
    for _ in axes:
        row = None if row is None else equal_row(row)
    return row


def _is_mask(v: Variable) -> bool:
    """True if all elements are known to be 0 or 1."""
    while v.owner is not None and isinstance(v.owner.op, (Cast, DimShuffle, BroadcastTo)):
        v = v.owner.inputs[0]
        if v.type.dtype == "bool":
            return True
    return False


def _ratio(factors: list[Term]) -> Variable:
    plain = _quotient(factors)
    if plain.type.kind != "f":
        return plain
    flat = [factor for v, power in factors for factor in _factors(v, power)]
    if len(flat) > _MOST_FACTORS:
        return plain
    kept = _cancelled(flat)
    spread = _distributed(kept)
    if spread is not None:
        kept = spread
    elif len(kept) == len(flat):
        return plain
    return _in_shape_of(plain, _quotient(kept) if kept else _constant(1, plain))


def _distributed(factors: list[Term]) -> list[Term] | None:
    """The factors with a sum multiplied by what one of its terms is divided by."""
    for i, (v, power) in enumerate(factors):
        parts = _parts(v, 1) if power == 1 else []
        divisors = [w for part, _ in parts for w, power in _factors(part, 1) if power == -1]
        for j, (w, power) in enumerate(factors):
            if i != j and power == 1 and len(parts) > 1 and any(_same(w, divisor) for divisor in divisors):
                spread = total([(product([part, w]), sign) for part, sign in parts])
                return [*(factor for k, factor in enumerate(factors) if k not in (i, j)), (spread, 1)]
    return None


def _constant(number: float, like: Variable) -> Variable:
    return pt.constant(np.full([1] * like.type.ndim, number, like.type.dtype))


def _in_shape_of(plain: Variable, made: Variable) -> Variable:
    return _spread(plain, pt.cast(made, plain.type.dtype))


def _spread(plain: Variable, made: Variable) -> Variable:
    if made.type.shape == plain.type.shape:
        return made
    return pt.broadcast_to(made, [plain.shape[axis] for axis in range(plain.type.ndim)])


def _masked(v: Variable) -> tuple[Variable, Variable, bool] | None:
    """Condition and value of a switch between a value and 0, and whether the value comes first.

    A sum of such is one, too, if they have one condition, and so is what moves or selects elements of one.
    """
    node = v.owner
    if node is None:
        return None
    if isinstance(node.op, (Cast, DimShuffle, BroadcastTo, SpecifyShape, *_SELECTIONS)):
        x, *rest = node.inputs
        found = _masked(x)
        if found is None:
            return None
        condition, kept, first = found
        if isinstance(node.op, _SELECTIONS):
            condition = node.op(_spread(x, condition), *rest)
        elif isinstance(node.op, DimShuffle) or condition.type.ndim != v.type.ndim:
            condition = node.op(condition, *rest)
        if isinstance(node.op, (SpecifyShape, *_SELECTIONS)):
            kept = _spread(x, kept)
        return condition, node.op(kept, *rest), first
    if not isinstance(node.op, Elementwise):
        return None
    if node.op.name in ("add", "sub"):
        # The second term is seldom a long sum itself.
        other = _masked(node.inputs[1])
        found = _masked(node.inputs[0]) if other is not None else None
        if found is None or other is None or found[2] != other[2] or not _same(found[0], other[0]):
            return None
        return found[0], node.op(found[1], other[1]), found[2]
    if node.op.name != "switch":
        return None
    condition, x, y = node.inputs
    if _number(y) == 0:
        return condition, x, True
    return (condition, y, False) if _number(x) == 0 else None


def _number(v: Variable) -> np.generic | None:
    """The number that all elements of a variable are known to be, else None."""
    while (node := v.owner) is not None:
        op = node.op
        if isinstance(op, Elementwise) and op.name == "second":
            v = node.inputs[1]
        elif isinstance(op, (DimShuffle, BroadcastTo)) or (isinstance(op, Elementwise) and op.name == "cast"):
            v = node.inputs[0]
        else:
            return None
    return v.data.flat[0] if isinstance(v, Constant) and v.data.size == 1 else None


def _before_broadcast(v: Variable) -> Variable:
    while v.owner is not None and isinstance(v.owner.op, BroadcastTo):
        if v.owner.inputs[0].type.ndim != v.type.ndim:
            break
        v = v.owner.inputs[0]
    return v


def _float_node(v: Variable) -> tuple[str, Sequence[Variable]]:
    """The name of the operation that computes a float, and what it reads; "" for all but elementwise ones."""
    node = v.owner
    if node is None or not isinstance(node.op, Elementwise) or v.type.kind != "f":
        return "", ()
    return node.op.name, node.inputs


def _parts(v: Variable, sign: int) -> list[Term]:
    """The terms of a variable that is a sum itself, as far as they matter: what they broadcast to is lost."""
    v = _before_broadcast(v)
    name, inputs = _float_node(v)
    if name == "neg":
        return _parts(inputs[0], -sign)
    if name not in ("add", "sub"):
        return [(v, sign)]
    return [*_parts(inputs[0], sign), *_parts(inputs[1], sign if name == "add" else -sign)]


def _factors(v: Variable, power: int) -> list[Term]:
    """The factors of a variable that is a product or a quotient itself, in the same way."""
    v = _before_broadcast(v)
    name, inputs = _float_node(v)
    if name == "reciprocal":
        return _factors(inputs[0], -power)
    if name == "neg":
        return [(_constant(-1, v), 1), *_factors(inputs[0], power)]
    if name not in ("mul", "true_div"):
        return [(v, power)]
    return [*_factors(inputs[0], power), *_factors(inputs[1], power if name == "mul" else -power)]


def _same(v: Variable, w: Variable, depth: int = 6) -> bool:
    """True if two variables have one value: derivatives compute functions again, and each use casts."""
    if v is w:
        return True
    number = _number(v) if v.type == w.type else None
    if number is not None:
        return bool(number == _number(w))
    a, b = v.owner, w.owner
    if a is None or b is None:
        return a is b and isinstance(v, Constant) and v.equals(w)
    if not depth or not isinstance(a.op, (DimShuffle, Elementwise)) or a.op != b.op:
        return False
    pairs = zip(a.inputs, b.inputs, strict=True)
    return v.type.dtype == w.type.dtype and all(_same(x, y, depth - 1) for x, y in pairs)


def _cancelled(terms: list[Term]) -> list[Term]:
    """The terms less those that others take away."""
    kept: list[Term] = []
    for v, sign in terms:
        places = [i for i, (w, other) in enumerate(kept) if other == -sign and _same(v, w)]
        if places:
            del kept[places[0]]
        else:
            kept.append((v, sign))
    return kept


def _with_one_number(terms: list[Term]) -> list[Term]:
    """The terms of a sum; numbers of both signs are one number."""
    found = [_number(v) for v, _ in terms]
    numbers = {i: number for i, number in enumerate(found) if number is not None and np.isfinite(number)}
    values = [terms[i][1] * float(number) for i, number in numbers.items()]
    if len(values) < 2 or min(values) >= 0 or max(values) <= 0:
        return terms
    rest = [term for i, term in enumerate(terms) if i not in numbers]
    like = terms[min(numbers)][0]
    return [*rest, (_constant(sum(values), like), 1)] if sum(values) else rest


def _sum(terms: list[Term]) -> Variable:
    positive = [v for v, sign in terms if sign > 0]
    negative = [v for v, sign in terms if sign < 0]
    if not positive:
        return pt.neg(reduce(pt.add, negative))
    return reduce(pt.sub, negative, reduce(pt.add, positive))


def _quotient(factors: list[Term]) -> Variable:
    above = [v for v, power in factors if power > 0]
    below = [v for v, power in factors if power < 0]
    if not below:
        return reduce(pt.mul, above)
    divisor = reduce(pt.mul, below)
    return pt.true_div(reduce(pt.mul, above), divisor) if above else pt.reciprocal(divisor)


def run_elements(op: Op, inputs: Values, c: Converter) -> Values:
    """All elements at once: an element whose loop has ended keeps its values.

    Args:
        op: a ``ScalarLoop``: iterations, states and constants in, last states out, and for a loop with a
            condition whether it ended by that.
        inputs: tensors of equal rank that broadcast.
        c: for the inner graph.
    """
    steps, *rest = inputs
    n_states = op.nout - bool(op.is_while)
    steps, *rest = pt.broadcast_arrays(pt.cast(steps, "int64"), *rest)
    states, constants = rest[:n_states], rest[n_states:]
    # PyTensor says that a loop without an iteration has ended.
    ended = pt.ge(0, steps) if op.is_while else pt.zeros_like(steps, dtype="bool")

    def body(carried: Any) -> Any:
        i, ended, *states = carried
        outputs = c.inner(op.fgraph.inputs, op.fgraph.outputs, [*states, *constants])
        running = pt.lt(i, steps) & ~ended
        new = [
            pt.cast(pt.switch(running, new, old), old.type.dtype)
            for new, old in zip(outputs[:n_states], states, strict=True)
        ]
        if op.is_while:
            ended = pt.switch(running, pt.cast(outputs[n_states], "bool"), ended)
        return (i + 1, ended, *new)

    def unfinished(carried: Any) -> Any:
        return pt.any(pt.lt(carried[0], steps) & ~carried[1])

    _, ended, *last = graphc.while_loop(unfinished, body, (pt.constant(np.int64(0)), ended, *states))
    return [*last, ended] if op.is_while else last


# Scalar ops of PyTensor and the functions of the same meaning.
FUNCTIONS = {
    "LT": "lt", "GT": "gt", "LE": "le", "GE": "ge", "EQ": "eq", "NEQ": "neq", "IsNan": "isnan", "IsInf": "isinf",
    "OR": "bitwise_or", "XOR": "bitwise_xor", "AND": "bitwise_and", "Invert": "invert", "Maximum": "maximum",
    "Minimum": "minimum", "IntDiv": "int_div", "Mod": "mod",
    "Identity": "tensor_copy", "Abs": "abs", "Sign": "sign", "Ceil": "ceil", "Floor": "floor",
    "Trunc": "trunc", "RoundHalfToEven": "round", "RoundHalfAwayFromZero": "round_half_away_from_zero",
    "Reciprocal": "reciprocal", "Log2": "log2", "Log10": "log10", "Log1p": "log1p",
    "Exp": "exp", "Exp2": "exp2", "Expm1": "expm1", "Sqr": "sqr", "Sqrt": "sqrt", "Deg2Rad": "deg2rad",
    "Rad2Deg": "rad2deg", "Cos": "cos", "ArcCos": "arccos", "Sin": "sin", "ArcSin": "arcsin", "Tan": "tan",
    "ArcTan": "arctan", "ArcTan2": "arctan2", "Cosh": "cosh", "ArcCosh": "arccosh", "Sinh": "sinh",
    "ArcSinh": "arcsinh", "Tanh": "tanh", "ArcTanh": "arctanh", "Real": "real", "Imag": "imag", "Angle": "angle",
    "Complex": "complex", "Conj": "conj", "ComplexFromPolar": "complex_from_polar", "Erf": "erf", "Erfc": "erfc",
    "Erfcx": "erfcx", "Erfinv": "erfinv", "Erfcinv": "erfcinv", "Owens_t": "owens_t", "Gamma": "gamma",
    "GammaLn": "gammaln", "Psi": "digamma", "TriGamma": "trigamma", "PolyGamma": "polygamma",
    "GammaInc": "gammainc", "GammaIncC": "gammaincc", "GammaIncInv": "gammaincinv", "GammaIncCInv": "gammainccinv",
    "GammaU": "gammau", "GammaL": "gammal", "Jv": "jv", "J1": "j1", "J0": "j0", "Iv": "iv", "I1": "i1", "I0": "i0",
    "Ive": "ive", "Kve": "kve", "Sigmoid": "sigmoid", "Softplus": "softplus", "Log1mexp": "log1mexp",
    "BetaInc": "betainc", "BetaIncInv": "betaincinv", "Hyp2F1": "hyp2f1", "XlogY0": "xlogy", "XLogY": "xlogy",
    "XLog1PY": "xlog1py", "I0e": "i0e", "I1e": "i1e", "NdtriExp": "ndtri_exp",
}  # fmt: skip
# Ops whose operands keep their dtypes: the result's says nothing about how to compute.
_OWN_DTYPES = frozenset(
    ("LT", "GT", "LE", "GE", "EQ", "NEQ", "IsNan", "IsInf", "Identity", "Abs", "Real", "Imag", "Angle")
)
_REDUCTIONS = {"Maximum": "max", "Minimum": "min", "AND": "all", "OR": "any"}


def apply_scalar(op: Op, inputs: Values, dtypes: list[str], c: Converter) -> Values:
    """The results of a scalar op for each element.

    Args:
        op: PyTensor's scalar op.
        inputs: tensors that broadcast.
        dtypes: of the results.
        c: for inner graphs.

    Raises:
        NoConversion: graphc has no such function.
    """
    name = type(op).__name__
    if isinstance(op, Composite):
        return c.inner(op.fgraph.inputs, op.fgraph.outputs, inputs)
    if isinstance(op, ScalarLoop):
        return run_elements(op, inputs, c)
    if name == "Cast":
        return [real_cast(inputs[0], op.o_type.dtype)]
    if name in SPECIAL:
        return [SPECIAL[name](inputs, dtypes[0])]
    function = getattr(pt, FUNCTIONS.get(name, ""), None)
    if function is None:
        raise NoConversion(f"graphc has no function for the scalar op {type(op).__module__}.{name}")
    given = _promoted(name, inputs, dtypes[0])
    try:
        return [function(*given)]
    except TypeError as error:  # SciPy, and so PyTensor in Python, has more functions of complex numbers
        if any(x.type.dtype.startswith("complex") for x in given):
            raise NoConversion(str(error)) from error
        raise


def _promoted(name: str, inputs: Values, dtype: str) -> Values:
    """PyTensor computes functions of integers in the dtype of their result; the order of polygamma stays."""
    if name in _OWN_DTYPES or np.dtype(dtype).kind not in "fc":
        return inputs
    return [
        pt.cast(x, dtype) if x.type.kind in "iub" and not (name == "PolyGamma" and i == 0) else x
        for i, x in enumerate(inputs)
    ]


def _clip(inputs: Values, dtype: str) -> Variable:
    """NaN bounds let values through, and the lower bound wins, as in PyTensor's code."""
    x, low, high = (pt.cast(value, dtype) for value in inputs)
    return pt.switch(pt.lt(x, low), low, pt.switch(pt.gt(x, high), high, x))


def _times_but_zeros(inputs: Values, dtype: str) -> Variable:
    x, y = (pt.cast(value, dtype) for value in inputs)
    return pt.switch(pt.eq(x, 0), y, pt.switch(pt.eq(y, 0), x, x * y))


def _chosen(inputs: Values, dtype: str) -> Variable:
    condition, *sides = inputs[0], *(pt.cast(x, dtype) for x in inputs[1:])
    plain, number = pt.switch(condition, *sides), _number(condition)
    numbers = [_number(x) for x in sides]
    if number is None and (None in numbers or numbers[0] != numbers[1]):
        return plain
    return _in_shape_of(plain, sides[1 if number == 0 else 0])


def _filled(inputs: Values, dtype: str) -> Variable:
    """PyTensor reads of the first operand its shape alone, so that no check is made for it."""
    like, value = inputs
    while like.owner is not None and isinstance(like.owner.op, CheckAndRaise):
        like = like.owner.inputs[0]
    return value if value.type.shape == like.type.shape == () else pt.second(like, value)


def _power(inputs: Values, dtype: str) -> Variable:
    x, y = _promoted("Pow", inputs, dtype)
    log = _logarithm(x) if _number(y) is None else None  # squares are products
    return pt.power(x if log is None else pt.exp(log), y)


def _log(inputs: Values, dtype: str) -> Variable:
    (x,) = _promoted("Log", inputs, dtype)
    log = _logarithm(x)
    return pt.log(x) if log is None else log


def _logarithm(x: Variable) -> Variable | None:
    """Of a product of exponentials and of data above 0: code does not know the signs of data."""
    factors = _factors(x, 1)
    logs = [(log, power) for v, power in factors if (log := _factor_logarithm(v)) is not None]
    known = len(logs) == len(factors) and not all(isinstance(v, Constant) for v, _ in factors)
    return _in_shape_of(x, _sum(logs)) if known else None


def _factor_logarithm(v: Variable) -> Variable | None:
    if isinstance(v, Constant):
        positive = v.type.kind == "f" and np.all((v.data > 0) & (v.data < np.inf))
        return pt.constant(np.log(v.data)) if positive else None
    if v.owner is not None and isinstance(v.owner.op, DimShuffle):
        log = _factor_logarithm(v.owner.inputs[0])
        return None if log is None else v.owner.op(log)
    name, operands = _float_node(v)
    return operands[0] if name == "exp" else None


SPECIAL = {
    "Pow": _power,
    "Log": _log,
    "Add": lambda inputs, dtype: total([(pt.cast(x, dtype), 1) for x in inputs]),
    "Mul": lambda inputs, dtype: product([pt.cast(x, dtype) for x in inputs]),
    "TrueDiv": lambda inputs, dtype: quotient(*(pt.cast(x, dtype) for x in inputs)),
    "Switch": _chosen,
    "Second": _filled,
    "Clip": _clip,
    "Sub": lambda inputs, dtype: total([(pt.cast(x, dtype), (-1) ** i) for i, x in enumerate(inputs)]),
    "Neg": lambda inputs, dtype: negative(pt.cast(inputs[0], dtype)),
    "MulWithoutZeros": _times_but_zeros,
    "XlogX": lambda inputs, dtype: pt.xlogy(pt.cast(inputs[0], dtype), pt.cast(inputs[0], dtype)),
}


@converts("Elemwise")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return apply_scalar(op.scalar_op, inputs, [output.type.dtype for output in node.outputs], c)


@converts("ScalarOp", module="pytensor.scalar")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return apply_scalar(op, inputs, [output.type.dtype for output in node.outputs], c)


@converts("CAReduce")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    (x,) = inputs
    # NumPy reduces a scalar along an axis, too.
    axis = tuple(range(x.type.ndim)) if op.axis is None or x.type.ndim == 0 else tuple(op.axis)
    dtype = node.outputs[0].type.dtype
    accumulated = getattr(op, "acc_dtype", None) or dtype
    name = type(op.scalar_op).__name__
    if type(op).__name__ == "ProdWithoutZeros":
        x, name = pt.switch(pt.eq(x, 0), pt.cast(1, x.type.dtype), x), "Mul"
    if name in ("Add", "Mul"):
        kept = accumulated if accumulated.startswith("complex") else dtype

        def reduced(v: Variable) -> Variable:
            return (pt.sum if name == "Add" else pt.prod)(v, axis=axis, dtype=kept, acc_dtype=accumulated)

        axes = tuple(i % x.type.ndim for i in axis) if x.type.ndim else ()
        return real_cast(summed(x, axes, reduced) if name == "Add" else reduced(x), dtype)
    if name in ("AND", "OR") and x.type.dtype != "bool":
        raise NoConversion(f"a reduction by the bitwise {name} of {x.type.dtype}")
    if name not in _REDUCTIONS:
        raise NoConversion(f"a reduction by {name}")
    return getattr(pt, _REDUCTIONS[name])(x, axis=axis)


@converts("DimShuffle")
def _(op: Op, node: Apply, inputs: Values, c: Converter) -> Result:
    return pt.dimshuffle(inputs[0], *op.new_order)
