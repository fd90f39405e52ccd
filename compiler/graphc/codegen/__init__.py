# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From the llvm dialect to object code."""
