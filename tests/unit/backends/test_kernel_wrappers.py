# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The wrappers give a kernel each array as MLIR's expanded memref: pointers, offset, sizes, strides."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.backends.cpu import object as codegen
from graphc.backends.cpu.generate import kernel_wrappers
from graphc.backends.cpu.object import Machine, Piece, compile_to_object
from graphc.native.parts import forget_parts
from graphc_runtime import symbols
from graphc_runtime.loader import load_object


def recorder(name: str, shapes, trailing: int = 0) -> str:
    """A kernel that writes all its arguments, as integers, to the memory at its context."""
    kinds = [k for shape in shapes for k in ("ptr", "ptr", *["i64"] * (1 + 2 * len(shape)))]
    kinds += ["ptr"] * trailing
    parameters = ", ".join(["ptr %c", *(f"{kind} %x{i}" for i, kind in enumerate(kinds))])
    lines = [f"define internal i64 @{name}({parameters}) {{"]
    for i, kind in enumerate(kinds):
        if kind == "ptr":
            lines.append(f"  %y{i} = ptrtoint ptr %x{i} to i64")
        lines.append(f"  %z{i} = getelementptr i64, ptr %c, i64 {i}")
        lines.append(f"  store i64 {'%y' if kind == 'ptr' else '%x'}{i}, ptr %z{i}")
    return "\n".join([*lines, "  ret i64 77", "}", ""])


def call(text: str, symbol: str, data, dims, *rest: int) -> list[int]:
    loaded = load_object(compile_to_object(text, opt_level=1), symbols.resolve)
    record = np.full(100, -5, "int64")
    pointers, sizes = np.array(data, "int64"), np.array(dims, "int64")
    types = [ctypes.c_void_p] * (3 + len(rest))
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *types)(loaded.address(symbol))
    status = function(record.ctypes.data, pointers.ctypes.data, sizes.ctypes.data, *rest)
    assert status == 77
    return record[record != -5].tolist()


def test_sizes_and_strides():
    inputs, outputs = [(None, 3, None), ()], [(2, None)]
    text = recorder("main", [*inputs, *outputs]) + kernel_wrappers(inputs, outputs, has_shapes=False)
    # Static sizes count, whatever `dims` says: 99 is ignored.
    got = call(text, "graphc_run", [1000, 2000, 3000], [5, 99, 7, 99, 4])
    assert got == [1000, 1000, 0, 5, 3, 7, 21, 7, 1, 2000, 2000, 0, 3000, 3000, 0, 2, 4, 4, 1]


def test_unused_arguments_keep_their_places():
    inputs, unused, outputs = [(None,)], [(None, 2), ()], [(None,)]
    text = recorder("main", [*inputs, *outputs])
    text += kernel_wrappers(inputs, outputs, has_shapes=False, unused=unused)
    got = call(text, "graphc_run", [1000, 2000, 3000, 4000], [5, 6, 2, 8])
    assert got == [1000, 1000, 0, 5, 1, 4000, 4000, 0, 8, 1]


@pytest.mark.parametrize("dynamic", [True, False])
def test_shapes(dynamic):
    inputs, outputs = [(None, 2)], [(None,) if dynamic else (3,)]
    text = recorder("main", [*inputs, *outputs]) + recorder("shapes", inputs, trailing=int(dynamic))
    text += kernel_wrappers(inputs, outputs, has_shapes=True)
    got = call(text, "graphc_shapes", [1000], [5, 2], 4000)
    assert got == [1000, 1000, 0, 5, 2, 2, 1, *([4000] if dynamic else [])]


def test_no_shapes_and_no_arguments():
    text = "define internal i64 @main(ptr %c) {\n  ret i64 77\n}\n" + kernel_wrappers(
        [], [], has_shapes=False
    )
    assert call(text, "graphc_run", [], []) == []
    loaded = load_object(compile_to_object(text, opt_level=1), symbols.resolve)
    shapes = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4)(loaded.address("graphc_shapes"))
    assert shapes(0, 0, 0, 0) == 0


def made(monkeypatch, inputs, outputs) -> object:
    """What the modules of a kernel are made with."""
    found = []
    original = codegen._compile
    monkeypatch.setattr(
        codegen, "_compile", lambda works, *a, **k: found.extend(works) or original(works, *a, **k)
    )
    forget_parts()
    with graphc.config.change_flags(cache_dir=""):
        graphc.function(inputs, outputs)
    (kernel,) = [work for work in found if work.part is None]
    return kernel


def heads(text: str) -> dict[str, str]:
    """Attributes of functions, by name."""
    lines = text.splitlines()
    groups = dict(line.split(" = ", 1) for line in lines if line.startswith("attributes #"))
    return {
        line[line.index("@") + 1 : line.index("(")]: line[line.rindex(")") :]
        + "".join(groups[f"attributes {word}"] for word in line.split() if word.startswith("#"))
        for line in lines
        if line.startswith("define ")
    }


M, X, Y = pt.dmatrix("m"), pt.dvector("x"), pt.dvector("y")
W = pt.TensorType("float64", (16, 16))("w")
LAYERS = graphc.scan(lambda h, w: pt.tanh(h @ w), outputs_info=[pt.ones(16)], non_sequences=[W], n_steps=9)
ROWS, _ = graphc.scan(lambda x, h: 0.9 * h + x, sequences=[X], outputs_info=[pt.constant(0.0)])


