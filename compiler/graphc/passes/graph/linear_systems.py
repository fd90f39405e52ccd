# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Solves linear systems where programs invert matrices, and factors a matrix once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.ir.diagnostics import integer
from graphc.ir.kinds import PRODUCTS
from graphc.ir.patterns import kind, registrar
from graphc.ir.rewrite import Rewriter, RuleTable, tensor_type
from graphc.ir.scan_view import is_scan
from graphc.ir.views import dimshuffle, order_of, transposed_order
from graphc.ir.walk import functions, is_used_once, walk
from graphc.passes import Pass
from graphc_dialects._mlir import ir

RULES: RuleTable = {}
_rule = registrar(RULES)
# `assume` of a system.
_GENERAL, _POSITIVE = 0, 3
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
    owner = op.operands[0].owner
    where = owner if isinstance(owner, ir.Block) else owner.operation.block
    return bool(where != block)


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


def rules(operations: Sequence[ir.Operation]) -> RuleTable:
    """The rules for a function with these operations."""
    shared = _Shared(operations)

    def system_with_shared_factors(rw: Rewriter, op: ir.Operation) -> ir.Value | None:
        return shared.system_with_shared_factors(rw, op)

    return {**RULES, "graphc.solve": [*RULES["graphc.solve"], system_with_shared_factors]}


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
    | several `solve(A, ...)` | one `lu_factor(A)`, and triangular systems | one factorization |
    | several positive definite `solve(A, ...)` | one `cholesky(A)`, and triangular systems | the same |
    | `solve(A, b)` in a loop that does not change A | `lu_factor(A)`, which leaves the loop | the same |

    An inverse or a determinant with other uses stays, as it is computed anyway. Determinants are looked at
    for real matrices, but in `log(abs(det(A)))`. The gradient of a system is a system with the same matrix,
    so that a value and its gradient share one factorization. Batches share factors only where the matrices
    are known to be large: for small ones, several passes over them cost more than a second factorization.

    `L @ L.T` is recognised for real matrices. `LinAlgError` is raised for the same matrices, but for
    `inv(inv(A))`. Rounding differs in the last places.

    Source: PyTensor's `tensor/rewriting/linalg`.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        for function in functions(module):
            operations = list(walk(function))
            if not any(op.name in _TRIGGERS for op in operations):
                continue
            rewriter = Rewriter(function, rules(operations))
            rewriter.run()
            self.count_all(rewriter.counts)


_TRIGGERS = frozenset({"graphc.inv", "graphc.det", "graphc.solve", "graphc.cholesky"})
