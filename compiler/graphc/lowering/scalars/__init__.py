# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalar code: elementary functions, complex numbers, casts, and comparisons."""
