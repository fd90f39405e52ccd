# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Command line tools of graphc."""
