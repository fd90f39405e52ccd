# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of sort functions for C programs, in the place of NumPy's: heapsort of unsigned integers."""

from __future__ import annotations

_SORT = """
define internal void @sift_{bits}(ptr %data, i64 %root, i64 %count) nounwind {{
; Lets the element at a root sink to where both of its children are smaller.
entry:
  %first = getelementptr i{bits}, ptr %data, i64 %root
  %value = load i{bits}, ptr %first
  br label %look
look:
  %at = phi i64 [ %root, %entry ], [ %larger, %sink ]
  %twice = shl i64 %at, 1
  %left = add i64 %twice, 1
  %any = icmp slt i64 %left, %count
  br i1 %any, label %children, label %place
children:
  %right = add i64 %twice, 2
  %both = icmp slt i64 %right, %count
  %other = select i1 %both, i64 %right, i64 %left
  %left.at = getelementptr i{bits}, ptr %data, i64 %left
  %other.at = getelementptr i{bits}, ptr %data, i64 %other
  %a = load i{bits}, ptr %left.at
  %b = load i{bits}, ptr %other.at
  %second = icmp ugt i{bits} %b, %a
  %larger = select i1 %second, i64 %other, i64 %left
  %most = select i1 %second, i{bits} %b, i{bits} %a
  %lower = icmp ugt i{bits} %most, %value
  br i1 %lower, label %sink, label %place
sink:
  %hole = getelementptr i{bits}, ptr %data, i64 %at
  store i{bits} %most, ptr %hole
  br label %look
place:
  %target = getelementptr i{bits}, ptr %data, i64 %at
  store i{bits} %value, ptr %target
  ret void
}}

define i32 @numpy_sort_uint{bits}(ptr %data, i64 %count, ptr %unused) nounwind {{
entry:
  %half = lshr i64 %count, 1
  br label %build
build:
  %i = phi i64 [ %half, %entry ], [ %i.next, %one ]
  %more = icmp sgt i64 %i, 0
  br i1 %more, label %one, label %extract
one:
  %i.next = sub i64 %i, 1
  call void @sift_{bits}(ptr %data, i64 %i.next, i64 %count)
  br label %build
extract:
  %end = phi i64 [ %count, %build ], [ %last, %take ]
  %left = icmp sgt i64 %end, 1
  br i1 %left, label %take, label %done
take:
  %last = sub i64 %end, 1
  %last.at = getelementptr i{bits}, ptr %data, i64 %last
  %largest = load i{bits}, ptr %data
  %moved = load i{bits}, ptr %last.at
  store i{bits} %largest, ptr %last.at
  store i{bits} %moved, ptr %data
  call void @sift_{bits}(ptr %data, i64 0, i64 %last)
  br label %extract
done:
  ret i32 0
}}
"""


def sort_ir() -> str:
    """The functions' text."""
    return "".join(_SORT.format(bits=bits) for bits in (8, 16, 32, 64))
