/* Convolution by oneDNN: making its objects, the descriptions, code and reorders of one pass for sizes and layouts. */
#include "conv2d_kernels.h"

#ifdef HAVE_ONEDNN
#include <stdlib.h>
#include <string.h>

#include "conv2d_onednn.h"

/* Winograd's algorithm, if its transforms cost little beside the products that it saves. A. Lavin, S. Gray, "Fast
 * algorithms for convolutional neural networks", 2016. SL_WINOGRAD=0 turns it off. */
static bool winograd_pays(const struct slp_conv *c)
{
	const char *wish = getenv("SL_WINOGRAD");
	bool plain = c->sh == 1 && c->sw == 1 && c->dh == 1 && c->dw == 1 && c->groups == 1;
	plain = plain && !c->kd && c->kh == 3 && c->kw == 3;
	return plain && c->ic >= 64 && c->oc >= 64 && !(wish && !strcmp(wish, "0"));
}

/* With a single channel, the forward pass through matrix products in the plain layout beats blocks of 16 channels. */
static bool stays_plain(const struct slp_conv_key *key)
{
	return key->c.ic == key->c.groups && key->pass != SLP_CONV_WEIGHTS && !key->inner;
}

/* The layout of x and y: the caller's, or oneDNN's choice. */
static dnnl_format_tag_t image_tag(const struct slp_conv_key *key, bool plain, bool outside, bool is_x)
{
	bool volume = key->c.kd != 0;
	if (outside && (is_x ? key->x_nc16 : key->y_nc16)) return dnnl_nChw16c;
	if (key->block && !(is_x && key->x_plain))
		return key->block == 16 ? volume ? dnnl_nCdhw16c : dnnl_nChw16c : volume ? dnnl_nCdhw8c : dnnl_nChw8c;
	return !plain && !key->block ? dnnl_format_tag_any : volume ? dnnl_ncdhw : dnnl_nchw;
}

/* The type of an operand, in the caller's memory or in the computation: gradients of parameters are never rounded
 * here. */
static dnnl_data_type_t type_of(const struct slp_conv_key *key, enum operand o, bool outside)
{
	bool sums = key->pass == SLP_CONV_WEIGHTS && (o == W || o == B);
	bool wide = key->wide && (o == B || (o == W && outside));
	return key->half && (outside || key->inner) && !sums && !wide ? dnnl_bf16 : dnnl_f32;
}

/* Sizes after the first `first`, of images or volumes; returns their number. */
static int set_dims(dnnl_dims_t dims, int first, int64_t depth, int64_t height, int64_t width)
{
	if (depth) dims[first++] = depth;
	dims[first++] = height;
	dims[first++] = width;
	return first;
}

/* The three or four tensors, in the caller's layout or in oneDNN's choice. */
static bool describe_tensors(const struct slp_conv_key *key, bool plain, bool plain_w, struct slp_dnn_conv *d)
{
	const struct slp_conv *c = &key->c;
	bool grouped = c->groups > 1;
	dnnl_dims_t x = {c->n, c->ic}, y = {c->n, c->oc}, b = {c->oc}, w = {c->oc, c->ic};
	dnnl_dims_t wg = {c->groups, c->oc / c->groups, c->ic / c->groups};
	dnnl_format_tag_t oihw = c->kd ? dnnl_oidhw : dnnl_oihw, goihw = c->kd ? dnnl_goidhw : dnnl_goihw;
	dnnl_format_tag_t w_tag = !plain_w ? dnnl_format_tag_any : grouped ? goihw : oihw;
	int axes = set_dims(x, 2, c->id, c->ih, c->iw);
	set_dims(y, 2, c->od, c->oh, c->ow);
	set_dims(w, 2, c->kd, c->kh, c->kw);
	set_dims(wg, 3, c->kd, c->kh, c->kw);
	d->bias = key->bias;
	return slp_dnn_md_make(&d->x, axes, x, type_of(key, X, plain_w), image_tag(key, plain, plain_w, true)) &&
	       slp_dnn_md_make(&d->w, axes + grouped, grouped ? wg : w, type_of(key, W, plain_w), w_tag) &&
	       slp_dnn_md_make(&d->b, 1, b, type_of(key, B, plain_w), dnnl_x) &&
	       slp_dnn_md_make(&d->y, axes, y, type_of(key, Y, plain_w), image_tag(key, plain, plain_w, false));
}

