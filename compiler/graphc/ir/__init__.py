# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What passes and lowering know of the IR: walks, rewrites, sizes, types and meanings of operations."""
