# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traits of each structured operation, for passes: one file a family, found by discovery.

A trait (`interfaces.py`) is a table from operation names to rules; passes ask the trait and know no names.
Operations of which all is said by a table of their own (elementwise, kernels) have no rules here.
"""
