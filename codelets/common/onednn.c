/* oneDNN 2 and 3 behind one interface (onednn.h). */
#include "config.h"

#ifdef HAVE_ONEDNN
#include "onednn.h"

static dnnl_prop_kind_t forward_kind(const struct slp_dnn_conv *c)
{
	return c->inference ? dnnl_forward_inference : dnnl_forward_training;
}

#if DNNL_VERSION_MAJOR >= 3

bool slp_dnn_md_make(slp_dnn_md *md, int ndim, const dnnl_dims_t dims, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
	return dnnl_memory_desc_create_with_tag(md, ndim, dims, type, tag) == dnnl_success;
}

bool slp_dnn_md_matrix(slp_dnn_md *md, dnnl_data_type_t type, int64_t rows, int64_t columns, int64_t down,
                       int64_t along)
{
	dnnl_dims_t dims = {rows, columns}, strides = {down, along};
	return dnnl_memory_desc_create_with_strides(md, 2, dims, type, strides) == dnnl_success;
}

dnnl_status_t slp_dnn_matmul_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const slp_dnn_md *a,
                                      const slp_dnn_md *b, const slp_dnn_md *c)
{
	return dnnl_matmul_primitive_desc_create(out, engine, *a, *b, NULL, *c, NULL);
}

void slp_dnn_md_free(slp_dnn_md *md)
{
	if (*md) dnnl_memory_desc_destroy(*md);
	*md = NULL;
}

slp_dnn_ref slp_dnn_md_ref(const slp_dnn_md *md)
{
	return *md;
}

static dnnl_status_t describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const struct slp_dnn_conv *c,
                              enum slp_dnn_pass pass, const_dnnl_primitive_desc_t forward,
                              const_dnnl_primitive_attr_t attr)
{
	slp_dnn_ref b = c->bias ? c->b : NULL;
	switch (pass) {
	case SLP_DNN_FORWARD:
		return dnnl_convolution_forward_primitive_desc_create(out, engine, forward_kind(c), c->algorithm, c->x,
		                                                      c->w, b, c->y, c->strides, c->dilates, c->padding,
		                                                      c->padding_after, attr);
	case SLP_DNN_DATA:
		return dnnl_convolution_backward_data_primitive_desc_create(out, engine, c->algorithm, c->x, c->w, c->y,
		                                                            c->strides, c->dilates, c->padding,
		                                                            c->padding_after, forward, attr);
	default:
		return dnnl_convolution_backward_weights_primitive_desc_create(out, engine, c->algorithm, c->x, c->w, b,
		                                                               c->y, c->strides, c->dilates, c->padding,
		                                                               c->padding_after, forward, attr);
	}
}

static bool append_sum(dnnl_post_ops_t ops)
{
	return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef) == dnnl_success;
}

static bool append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t function, float alpha, float beta)
{
	return dnnl_post_ops_append_eltwise(ops, function, alpha, beta) == dnnl_success;
}

static bool make_scales_md(slp_dnn_md *md, const struct slp_dnn_quant *q)
{
	return slp_dnn_md_make(md, 4, (dnnl_dims_t){1, q->n, 1, 1}, dnnl_f32, dnnl_nchw);
}

/* Its own scales come before the bias. */
static bool append_scales(dnnl_post_ops_t ops, const struct slp_dnn_quant *q)
{
	slp_dnn_md md;
	if (!q->n) return true;
	if (!make_scales_md(&md, q)) return false;
	bool ok = dnnl_post_ops_append_binary(ops, dnnl_binary_mul, md) == dnnl_success;
	slp_dnn_md_free(&md);
	return ok;
}

static bool set_quant(dnnl_primitive_attr_t attr, const struct slp_dnn_quant *q)
{
	dnnl_status_t s = dnnl_success;
	if (q->x_zero) s = dnnl_primitive_attr_set_zero_points_mask(attr, DNNL_ARG_SRC, 0);
	if (s == dnnl_success && q->y_zero) s = dnnl_primitive_attr_set_zero_points_mask(attr, DNNL_ARG_DST, 0);
	return s == dnnl_success;
}

static bool add_operand(slp_dnn_md *md, int name, void *data, dnnl_engine_t engine, dnnl_exec_arg_t *operands,
                        int *count)
{
	dnnl_memory_t memory;
	bool ok = dnnl_memory_create(&memory, *md, engine, data) == dnnl_success;
	slp_dnn_md_free(md);
	if (ok) operands[(*count)++] = (dnnl_exec_arg_t){name, memory};
	return ok;
}

static bool add_zero(int32_t *zero, int name, dnnl_engine_t engine, dnnl_exec_arg_t *operands, int *count)
{
	slp_dnn_md md;
	if (!*zero) return true;
	return slp_dnn_md_make(&md, 1, (dnnl_dims_t){1}, dnnl_s32, dnnl_x) &&
	       add_operand(&md, DNNL_ARG_ATTR_ZERO_POINTS | name, zero, engine, operands, count);
}

bool slp_dnn_quant_operands(struct slp_dnn_quant *quant, dnnl_engine_t engine,
                            dnnl_exec_arg_t operands[SLP_DNN_QUANT_OPERANDS], int *count)
{
	slp_dnn_md md;
	*count = 0;
	return (!quant->n ||
	        (make_scales_md(&md, quant) && add_operand(&md, DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1,
	                                                   quant->scales, engine, operands, count))) &&
	       add_zero(&quant->x_zero, DNNL_ARG_SRC, engine, operands, count) &&
	       add_zero(&quant->y_zero, DNNL_ARG_DST, engine, operands, count);
}

