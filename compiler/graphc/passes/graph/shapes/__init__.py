# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes and the checks that they need."""
