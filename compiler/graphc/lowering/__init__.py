# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowering helpers shared by the passes: element types and scalar code."""
