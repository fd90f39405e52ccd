# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors as a type of graphs: the type, its variables, and what becomes one."""
