# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR text that places buffers at run time: the algorithm of `graphc.library.memory.places`.

Text, and not in the kernel language, whose variables are in memory until LLVM's passes move them to
registers: this code is compiled as it stands. Those passes take 9 ms for a function with a workspace, whose
code is made in 22.
"""

from __future__ import annotations

from graphc.library.memory.places import MOST_FOR_ALL_ORDERS

# Sizes are rounded up to the alignment. A row of the table is {first, last, units, key}.
PACK = """
define internal i64 @graphc_size_of(ptr %table, ptr %sizes, i64 %i) noinline optnone nounwind {
  %row = getelementptr [4 x i64], ptr %table, i64 %i
  %pu = getelementptr i64, ptr %row, i64 2
  %pk = getelementptr i64, ptr %row, i64 3
  %units = load i64, ptr %pu
  %key = load i64, ptr %pk
  %ps = getelementptr i64, ptr %sizes, i64 %key
  %count = load i64, ptr %ps
  %bytes = mul i64 %units, %count
  %past = add i64 %bytes, 63
  %rounded = and i64 %past, -64
  ret i64 %rounded
}

define internal i64 @graphc_weight(ptr %table, ptr %sizes, i64 %i, i64 %by) noinline optnone nounwind {
; What buffers are ordered by: 0 size, 1 size times length of life, 2 length of life, 3 end of life.
  %size = call i64 @graphc_size_of(ptr %table, ptr %sizes, i64 %i)
  %row = getelementptr [4 x i64], ptr %table, i64 %i
  %pl = getelementptr i64, ptr %row, i64 1
  %first = load i64, ptr %row
  %last = load i64, ptr %pl
  %less = sub i64 %last, %first
  %length = add i64 %less, 1
  %both = mul i64 %size, %length
  %is0 = icmp eq i64 %by, 0
  %is1 = icmp eq i64 %by, 1
  %is2 = icmp eq i64 %by, 2
  %w2 = select i1 %is2, i64 %length, i64 %last
  %w1 = select i1 %is1, i64 %both, i64 %w2
  %w0 = select i1 %is0, i64 %size, i64 %w1
  ret i64 %w0
}

define internal i64 @graphc_pack(ptr %table, i64 %count, ptr %sizes, ptr %offsets, ptr %order)
    noinline optnone nounwind {
; Tries all orders, and goes back to the best; of equal ones to the first.
begin:
  %many = icmp sgt i64 %count, MOST
  %orders = select i1 %many, i64 1, i64 4
  br label %try
try:
  %by = phi i64 [0, %begin], [%by1, %tried]
  %best = phi i64 [0, %begin], [%best1, %tried]
  %least = phi i64 [-1, %begin], [%least1, %tried]
  %more = icmp slt i64 %by, %orders
  br i1 %more, label %tried, label %last
tried:
  %whole = call i64 @graphc_place(ptr %table, i64 %count, ptr %sizes, ptr %offsets, ptr %order, i64 %by)
  %better = icmp ult i64 %whole, %least
  %least1 = select i1 %better, i64 %whole, i64 %least
  %best1 = select i1 %better, i64 %by, i64 %best
  %by1 = add i64 %by, 1
  br label %try
last:
  %before = sub i64 %by, 1
  %done = icmp eq i64 %best, %before
  br i1 %done, label %good, label %again
again:
  call i64 @graphc_place(ptr %table, i64 %count, ptr %sizes, ptr %offsets, ptr %order, i64 %best)
  br label %good
good:
  ret i64 %least
}

