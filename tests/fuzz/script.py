# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A failing program as a script that runs on its own."""

from __future__ import annotations

from checked import Finding
from program import Program

HEAD = """# {way}: {kind}
{said}
import numpy as np
import graphc
import graphc.tensor as pt

{layouts}{helpers}{inputs}
{steps}
values = [{values}]
outputs = [{outputs}]
options = {{"updates": {{{updates}}}{unused}}}
"""
COMPILED = """print("got", graphc.function([{names}], outputs, {mode}**options)(*values))
"""
MODES = {
    "fast_run": 'mode="fast_run", ',
    "fast_compile": 'mode="fast_compile", ',
    "reference": 'mode="reference", ',
    "numpy": 'mode="reference", ',
    "donated": "donate=[{plain}], ",
}


def script(program: Program, finding: Finding, seed: int) -> str:
    """The text of a script.

    Args:
        program: what fails.
        finding: how.
        seed: of the program that it was made of.
    """
    said = "\n".join(f"#   {line}" for line in finding.message.splitlines()[:8])
    names = ", ".join(x.name for x in program.inputs if not x.shared)
    plain = ", ".join(x.name for x in program.inputs if not x.shared and not x.generator)
    layouts = any(x.layout != "plain" for x in program.inputs)
    helpers = dict.fromkeys(source for step in program.steps for source in step.helpers)
    text = HEAD.format(
        way=f"seed {seed}, {finding.way}",
        kind=finding.kind,
        said=said,
        layouts="from op_runner import VIEWS as LAYOUTS  # in tests/numeric\n\n" if layouts else "",
        helpers="".join(f"{source}\n\n" for source in helpers),
        inputs="\n".join(x.declaration() for x in program.inputs),
        steps="\n".join(step.line for step in program.steps),
        values=", ".join(x.argument() for x in program.inputs if not x.shared),
        outputs=", ".join(program.outputs),
        updates=", ".join(f"{old}: {new}" for old, new in program.updates),
        unused="" if "UnusedInput" in finding.message else ', "on_unused_input": "ignore"',
    )
    mode = MODES.get(finding.way, 'mode="fast_run", ').format(plain=plain)
    extra = "" if finding.way in MODES else f"# the way is {finding.way}: see tests/fuzz/ways.py\n"
    want = COMPILED.replace('"got"', '"expected"').format(names=names, mode=MODES["reference"])
    return (
        text
        + (want if finding.way not in ("reference", "numpy") else "")
        + extra
        + COMPILED.format(names=names, mode=mode)
    )
