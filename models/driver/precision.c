/* --dtype of the drivers: the type of products, by autocast.  Parameters are float32. */
#include <string.h>

#include "common.h"

static const struct {
	const char *name, *products; /* the option's value, and its name in the output */
	enum sl_dtype dtype;
	enum sl_tf32 tf32;
	double rounding;
} precisions[] = {{"fp32", NULL, SL_FLOAT32, SL_TF32_DEFAULT, 0x1p-24},
                  {"tf32", "TF32 on GPUs", SL_FLOAT32, SL_TF32_ALL, 0x1p-11},
                  {"bf16", "bfloat16", SL_BFLOAT16, SL_TF32_DEFAULT, 0x1p-8},
                  {"fp16", "float16", SL_FLOAT16, SL_TF32_DEFAULT, 0x1p-11}};
enum { COUNT = sizeof precisions / sizeof *precisions };

void drv_precision_parse(struct argp_state *state, const char *text, struct drv_precision *p)
{
	int i = 0;
	while (i < COUNT && strcmp(text, precisions[i].name)) i++;
	if (i == COUNT) argp_error(state, "--dtype: \"%s\" must be fp32, tf32, bf16 or fp16", text);
	p->dtype = precisions[i].dtype;
	p->tf32 = precisions[i].tf32;
}

static int number_of(const struct drv_precision *p)
{
	int i = COUNT - 1;
	while (i > 0 && (precisions[i].dtype != p->dtype || precisions[i].tf32 != p->tf32)) i--;
	return i;
}

const char *drv_precision_name(const struct drv_precision *p)
{
	return precisions[number_of(p)].name;
}

/* The largest relative error of rounding a number. */
double drv_precision_rounding(const struct drv_precision *p)
{
	return precisions[number_of(p)].rounding;
}

struct sl_loss_scaling drv_loss_scaling(const struct drv_precision *p)
{
	return (struct sl_loss_scaling){.start = p->dtype == SL_FLOAT16 ? 65536 : 0};
}

void drv_precision_print(const struct drv_options *options, const struct drv_precision *p)
{
	const char *products = precisions[number_of(p)].products;
	if (products) drv_print(options, "products in %s, parameters and sums in float32\n", products);
}