define internal i64 @graphc_place(ptr %table, i64 %count, ptr %sizes, ptr %offsets, ptr %order, i64 %by)
    noinline optnone nounwind {
begin:
  br label %sort
sort:
; Sorts by weight, the largest first.
  %i = phi i64 [0, %begin], [%i1, %put]
  %unsorted = icmp slt i64 %i, %count
  br i1 %unsorted, label %pick, label %place
pick:
  %si = call i64 @graphc_weight(ptr %table, ptr %sizes, i64 %i, i64 %by)
  br label %insert
insert:
  %at = phi i64 [%i, %pick], [%before, %shift]
  %ahead = icmp sgt i64 %at, 0
  br i1 %ahead, label %compare, label %put
compare:
  %before = sub i64 %at, 1
  %pj = getelementptr i64, ptr %order, i64 %before
  %j = load i64, ptr %pj
  %sj = call i64 @graphc_weight(ptr %table, ptr %sizes, i64 %j, i64 %by)
  %smaller = icmp slt i64 %sj, %si
  br i1 %smaller, label %shift, label %put
shift:
  %pat = getelementptr i64, ptr %order, i64 %at
  store i64 %j, ptr %pat
  br label %insert
put:
  %final = getelementptr i64, ptr %order, i64 %at
  store i64 %i, ptr %final
  %i1 = add i64 %i, 1
  br label %sort
place:
; The first p buffers in `order` have their places, and are sorted by them.
  %p = phi i64 [0, %sort], [%p1, %rest]
  %whole = phi i64 [0, %sort], [%whole1, %rest]
  %unplaced = icmp slt i64 %p, %count
  br i1 %unplaced, label %next, label %done
next:
  %pb = getelementptr i64, ptr %order, i64 %p
  %b = load i64, ptr %pb
  %sb = call i64 @graphc_size_of(ptr %table, ptr %sizes, i64 %b)
  %rowb = getelementptr [4 x i64], ptr %table, i64 %b
  %lastb = getelementptr i64, ptr %rowb, i64 1
  %fb = load i64, ptr %rowb
  %lb = load i64, ptr %lastb
  br label %gap
gap:
  %q = phi i64 [0, %next], [%q1, %passed]
  %end = phi i64 [0, %next], [%end1, %passed]
  %best = phi i64 [-1, %next], [%best1, %passed]
  %least = phi i64 [0, %next], [%least1, %passed]
  %others = icmp slt i64 %q, %p
  br i1 %others, label %other, label %choose
other:
  %pq = getelementptr i64, ptr %order, i64 %q
  %o = load i64, ptr %pq
  %rowo = getelementptr [4 x i64], ptr %table, i64 %o
  %lasto = getelementptr i64, ptr %rowo, i64 1
  %fo = load i64, ptr %rowo
  %lo = load i64, ptr %lasto
  %starts = icmp sle i64 %fb, %lo
  %stops = icmp sle i64 %fo, %lb
  %together = and i1 %starts, %stops
  br i1 %together, label %measure, label %passed
measure:
  %po = getelementptr i64, ptr %offsets, i64 %o
  %oo = load i64, ptr %po
  %so = call i64 @graphc_size_of(ptr %table, ptr %sizes, i64 %o)
  %room = sub i64 %oo, %end
  %enough = icmp sge i64 %room, %sb
  %none = icmp slt i64 %best, 0
  %less = icmp slt i64 %room, %least
  %better = or i1 %none, %less
  %take = and i1 %enough, %better
  %best2 = select i1 %take, i64 %end, i64 %best
  %least2 = select i1 %take, i64 %room, i64 %least
  %behind = add i64 %oo, %so
  %further = icmp sgt i64 %behind, %end
  %end2 = select i1 %further, i64 %behind, i64 %end
  br label %passed
passed:
  %end1 = phi i64 [%end, %other], [%end2, %measure]
  %best1 = phi i64 [%best, %other], [%best2, %measure]
  %least1 = phi i64 [%least, %other], [%least2, %measure]
  %q1 = add i64 %q, 1
  br label %gap
choose:
  %found = icmp sge i64 %best, 0
  %offset = select i1 %found, i64 %best, i64 %end
  %poff = getelementptr i64, ptr %offsets, i64 %b
  store i64 %offset, ptr %poff
  br label %sink
sink:
  %to = phi i64 [%p, %choose], [%above, %move]
  %some = icmp sgt i64 %to, 0
  br i1 %some, label %look, label %rest
look:
  %above = sub i64 %to, 1
  %pa = getelementptr i64, ptr %order, i64 %above
  %a = load i64, ptr %pa
  %poa = getelementptr i64, ptr %offsets, i64 %a
  %oa = load i64, ptr %poa
  %later = icmp sgt i64 %oa, %offset
  br i1 %later, label %move, label %rest
move:
  %pto = getelementptr i64, ptr %order, i64 %to
  store i64 %a, ptr %pto
  br label %sink
rest:
  %home = getelementptr i64, ptr %order, i64 %to
  store i64 %b, ptr %home
  %top = add i64 %offset, %sb
  %higher = icmp sgt i64 %top, %whole
  %whole1 = select i1 %higher, i64 %top, i64 %whole
  %p1 = add i64 %p, 1
  br label %place
done:
  ret i64 %whole
}
""".replace("MOST", str(MOST_FOR_ALL_ORDERS))
