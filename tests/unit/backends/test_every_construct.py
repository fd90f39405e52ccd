# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every operation and dtype lowers to is text that llvmlite takes, in both pipelines."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from op_cases import DTYPES

import graphc.tensor as pt
from graphc.backends import CompileOptions
from graphc.backends.cpu.generate import kernel_wrappers
from graphc.backends.cpu.lower import lower
from graphc.backends.cpu.object import compile_to_object, this_machine
from graphc.emit import emit_module
from graphc.graph.function_graph import FunctionGraph
from graphc.library.products import product_parts
from graphc.library.scalars import define_scalars
from graphc.ops.elementwise import OPS, ROWS

INDEX = pt.constant(np.array([0, 2, -1]))


def elementwise_nodes(inputs):
    """Every row on every dtype that it takes."""
    outputs = []
    for x in inputs:
        for name, row in ROWS.items():
            try:
                output = OPS[name](*[x] * row.arity)
            except TypeError:
                continue  # no loop for this dtype
            # Special functions of complex numbers run in Python.
            if output.owner is None or "emit" not in getattr(output.owner.op, "absent", ()):
                outputs.append(output)
    assert {y.owner.op.name for y in outputs if y.owner} >= set(ROWS)
    return outputs


def casts(inputs):
    return [
        x.astype(target) for x in inputs for target in DTYPES if x.type.dtype[0] != "c" or target[0] == "c"
    ]


def special_literals(inputs):
    """Infinities, NaNs, subnormals and numbers that are not exact, as constants of each float dtype."""
    outputs = []
    for x in inputs:
        kind = np.dtype(x.type.dtype).kind
        if kind not in "fc":
            continue
        values = [0.1, -0.0, np.inf, -np.inf, np.nan, -1 / 3, 6e-8, 65000.0]
        for value in values:
            with np.errstate(all="ignore"):
                constant = np.asarray(value, x.type.dtype)
            outputs += [pt.switch(x.sum() == 0, x, constant), x + constant]
        with np.errstate(all="ignore"):
            outputs.append(x[:3] * np.asarray(values[:3], x.type.dtype))
    return outputs


def reductions(inputs):
    outputs = []
    for x in inputs:
        kind = np.dtype(x.type.dtype).kind
        names = (
            ["sum", "prod"]
            + ["max", "min", "argmax", "argmin"] * (kind != "c")
            + ["any", "all"] * (kind == "b")
        )
        outputs += [getattr(pt, name)(x, axis=axis) for name in names for axis in (0, None)]
        if kind == "f":
            outputs += [pt.softmax(x, axis=0), pt.logsumexp(x), x.var()]
    return outputs


def structure(inputs):
    outputs = []
    for x in inputs:
        matrix = x.reshape((-1, 2))
        outputs += [
            matrix.T,
            x[::-2],
            x[None, 1:],
            pt.join(0, x, x[:1]),
            pt.set_subtensor(x[1:3], x[0]),
            x[INDEX],
            pt.set_subtensor(x[INDEX], x[:3]),
            pt.broadcast_to(x, (3, x.shape[0])),
            pt.zeros_like(matrix),
            pt.specify_shape(x, (4,)),
        ]
        if np.dtype(x.type.dtype).kind != "b":
            outputs += [pt.inc_subtensor(x[::2], x[1::2]), pt.inc_subtensor(x[INDEX], x[:3])]
            outputs.append(pt.dot(matrix, matrix.T))
            if np.dtype(x.type.dtype).kind != "c":
                outputs.append(pt.arange(0, 5, 2, dtype=x.type.dtype))
    return outputs


FAMILIES = {f.__name__: f for f in (elementwise_nodes, casts, special_literals, reductions, structure)}


@cache
def family(name):
    inputs = [pt.tensor(f"x_{dtype}", dtype=dtype, shape=(None,)) for dtype in DTYPES]
    outputs = FAMILIES[name](inputs)
    assert len(outputs) > 30
    return inputs, outputs


@pytest.mark.parametrize("mode", ["fast_run", "fast_compile"])
@pytest.mark.parametrize("name", FAMILIES)
def test_llvmlite_takes_it(name, mode):
    inputs, outputs = family(name)
    lowered = lower(emit_module(FunctionGraph(inputs, outputs)).text, CompileOptions(mode))
    assert "nocreateundeforpoison" not in lowered.llvm_ir
    text = lowered.llvm_ir + kernel_wrappers(
        [x.type.shape for x in inputs], [y.type.shape for y in outputs], has_shapes=lowered.has_shapes
    )
    inlined = define_scalars(lowered.helpers)
    parts = product_parts(lowered.helpers, this_machine().features)
    assert len(compile_to_object(text, inlined_text=inlined, parts=parts, opt_level=0)) > 1000
