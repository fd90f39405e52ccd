# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR text of what long loops call: `graphc_tick(ctx)` and `graphc_progress_<name>(ctx, done, total)`.

A tick counts the context's fuel down, which costs a nanosecond. When it is used up, `graphc_poll` looks at
the clock and sets the fuel so that polls are about a millisecond apart, and every 50 ms it lets CPython run
signal handlers that are due, and other threads (see `graphc_runtime.interrupts`, which has the words of
context and table). A status other than 0 ends the kernel. `<name>` is the name of a loop in hex; its function
also tells how far the loop is, whenever handlers have been looked after, and when the loop has ended.

Text, and not in the kernel language, as the functions of the table are called by their addresses, which that
cannot say, and as this code is not optimised either (`graphc.library.memory.packing`).
"""

from __future__ import annotations

from collections.abc import Iterable

from graphc.library.float_environment import SAVE, SET, environment_ir
from graphc.library.helpers import Helper, Poll, Progress, of_kind
from graphc_runtime.interrupts import ENVIRONMENT_WORD


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
    if not called:
        return ""
    text = [_POLL]
    for poll in called:
        if isinstance(poll, Progress):
            label = poll.loop.encode() + b"\0"
            array = "".join(f"\\{byte:02x}" for byte in label)
            reporting = _PROGRESS.replace("SYMBOL", poll.symbol).replace("SIZE", str(len(label)))
            text.append(reporting.replace("TEXT", array))
    enter, leave = (_ENTER, _LEAVE) if flush else ("", "")
    ir_text = "".join(text).replace("  ENTER\n", enter).replace("  LEAVE\n", leave)
    return ir_text + environment_ir(flush) if flush else ir_text


_ENTER = f"""  %kernels = alloca i64, align 8
  %callers = getelementptr i64, ptr %ctx, i64 {ENVIRONMENT_WORD}
  call void @{SAVE}(ptr %kernels)
  call void @{SET}(ptr %callers)
