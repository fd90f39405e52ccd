# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs from graphs: batches, and graphs as operations."""
