# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Elementwise``: operations that compute each element of the result from the elements at the same place.

`declare` makes an operation with the signature of its builder; `register` gives it its row. So builders lie
below the rows, whose derivatives are made of builders of any other row.

Only dimensions whose size is statically 1 broadcast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from inspect import Signature, signature
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, ParamSpec, cast

import numpy as np

from graphc.graph.basic import (
    Apply,
    Constant,
    Flags,
    Maybe,
    Variable,
    Variables,
    describe,
    only,
    reads_of,
    remember,
)
from graphc.graph.op import Op
from graphc.graph.tensor.convert import as_tensor_variable, constant, is_weak_scalar
from graphc.graph.tensor.type import TensorType
from graphc.graph.undefined import grad_not_implemented, is_discrete
from graphc.ops.dimshuffle import DimShuffle
from graphc_runtime.record import record

if TYPE_CHECKING:
    from graphc.emit.emitter import Emitter
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


Shape = tuple[int | None, ...]


def broadcast_static(shapes: Sequence[Shape], what: str, operands: Sequence[Variable] = ()) -> Shape:
    """The static shape of the result of operands of equal rank.

    Args:
        shapes: static shapes, None for an unknown size.
        what: name of the operation, for the message.
        operands: the variables, for the message.

    Raises:
        ValueError: two known sizes differ and neither is 1.
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    result: list[int | None] = []
    for axis, sizes in enumerate(zip(*shapes, strict=True)):
        known = {size for size in sizes if size is not None and size != 1}
        if len(known) > 1:
            names = ", ".join(f"{x} of shape {x.type.shape}" for x in operands)
            raise ValueError(
                f"the operands of {what} have sizes {' and '.join(map(str, sorted(known)))} in dimension "
                f"{axis}, which do not broadcast: {names or list(shapes)}"
            )
        result.append(known.pop() if known else (None if None in sizes else 1))
    return tuple(result)


def check_broadcast(node: Apply, values: Sequence[np.ndarray]) -> None:
    """Check at run time that sizes which are not statically 1 agree.

    Raises:
        ValueError: they differ; also when one is 1 only at run time, which does not broadcast.
    """
    if len(values) == 1:
        return
    types = [x.type for x in node.inputs]
    for axis in range(types[0].ndim):
        sizes = {value.shape[axis] for value, t in zip(values, types, strict=True) if t.shape[axis] != 1}
        if len(sizes) > 1:
            given = ", ".join(f"{x} {value.shape}" for x, value in zip(node.inputs, values, strict=True))
            note = "; a size that is 1 only at run time does not broadcast" if 1 in sizes else ""
            raise ValueError(
                f"the operands of {node.op}{describe(node.location)} have different sizes in dimension "
                f"{axis}: {given}{note}"
            )


def unbroadcast(g: Variable, x: Variable) -> Variable:
    """Sum a cotangent over the dimensions in which ``x`` was broadcast."""
    if not hasattr(g.type, "shape"):
        return g
    axes = tuple(
        axis
        for axis, (mine, theirs) in enumerate(zip(x.type.shape, g.type.shape, strict=True))
        if mine == 1 and theirs != 1
    )
    return g.sum(axis=axes, keepdims=True) if axes else g


# What a dtype rule gets for each operand: a NumPy dtype, or int, float or complex for a Python number.
OperandType = Any
DtypeRule = Callable[[tuple[OperandType, ...]], tuple[np.dtype, ...]]
Partial = Callable[..., Variable | None]
_HALF = np.dtype("float16")


@record(frozen=True)
class Undefined:
    """The rule of an operand in which a row has no derivative; ``why`` is for the error message."""

    why: str


@record(frozen=True)
class Row:
    """All there is to know about one elementwise operation.

    Attributes:
        name: name of the row, of the dialect operation ``graphc.<name>``, and of the op.
        reference: the NumPy function that defines the values.
        doc: one sentence.
        scalar: lowering: takes a `ScalarBuilder` and a `Scalar` for each operand, returns a `Scalar`; by
            default the builder's method of the row's name.
        grad: for each operand, a function of ``(*inputs, out, g)`` that returns the cotangent of that
            operand, or None where it is zero, or `Undefined`. The rules transpose without conjugation. None
            for the whole: see ``absent``.
        absent: why there is no gradient.
        dtypes: dtypes of the loop, operands then result; by default those that the reference, a ufunc,
            resolves to.
        holomorphic: whether ``grad`` is the complex derivative, so that tangents pass through the same
            formula.
        folds: whether the public function takes any number of operands, applied from the left.
        special: a function of the operands that returns what the public function makes of them instead of a
            node of the row, or None.
        compares: whether Python integers beyond the range of the other operand's dtype are compared exactly.
        cheap: whether computing it again takes no longer than reading its result from memory.
    """

    name: str
    reference: Callable[..., np.ndarray | np.generic]
    doc: str
    scalar: Callable[..., Any]
    grad: tuple[Partial | Undefined | None, ...] | None = None
    absent: str | None = None
    dtypes: DtypeRule | None = None
    nin: int = 0
    holomorphic: bool = True
    folds: bool = False
    compares: bool = False
    cheap: bool = False
    special: Callable[..., TensorVariable | None] | None = None

    @property
    def arity(self) -> int:
        """Number of operands."""
        return self.nin or len(self.grad or ()) or self.reference.nin  # type: ignore[attr-defined]

    def resolve(self, types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
        """Dtypes of the loop for the given operands.

        Raises:
            TypeError: NumPy has no loop for them.
        """
        if self.dtypes is not None:
            return self.dtypes(types)
        return ufunc_rule(self.reference)(types)


ROWS: dict[str, Row] = {}
OPS: dict[str, Elementwise] = {}


def ufunc_rule(ufunc: Any) -> DtypeRule:
    """The dtype rule of a NumPy ufunc: promotion of NumPy 2 (NEP 50), but float32 where NumPy's loop of small
    integers is float16: ``exp(int8(12))`` is no infinity. Float16 is only what float16 was given for.
    """

    def rule(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
        empty = (None,) * ufunc.nout
        found = tuple(ufunc.resolve_dtypes((*types, *empty)))
        if _HALF not in found or _HALF in types:
            return found
        wider = [np.dtype("float32") if loop == _HALF else t for t, loop in zip(types, found, strict=False)]
        return tuple(ufunc.resolve_dtypes((*wider, *empty)))

    return rule


P = ParamSpec("P")


@cache
def _signature(form: Callable[..., TensorVariable]) -> Signature:
    return signature(form)


def declare(name: str, form: Callable[P, TensorVariable]) -> Callable[P, TensorVariable]:
    """The operation of a row, before there is a row.

    Args:
        name: of the row.
        form: a function whose parameters are the operands; it is not called.

    Returns:
        The `Elementwise`, as what it is to its callers: a function of operands.
    """
    op = OPS[name] = Elementwise(name)
    op.__signature__, op.__module__ = _signature(form), form.__module__
    return cast("Callable[P, TensorVariable]", op)


def register(
    name: str,
    reference: Callable[..., np.ndarray | np.generic],
    doc: str,
    scalar: Callable[..., Any] | None = None,
    **rules: Any,
) -> Elementwise:
    """Add a row to the table; arguments as the fields of `Row`."""
    if name in ROWS:
        raise ValueError(f"there are two elementwise rows named {name}")
    ROWS[name] = Row(name, reference, doc, scalar or _of_builder(name), **rules)
    op = OPS[name] = OPS.get(name) or Elementwise(name)
    op.row, op.__doc__ = ROWS[name], doc
    return op


def _of_builder(name: str) -> Callable[..., Any]:
    method = f"{name}_" if iskeyword(name) else name
    return lambda b, *operands: getattr(b, method)(*operands)


def _reason(name: str, types: tuple[OperandType, ...], error: TypeError) -> str:
    """The operands that an operation has, in place of NumPy's sentence about its casting rules."""
    text = str(error).splitlines()[0]
    if not text.startswith("ufunc "):
        return text
    if name in ("and", "or", "xor", "invert"):
        return "it takes booleans or integers; conditions are joined as in (x > 0) & (y > 0)"
    if any(np.dtype(each).kind == "c" for each in types):
        return "it takes real numbers; x.real, x.imag and abs(x) are some"
    return "it takes integers; x.astype('int64') makes them"