static void free_tensors(struct slp_dnn_conv *d)
{
	slp_dnn_md_free(&d->x);
	slp_dnn_md_free(&d->w);
	slp_dnn_md_free(&d->b);
	slp_dnn_md_free(&d->y);
}

/* How windows move over images, or over volumes, whose depth comes first. */
static void set_windows(const struct slp_conv *c, struct slp_dnn_conv *d)
{
	int depth = c->kd ? 1 : 0;
	if (depth) {
		d->strides[0] = c->sd;
		d->dilates[0] = c->dd - 1;
		d->padding[0] = d->padding_after[0] = c->pd;
	}
	set_dims(d->strides, depth, 0, c->sh, c->sw);
	set_dims(d->dilates, depth, 0, c->dh - 1, c->dw - 1);
	set_dims(d->padding, depth, 0, c->ph, c->pw);
	set_dims(d->padding_after, depth, 0, c->ph, c->pw);
}

/* The description of the pass by one algorithm; false if oneDNN has none. */
static bool describe_by(const struct slp_conv_key *key, dnnl_engine_t engine, dnnl_alg_kind_t algorithm,
                        dnnl_primitive_desc_t *pd)
{
	const struct slp_conv *c = &key->c;
	struct slp_dnn_conv d = {.algorithm = algorithm, .inference = key->block != 0, .after = key->after};
	dnnl_primitive_desc_t forward = NULL;
	struct slp_conv_key of_forward = *key;
	of_forward.pass = SLP_CONV_FORWARD;
	bool plain = stays_plain(key), ok = true;
	set_windows(c, &d);
	if (key->pass != SLP_CONV_FORWARD) {
		ok = describe_tensors(&of_forward, plain, false, &d) &&
		     slp_dnn_conv_describe(&forward, engine, &d, SLP_DNN_FORWARD, NULL) == dnnl_success;
		free_tensors(&d);
	}
	ok = ok && describe_tensors(key, plain, false, &d);
	ok = ok && slp_dnn_conv_describe(pd, engine, &d, (enum slp_dnn_pass)key->pass, forward) == dnnl_success;
	if (forward) dnnl_primitive_desc_destroy(forward);
	free_tensors(&d);
	return ok;
}

bool slp_conv_describe(const struct slp_conv_key *key, dnnl_engine_t engine, dnnl_primitive_desc_t *pd)
{
	if (key->block)
		return describe_by(key, engine, key->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct,
		                   pd);
	if (!key->inner && winograd_pays(&key->c) && describe_by(key, engine, dnnl_convolution_winograd, pd))
		return true;
	return describe_by(key, engine, dnnl_convolution_direct, pd);
}

/* Memory for one operand, and the reorder between the two layouts if they differ. */
static bool make_port(struct slp_conv_port *p, dnnl_engine_t engine, slp_dnn_ref outside, slp_dnn_ref inside,
                      bool is_output)
{
	if (dnnl_memory_create(&p->outside, outside, engine, DNNL_MEMORY_NONE) != dnnl_success) return false;
	p->inside = p->outside;
	if (dnnl_memory_desc_equal(outside, inside)) return true;
	p->inside = NULL;
	p->bytes = (dnnl_memory_desc_get_size(inside) + 63) & ~(size_t)63;
	if (dnnl_memory_create(&p->inside, inside, engine, DNNL_MEMORY_NONE) != dnnl_success) return false;
	dnnl_primitive_desc_t pd;
	slp_dnn_ref from = is_output ? inside : outside, to = is_output ? outside : inside;
	if (dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, NULL) != dnnl_success) return false;
	bool ok = dnnl_primitive_create(&p->reorder, pd) == dnnl_success;
	dnnl_primitive_desc_destroy(pd);
	return ok;
}

