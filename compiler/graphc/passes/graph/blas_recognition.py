# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Brings matrix products into the forms BLAS has."""

from __future__ import annotations

from functools import cache

from graphc.ir.kinds import PRODUCTS, SUMS, flags_of, matrix_product, reduce, reduced_axes
from graphc.ir.rewrite import Rewriter, Rule, RuleTable, apply_rules, tensor_type
from graphc.ir.views import MOVES_AXES, dimshuffle, order_of, transposed_order
from graphc.ir.walk import is_used_once
from graphc.passes import Pass
from graphc_dialects._mlir import ir


class BlasRecognition(Pass):
    """Folds transpositions into matrix products and turns degenerate products into cheaper operations.

    * `matmul(a.T, b)` and `matmul(a, b.T)` become flags of the product: BLAS reads either order.
    * `matmul(a, b).T` becomes `matmul(b.T, a.T)`, if the untransposed product has no other use.
    * A product with a summed dimension of 1 (an outer product) becomes an elementwise multiplication, which
      fuses with what surrounds it.
    * A product of a single row and a single column (an inner product of vectors) becomes the sum of an
      elementwise product, which fuses as well. The order of the summation may differ from BLAS's.
    * A sum over one axis of outer products, `sum(a[:, :, None] * b[:, None, :], axis=0)`, becomes the product
      `a.T @ b`: the sum over the first axis visits memory in strides of whole outer products.
    * `matmul(-a, b)` becomes `-matmul(a, b)`; other scalar factors stay, because moving one can overflow.

    Matrix-vector products stay products with one dimension of 1; the lowering calls `gemv` or a loop for
    them.

    Source: PyTensor's `tensor/rewriting/blas.py`.
    """

    stage = "graph"

    def run(self, module: ir.Module) -> None:
        apply_rules(module, _rules(), self.count)


@cache
def _rules() -> RuleTable:
    of_products: list[Rule] = [_fold_operand_transpose, _outer_product, _inner_product, _pull_out_negation]
    return {
        **dict.fromkeys(PRODUCTS, of_products),
        **{name: [_fold_result_transpose] for name in MOVES_AXES},
        **{name: [_sum_of_outer_products] for name in SUMS},
    }


def _untransposed(rewriter: Rewriter, value: ir.Value) -> ir.Value | None:
    """The matrix whose transpose `value` is, or None. What is known of the transpose's sizes is kept."""
    cast = rewriter.defining(value, "tensor.cast")
    op = rewriter.defs.get(value if cast is None else cast.operands[0])
    rank = len(value.type.shape)
    if op is None or rank < 2 or order_of(op) != transposed_order(rank):
        return None
    source = op.operands[0]
    if len(source.type.shape) != rank:
        return None
    if cast is None:
        return source
    shape = list(value.type.shape)
    known = tensor_type([*shape[:-2], shape[-1], shape[-2]], value.type.element_type)
    return source if source.type == known else rewriter.create("tensor.cast", [source], known)


def _fold_operand_transpose(rewriter: Rewriter, op: ir.Operation) -> ir.Value | None:
    """matmul(transpose(a), b) -> matmul(a, b) with the flag toggled."""
    a, b = op.operands
    transpose_a, transpose_b = flags_of(op)
    source_a, source_b = _untransposed(rewriter, a), _untransposed(rewriter, b)
    if source_a is None and source_b is None:
        return None
    flags = transpose_a ^ (source_a is not None), transpose_b ^ (source_b is not None)
    left, right = (x if source is None else source for x, source in ((a, source_a), (b, source_b)))
    return matrix_product(left, right, flags, op.results[0].type, rewriter.create)


def _fold_result_transpose(rewriter: Rewriter, op: ir.Operation) -> ir.Value | None:
    """transpose(matmul(a, b)) -> matmul(b, a) with both flags toggled and swapped; also through a neg."""
    value = op.operands[0]
    rank = len(value.type.shape)
    if rank < 2 or order_of(op) != transposed_order(rank):
        return None
    negated = rewriter.operand_of(value, "graphc.neg")
    inner = rewriter.defined_by(value if negated is None else negated, PRODUCTS)
    if inner is None or not (is_used_once(value) and (negated is None or is_used_once(negated))):
        return None
    a, b = inner.operands
    transpose_a, transpose_b = flags_of(inner)
    type_ = op.results[0].type
    result = matrix_product(b, a, (not transpose_b, not transpose_a), type_, rewriter.create)
    return result if negated is None else rewriter.create("graphc.neg", [result], type_)


def _oriented(rewriter: Rewriter, value: ir.Value, transposed: bool) -> ir.Value:
    """The operand as the product reads it."""
    if not transposed:
        return value
    return dimshuffle(value, transposed_order(len(value.type.shape)), create=rewriter.create)


def _summed_sizes(op: ir.Operation) -> tuple[int, int]:
    """Static sizes of the summed dimension as the two operands know them; negative where dynamic."""
    a, b = op.operands
    transpose_a, transpose_b = flags_of(op)
    return a.type.shape[-2 if transpose_a else -1], b.type.shape[-1 if transpose_b else -2]


