# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs compiled graphs: loads object code, resolves its symbols, calls it. Needs NumPy only."""
