# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is kept in memory, and what is computed again."""
