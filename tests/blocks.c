/* Checks on blocks and on whole tensors. */
#include "blocks.h"

#include <stdlib.h>
#include <string.h>

double *slp_numbers(sl_tensor *t)
{
	double *v = malloc((size_t)sl_tensor_size(t) * sizeof *v + 1);
	SL_SCOPE
		CHECK_OK(sl_read(sl_cast(t, SL_FLOAT64), v, (size_t)sl_tensor_size(t) * sizeof *v));
	return v;
}

bool slp_same_bits(sl_tensor *a, sl_tensor *b)
{
	bool same = a && b && sl_tensor_dtype(a) == sl_tensor_dtype(b) &&
	            sl_shape_equal(sl_tensor_shape(a), sl_tensor_shape(b));
	double *x = same ? slp_numbers(a) : NULL, *y = same ? slp_numbers(b) : NULL;
	same = same && !memcmp(x, y, (size_t)sl_tensor_size(a) * sizeof *x);
	free(x);
	free(y);
	return same;
}

sl_tensor *slp_data(sl_block *block, const char *path)
{
	return sl_param_data(sl_block_find(block, path));
}

static sl_tensor *scaled_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct slp_scaled *s = (struct slp_scaled *)self;
	s->calls++;
	sl_tensor *h = sl_forward(s->hidden, in[0]);
	if (nin > 1) h = sl_add(h, in[1]);
	if (sl_param_fit(s->scale, SL_SHAPE(sl_tensor_shape(h).dim[1])) != SL_OK) return NULL;
	return sl_mul(h, sl_param_use(s->scale, h));
}

static void scaled_destroy(sl_block *self)
{
	struct slp_scaled *s = (struct slp_scaled *)self;
	++*s->freed;
	free(s);
}

struct slp_scaled *slp_scaled_new(int *freed)
{
	struct slp_scaled *s = calloc(1, sizeof *s);
	s->freed = freed;
	CHECK_OK(sl_block_init(&s->base, "Scaled", scaled_forward, scaled_destroy));
	s->hidden = sl_block_add(&s->base, "hidden", sl_dense(3));
	s->scale = sl_block_param(&s->base, "scale", SL_SHAPE(-1), .init = sl_constant_init(2));
	return s;
}

sl_block *slp_user_block(sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int))
{
	sl_block *b = calloc(1, sizeof *b);
	CHECK_OK(sl_block_init(b, "Mine", forward, NULL));
	return b;
}

static sl_block *transformer_layer(int64_t width, int heads)
{
	return sl_sequential(
	        sl_residual(sl_sequential(sl_layer_norm_layer(), sl_multi_head_attention(width, heads, .causal = true)),
	                    NULL, SL_IDENTITY),
	        sl_residual(
	                sl_sequential(sl_layer_norm_layer(),
	                              sl_dense(4 * width, .activation = SL_GELU, .no_flatten = true, .in_units = width),
	                              sl_dense(width, .no_flatten = true, .in_units = 4 * width)),
	                NULL, SL_IDENTITY));
}

sl_block *slp_transformer(int64_t tokens, int64_t width, int heads, int64_t steps, enum sl_dtype dtype)
{
	sl_block *net = sl_sequential(sl_embedding(tokens, width), sl_position_embedding(steps, width),
	                              transformer_layer(width, heads), transformer_layer(width, heads),
	                              sl_layer_norm_layer(), sl_dense(tokens, .no_flatten = true, .in_units = width));
	CHECK_OK(sl_initialize(net, .dtype = dtype));
	SL_SCOPE
		CHECK(sl_forward(net, sl_zeros(SL_SHAPE(1, 2), .dtype = SL_INT32)) != NULL);
	return net;
}

uint64_t slp_net_bits(const sl_block *net)
{
	enum { MOST = 512 };
	sl_param *params[MOST];
	uint64_t h = 14695981039346656037u;
	for (int i = 0, n = sl_block_params(net, params, MOST); i < n; i++) {
		size_t size = sl_tensor_bytes(sl_param_data(params[i]));
		unsigned char *values = malloc(size + 1);
		bool ok = sl_read(sl_param_data(params[i]), values, size) == SL_OK;
		for (size_t k = 0; ok && k < size; k++) h = (h ^ values[k]) * 1099511628211u;
		free(values);
		if (!ok) return 0;
	}
	return h;
}
