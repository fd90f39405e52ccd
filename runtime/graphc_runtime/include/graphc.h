/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The C interface of functions that graphc compiled: `graphc-compile --emit object|shared|header`.
 *
 * A function NAME of a model is three C functions and a description:
 *
 *   int32_t NAME(const graphc_call *, const graphc_tensor *inputs, const graphc_tensor *outputs, graphc_error *);
 *   int32_t NAME_shapes(const graphc_call *, const graphc_tensor *inputs, graphc_tensor *outputs, graphc_error *);
 *   int64_t NAME_workspace(const graphc_tensor *inputs, graphc_error *);
 *   extern const graphc_function NAME_info;
 *
 * They keep nothing between calls and may run in any number of threads at once. States (shared variables) are
 * inputs after the arguments, and their new values outputs after the results: `NAME_info` says which, and has
 * the initial values. The caller keeps them.
 */
#ifndef GRAPHC_H
#define GRAPHC_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a program that was compiled with an older header no longer works. */
#define GRAPHC_ABI_VERSION 1

enum {
  GRAPHC_BOOL = 0, /* one byte, 0 or 1 */
  GRAPHC_INT8 = 1,
  GRAPHC_INT16 = 2,
  GRAPHC_INT32 = 3,
  GRAPHC_INT64 = 4,
  GRAPHC_UINT8 = 5,
  GRAPHC_UINT16 = 6,
  GRAPHC_UINT32 = 7,
  GRAPHC_UINT64 = 8,
  GRAPHC_FLOAT16 = 9,
  GRAPHC_FLOAT32 = 10,
  GRAPHC_FLOAT64 = 11,
  GRAPHC_COMPLEX64 = 12, /* real part, imaginary part */
  GRAPHC_COMPLEX128 = 13,
  GRAPHC_BFLOAT16 = 14
};

/* What functions return. */
enum {
  GRAPHC_OK = 0,
  GRAPHC_NULL = 1,      /* data or shape is a null pointer */
  GRAPHC_DTYPE = 2,     /* another dtype than expected */
  GRAPHC_RANK = 3,      /* another number of dimensions */
  GRAPHC_SHAPE = 4,     /* another size of an axis */
  GRAPHC_STRIDES = 5,   /* not C-contiguous */
  GRAPHC_ALIGNMENT = 6, /* data is not aligned to the element type */
  GRAPHC_MEMORY = 7,    /* workspace and allocator gave no memory */
  GRAPHC_CHECK = 8,     /* a check of the model failed, such as an index out of range: see message */
  GRAPHC_INTERNAL = 9
};

/* An array. Elements lie in C order without gaps; inputs are only read, and no output overlaps another array. */
typedef struct graphc_tensor {
  void *data;
  int64_t *shape;         /* rank sizes; may be null for rank 0 */
  const int64_t *strides; /* rank distances in bytes, or null for those of a C-contiguous array */
  int32_t dtype;
  int32_t rank;
} graphc_tensor;

/* Memory for intermediate values that do not fit into the workspace. Calls come from the caller's thread, and
 * whatever a call allocates it releases before it returns. */
typedef struct graphc_allocator {
  void *self;
  void *(*allocate)(void *self, int64_t bytes, int64_t alignment); /* null: there is no memory */
  void (*release)(void *self, void *memory);
} graphc_allocator;

/* What a call computes with. A null pointer to it, or zeros, is no memory at all. */
typedef struct graphc_call {
  void *workspace;         /* used by one call at a time; any alignment */
  int64_t workspace_bytes; /* NAME_workspace says how many are enough */
  const graphc_allocator *allocator;
} graphc_call;

/* Filled by functions that return another code than 0. */
typedef struct graphc_error {
  int32_t code;
  int32_t tensor; /* number of the input; outputs count on after the inputs; -1: none */
  int32_t axis;   /* -1: none */
  int32_t reserved;
  int64_t given, expected;
  const char *message; /* of GRAPHC_CHECK, with {given} and {expected} in it; else null */
} graphc_error;

enum { GRAPHC_ARGUMENT = 0, GRAPHC_STATE = 1 };

typedef struct graphc_array {
  const char *name;
  const int64_t *shape; /* -1 where sizes are known at run time only */
  const void *initial;  /* first value of a state, else null */
  const int64_t *initial_shape;
  int32_t dtype;
  int32_t rank;
  int32_t kind;    /* of an input: GRAPHC_ARGUMENT or GRAPHC_STATE */
  int32_t updates; /* of an output: the input whose next value it is, -1 for results */
} graphc_array;

typedef int32_t graphc_run_function(const graphc_call *, const graphc_tensor *, const graphc_tensor *,
                                    graphc_error *);
/* Stores sizes, dtype and rank of the outputs, for which `shape` points at memory; `data` is not looked at. */
typedef int32_t graphc_shapes_function(const graphc_call *, const graphc_tensor *, graphc_tensor *, graphc_error *);
/* Bytes of workspace with which calls of both need no allocator; -1 where there is no bound that sizes tell, -2 for
 * inputs that a call refuses. */
typedef int64_t graphc_workspace_function(const graphc_tensor *, graphc_error *);

typedef struct graphc_function {
  int32_t abi_version; /* GRAPHC_ABI_VERSION of the compiler that made it */
  int32_t n_inputs;
  int32_t n_outputs;
  int32_t reserved;
  const char *name;
  const char *doc;
  const graphc_array *inputs;
  const graphc_array *outputs;
  graphc_run_function *run;
  graphc_shapes_function *shapes;
  graphc_workspace_function *workspace;
} graphc_function;

static inline const char *graphc_code_name(int32_t code) {
  static const char *const names[] = {
      "success",          "a null pointer",      "another dtype than expected",
      "another number of dimensions than expected",
      "another size than expected",              "the array is not C-contiguous",
      "the data are not aligned",                "no memory: give more workspace, or an allocator",
      "a check of the model failed",             "an internal error"};
  return code >= 0 && code <= GRAPHC_INTERNAL ? names[code] : "an unknown error";
}

/* Writes an error as text of at most `size` bytes, with the final zero. */
static inline void graphc_describe(const graphc_error *error, char *text, size_t size) {
  const char *from = error->message;
  size_t used = 0;
  if (size == 0) return;
  if (from == NULL) {
    int length = snprintf(text, size, "%s", graphc_code_name(error->code));
    if (error->tensor >= 0 && length >= 0 && (size_t)length < size)
      snprintf(text + length, size - (size_t)length, " (array %d, axis %d: given %lld, expected %lld)",
               (int)error->tensor, (int)error->axis, (long long)error->given, (long long)error->expected);
    return;
  }
  while (*from != '\0' && used + 1 < size) {
    int is_given = strncmp(from, "{given}", 7) == 0, is_expected = strncmp(from, "{expected}", 10) == 0;
    if (is_given || is_expected) {
      int64_t number = is_given ? error->given : error->expected;
      int length = snprintf(text + used, size - used, "%lld", (long long)number);
      used = length < 0 || (size_t)length >= size - used ? size - 1 : used + (size_t)length;
      from += is_given ? 7 : 10;
    } else {
      text[used++] = *from++;
    }
  }
  text[used] = '\0';
}

#ifdef __cplusplus
}
#endif
#endif
