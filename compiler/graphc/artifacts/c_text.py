# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR that all functions of the C interface share: checks of tensors and codes of errors (`graphc.h`)."""

from __future__ import annotations

# Numbers of graphc.h.
NULL, DTYPE, RANK, SHAPE, STRIDES, ALIGNMENT, MEMORY, CHECK, INTERNAL = range(1, 10)

TYPES = """
%tensor = type { ptr, ptr, ptr, i32, i32 }
%error = type { i32, i32, i32, i32, i64, i64, ptr }
%spec = type { i32, i32, i64, i64, ptr, i64, i64 }
%array = type { ptr, ptr, ptr, ptr, i32, i32, i32, i32 }
%function = type { i32, i32, i32, i32, ptr, ptr, ptr, ptr, ptr, ptr, ptr }
"""

# A spec says what a tensor has to be: dtype, rank, bytes and alignment of an element, sizes (-1: any), and
# where its pointer and its sizes go. With `exact` the sizes are there already.
SHARED = f"""
define internal i32 @graphc_c_fail(ptr %error, i32 %code, i32 %tensor, i64 %axis, i64 %given, i64 %expected,
    ptr %message) noinline cold nounwind {{
  %axis.short = trunc i64 %axis to i32
  %p1 = getelementptr %error, ptr %error, i64 0, i32 1
  %p2 = getelementptr %error, ptr %error, i64 0, i32 2
  %p3 = getelementptr %error, ptr %error, i64 0, i32 3
  %p4 = getelementptr %error, ptr %error, i64 0, i32 4
  %p5 = getelementptr %error, ptr %error, i64 0, i32 5
  %p6 = getelementptr %error, ptr %error, i64 0, i32 6
  store i32 %code, ptr %error
  store i32 %tensor, ptr %p1
  store i32 %axis.short, ptr %p2
  store i32 0, ptr %p3
  store i64 %given, ptr %p4
  store i64 %expected, ptr %p5
  store ptr %message, ptr %p6
  ret i32 %code
}}

define internal i32 @graphc_c_status(i64 %status, ptr %ctx, ptr %messages, i64 %count, ptr %error) nounwind {{
  switch i64 %status, label %check [ i64 0, label %good
                                     i64 -1, label %memory ]
good:
  ret i32 0
memory:
  %m = call i32 @graphc_c_fail(ptr %error, i32 {MEMORY}, i32 -1, i64 -1, i64 0, i64 0, ptr null)
  ret i32 %m
check:
  %site = sub i64 %status, 1
  %known = icmp ult i64 %site, %count
  br i1 %known, label %found, label %internal
found:
  %at = getelementptr ptr, ptr %messages, i64 %site
  %message = load ptr, ptr %at
  %given.at = getelementptr i64, ptr %ctx, i64 1
  %expected.at = getelementptr i64, ptr %ctx, i64 2
  %given = load i64, ptr %given.at
  %expected = load i64, ptr %expected.at
  %c = call i32 @graphc_c_fail(ptr %error, i32 {CHECK}, i32 -1, i64 -1, i64 %given, i64 %expected,
    ptr %message)
  ret i32 %c
internal:
  %i = call i32 @graphc_c_fail(ptr %error, i32 {INTERNAL}, i32 -1, i64 -1, i64 %status, i64 0, ptr null)
  ret i32 %i
}}

define internal i32 @graphc_c_tensors(ptr %tensors, i32 %first, i64 %count, ptr %specs, ptr %data, ptr %dims,
    i1 %exact, ptr %error) nounwind {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %done ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %success
success:
  ret i32 0
one:
  %i.short = trunc i64 %i to i32
  %number = add i32 %first, %i.short
  %t = getelementptr %tensor, ptr %tensors, i64 %i
  %s = getelementptr %spec, ptr %specs, i64 %i
  %t.shape.at = getelementptr %tensor, ptr %t, i64 0, i32 1
  %t.strides.at = getelementptr %tensor, ptr %t, i64 0, i32 2
  %t.dtype.at = getelementptr %tensor, ptr %t, i64 0, i32 3
  %t.rank.at = getelementptr %tensor, ptr %t, i64 0, i32 4
  %s.rank.at = getelementptr %spec, ptr %s, i64 0, i32 1
  %s.item.at = getelementptr %spec, ptr %s, i64 0, i32 2
  %s.align.at = getelementptr %spec, ptr %s, i64 0, i32 3
  %s.shape.at = getelementptr %spec, ptr %s, i64 0, i32 4
  %s.slot.at = getelementptr %spec, ptr %s, i64 0, i32 5
  %s.dim.at = getelementptr %spec, ptr %s, i64 0, i32 6
  %memory = load ptr, ptr %t
  %shape = load ptr, ptr %t.shape.at
  %strides = load ptr, ptr %t.strides.at
  %dtype = load i32, ptr %t.dtype.at
  %rank = load i32, ptr %t.rank.at
  %s.dtype = load i32, ptr %s
  %s.rank = load i32, ptr %s.rank.at
  %item = load i64, ptr %s.item.at
  %align = load i64, ptr %s.align.at
  %s.shape = load ptr, ptr %s.shape.at
  %slot = load i64, ptr %s.slot.at
  %dim = load i64, ptr %s.dim.at
  %own = getelementptr i64, ptr %dims, i64 %dim
  %same.dtype = icmp eq i32 %dtype, %s.dtype
  br i1 %same.dtype, label %ranks, label %bad.dtype
bad.dtype:
  %dg = sext i32 %dtype to i64
  %de = sext i32 %s.dtype to i64
  %d = call i32 @graphc_c_fail(ptr %error, i32 {DTYPE}, i32 %number, i64 -1, i64 %dg, i64 %de, ptr null)
  ret i32 %d
ranks:
  %same.rank = icmp eq i32 %rank, %s.rank
  br i1 %same.rank, label %ranked, label %bad.rank
bad.rank:
  %rg = sext i32 %rank to i64
  %re = sext i32 %s.rank to i64
  %r = call i32 @graphc_c_fail(ptr %error, i32 {RANK}, i32 %number, i64 -1, i64 %rg, i64 %re, ptr null)
  ret i32 %r
ranked:
  %long = sext i32 %rank to i64
  %scalar = icmp eq i32 %rank, 0
  %no.shape = icmp eq ptr %shape, null
  %not.scalar = xor i1 %scalar, true
  %missing = and i1 %no.shape, %not.scalar
  br i1 %missing, label %bad.null, label %axes
bad.null:
  %n = call i32 @graphc_c_fail(ptr %error, i32 {NULL}, i32 %number, i64 -1, i64 0, i64 0, ptr null)
  ret i32 %n
axes:
  br label %axis
axis:
  %a = phi i64 [ 0, %axes ], [ %a.next, %kept ]
  %elements = phi i64 [ 1, %axes ], [ %elements.next, %kept ]
  %a.more = icmp slt i64 %a, %long
  br i1 %a.more, label %size, label %sized
size:
  %size.at = getelementptr i64, ptr %shape, i64 %a
  %have = load i64, ptr %size.at
  %static.at = getelementptr i64, ptr %s.shape, i64 %a
  %static = load i64, ptr %static.at
  %own.at = getelementptr i64, ptr %own, i64 %a
  %computed = load i64, ptr %own.at
  %want = select i1 %exact, i64 %computed, i64 %static
  %any = icmp slt i64 %want, 0
  %equal = icmp eq i64 %have, %want
  %fine = or i1 %any, %equal
  %natural = icmp sge i64 %have, 0
  %taken = and i1 %fine, %natural
  br i1 %taken, label %kept, label %bad.shape
bad.shape:
  %h = call i32 @graphc_c_fail(ptr %error, i32 {SHAPE}, i32 %number, i64 %a, i64 %have, i64 %want, ptr null)
  ret i32 %h
kept:
  store i64 %have, ptr %own.at
  %elements.next = mul i64 %elements, %have
  %a.next = add i64 %a, 1
  br label %axis
sized:
  %data.at = getelementptr ptr, ptr %data, i64 %slot
  store ptr %memory, ptr %data.at
  %empty = icmp eq i64 %elements, 0
  br i1 %empty, label %done, label %present
present:
  %null = icmp eq ptr %memory, null
  br i1 %null, label %bad.null.data, label %aligned
bad.null.data:
  %nd = call i32 @graphc_c_fail(ptr %error, i32 {NULL}, i32 %number, i64 -1, i64 0, i64 0, ptr null)
  ret i32 %nd
aligned:
  %address = ptrtoint ptr %memory to i64
  %mask = sub i64 %align, 1
  %off = and i64 %address, %mask
  %good = icmp eq i64 %off, 0
  br i1 %good, label %layout, label %bad.align
bad.align:
  %l = call i32 @graphc_c_fail(ptr %error, i32 {ALIGNMENT}, i32 %number, i64 -1, i64 %off, i64 0, ptr null)
  ret i32 %l
layout:
  %plain = icmp eq ptr %strides, null
  br i1 %plain, label %done, label %stride
stride:
  %b = phi i64 [ %long, %layout ], [ %b.last, %fits ]
  %step = phi i64 [ %item, %layout ], [ %step.next, %fits ]
  %b.more = icmp sgt i64 %b, 0
  br i1 %b.more, label %test, label %done
test:
  %b.last = sub i64 %b, 1
  %length.at = getelementptr i64, ptr %shape, i64 %b.last
  %stride.at = getelementptr i64, ptr %strides, i64 %b.last
  %length = load i64, ptr %length.at
  %distance = load i64, ptr %stride.at
  %unit = icmp eq i64 %length, 1
  %right = icmp eq i64 %distance, %step
  %ok = or i1 %unit, %right
  br i1 %ok, label %fits, label %bad.stride
bad.stride:
  %e = call i32 @graphc_c_fail(ptr %error, i32 {STRIDES}, i32 %number, i64 %b.last, i64 %distance, i64 %step,
    ptr null)
  ret i32 %e
fits:
  %step.next = mul i64 %step, %length
  br label %stride
done:
  %i.next = add i64 %i, 1
  br label %next
}}

define internal void @graphc_c_sizes(ptr %tensors, i64 %count, ptr %specs, ptr %dims) nounwind {{
; Stores dtype, rank and sizes in tensors.
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %done ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %end
end:
  ret void
one:
  %t = getelementptr %tensor, ptr %tensors, i64 %i
  %s = getelementptr %spec, ptr %specs, i64 %i
  %t.shape.at = getelementptr %tensor, ptr %t, i64 0, i32 1
  %t.dtype.at = getelementptr %tensor, ptr %t, i64 0, i32 3
  %t.rank.at = getelementptr %tensor, ptr %t, i64 0, i32 4
  %s.rank.at = getelementptr %spec, ptr %s, i64 0, i32 1
  %s.dim.at = getelementptr %spec, ptr %s, i64 0, i32 6
  %shape = load ptr, ptr %t.shape.at
  %dtype = load i32, ptr %s
  %rank = load i32, ptr %s.rank.at
  %dim = load i64, ptr %s.dim.at
  store i32 %dtype, ptr %t.dtype.at
  store i32 %rank, ptr %t.rank.at
  %long = sext i32 %rank to i64
  %no.shape = icmp eq ptr %shape, null
  %limit = select i1 %no.shape, i64 0, i64 %long
  br label %axis
axis:
  %a = phi i64 [ 0, %one ], [ %a.next, %copy ]
  %a.more = icmp slt i64 %a, %limit
  br i1 %a.more, label %copy, label %done
copy:
  %at = add i64 %dim, %a
  %from = getelementptr i64, ptr %dims, i64 %at
  %to = getelementptr i64, ptr %shape, i64 %a
  %size = load i64, ptr %from
  store i64 %size, ptr %to
  %a.next = add i64 %a, 1
  br label %axis
done:
  %i.next = add i64 %i, 1
  br label %next
}}
"""
