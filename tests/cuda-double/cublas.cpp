// libcublas's stand-in: single-precision column-major GEMMs on the host, queued on the double's streams. TF32 is computed as fp32.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bridge.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

enum Status { kSuccess = 0, kNotInitialized = 1, kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15 };

struct Handle {
    void* stream = nullptr;
    int math_mode = 0;
    int pointer_mode = 0;
};

// C[m, n] = alpha op(A)[m, k] op(B)[k, n] + beta C, `batch` times.
struct Gemm {
    bool transpose_a, transpose_b;
    int m, n, k;
    float alpha, beta;
    const float *a, *b;
    float* c;
    int lda, ldb, ldc, batch;
    long long stride_a, stride_b, stride_c;
};

typedef float Vector __attribute__((vector_size(64)));
constexpr int kRows = 32, kColumns = 4;

// 32 rows by 4 columns of the product, in registers. `a`: k rows of 32, `b`: k rows of 4.
__attribute__((target_clones("avx512f", "arch=haswell", "default"))) static void tile(int k, const float* a, const float* b,
                                                                                      float* result) {
    Vector sum[kColumns][2] = {};
    for (int p = 0; p < k; p++) {
        Vector low, high;
        memcpy(&low, a + (size_t)p * kRows, sizeof low);
        memcpy(&high, a + (size_t)p * kRows + kRows / 2, sizeof high);
        for (int column = 0; column < kColumns; column++) {
            float factor = b[p * kColumns + column];
            sum[column][0] += low * factor;
            sum[column][1] += high * factor;
        }
    }
    memcpy(result, sum, sizeof sum);
}

static void multiply(const Gemm& gemm, const float* a, const float* b, float* c) {
    int m = gemm.m, n = gemm.n, k = gemm.k;
    int row_tiles = (m + kRows - 1) / kRows;
    std::vector<float> packed((size_t)row_tiles * k * kRows);
    for (int t = 0; t < row_tiles; t++) {
        for (int p = 0; p < k; p++) {
            float* to = &packed[((size_t)t * k + p) * kRows];
            for (int i = 0; i < kRows; i++) {
                size_t row = (size_t)t * kRows + i;
                to[i] = row < (size_t)m ? gemm.transpose_a ? a[p + row * gemm.lda] : a[row + (size_t)p * gemm.lda] : 0.0f;
            }
        }
    }
    std::vector<float> columns((size_t)k * kColumns);
    for (int j = 0; j < n; j += kColumns) {
        for (int p = 0; p < k; p++) {
            for (int i = 0; i < kColumns; i++) {
                size_t column = j + i;
                columns[(size_t)p * kColumns + i] =
                    column < (size_t)n ? gemm.transpose_b ? b[column + (size_t)p * gemm.ldb] : b[p + column * gemm.ldb] : 0.0f;
            }
        }
        for (int t = 0; t < row_tiles; t++) {
            float result[kColumns][kRows];
            tile(k, packed.data() + (size_t)t * k * kRows, columns.data(), &result[0][0]);
            for (int i = 0; i < kColumns && j + i < n; i++) {
                float* to = c + (size_t)(j + i) * gemm.ldc + (size_t)t * kRows;
                for (int row = 0; row < kRows && t * kRows + row < m; row++) {
                    // A beta of 0 means that C is not read: it may hold NaNs.
                    float before = gemm.beta == 0.0f ? 0.0f : gemm.beta * to[row];
                    to[row] = gemm.alpha * result[i][row] + before;
                }
            }
        }
    }
}

// Bytes from the first element of the first matrix to behind the last one of the last; where a stride is negative, none is right.
static size_t extent(int rows, int columns, int leading, long long stride, int batch) {
    if (rows == 0 || columns == 0) return 0;
    return 4 * ((size_t)(columns - 1) * leading + rows + (size_t)(batch - 1) * stride);
}

using Inside = int (*)(unsigned long long, size_t);

static bool reaches(Inside inside, const char* name, const float* address, size_t bytes) {
    if (!bytes || inside((unsigned long long)address, bytes)) return true;
    emuSay("cuBLAS: matrix %s, %zu bytes from %p, is not all in one allocation", name, bytes, (const void*)address);
    return false;
}

