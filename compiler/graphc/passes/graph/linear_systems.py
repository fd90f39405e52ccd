# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Solves linear systems where programs invert matrices, and factors a matrix once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.ir.diagnostics import integer
from graphc.ir.kinds import PRODUCTS
from graphc.ir.patterns import kind, registrar
from graphc.ir.rewrite import Rewriter, RuleTable, tensor_type
from graphc.ir.scan_view import is_scan
from graphc.ir.views import (
    COUNTS,
    MOVES_AXES,
    RESHAPES,
    TAKES_PART,
    UPDATES_PART,
    accumulates,
    dimshuffle,
    order_of,
    transposed_order,
)
from graphc.ir.walk import block_of, functions, is_used_once, walk
from graphc.passes import Pass
from graphc_dialects._mlir import ir
from graphc_runtime.record import record

RULES: RuleTable = {}
_rule = registrar(RULES)
# `assume` of a system.
_GENERAL, _POSITIVE = 0, 3
# Comparisons with the operands exchanged.
_TURNED = {"ge": "le", "eq": "eq"}
# A batch of smaller matrices is quicker with one factorization for each system.
_LARGE = 32


def _flag(op: ir.Operation, name: str) -> bool:
    return bool(integer(op, name))


def _raises(op: ir.Operation) -> bool:
    """True if a solver raises where there is no solution; else that is NaN."""
    return "check" not in op.attributes or bool(integer(op, "check"))


def _i64(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), int(number))


def _swapped(rw: Rewriter, x: ir.Value) -> ir.Value:
    """The matrices transposed."""
    return dimshuffle(x, transposed_order(len(x.type.shape)), create=rw.create)


def _unswapped(rw: Rewriter, x: ir.Value) -> tuple[ir.Value, bool]:
    """The matrices that x is the transpose of, or x; and whether it is."""
    view, rank = rw.defs.get(x), len(x.type.shape)
    if view is None or rank < 2 or order_of(view) != transposed_order(rank):
        return x, False
    source = view.operands[0]
    return (source, True) if len(source.type.shape) == rank else (x, False)


def _result_type(a: ir.Value, b: ir.Value) -> ir.Type:
    """Of a system: the sizes of b, and what is known of them from a."""
    matrix, sizes = list(a.type.shape), list(b.type.shape)
    sizes[-2] = max(sizes[-2], *matrix[-2:])
    batch = [max(x, y) for x, y in zip(matrix[:-2], sizes[:-2], strict=True)]
    return tensor_type([*batch, *sizes[-2:]], b.type.element_type)


def _solve(rw: Rewriter, a: ir.Value, b: ir.Value, transposed: bool) -> ir.Value:
    attributes = {"assume": _i64(_GENERAL), "lower": _i64(0), "transposed": _i64(transposed)}
    return rw.create("graphc.solve", [a, b], _result_type(a, b), **attributes)


def _triangular(
    rw: Rewriter, a: ir.Value, b: ir.Value, lower: bool, trans: int, unit: bool = False, check: bool = True
) -> ir.Value:
    attributes = {"lower": _i64(lower), "trans": _i64(trans), "unit_diagonal": _i64(unit)}
    if not check:
        attributes["check"] = _i64(0)
    return rw.create("graphc.solve_triangular", [a, b], _result_type(a, b), **attributes)


# Inverses ---------------------------------------------------------------------------------------------------


def _inverted(rw: Rewriter, x: ir.Value) -> tuple[ir.Value, bool] | None:
    """A of inv(A) or its transpose, and whether it is transposed, if nobody else uses the inverse."""
    inner, turned = _unswapped(rw, x)
    if not is_used_once(x) or (turned and not is_used_once(inner)):
        return None
    a = rw.operand_of(inner, "graphc.inv")
    return None if a is None else (a, turned)


