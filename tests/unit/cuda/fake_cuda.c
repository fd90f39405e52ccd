/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A library with the functions of the CUDA driver that the runtime calls, on memory of the host. With
 * HAVE_CUDA_H the compiler compares their types with those of NVIDIA's header. Its one kernel, `axpy`, takes
 * (float a, double b, int8 c, memref x, memref y) and computes y += a * b * c * x. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_CUDA_H
#include <cuda.h>
#undef cuEventElapsedTime /* newer headers mean another one, with finer times */
#else
#define CUDAAPI
typedef int CUresult, CUdevice, CUdevice_attribute, CUjit_option, CUfunction_attribute, CUstreamCaptureMode,
    CUmemPool_attribute;
typedef void *CUcontext, *CUmodule, *CUfunction, *CUstream, *CUevent, *CUgraph, *CUgraphNode, *CUgraphExec, *CUmemoryPool;
typedef unsigned long long CUdeviceptr;
enum { CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_PTX = 218,
       CUDA_ERROR_NOT_FOUND = 500, CUDA_ERROR_ILLEGAL_ADDRESS = 700,
       CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE = 910 };
typedef struct { int result; void *errorNode, *errorFromNode; } CUgraphExecUpdateResultInfo;
#define cuMemcpyHtoDAsync cuMemcpyHtoDAsync_v2
#define cuMemcpyDtoHAsync cuMemcpyDtoHAsync_v2
#define cuMemcpyDtoDAsync cuMemcpyDtoDAsync_v2
#define cuMemGetInfo cuMemGetInfo_v2
#define cuStreamBeginCapture cuStreamBeginCapture_v2
#define cuEventDestroy cuEventDestroy_v2
#define cuGraphInstantiate cuGraphInstantiateWithFlags
#define cuGraphExecUpdate cuGraphExecUpdate_v2
#endif

static int64_t live, launches, replays, capturing, nodes;
static const int64_t total = 1 << 20;

int64_t fake_live(void) { return live; }
int64_t fake_launches(void) { return launches; }
int64_t fake_replays(void) { return replays; }

CUresult CUDAAPI cuInit(unsigned int flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult CUDAAPI cuDriverGetVersion(int *version) { return *version = 12040, CUDA_SUCCESS; }
CUresult CUDAAPI cuDeviceGetCount(int *count) { return *count = 1, CUDA_SUCCESS; }
CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) { return *device = ordinal + 7, CUDA_SUCCESS; }
CUresult CUDAAPI cuDeviceGetName(char *name, int size, CUdevice device) {
    return strncpy(name, device == 7 ? "fake" : "wrong", size), CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    if (device != 7) return CUDA_ERROR_INVALID_VALUE;
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : -1;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    return *context = (CUcontext)(uintptr_t)0x700000001234, CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
    return (uintptr_t)context == 0x700000001234 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    return *pool = (CUmemoryPool)(uintptr_t)0x700000004321, CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
    int good = (uintptr_t)pool == 0x700000004321 && attribute == 4 && *(uint64_t *)value == UINT64_MAX;
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                                    CUjit_option *options, void **values) {
    if (strncmp(image, ".version", 8)) {
        for (unsigned i = 0; i < count; i++)
            if (options[i] == 5) strcpy(values[i], "ptxas fatal: no version");
        return CUDA_ERROR_INVALID_PTX;
    }
    return *module = (CUmodule)(uintptr_t)0x700000000100, CUDA_SUCCESS;
}
CUresult CUDAAPI cuModuleUnload(CUmodule module) { return CUDA_SUCCESS; }
CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    if ((uintptr_t)module != 0x700000000100 || strcmp(name, "axpy")) return CUDA_ERROR_NOT_FOUND;
    return *function = (CUfunction)(uintptr_t)0x700000000200, CUDA_SUCCESS;
}
CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    return attribute == 8 && value == 65536 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuMemGetInfo(size_t *free_, size_t *all) {
    return *free_ = total - live, *all = total, CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream) {
    if (!size) return CUDA_ERROR_INVALID_VALUE;
    if (live + (int64_t)size > total) return CUDA_ERROR_OUT_OF_MEMORY;
    size_t *block = aligned_alloc(256, (size + 511) / 256 * 256);
    *block = size, live += size;
    return *address = (uintptr_t)block + 256, CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
    size_t *block = (size_t *)(uintptr_t)(address - 256);
    return live -= *block, free(block), CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr target, const void *source, size_t size, CUstream stream) {
    if (!size || !target || !source) return CUDA_ERROR_INVALID_VALUE;
    return nodes++, memcpy((void *)(uintptr_t)target, source, size), CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemcpyDtoHAsync(void *target, CUdeviceptr source, size_t size, CUstream stream) {
    if (!size || !target || !source) return CUDA_ERROR_INVALID_VALUE;
    return nodes++, memcpy(target, (void *)(uintptr_t)source, size), CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream) {
    if (!size || !target || !source) return CUDA_ERROR_INVALID_VALUE;
    return nodes++, memcpy((void *)(uintptr_t)target, (void *)(uintptr_t)source, size), CUDA_SUCCESS;
}
static CUresult handle(void **result, uintptr_t number) {
    return *result = (void *)(0x700000000000 + number), CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned int flags) { return handle((void **)stream, 3); }
CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
    return (uintptr_t)stream == 0x700000000003 ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}
CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned int flags) {
    return handle((void **)event, flags == 2 ? 4 : 5);
}
CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
    return (uintptr_t)stream == 0x700000000003 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuEventSynchronize(CUevent event) { return CUDA_SUCCESS; }
CUresult CUDAAPI cuEventDestroy(CUevent event) { return CUDA_SUCCESS; }
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent first, CUevent last) {
    return *milliseconds = 1.5f, CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
    int good = (uintptr_t)stream == 0x700000000003 && (uintptr_t)event == 0x700000000004 && !flags;
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
    return nodes = 0, capturing = mode == 1, CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph *graph) { return handle((void **)graph, 6); }
CUresult CUDAAPI cuGraphGetNodes(CUgraph graph, CUgraphNode *found, size_t *count) {
    return *count = nodes, CUDA_SUCCESS;
}
CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    return (uintptr_t)graph == 0x700000000006 && capturing && nodes ? handle((void **)exec, 8) : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuGraphDestroy(CUgraph graph) { return CUDA_SUCCESS; }
CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) { return CUDA_SUCCESS; }
CUresult CUDAAPI cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    return (uintptr_t)exec == 0x700000000008 ? (replays++, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE;
}
CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info) {
    info->errorFromNode = 0;
    if ((uintptr_t)graph != 0x700000000006) return CUDA_ERROR_INVALID_VALUE;
    return (uintptr_t)exec == 0x700000000008 ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}
CUresult CUDAAPI cuGetErrorName(CUresult error, const char **text) {
    return *text = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER", CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetErrorString(CUresult error, const char **text) {
    return *text = "something is wrong", CUDA_SUCCESS;
}
CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                unsigned by, unsigned bz, unsigned shared, CUstream stream, void **given,
                                void **extra) {
    if ((uintptr_t)function != 0x700000000200 || extra || gy != 2 || gz != 3 || by != 5 || bz != 6)
        return CUDA_ERROR_INVALID_VALUE;
    if (bx > 1024 || !bx || !gx) return CUDA_ERROR_INVALID_VALUE;
    nodes++;
    float a = *(float *)given[0];
    double b = *(double *)given[1];
    int8_t c = *(int8_t *)given[2];
    float *x = *(float **)given[4], *y = *(float **)given[9];
    for (int64_t i = 0; i < *(int64_t *)given[6]; i++) {
        int64_t at = *(int64_t *)given[10] + i * *(int64_t *)given[12];
        y[at] += a * b * c * x[*(int64_t *)given[5] + i * *(int64_t *)given[7]];
    }
    return launches++, CUDA_SUCCESS;
}
CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                           unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                           CUstream stream, void **given) {
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, given, 0);
}
