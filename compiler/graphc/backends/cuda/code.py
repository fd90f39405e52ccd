# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code of a function for a device: kernels, schedule, and the functions of the host that this calls."""

from __future__ import annotations

from dataclasses import replace

from graphc.backends.cpu.target import CpuTarget
from graphc.backends.cuda.lower import Lowered, lower
from graphc.backends.target import CompileLog, CompileOptions, Resources
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.analysis import mapped, with_sites_after
from graphc_runtime.cuda.code import DeviceCode
from graphc_runtime.manifest import Site
from graphc_runtime.record import record


@record(frozen=True)
class DeviceProgram:
    """What a module is for a device.

    Attributes:
        code: kernels, schedule, and functions of the host.
        sites: places where checks can fail: those of the schedule, then those of the functions.
        on_host: operations that have no kernel: name, reason, node of the graph.
    """

    code: DeviceCode
    sites: tuple[Site, ...]
    on_host: tuple[tuple[str, str, str], ...]


def compile_for_device(
    text: str, options: CompileOptions, resources: Resources, log: CompileLog, sites: int = 0
) -> DeviceProgram:
    """Compiles graph-stage text for a device, and for this machine what the device cannot do.

    Args:
        text: a module with `@main`.
        options: `arch` is the device's.
        resources: what compiling may use.
        log: gains times, and stages if it has any.
        sites: number of the check sites that others have, before those of the schedule.

    Raises:
        CompileError: see `graphc.backends.cuda.lower.lower`.
    """
    precision = options.matmul_precision
    lowered = lower(text, options.arch, log, precision=precision)
    with log.phase("functions of the host"):
        return _with_functions(lowered, options, resources, sites)


def _with_functions(
    lowered: Lowered, options: CompileOptions, resources: Resources, sites: int
) -> DeviceProgram:
    target = CpuTarget(resources)
    given = replace(options, mode="fast_run", arch="", matmul_precision="", donations=())
    functions, found, firsts = [], [*lowered.sites], []
    for function in lowered.host:
        made = target.compile(function.text, function.signature, given, CompileLog())
        functions.append(made.to_bytes())
        firsts.append(len(found))
        found += made.manifest.sites

    def numbered(step: sc.Step) -> sc.Step:
        return replace(step, first_site=firsts[step.function]) if isinstance(step, sc.HostCall) else step

    schedule = with_sites_after(mapped(lowered.schedule, numbered), sites)
    code = DeviceCode(schedule, lowered.ptx, options.arch, functions=tuple(functions))
    work = tuple(entry for function in lowered.host for entry in function.work)
    return DeviceProgram(code, tuple(found), work)
