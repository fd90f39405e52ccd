# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of functions for the floating-point environment of the calling thread.

* `graphc_save_environment(slot)` stores the control word (MXCSR of x86-64, FPCR of AArch64) in 8 bytes.
* `graphc_set_environment(slot)` makes a word that was stored the thread's.
* `graphc_flush_denormals(slot)` adds to a stored word that results and operands which are denormal count as
  zeros, and makes it the thread's: FTZ (bit 15) and DAZ (bit 6) of MXCSR, FZ (bit 24) and FZ16 (bit 19, for
  float16) of FPCR.

LLVM does not know that arithmetic depends on the word and may move an operation past these calls. What is
meant to run under it stands therefore in a function of its own that is not inlined.

Text, and not in the kernel language: each is one instruction, of the architecture.
"""

from __future__ import annotations

from graphc.errors import CompileError

SAVE, SET, FLUSH = "graphc_save_environment", "graphc_set_environment", "graphc_flush_denormals"

_X86_64 = f"""
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define internal void @{SAVE}(ptr %slot) alwaysinline nounwind {{
  call void @llvm.x86.sse.stmxcsr(ptr %slot)
  ret void
}}
define internal void @{SET}(ptr %slot) alwaysinline nounwind {{
  call void @llvm.x86.sse.ldmxcsr(ptr %slot)
  ret void
}}
define internal void @{FLUSH}(ptr %slot) alwaysinline nounwind {{
  %changed = alloca i64, align 8
  %word = load i32, ptr %slot
  %flushing = or i32 %word, {1 << 15 | 1 << 6}
  store i32 %flushing, ptr %changed
  call void @llvm.x86.sse.ldmxcsr(ptr %changed)
  ret void
}}
"""

_AARCH64 = f"""
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define internal void @{SAVE}(ptr %slot) alwaysinline nounwind {{
  %word = call i64 @llvm.aarch64.get.fpcr()
  store i64 %word, ptr %slot
  ret void
}}
define internal void @{SET}(ptr %slot) alwaysinline nounwind {{
  %word = load i64, ptr %slot
  call void @llvm.aarch64.set.fpcr(i64 %word)
  ret void
}}
define internal void @{FLUSH}(ptr %slot) alwaysinline nounwind {{
  %word = load i64, ptr %slot
  %flushing = or i64 %word, {1 << 24 | 1 << 19}
  call void @llvm.aarch64.set.fpcr(i64 %flushing)
  ret void
}}
"""


def environment_ir(triple: str) -> str:
    """Definitions of the three functions, each internal to the module.

    Args:
        triple: what code is made for; its first part counts.

    Raises:
        CompileError: denormal numbers cannot be flushed there.
    """
    machine = triple.partition("-")[0]
    if machine in ("x86_64", "amd64"):
        return _X86_64
    if machine in ("aarch64", "arm64"):
        return _AARCH64
    raise CompileError(
        f"denormal numbers can be flushed on x86-64 and AArch64, not on {triple}: "
        "compile with flush_denormals=False"
    )
