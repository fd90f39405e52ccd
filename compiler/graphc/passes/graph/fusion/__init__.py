# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fusion: clusters of operations that share a loop nest."""
