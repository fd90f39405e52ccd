/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A library with the functions of cuBLAS that the runtime calls, on memory of the host. With HAVE_CUBLAS_H the
 * compiler compares their types with those of NVIDIA's header. It writes down what it was asked for last. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_CUBLAS_H
/* Headers of numbers that it names, but that are not used here, need a library of C++. */
#define __CUDA_FP16_H__
#define __CUDA_BF16_H__
typedef struct { unsigned short bits; } __half, __nv_bfloat16;
#include <cublas_v2.h>
#else
#define CUBLASWINAPI
typedef int cublasStatus_t, cublasOperation_t, cudaDataType, cublasComputeType_t, cublasGemmAlgo_t;
typedef void *cublasHandle_t, *cudaStream_t;
enum { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_ALLOC_FAILED = 3,
       CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_INTERNAL_ERROR = 14, CUBLAS_STATUS_NOT_SUPPORTED };
enum { CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_C_32F = 4, CUDA_C_64F };
enum { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_32F_FAST_TF32 = 77 };
enum { CUBLAS_OP_N, CUBLAS_OP_T };
enum { CUBLAS_GEMM_DEFAULT = -1 };
#define cublasCreate cublasCreate_v2
#define cublasSetStream cublasSetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#endif

#ifndef ONLY_HEADER
/* What was asked for: compute type, count of products, of streams and of memory that were set, the last
   stream, the last memory and its size. `next` is the status of the next call of each kind. */
static int64_t asked[7], next[3];
static int handle, inside;

void fake_status(int64_t kind, int64_t status) { next[kind] = status; }
int64_t fake_asked(int64_t number) { return asked[number]; }
static cublasStatus_t status(int kind) {
    int64_t found = next[kind];
    return next[kind] = 0, (cublasStatus_t)found;
}

