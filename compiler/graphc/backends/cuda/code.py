# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code of a function for a device: kernels, schedule, and the functions of the host that this calls.

From emitted text to kernels and to what the host does.

From LLVM IR to PTX; and, with the same kernels, to an object for AMD's devices.
"""

from __future__ import annotations

from dataclasses import replace

from graphc.backends import CompileLog, CompileOptions, Resources
from graphc.backends.contexts import pooled_context
from graphc.backends.cpu.target import CpuTarget
from graphc.backends.cuda import functions, pipeline
from graphc.backends.cuda.functions import missing
from graphc.backends.cuda.host import HostFunction, take_host_functions
from graphc.backends.cuda.instructions import INSTRUCTIONS, definitions
from graphc.backends.cuda.schedule import checks, schedule_of, site_of
from graphc.backends.handoff import to_llvmlite
from graphc.backends.llvm import Module, code_generator, data_layout, parsed
from graphc.errors import CompileError, UnsupportedError
from graphc.ir.helpers import callee_of
from graphc.ir.walk import symbol_of, walk
from graphc.passes.gpu._kernel import kernels_of
from graphc.passes.run import run_pipeline
from graphc_dialects._mlir import ir, translate_module_to_llvmir
from graphc_runtime.cuda import schedule as sc
from graphc_runtime.cuda.analysis import mapped, with_sites_after
from graphc_runtime.cuda.code import DeviceCode
from graphc_runtime.cuda.schedule import Schedule
from graphc_runtime.errors import Site
from graphc_runtime.record import record

NVIDIA, AMD = "nvptx64-nvidia-cuda", "amdgcn-amd-amdhsa"
# PTX's version: the first one that knows the architecture, else what drivers of 2023 take.
_VERSIONS = {"sm_100": "+ptx86"}
_OLDEST = "+ptx80"


def to_ptx(llvm_ir: str, arch: str, level: int = 3) -> str:
    """The PTX of kernels.

    Args:
        llvm_ir: text that llvmlite's LLVM parses, with the calling convention of kernels.
        arch: such as "sm_90".
        level: of optimisation, 0 to 3.

    Raises:
        LLVMError: LLVM cannot make code of it.
    """
    features = _VERSIONS.get(arch, _OLDEST)
    layout = data_layout(NVIDIA, arch, features)
    with parsed(llvm_ir) as module, code_generator(NVIDIA, arch, features, level) as generator:
        _define_functions(module)
        # The driver would say so on the device only.
        left = _declared(module)
        if left:
            raise CompileError(
                f"kernels call {', '.join(left)}, which devices have no code for; please report this"
            )
        module.set_target(NVIDIA, layout)
        generator.optimise(module, level, vectorise=False, unroll=level > 0)
        return generator.emit_assembly(module)


def _declared(module: Module) -> list[str]:
    """Functions that the module calls and does not define; intrinsics are LLVM's."""
    return [x.name for x in module.functions() if x.is_declaration and not x.name.startswith("llvm.")]


def _define_functions(module: Module) -> None:
    """Adds the code of what kernels call, as functions of the module's own: PTX has other names."""
    kernels = {x.name for x in module.functions() if not x.is_declaration}
    module.link_in(definitions())
    needed = [name for name in _declared(module) if name not in functions.missing([name])]
    if needed:
        module.link_in(functions.definitions(needed))
    for function in module.functions():
        if not function.is_declaration and function.name not in kernels:
            function.internalise()


def to_amd_object(llvm_ir: str, arch: str) -> bytes:
    """An ELF object for AMD's devices.

    Args:
        llvm_ir: as in `to_ptx`, made with upstream's `convert-gpu-to-rocdl`.
        arch: such as "gfx90a".

    Raises:
        LLVMError: LLVM cannot make code of it.
    """
    layout = data_layout(AMD, arch, "")
    with parsed(llvm_ir) as module, code_generator(AMD, arch, "", 3) as generator:
        _define_functions(module)
        module.set_target(AMD, layout)
        generator.optimise(module, 3, vectorise=False, unroll=True)
        return generator.emit_object(module)


_COMPLEX = frozenset(
    f"complex.{name}" for name in "add sub mul div neg re im create constant eq neq bitcast".split()
)


