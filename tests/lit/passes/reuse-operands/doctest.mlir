// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-reuse-operands %s | filecheck %s

// CHECK: memref.alloc()
// CHECK-NOT: memref.alloc()
// CHECK: %[[X:.*]] = memref.load %[[A:alloc.*]][%arg1]
// CHECK: %[[Y:.*]] = math.tanh %[[X]]
// CHECK: memref.store %[[Y]], %[[A]][%arg1]
func.func private @fill(memref<100xf64>)
func.func private @use(memref<100xf64>)
func.func @main(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %a = memref.alloc() : memref<100xf64>
  call @fill(%a) : (memref<100xf64>) -> ()
  %b = memref.alloc() : memref<100xf64>
  scf.for %i = %c0 to %c100 step %c1 {
    %0 = memref.load %a[%i] : memref<100xf64>
    %1 = math.tanh %0 : f64
    memref.store %1, %b[%i] : memref<100xf64>
  }
  call @use(%b) : (memref<100xf64>) -> ()
  return
}
