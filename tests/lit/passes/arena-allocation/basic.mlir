// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: graphc-opt --graphc-arena-allocation %s | filecheck %s

// CHECK: llvm.func @graphc_alloc(!llvm.ptr, i64) -> (!llvm.ptr {llvm.noalias})
// CHECK: llvm.func @main(%[[CONTEXT:[a-z0-9]+]]: !llvm.ptr, %[[N:[a-z0-9]+]]: i64)
// CHECK: %[[P:.*]] = llvm.call @graphc_alloc(%[[CONTEXT]], %[[N]])
// CHECK-NEXT: llvm.return %[[P]]
llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)
llvm.func @main(%context: !llvm.ptr, %n: i64) -> !llvm.ptr {
  %0 = llvm.call @malloc(%n) : (i64) -> !llvm.ptr
  llvm.call @free(%0) : (!llvm.ptr) -> ()
  llvm.return %0 : !llvm.ptr
}

// What is on the stack begins to live where it is made, in loops of their own as well.
// CHECK: llvm.func @graphc_part_0()
// CHECK: %[[PLACE:.*]] = llvm.alloca
// CHECK-NEXT: llvm.intr.lifetime.start %[[PLACE]]
llvm.func @graphc_part_0() {
  %one = llvm.mlir.constant(1 : i64) : i64
  %0 = llvm.alloca %one x f64 : (i64) -> !llvm.ptr
  llvm.return
}

// A product of sizes is computed in floats as well, which do not overflow.
// CHECK: llvm.func @product
// CHECK: %[[BYTES:.*]] = llvm.ptrtoint
// CHECK: %[[COUNT:.*]] = llvm.fmul
// CHECK: %[[LARGEST:.*]] = llvm.fmul %[[COUNT]]
// CHECK: %[[FITS:.*]] = llvm.fcmp "ole" %[[LARGEST]]
// CHECK: %[[CHECKED:.*]] = llvm.select %[[FITS]], %[[BYTES]]
// CHECK: llvm.call @graphc_alloc(%{{.*}}, %[[CHECKED]])
llvm.func @product(%context: !llvm.ptr, %n: i64, %m: i64) -> !llvm.ptr {
  %count = llvm.mul %n, %m : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %end = llvm.getelementptr %null[%count] : (!llvm.ptr, i64) -> !llvm.ptr, f64
  %bytes = llvm.ptrtoint %end : !llvm.ptr to i64
  %0 = llvm.call @malloc(%bytes) : (i64) -> !llvm.ptr
  llvm.return %0 : !llvm.ptr
}

// A poll gets the context, and ends the kernel if it says so.
// CHECK: llvm.func @polls(%[[CONTEXT:[a-z0-9]+]]: !llvm.ptr
// CHECK: %[[STATUS:.*]] = llvm.call @graphc_tick(%[[CONTEXT]]) : (!llvm.ptr) -> i64
// CHECK: %[[ENDS:.*]] = llvm.icmp "ne" %[[STATUS]]
// CHECK: llvm.cond_br %[[ENDS]]
// CHECK: llvm.return %[[STATUS]]
llvm.func @graphc_tick() -> i64 attributes {graphc.helper = {kind = "poll"}}
llvm.func @polls(%context: !llvm.ptr, %n: i64) -> i64 {
  %0 = llvm.call @graphc_tick() : () -> i64
  llvm.return %n : i64
}
