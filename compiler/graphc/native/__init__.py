# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel language: a small part of Python, translated to LLVM IR."""
