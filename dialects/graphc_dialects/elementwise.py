# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operations: one class per line of a table."""

from typing import Any

from graphc_dialects._base import (
    Graphc,
    GraphcOp,
    Tensor,
    define,
    dim_of,
    fail,
    is_signless,
    shape_text,
    tensor_types,
)
from graphc_dialects._mlir import ext, ir

# name -> (number of operands, result rule); rules: same (all types equal), bool (result i1), free (the dtype
# rule of the compiler's table decides: casts, complex to real, mixed loops).
ELEMENTWISE: dict[str, tuple[int, str]] = {}


def _add(arity: int, rule: str, names: str) -> None:
    for name in names.split():
        ELEMENTWISE[name] = (arity, rule)


_add(1, "free", "cast abs angle real imag frexp_exponent bfloat16_value bfloat16_bits")
_add(1, "bool", "isnan isinf isfinite signbit logical_not")
_add(1, "same", "neg sign ceil floor trunc round round_half_away reciprocal sqr sqrt conj invert identity")
_add(1, "same", "frexp_mantissa rough_log spacing lambertw0 lambertw1")
_add(1, "same", "exp exp2 expm1 log log2 log10 log1p sigmoid softplus log1mexp cbrt")
_add(1, "same", "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh deg2rad rad2deg")
_add(1, "same", "erf erfc erfcx erfi erfinv erfcinv dawsn ndtr ndtri ndtri_exp log_ndtr")
_add(1, "same", "gamma gammaln digamma trigamma rgamma logit entr sinc exprel expi exp1 spence ellipk ellipe")
_add(
    1,
    "same",
    "ellipkm1 sici_si sici_ci shichi_shi shichi_chi fresnel_s fresnel_c airy_ai airy_aip airy_bi airy_bip",
)
_add(1, "same", "airye_ai airye_aip airye_bi airye_bip")
_add(1, "same", "i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e y0 y1")
_add(
    2,
    "same",
    "iv ive jv kv kve yv owens_t polygamma zeta beta betaln poch binom"
    " xlogy xlog1py rel_entr kl_div logaddexp2",
)
_add(2, "same", "gammainc gammaincc gammaincinv gammainccinv gammainc_da")
_add(
    2, "same", "ellipkinc ellipkinc_dm ellipeinc ellipeinc_dm ellipj_sn ellipj_cn ellipj_dn ellipj_ph stdtrit"
)
_add(3, "same", "betainc betaincc betaincinv betainc_da betainc_db hyp1f1 sph_legendre")
_add(4, "same", "hyp2f1 hyp2f1_da hyp2f1_dc")
_add(2, "same", "add sub mul true_div floor_div mod pow maximum minimum arctan2 hypot logaddexp copysign")
_add(2, "same", "and or xor left_shift right_shift")
_add(2, "bool", "eq ne lt le gt ge logical_and logical_or logical_xor")
_add(2, "same", "gcd lcm nextafter")
_add(2, "free", "complex second ldexp")
_add(3, "free", "switch")
_add(3, "same", "clip")


def broadcast_shape(op: ir.Operation, shapes: list[list[int]]) -> list[int] | None:
    """Joint shape of operands, in which static ones broadcast; None after reporting a conflict."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    if any(len(shape) != len(first) for shape in shapes):
        fail(op, f"operands must have equal ranks, but have shapes {', '.join(map(shape_text, shapes))}")
        return None
    joint = list(first)
    for shape in shapes[1:]:
        for axis, size in enumerate(shape):
            have = joint[axis]
            if have == 1 or (have < 0 and size != 1):
                joint[axis] = size
            elif size >= 0 and size not in (1, have):
                fail(op, f"operands disagree in dimension {axis}: {have} and {size}")
                return None
    return joint


def _contradicts(shape: list[int], expected: list[int]) -> int | None:
    """First axis at which two shapes of equal rank have different static sizes."""
    for axis, (have, want) in enumerate(zip(shape, expected, strict=True)):
        if have != want and have >= 0 and want >= 0:
            return axis
    return None


class Elementwise(GraphcOp):
    """Base of elementwise operations: operands of equal rank, static ones broadcast."""

    def verify_invariants(self) -> bool:
        """Checks ranks, static sizes and, where the table has a rule, element types."""
        types = tensor_types(self)
        if types is None:
            return False
        rule = ELEMENTWISE[self._op_name][1]
        if rule == "same" and types.count(types[0]) == len(types):
            return True
        joint = broadcast_shape(self, [type_.shape for type_ in types[:-1]])
        if joint is None:
            return False
        result = types[-1].shape
        if len(result) != len(joint):
            return fail(self, f"result must have rank {len(joint)}, but has rank {len(result)}")
        axis = _contradicts(result, joint)
        if axis is not None:
            return fail(self, f"result dimension {axis} must be {joint[axis]}, but is {result[axis]}")
        return self._verify_elements([type_.element_type for type_ in types], rule)

    def _verify_elements(self, elements: list[ir.Type], rule: str) -> bool:
        if self._op_name == "switch":
            return self._verify_switch(elements)
        if rule == "free":
            return True
        if rule == "bool":
            return is_signless(elements[-1], 1) or fail(
                self, f"result must have element type i1, but has {elements[-1]}"
            )
        operands = elements[:-1]
        if operands.count(elements[0]) != len(operands):
            return fail(
                self, f"operands must have one element type, but have {', '.join(map(str, operands))}"
            )
        return elements[-1] == elements[0] or fail(
            self, f"result must have element type {elements[0]}, but has {elements[-1]}"
        )

    def _verify_switch(self, elements: list[ir.Type]) -> bool:
        if not is_signless(elements[0], 1):
            return fail(self, f"condition must have element type i1, but has {elements[0]}")
        if elements[1] != elements[2] or elements[1] != elements[3]:
            given = ", ".join(map(str, elements[1:]))
            return fail(self, f"branches and result must have one element type, but have {given}")
        return True

    def reify_dynamic(self, dim: int) -> ir.Value | None:
        """The size of the first operand that does not broadcast along `dim`."""
        for operand in self.operands:
            if operand.type.shape[dim] != 1:
                return dim_of(operand, dim)
        return dim_of(self.operands[0], dim)


# Operations that the compiler's table does not describe.
_DOCS = {"cast": "Converts the element type the way NumPy's `astype` does."}


def _define(name: str, arity: int) -> type:
    annotations: dict[str, Any] = dict.fromkeys("xyzw"[:arity], ext.Operand[Tensor])
    annotations["res"] = ext.Result[Tensor]
    doc = _DOCS.get(name, f"Elementwise `{name}`; documented in the compiler's table of operations.")
    return define(name, Elementwise, annotations, doc, __name__)


CLASSES: dict[str, type] = {name: _define(name, arity) for name, (arity, _) in ELEMENTWISE.items()}

__all__ = ["CLASSES", "ELEMENTWISE", "Elementwise", "Graphc", "broadcast_shape"]
