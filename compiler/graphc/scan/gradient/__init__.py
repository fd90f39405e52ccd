# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives of loops; all are loops again."""
