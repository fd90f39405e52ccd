# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Knowledge of the IR for passes and lowering: walks, rewrites, sizes, types and meanings of operations."""
