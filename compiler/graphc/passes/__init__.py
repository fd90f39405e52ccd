# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes: one file each, found by `graphc.passes.manager.base.discover`."""
