// RUN: not graphc-opt --graphc-nonsense %s 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not graphc-opt --nonsense %s 2>&1 | filecheck %s --check-prefix=UPSTREAM
// RUN: not graphc-opt --graphc-fusion=speed=9 %s 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not graphc-opt --graphc-fusion=max-inputs=x %s 2>&1 | filecheck %s --check-prefix=VALUE
// RUN: not graphc-opt --pass-pipeline='builtin.module(cse' %s 2>&1 | filecheck %s --check-prefix=BRACKET
// RUN: not graphc-opt --pass-pipeline='builtin.module(func.func(graphc-fusion))' %s 2>&1 | filecheck %s --check-prefix=NESTED
// RUN: not graphc-opt --cse --pass-pipeline='builtin.module(cse)' %s 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: not graphc-opt missing.mlir 2>&1 | filecheck %s --check-prefix=FILE
// RUN: not graphc-opt --emit=llvm %s 2>&1 | filecheck %s --check-prefix=EMIT
// RUN: graphc-opt --list-passes | filecheck %s --check-prefix=LIST

// UNKNOWN: graphc-opt: error: no pass named 'graphc-nonsense'; the passes are: {{.*}}graphc-fusion
// UPSTREAM: graphc-opt: error: {{.*}}'nonsense' does not refer to a registered pass
// OPTION: graphc-opt: error: pass graphc-fusion has no option 'speed'; its options are: max-inputs
// VALUE: graphc-opt: error: pass graphc-fusion: option 'max-inputs' expects int, but was given 'x'
// BRACKET: graphc-opt: error: expected a pass pipeline of the form builtin.module(...)
// NESTED: graphc-opt: error: pass graphc-fusion runs on modules and cannot be nested inside func.func(...)
// BOTH: graphc-opt: error: give either --pass-pipeline or passes (--cse), not both
// FILE: graphc-opt: error: cannot open input file 'missing.mlir': No such file or directory
// EMIT: error: only modules in the llvm dialect can be translated, but this one contains 'func
// LIST: graph stage:
// LIST: --graphc-fusion: Marks
// LIST: max-inputs=16
func.func private @f()
