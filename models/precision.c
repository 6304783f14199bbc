/* --dtype of the training drivers: what networks compute in, by autocast.  Parameters are float32. */
#include <string.h>

#include "training.h"

static const struct {
	const char *name, *products; /* as it is called here, and what it makes of them */
	enum sl_dtype dtype;
	enum sl_tf32 tf32;
} precisions[] = {{"fp32", NULL, SL_FLOAT32, SL_TF32_DEFAULT},
                  {"tf32", "TF32 on GPUs", SL_FLOAT32, SL_TF32_ALL},
                  {"bf16", "bfloat16", SL_BFLOAT16, SL_TF32_DEFAULT},
                  {"fp16", "float16", SL_FLOAT16, SL_TF32_DEFAULT}};
enum { COUNT = sizeof precisions / sizeof *precisions };

void drv_precision_parse(struct argp_state *state, const char *text, struct drv_train_options *o)
{
	int i = 0;
	while (i < COUNT && strcmp(text, precisions[i].name)) i++;
	if (i == COUNT) argp_error(state, "--dtype: \"%s\" is none of fp32, tf32, bf16, fp16", text);
	o->dtype = precisions[i].dtype;
	o->tf32 = precisions[i].tf32;
}

static int number_of(const struct drv_train_options *o)
{
	int i = COUNT - 1;
	while (i > 0 && (precisions[i].dtype != o->dtype || precisions[i].tf32 != o->tf32)) i--;
	return i;
}

const char *drv_precision_name(const struct drv_train_options *o)
{
	return precisions[number_of(o)].name;
}

struct sl_loss_scaling drv_loss_scaling(const struct drv_train_options *o)
{
	return (struct sl_loss_scaling){.start = o->dtype == SL_FLOAT16 ? 65536 : 0};
}

void drv_precision_print(const struct drv_training *t)
{
	const char *products = precisions[number_of(t->options)].products;
	if (products) drv_print(t->common, "products in %s, parameters and sums in float32\n", products);
}
