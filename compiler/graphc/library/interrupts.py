# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Callbacks of long loops: `graphc_tick(ctx)` and `graphc_progress_<name>(ctx, done, total)`.

A tick counts the context's fuel down, which costs a nanosecond. When it is used up, `graphc_poll` looks at
the clock and sets the fuel so that polls are about a millisecond apart, and every 50 ms it lets CPython run
signal handlers that are due, and other threads (see `graphc_runtime.interrupts`, which has the words of
context and table). A status other than 0 ends the kernel. `<name>` is the name of a loop in hex; its function
also tells how far the loop is, whenever handlers have been looked after, and when the loop has ended.

The tick is text, and not in the kernel language, for what it says of the memory that a poll touches.
"""
# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from graphc.library.float_environment import SAVE, SET, environment_ir
from graphc.library.helpers import Helper, Poll, Progress, of_kind
from graphc.library.workspace import CONTEXT, words
from graphc.native import I64, Static, Value
from graphc.native.builtins import at, cast, inlined, invoke, local, variable
from graphc.native.translate import Translator
from graphc_runtime.interrupts import (
    ENVIRONMENT_WORD,
    FUEL_WORD,
    GIL_SHARED,
    GIL_WORD,
    HOOKS_WORD,
    INTERRUPTED,
)

# Words of the context that only polls use, and bounds of the fuel between two polls.
_STEP, _LAST, _LOOKED = FUEL_WORD + 1, FUEL_WORD + 2, FUEL_WORD + 3
_FOR_EVER, _MOST_FUEL = (1 << 63) - 1, 1 << 24
# Words of the table.
_MAIN, _IDENTITY, _CLOCK, _TIMING, _ENSURE, _CHECK, _FETCH, _RELEASE, _CALLBACK, _SAVE, _RESTORE = range(11)


def polls(helpers: Iterable[Helper]) -> list[Poll]:
    """The functions of this module among those that a kernel calls."""
    return of_kind(helpers, Poll)


def tick_ir(called: list[Poll]) -> str:
    """The definition of `graphc_tick`, if it is one of these functions; it is inlined."""
    return _TICK if Poll() in called else ""


def poll_ir(called: list[Poll], flush: str = "") -> str:
    """Definitions of what a tick calls, and of the other ones of these functions.

    Args:
        called: what a kernel calls.
        flush: the triple of the target, if the kernel computes in an environment of its own: what is called
            in Python runs in that of the kernel's caller.
    """
    return _poll_ir(tuple(x for x in called if isinstance(x, Progress)), flush) if called else ""


@cache
def _poll_ir(reporting: tuple[Progress, ...], flush: str) -> str:
    t = Translator(prefix="graphc_polling", apart=False)
    flushes, labels = Static(bool(flush)), ""
    t.define(poll, "graphc_poll", [CONTEXT, flushes], attributes="noinline cold")
    for loop in reporting:
        label = loop.loop.encode() + b"\0"
        text = "".join(f"\\{byte:02x}" for byte in label)
        labels += f'@{loop.symbol}_name = internal constant [{len(label)} x i8] c"{text}"\n'
        numbers = [Value("%done", I64), Value("%total", I64)]
        name = Static(f"{loop.symbol}_name")
        t.define(progress, loop.symbol, [CONTEXT, *numbers, name, flushes], attributes="noinline")
    return labels + t.text() + (environment_ir(flush) if flush else "")


@inlined
def code(table, i):
    """A function of the table."""
    return at(table[i], "u8")


@inlined
def is_looked_after(context):
    """True if handlers run for this call: it is one of the main thread, or shares the GIL."""
    if context[HOOKS_WORD] == 0:
        return False
    table = words(context[HOOKS_WORD])
    if table[_MAIN] == 0:
        return False
    return invoke(code(table, _IDENTITY), returns="i64") == table[_MAIN] or context[GIL_WORD] == GIL_SHARED


def poll(context, flushes):
    """Looks at the clock, and runs handlers if that is due."""
    if not is_looked_after(context):
        context[FUEL_WORD] = _FOR_EVER
        return 0
    table, time = words(context[HOOKS_WORD]), local(2, "i64")
    invoke(code(table, _CLOCK), cast(table[_TIMING] & 255, "i32"), time, returns="i32")
    now, last, step = time[0] * 1000000000 + time[1], context[_LAST], context[_STEP]
    context[_LAST] = now
    if last == 0:
        context[FUEL_WORD] = 1
        context[_STEP] = 1
        context[_LOOKED] = now
        return 0
    if now - last < 300000:
        step = min(8 * step, _MOST_FUEL)
    elif now - last > 5000000:
        step = max(step >> 3, 1)
    context[_STEP] = step
    context[FUEL_WORD] = step
    if now - context[_LOOKED] <= table[_TIMING] >> 8:
        return 0
    context[_LOOKED] = now
    return handle(context, table, flushes)


@inlined
def handle(context, table, flushes):
    """Runs handlers that are due, and other threads; an exception goes to the context."""
    kernels = enter(context, flushes)
    state = invoke(code(table, _ENSURE), returns="i32")
    if context[GIL_WORD] == GIL_SHARED:
        invoke(code(table, _RESTORE), invoke(code(table, _SAVE), returns="u8*"))
    raised = invoke(code(table, _CHECK), returns="i32") != 0
    if raised:
        invoke(code(table, _FETCH), context[FUEL_WORD:], context[_STEP:], context[_LAST:])
    invoke(code(table, _RELEASE), state)
    leave(kernels, flushes)
    return INTERRUPTED if raised else 0


@inlined
def enter(context, flushes):
    """Makes the environment of the kernel's caller the thread's; the kernel's own."""
    kernels = local(1, "i64")
    if flushes:
        invoke(variable(SAVE, "u8"), kernels)
        invoke(variable(SET, "u8"), context[ENVIRONMENT_WORD:])
    return kernels


@inlined
def leave(kernels, flushes):
    """The reverse of `enter`."""
    if flushes:
        invoke(variable(SET, "u8"), kernels)


def progress(context, done, total, name, flushes):
    """A tick that also tells how far a loop is."""
    if context[HOOKS_WORD] == 0:
        return 0
    context[FUEL_WORD] -= 1
    if done < total:
        if context[FUEL_WORD] >= 0:
            return 0
        looked = context[_LOOKED]
        status = poll(context, flushes)
        if status != 0:
            return status
        if context[_LOOKED] == looked:
            return 0
    table = words(context[HOOKS_WORD])
    if table[_CALLBACK] != 0:
        kernels = enter(context, flushes)
        invoke(code(table, _CALLBACK), variable(name, "u8"), done, total)
        leave(kernels, flushes)
    return 0


# Nothing that kernels compute with is read or written; the table is none of their memory.
_TICK = """
declare i64 @graphc_poll(ptr) cold nounwind memory(argmem: readwrite, inaccessiblemem: readwrite)
!1 = !{!"branch_weights", i32 1, i32 1}
define i64 @graphc_tick(ptr %ctx) alwaysinline nounwind {
  %field = getelementptr i64, ptr %ctx, i64 4
  %fuel = load i64, ptr %field
  %left = sub i64 %fuel, 1
  store i64 %left, ptr %field
  %empty = icmp slt i64 %left, 0
  br i1 %empty, label %poll, label %go, !prof !1
poll:
  %status = call i64 @graphc_poll(ptr %ctx)
  ret i64 %status
go:
  ret i64 0
}
"""