"""
_LEAVE = f"  call void @{SET}(ptr %kernels)\n"


_POLL = """
define i64 @graphc_poll(ptr %ctx) noinline cold nounwind {
begin:
  %time = alloca [2 x i64]
  %p3 = getelementptr i64, ptr %ctx, i64 3
  %p4 = getelementptr i64, ptr %ctx, i64 4
  %p5 = getelementptr i64, ptr %ctx, i64 5
  %p6 = getelementptr i64, ptr %ctx, i64 6
  %p7 = getelementptr i64, ptr %ctx, i64 7
  %table = load ptr, ptr %p3
  %none = icmp eq ptr %table, null
  br i1 %none, label %never, label %compare
compare:
  %main = load i64, ptr %table
  %unknown = icmp eq i64 %main, 0
  br i1 %unknown, label %never, label %identify
identify:
  %t1 = getelementptr i64, ptr %table, i64 1
  %identity = load ptr, ptr %t1
  %thread = call i64 %identity()
  %p8 = getelementptr i64, ptr %ctx, i64 8
  %gil = load i64, ptr %p8
  %shared = icmp eq i64 %gil, 1
  %same = icmp eq i64 %thread, %main
  %useful = or i1 %same, %shared
  br i1 %useful, label %look, label %never
never:
  store i64 9223372036854775807, ptr %p4
  ret i64 0
look:
  %t2 = getelementptr i64, ptr %table, i64 2
  %t3 = getelementptr i64, ptr %table, i64 3
  %clock = load ptr, ptr %t2
  %timing = load i64, ptr %t3
  %which = trunc i64 %timing to i8
  %kind = zext i8 %which to i32
  %interval = lshr i64 %timing, 8
  call i32 %clock(i32 %kind, ptr %time)
  %fraction = getelementptr i64, ptr %time, i64 1
  %seconds = load i64, ptr %time
  %rest = load i64, ptr %fraction
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %last = load i64, ptr %p6
  store i64 %now, ptr %p6
  %first = icmp eq i64 %last, 0
  br i1 %first, label %start, label %pace
start:
  store i64 1, ptr %p4
  store i64 1, ptr %p5
  store i64 %now, ptr %p7
  ret i64 0
pace:
  %elapsed = sub i64 %now, %last
  %step = load i64, ptr %p5
  %quick = icmp ult i64 %elapsed, 300000
  %slow = icmp ugt i64 %elapsed, 5000000
  %more = mul i64 %step, 8
  %fewer = lshr i64 %step, 3
  %large = icmp ugt i64 %more, 16777216
  %small = icmp eq i64 %fewer, 0
  %up = select i1 %large, i64 16777216, i64 %more
  %down = select i1 %small, i64 1, i64 %fewer
  %grown = select i1 %quick, i64 %up, i64 %step
  %next = select i1 %slow, i64 %down, i64 %grown
  store i64 %next, ptr %p5
  store i64 %next, ptr %p4
  %checked = load i64, ptr %p7
  %since = sub i64 %now, %checked
  %due = icmp ugt i64 %since, %interval
  br i1 %due, label %handle, label %good
good:
  ret i64 0
handle:
  store i64 %now, ptr %p7
  %t4 = getelementptr i64, ptr %table, i64 4
  %t5 = getelementptr i64, ptr %table, i64 5
  %t6 = getelementptr i64, ptr %table, i64 6
  %t7 = getelementptr i64, ptr %table, i64 7
  %ensure = load ptr, ptr %t4
  %check = load ptr, ptr %t5
  %fetch = load ptr, ptr %t6
  %release = load ptr, ptr %t7
  ENTER
  %state = call i32 %ensure()
  br i1 %shared, label %yield, label %run
yield:
  %t9 = getelementptr i64, ptr %table, i64 9
  %t10 = getelementptr i64, ptr %table, i64 10
  %save = load ptr, ptr %t9
  %restore = load ptr, ptr %t10
  %saved = call ptr %save()
  call void %restore(ptr %saved)
  br label %run
run:
  %raised = call i32 %check()
  %quiet = icmp eq i32 %raised, 0
  br i1 %quiet, label %continue, label %keep
continue:
  call void %release(i32 %state)
  LEAVE
  ret i64 0
keep:
  call void %fetch(ptr %p4, ptr %p5, ptr %p6)
  call void %release(i32 %state)
  LEAVE
  ret i64 -3
}
"""

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

_PROGRESS = """
@SYMBOL_name = internal constant [SIZE x i8] c"TEXT"
define i64 @SYMBOL(ptr %ctx, i64 %done, i64 %total) noinline nounwind {
begin:
  %field = getelementptr i64, ptr %ctx, i64 4
  %look = getelementptr i64, ptr %ctx, i64 7
  %pt = getelementptr i64, ptr %ctx, i64 3
  %table = load ptr, ptr %pt
  %none = icmp eq ptr %table, null
  br i1 %none, label %go, label %count
count:
  %fuel = load i64, ptr %field
  %left = sub i64 %fuel, 1
  store i64 %left, ptr %field
  %ended = icmp sge i64 %done, %total
  br i1 %ended, label %tell, label %test
test:
  %empty = icmp slt i64 %left, 0
  br i1 %empty, label %poll, label %go
poll:
  %before = load i64, ptr %look
  %status = call i64 @graphc_poll(ptr %ctx)
  %after = load i64, ptr %look
  %bad = icmp ne i64 %status, 0
  br i1 %bad, label %stop, label %moved
moved:
  %same = icmp eq i64 %before, %after
  br i1 %same, label %go, label %tell
stop:
  ret i64 %status
tell:
  %t8 = getelementptr i64, ptr %table, i64 8
  %callback = load ptr, ptr %t8
  %missing = icmp eq ptr %callback, null
  br i1 %missing, label %go, label %call
call:
  ENTER
  call void %callback(ptr @SYMBOL_name, i64 %done, i64 %total)
  LEAVE
  br label %go
go:
  ret i64 0
}
"""
