# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The CPython entry of a compiled function."""