@pytest.mark.parametrize(
    ("inputs", "outputs", "plain", "level", "with_vectors"),
    [
        ([X], X + 1, True, 1, 0),
        ([X, Y], [pt.exp(X) * Y + 1, pt.maximum(X, Y)], True, 1, 0),
        ([fmatrix := pt.fmatrix("f")], fmatrix.T * 2, True, 3, 3),
        ([X, Y], pt.concatenate([X, Y]), True, 1, 0),
        ([X, Y], X[1:] + Y[:-1][::-1], False, 3, 0),
        # Blocks of a sum, and the sum of their sums.
        ([X, Y], [pt.sum(pt.exp(X) * Y), pt.var(X)], False, 3, 0),
        ([M], M.sum(axis=1), True, 3, 3),
        # No loop.
        ([M, X], M @ X, False, 0, 0),
        # The loop between products.
        ([M], pt.tanh(M @ M) @ M, False, 3, 0),
        # A nest: rows of a set, say, which LLVM copies whole where it may move a test out of the loop.
        ([M, X], pt.set_subtensor(M[1], X), True, 3, 3),
        # A loop that is not shared is in `main`; each iteration waits for the one before it.
        ([X], ROWS, False, 0, 0),
        ([X], graphc.grad(ROWS[-1], X), False, 3, 0),
        # What is known to have few elements is a vector, and the loop calls a product.
        ([W], LAYERS, False, 0, 0),
        # Too little for threads, or for a loop.
        ([x5 := pt.TensorType("float64", (5,))("x5")], x5 + 1, False, 0, 0),
    ],
)  # fmt: skip
def test_llvm_has_little_to_do_for_kernels_whose_loops_are_final(
    monkeypatch, inputs, outputs, plain, level, with_vectors
):
    monkeypatch.setattr(Machine, "vectors", lambda _: (0, 0, False))
    kernel = made(monkeypatch, inputs, outputs)
    found = heads(kernel.piece.text)
    assert ("optnone" in found["graphc_run"]) == plain
    assert kernel.pass_level == level
    # Sizes of these are written in one block.
    assert "optnone" in found["graphc_shapes"]
    assert all("optnone" in how for name, how in found.items() if name.startswith("graphc_range"))
    assert not any("optnone" in how for name, how in found.items() if name.startswith("graphc_body"))
    # Loops over elements are final where they are written with vectors.
    for given in ((32, 64, True), (32, 32, False)):
        monkeypatch.setattr(Machine, "vectors", lambda _, given=given: given)
        kernel = made(monkeypatch, inputs, outputs)
        assert (kernel.pass_level, kernel.vectorise) == (with_vectors, with_vectors > 0)


def test_what_avx2_has_no_vectors_for_is_left_to_llvm(monkeypatch):
    """Integers of 64 bits, say, are not multiplied: with numbers of 32 bits the same loop is final."""
    n = {"i64": pt.lvector("n"), "i32": pt.ivector("n")}
    for masks, kind, level in ((True, "i64", 0), (False, "i64", 1), (False, "i32", 0)):
        monkeypatch.setattr(Machine, "vectors", lambda _, masks=masks: (32, 32, masks))
        assert made(monkeypatch, [n[kind]], n[kind] * n[kind]).pass_level == level


@pytest.mark.parametrize("is_vectorised", [False, True])
def test_each_module_of_a_kernel_says_whether_its_own_loops_are_final(monkeypatch, is_vectorised):
    """Loops that were moved out of a kernel whose other ones are final had no vectors."""
    text, works = "define void @{0}() {{\n  ret void\n}}\n", []
    original = codegen._compile
    monkeypatch.setattr(codegen, "_compile", lambda found, *_: works.extend(found) or original(found))
    pieces = [Piece(text.format(name), frozenset({name}), name == "final") for name in ("open", "final")]
    compile_to_object(text.format("kernel"), exports={"kernel"}, pieces=pieces, is_vectorised=is_vectorised)
    levels = [(work.pass_level, work.vectorise) for work in works]
    assert levels == [(0, False) if is_vectorised else (1, True), (1, True), (0, False)]


@pytest.mark.parametrize(
    ("bytes_", "masks", "dtype"),
    [
        *((32, True, "float64"), (64, True, "float32"), (64, True, "int8")),
        *((32, False, "float64"), (32, False, "float32"), (32, False, "int32")),
    ],
)
def test_loops_that_are_written_with_vectors(monkeypatch, bytes_, masks, dtype):
    """Up and down, from any place on, of all lengths beside those of vectors: into results, rows and sums."""
    monkeypatch.setattr(Machine, "vectors", lambda _: (bytes_, bytes_, masks))
    x, y = pt.TensorType(dtype, (None,))("x"), pt.TensorType(dtype, (None,))("y")

    def expected(x, y, np):
        down = x[::-1]
        return [
            down * 2,
            x[1:] - x[:-1],
            down[1:] + y[:-1],
            (down * y)[::-1],
            np.concatenate([y, down, x[2:]]),
            # Sums of integers have no blocks; they are left to LLVM.
            *([] if dtype.startswith("int") else [(down * y).sum(), np.where(x > y[::-1], x, down).sum()]),
            *([] if dtype.startswith("int") else [np.cumsum(x)[::-1] - y]),
        ]

    outputs = expected(x, y, pt)
    kernel = made(monkeypatch, [x, y], outputs)
    assert (kernel.pass_level, kernel.vectorise) == (0, False)
    compiled = graphc.function([x, y], outputs)
    rng = np.random.default_rng(0)
    lanes = bytes_ // np.dtype(dtype).itemsize
    for size in {1, 2, 3, *(k * lanes + d for k in (1, 2, 4, 5) for d in (-1, 0, 1))}:
        values = [rng.integers(-9, 9, size).astype(dtype) for _ in range(2)]
        for found, wanted in zip(compiled(*values), expected(*values, np), strict=True):
            np.testing.assert_array_equal(found, np.asarray(wanted, found.dtype))
