# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A target that compiles nothing: the optimised graph stage, operation by operation, in NumPy."""
