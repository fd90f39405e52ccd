// Kernels that are right; test_interpreter.py runs them.
gpu.module @kernels {
  // A loop over the grid; several elements a thread.
  gpu.func @axpy(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %d = gpu.block_dim x
    %g = gpu.grid_dim x
    %before = arith.muli %b, %d : index
    %first = arith.addi %before, %t : index
    %step = arith.muli %d, %g : index
    scf.for %i = %first to %n step %step {
      %u = memref.load %x[%i] : memref<?xf32>
      %v = memref.load %y[%i] : memref<?xf32>
      %w = math.fma %a, %u, %v : f32
      memref.store %w, %y[%i] : memref<?xf32>
    }
    gpu.return
  }

  // Four elements at a time, the rest one by one.
  gpu.func @square(%x: memref<?xf64>, %y: memref<?xf64>) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %n = memref.dim %x, %c0 : memref<?xf64>
    %i = gpu.global_id x
    %first = arith.muli %i, %c2 : index
    %end = arith.addi %first, %c2 : index
    %whole = arith.cmpi ule, %end, %n : index
    scf.if %whole {
      %v = vector.load %x[%first] : memref<?xf64>, vector<2xf64>
      %w = arith.mulf %v, %v : vector<2xf64>
      vector.store %w, %y[%first] : memref<?xf64>, vector<2xf64>
    } else {
      %c1 = arith.constant 1 : index
      scf.for %j = %first to %n step %c1 {
        %v = memref.load %x[%j] : memref<?xf64>
        %w = arith.mulf %v, %v : f64
        memref.store %w, %y[%j] : memref<?xf64>
      }
    }
    gpu.return
  }

  // A block a row: threads, warps by shuffles, then the first warp.
  gpu.func @row_sums(%x: memref<?x?xf32>, %y: memref<?xf32>)
      workgroup(%parts: memref<32xf32, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c1 : memref<?x?xf32>
    %t = gpu.thread_id x
    %row = gpu.block_id x
    %d = gpu.block_dim x
    %own = scf.for %j = %t to %n step %d iter_args(%sum = %zero) -> (f32) {
      %v = memref.load %x[%row, %j] : memref<?x?xf32>
      %next = arith.addf %sum, %v : f32
      scf.yield %next : f32
    }
    %w = arith.constant 32 : i32
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %i4 = arith.constant 4 : i32
    %i8 = arith.constant 8 : i32
    %i16 = arith.constant 16 : i32
    %s16, %p16 = gpu.shuffle xor %own, %i16, %w : f32
    %a16 = arith.addf %own, %s16 : f32
    %s8, %p8 = gpu.shuffle xor %a16, %i8, %w : f32
    %a8 = arith.addf %a16, %s8 : f32
    %s4, %p4 = gpu.shuffle xor %a8, %i4, %w : f32
    %a4 = arith.addf %a8, %s4 : f32
    %s2, %p2 = gpu.shuffle xor %a4, %i2, %w : f32
    %a2 = arith.addf %a4, %s2 : f32
    %s1, %p1 = gpu.shuffle xor %a2, %i1, %w : f32
    %a1 = arith.addf %a2, %s1 : f32
    %c32 = arith.constant 32 : index
    %lane = arith.remui %t, %c32 : index
    %warp = arith.divui %t, %c32 : index
    %leads = arith.cmpi eq, %lane, %c0 : index
    scf.if %leads {
      memref.store %a1, %parts[%warp] : memref<32xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      %u = memref.load %parts[%c0] : memref<32xf32, #gpu.address_space<workgroup>>
      %v = memref.load %parts[%c1] : memref<32xf32, #gpu.address_space<workgroup>>
      %sum = arith.addf %u, %v : f32
      memref.store %sum, %y[%row] : memref<?xf32>
    }
    gpu.return
  }

  // Tiles of 8 x 8 through shared memory, with a column of padding.
  gpu.func @transpose(%x: memref<?x?xf32>, %y: memref<?x?xf32>)
      workgroup(%tile: memref<8x9xf32, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 8, 8, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %rows = memref.dim %x, %c0 : memref<?x?xf32>
    %columns = memref.dim %x, %c1 : memref<?x?xf32>
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %left = arith.muli %bx, %c8 : index
    %top = arith.muli %by, %c8 : index
    %i = arith.addi %top, %ty : index
    %j = arith.addi %left, %tx : index
    %ri = arith.cmpi ult, %i, %rows : index
    %rj = arith.cmpi ult, %j, %columns : index
    %reads = arith.andi %ri, %rj : i1
    scf.if %reads {
      %v = memref.load %x[%i, %j] : memref<?x?xf32>
      memref.store %v, %tile[%ty, %tx] : memref<8x9xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %k = arith.addi %left, %ty : index
    %l = arith.addi %top, %tx : index
    %wk = arith.cmpi ult, %k, %columns : index
    %wl = arith.cmpi ult, %l, %rows : index
    %writes = arith.andi %wk, %wl : i1
    scf.if %writes {
      %v = memref.load %tile[%tx, %ty] : memref<8x9xf32, #gpu.address_space<workgroup>>
      memref.store %v, %y[%k, %l] : memref<?x?xf32>
    }
    gpu.return
  }

  gpu.func @histogram(%x: memref<?xi32>, %counts: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %n = memref.dim %x, %c0 : memref<?xi32>
    %i = gpu.global_id x
    %in = arith.cmpi ult, %i, %n : index
    scf.if %in {
      %v = memref.load %x[%i] : memref<?xi32>
      %at = arith.index_cast %v : i32 to index
      %old = memref.atomic_rmw addi %one, %counts[%at] : (i32, memref<?xi32>) -> i32
    }
    gpu.return
  }

  // The length of each number's sequence of Collatz: every thread has its own number of steps.
  gpu.func @collatz(%x: memref<?xi64>, %y: memref<?xi64>) kernel {
    %i = gpu.thread_id x
    %start = memref.load %x[%i] : memref<?xi64>
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %two = arith.constant 2 : i64
    %three = arith.constant 3 : i64
    %last:2 = scf.while (%n = %start, %steps = %zero) : (i64, i64) -> (i64, i64) {
      %more = arith.cmpi sgt, %n, %one : i64
      scf.condition(%more) %n, %steps : i64, i64
    } do {
    ^bb0(%n: i64, %steps: i64):
      %odd = arith.andi %n, %one : i64
      %is = arith.cmpi eq, %odd, %one : i64
      %next = scf.if %is -> (i64) {
        %triple = arith.muli %n, %three : i64
        %up = arith.addi %triple, %one : i64
        scf.yield %up : i64
      } else {
        %down = arith.divsi %n, %two : i64
        scf.yield %down : i64
      }
      %more = arith.addi %steps, %one : i64
      scf.yield %next, %more : i64, i64
    }
    memref.store %last#1, %y[%i] : memref<?xi64>
    gpu.return
  }

  // Views: the second half of each row, its axes put together.
  gpu.func @views(%x: memref<4x6xf32>, %y: memref<?xf32>) kernel {
    %i = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c6 = arith.constant 6 : index
    %half = memref.subview %x[0, 3] [4, 3] [1, 1] : memref<4x6xf32> to memref<4x3xf32, strided<[6, 1], offset: 3>>
    %row = arith.divui %i, %c3 : index
    %column = arith.remui %i, %c3 : index
    %v = memref.load %half[%row, %column] : memref<4x3xf32, strided<[6, 1], offset: 3>>
    %flat = memref.collapse_shape %x [[0, 1]] : memref<4x6xf32> into memref<24xf32>
    %at = arith.muli %row, %c6 : index
    %w = memref.load %flat[%at] : memref<24xf32>
    %cut = memref.reinterpret_cast %x to offset: [%at], sizes: [6], strides: [1] : memref<4x6xf32> to memref<6xf32, strided<[1], offset: ?>>
    %u = memref.load %cut[%c1] : memref<6xf32, strided<[1], offset: ?>>
    %pair = memref.expand_shape %flat [[0, 1]] output_shape [12, 2] : memref<24xf32> into memref<12x2xf32>
    %p = memref.load %pair[%c1, %c0] : memref<12x2xf32>
    %s = arith.addf %v, %w : f32
    %r = arith.addf %s, %u : f32
    %q = arith.addf %r, %p : f32
    %z = func.call @twice(%q) : (f32) -> f32
    memref.store %z, %y[%i] : memref<?xf32>
    gpu.return
  }

  func.func private @twice(%x: f32) -> f32 {
    %y = arith.addf %x, %x : f32
    return %y : f32
  }
}
