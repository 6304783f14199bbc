/* cuBLAS and cuDNN, as kernels call them: slp_blas.cublasSgemm(…).  They are loaded with the first handle
 * (src/runtime/device/gpu.c): loading them takes longer than the rest of the start, and machines without a GPU may lack
 * them. */
#ifndef SLP_CUDA_LIBS_H
#define SLP_CUDA_LIBS_H

#include <stdbool.h>
#include <stddef.h>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>

#define SLP_CUBLAS_FUNCTIONS(X)                                                                                        \
	X(cublasCreate)                                                                                                \
	X(cublasDestroy)                                                                                               \
	X(cublasDgemm)                                                                                                 \
	X(cublasDgemmStridedBatched)                                                                                   \
	X(cublasGetStatusString)                                                                                       \
	X(cublasGetVersion)                                                                                            \
	X(cublasSetMathMode)                                                                                           \
	X(cublasSetStream)                                                                                             \
	X(cublasSetWorkspace)                                                                                          \
	X(cublasSgemm)                                                                                                 \
	X(cublasSgemmStridedBatched)

/* Of half types.  Their types are said, since cublas_v2.h has a second function of each name for C++. */
#define SLP_CUBLAS_EX_FUNCTIONS(X)                                                                                     \
	X(cublasGemmEx, cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *,             \
	  const void *, cudaDataType, int, const void *, cudaDataType, int, const void *, void *, cudaDataType, int,   \
	  cublasComputeType_t, cublasGemmAlgo_t)                                                                       \
	X(cublasGemmStridedBatchedEx, cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,             \
	  const void *, const void *, cudaDataType, int, long long, const void *, cudaDataType, int, long long,        \
	  const void *, void *, cudaDataType, int, long long, int, cublasComputeType_t, cublasGemmAlgo_t)

/* Of cublasLt, which cuBLAS is made of; NULL where it is not there. */
#define SLP_CUBLAS_LT_FUNCTIONS(X)                                                                                     \
	X(cublasLtMatmul)                                                                                              \
	X(cublasLtMatmulAlgoGetHeuristic)                                                                              \
	X(cublasLtMatmulDescCreate)                                                                                    \
	X(cublasLtMatmulDescDestroy)                                                                                   \
	X(cublasLtMatmulDescSetAttribute)                                                                              \
	X(cublasLtMatmulPreferenceCreate)                                                                              \
	X(cublasLtMatmulPreferenceDestroy)                                                                             \
	X(cublasLtMatmulPreferenceSetAttribute)                                                                        \
	X(cublasLtMatrixLayoutCreate)                                                                                  \
	X(cublasLtMatrixLayoutDestroy)                                                                                 \
	X(cublasLtMatrixLayoutSetAttribute)

#define SLP_CUDNN_FUNCTIONS(X)                                                                                         \
	X(cudnnConvolutionBackwardData)                                                                                \
	X(cudnnConvolutionBackwardFilter)                                                                              \
	X(cudnnConvolutionForward)                                                                                     \
	X(cudnnCreate)                                                                                                 \
	X(cudnnCreateConvolutionDescriptor)                                                                            \
	X(cudnnCreateFilterDescriptor)                                                                                 \
	X(cudnnCreateTensorDescriptor)                                                                                 \
	X(cudnnDestroy)                                                                                                \
	X(cudnnDestroyConvolutionDescriptor)                                                                           \
	X(cudnnDestroyFilterDescriptor)                                                                                \
	X(cudnnDestroyTensorDescriptor)                                                                                \
	X(cudnnGetConvolutionBackwardDataAlgorithm_v7)                                                                 \
	X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                                                               \
	X(cudnnGetConvolutionForwardAlgorithm_v7)                                                                      \
	X(cudnnGetErrorString)                                                                                         \
	X(cudnnGetVersion)                                                                                             \
	X(cudnnSetConvolution2dDescriptor)                                                                             \
	X(cudnnSetConvolutionGroupCount)                                                                               \
	X(cudnnSetConvolutionMathType)                                                                                 \
	X(cudnnSetFilter4dDescriptor)                                                                                  \
	X(cudnnSetStream)                                                                                              \
	X(cudnnSetTensor4dDescriptor)

/* Its graph API; NULL where the library has none. */
#define SLP_CUDNN_GRAPH_FUNCTIONS(X)                                                                                   \
	X(cudnnBackendCreateDescriptor)                                                                                \
	X(cudnnBackendDestroyDescriptor)                                                                               \
	X(cudnnBackendExecute)                                                                                         \
	X(cudnnBackendFinalize)                                                                                        \
	X(cudnnBackendGetAttribute)                                                                                    \
	X(cudnnBackendSetAttribute)

#ifdef __cplusplus
#define X(f) decltype(&::f) f;
#else
#define X(f) __typeof__(&f) f;
#endif
extern struct slp_cublas_functions {
	SLP_CUBLAS_FUNCTIONS(X)
#define X_OF(f, ...) cublasStatus_t (*f)(__VA_ARGS__);
	SLP_CUBLAS_EX_FUNCTIONS(X_OF)
#undef X_OF
} slp_blas;
extern struct slp_cublas_lt_functions {
	SLP_CUBLAS_LT_FUNCTIONS(X)
} slp_blas_lt;
extern struct slp_cudnn_functions {
	SLP_CUDNN_FUNCTIONS(X)
} slp_dnn;
extern struct slp_cudnn_graph_functions {
	SLP_CUDNN_GRAPH_FUNCTIONS(X)
} slp_dnn_graph;
#undef X

/* Load them, if nothing has yet.  NULL, or why they cannot be used (src/runtime/device/gpu.c). */
#ifdef __cplusplus
extern "C" {
#endif
const char *slp_cublas_load(void);
const char *slp_cudnn_load(void);

/* Whether convolutions, and products, may round to TF32 (sl_config.tf32). */
bool slp_tf32_convolutions(void);
bool slp_tf32_products(void);
/* The workspace of the calling worker's cuBLAS; NULL: cuBLAS's own, or cuBLAS has not been used yet. */
void *slp_cublas_work(size_t *bytes);
int slp_cublas_version(void);
/* Whether the calling worker may use cuDNN's graph API: it is there, and SL_CUDNN_GRAPH is not 0. */
bool slp_cudnn_graph(void);
#ifdef __cplusplus
}
#endif

#endif
