// RUN: graphc-opt --convert-arith-to-llvm --convert-func-to-llvm --emit=llvm %s | filecheck %s --check-prefix=LLVM
// RUN: graphc-opt --convert-arith-to-llvm --convert-func-to-llvm --emit=asm %s | filecheck %s --check-prefix=ASM
// RUN: graphc-opt --convert-arith-to-llvm --convert-func-to-llvm --emit=obj -o %t %s
// RUN: graphc-opt -o - - < %s | filecheck %s --check-prefix=STDIN

// LLVM: define i64 @add(i64 %0, i64 %1)
// ASM: add
// STDIN: func.func @add
func.func @add(%x: i64, %y: i64) -> i64 {
  %0 = arith.addi %x, %y : i64
  return %0 : i64
}
