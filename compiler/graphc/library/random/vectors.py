# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of draws that depend on a vector, or are one.

Each is a function of `(ptr bitgen, i64 k, ptr scratch, ptr cache, i1 first, ptr out, parameters...)`: k is
the length of the vectors, scratch has room for k numbers, cache is memory that NumPy keeps between draws,
`first` says that the vectors are not those of the draw before. Loops over vectors run at least once.
"""

from __future__ import annotations

from dataclasses import dataclass

# The running sum of p; with `{scale}` divided by its last element, as numpy.random.Generator.choice does.
# Then the first position at which it is not below (`ult`), or above (`ule`), a uniform number.
_SEARCH = """  br i1 %first, label %sum, label %draw
sum:
  %i = phi i64 [ 0, %entry ], [ %i.next, %sum ]
  %total = phi double [ 0.0, %entry ], [ %total.next, %sum ]
  %p.at = getelementptr double, ptr %p, i64 %i
  %p.i = load double, ptr %p.at
  %total.next = fadd double %total, %p.i
  %c.at = getelementptr double, ptr %scratch, i64 %i
  store double %total.next, ptr %c.at
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %k
  br i1 %i.more, label %sum, label %{after}
{scale}draw:
  %state = load ptr, ptr %bitgen
  %function.at = getelementptr i8, ptr %bitgen, i64 24
  %function = load ptr, ptr %function.at
  %u = call double %function(ptr %state)
  br label %search
search:
  %low = phi i64 [ 0, %draw ], [ %low.next, %step ]
  %high = phi i64 [ %k, %draw ], [ %high.next, %step ]
  %open = icmp slt i64 %low, %high
  br i1 %open, label %step, label %found
step:
  %width = sub i64 %high, %low
  %half = lshr i64 %width, 1
  %middle = add i64 %low, %half
  %m.at = getelementptr double, ptr %scratch, i64 %middle
  %m = load double, ptr %m.at
  %below = fcmp {below} double %m, %u
  %behind = add i64 %middle, 1
  %low.next = select i1 %below, i64 %behind, i64 %low
  %high.next = select i1 %below, i64 %high, i64 %middle
  br label %search
found:
  %last = sub i64 %k, 1
  %beyond = icmp sgt i64 %low, %last
  %index = select i1 %beyond, i64 %last, i64 %low
  store i64 %index, ptr %out
  ret void
"""

_SCALE = """scale:
  %s = phi i64 [ 0, %sum ], [ %s.next, %scale ]
  %s.at = getelementptr double, ptr %scratch, i64 %s
  %s.old = load double, ptr %s.at
  %s.new = fdiv double %s.old, %total.next
  store double %s.new, ptr %s.at
  %s.next = add i64 %s, 1
  %s.more = icmp slt i64 %s.next, %k
  br i1 %s.more, label %scale, label %draw
"""

# Gamma draws divided by their sum. Where all of alpha is below 0.1 they could all be 0: pieces are broken off
# a stick instead, by beta draws, with the sums of what follows in the scratch.
_DIRICHLET = """  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i.next, %look ]
  %most = phi double [ 0.0, %entry ], [ %most.next, %look ]
  %i.at = getelementptr double, ptr %alpha, i64 %i
  %a = load double, ptr %i.at
  %more.a = fcmp ugt double %a, %most
  %most.next = select i1 %more.a, double %a, double %most
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %k
  br i1 %i.more, label %look, label %looked
looked:
  %small = fcmp olt double %most.next, 0x3FB999999999999A
  br i1 %small, label %sums, label %gammas
gammas:
  %g = phi i64 [ 0, %looked ], [ %g.next, %gammas ]
  %total = phi double [ 0.0, %looked ], [ %total.next, %gammas ]
  %g.at = getelementptr double, ptr %alpha, i64 %g
  %g.a = load double, ptr %g.at
  %g.x = call double @npyrandom_random_standard_gamma(ptr %bitgen, double %g.a)
  %g.to = getelementptr double, ptr %out, i64 %g
  store double %g.x, ptr %g.to
  %total.next = fadd double %total, %g.x
  %g.next = add i64 %g, 1
  %g.more = icmp slt i64 %g.next, %k
  br i1 %g.more, label %gammas, label %divide
divide:
  %share = fdiv double 1.0, %total.next
  br label %shares
shares:
  %d = phi i64 [ 0, %divide ], [ %d.next, %shares ]
  %d.at = getelementptr double, ptr %out, i64 %d
  %d.x = load double, ptr %d.at
  %d.y = fmul double %d.x, %share
  store double %d.y, ptr %d.at
  %d.next = add i64 %d, 1
  %d.more = icmp slt i64 %d.next, %k
  br i1 %d.more, label %shares, label %done
