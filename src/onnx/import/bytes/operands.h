/* Operands and results of operators on integers of eight bits: how they are held, their scales and zero points. */
#ifndef SLP_ONNX_BYTES_OPERANDS_H
#define SLP_ONNX_BYTES_OPERANDS_H

#include "onnx/import/bytes/bytes.h"

enum { SLP_ONNX_UINT8 = 2, SLP_ONNX_INT8 = 3 }; /* numbers of types in the format */

/* A quantised operand with a scale and a zero point. */
struct slp_onnx_operand {
	struct slp_onnx_value v;
	double scale;
	int zero;
};

/* The type, scale and zero point of a result. */
struct slp_onnx_byte_result {
	int type, zero;
	double scale;
};

/* Whether a value has elements of eight bits. */
bool slp_onnx_is_byte(const struct slp_onnx_value *v);
/* What the held elements of a type are larger by. */
int slp_onnx_shift_of(int type);
/* As uint8. */
struct slp_onnx_value slp_onnx_byte_value(struct slp_onnx_call *c, struct slp_onnx_value v);
/* Places of the scale, -1: none, and of the zero point; false: it is no operand of bytes. */
bool slp_onnx_read_operand(struct slp_onnx_call *c, int i, int scale, int zero, struct slp_onnx_operand *o);
/* The same of a result; false: it has none of bytes. */
bool slp_onnx_read_result(struct slp_onnx_call *c, int scale, int zero, struct slp_onnx_byte_result *r);
/* The result of the call, as bytes are held. */
void slp_onnx_give_bytes(struct slp_onnx_call *c, sl_tensor *t, int type, bool last);
/* Room for n numbers; NULL after an error. */
struct slp_onnx_known *slp_onnx_known_floats(struct slp_onnx_call *c, int64_t n);
/* One number as a tensor. */
sl_tensor *slp_onnx_one_float(struct slp_onnx_call *c, double x);
/* Scales of a product in steps of its result, one for each channel of the weights; NULL: they are not known. */
sl_tensor *slp_onnx_step_of(struct slp_onnx_call *c, double a, int weights, double y, int64_t n);
/* The zero point that all weights have, as uint8; false: it is not known, or not the same. */
bool slp_onnx_weight_zero(const struct slp_onnx_call *c, int i, int type, int *zero);
/* A bias, in steps of the product, as int32: numbers of the file, rounded if they are floats, or zeros; NULL: it is not
 * known. */
sl_tensor *slp_onnx_bias_of(struct slp_onnx_call *c, int i, double a, int weights, int64_t n);
/* A scale of the file, above 0. */
bool slp_onnx_scale_of(const struct slp_onnx_call *c, int i, double *scale);
/* A zero point that is missing is 0. */
bool slp_onnx_zero_of(const struct slp_onnx_call *c, int i, double *zero);
/* Zero points as floats, of bytes as uint8. */
sl_tensor *slp_onnx_float_zeros(struct slp_onnx_call *c, int i, int type, int64_t n);
/* (n, channels, height, width), however the image is held. */
sl_shape slp_onnx_image_shape(struct slp_onnx_value x);
/* An image with its channels moved to the end, or back. */
struct slp_onnx_value slp_onnx_channels_moved(struct slp_onnx_call *c, struct slp_onnx_value v, bool last);

#endif
