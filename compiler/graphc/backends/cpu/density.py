# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C functions around compiled ones, for samplers that call them from threads of their own.

``int64_t graphc_density(uint64_t dim, const double *x, double *gradient, double *value, void *user)`` and
``int64_t graphc_values(uint64_t dim, uint64_t count, const double *x, double *result, void *user)`` call the
kernel that `user` describes. They need no interpreter and no lock, and any number of threads may call them.
`user` points at words of 64 bits (`graphc.function.c_entry` fills them):

    0  address of the kernel's graphc_run        5  number of arrays
    1  address of its graphc_release             6  position of x among the arrays
    2  elements of x                             7  position of the gradient, or of the result
    3  addresses of the arrays, to be copied     8  position of the value
    4  sizes of all arrays                       9  elements of the result
"""

from __future__ import annotations

from graphc_runtime.interrupts import CONTEXT_WORDS

_HEADER = f"""
define internal i64 @run(ptr %user, ptr %x, ptr %first, ptr %second, i64 %dim) {{
  %expected.at = getelementptr i64, ptr %user, i64 2
  %expected = load i64, ptr %expected.at
  %fits = icmp eq i64 %dim, %expected
  br i1 %fits, label %call, label %refuse
refuse:
  ret i64 -1
call:
  %context = alloca [{CONTEXT_WORDS} x i64], align 8
  store [{CONTEXT_WORDS} x i64] zeroinitializer, ptr %context
  %count.at = getelementptr i64, ptr %user, i64 5
  %count = load i64, ptr %count.at
  %data = alloca ptr, i64 %count, align 8
  %template.at = getelementptr i64, ptr %user, i64 3
  %template = load ptr, ptr %template.at
  %bytes = mul i64 %count, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %data, ptr %template, i64 %bytes, i1 false)
  call void @put(ptr %user, ptr %data, i64 6, ptr %x)
  call void @put(ptr %user, ptr %data, i64 7, ptr %first)
  %two = icmp ne ptr %second, null
  br i1 %two, label %both, label %go
both:
  call void @put(ptr %user, ptr %data, i64 8, ptr %second)
  br label %go
go:
  %run = load ptr, ptr %user
  %release.at = getelementptr i64, ptr %user, i64 1
  %release = load ptr, ptr %release.at
  %dims.at = getelementptr i64, ptr %user, i64 4
  %dims = load ptr, ptr %dims.at
  %status = call i64 %run(ptr %context, ptr %data, ptr %dims)
  call void %release(ptr %context)
  %memory = icmp eq i64 %status, -1
  %good = icmp eq i64 %status, 0
  %bad = select i1 %memory, i64 -2, i64 1
  %result = select i1 %good, i64 0, i64 %bad
  ret i64 %result
}}

define internal void @put(ptr %user, ptr %data, i64 %word, ptr %value) alwaysinline {{
  %at = getelementptr i64, ptr %user, i64 %word
  %position = load i64, ptr %at
  %slot = getelementptr ptr, ptr %data, i64 %position
  store ptr %value, ptr %slot
  ret void
}}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare double @llvm.fabs.f64(double)
"""

_DENSITY = """
define i64 @graphc_density(i64 %dim, ptr %x, ptr %gradient, ptr %value, ptr %user) {
  %status = call i64 @run(ptr %user, ptr %x, ptr %gradient, ptr %value, i64 %dim)
  %good = icmp eq i64 %status, 0
  br i1 %good, label %check, label %end
end:
  ret i64 %status
check:
  %i = phi i64 [ 0, %0 ], [ %next, %element ]
  %more = icmp ult i64 %i, %dim
  br i1 %more, label %element, label %last
element:
  %at = getelementptr double, ptr %gradient, i64 %i
  %slope = load double, ptr %at
  %size = call double @llvm.fabs.f64(double %slope)
  %finite = fcmp olt double %size, 0x7FF0000000000000
  %next = add i64 %i, 1
  br i1 %finite, label %check, label %infinite
infinite:
  ret i64 3
last:
  %density = load double, ptr %value
  %height = call double @llvm.fabs.f64(double %density)
  %number = fcmp olt double %height, 0x7FF0000000000000
  %answer = select i1 %number, i64 0, i64 4
  ret i64 %answer
}

define i64 @graphc_values(i64 %dim, i64 %count, ptr %x, ptr %result, ptr %user) {
  %expected.at = getelementptr i64, ptr %user, i64 9
  %expected = load i64, ptr %expected.at
  %fits = icmp eq i64 %count, %expected
  br i1 %fits, label %call, label %refuse
refuse:
  ret i64 -1
call:
  %status = call i64 @run(ptr %user, ptr %x, ptr %result, ptr null, i64 %dim)
  ret i64 %status
}
"""
EXPORTS = ("graphc_density", "graphc_values")


def density_ir() -> str:
    """The module's text."""
    return _HEADER + _DENSITY
