// Kernels that are wrong, each in one way; test_interpreter.py says how it is found.
gpu.module @kernels {
  gpu.func @race_in_global(%x: memref<?xf32>) kernel {
    %i = gpu.thread_id x
    %c1 = arith.constant 1 : index
    %j = arith.addi %i, %c1 : index
    %v = memref.load %x[%j] : memref<?xf32>
    memref.store %v, %x[%i] : memref<?xf32>
    gpu.return
  }

  gpu.func @race_in_shared(%x: memref<?xf32>)
      workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %i = gpu.thread_id x
    %c63 = arith.constant 63 : index
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %s[%i] : memref<64xf32, #gpu.address_space<workgroup>>
    %j = arith.subi %c63, %i : index
    %w = memref.load %s[%j] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %w, %x[%i] : memref<?xf32>
    gpu.return
  }

  gpu.func @race_of_blocks(%x: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %one = arith.constant 1.0 : f32
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      %v = memref.load %x[%c0] : memref<?xf32>
      %w = arith.addf %v, %one : f32
      memref.store %w, %x[%c0] : memref<?xf32>
    }
    gpu.return
  }

  gpu.func @race_of_lanes(%x: memref<?xf32>) kernel {
    %c2 = arith.constant 2 : index
    %one = arith.constant 1.0 : f32
    %t = gpu.thread_id x
    %i = arith.divui %t, %c2 : index
    memref.store %one, %x[%i] : memref<?xf32>
    gpu.return
  }

  gpu.func @divergent_barrier(%x: memref<?xf32>) kernel {
    %c16 = arith.constant 16 : index
    %t = gpu.thread_id x
    %low = arith.cmpi ult, %t, %c16 : index
    scf.if %low {
      gpu.barrier
    }
    gpu.return
  }

  gpu.func @divergent_loop(%n: memref<?xindex>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %t = gpu.thread_id x
    %end = memref.load %n[%t] : memref<?xindex>
    scf.for %i = %c0 to %end step %c1 {
      gpu.barrier
    }
    gpu.return
  }

  gpu.func @divergent_shuffle(%x: memref<?xf32>) kernel {
    %c16 = arith.constant 16 : index
    %t = gpu.thread_id x
    %low = arith.cmpi ult, %t, %c16 : index
    scf.if %low {
      %v = memref.load %x[%t] : memref<?xf32>
      %one = arith.constant 1 : i32
      %w = arith.constant 32 : i32
      %s, %p = gpu.shuffle down %v, %one, %w : f32
    }
    gpu.return
  }

  gpu.func @outside(%x: memref<?xf32>) kernel {
    %i = gpu.global_id x
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %x[%i] : memref<?xf32>
    gpu.return
  }

  gpu.func @outside_of_memory(%x: memref<?xf32>) kernel {
    %c100 = arith.constant 100 : index
    %far = memref.reinterpret_cast %x to offset: [%c100], sizes: [64], strides: [1] : memref<?xf32> to memref<64xf32, strided<[1], offset: ?>>
    %i = gpu.thread_id x
    %v = memref.load %far[%i] : memref<64xf32, strided<[1], offset: ?>>
    gpu.return
  }

  gpu.func @never_written(%x: memref<?xf32>)
      workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %i = gpu.thread_id x
    %v = memref.load %s[%i] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %v, %x[%i] : memref<?xf32>
    gpu.return
  }

  gpu.func @division(%x: memref<?xi32>) kernel {
    %i = gpu.thread_id x
    %zero = arith.constant 0 : i32
    %v = memref.load %x[%i] : memref<?xi32>
    %w = arith.divsi %v, %zero : i32
    memref.store %w, %x[%i] : memref<?xi32>
    gpu.return
  }

  gpu.func @unaligned(%x: memref<?xf32>) kernel {
    %c1 = arith.constant 1 : index
    %v = vector.load %x[%c1] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
    gpu.return
  }

  // What is copied is read before the thread has waited for it.
  gpu.func @copy_without_wait(%x: memref<?xf32>)
      workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %i = gpu.thread_id x
    %copy = nvgpu.device_async_copy %x[%i], %s[%i], 1 : memref<?xf32> to memref<64xf32, #gpu.address_space<workgroup>>
    %v = memref.load %s[%i] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %v, %x[%i] : memref<?xf32>
    gpu.return
  }

  // Each thread has waited for its own copy, but not for the other threads.
  gpu.func @copy_without_barrier(%x: memref<?xf32>)
      workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %i = gpu.thread_id x
    %c63 = arith.constant 63 : index
    %copy = nvgpu.device_async_copy %x[%i], %s[%i], 1 : memref<?xf32> to memref<64xf32, #gpu.address_space<workgroup>>
    %group = nvgpu.device_async_create_group %copy
    nvgpu.device_async_wait %group {numGroups = 0 : i32}
    %j = arith.subi %c63, %i : index
    %v = memref.load %s[%j] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.return
  }

  // 16 bytes at once, from addresses that are no multiples of 16.
  gpu.func @unaligned_copy(%x: memref<?xf32>)
      workgroup(%s: memref<64x4xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64}) kernel {
    %c0 = arith.constant 0 : index
    %i = gpu.thread_id x
    %c32 = arith.constant 32 : index
    %j = arith.remui %i, %c32 : index
    %copy = nvgpu.device_async_copy %x[%j], %s[%i, %c0], 4 : memref<?xf32> to memref<64x4xf32, #gpu.address_space<workgroup>>
    gpu.return
  }

  // Shared memory of which nothing says that it begins at a multiple of 16 bytes.
  gpu.func @unaligned_rows(%x: memref<?xf32>)
      workgroup(%s: memref<8x8xf16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %i = gpu.thread_id x
    %row = arith.remui %i, %c8 : index
    %v = nvgpu.ldmatrix %s[%row, %c0] {numTiles = 1 : i32, transpose = false} : memref<8x8xf16, #gpu.address_space<workgroup>> -> vector<1x2xf16>
    gpu.return
  }

  // A product that half of a warp takes part in.
  gpu.func @divergent_product(%x: memref<?xf32>) kernel {
    %c16 = arith.constant 16 : index
    %i = gpu.thread_id x
    %some = arith.cmpi slt, %i, %c16 : index
    scf.if %some {
      %a = arith.constant dense<1.0> : vector<1x1xf64>
      %c = arith.constant dense<0.0> : vector<1x2xf64>
      %d = nvgpu.mma.sync (%a, %a, %c) {mmaShape = [8, 8, 4]} : (vector<1x1xf64>, vector<1x1xf64>, vector<1x2xf64>) -> vector<1x2xf64>
    }
    gpu.return
  }
}
