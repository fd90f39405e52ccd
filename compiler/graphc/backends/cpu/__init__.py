# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From text of the graphc dialect to an artifact for this CPU."""
