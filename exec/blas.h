/* Single-precision matrix products, row major. The only file that knows cblas.h is
 * blas.c; without OpenBLAS the products fall back on loops of our own, several times
 * slower. */
#ifndef PT_EXEC_BLAS_H
#define PT_EXEC_BLAS_H

#include <stdbool.h>
#include <stddef.h>

/* C[m,n] = alpha op(A) op(B) + beta C; op(A) is [m,k], op(B) is [k,n]; ld* are row
 * strides of the matrices as stored. beta 0 overwrites C whatever it held. The same
 * shapes on the same machine and thread count give the same bits. */
void exec_gemm(bool trans_a, bool trans_b, size_t m, size_t n, size_t k, float alpha,
               const float *a, size_t lda, const float *b, size_t ldb, float beta,
               float *c, size_t ldc);
/* y[T,out] = x[T,in] w[out,in]^T: the layout of a linear layer. */
void exec_linear(float *y, const float *x, const float *w, size_t tokens, size_t in,
                 size_t out);
/* dx[T,in] = dy[T,out] w[out,in], added to dx when `add`. */
void exec_linear_input(float *dx, const float *dy, const float *w, size_t tokens,
                       size_t in, size_t out, bool add);
/* dw[out,in] += dy[T,out]^T x[T,in]. */
void exec_linear_weight(float *dw, const float *dy, const float *x, size_t tokens,
                        size_t in, size_t out);

void exec_blas_threads(int threads);
/* "OpenBLAS 0.3.21 ... SkylakeX" or "built-in loops"; lives as long as the process. */
const char *exec_blas_name(void);

#endif
