# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes: their base class, how they are found and run, and the IR that each stage allows."""
