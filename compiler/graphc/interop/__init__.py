# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bridges to other libraries. Each is an optional extra, and nothing else in graphc imports them."""