@_rule(*PRODUCTS)
def product_with_inverse(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """inv(A) @ b and b @ inv(A)."""
    a, b = op.operands
    flip_a, flip_b = _flag(op, "transpose_a"), _flag(op, "transpose_b")
    if kind(rw, op.results[0]) not in "fc" or a == b:
        return None
    found = _inverted(rw, a)
    if found is not None:
        matrix, turned = found
        right = _swapped(rw, b) if flip_b else b
        return _solve(rw, matrix, right, turned ^ flip_a)
    found = _inverted(rw, b)
    if found is None:
        return None
    matrix, turned = found
    right = a if flip_a else _swapped(rw, a)
    return _swapped(rw, _solve(rw, matrix, right, not (turned ^ flip_b)))


@_rule("inv")
def inverse_of_inverse(rw: Rewriter, op: ir.Operation) -> ir.Value:
    return rw.operand_of(op.operands[0], "graphc.inv")


# Determinants -----------------------------------------------------------------------------------------------


def _only_in_logarithms(value: ir.Value) -> bool:
    """True if a determinant is only used in log, abs and sign, and its magnitude only in log."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == "graphc.abs":
            if any(each.owner.operation.name != "graphc.log" for each in user.results[0].uses):
                return False
        elif user.name not in ("graphc.log", "graphc.sign"):
            return False
    return True


def _sign_and_logarithm(rw: Rewriter, determinant: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    a = rw.operand_of(determinant, "graphc.det")
    if a is None or not _only_in_logarithms(determinant):
        return None
    type_ = determinant.type
    element = type_.element_type
    if isinstance(element, ir.ComplexType):
        element = ir.ComplexType(element).element_type
    sign, logarithm = rw.create_all("graphc.slogdet", [a], [type_, tensor_type(type_.shape, element)])
    return sign, logarithm


@_rule("log")
def log_of_determinant(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """log(det(A)) of real matrices, log(abs(det(A)))."""
    x = op.operands[0]
    inner = rw.operand_of(x, "graphc.abs")
    if inner is not None:
        found = _sign_and_logarithm(rw, inner)
        return None if found is None else found[1]
    if kind(rw, x) != "f":
        return None
    found = _sign_and_logarithm(rw, x)
    if found is None:
        return None
    sign, logarithm = found
    condition = tensor_type(x.type.shape, ir.IntegerType.get_signless(1))
    negative = rw.create("graphc.lt", [sign, rw.scalar_like(0, sign)], condition)
    return rw.create("graphc.switch", [negative, rw.scalar_like(float("nan"), x), logarithm], x.type)


@_rule("sign")
def sign_of_determinant(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    if kind(rw, op.operands[0]) != "f":
        return None
    found = _sign_and_logarithm(rw, op.operands[0])
    return None if found is None else found[0]


# Cholesky factors -------------------------------------------------------------------------------------------


def _factor(rw: Rewriter, x: ir.Value) -> tuple[ir.Value, bool, bool] | None:
    """(the factor, whether it is lower, whether x is its transpose) where x is a Cholesky factor."""
    inner, turned = _unswapped(rw, x)
    op = rw.defining(inner, "graphc.cholesky")
    return None if op is None else (inner, bool(integer(op, "lower")), turned)


def _factor_of_product(rw: Rewriter, x: ir.Value) -> tuple[ir.Value, bool] | None:
    """A real Cholesky factor and whether it is lower, where x is L @ L.T or U.T @ U."""
    product = rw.defined_by(x, PRODUCTS)
    if product is None or kind(rw, x) != "f":
        return None
    (left, turn_left), (right, turn_right) = (_unswapped(rw, v) for v in product.operands)
    turn_left ^= _flag(product, "transpose_a")
    turn_right ^= _flag(product, "transpose_b")
    op = rw.defining(left, "graphc.cholesky")
    if op is None or left != right or turn_left == turn_right:
        return None
    lower = bool(integer(op, "lower"))
    return (left, lower) if turn_right == lower else None


@_rule("cholesky")
def factor_of_product(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    found = _factor_of_product(rw, op.operands[0])
    if found is None or found[1] != bool(integer(op, "lower")):
        return None
    return found[0]


@_rule("solve")
def system_of_factor(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """solve(L, b): L is triangular."""
    a, b = op.operands
    if integer(op, "assume") != _GENERAL:
        return None
    found = _factor(rw, a)
    if found is None:
        return None
    factor, lower, turned = found
    trans = int(turned ^ bool(integer(op, "transposed")))
    return _triangular(rw, factor, b, lower, trans, check=_raises(op))


@_rule("solve")
def system_of_product(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """solve(L @ L.T, b): the factor is there."""
    a, b = op.operands
    found = _factor_of_product(rw, a) if _raises(op) else None
    if found is None:
        return None
    return _by_factor(rw, found[0], b, found[1])


def _by_factor(rw: Rewriter, factor: ir.Value, b: ir.Value, lower: bool) -> ir.Value:
    first, then = (0, 1) if lower else (1, 0)
    return _triangular(rw, factor, _triangular(rw, factor, b, lower, first), lower, then)


# Gradients of Cholesky factors ------------------------------------------------------------------------------


def _by_turned_factor(rw: Rewriter, x: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """(L, b) where x is L^-T b, L a lower Cholesky factor, or its transpose; and L and b are matrices."""
    op = rw.defining(_unswapped(rw, x)[0], "graphc.solve_triangular")
    found = None if op is None else _factor(rw, op.operands[0])
    if op is None or found is None or _flag(op, "unit_diagonal") or len(x.type.shape) != 2:
        return None
    factor, lower, turned = found
    is_turned = turned ^ _flag(op, "trans")
    return (factor, op.operands[1]) if lower and is_turned and _flag(op, "lower") != turned else None


def _is_diagonal(rw: Rewriter, op: ir.Operation | None, n: int) -> bool:
    """True if the last operands of a slice say that it is the diagonal of n rows in a flat matrix."""
    return op is not None and [rw.constant(v) for v in list(op.operands)[-3:]] == [0, n, n + 1]


def _compares_rows(rw: Rewriter, x: ir.Value, name: str, n: int) -> bool:
    """True if x has whether the number of a row is `name` ("ge", "eq") that of a column, of n, or 1 and 0."""
    literal, cast = rw.constant(x), rw.defining(x, "graphc.cast")
    if literal is not None:
        return np.array_equal(literal, np.tri(n) if name == "ge" else np.eye(n))
    op = rw.defs.get(x if cast is None else cast.operands[0])
    if x.type.shape != [n, n] or op is None or op.name not in (f"graphc.{name}", f"graphc.{_TURNED[name]}"):
        return False
    axes = [_counted_axis(rw, v) for v in op.operands]
    return axes == ([0, 1] if op.name == "graphc.ge" else [1, 0]) or (name == "eq" and axes == [0, 1])


def _counted_axis(rw: Rewriter, x: ir.Value) -> int | None:
    """The axis along which a row or column counts from 0."""
    axis, n, view = int(x.type.shape[1] != 1), max(x.type.shape), rw.defined_by(x, MOVES_AXES)
    if (literal := rw.constant(x)) is not None:
        return axis if np.array_equal(np.ravel(literal), np.arange(n)) else None
    count = None if view is None else rw.defined_by(view.operands[0], COUNTS)
    return axis if count is not None and [rw.splat(v) for v in list(count.operands)[:2]] == [0, 1] else None


def _on_diagonal(rw: Rewriter, x: ir.Value, n: int) -> ir.Value | None:
    """The values of a diagonal matrix of n rows."""
    flat = rw.defined_by(x, RESHAPES)
    put = None if flat is None else rw.defined_by(flat.operands[0], UPDATES_PART)
    if put is not None:
        fits = _is_diagonal(rw, put, n) and not accumulates(put) and rw.splat(put.operands[0]) == 0
        return put.operands[1] if fits else None
    product = rw.defining(x, "graphc.mul")
    spread = None if product is None else rw.defined_by(product.operands[0], MOVES_AXES)
    if product is None or spread is None or order_of(spread) != [0, -1]:
        return None
    (values,) = spread.operands
    return values if values.type.rank == 1 and _compares_rows(rw, product.operands[1], "eq", n) else None


def _triangle(rw: Rewriter, op: ir.Operation | None) -> tuple[ir.Value, ir.Value, float] | None:
    """(x, y, c) of ``tril(x) - diag(c * diagonal(y))``, matrices of known sizes."""
    if op is None or op.name != "graphc.sub" or len(op.results[0].type.shape) != 2:
        return None
    n, part = op.results[0].type.shape[0], rw.defs.get(op.operands[0])
    values = _on_diagonal(rw, op.operands[1], n) if n > 0 else None
    if values is None or part is None or part.name not in ("graphc.mul", "graphc.switch"):
        return None
    x, mask = list(part.operands)[:2]
    if part.name == "graphc.switch":
        x, mask = mask, x
        if rw.splat(part.operands[2]) != 0:
            return None
    scaled, factor = rw.defining(values, "graphc.mul"), 1.0
    if scaled is not None:
        values, factor = scaled.operands[0], rw.splat(scaled.operands[1])
    read = rw.defined_by(values, TAKES_PART)
    if (
        read is None
        or factor is None
        or not (_is_diagonal(rw, read, n) and _compares_rows(rw, mask, "ge", n))
    ):
        return None
    flat = rw.defined_by(read.operands[0], RESHAPES)
    y = x if flat is None else flat.operands[0]
    return (x, y, float(factor)) if flat is not None and x.type.shape == y.type.shape == [n, n] else None


@_rule("sub")
def pullback_of_factor(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
    """tril(W + W.T) - diag(W), W = L^-T (tril(P) - diag(P) / 2) L^-1, P = L.T @ G, L a Cholesky factor."""
    whole = _triangle(rw, op) if kind(rw, op.results[0]) == "f" else None
    outer = None if whole is None or whole[2] != 1 else _by_turned_factor(rw, whole[1])
    inner = None if outer is None else _by_turned_factor(rw, outer[1])
    if whole is None or outer is None or inner is None or outer[0] != inner[0]:
        return None
    half = _triangle(rw, rw.defs.get(_unswapped(rw, inner[1])[0]))
    product = None if half is None else rw.defined_by(half[0], PRODUCTS)
    both = rw.defining(whole[0], "graphc.add")
    if half is None or product is None or both is None or half[0] != half[1] or half[2] != 0.5:
        return None
    factor, g = outer[0], product.operands[1]
    (a, turn_a), (b, turn_b) = (_unswapped(rw, v) for v in both.operands)
    left, turned = _unswapped(rw, product.operands[0])
    w = _unswapped(rw, whole[1])[0]
    if a != w or b != w or turn_a == turn_b or left != factor or turned == _flag(product, "transpose_a"):
        return None
    g = _swapped(rw, g) if _flag(product, "transpose_b") else g
    return rw.create("graphc.cholesky_pullback", [factor, g], factor.type)


# Factorizations that serve several systems ------------------------------------------------------------------


class _Shared:
    """Systems of a function that share the factors of their matrix, and the factors made so far."""

    def __init__(self, operations: Sequence[ir.Operation]) -> None:
        self._systems: dict[tuple[ir.Value, int, int], list[ir.Block]] = {}
        self._factors: dict[tuple[ir.Value, int, int], list[tuple[Any, Any]]] = {}
        for op in operations:
            if op.name == "graphc.solve" and _raises(op):
                self._systems.setdefault(self._key(op), []).append(op.block)

    @staticmethod
    def _key(op: ir.Operation) -> tuple[ir.Value, int, int]:
        return op.operands[0], integer(op, "assume"), integer(op, "lower")

    def wants_factors(self, op: ir.Operation) -> bool:
        """True if there is another system of this matrix in the block, or the block is a loop's."""
        shape = op.operands[0].type.shape
        if len(shape) > 2 and shape[-1] < _LARGE:
            return False
        block = op.block
        if sum(other == block for other in self._systems.get(self._key(op), ())) > 1:
            return True
        return integer(op, "assume") == _GENERAL and _is_invariant(op, block)

    def factors(self, rw: Rewriter, op: ir.Operation) -> Any:
        """The factors of the matrix, made before the first system of the block."""
        made = self._factors.setdefault(self._key(op), [])
        block = op.block
        for where, factors in made:
            if where == block:
                return factors
        make = _lu if integer(op, "assume") == _GENERAL else _cholesky
        factors = make(rw, op)
        made.append((block, factors))
        return factors

    def system_with_shared_factors(self, rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        """solve(A, b) where the factors of A serve others, too."""
        a, b = op.operands
        general = integer(op, "assume") == _GENERAL
        if not _raises(op):
            return None
        if not general and (integer(op, "assume") != _POSITIVE or kind(rw, a) != "f"):
            return None
        if not self.wants_factors(op):
            return None
        factors = self.factors(rw, op)
        if not general:
            return _by_factor(rw, factors, b, bool(integer(op, "lower")))
        lu, order = factors
        if integer(op, "transposed"):
            return _permuted(
                rw, _triangular(rw, lu, _triangular(rw, lu, b, False, 1), True, 1, True), order, 1
            )
        return _triangular(rw, lu, _triangular(rw, lu, _permuted(rw, b, order, 0), True, 0, True), False, 0)


def _is_invariant(op: ir.Operation, block: ir.Block) -> bool:
    """True if the system is in a loop and its matrix is not."""
    parent = block.owner
    if not is_scan(parent.operation):
        return False
    return bool(block_of(op.operands[0]) != block)


def _permuted(rw: Rewriter, x: ir.Value, order: ir.Value, inverse: int) -> ir.Value:
    sizes = list(x.type.shape)
    sizes[-2] = max(sizes[-2], order.type.shape[-1])
    type_ = tensor_type(sizes, x.type.element_type)
    return rw.create("graphc.permute_rows", [x, order], type_, inverse=_i64(inverse))


def _lu(rw: Rewriter, op: ir.Operation) -> tuple[ir.Value, ir.Value]:
    """The factors, and the order of rows."""
    a = op.operands[0]
    *batch, m, n = a.type.shape
    size, n = rw.dim(a, len(batch) + 1), max(m, n)
    pivots = tensor_type([*batch, n], ir.IntegerType.get_signless(32))
    lu, exchanged = rw.create_all("graphc.lu_factor", [a, size], [a.type, pivots])
    order = tensor_type([*batch, n], ir.IntegerType.get_signless(64))
    return lu, rw.create("graphc.pivot_to_permutation", [exchanged, size], order)


def _cholesky(rw: Rewriter, op: ir.Operation) -> ir.Value:
    a = op.operands[0]
    return rw.create("graphc.cholesky", [a], a.type, lower=op.attributes["lower"], check=_i64(1))


def rules(operations: Sequence[ir.Operation], device: bool = False) -> RuleTable:
    """The rules for a function with these operations; devices have no kernel of the pullback of a factor."""
    shared = _Shared(operations)

    def system_with_shared_factors(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        return shared.system_with_shared_factors(rw, op)

    table = {**RULES, "graphc.solve": [*RULES["graphc.solve"], system_with_shared_factors]}
    if device:
        table.pop("graphc.sub")
    return table


@record()
class LinearSystems(Pass):
    """Replaces inverses and determinants by what is cheaper or more accurate, and shares factorizations.

    | pattern | becomes | why |
    |---|---|---|
    | `inv(A) @ b`, `b @ inv(A)` | `solve(A, b)`, `solve(A.T, b.T).T` | a third of the work, smaller errors |
    | `inv(inv(A))` | `A` | no work; a singular matrix is not noticed |
    | `log(det(A))` | the logarithm of `slogdet(A)`, NaN where the sign is negative | no overflow |
    | `log(abs(det(A)))`, `sign(det(A))` | the results of `slogdet(A)` | no overflow |
    | `solve(L, b)`, L a Cholesky factor or its transpose | `solve_triangular(L, b)` | no factorization |
    | `solve(L @ L.T, b)`, L a Cholesky factor | two triangular systems | no factorization |
    | `cholesky(L @ L.T)`, L a Cholesky factor | `L` | no work |
    | the gradient of a Cholesky factor, in PyTensor's form | `cholesky_pullback` | a fifth of the work |
    | several `solve(A, ...)` | one `lu_factor(A)`, and triangular systems | one factorization |
    | several positive definite `solve(A, ...)` | one `cholesky(A)`, and triangular systems | the same |
    | `solve(A, b)` in a loop that does not change A | `lu_factor(A)`, which leaves the loop | the same |

    An inverse or a determinant with other uses stays, as it is computed anyway. Determinants are looked at
    for real matrices, but in `log(abs(det(A)))`. The gradient of a system is a system with the same matrix,
    so that a value and its gradient share one factorization. Batches share factors only where the matrices
    are known to be large: for small ones, several passes over them cost more than a second factorization.

    `L @ L.T` is recognised for real matrices, the gradient for those of known sizes. `LinAlgError` is raised
    for the same matrices, but for `inv(inv(A))`. Rounding differs in the last places.

    Options:
        device: gradients of factors stay as they are, of operations that devices have kernels of.

    Source: PyTensor's `tensor/rewriting/linalg`; I. Murray, "Differentiation of the Cholesky decomposition".
    """

    stage = "graph"
    acts_on = frozenset({"graphc.inv", "graphc.det", "graphc.solve", "graphc.cholesky"})
    device: bool = False

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            rewriter = Rewriter(function, rules(walk(function), self.device))
            rewriter.run()
            self.count_all(rewriter.counts)
