/* Convolution of quantised images by oneDNN. */
#include "quant.h"

#ifdef HAVE_ONEDNN
#include "qdnn.h"
#endif

#ifdef HAVE_ONEDNN
#include <string.h>

#include "common/workspace.h"

enum field {
	KIND,
	N,
	IC,
	IH,
	IW,
	OC,
	OH,
	OW,
	KH,
	KW,
	SH,
	SW,
	TOP,
	LEFT,
	BOTTOM,
	RIGHT,
	DH,
	DW,
	GROUPS,
	X0,
	Y0,
	OUT,
	BIAS,
	THREADS
};

static void make_key(struct slp_qdnn_key *key, const struct slp_qconv_args *a, bool bias, int threads)
{
	const struct slp_qconv *c = &a->c;
	*key = (struct slp_qdnn_key){{[KIND] = 1,
	                              [N] = c->n,
	                              [IC] = c->ic,
	                              [IH] = c->ih,
	                              [IW] = c->iw,
	                              [OC] = c->oc,
	                              [OH] = c->oh,
	                              [OW] = c->ow,
	                              [KH] = c->kh,
	                              [KW] = c->kw,
	                              [SH] = c->sh,
	                              [SW] = c->sw,
	                              [TOP] = c->top,
	                              [LEFT] = c->left,
	                              [BOTTOM] = c->bottom,
	                              [RIGHT] = c->right,
	                              [DH] = c->dh,
	                              [DW] = c->dw,
	                              [GROUPS] = c->groups,
	                              [X0] = a->attrs->x_zero,
	                              [Y0] = a->attrs->y_zero,
	                              [OUT] = a->attrs->out,
	                              [BIAS] = bias,
	                              [THREADS] = threads}};
}

static bool make_operands(const int64_t *v, struct slp_dnn_conv *d, slp_dnn_md *plain)
{
	static const dnnl_data_type_t types[] = {dnnl_u8, dnnl_s32, dnnl_f32};
	bool grouped = v[GROUPS] > 1;
	dnnl_dims_t x = {v[N], v[IC], v[IH], v[IW]}, y = {v[N], v[OC], v[OH], v[OW]}, b = {v[OC]};
	dnnl_dims_t w = {v[OC], v[IC], v[KH], v[KW]};
	dnnl_dims_t wg = {v[GROUPS], v[OC] / v[GROUPS], v[IC] / v[GROUPS], v[KH], v[KW]};
	const dnnl_dims_t *dims = grouped ? &wg : &w;
	return slp_dnn_md_make(&d->x, 4, x, dnnl_u8, dnnl_nhwc) &&
	       slp_dnn_md_make(&d->w, 4 + grouped, *dims, dnnl_s8, dnnl_format_tag_any) &&
	       slp_dnn_md_make(plain, 4 + grouped, *dims, dnnl_s8, grouped ? dnnl_goihw : dnnl_oihw) &&
	       slp_dnn_md_make(&d->b, 1, b, dnnl_s32, dnnl_x) && slp_dnn_md_make(&d->y, 4, y, types[v[OUT]], dnnl_nhwc);
}

/* Whether it is compiled for the processor: oneDNN's plain loops take very long. */
static bool is_fast(const_dnnl_primitive_desc_t pd)
{
	const char *how = "";
	dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &how);
	return strncmp(how, "ref", 3) != 0 && strncmp(how, "simple", 6) != 0;
}

static void free_operands(struct slp_dnn_conv *d)
{
	slp_dnn_md_free(&d->x);
	slp_dnn_md_free(&d->w);
	slp_dnn_md_free(&d->b);
	slp_dnn_md_free(&d->y);
}

static bool describe(const struct slp_qdnn_key *key, const struct slp_dnn_quant *quant, dnnl_engine_t engine,
                     dnnl_primitive_desc_t *pd, slp_dnn_md *plain)
{
	const int64_t *v = key->v;
	struct slp_dnn_conv o = {.algorithm = dnnl_convolution_direct,
	                         .bias = v[BIAS] != 0,
	                         .inference = true,
	                         .strides = {v[SH], v[SW]},
	                         .dilates = {v[DH] - 1, v[DW] - 1},
	                         .padding = {v[TOP], v[LEFT]},
	                         .padding_after = {v[BOTTOM], v[RIGHT]},
	                         .quant = quant};
	bool ok = make_operands(v, &o, plain) &&
	          slp_dnn_conv_describe(pd, engine, &o, SLP_DNN_FORWARD, NULL) == dnnl_success;
	free_operands(&o);
	if (ok && is_fast(*pd)) return true;
	if (ok) dnnl_primitive_desc_destroy(*pd);
	*pd = NULL;
	slp_dnn_md_free(plain);
	return false;
}

