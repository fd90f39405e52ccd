# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is joined or sliced is computed in its place, and only that."""