static bool matrices_valid(Inside inside, const Gemm& g) {
    return reaches(inside, "A", g.a, extent(g.transpose_a ? g.k : g.m, g.transpose_a ? g.m : g.k, g.lda, g.stride_a, g.batch)) &&
           reaches(inside, "B", g.b, extent(g.transpose_b ? g.n : g.k, g.transpose_b ? g.k : g.n, g.ldb, g.stride_b, g.batch)) &&
           reaches(inside, "C", g.c, extent(g.m, g.n, g.ldc, g.stride_c, g.batch));
}

static int work(void* job, EmuProgress*) {
    const Gemm& gemm = *(const Gemm*)job;
    if (!matrices_valid(emuInsideLocked, gemm)) return 719;  // freed since: CUDA_ERROR_LAUNCH_FAILED
    for (int i = 0; i < gemm.batch; i++) {
        float* c = gemm.c + i * gemm.stride_c;
        multiply(gemm, gemm.a + i * gemm.stride_a, gemm.b + i * gemm.stride_b, c);
        for (int column = 0; column < gemm.n; column++) emuWritten((unsigned long long)(c + (size_t)column * gemm.ldc), sizeof(float) * gemm.m);
    }
    return kDone;
}

static int most(int a, int b) { return a > b ? a : b; }

static int enqueue(void* handle, Gemm gemm) {
    if (!handle) return kNotInitialized;
    if (((Handle*)handle)->pointer_mode != 0) {
        emuSay("cuBLAS: alpha and beta on the device are not supported");
        return kNotSupported;
    }
    int rows_a = gemm.transpose_a ? gemm.k : gemm.m, rows_b = gemm.transpose_b ? gemm.n : gemm.k;
    bool valid = gemm.m >= 0 && gemm.n >= 0 && gemm.k >= 0 && gemm.batch >= 0 && gemm.lda >= most(1, rows_a) &&
                 gemm.ldb >= most(1, rows_b) && gemm.ldc >= most(1, gemm.m) && gemm.stride_a >= 0 && gemm.stride_b >= 0 &&
                 gemm.stride_c >= 0;
    if (!valid) return kInvalidValue;
    if (gemm.m == 0 || gemm.n == 0 || gemm.batch == 0) return kSuccess;
    // The batch's results are written in no order.
    if (gemm.batch > 1 && (size_t)gemm.stride_c * 4 < extent(gemm.m, gemm.n, gemm.ldc, 0, 1)) {
        emuSay("cuBLAS: the C matrices of a batch overlap");
        return kInvalidValue;
    }
    if (!matrices_valid(emuInside, gemm)) return kExecutionFailed;
    return emuEnqueue(((Handle*)handle)->stream, work, new Gemm(gemm), [](void* job) { delete (Gemm*)job; }) ? kExecutionFailed : kSuccess;
}

