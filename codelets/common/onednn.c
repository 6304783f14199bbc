/* oneDNN 2 and 3 behind one interface (onednn.h). */
/* oneDNN 2 and 3 behind one face (onednn.h). */
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
		                                                      c->padding, attr);
	case SLP_DNN_DATA:
		return dnnl_convolution_backward_data_primitive_desc_create(out, engine, c->algorithm, c->x, c->w, c->y,
		                                                            c->strides, c->dilates, c->padding,
		                                                            c->padding, forward, attr);
	default:
		return dnnl_convolution_backward_weights_primitive_desc_create(out, engine, c->algorithm, c->x, c->w, b,
		                                                               c->y, c->strides, c->dilates, c->padding,
		                                                               c->padding, forward, attr);
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

#else

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
		                                               &c->y, c->strides, c->dilates, c->padding, c->padding);
	else if (pass == SLP_DNN_DATA)
		s = dnnl_dilated_convolution_backward_data_desc_init(&d, c->algorithm, &c->x, &c->w, &c->y, c->strides,
		                                                     c->dilates, c->padding, c->padding);
	else
		s = dnnl_dilated_convolution_backward_weights_desc_init(&d, c->algorithm, &c->x, &c->w, b, &c->y,
		                                                        c->strides, c->dilates, c->padding, c->padding);
	return s == dnnl_success ? dnnl_primitive_desc_create(out, &d, attr, engine, forward) : s;
}

#endif

static bool set_after(dnnl_primitive_attr_t attr, const struct slp_dnn_after *after)
{
	dnnl_post_ops_t ops;
	if (dnnl_post_ops_create(&ops) != dnnl_success) return false;
	bool ok = !after->sum || append_sum(ops);
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
	s = set_after(attr, &conv->after) ? describe(out, engine, conv, pass, forward, attr) : dnnl_out_of_memory;
	dnnl_primitive_attr_destroy(attr);
	return s;
}

#endif
