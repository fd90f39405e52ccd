# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops in functions of their own, which several cores can share."""