def _broadcasts(op: ir.Operation) -> bool:
    """True if a size is 1 in one operand and unknown in the other: an elementwise product would broadcast,
    where the product of matrices demands a 1.
    """
    a, b = op.operands
    pairs = [*zip(list(a.type.shape)[:-2], list(b.type.shape)[:-2], strict=True), _summed_sizes(op)]
    return any((m == 1) != (n == 1) for m, n in pairs)


def _outer_product(rewriter: Rewriter, op: ir.Operation) -> ir.Value | None:
    """A summed dimension of 1: every element is one product."""
    if _summed_sizes(op) != (1, 1) or _broadcasts(op):
        return None
    a, b = op.operands
    transpose_a, transpose_b = flags_of(op)
    a, b = _oriented(rewriter, a, transpose_a), _oriented(rewriter, b, transpose_b)
    return rewriter.create("graphc.mul", [a, b], op.results[0].type)


def _inner_product(rewriter: Rewriter, op: ir.Operation) -> ir.Value | None:
    """One row times one column: sum(a * b) over the last axis."""
    result = op.results[0].type
    if list(result.shape[-2:]) != [1, 1] or str(result.element_type) in ("f16", "i1"):
        return None
    if _broadcasts(op):
        return None
    a, b = op.operands
    transpose_a, transpose_b = flags_of(op)
    a, b = _oriented(rewriter, a, transpose_a), _oriented(rewriter, b, not transpose_b)
    rank = len(result.shape)
    shape = [x if x >= 0 else y for x, y in zip(a.type.shape, b.type.shape, strict=True)]
    # Errors speak of the product where its sizes are first compared at the call.
    said = {} if rewriter.dims.shape(a)[-1] == rewriter.dims.shape(b)[-1] else {"inner": ir.UnitAttr.get()}
    product = rewriter.create("graphc.mul", [a, b], tensor_type(shape, result.element_type), **said)
    summed = tensor_type(shape[:-1], result.element_type)
    # As accurate as BLAS's.
    narrow = {} if str(result.element_type) in ("f64", "complex<f64>") else {"narrow": ir.UnitAttr.get()}
    total = reduce("sum", product, [rank - 1], summed, rewriter.create, **narrow)
    return dimshuffle(total, [*range(rank - 1), -1], result, rewriter.create)


def _viewed(rewriter: Rewriter, value: ir.Value, axes: list[int]) -> ir.Value:
    """The matrix of two axes of a value whose other axes have size 1."""
    view = rewriter.defs.get(value)
    places = None if view is None else order_of(view)
    shape, order = value.type.shape, axes
    if view is not None and places is not None and all(places[axis] >= 0 for axis in axes):
        # Axes that the view leaves out of its source have size 1, as those that are left out here.
        value, order = view.operands[0], [places[axis] for axis in axes]
    if order == list(range(len(value.type.shape))):
        return value
    type_ = tensor_type([shape[axis] for axis in axes], value.type.element_type)
    return dimshuffle(value, order, type_, rewriter.create)


def _sum_of_outer_products(rewriter: Rewriter, op: ir.Operation) -> ir.Value | None:
    """sum(a * b) over an axis of both, where each other axis belongs to one of them only."""
    product, axes = rewriter.defining(op.operands[0], "graphc.mul"), list(reduced_axes(op))
    element = op.results[0].type.element_type
    # The sum of float32 without `narrow` is more accurate than a product of matrices.
    exact = str(element) in ("f64", "complex<f64>") or (str(element) == "f32" and "narrow" in op.attributes)
    if product is None or len(axes) != 1 or not exact or not is_used_once(product.results[0]):
        return None
    a, b = product.operands
    summed, m, n = axes[0], list(a.type.shape), list(b.type.shape)
    # Sizes known at the call are compared there, in the words of the elementwise product.
    if m[summed] != n[summed] or m[summed] < 2:
        return None
    rows = [axis for axis in range(len(m)) if m[axis] != 1 and n[axis] == 1]
    columns = [axis for axis in range(len(m)) if n[axis] != 1 and m[axis] == 1]
    shared = [axis for axis in range(len(m)) if m[axis] != 1 and n[axis] != 1]
    if (len(rows), len(columns), shared) != (1, 1, [summed]):
        return None
    left = _viewed(rewriter, a, [rows[0], summed])
    right = _viewed(rewriter, b, [summed, columns[0]])
    type_ = tensor_type([m[rows[0]], n[columns[0]]], element)
    result = matrix_product(left, right, (False, False), type_, rewriter.create)
    kept = [axis for axis in range(len(m)) if axis != summed]
    order = [{rows[0]: 0, columns[0]: 1}.get(axis, -1) for axis in kept]
    if order == [0, 1]:
        return result
    return dimshuffle(result, order, op.results[0].type, rewriter.create)


def _pull_out_negation(rewriter: Rewriter, op: ir.Operation) -> ir.Value | None:
    """A negated operand: the sign of every product changes exactly."""
    a, b = op.operands
    x, y = (rewriter.operand_of(value, "graphc.neg") for value in (a, b))
    if (x is None and y is None) or str(a.type.element_type) == "i1":
        return None
    type_ = op.results[0].type
    left, right = a if x is None else x, b if y is None else y
    product = matrix_product(left, right, flags_of(op), type_, rewriter.create)
    return product if x is not None and y is not None else rewriter.create("graphc.neg", [product], type_)
