# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An op whose gradient is wrong as asked for."""

from __future__ import annotations

import graphc


class Faulty(graphc.Op):
    """Twice the input, with a settable rule."""

    def __init__(self, rule):
        self.rule = rule

    def make_node(self, x):
        return graphc.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * 2

    def pullback(self, inputs, outputs, cotangents):
        return self.rule(self, inputs, cotangents)
