// RUN: graphc-opt --split-input-file --canonicalize %s | filecheck %s

// CHECK: module {
// CHECK-NEXT:   func.func @first
func.func @first(%x: index) -> index {
  %c0 = arith.constant 0 : index
  %0 = arith.addi %x, %c0 : index
  // CHECK-NEXT: return %arg0
  return %0 : index
}

// -----

// CHECK: // -----
// CHECK-NEXT: module {
// CHECK-NEXT:   func.func @second
func.func @second() {
  return
}
