# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rematerialisation: arrays that are kept in memory, and arrays that are computed again."""
