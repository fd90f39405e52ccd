# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ownership of buffers: destinations, inheritance, donation, and liveness."""