EXPORT int cublasCreate_v2(void** handle) {
    if (!emuHasContext()) return kNotInitialized;
    *handle = new Handle;
    return kSuccess;
}
EXPORT int cublasDestroy_v2(void* handle) {
    delete (Handle*)handle;
    return kSuccess;
}
EXPORT int cublasGetVersion_v2(void*, int* version) {
    *version = 120800;
    return kSuccess;
}
// MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL
EXPORT int cublasGetProperty(int which, int* value) {
    static const int parts[] = {12, 8, 0};
    if (which < 0 || which > 2) return kInvalidValue;
    *value = parts[which];
    return kSuccess;
}
EXPORT int cublasSetStream_v2(void* handle, void* stream) {
    ((Handle*)handle)->stream = stream;
    return kSuccess;
}
EXPORT int cublasGetStream_v2(void* handle, void** stream) {
    *stream = ((Handle*)handle)->stream;
    return kSuccess;
}
EXPORT int cublasSetMathMode(void* handle, int mode) {
    // DEFAULT, TENSOR_OP (deprecated), PEDANTIC, TF32_TENSOR_OP, and the flag that forbids reduced precision in sums
    int base = mode & ~16;
    if (base < 0 || base > 3) return kInvalidValue;
    ((Handle*)handle)->math_mode = mode;
    return kSuccess;
}
EXPORT int cublasGetMathMode(void* handle, int* mode) {
    *mode = ((Handle*)handle)->math_mode;
    return kSuccess;
}
EXPORT int cublasSetPointerMode_v2(void* handle, int mode) {
    ((Handle*)handle)->pointer_mode = mode;
    return kSuccess;
}
EXPORT int cublasSetAtomicsMode(void*, int mode) { return mode == 0 || mode == 1 ? kSuccess : kInvalidValue; }
EXPORT int cublasSetWorkspace_v2(void*, void* workspace, size_t bytes) {
    return bytes == 0 || emuInside((unsigned long long)workspace, bytes) ? kSuccess : kInvalidValue;
}
EXPORT const char* cublasGetStatusString(int status) {
    switch (status) {
        case kSuccess:
            return "CUBLAS_STATUS_SUCCESS";
        case kNotInitialized:
            return "CUBLAS_STATUS_NOT_INITIALIZED";
        case kInvalidValue:
            return "CUBLAS_STATUS_INVALID_VALUE";
        case kExecutionFailed:
            return "CUBLAS_STATUS_EXECUTION_FAILED";
        case kNotSupported:
            return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
    return "CUBLAS_STATUS unknown";
}
EXPORT const char* cublasGetStatusName(int status) { return cublasGetStatusString(status); }

// CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C
static bool known(int operation) { return operation >= 0 && operation <= 2; }

EXPORT int cublasSgemmStridedBatched(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const float* a, int lda,
                                     long long stride_a, const float* b, int ldb, long long stride_b, const float* beta, float* c, int ldc,
                                     long long stride_c, int batch) {
    if (!known(ta) || !known(tb)) return kInvalidValue;
    return enqueue(handle, {ta != 0, tb != 0, m, n, k, *alpha, *beta, a, b, c, lda, ldb, ldc, batch, stride_a, stride_b, stride_c});
}
EXPORT int cublasSgemm_v2(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const float* a, int lda, const float* b,
                          int ldb, const float* beta, float* c, int ldc) {
    return cublasSgemmStridedBatched(handle, ta, tb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);
}

// CUDA_R_32F matrices; CUBLAS_COMPUTE_32F, _PEDANTIC and _FAST_TF32.
static bool single(int a, int b, int c, int compute) {
    if (a == 0 && b == 0 && c == 0 && (compute == 68 || compute == 69 || compute == 77)) return true;
    emuSay("cuBLAS: types %d %d %d computed as %d are not supported, only fp32 as fp32 or TF32", a, b, c, compute);
    return false;
}
EXPORT int cublasGemmStridedBatchedEx(void* handle, int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int type_a,
                                      int lda, long long stride_a, const void* b, int type_b, int ldb, long long stride_b, const void* beta,
                                      void* c, int type_c, int ldc, long long stride_c, int batch, int compute, int) {
    if (!single(type_a, type_b, type_c, compute)) return kNotSupported;
    return cublasSgemmStridedBatched(handle, ta, tb, m, n, k, (const float*)alpha, (const float*)a, lda, stride_a, (const float*)b, ldb,
                                     stride_b, (const float*)beta, (float*)c, ldc, stride_c, batch);
}
EXPORT int cublasGemmEx(void* handle, int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int type_a, int lda,
                        const void* b, int type_b, int ldb, const void* beta, void* c, int type_c, int ldc, int compute, int algorithm) {
    return cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, alpha, a, type_a, lda, 0, b, type_b, ldb, 0, beta, c, type_c, ldc, 0, 1,
                                      compute, algorithm);
}

#define REFUSED(name)                                          \
    EXPORT int name() {                                        \
        emuSay(#name " is not supported (tests/cuda-double)"); \
        return kNotSupported;                                  \
    }
REFUSED(cublasSgemmBatched)
REFUSED(cublasGemmBatchedEx)
REFUSED(cublasSgemv_v2)
REFUSED(cublasSgemvStridedBatched)
REFUSED(cublasSaxpy_v2)
REFUSED(cublasSscal_v2)
REFUSED(cublasSdot_v2)
REFUSED(cublasSnrm2_v2)
REFUSED(cublasSasum_v2)
REFUSED(cublasHgemm)
REFUSED(cublasDgemm_v2)