@record(frozen=True)
class Lowered:
    """A module as kernels and a schedule.

    Attributes:
        schedule: what the host does.
        kernels: text of the module with the kernels in the gpu dialect, before math is expanded.
        llvm_ir: the kernels for `ptx.to_ptx`.
        ptx: the kernels for a device.
        sites: places where checks can fail.
        host: functions that the schedule calls, in order.
    """

    schedule: Schedule
    kernels: str
    llvm_ir: str
    ptx: str
    sites: tuple[Site, ...]
    host: tuple[HostFunction, ...] = ()


def lower(text: str, arch: str, log: CompileLog | None = None, *, precision: str = "") -> Lowered:
    """Compiles graph-stage text for a device.

    Args:
        text: a module with `@main`.
        arch: such as "sm_90".
        log: gains times, and stages if it has any.
        precision: of products of float32: "tf32", else with all digits.

    Raises:
        CompileError: a pass or the verifier refused the module, or it computes what has no kernel yet; the
            message names it.
    """
    log = CompileLog() if log is None else log
    try:
        with pooled_context() as (context, managers), context, ir.Location.unknown():
            with log.phase("parse"):
                module = ir.Module.parse(text)
            _stage(log, "graph", module)
            with log.phase("passes"):
                reports = [run_pipeline(module, pipeline.placed(text), managers=managers)]
                host = take_host_functions(module)
                rest = pipeline.after_placement(text, precision)
                reports.append(run_pipeline(module, rest, managers=managers))
            log.passes += [(run.name, run.seconds) for report in reports for run in report.runs]
            _stage(log, "gpu", module)
            with log.phase("schedule"):
                sites = tuple(site_of(check) for check in checks(module))
                schedule = schedule_of(module, [function.name for function in host])
            with log.phase("translate"):
                has_kernels = drop_kernels(module)
                kernels, llvm_ir = str(module), ""
                if has_kernels:
                    run_pipeline(module, pipeline.MATH, managers=managers)
                    refuse_calls(module)
                    run_pipeline(module, pipeline.device(), managers=managers)
                    llvm_ir = kernels_to_llvm(module)
            if log.stages is not None:
                log.stages.append(("llvm", llvm_ir))
            with log.phase("ptx"):
                ptx = to_ptx(llvm_ir, arch) if llvm_ir else ""
            if log.stages is not None:
                log.stages.append(("ptx", ptx))
            return Lowered(schedule, kernels, llvm_ir, ptx, sites, tuple(host))
    except ir.MLIRError as error:
        raise CompileError(
            f"the compiler rejected a module of its own making; please report this\n{error}"
        ) from error


def drop_kernels(module: ir.Module) -> bool:
    """Erases kernels that nothing launches: their branch is never taken. True if any are left.

    Without any there is nothing for passes of the gpu dialect, which a context may not even have loaded.
    """
    outer = [op.operation for op in module.body.operations]
    launches = [op for around in outer for op in walk(around) if op.name == "gpu.launch_func"]
    launched = {ir.SymbolRefAttr(op.attributes["kernel"]).value[-1] for op in launches}
    kernels = [op for op in kernels_of(module.operation) if op.name == "gpu.func"]
    unused = [op for op in kernels if symbol_of(op) not in launched]
    for op in unused:
        op.erase()
    return len(unused) < len(kernels)


def kernels_to_llvm(module: ir.Module) -> str:
    """LLVM IR of the gpu module of a module, which is in the llvm dialect; empty if there is none."""
    kernels = kernels_of(module.operation)
    if not kernels:
        return ""
    alone = ir.Module.create()
    for op in kernels:
        alone.body.append(op)
    return to_llvmlite(translate_module_to_llvmir(alone.operation))


def refuse_calls(module: ir.Module) -> None:
    """Looks for functions that are no instructions, and that no code is known for.

    Raises:
        UnsupportedError: there are some; the message names them.
    """
    inside = [op for outer in module.body.operations for op in walk(outer.operation)]
    names = {op.name for op in inside if op.name.startswith(("math.", "complex."))}
    unknown = [name.partition(".")[2] for name in names - INSTRUCTIONS - _COMPLEX]
    unknown += missing(dict.fromkeys(callee_of(op) for op in inside if op.name == "llvm.call"))
    if unknown:
        raise UnsupportedError(
            f"kernels for devices have no code for {', '.join(sorted(unknown))}: they use no library of "
            "functions; compute this part with a function of mode 'fast_run'"
        )


def _stage(log: CompileLog, name: str, module: ir.Module) -> None:
    if log.stages is not None:
        log.stages.append((name, str(module)))


@record(frozen=True)
class DeviceProgram:
    """A module, divided for a device.

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
        CompileError: see `graphc.backends.cuda.code.lower`.
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
