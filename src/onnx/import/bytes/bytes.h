/* Operators on integers of eight bits, as bytes.c computes them.  Each function returns false where it cannot, without an
 * error; after one it returns true, and the call has failed. */
#ifndef SLP_ONNX_BYTES_H
#define SLP_ONNX_BYTES_H

#include "onnx/model/call.h"

/* type: of the result, in the format. */
bool slp_onnx_quantize_bytes(struct slp_onnx_call *c, int type);
bool slp_onnx_dequantize_bytes(struct slp_onnx_call *c);
bool slp_onnx_conv_bytes(struct slp_onnx_call *c); /* QLinearConv */
/* The sums of ConvInteger, or of QLinearConv; the places of zero points and weights among the inputs. */
bool slp_onnx_conv_sums(struct slp_onnx_call *c, int x_zero, int w, int w_zero, struct slp_onnx_value *y);
bool slp_onnx_matmul_bytes(struct slp_onnx_call *c); /* QLinearMatMul; a real result without its scale */
bool slp_onnx_gemm_bytes(struct slp_onnx_call *c);
bool slp_onnx_matmul_sums(struct slp_onnx_call *c); /* MatMulInteger */
bool slp_onnx_max_pool_bytes(struct slp_onnx_call *c);
bool slp_onnx_qlinear_bytes(struct slp_onnx_call *c); /* the others of QLinear… */

#endif
