# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws and counts on a GPU: Philox words, their distributions, and prefix sums of variable lengths."""
