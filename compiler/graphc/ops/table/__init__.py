# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of the table of elementwise operations, and the scalar forms that they are lowered to."""
