# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes to and on linalg on tensors."""
