# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special functions that are calls: of SciPy's C code, or of a scalar kernel of our own.

Those of real numbers are elementwise rows. Those of complex numbers are ops, which SciPy computes in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar
from typing import cast as cast_

import numpy as np

from graphc.graph.basic import Apply, Maybe, Variable, Variables, only
from graphc.graph.op import FieldOp
from graphc.graph.tensor.convert import as_tensor_variable, is_weak_scalar, operand
from graphc.graph.undefined import grad_not_implemented
from graphc.ops.elementwise import ROWS, Elementwise, OperandType, cast_to, declare, register
from graphc.ops.math import _nmtheta, _phim, _um, _unary, cast, exp2, floor, log2, maximum
from graphc.ops.shaping import batch_in_front

if TYPE_CHECKING:
    from graphc.graph.tensor import TensorLike
    from graphc.graph.tensor.variable import TensorVariable
    from graphc_runtime.thunk import Register


# Results of functions that have several, and derivatives: rows, but no functions of users.
ellipkinc_dm = declare("ellipkinc_dm", _phim)
ellipeinc_dm = declare("ellipeinc_dm", _phim)
ellipj_sn = declare("ellipj_sn", _um)
ellipj_cn = declare("ellipj_cn", _um)
ellipj_dn = declare("ellipj_dn", _um)
ellipj_ph = declare("ellipj_ph", _um)
sici_si = declare("sici_si", _unary)
sici_ci = declare("sici_ci", _unary)
shichi_shi = declare("shichi_shi", _unary)
shichi_chi = declare("shichi_chi", _unary)
fresnel_s = declare("fresnel_s", _unary)
fresnel_c = declare("fresnel_c", _unary)
airy_ai = declare("airy_ai", _unary)
airy_aip = declare("airy_aip", _unary)
airy_bi = declare("airy_bi", _unary)
airy_bip = declare("airy_bip", _unary)
airye_ai = declare("airye_ai", _unary)
airye_aip = declare("airye_aip", _unary)
airye_bi = declare("airye_bi", _unary)
airye_bip = declare("airye_bip", _unary)
sph_legendre = declare("sph_legendre", _nmtheta)
lambertw0 = declare("lambertw0", _unary)
lambertw1 = declare("lambertw1", _unary)


def float_of(operand: OperandType) -> OperandType:
    """The floating-point dtype that an operand of a special function is computed in, as in SciPy: float32 for
    booleans and integers of up to 16 bits, float64 for others. float16 would have too few digits.
    """
    if not isinstance(operand, np.dtype) or operand.kind not in "biu":
        return operand
    return np.dtype("float32" if operand.itemsize <= 2 else "float64")


def float_operand(x: Any) -> TensorVariable:
    """An operand of a special function: a variable that holds no integers, or a Python number as it is, so
    that it does not widen float32.
    """
    if is_weak_scalar(x):
        return x
    variable = as_tensor_variable(x)
    return cast_to(variable, float_of(variable.type.numpy_dtype).name)


def _is_weak(operand: OperandType) -> bool:
    return not isinstance(operand, np.dtype)


def real_floats(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    """Operands and result of the dtype in which floats meet: floating point, not complex. Python numbers come
    last, since two of them would be float64.
    """
    operands = sorted(map(float_of, types if len(types) > 1 else types * 2), key=_is_weak)
    joined = reduce(lambda a, b: np.arctan2.resolve_dtypes((a, b, None))[-1], operands)
    return (joined,) * (len(types) + 1)


def floats_or_double(types: tuple[OperandType, ...]) -> tuple[np.dtype, ...]:
    """As `real_floats`, but float64 of integers and booleans: functions that NumPy writes in Python."""
    if getattr(types[0], "kind", "f") in "biu":
        return (np.dtype("float64"),) * 2
    return real_floats(types)


# Functions of SciPy with several results, each of which is a row.
SEVERAL = {
    "airy": ("ai", "aip", "bi", "bip"),
    "airye": ("ai", "aip", "bi", "bip"),
    "ellipj": ("sn", "cn", "dn", "ph"),
    "fresnel": ("s", "c"),
    "shichi": ("shi", "chi"),
    "sici": ("si", "ci"),
}


def of_scipy(name: str) -> Callable[..., np.ndarray]:
    """The function of ``scipy.special``, or one of its results: ``airy_bi`` is the third one of ``airy``."""
    import scipy.special

    whole, _, part = name.partition("_")
    if whole not in SEVERAL:
        return cast_("Callable[..., np.ndarray]", getattr(scipy.special, name))
    return lambda *xs: getattr(scipy.special, whole)(*xs)[SEVERAL[whole].index(part)]


def scipy_function(name: str) -> Callable[..., np.ndarray]:
    """The function of ``scipy.special``, which is imported when it is first called. It computes in float64:
    SciPy's functions of float32, where there are any, are less accurate.
    """

    def reference(*arrays: np.ndarray) -> np.ndarray:
        dtype = np.result_type(*arrays)
        with np.errstate(all="ignore"):
            value = of_scipy(name)(*(np.asarray(x, np.float64) for x in arrays))
            return np.asarray(value).astype(dtype if dtype.kind == "f" else np.float64)

    return reference


def register_scipy(
    name: str,
    doc: str,
    grad: tuple[object, ...],
    scalar: Any = None,
    dtypes: object = real_floats,
    special: Any = None,
) -> Elementwise:
    """A row whose reference is SciPy's function of that name.

    Args:
        name: of the row, and in ``scipy.special``.
        doc: one sentence.
        grad: as in `Row`; its length is the number of operands.
        scalar: as in `Row`; by default a call of SciPy's C code for float64, to which others are converted.
        dtypes, special: as in `Row`.
    """
    symbol = f"special_{'d' * len(grad)}_{name}"
    return register(
        name,
        scipy_function(name),
        doc,
        scalar or (lambda b, *xs: b.external(symbol, *xs)),
        dtypes=dtypes,
        special=special,
        grad=grad,
    )


# Of the central difference of order 8, at 1, 2, 3 and 4 steps.
_WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)