static struct slp_dnn_quant quant_of(const struct slp_qconv_args *a, float *scales)
{
	bool scaled = a->attrs->out != SLP_Q_INT32; /* sums have no scale */
	return (struct slp_dnn_quant){.scales = scales,
	                              .n = scaled ? a->c.oc : 0,
	                              .x_zero = (int32_t)a->attrs->x_zero,
	                              .y_zero = (int32_t)a->attrs->y_zero};
}

static int8_t *signed_weights(const struct slp_qconv_args *a)
{
	int64_t n = a->c.oc * a->c.each_in * a->c.kh * a->c.kw;
	int8_t *w = slp_workspace(SLP_WORK_ORDER, (size_t)n + 1);
	for (int64_t i = 0; w && i < n; i++) w[i] = (int8_t)(a->w[i] - SLP_Q_WEIGHT_ZERO);
	return w;
}

static enum sl_status pack(const struct slp_kernel *k, const struct slp_qconv_args *a, struct slp_qdnn *m, void *packed)
{
	int8_t *w = signed_weights(a);
	if (!w) return slp_kernel_fail(k, SL_ENOMEM, "no memory for weights");
	return slp_qdnn_pack(m, w, packed) ? SL_OK
	                                   : slp_kernel_fail(k, SL_EKERNEL, "oneDNN cannot reorder the weights");
}

enum sl_status slp_qconv_onednn(const struct slp_kernel *k, const struct slp_qconv_args *a)
{
	struct slp_qdnn_key key;
	make_key(&key, a, a->b != NULL, k->threads);
	struct slp_dnn_quant quant = quant_of(a, (float *)(uintptr_t)a->scale);
	struct slp_qdnn *m = slp_qdnn_find(&key, &quant, describe);
	if (!m)
		return a->attrs->packed ? slp_kernel_fail(k, SL_EKERNEL, "no kernel for packed weights")
		                        : SL_EUNSUPPORTED;
	if (a->attrs->packed && m->weight_bytes > (size_t)a->attrs->packed)
		return slp_kernel_fail(k, SL_EKERNEL, "the weights were packed for another kernel");
	size_t own = a->attrs->packed ? 0 : (m->weight_bytes + 63) & ~(size_t)63;
	char *work = slp_workspace(SLP_WORK_CALL, own + m->scratch_bytes + 64);
	if (!work) return slp_kernel_fail(k, SL_ENOMEM, "no memory to work in");
	enum sl_status s = own ? pack(k, a, m, work) : SL_OK;
	if (s != SL_OK) return s;
	bool ok = slp_qdnn_run(m, a->x, own ? (void *)work : (const void *)a->w, a->b, a->y, work + own);
	return ok ? SL_OK : slp_kernel_fail(k, SL_EKERNEL, "oneDNN failed");
}

/* With equal scales in place of the real ones, which the order of weights does not depend on. */
static struct slp_qdnn *with_any_scales(const struct slp_qconv_args *a, int threads, size_t *bytes)
{
	struct slp_qdnn_key key;
	float *halves = slp_workspace(SLP_WORK_PART, (size_t)(a->c.oc + 1) * sizeof *halves);
	struct slp_dnn_quant quant = quant_of(a, halves);
	for (int64_t i = 0; halves && i < quant.n; i++) halves[i] = 0.5f;
	make_key(&key, a, a->b != NULL, threads);
	*bytes = halves ? slp_qdnn_packed(&key, &quant, describe) : 0;
	return *bytes && a->w ? slp_qdnn_find(&key, &quant, describe) : NULL;
}

size_t slp_qconv_onednn_packed(const struct slp_qconv_args *a, int threads)
{
	size_t bytes;
	with_any_scales(a, threads, &bytes);
	return bytes;
}

enum sl_status slp_qconv_onednn_pack(const struct slp_kernel *k, const struct slp_qconv_args *a, void *packed,
                                     size_t bytes)
{
	size_t needed;
	struct slp_qdnn *m = with_any_scales(a, k->threads, &needed);
	if (!m) return SL_EUNSUPPORTED;
	if (needed > bytes)
		return slp_kernel_fail(k, SL_EKERNEL, "packed weights take %zu bytes, %zu were planned", needed, bytes);
	return pack(k, a, m, packed);
}

#else

enum sl_status slp_qconv_onednn(const struct slp_kernel *k, const struct slp_qconv_args *a)
{
	(void)k;
	(void)a;
	return SL_EUNSUPPORTED;
}

size_t slp_qconv_onednn_packed(const struct slp_qconv_args *a, int threads)
{
	(void)a;
	(void)threads;
	return 0;
}

enum sl_status slp_qconv_onednn_pack(const struct slp_kernel *k, const struct slp_qconv_args *a, void *packed,
                                     size_t bytes)
{
	(void)k;
	(void)a;
	(void)packed;
	(void)bytes;
	return SL_EUNSUPPORTED;
}

#endif
