# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a pass is, how passes are found and run, and which IR each stage allows."""
