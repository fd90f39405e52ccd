# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes on `graphc.scan`: loops of programs."""
