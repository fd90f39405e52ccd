# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cheaper, safer and simpler expressions of the same value."""
