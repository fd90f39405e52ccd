# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The thread pool, and loops that it shares."""