/* oneDNN's names of the operands of each pass. */
static const struct name {
	dnnl_query_t query;
	int index, arg;
} names[SLP_CONV_PASSES][OPERANDS] = {
        [SLP_CONV_FORWARD] = {{dnnl_query_src_md, 0, DNNL_ARG_SRC},
                              {dnnl_query_weights_md, 0, DNNL_ARG_WEIGHTS},
                              {dnnl_query_weights_md, 1, DNNL_ARG_BIAS},
                              {dnnl_query_dst_md, 0, DNNL_ARG_DST}},
        [SLP_CONV_DATA] = {{dnnl_query_diff_src_md, 0, DNNL_ARG_DIFF_SRC},
                           {dnnl_query_weights_md, 0, DNNL_ARG_WEIGHTS},
                           {dnnl_query_weights_md, 1, DNNL_ARG_BIAS},
                           {dnnl_query_diff_dst_md, 0, DNNL_ARG_DIFF_DST}},
        [SLP_CONV_WEIGHTS] = {{dnnl_query_src_md, 0, DNNL_ARG_SRC},
                              {dnnl_query_diff_weights_md, 0, DNNL_ARG_DIFF_WEIGHTS},
                              {dnnl_query_diff_weights_md, 1, DNNL_ARG_DIFF_BIAS},
                              {dnnl_query_diff_dst_md, 0, DNNL_ARG_DIFF_DST}},
};

bool slp_conv_is_output(int pass, int operand)
{
	return pass == SLP_CONV_FORWARD ? operand == Y
	       : pass == SLP_CONV_DATA  ? operand == X
	                                : operand == W || operand == B;
}

static bool make_ports(struct slp_conv_made *m, dnnl_engine_t engine, const_dnnl_primitive_desc_t pd)
{
	struct slp_dnn_conv d = {0};
	const slp_dnn_md *plain[OPERANDS] = {&d.x, &d.w, &d.b, &d.y};
	bool ok = describe_tensors(&m->key, true, true, &d);
	for (int i = 0; i < OPERANDS && ok; i++) {
		const struct name *name = &names[m->key.pass][i];
		if (i == B && !m->key.bias) continue;
		slp_dnn_ref inside = dnnl_primitive_desc_query_md(pd, name->query, name->index);
		slp_dnn_ref outside = i == W && m->key.packed ? inside : slp_dnn_md_ref(plain[i]);
		m->port[i].arg = name->arg;
		ok = make_port(&m->port[i], engine, outside, inside, slp_conv_is_output(m->key.pass, i));
	}
	free_tensors(&d);
	return ok;
}

/* Long sums in one accumulator round too much: oneDNN's direct kernels sum the window of up to 16 channels in one, and the
 * inner products by which oneDNN 3 computes windows as large as the image sum all channels. */
static bool rounds_too_much(const struct slp_conv_key *key, const char *how)
{
	enum { MOST_TERMS = 1 << 15, BLOCK = 16 };
	int64_t channels = key->c.ic / key->c.groups;
	if (channels > BLOCK && strncmp(how, "ip:", 3) != 0) channels = BLOCK;
	return channels * slp_conv_taps(&key->c) > MOST_TERMS;
}

bool slp_conv_make_onednn(struct slp_conv_made *m, dnnl_engine_t engine, const struct slp_conv_key *key)
{
	dnnl_primitive_desc_t pd;
	m->key = *key;
	if (!slp_conv_describe(key, engine, &pd)) return false;
	slp_dnn_ref scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
	m->scratch_bytes = dnnl_memory_desc_get_size(scratch);
	m->weight_bytes = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0));
	const char *how = "";
	dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &how);
	m->product = strstr(how, "emm") || strstr(how, "brg"); /* gemm, brgconv, ip:any+emm (oneDNN 3) */
	bool ok = !rounds_too_much(key, how) && make_ports(m, engine, pd) &&
	          dnnl_primitive_create(&m->convolution, pd) == dnnl_success &&
	          dnnl_memory_create(&m->scratchpad, scratch, engine, DNNL_MEMORY_NONE) == dnnl_success;
	dnnl_primitive_desc_destroy(pd);
	return ok;
}

void slp_conv_unmake(struct slp_conv_made *m)
{
	if (m->convolution) dnnl_primitive_destroy(m->convolution);
	for (int i = 0; i < OPERANDS; i++) {
		struct slp_conv_port *p = &m->port[i];
		if (p->inside && p->inside != p->outside) dnnl_memory_destroy(p->inside);
		if (p->outside) dnnl_memory_destroy(p->outside);
		if (p->reorder) dnnl_primitive_destroy(p->reorder);
	}
	if (m->scratchpad) dnnl_memory_destroy(m->scratchpad);
	memset(m, 0, sizeof *m);
}

#endif
