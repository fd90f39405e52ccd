# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs graph-stage IR in NumPy, operation by operation."""
