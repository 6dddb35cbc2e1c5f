#include "config.h"

#include "exec/blas.h"

#ifdef HAVE_OPENBLAS
#include <cblas.h>

void exec_gemm(bool trans_a, bool trans_b, size_t m, size_t n, size_t k, float alpha,
               const float *a, size_t lda, const float *b, size_t ldb, float beta,
               float *c, size_t ldc)
{
    cblas_sgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans,
                trans_b ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n, (blasint)k,
                alpha, a, (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);
}

void exec_blas_threads(int threads)
{
    openblas_set_num_threads(threads);
}

const char *exec_blas_name(void)
{
    return openblas_get_config();
}

#else

/* Rows of C in order, each a sum over k of scaled rows of B: the inner loop vectorises
 * when B is not transposed, which the layers arrange for their largest products. */
static void row_add(float *c, const float *b, size_t n, size_t stride, float x)
{
    if (stride == 1)
        for (size_t j = 0; j < n; j++)
            c[j] += x * b[j];
    else
        for (size_t j = 0; j < n; j++)
            c[j] += x * b[j * stride];
}

void exec_gemm(bool trans_a, bool trans_b, size_t m, size_t n, size_t k, float alpha,
               const float *a, size_t lda, const float *b, size_t ldb, float beta,
               float *c, size_t ldc)
{
    const size_t ai = trans_a ? 1 : lda, ak = trans_a ? lda : 1;
    const size_t bk = trans_b ? 1 : ldb, bj = trans_b ? ldb : 1;

    for (size_t i = 0; i < m; i++) {
        float *row = c + i * ldc;

        for (size_t j = 0; j < n; j++)
            row[j] = beta == 0 ? 0 : beta * row[j];
        for (size_t l = 0; l < k; l++)
            row_add(row, b + l * bk, n, bj, alpha * a[i * ai + l * ak]);
    }
}

void exec_blas_threads(int threads)
{
    (void)threads;
}

const char *exec_blas_name(void)
{
    return "built-in loops";
}

#endif

void exec_linear(float *y, const float *x, const float *w, size_t tokens, size_t in,
                 size_t out)
{
    exec_gemm(false, true, tokens, out, in, 1, x, in, w, in, 0, y, out);
}

void exec_linear_input(float *dx, const float *dy, const float *w, size_t tokens,
                       size_t in, size_t out, bool add)
{
    exec_gemm(false, false, tokens, in, out, 1, dy, out, w, in, add ? 1 : 0, dx, in);
}

void exec_linear_weight(float *dw, const float *dy, const float *x, size_t tokens,
                        size_t in, size_t out)
{
    exec_gemm(true, false, out, in, tokens, 1, dy, out, x, in, 1, dw, in);
}