sums:
  %c = phi i64 [ %k, %looked ], [ %c.before, %sums ]
  %rest = phi double [ 0.0, %looked ], [ %rest.next, %sums ]
  %c.before = sub i64 %c, 1
  %c.at = getelementptr double, ptr %alpha, i64 %c.before
  %c.a = load double, ptr %c.at
  %rest.next = fadd double %rest, %c.a
  %c.to = getelementptr double, ptr %scratch, i64 %c.before
  store double %rest.next, ptr %c.to
  %zero.at = getelementptr double, ptr %out, i64 %c.before
  store double 0.0, ptr %zero.at
  %c.more = icmp sgt i64 %c.before, 0
  br i1 %c.more, label %sums, label %breaks
breaks:
  %b = phi i64 [ 0, %sums ], [ %b.next, %broken ]
  %left = phi double [ 1.0, %sums ], [ %left.next, %broken ]
  %b.next = add i64 %b, 1
  %b.more = icmp slt i64 %b.next, %k
  %b.to = getelementptr double, ptr %out, i64 %b
  br i1 %b.more, label %break, label %rest.of
break:
  %b.at = getelementptr double, ptr %alpha, i64 %b
  %b.a = load double, ptr %b.at
  %b.sum.at = getelementptr double, ptr %scratch, i64 %b.next
  %b.sum = load double, ptr %b.sum.at
  %v = call double @npyrandom_random_beta(ptr %bitgen, double %b.a, double %b.sum)
  %piece = fmul double %left, %v
  store double %piece, ptr %b.to
  %kept = fsub double 1.0, %v
  %left.next = fmul double %left, %kept
  %nothing = fcmp oeq double %b.sum, 0.0
  br i1 %nothing, label %done, label %broken
broken:
  br label %breaks
rest.of:
  store double %left, ptr %b.to
  br label %done
done:
  ret void
"""

_MULTINOMIAL = """  %bytes = shl i64 %k, 3
  call void @llvm.memset.p0.i64(ptr %out, i8 0, i64 %bytes, i1 false)
  call void @npyrandom_random_multinomial(ptr %bitgen, i64 %n, ptr %out, ptr %p, i64 %k, ptr %cache)
  ret void
"""

_PERMUTATION = """  br label %fill
fill:
  %i = phi i64 [ 0, %entry ], [ %i.next, %fill ]
  %i.at = getelementptr i64, ptr %out, i64 %i
  store i64 %i, ptr %i.at
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %k
  br i1 %i.more, label %fill, label %shuffle
shuffle:
  %j = phi i64 [ %k, %fill ], [ %last, %swap ]
  %last = sub i64 %j, 1
  %more = icmp sgt i64 %last, 0
  br i1 %more, label %swap, label %done
swap:
  %r = call i64 @npyrandom_random_interval(ptr %bitgen, i64 %last)
  %a.at = getelementptr i64, ptr %out, i64 %last
  %b.at = getelementptr i64, ptr %out, i64 %r
  %a = load i64, ptr %a.at
  %b = load i64, ptr %b.at
  store i64 %b, ptr %a.at
  store i64 %a, ptr %b.at
  br label %shuffle
done:
  ret void
"""


@dataclass(frozen=True)
class VectorDraw:
    """One draw of a distribution over, or by, vectors.

    Attributes:
        parameters: letters of the types of the parameters; a capital one is a pointer to k of them.
        names: of the parameters in the text.
        result: letter of the type of what is drawn; a capital one is k of them.
        text: the body of the function.
        symbols: what it needs of NumPy's library.
        declarations: what it calls.
    """

    parameters: str
    names: tuple[str, ...]
    result: str
    text: str
    symbols: tuple[str, ...] = ()
    declarations: tuple[str, ...] = ()


VECTORS: dict[str, VectorDraw] = {
    "categorical": VectorDraw("D", ("p",), "q", _SEARCH.format(after="draw", scale="", below="olt")),
    "choice": VectorDraw("D", ("p",), "q", _SEARCH.format(after="scale", scale=_SCALE, below="ole")),
    "dirichlet": VectorDraw(
        "D",
        ("alpha",),
        "D",
        _DIRICHLET,
        ("random_standard_gamma", "random_beta"),
        (
            "declare double @npyrandom_random_standard_gamma(ptr, double) nounwind",
            "declare double @npyrandom_random_beta(ptr, double, double) nounwind",
        ),
    ),
    "multinomial": VectorDraw(
        "qD",
        ("n", "p"),
        "Q",
        _MULTINOMIAL,
        ("random_multinomial",),
        (
            "declare void @npyrandom_random_multinomial(ptr, i64, ptr, ptr, i64, ptr) nounwind",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        ),
    ),
    "permutation": VectorDraw(
        "",
        (),
        "Q",
        _PERMUTATION,
        ("random_interval",),
        ("declare i64 @npyrandom_random_interval(ptr, i64) nounwind",),
    ),
}
