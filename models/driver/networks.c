/* Networks of blocks that drivers, benchmarks and tests share. */
#include <stdlib.h>

#include <starling/elementwise.h>
#include <starling/primitives.h>

#include "networks.h"

/* Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document recognition", 1998; with the
 * sizes of models/lenet.c. */
sl_block *net_lenet(void)
{
	return sl_sequential(sl_conv2d_layer(20, .kernel = {3}, .activation = SL_RELU), sl_avg_pool2d_layer(2),
	                     sl_conv2d_layer(50, .kernel = {5}, .activation = SL_RELU), sl_avg_pool2d_layer(2),
	                     sl_dense(128, .activation = SL_RELU), sl_dense(10));
}

sl_block *net_mlp5(void)
{
	return sl_sequential(sl_dense(512, .activation = SL_RELU), sl_dense(512, .activation = SL_RELU),
	                     sl_dense(512, .activation = SL_RELU), sl_dense(512, .activation = SL_RELU), sl_dense(10));
}

sl_block *net_row_mlp(void)
{
	return sl_sequential(sl_dense(256, .activation = SL_RELU), sl_dense(128, .activation = SL_RELU), sl_dense(2));
}

/* ---- ResNet-18: K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", CVPR 2016; for small
 * images: a first convolution of 3 by 3 and no pooling after it ---------------------------------------------------- */

static sl_block *conv3(int64_t channels, int stride)
{
	return sl_conv2d_layer(channels, .kernel = {3}, .pad = {1, 1}, .stride = {stride, stride});
}

static sl_block *norm(bool synchronised)
{
	return sl_batch_norm_layer(.synchronised = synchronised);
}

/* Two convolutions beside a shortcut, which is one by one where the size changes. */
static sl_block *residual(int64_t channels, int stride, bool sync)
{
	sl_block *body = sl_sequential(conv3(channels, stride), norm(sync), sl_activation_layer(SL_RELU),
	                               conv3(channels, 1), norm(sync));
	sl_block *shortcut = stride == 1 ? NULL : sl_conv2d_layer(channels, .kernel = {1}, .stride = {stride, stride});
	return sl_residual(body, shortcut, SL_RELU);
}

static sl_block *stage(int64_t channels, int stride, bool sync)
{
	return sl_sequential(residual(channels, stride, sync), residual(channels, 1, sync));
}

sl_block *net_resnet18_of(int64_t width, bool sync)
{
	return sl_sequential(conv3(width, 1), norm(sync), sl_activation_layer(SL_RELU), stage(width, 1, sync),
	                     stage(2 * width, 2, sync), stage(4 * width, 2, sync), stage(8 * width, 2, sync),
	                     sl_global_avg_pool2d_layer(), sl_dense(10));
}

sl_block *net_resnet18(void)
{
	return net_resnet18_of(64, false);
}

sl_block *net_resnet18_synchronised(void)
{
	return net_resnet18_of(64, true);
}

/* ---- GPT: A. Radford, J. Wu, R. Child, D. Luan, D. Amodei, I. Sutskever, "Language models are unsupervised multitask
 * learners", 2019: normalisation before each part, and a last layer that shares its weights with the embedding ----- */

struct gpt {
	sl_block base;
	sl_block *embedding, *positions, *layers, *norm;
};

/* A layer normalisation that does not shift. */
struct scale_norm {
	sl_block base;
	sl_param *gamma;
};

static sl_tensor *scale_norm_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	sl_tensor *gamma = sl_param_use(((struct scale_norm *)self)->gamma, in[0]);
	(void)nin;
	if (!gamma) return NULL;
	sl_tensor *none =
	        sl_zeros(sl_tensor_shape(gamma), .dtype = sl_tensor_dtype(gamma), .device = sl_tensor_device(in[0]));
	return sl_layer_norm(in[0], gamma, none);
}

static sl_block *gpt_norm(const struct net_gpt_size *s)
{
	if (!s->no_bias) return sl_layer_norm_layer(.in_channels = s->width);
	struct scale_norm *norm = calloc(1, sizeof *norm);
	if (!norm || sl_block_init(&norm->base, "ScaleNorm", scale_norm_forward, NULL) != SL_OK) {
		free(norm);
		return NULL;
	}
	norm->gamma = sl_block_param(&norm->base, "gamma", SL_SHAPE(s->width), .init = sl_ones_init());
	return &norm->base;
}

static sl_tensor *gelu_tanh_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return sl_gelu_tanh(in[0]);
}

static sl_block *gelu_tanh(void)
{
	sl_block *block = calloc(1, sizeof *block);
	if (block && sl_block_init(block, "GELUTanh", gelu_tanh_forward, NULL) == SL_OK) return block;
	free(block);
	return NULL;
}

static sl_block *dense_of(int64_t from, int64_t to, enum sl_activation activation, const struct net_gpt_size *s)
{
	return sl_dense(to, .activation = activation, .no_flatten = true, .no_bias = s->no_bias, .in_units = from);
}

static sl_block *attention_part(const struct net_gpt_size *s)
{
	return sl_sequential(gpt_norm(s),
	                     sl_multi_head_attention(s->width, s->heads, .causal = true, .no_bias = s->no_bias));
}

static sl_block *dense_part(const struct net_gpt_size *s)
{
	int64_t inner = 4 * s->width;
	sl_block *last = dense_of(inner, s->width, SL_IDENTITY, s);
	if (!s->gelu_tanh) return sl_sequential(gpt_norm(s), dense_of(s->width, inner, SL_GELU, s), last);
	return sl_sequential(gpt_norm(s), dense_of(s->width, inner, SL_IDENTITY, s), gelu_tanh(), last);
}

static sl_block *gpt_layer(const struct net_gpt_size *s)
{
	return sl_sequential(sl_residual(attention_part(s), NULL, SL_IDENTITY),
	                     sl_residual(dense_part(s), NULL, SL_IDENTITY));
}

static sl_tensor *gpt_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct gpt *net = (struct gpt *)self;
	(void)nin;
	sl_tensor *h = sl_forward(net->positions, sl_forward(net->embedding, in[0]));
	h = sl_forward(net->norm, sl_forward(net->layers, h));
	return sl_linear(h, sl_param_use(sl_block_find(net->embedding, "weight"), h), NULL, .tw = true);
}

sl_block *net_gpt(struct net_gpt_size size)
{
	enum { MOST = 64 };
	sl_block *layers[MOST];
	struct gpt *net = size.layers > 0 && size.layers <= MOST ? calloc(1, sizeof *net) : NULL;
	if (!net || sl_block_init(&net->base, "GPT", gpt_forward, NULL) != SL_OK) {
		free(net);
		return NULL;
	}
	for (int i = 0; i < size.layers; i++) layers[i] = gpt_layer(&size);
	net->embedding = sl_block_add(&net->base, "embedding", sl_embedding(size.words, size.width));
	net->positions = sl_block_add(&net->base, "positions", sl_position_embedding(size.steps, size.width));
	net->layers = sl_block_add(&net->base, "layers", sl_sequential_at(SL_HERE, layers, size.layers));
	net->norm = sl_block_add(&net->base, "norm", gpt_norm(&size));
	return &net->base;
}