#else

static bool append_scales(dnnl_post_ops_t ops, const struct slp_dnn_quant *q)
{
	(void)ops;
	(void)q;
	return true;
}

static bool set_quant(dnnl_primitive_attr_t attr, const struct slp_dnn_quant *q)
{
	dnnl_status_t s = dnnl_success;
	if (q->n) s = dnnl_primitive_attr_set_output_scales(attr, q->n, 2, q->scales);
	if (s == dnnl_success && q->x_zero)
		s = dnnl_primitive_attr_set_zero_points(attr, DNNL_ARG_SRC, 1, 0, &q->x_zero);
	if (s == dnnl_success && q->y_zero)
		s = dnnl_primitive_attr_set_zero_points(attr, DNNL_ARG_DST, 1, 0, &q->y_zero);
	return s == dnnl_success;
}

bool slp_dnn_quant_operands(struct slp_dnn_quant *quant, dnnl_engine_t engine,
                            dnnl_exec_arg_t operands[SLP_DNN_QUANT_OPERANDS], int *count)
{
	(void)quant;
	(void)engine;
	(void)operands;
	*count = 0;
	return true;
}

static bool append_sum(dnnl_post_ops_t ops)
{
	return dnnl_post_ops_append_sum(ops, 1) == dnnl_success;
}

static bool append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t function, float alpha, float beta)
{
	return dnnl_post_ops_append_eltwise(ops, 1, function, alpha, beta) == dnnl_success;
}

bool slp_dnn_md_make(slp_dnn_md *md, int ndim, const dnnl_dims_t dims, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
	return dnnl_memory_desc_init_by_tag(md, ndim, dims, type, tag) == dnnl_success;
}

bool slp_dnn_md_matrix(slp_dnn_md *md, dnnl_data_type_t type, int64_t rows, int64_t columns, int64_t down,
                       int64_t along)
{
	dnnl_dims_t dims = {rows, columns}, strides = {down, along};
	return dnnl_memory_desc_init_by_strides(md, 2, dims, type, strides) == dnnl_success;
}

dnnl_status_t slp_dnn_matmul_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const slp_dnn_md *a,
                                      const slp_dnn_md *b, const slp_dnn_md *c)
{
	dnnl_matmul_desc_t d;
	dnnl_status_t s = dnnl_matmul_desc_init(&d, a, b, NULL, c);
	return s == dnnl_success ? dnnl_primitive_desc_create(out, &d, NULL, engine, NULL) : s;
}

void slp_dnn_md_free(slp_dnn_md *md)
{
	(void)md;
}

slp_dnn_ref slp_dnn_md_ref(const slp_dnn_md *md)
{
	return md;
}

static dnnl_status_t describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const struct slp_dnn_conv *c,
                              enum slp_dnn_pass pass, const_dnnl_primitive_desc_t forward,
                              const_dnnl_primitive_attr_t attr)
{
	dnnl_convolution_desc_t d;
	const dnnl_memory_desc_t *b = c->bias ? &c->b : NULL;
	dnnl_status_t s;
	if (pass == SLP_DNN_FORWARD)
		s = dnnl_dilated_convolution_forward_desc_init(&d, forward_kind(c), c->algorithm, &c->x, &c->w, b,
		                                               &c->y, c->strides, c->dilates, c->padding,
		                                               c->padding_after);
	else if (pass == SLP_DNN_DATA)
		s = dnnl_dilated_convolution_backward_data_desc_init(&d, c->algorithm, &c->x, &c->w, &c->y, c->strides,
		                                                     c->dilates, c->padding, c->padding_after);
	else
		s = dnnl_dilated_convolution_backward_weights_desc_init(
		        &d, c->algorithm, &c->x, &c->w, b, &c->y, c->strides, c->dilates, c->padding, c->padding_after);
	return s == dnnl_success ? dnnl_primitive_desc_create(out, &d, attr, engine, forward) : s;
}

#endif

static bool set_after(dnnl_primitive_attr_t attr, const struct slp_dnn_conv *conv)
{
	const struct slp_dnn_after *after = &conv->after;
	dnnl_post_ops_t ops;
	if (conv->quant && !set_quant(attr, conv->quant)) return false;
	if (dnnl_post_ops_create(&ops) != dnnl_success) return false;
	bool ok = !conv->quant || append_scales(ops, conv->quant);
	if (after->sum) ok = ok && append_sum(ops);
	if (after->relu) ok = ok && append_eltwise(ops, dnnl_eltwise_relu, 0, 0);
	if (after->bounded) ok = ok && append_eltwise(ops, dnnl_eltwise_clip, after->low, after->high);
	ok = ok && dnnl_primitive_attr_set_post_ops(attr, ops) == dnnl_success;
	dnnl_post_ops_destroy(ops);
	return ok;
}

dnnl_status_t slp_dnn_conv_describe(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const struct slp_dnn_conv *conv,
                                    enum slp_dnn_pass pass, const_dnnl_primitive_desc_t forward)
{
	dnnl_primitive_attr_t attr;
	dnnl_status_t s = dnnl_primitive_attr_create(&attr);
	if (s != dnnl_success) return s;
	dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
	s = set_after(attr, conv) ? describe(out, engine, conv, pass, forward, attr) : dnnl_out_of_memory;
	dnnl_primitive_attr_destroy(attr);
	return s;
}

#endif
