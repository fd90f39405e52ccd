# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of numbers that have loops."""
