# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR text that entries share: declarations, the overlap test, raising a kernel's error.

It is a part of its own, the same for all functions.

Text, and not in the kernel language: every function has an entry, and translating this would add some
milliseconds to the first one that a process compiles, however little that does.
"""

from __future__ import annotations

# A loop over the elements of an array.
_EACH = r"""
define void @{name}(ptr %from, i64 %count) {{
; {what}
begin:
  br label %test
test:
  %i = phi i64 [0, %begin], [%i1, %step]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %step, label %done
step:
  %p = getelementptr {element}, ptr %from, i64 %i
{lines}
  %i1 = add i64 %i, 1
  br label %test
done:
  ret void
}}
"""
_DROP = _EACH.format(
    name="graphc_drop",
    what="Gives up a reference to each object; null is skipped.",
    element="ptr",
    lines="  %object = load ptr, ptr %p\n  call void @Py_DecRef(ptr %object)",
)
# Entries that read objects through exported functions hold views of them.
_CLOSE = _EACH.format(
    name="graphc_close",
    what="Releases each Py_buffer (80 bytes); one that was never filled has no object and is skipped.",
    element="[80 x i8]",
    lines="  call void @PyBuffer_Release(ptr %p)",
)

DECLARED = r"""
@PyArray_Type = external global i8
@PyTuple_Type = external global i8
@PyList_Type = external global i8
@_Py_NoneStruct = external global i8
@PyExc_RuntimeError = external global ptr
@str_out = external global i8
declare i64 @graphc_shapes(ptr, ptr, ptr, ptr)
declare i64 @graphc_run(ptr, ptr, ptr)
declare ptr @graphc_raise_gone(ptr, ptr, i64, ptr)
declare i1 @graphc_shares(ptr, ptr, i64, i64)
declare i1 @graphc_overlap(ptr, ptr, i64, i64)
declare void @graphc_raise(ptr, i64, ptr) cold
declare void @graphc_drop(ptr, i64)
declare void @graphc_close(ptr, i64)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_Type(ptr)
declare i32 @PyObject_GetBuffer(ptr, ptr, i32)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @PyErr_SetString(ptr, ptr)
declare void @PyErr_Clear()
declare ptr @PyList_New(i64)
declare ptr @PyList_GetItem(ptr, i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyTuple_Size(ptr)
declare i64 @PySequence_Size(ptr)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @PyArray_GetPtr(ptr, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

!0 = !{!"branch_weights", i32 1000, i32 1}
!1 = !{!"branch_weights", i32 1, i32 1}
"""
# The callable is a graphc_runtime.callable_type.NativeCallable, whose field is null while it is being
# collected; the flag bit of nargs is dropped (PEP 590).
VECTORCALL = """
define ptr @graphc_vectorcall(ptr %callable, ptr %args, i64 %nargsf, ptr %kwnames) {
  %field = getelementptr i8, ptr %callable, i64 24
  %self = load ptr, ptr %field
  %gone = icmp eq ptr %self, null
  %nargs = and i64 %nargsf, 9223372036854775807
  %entry = select i1 %gone, ptr @graphc_raise_gone, ptr @graphc_entry
  %result = tail call ptr %entry(ptr %self, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %result
}
"""
_HELPERS = r"""
@PyExc_RuntimeError = external global ptr
@graphc_no_error = internal constant [48 x i8] c"the error handler of a function did not raise\00\00\00"
declare void @Py_DecRef(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @PyBuffer_Release(ptr)
declare void @PyErr_SetString(ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare ptr @PyLong_FromLongLong(i64)

@graphc_gone = internal constant [47 x i8] c"the function has been cleared by the collector\00"

define ptr @graphc_raise_gone(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) cold {
; Instead of an entry, which needs the function.
  %class = load ptr, ptr @PyExc_RuntimeError
  call void @PyErr_SetString(ptr %class, ptr @graphc_gone)
  ret ptr null
}

define i1 @graphc_shares(ptr %data, ptr %bytes, i64 %i, i64 %count) {
; Whether array i shares memory with another one of the first ones.
begin:
  %pi = getelementptr ptr, ptr %data, i64 %i
  %si = getelementptr i64, ptr %bytes, i64 %i
  %di = load i64, ptr %pi
  %ni = load i64, ptr %si
  %ei = add i64 %di, %ni
  br label %inner
inner:
  %j = phi i64 [0, %begin], [%j1, %apart]
  %unfinished = icmp slt i64 %j, %count
  br i1 %unfinished, label %compare, label %no
compare:
  %pj = getelementptr ptr, ptr %data, i64 %j
  %sj = getelementptr i64, ptr %bytes, i64 %j
  %dj = load i64, ptr %pj
  %nj = load i64, ptr %sj
  %ej = add i64 %dj, %nj
  %before = icmp ule i64 %ei, %dj
  %after = icmp ule i64 %ej, %di
  %same = icmp eq i64 %i, %j
  %disjoint = or i1 %before, %after
  %fine = or i1 %disjoint, %same
  br i1 %fine, label %apart, label %yes
apart:
  %j1 = add i64 %j, 1
  br label %inner
no:
  ret i1 false
yes:
  ret i1 true
}

define i1 @graphc_overlap(ptr %data, ptr %bytes, i64 %first, i64 %count) {
; Whether a result (first <= i < count) shares memory with an argument or an earlier result.
begin:
  br label %test
test:
  %i = phi i64 [%first, %begin], [%i1, %next]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %no
look:
  %shares = call i1 @graphc_shares(ptr %data, ptr %bytes, i64 %i, i64 %i)
  br i1 %shares, label %yes, label %next
next:
  %i1 = add i64 %i, 1
  br label %test
no:
  ret i1 false
yes:
  ret i1 true
}

define void @graphc_raise(ptr %handler, i64 %status, ptr %ctx) cold {
; handler(status, given, expected) raises; with status -3 the context has the exception.
  %interrupted = icmp eq i64 %status, -3
  br i1 %interrupted, label %restore, label %other
restore:
  %pt = getelementptr i64, ptr %ctx, i64 4
  %pv = getelementptr i64, ptr %ctx, i64 5
  %pb = getelementptr i64, ptr %ctx, i64 6
  %type = load ptr, ptr %pt
  %value = load ptr, ptr %pv
  %back = load ptr, ptr %pb
  call void @PyErr_Restore(ptr %type, ptr %value, ptr %back)
  ret void
other:
  %argv = alloca [3 x ptr]
  %a1 = getelementptr ptr, ptr %argv, i64 1
  %a2 = getelementptr ptr, ptr %argv, i64 2
  %pg = getelementptr i64, ptr %ctx, i64 1
  %pe = getelementptr i64, ptr %ctx, i64 2
  %given = load i64, ptr %pg
  %expected = load i64, ptr %pe
  %o0 = call ptr @PyLong_FromLongLong(i64 %status)
  %o1 = call ptr @PyLong_FromLongLong(i64 %given)
  %o2 = call ptr @PyLong_FromLongLong(i64 %expected)
  store ptr %o0, ptr %argv
  store ptr %o1, ptr %a1
  store ptr %o2, ptr %a2
  %n0 = icmp eq ptr %o0, null
  %n1 = icmp eq ptr %o1, null
  %n2 = icmp eq ptr %o2, null
  %n01 = or i1 %n0, %n1
  %none = or i1 %n01, %n2
  br i1 %none, label %drop, label %call
call:
  %result = call ptr @PyObject_Vectorcall(ptr %handler, ptr %argv, i64 3, ptr null)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %drop, label %returned
returned:
  call void @Py_DecRef(ptr %result)
  %class = load ptr, ptr @PyExc_RuntimeError
  call void @PyErr_SetString(ptr %class, ptr @graphc_no_error)
  br label %drop
drop:
  call void @Py_DecRef(ptr %o0)
  call void @Py_DecRef(ptr %o1)
  call void @Py_DecRef(ptr %o2)
  ret void
}
"""


def helpers_ir(tiers: tuple[str, ...]) -> str:
    """The functions that entries call, the same for all functions.

    Args:
        tiers: of the entries; what holds views of arrays is only there if one does.
    """
    return _HELPERS + _DROP + (_CLOSE if "buffer" in tiers else "")
