# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that go along rows: running sums, elements at positions."""
