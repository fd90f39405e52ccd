# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Joined or sliced values are computed in place, and only where they are read."""
