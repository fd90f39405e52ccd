// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-plan-memory %s | filecheck %s

// `%c` takes the place of `%a`, whose life is over: 2048 bytes serve for three times 1024.
func.func @chain(%x: memref<128xf64>, %y: memref<128xf64>) {
  // CHECK: %[[SIZE:.+]] = arith.constant 2048 : index
  // CHECK: %[[MEMORY:.+]] = call @graphc_workspace_0(%[[SIZE]])
  %a = memref.alloc() : memref<128xf64>
  %b = memref.alloc() : memref<128xf64>
  %c = memref.alloc() : memref<128xf64>
  // CHECK: %[[A:.+]] = call @graphc_buffer(%[[MEMORY]], %[[PLACE:.+]], %{{.+}})
  // CHECK: %[[VIEW:.+]] = memref.view %[[A]]
  // CHECK: memref.copy %{{.+}}, %[[VIEW]]
  memref.copy %x, %a : memref<128xf64> to memref<128xf64>
  // CHECK: %[[B:.+]] = call @graphc_buffer
  // CHECK: memref.copy %[[VIEW]]
  // CHECK: call @graphc_end(%[[A]])
  memref.copy %a, %b : memref<128xf64> to memref<128xf64>
  // CHECK: %[[C:.+]] = call @graphc_buffer(%[[MEMORY]], %{{.+}}, %{{.+}})
  // CHECK: memref.copy
  // CHECK: call @graphc_end(%[[B]])
  memref.copy %b, %c : memref<128xf64> to memref<128xf64>
  // CHECK: memref.copy
  // CHECK: call @graphc_end(%[[C]])
  memref.copy %c, %y : memref<128xf64> to memref<128xf64>
  return
}
