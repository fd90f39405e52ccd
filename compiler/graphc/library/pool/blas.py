# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM IR of the part of the thread pool that keeps BLAS from using threads of its own.

`graphc_share_blas` is `graphc_share` for bodies that call BLAS: BLAS is told to use one thread until all
callers that asked for it are done. `graphc_blas_get` and `graphc_blas_set` are the library's functions, null
where it has none.
"""

from __future__ import annotations

POOL_BLAS = """
@graphc_blas_get = global ptr null, align 8
@graphc_blas_set = global ptr null, align 8
@blas_mutex = internal global [128 x i8] zeroinitializer, align 64
@blas_users = internal global i64 0, align 8
@blas_before = internal global i32 0, align 8

define internal void @blas_reset() nounwind {
  %m = call i32 @pthread_mutex_init(ptr @blas_mutex, ptr null)
  %users = load i64, ptr @blas_users
  %limited = icmp ne i64 %users, 0
  store i64 0, ptr @blas_users
  br i1 %limited, label %restore, label %done
restore:
  %set = load ptr, ptr @graphc_blas_set
  %before = load i32, ptr @blas_before
  call void %set(i32 %before)
  br label %done
done:
  ret void
}

define void @graphc_share_blas(ptr %body, ptr %frame, i64 %lower, i64 %upper, i64 %cost,
  i64 %alignment) nounwind {
entry:
  %get = load ptr, ptr @graphc_blas_get
  %set = load ptr, ptr @graphc_blas_set
  %unknown = icmp eq ptr %set, null
  br i1 %unknown, label %plain, label %limit
plain:
  call void @graphc_share(ptr %body, ptr %frame, i64 %lower, i64 %upper, i64 %cost, i64 %alignment)
  ret void
limit:
  %l0 = call i32 @pthread_mutex_lock(ptr @blas_mutex)
  %users = load i64, ptr @blas_users
  %more = add i64 %users, 1
  store i64 %more, ptr @blas_users
  %first = icmp eq i64 %users, 0
  br i1 %first, label %one, label %limited
one:
  %now = call i32 %get()
  store i32 %now, ptr @blas_before
  call void %set(i32 1)
  br label %limited
limited:
  %u0 = call i32 @pthread_mutex_unlock(ptr @blas_mutex)
  call void @graphc_share(ptr %body, ptr %frame, i64 %lower, i64 %upper, i64 %cost, i64 %alignment)
  %l1 = call i32 @pthread_mutex_lock(ptr @blas_mutex)
  %left = load i64, ptr @blas_users
  %fewer = sub i64 %left, 1
  store i64 %fewer, ptr @blas_users
  %last = icmp eq i64 %fewer, 0
  br i1 %last, label %restore, label %done
restore:
  %before = load i32, ptr @blas_before
  call void %set(i32 %before)
  br label %done
done:
  %u1 = call i32 @pthread_mutex_unlock(ptr @blas_mutex)
  ret void
}
"""
