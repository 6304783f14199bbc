/* Parameters of a GPT in safetensors, as Hugging Face's transformers and nanoGPT name them.
 *
 * Both use the names of OpenAI's programs.  Hugging Face's matrices are (inputs, outputs), and it approximates GELU by
 * tanh; nanoGPT's are (outputs, inputs), as PyTorch's, its GELU is exact, and biases are optional. */
#include "gpt_params.h"

#include <stdlib.h>
#include <string.h>

#include "driver/common.h"

enum { HEAD = 64 };

/* The parameters found in a file. */
struct seen {
	sl_shape words, places, inner; /* of wte.weight, wpe.weight, h.0.mlp.c_fc.weight; no axes: not there */
	int64_t layers;
	bool bias;
};

/* The name without the prefixes of torch.compile and Hugging Face. */
static const char *plain(const char *name)
{
	static const char *const before[] = {"_orig_mod.", "transformer."};
	for (int i = 0; i < 2; i++)
		if (!strncmp(name, before[i], strlen(before[i]))) name += strlen(before[i]);
	return name;
}

static void look_at(const char *name, enum sl_dtype dtype, sl_shape shape, void *context)
{
	struct seen *s = context;
	char *end;
	(void)dtype;
	name = plain(name);
	if (!strcmp(name, "wte.weight") || (!strcmp(name, "lm_head.weight") && !s->words.ndim)) s->words = shape;
	if (!strcmp(name, "wpe.weight")) s->places = shape;
	if (!strcmp(name, "h.0.mlp.c_fc.weight")) s->inner = shape;
	if (!strcmp(name, "h.0.mlp.c_fc.bias")) s->bias = true;
	if (strncmp(name, "h.", 2)) return;
	long layer = strtol(name + 2, &end, 10);
	if (end > name + 2 && *end == '.' && layer >= s->layers) s->layers = layer + 1;
}

static bool find_heads(const char *path, struct net_gpt_size *size)
{
	if (!size->heads && size->width % HEAD == 0) size->heads = (int)(size->width / HEAD);
	if (!size->heads)
		drv_error("%s: the width, %lld, is not a multiple of 64: give the number of heads with --heads", path,
		          (long long)size->width);
	else if (size->width % size->heads)
		drv_error("%s: %d heads do not divide the width, %lld", path, size->heads, (long long)size->width);
	return size->heads && size->width % size->heads == 0;
}

bool gpt_params_size(const char *path, struct net_gpt_size *size)
{
	struct seen s = {.words = SL_SCALAR, .places = SL_SCALAR, .inner = SL_SCALAR};
	if (sl_list_params(path, look_at, &s) != SL_OK) return false;
	int64_t width = s.words.dim[1];
	bool matrices = s.words.ndim == 2 && s.places.ndim == 2 && s.inner.ndim == 2;
	bool turned = matrices && s.inner.dim[0] == width && s.inner.dim[1] == 4 * width;
	bool fits = turned || (matrices && s.inner.dim[0] == 4 * width && s.inner.dim[1] == width);
	if (!fits || s.layers > 64) {
		char text[3][128];
		drv_error("%s: this is not a GPT-2 of at most 64 layers: wte.weight is %s, wpe.weight %s, "
		          "h.0.mlp.c_fc.weight %s; (words, width), (context, width), (width, 4 width) or its transpose "
		          "needed",
		          path, s.words.ndim ? sl_shape_string(s.words, text[0]) : "not there",
		          s.places.ndim ? sl_shape_string(s.places, text[1]) : "not there",
		          s.inner.ndim ? sl_shape_string(s.inner, text[2]) : "not there");
		return false;
	}
	*size = (struct net_gpt_size){.words = s.words.dim[0],
	                              .steps = s.places.dim[0],
	                              .width = width,
	                              .layers = (int)s.layers,
	                              .heads = size->heads,
	                              .no_bias = !s.bias,
	                              .gelu_tanh = turned};
	return find_heads(path, size);
}

bool gpt_params_load(sl_block *net, const char *path, const struct net_gpt_size *size)
{
	bool t = size->gelu_tanh;
	const char *last[] = {t ? "layers.*.1.body.3.weight" : "layers.*.1.body.2.weight",
	                      t ? "layers.*.1.body.3.bias" : "layers.*.1.body.2.bias"};
	const struct sl_param_name names[] = {
	        {"_orig_mod.*", "*", false},
	        {"transformer.*", "*", false},
	        {"h.*.attn.bias", NULL, false}, /* the causal mask, and what stands where it hides something */
	        {"h.*.attn.masked_bias", NULL, false},
	        {"wte.weight", "embedding.weight", false},
	        {"lm_head.weight", "embedding.weight", false},
	        {"wpe.weight", "positions.weight", false},
	        {"ln_f.weight", "norm.gamma", false},
	        {"ln_f.bias", "norm.beta", false},
	        {"h.*.ln_1.weight", "layers.*.0.body.0.gamma", false},
	        {"h.*.ln_1.bias", "layers.*.0.body.0.beta", false},
	        {"h.*.attn.c_attn.weight", "layers.*.0.body.1.in_proj_weight", t},
	        {"h.*.attn.c_attn.bias", "layers.*.0.body.1.in_proj_bias", false},
	        {"h.*.attn.c_proj.weight", "layers.*.0.body.1.out_proj.weight", t},
	        {"h.*.attn.c_proj.bias", "layers.*.0.body.1.out_proj.bias", false},
	        {"h.*.ln_2.weight", "layers.*.1.body.0.gamma", false},
	        {"h.*.ln_2.bias", "layers.*.1.body.0.beta", false},
	        {"h.*.mlp.c_fc.weight", "layers.*.1.body.1.weight", t},
	        {"h.*.mlp.c_fc.bias", "layers.*.1.body.1.bias", false},
	        {"h.*.mlp.c_proj.weight", last[0], t},
	        {"h.*.mlp.c_proj.bias", last[1], false},
	};
	return sl_load_params(net, path, .names = names, .nnames = sizeof names / sizeof *names) == SL_OK;
}
