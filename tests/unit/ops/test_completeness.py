# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operation states all its rules, or why one is absent."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil

import numpy as np
import pytest

import graphc.ops
import graphc.tensor
from graphc.graph.op import Op
from graphc.ops.elementwise import OPS, ROWS, Cast, Elementwise, Undefined
from graphc.ops.kernel import KernelOp

for _module in pkgutil.iter_modules(graphc.ops.__path__):
    importlib.import_module(f"graphc.ops.{_module.name}")


def _subclasses(cls: type) -> set[type]:
    return {cls, *(each for sub in cls.__subclasses__() for each in _subclasses(sub))}


# Underscores mark bases.
CLASSES = sorted(
    (
        cls
        for cls in _subclasses(Op)
        if cls.__module__.startswith("graphc.ops.")
        and not cls.__name__.startswith("_")
        and cls.__name__ not in ("Sized", "KernelOp", "DiscreteOp")
    ),
    key=lambda cls: cls.__name__,
)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_row_is_complete(name: str) -> None:
    row = ROWS[name]
    assert callable(row.reference) and callable(row.scalar)
    assert row.doc.endswith("."), "one sentence of documentation"
    assert row.arity in (1, 2, 3, 4)
    assert row.dtypes is not None or isinstance(row.reference, np.ufunc), "a dtype rule"
    assert (row.grad is None) == bool(row.absent), "a gradient, or the reason why there is none"
    if row.grad is not None:
        assert len(row.grad) == row.arity
        for rule in filter(None, row.grad):
            if isinstance(rule, Undefined):
                continue
            parameters = list(inspect.signature(rule).parameters.values())
            # `by_differences` makes rules for functions of any number of operands.
            any_number = [p.kind for p in parameters] == [inspect.Parameter.VAR_POSITIONAL]
            assert any_number or len(parameters) == row.arity + 2, "operands, result and cotangent"
    assert len(inspect.signature(row.scalar).parameters) in (row.arity + 1, 2)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_row_has_a_dialect_op_of_its_arity(name: str) -> None:
    from graphc_dialects.elementwise import ELEMENTWISE

    assert ELEMENTWISE[name][0] == ROWS[name].arity


def test_the_dialect_has_no_other_elementwise_ops() -> None:
    from graphc_dialects.elementwise import ELEMENTWISE

    assert set(ELEMENTWISE) - set(ROWS) == {"cast"}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_op_pickles_to_itself(name: str) -> None:
    assert pickle.loads(pickle.dumps(OPS[name])) is OPS[name]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_class_is_complete(cls: type[Op]) -> None:
    assert cls.__doc__, "documentation"
    assert cls.__props__ is not None, "what identifies an instance"
    # What an op does not have it declares, with the reason: ``absent = {"emit": "SciPy has no C function"}``.
    absent = getattr(cls, "absent", {})
    assert all(isinstance(reason, str) and reason for reason in absent.values())
    for method in {"make_node", "perform", "pullback", "pushforward"} - set(absent):
        assert getattr(cls, method) is not getattr(Op, method), method
    assert callable(getattr(cls, "emit", None)) != ("emit" in absent), (
        "a lowering, or the reason why there is none"
    )


def test_every_row_of_the_kernel_table_has_a_kernel_and_an_op() -> None:
    from graphc.library import find
    from graphc_dialects.signatures import DOCS, SIGNATURES

    ops = {cls.kernel for cls in CLASSES if issubclass(cls, KernelOp)}
    # What only passes make: argmax and argmin of long rows, gradients of Cholesky factors.
    assert ops | {"arg_extreme", "cholesky_pullback"} == set(SIGNATURES)
    for name in SIGNATURES:
        assert find(name).reference is not None and DOCS[name].endswith(".")


def test_classes_are_found() -> None:
    names = {cls.__name__ for cls in CLASSES}
    assert {"Elementwise", "Cast", "Reduce", "DimShuffle", "Subtensor", "Take", "Matmul", "Softmax"} <= names
    assert {Elementwise, Cast} <= set(CLASSES)


@pytest.mark.parametrize("name", sorted(name for name, op in OPS.items() if op.row.folds))
def test_one_operand_of_what_takes_any_number_is_the_result(name):
    """As PyTensor's `add` and `mul`, with which sums over lists of terms are made."""
    x = graphc.tensor.matrix("x", dtype="bool")
    assert OPS[name](x) is x
    np.testing.assert_array_equal(OPS[name]([True, False]).eval(), [True, False])
