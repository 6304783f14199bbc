/* Functions that free the state that CUDA kernels keep for a worker: descriptors name them (.forget of struct
 * sl_op). */
#ifndef SLP_FORGET_H
#define SLP_FORGET_H

#ifdef __cplusplus
extern "C" {
#endif

void slp_cublas_forget(void);    /* algorithms of products (gemm_lt.cu) */
void slp_cudnn_forget(void);     /* plans of convolutions (conv2d_graph.cu) */
void slp_attention_forget(void); /* plans of attention (attention_graph.cu) */

#ifdef __cplusplus
}
#endif

#endif
