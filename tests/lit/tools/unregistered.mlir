// RUN: graphc-opt --allow-unregistered-dialect %s | filecheck %s
// RUN: not graphc-opt %s 2>&1 | filecheck %s --check-prefix=REFUSED

// CHECK: "test.op"() : () -> ()
// REFUSED: error: operation being parsed with an unregistered dialect
"test.op"() : () -> ()