cublasStatus_t CUBLASWINAPI cublasCreate(cublasHandle_t *made) {
    *made = (cublasHandle_t)&handle;
    asked[3] = asked[4] = asked[5] = 0;
    return status(0);
}
cublasStatus_t CUBLASWINAPI cublasSetStream(cublasHandle_t given, cudaStream_t stream) {
    if (given != (cublasHandle_t)&handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    asked[2]++, asked[4] = (intptr_t)stream, asked[5] = 0;
    return status(1);
}
cublasStatus_t CUBLASWINAPI cublasSetWorkspace(cublasHandle_t given, void *memory, size_t size) {
    if (given != (cublasHandle_t)&handle || (uintptr_t)memory % 256) return CUBLAS_STATUS_INVALID_VALUE;
    return asked[3]++, asked[5] = (intptr_t)memory, asked[6] = size, CUBLAS_STATUS_SUCCESS;
}
const char *CUBLASWINAPI cublasGetStatusString(cublasStatus_t found) {
    return found == 3 ? "the resource allocation failed" : found == 8 ? "an absent device architectural feature"
                                                                      : "something is wrong";
}

static float half(uint16_t bits) {
    uint32_t exponent = bits >> 10 & 31, wide;
    float found;
    if (!exponent) return (bits & 0x8000 ? -1 : 1) * (float)(bits & 1023) / 16777216.0f;
    wide = (uint32_t)(bits & 0x8000) << 16 | (exponent == 31 ? 255u : exponent + 112u) << 23 | (bits & 1023u) << 13;
    return memcpy(&found, &wide, 4), found;
}
static double _Complex element(const void *memory, cudaDataType type, int64_t at) {
    switch ((int)type) {
    case CUDA_R_16F: return half(((const uint16_t *)memory)[at]);
    case CUDA_R_32F: return ((const float *)memory)[at];
    case CUDA_R_64F: return ((const double *)memory)[at];
    case CUDA_C_32F: return ((const float *)memory)[2 * at] + ((const float *)memory)[2 * at + 1] * 1.0i;
    default: return ((const double *)memory)[2 * at] + ((const double *)memory)[2 * at + 1] * 1.0i;
    }
}
static void put(void *memory, cudaDataType type, int64_t at, double _Complex value) {
    switch ((int)type) {
    case CUDA_R_32F: ((float *)memory)[at] = __real__ value; break;
    case CUDA_R_64F: ((double *)memory)[at] = __real__ value; break;
    case CUDA_C_32F: ((float *)memory)[2 * at] = __real__ value, ((float *)memory)[2 * at + 1] = __imag__ value; break;
    default: ((double *)memory)[2 * at] = __real__ value, ((double *)memory)[2 * at + 1] = __imag__ value;
    }
}

cublasStatus_t CUBLASWINAPI cublasGemmStridedBatchedEx_64(
    cublasHandle_t given, cublasOperation_t across_a, cublasOperation_t across_b, int64_t m, int64_t n, int64_t k,
    const void *alpha, const void *a, cudaDataType kind_a, int64_t lda, long long int apart_a, const void *b,
    cudaDataType kind_b, int64_t ldb, long long int apart_b, const void *beta, void *c, cudaDataType kind_c,
    int64_t ldc, long long int apart_c, int64_t count, cublasComputeType_t type, cublasGemmAlgo_t algorithm) {
    if (given != (cublasHandle_t)&handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    /* A handle has one stream and one workspace, which two threads at a time would share. */
    if (__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST)) return CUBLAS_STATUS_INTERNAL_ERROR;
    usleep(20);
    int wide = kind_c == CUDA_R_64F || kind_c == CUDA_C_64F;
    int is_known = wide ? type == CUBLAS_COMPUTE_64F
                        : type == CUBLAS_COMPUTE_32F || (type == CUBLAS_COMPUTE_32F_FAST_TF32 && kind_a == CUDA_R_32F);
    int is_same = kind_a == kind_c || (kind_a == CUDA_R_16F && kind_c == CUDA_R_32F);
    __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
    if (kind_a != kind_b || !is_known || !is_same || algorithm != CUBLAS_GEMM_DEFAULT)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    int turned_a = across_a == CUBLAS_OP_T, turned_b = across_b == CUBLAS_OP_T;
    if (m < 1 || n < 1 || k < 1 || count < 1 || ldc < m || lda < (turned_a ? k : m) || ldb < (turned_b ? n : k))
        return CUBLAS_STATUS_INVALID_VALUE;
    asked[0] = type, asked[1]++;
    for (int64_t x = 0; x < count; x++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < m; i++) {
                int64_t at = x * apart_c + j * ldc + i;
                double _Complex sum = 0;
                for (int64_t l = 0; l < k; l++)
                    sum += element(a, kind_a, x * apart_a + (turned_a ? i * lda + l : l * lda + i)) *
                           element(b, kind_b, x * apart_b + (turned_b ? l * ldb + j : j * ldb + l));
                double _Complex factor = element(beta, kind_c, 0);
                /* C is not read where that is 0. */
                sum = element(alpha, kind_c, 0) * sum + (factor == 0 ? 0 : factor * element(c, kind_c, at));
                put(c, kind_c, at, sum);
            }
    return status(2);
}
cublasStatus_t CUBLASWINAPI cublasGemmEx_64(cublasHandle_t given, cublasOperation_t across_a,
                                            cublasOperation_t across_b, int64_t m, int64_t n, int64_t k,
                                            const void *alpha, const void *a, cudaDataType kind_a, int64_t lda,
                                            const void *b, cudaDataType kind_b, int64_t ldb, const void *beta,
                                            void *c, cudaDataType kind_c, int64_t ldc, cublasComputeType_t type,
                                            cublasGemmAlgo_t algorithm) {
    return cublasGemmStridedBatchedEx_64(given, across_a, across_b, m, n, k, alpha, a, kind_a, lda, 0, b, kind_b,
                                         ldb, 0, beta, c, kind_c, ldc, 0, 1, type, algorithm);
}
#endif
