// RUN: graphc-opt --canonicalize --cse --mlir-print-ir-before=cse %s 2>&1 | filecheck %s --check-prefix=BEFORE
// RUN: graphc-opt --canonicalize --cse --mlir-print-ir-after-all %s 2>&1 | filecheck %s --check-prefix=ALL
// RUN: graphc-opt --canonicalize --cse --mlir-print-ir-after-change %s 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: graphc-opt --mlir-print-op-generic --mlir-print-debuginfo %s | filecheck %s --check-prefix=GENERIC

// BEFORE-NOT: IR Dump Before canonicalize
// BEFORE: // -----// IR Dump Before cse //----- //
// ALL: // -----// IR Dump After canonicalize //----- //
// ALL: // -----// IR Dump After cse //----- //
// CHANGE: // -----// IR Dump After canonicalize //----- //
// CHANGE-NOT: IR Dump After cse
// GENERIC: "func.func"()
// GENERIC: loc("-":
func.func @f(%x: index) -> index {
  %c0 = arith.constant 0 : index
  %0 = arith.addi %x, %c0 : index
  return %0 : index
}
