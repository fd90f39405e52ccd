// RUN: graphc-opt --pass-pipeline='builtin.module(graphc-fusion{max-inputs=4},func.func(cse,canonicalize),graphc-fusion)' --mlir-pass-statistics --mlir-timing %s 2>&1 | filecheck %s
// RUN: graphc-opt --cse --graphc-fusion=max-inputs=1 %s | filecheck %s --check-prefix=FLAGS

// CHECK: Execution time report
// CHECK: graphc-fusion{max-inputs=4}
// CHECK: Total
// CHECK: Pass statistics report
// CHECK: graphc-fusion{max-inputs=4}
// CHECK: (S) {{ *}}1 clusters

// CHECK-LABEL: func.func @f
// CHECK: "graphc.exp"({{.*}}) {cluster = 0 : i64}
// FLAGS: "graphc.exp"({{.*}}) {cluster = 0 : i64}
func.func @f(%x: tensor<?xf64>) -> tensor<?xf64> {
  %0 = "graphc.exp"(%x) : (tensor<?xf64>) -> tensor<?xf64>
  return %0 : tensor<?xf64>
}
