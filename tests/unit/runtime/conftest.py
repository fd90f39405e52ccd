# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small kernels written by hand, compiled once, for the runtime's tests."""

from __future__ import annotations

import functools

import pytest

from graphc_runtime import elf, layout
from graphc_runtime.artifact import Artifact
from graphc_runtime.errors import Site
from graphc_runtime.machine_code import MachineCode
from graphc_runtime.manifest import ArraySpec, Manifest, Signature, Update

VECTOR = ArraySpec("float64", (None,), "x")
PLAIN_SHAPES = "define i64 @graphc_shapes(ptr %ctx, ptr %data, ptr %dims, ptr %out) {\n  ret i64 0\n}\n"

# out[i] = a[i] + b[i]; the work of every kernel here.
ADD = """
define internal void @add(ptr %a, ptr %b, ptr %o, i64 %n) {
begin:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [0, %begin], [%i1, %loop]
  %pa = getelementptr double, ptr %a, i64 %i
  %pb = getelementptr double, ptr %b, i64 %i
  %po = getelementptr double, ptr %o, i64 %i
  %x = load double, ptr %pa
  %y = load double, ptr %pb
  %s = fadd double %x, %y
  store double %s, ptr %po
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

# Two vectors of equal length (site 0); their sum twice: outputs x + y and (x + y) + y.
TWO = (
    ADD
    + """
define i64 @graphc_shapes(ptr %ctx, ptr %data, ptr %dims, ptr %out) {
  %pm = getelementptr i64, ptr %dims, i64 1
  %n = load i64, ptr %dims
  %m = load i64, ptr %pm
  %po = getelementptr i64, ptr %out, i64 1
  store i64 %n, ptr %out
  store i64 %n, ptr %po
  %same = icmp eq i64 %n, %m
  br i1 %same, label %good, label %bad
good:
  ret i64 0
bad:
  %pg = getelementptr i64, ptr %ctx, i64 1
  %pe = getelementptr i64, ptr %ctx, i64 2
  store i64 %m, ptr %pg
  store i64 %n, ptr %pe
  ret i64 1
}
define i64 @graphc_run(ptr %ctx, ptr %data, ptr %dims) {
  %py = getelementptr ptr, ptr %data, i64 1
  %po = getelementptr ptr, ptr %data, i64 2
  %pq = getelementptr ptr, ptr %data, i64 3
  %x = load ptr, ptr %data
  %y = load ptr, ptr %py
  %o = load ptr, ptr %po
  %q = load ptr, ptr %pq
  %n = load i64, ptr %dims
  call void @add(ptr %x, ptr %y, ptr %o, i64 %n)
  call void @add(ptr %o, ptr %y, ptr %q, i64 %n)
  ret i64 0
}
"""
)

# Input x (3), cell c (3): c becomes c + x; fails (site 0) when x[0] < 0. The sum passes through two arena
# blocks.
COUNTER = (
    ADD
    + PLAIN_SHAPES
    + """
declare ptr @graphc_alloc(ptr, i64)
define i64 @graphc_run(ptr %ctx, ptr %data, ptr %dims) {
  %pc = getelementptr ptr, ptr %data, i64 1
  %po = getelementptr ptr, ptr %data, i64 2
  %x = load ptr, ptr %data
  %c = load ptr, ptr %pc
  %o = load ptr, ptr %po
  %waste = call ptr @graphc_alloc(ptr %ctx, i64 1000)
  %t = call ptr @graphc_alloc(ptr %ctx, i64 24)
  %ti = ptrtoint ptr %t to i64
  %low = and i64 %ti, 63
  %aligned = icmp eq i64 %low, 0
  br i1 %aligned, label %go, label %memory
go:
  call void @llvm.memset.p0.i64(ptr %t, i8 0, i64 24, i1 false)
  store volatile i8 0, ptr %waste
  call void @add(ptr %x, ptr %t, ptr %t, i64 3)
  call void @add(ptr %t, ptr %c, ptr %o, i64 3)
  %first = load double, ptr %x
  %bad = fcmp olt double %first, 0.0
  br i1 %bad, label %fail, label %good
good:
  ret i64 0
fail:
  %pg = getelementptr i64, ptr %ctx, i64 1
  store i64 -7, ptr %pg
  ret i64 1
memory:
  ret i64 -1
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
)

# Scalar in, vector of that many ones out; the temporary has 2^62 bytes when the scalar is 99.
ONES = """
declare ptr @graphc_alloc(ptr, i64)
define i64 @graphc_shapes(ptr %ctx, ptr %data, ptr %dims, ptr %out) {
  %p = load ptr, ptr %data
  %n = load i64, ptr %p
  store i64 %n, ptr %out
  ret i64 0
}
define i64 @graphc_run(ptr %ctx, ptr %data, ptr %dims) {
begin:
  %p = load ptr, ptr %data
  %n = load i64, ptr %p
  %po = getelementptr ptr, ptr %data, i64 1
  %o = load ptr, ptr %po
  %huge = icmp eq i64 %n, 99
  %bytes = select i1 %huge, i64 4611686018427387904, i64 8
  %t = call ptr @graphc_alloc(ptr %ctx, i64 %bytes)
  %none = icmp eq ptr %t, null
  br i1 %none, label %memory, label %test
test:
  %i = phi i64 [0, %begin], [%i1, %body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %pi = getelementptr double, ptr %o, i64 %i
  store double 1.0, ptr %pi
  %i1 = add i64 %i, 1
  br label %test
done:
  ret i64 0
memory:
  ret i64 -1
}
"""

THREE = ArraySpec("float64", (3,), "x")
KERNELS = {
    "two": (
        TWO,
        Signature((VECTOR, VECTOR), outputs=(VECTOR, VECTOR), returns="list", name="two", gil_threshold=1000),
        (Site("lengths differ: given {given}, expected {expected}", "ValueError", "n4"),),
    ),
    "counter": (
        COUNTER,
        Signature(
            (THREE,),
            cells=(ArraySpec("float64", (3,), "c"),),
            updates=(Update(0, THREE),),
            returns="none",
            needs_shapes=False,
            name="counter",
        ),
        (Site("negative: {given}", "IndexError"),),
    ),
    "ones": (ONES, Signature((ArraySpec("int64", (), "n"),), outputs=(VECTOR,), name="ones"), ()),
}


@functools.cache
def build(name: str) -> Artifact:
    from graphc.backends.cpu.generate import KERNEL_EXPORTS, entry_parts
    from graphc.backends.cpu.object import compile_to_object, this_machine
    from graphc.library.workspace import memory_ir

    kernel, signature, sites = KERNELS[name]
    memory = memory_ir((), keep_bytes=1 << 30, poison=False, arena=True)
    entries, parts = entry_parts(signature, ("struct", "buffer"), memory)
    code = compile_to_object(kernel, exports=KERNEL_EXPORTS, parts=parts)
    manifest = Manifest(
        signature,
        sites=tuple(sites),
        symbols=tuple(elf.external_symbols(code)),
        target=this_machine().to_dict(),
        entries=entries,
        tuple_items=layout.tuple_items(),
    )
    return Artifact(manifest, code)


@pytest.fixture(params=["struct", "buffer", "python"])
def tier(request, monkeypatch):
    """Each way of calling; the test runs on all of them."""
    monkeypatch.setenv("GRAPHC_CALL_TIER", request.param)
    return request.param


@pytest.fixture
def artifact():
    return build


@pytest.fixture
def executable():
    return lambda name: MachineCode(build(name))