@lru_cache(maxsize=4096)
def _resolve(name: str, types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    try:
        resolved = ROWS[name].resolve(types)
    except TypeError as error:
        given = ", ".join(t.__name__ if isinstance(t, type) else str(t) for t in types)
        raise TypeError(
            f"{name} is not defined for operands of dtype {given}: {_reason(name, types, error)}"
        ) from None
    for dtype in resolved:
        if dtype.kind in "gG" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
            raise TypeError(f"{name} of {types} needs the unsupported dtype {dtype}")
    return resolved


def _find(name: str) -> Elementwise:
    return OPS[name]


class Elementwise(Op):
    """An elementwise operation of the table.

    The operands of its nodes have equal ranks and exactly the dtypes of the loop; `make_node` inserts the
    casts
    and dimension shuffles. Only dimensions of static size 1 broadcast.
    """

    takes_as_stored = False

    __props__ = ("name",)
    row: Row
    __signature__: Signature | None = None

    def __init__(self, name: str) -> None:
        self.name = self.__name__ = name

    def __reduce__(self) -> tuple[object, ...]:
        return _find, (self.name,)

    def clone(self) -> Op:
        return self

    def __str__(self) -> str:
        return self.name

    def __call__(self, *inputs: TensorLike, **kwargs: Any) -> TensorVariable:
        """Apply to operands, which are array-like; operations such as add take any number of them, of which
        one is the result itself.
        """
        if self.__signature__ is not None and (kwargs or self.row.special is not None):
            named = {key: kwargs.pop(key) for key in [*kwargs] if key not in ("name", "return_list")}
            try:
                bound = self.__signature__.bind(*inputs, **named)
            except TypeError as error:
                operands = ", ".join(self.__signature__.parameters)
                raise TypeError(f"{self.name} takes the operands {operands}: {error}") from None
            bound.apply_defaults()
            inputs = bound.args
        if self.row.special is not None:
            found = self.row.special(*inputs)
            if found is not None:
                return found
        if self.row.folds and len(inputs) == 1 and not kwargs:
            return as_tensor_variable(inputs[0])
        if self.row.folds and len(inputs) > 2:
            result = inputs[0]
            for x in inputs[1:-1]:
                result = super().__call__(result, x)
            return super().__call__(result, inputs[-1], **kwargs)
        return super().__call__(*inputs, **kwargs)

    def make_node(self, *inputs: TensorLike) -> Apply:
        if len(inputs) != self.row.arity:
            raise TypeError(f"{self.name} takes {self.row.arity} operands, got {len(inputs)}")
        operands = weak_operands(inputs)
        if self.row.compares:
            least = 0 if any(isinstance(x, Variable) and x.type.kind == "u" for x in operands) else -128
            operands = [constant(x) if type(x) is int and not least <= x < 128 else x for x in operands]
        dtypes = _resolve(
            self.name, tuple(x.type.numpy_dtype if isinstance(x, Variable) else type(x) for x in operands)
        )
        return self.apply(
            [to_dtype(x, dtype) for x, dtype in zip(operands, dtypes, strict=False)], dtypes[-1]
        )

    def apply(self, operands: Sequence[Variable], dtype: np.dtype) -> Apply:
        """The node for operands that already have the dtypes of the loop."""
        rank = max(x.type.ndim for x in operands)
        aligned = [x if x.type.ndim == rank else expand_left(x, rank) for x in operands]
        shape = broadcast_static([x.type.shape for x in aligned], self.name, aligned)
        return Apply(self, aligned, [TensorType(dtype, shape).make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        check_broadcast(node, inputs)
        with np.errstate(all="ignore"):
            value = self.row.reference(*inputs)
        output_storage[0][0] = np.asarray(value, dtype=node.outputs[0].type.numpy_dtype)

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (out,), g = outputs, only(cotangents)
        terms: list[Variable | None] = []
        for i, x in enumerate(inputs):
            partial = None if is_discrete(x) or isinstance(x, Constant) else self._partial(i, x)
            pull = None if partial is None else functools.partial(partial, *inputs, out)
            terms.append(None if pull is None else pulled(g, pull, x))
        return terms

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        (out,) = outputs
        if not self.row.holomorphic and any(x.type.kind == "c" for x in (*inputs, out)):
            return NotImplemented
        total = None
        for i, (x, t) in enumerate(zip(inputs, tangents, strict=True)):
            partial = None if t is None or is_discrete(x) else self._partial(i, x)
            term = None if partial is None else partial(*inputs, out, t)
            if term is not None:
                if not isinstance(term.type, TensorType):
                    return [term]
                total = term if total is None else total + term
        if total is not None and total.type.broadcastable != out.type.broadcastable:
            total = OPS["second"](out, total)
        return [total]

    def _partial(self, i: int, x: Variable) -> Partial | None:
        """The rule for operand i; None where the derivative is zero."""
        rule = Undefined(self.row.absent or "") if self.row.grad is None else self.row.grad[i]
        if isinstance(rule, Undefined):
            why = rule.why
            return lambda *_: grad_not_implemented(self, i, x, why)
        return rule

    def batch(self, node: Apply, inputs: Variables, batched: Flags, size: Variable | int) -> list[Variable]:
        """Operands without the axis are of equal rank and get a leading 1."""
        return self.apply(inputs, node.outputs[0].type.numpy_dtype).outputs

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        types = [e.type_of(x) for x in node.inputs]
        return [e.op(f"graphc.{self.name}", operands, types, e.type_of(node.outputs[0]))]


def converted(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`astype`, dropping imaginary parts silently.

    Floats go to uint32 through int64, as in compiled code: out of range NumPy's results depend on the
    instructions that the machine has.
    """
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    if x.dtype.kind == "f" and dtype == np.uint32:
        x = x.astype(np.int64)
    return x.astype(dtype)


class Cast(Elementwise):
    """Conversion of the elements to another dtype, as NumPy's ``astype``.

    To and from bfloat16 it goes by way of float32, as in `ml_dtypes`.
    """

    __props__ = ("dtype",)
    takes_as_stored = True

    def __init__(self, dtype: str) -> None:
        super().__init__("cast")
        self.row = Row(
            "cast",
            lambda x: converted(x, np.dtype(dtype)),
            "Conversion to another dtype.",
            lambda b, x: b.cast(x, dtype),
            nin=1,
            cheap=True,
        )
        self.__doc__ = self.row.doc
        self.dtype = dtype

    def __reduce__(self) -> tuple[object, ...]:
        return Cast, (self.dtype,)

    def __str__(self) -> str:
        return f"cast{{{self.dtype}}}"

    def make_node(self, *inputs: TensorLike) -> Apply:
        (x,) = inputs
        x = as_tensor_variable(x)
        if x.type.kind == "c" and np.dtype(self.dtype).kind not in "cb":
            raise TypeError(
                f"a cast from {x.type.dtype} to {self.dtype} would drop the imaginary part"
                f"{describe(x.location)}; take real(x), imag(x) or abs(x) first"
            )
        if "bfloat16" in (self.dtype, x.type.dtype) and self.dtype != x.type.dtype:
            x = cast_to(x, "bfloat16" if self.dtype == "float32" else "float32")
        return Apply(self, [x], [TensorType(self.dtype, x.type.shape).make_variable()])

    def emit(self, node: Apply, operands: Sequence[str], e: Emitter) -> list[str]:
        (x,) = node.inputs
        name = "cast"
        if x.type.dtype == "bfloat16" != self.dtype:
            name = "bfloat16_value"
        elif self.dtype == "bfloat16" != x.type.dtype:
            name = "bfloat16_bits"
        return [e.op(f"graphc.{name}", operands, [e.type_of(x)], e.type_of(node.outputs[0]))]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        (x,), g = inputs, only(cotangents)
        if is_discrete(x):
            # The derivative with respect to an integer is that of the function continued to the reals.
            return [g]
        if g.type.kind == "c" and x.type.kind != "c":
            g = OPS["real"](g)
        return [cast_to(g, x.type.dtype)]

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return [cast_to(only(tangents), self.dtype)]


def pulled(
    g: Variable,
    pull: Callable[[Variable], Variable | None],
    x: Variable | None = None,
    along: Sequence[int] = (),
) -> Variable | None:
    """A term of an operand from the cotangent of a result, of which each element is read where it is.

    The zeros of a mask, as those of what `switch` did not choose, are exact: nothing depends on these
    elements. They stay zeros whatever the derivatives there are, infinite or NaN, so the mask is put
    around the product and not into it. It moves on with each product and joins those of other terms
    (`unmasked`), and so is computed once, where the elements leave their places.

    Args:
        g: the cotangent.
        pull: makes the term, linear in the cotangent.
        x: the operand, if it may be broadcast.
        along: axes along which an element of the term depends on others of the cotangent; a mask that differs
            there stays inside.
    """
    found = unmasked(g)
    if found is not None and any(found[0].type.shape[axis] != 1 for axis in along):
        found = None
    if found is None:
        term = pull(g)
        return term if term is None or x is None else unbroadcast(term, x)
    condition, kept, first = found
    inside = None
    if x is not None:
        sizes = zip(condition.type.shape, g.type.shape, x.type.shape, strict=True)
        if any(mine != 1 for mine, size, wanted in sizes if wanted == 1 != size):
            inside, x = x, None
    term = pulled(kept, pull, x, along)
    if term is None or not isinstance(term.type, TensorType):
        return term
    term = g if term is kept else masked(condition, term, first)
    return term if inside is None else unbroadcast(term, inside)


def masked(condition: Variable, kept: Variable, first: bool) -> TensorVariable:
    """A value where a condition is ``first``, 0 elsewhere."""
    zero = constant(np.zeros((), kept.type.numpy_dtype))
    return OPS["switch"](condition, *((kept, zero) if first else (zero, kept)))


def unmasked(g: Variable) -> tuple[Variable, Variable, bool] | None:
    """The parts of what `masked` makes, also of views of it and of sums of terms with one condition."""
    node = g.owner
    if node is None:
        return None
    op: Any = node.op
    if isinstance(op, Elementwise):
        return _unmasked_elements(op, node)
    if op.selects != 1 or not op.view_map:
        return None
    x, *rest = node.inputs
    found = unmasked(x)
    if found is None:
        return None
    condition, kept, first = found
    if not isinstance(op, DimShuffle):
        condition, kept = (_in_full(x, v) for v in (condition, kept))
    return op(condition, *rest), op(kept, *rest), first


# What rules of derivatives do to a cotangent besides multiplying it.
_KEEP_ZEROS = frozenset(("cast", "second", "add", "neg", "real", "imag", "conj", "identity"))


def _unmasked_elements(op: Elementwise, node: Apply) -> tuple[Variable, Variable, bool] | None:
    if op.name == "switch":
        condition, x, y = node.inputs
        if _is_zero(y):
            return condition, x, True
        return (condition, y, False) if _is_zero(x) else None
    if op.name not in _KEEP_ZEROS or node.outputs[0].type.kind not in "fc":
        return None
    *before, last = node.inputs
    found = unmasked(last)
    other = unmasked(before[0]) if op.name == "add" and found is not None else None
    if found is None:
        return None
    condition, kept, first = found
    if op.name == "add" and (other is None or other[2] != first or not _is_same(other[0], condition)):
        return None
    return condition, op(*([other[1]] if other is not None else before), kept), first


def _is_same(v: Variable, w: Variable) -> bool:
    """True if two variables are one, which may have been given axes for each use."""
    return v is w or _without_axes(v) == _without_axes(w)


def _without_axes(v: Variable) -> tuple[Variable, tuple[int | str, ...]]:
    """The variable whose elements a variable has, and the places of its axes, "x" for those of size 1."""
    order: list[int | str] = list(range(v.type.ndim))
    while v.owner is not None and isinstance(v.owner.op, DimShuffle):
        inner = v.owner.op.new_order
        order = [inner[axis] if isinstance(axis, int) else axis for axis in order]
        v = v.owner.inputs[0]
    return v, tuple("x" if isinstance(a, int) and v.type.shape[a] == 1 else a for a in order)


def _in_full(x: Variable, v: Variable) -> Variable:
    """A value in the shape of another that it broadcasts to."""
    pairs = zip(v.type.shape, x.type.shape, strict=True)
    return v if all(mine == theirs or mine != 1 for mine, theirs in pairs) else OPS["second"](x, v)


def _is_zero(v: Variable) -> bool:
    while v.owner is not None and isinstance(v.owner.op, DimShuffle):
        v = v.owner.inputs[0]
    return isinstance(v, Constant) and v.data.size == 1 and not v.data.any()


def is_complex(x: Variable) -> bool:
    """True if the dtype is complex."""
    return bool(x.type.kind == "c")


def cast_to(x: Any, dtype: str) -> TensorVariable:
    """``x`` converted to a dtype; itself when it has it, a constant when it is a small one."""
    if x.type.dtype == dtype:
        return x
    if (
        isinstance(x, Constant)
        and x.data.size <= 16
        and (x.data.dtype.kind != "c" or np.dtype(dtype).kind == "c")
    ):
        with np.errstate(all="ignore"):
            return remember(constant(converted(x.data, np.dtype(dtype))), *reads_of(x))
    return Cast(dtype)(x)


def floating(x: TensorLike) -> TensorVariable:
    """``x`` as a tensor variable of floating-point or complex numbers: integers and booleans in float64."""
    x = as_tensor_variable(x)
    return x if x.type.kind in "fc" else cast_to(x, "float64")


def weak_operands(inputs: Sequence[Any]) -> list[TensorVariable | float]:
    """Operands as variables, but Python numbers as they are when at least one operand is an array."""
    weak = [is_weak_scalar(x) for x in inputs]
    if all(weak):
        return [constant(x) for x in inputs]
    return [
        x if w and type(x) is not bool else as_tensor_variable(x) for x, w in zip(inputs, weak, strict=True)
    ]


def to_dtype(x: TensorVariable | float, dtype: np.dtype) -> TensorVariable:
    """An operand, possibly a Python number, as a variable of the loop's dtype."""
    if isinstance(x, Variable):
        return cast_to(x, dtype.name)
    try:
        return constant(np.asarray(x, dtype=dtype))
    except OverflowError:
        raise OverflowError(
            f"the Python number {x} does not fit into {dtype}, the dtype of the array it meets; "
            f"convert one of them, for example x.astype('int64')"
        ) from None


def expand_left(x: Variable, rank: int) -> TensorVariable:
    """``x`` with leading dimensions of size 1."""
    missing = rank - x.type.ndim
    if isinstance(x, Constant) and x.data.size <= 16:
        return remember(constant(x.data.reshape((1,) * missing + x.data.shape)), *reads_of(x))
    return as_tensor_variable(x).dimshuffle(("x",) * missing + tuple(range(x.type.ndim)))
