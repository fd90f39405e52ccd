# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops under PyTensor's names: the groups are those of the roles, and all variables are in one."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
import graphc.tensor as pt
from graphc.scan import Scan, ScanArgs


def _loop():
    """One of every role, but mit-mots: these are in its gradient."""
    x, z, w = pt.vector("x"), pt.matrix("z"), pt.scalar("w")
    rng = graphc.shared(np.random.default_rng(0), "rng")

    def step(x0, x1, z_t, h, g2, g1, w):
        after, draw = rng.normal()
        new = h * w + x0 + x1 + draw
        return (new, g2 + g1 * w, z_t * new), {rng: after}, graphc.scan.until(new > 1e6)

    rows = graphc.scan(
        step,
        sequences=[{"input": x, "taps": [0, 1]}, z],
        outputs_info=[pt.constant(0.0), {"initial": pt.zeros(2), "taps": [-2, -1]}, None],
        non_sequences=[w],
        return_updates=False,
    )
    return rows, (x, z, w)


def _node(variable):
    found = [v.owner for v in graphc.graph.ancestors([variable]) if v.owner and isinstance(v.owner.op, Scan)]
    return found[0]


def _nodes():
    (h, *_), (x, _, w) = _loop()
    taps = {"initial": pt.ones(2), "taps": [-2, -1]}
    plain = graphc.scan(lambda a, b, c: a * w + b * c, [x], [taps], return_updates=False)
    slope = graphc.grad(plain[-1], w)
    return {"forward": _node(h), "gradient": _node(slope)}


NODES = pytest.mark.parametrize("which", ["forward", "gradient"])
INPUTS = ("seqs", "mitmot", "mitsot", "sitsot", "untraced_sit_sot", "non_seqs")
OUTPUTS = ("mitmot_outs", "mitsot_outs", "sitsot_outs", "nitsot_outs", "untraced_sit_sot_outs")


@NODES
def test_groups_are_all(which):
    node = _nodes()[which]
    op = node.op
    for side, listed, names, extra in (
        ("inner", op.inner_inputs, INPUTS, 0),
        ("outer", node.inputs, INPUTS, 1),
        ("inner", op.inner_outputs, OUTPUTS, op.spec.is_while),
        ("outer", node.outputs, OUTPUTS, op.spec.is_while),
    ):
        groups = [getattr(op, f"{side}_{name}")(listed) for name in names]
        assert sorted(id(v) for group in groups for v in group) == sorted(
            id(v) for v in (listed[1:] if extra and names is INPUTS else listed[: len(listed) - extra])
        )
    assert op.get_oinp_iinp_iout_oout_mappings() == graphc.scan.mappings.mappings(op.spec)
    sizes = [op.info.n_outer_inputs, op.info.n_inner_inputs, op.info.n_outer_outputs, op.info.n_inner_outputs]
    assert sizes == [len(v) for v in (node.inputs, op.inner_inputs, node.outputs, op.inner_outputs)]


def test_names_and_taps():
    node = _nodes()["forward"]
    op, info = node.op, node.op.info
    assert (info.n_seqs, info.n_mit_sot, info.n_sit_sot, info.n_nit_sot) == (3, 1, 1, 1)
    assert (info.n_untraced_sit_sot, info.as_while, info.n_mit_mot) == (1, True, 0)
    assert info.mit_sot_in_slices == op.mitsot_taps() == ((-2, -1),) and info.sit_sot_in_slices == ((-1,),)
    assert [len(group) for group in op.inner_mitsot_grouped(op.inner_inputs)] == [2]
    assert op.oldest_inner_mitsot(op.inner_inputs) == op.inner_mitsot(op.inner_inputs)[:1]
    assert op.outer_nitsot(node.inputs) == [node.inputs[0]]
    ((place, generator),) = op.inner_untraced_sit_sot(op.inner_inputs, with_idx=True)
    assert op.inner_inputs[place] is generator
    back = _nodes()["gradient"].op
    assert back.info.n_mit_mot == 1 and back.mitmot_taps() and back.mitmot_out_taps()
    assert all(tap >= 0 for taps in (*back.mitmot_taps(), *back.mitmot_out_taps()) for tap in taps)


@NODES
def test_fields_of_arguments(which):
    node = _nodes()[which]
    args = ScanArgs.from_node(node)
    assert set(args.inner_inputs) == set(node.op.inner_inputs)
    assert set(args.inner_outputs) == set(node.op.inner_outputs)
    assert set(args.outer_inputs) == set(node.inputs)
    assert set(args.outer_outputs) == set(node.outputs[: len(node.outputs) - args.as_while])
    assert (
        args.info == node.op.info
        and args.cond == node.op.inner_outputs[len(node.op.inner_outputs) - args.as_while :]
    )
    for name in args.field_names:
        for item in getattr(args, name):
            for v in item if isinstance(item, list) else [item]:
                found = args.find_among_fields(v)
                listed = getattr(args, found.agg_name)
                assert listed[found.agg_index] is v
    for outer, inner in zip(args.outer_in_sit_sot, args.inner_in_sit_sot, strict=True):
        assert args.get_alt_field(outer, "inner_in") is inner
    if which == "forward":
        assert args.get_alt_field(args.outer_out_nit_sot[0], "inner_out") is args.inner_out_nit_sot[0]
        assert args.mit_sot_in_slices == ((-2, -1),) and len(args.inner_in_mit_sot[0]) == 2
    with pytest.raises(ValueError, match="no variable of the loop"):
        args.get_alt_field(pt.vector(), "inner_in")
    with pytest.raises(AttributeError, match="outer_in_nothing"):
        _ = args.outer_in_nothing
