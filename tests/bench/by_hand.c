// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ten lines of the benchmark as a C programmer writes them: cc -O3 -march=native -fopenmp -ffast-math.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

void fused_exp(const double *x, const double *y, double *out, int64_t n) {
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; i++)
    out[i] = exp(x[i]) * y[i] + 1.0;
}

void transcendental(const double *x, const double *y, double *out, int64_t n) {
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; i++)
    out[i] = log1p(exp(-fabs(x[i]))) + tanh(y[i]) * (1.0 / (1.0 + exp(-x[i])));
}

void square_distance(const double *x, const double *y, double *out, int64_t n) {
  double sum = 0.0;
#pragma omp parallel for simd reduction(+ : sum) schedule(static)
  for (int64_t i = 0; i < n; i++)
    sum += (x[i] - y[i]) * (x[i] - y[i]);
  *out = sum;
}

void softmax(const double *x, double *out, int64_t rows, int64_t columns) {
#pragma omp parallel for schedule(static)
  for (int64_t r = 0; r < rows; r++) {
    const double *a = x + r * columns;
    double *b = out + r * columns;
    double top = a[0], sum = 0.0;
#pragma omp simd reduction(max : top)
    for (int64_t i = 0; i < columns; i++)
      top = a[i] > top ? a[i] : top;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < columns; i++)
      sum += b[i] = exp(a[i] - top);
#pragma omp simd
    for (int64_t i = 0; i < columns; i++)
      b[i] /= sum;
  }
}

void argmax(const double *x, int64_t *out, int64_t n) {
  double top = x[0];
#pragma omp parallel for simd reduction(max : top) schedule(static)
  for (int64_t i = 0; i < n; i++)
    top = x[i] > top ? x[i] : top;
  int64_t at = 0;
  while (x[at] != top)
    at++;
  *out = at;
}

void cumsum(const double *x, double *out, int64_t n) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; i++)
    out[i] = sum += x[i];
}

void gather(const double *x, const int64_t *at, double *out, int64_t n) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++)
    out[i] = x[at[i]];
}

void scatter(const double *x, const int64_t *at, const double *y, double *out, int64_t n) {
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; i++)
    out[i] = x[i];
  for (int64_t i = 0; i < n; i++)
    out[at[i]] += y[i];
}

void recurrence(const double *x, double h, double *out, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    out[i] = h = 0.9 * h + x[i];
}

void hmm(const int64_t *symbols, const double *start, const double *transition, const double *emission,
         double *out, int64_t steps, int64_t states) {
  double a[64], b[64], sum = 0.0;
  for (int64_t i = 0; i < states; i++)
    a[i] = start[i];
  for (int64_t t = 0; t < steps; t++) {
    const double *e = emission + symbols[t] * states;
    double total = 0.0;
    for (int64_t j = 0; j < states; j++)
      b[j] = 0.0;
    for (int64_t i = 0; i < states; i++)
#pragma omp simd
      for (int64_t j = 0; j < states; j++)
        b[j] += a[i] * transition[i * states + j];
    for (int64_t j = 0; j < states; j++)
      total += b[j] *= e[j];
    for (int64_t j = 0; j < states; j++)
      a[j] = b[j] / total;
    sum += log(total);
  }
  *out = sum;
}
