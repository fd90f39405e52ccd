# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts what kernels do."""
