# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``Function.explore``: a page that shows a function from the user's lines to assembly."""
