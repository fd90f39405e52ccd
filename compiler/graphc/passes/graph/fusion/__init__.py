# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operations share a loop nest."""
