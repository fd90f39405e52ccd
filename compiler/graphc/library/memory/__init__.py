# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory of a call: its arena and its workspaces."""
