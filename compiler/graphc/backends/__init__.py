# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compilers and interpreters that run graphs."""
