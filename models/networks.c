/* The networks of drivers and benchmarks, from blocks. */
#include <stdlib.h>

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
 * images: a first convolution of 3 by 3 and no pooling after it ----------------------------------------------------- */

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
 * learners", 2019: normalisation before each part, and a last layer that shares its weights with the embedding ------- */

struct gpt {
	sl_block base;
	sl_block *embedding, *body;
};

static sl_block *attention_part(const struct net_gpt_size *s)
{
	return sl_sequential(sl_layer_norm_layer(), sl_multi_head_attention(s->width, s->heads, .causal = true));
}

static sl_block *dense_part(const struct net_gpt_size *s)
{
	return sl_sequential(sl_layer_norm_layer(),
	                     sl_dense(4 * s->width, .activation = SL_GELU, .no_flatten = true, .in_units = s->width),
	                     sl_dense(s->width, .no_flatten = true, .in_units = 4 * s->width));
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
	sl_tensor *h = sl_forward(net->body, sl_forward(net->embedding, in[0]));
	return sl_linear(h, sl_param_use(sl_block_find(net->embedding, "weight"), h), NULL, .tw = true);
}

sl_block *net_gpt(struct net_gpt_size size)
{
	enum { MOST = 64 };
	sl_block *part[MOST + 2];
	struct gpt *net = size.layers > 0 && size.layers <= MOST ? calloc(1, sizeof *net) : NULL;
	if (!net || sl_block_init(&net->base, "GPT", gpt_forward, NULL) != SL_OK) {
		free(net);
		return NULL;
	}
	part[0] = sl_position_embedding(size.steps, size.width);
	for (int i = 0; i < size.layers; i++) part[i + 1] = gpt_layer(&size);
	part[size.layers + 1] = sl_layer_norm_layer();
	net->embedding = sl_block_add(&net->base, "embedding", sl_embedding(size.words, size.width));
	net->body = sl_block_add(&net->base, "body", sl_sequential_at(SL_HERE, part, size.layers + 2));
	return &net->base;
}