def by_differences(
    call: Callable[..., Variable], place: int, length: Callable[..., Variable]
) -> Callable[..., Variable]:
    """The gradient by a parameter for which there is no formula: central differences of order 8, in float64.

    About 12 digits are right where ``call`` has 16: some are lost to the step. The step is
    a power of 2, so that no digit is lost where it is added, and is constant to further derivatives, which
    are differences of differences, in whatever order they are taken.

    Args:
        call: a function of the operands.
        place: the parameter's number.
        length: about how far the function does not change much, as a function of the operands.

    Source: B. Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids", 1988.
    """

    def rule(*arguments: TensorVariable) -> Variable:
        *given, out, g = arguments
        wide = [cast(x, "float64") for x in given]
        step = exp2(floor(log2(maximum(length(*wide) / 16, 2.0**-24))))

        def at(k: int) -> Variable:
            return call(*(x + k * step if i == place else x for i, x in enumerate(wide)))

        total = sum(w * (at(k) - at(-k)) for k, w in enumerate(_WEIGHTS, 1)) / step
        return g * cast(total, out.type.dtype)

    return rule


def register_kernel(name: str, doc: str, **rules: Any) -> Elementwise:
    """A row that calls the scalar kernel of its name; ``rules`` as the fields of `Row`."""

    def reference(*arrays: np.ndarray) -> np.ndarray:
        from graphc.library import scalars

        return scalars.reference(name)(*arrays)

    reference = rules.pop("reference", reference)
    symbol = f"graphc_scalar.{name}"
    return register(name, reference, doc, lambda b, *xs: b.external(symbol, *xs), dtypes=real_floats, **rules)


def register_part(name: str, doc: str, grad: tuple[object, ...]) -> Elementwise:
    """A row for one of the results of a function of SciPy (`SEVERAL`), whose C code a scalar kernel calls."""
    special = None if name.startswith("ellipj") else of_complex(name)
    return register_kernel(name, doc, reference=scipy_function(name), grad=grad, special=special)


# Complex numbers -------------------------------------------------------------------------------------------

_WITH_SIZES = ("airye_bi", "airye_bip")


def _wofz(z: TensorVariable, out: TensorVariable, g: TensorVariable) -> TensorVariable:
    return g * (2j / float(np.sqrt(np.pi)) - 2 * z * out)


class ComplexSpecial(FieldOp):
    """A function of ``scipy.special`` of each element of a complex array; analytic but on cuts.

    Args:
        name: of the function, or of one of its results; and of the elementwise row that has its derivative.
    """

    takes_as_stored = False

    name: str
    absent: ClassVar[dict[str, str]] = {"emit": "SciPy computes it in Python; there is no C function"}

    def __str__(self) -> str:
        return f"{self.name}{{complex}}"

    def make_node(self, x: TensorLike) -> Apply:
        x = operand(x, f"{self} takes complex numbers", kinds="c", error=TypeError)
        return Apply(self, [x], [x.type.make_variable()])

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], output_storage: Sequence[Register]) -> None:
        x = np.asarray(inputs[0])
        with np.errstate(all="ignore"):
            found = of_scipy(self.name)(x.astype("complex128"))
        output_storage[0][0] = np.asarray(found, dtype=x.dtype)

    def _along(self, x: Variable, out: Variable, direction: Variable) -> list[Variable | None]:
        """The derivative times a tangent or a cotangent: cotangents are not conjugated."""
        if self.name in _WITH_SIZES:
            return [grad_not_implemented(self, 0, x, "it is scaled by the size of an exponential")]
        rules: Any = (_wofz,) if self.name == "wofz" else ROWS[self.name].grad
        return [rules[0](x, out, direction)]

    def pullback(self, inputs: Variables, outputs: Variables, cotangents: Maybe) -> list[Variable | None]:
        return self._along(inputs[0], outputs[0], only(cotangents))

    def pushforward(self, inputs: Variables, outputs: Variables, tangents: Maybe) -> list[Variable | None]:
        return self._along(inputs[0], outputs[0], only(tangents))

    batch = batch_in_front


def of_complex(name: str) -> Callable[[Any], Variable | None]:
    """The argument ``special`` of a row: the function of complex operands, None of others."""

    def special(x: TensorVariable) -> Variable | None:
        x = as_tensor_variable(x)
        return ComplexSpecial(name)(x) if x.type.kind == "c" else None

    return special
