/* What a run sets in the attributes of a plan's calls: numbers of updates, random streams. */
#include <math.h>
#include <string.h>

#include "graph/plan.h"
#include "runtime/random.h"
#include "runtime/task/code.h"
#include "tensor/tensor.h"

static const char *const number_names[SLP_PLAN_NUMBERS] = {"lr", "rescale", "step"};

static bool has_number(const sl_plan *p, const char *name)
{
	for (int i = 0; i < p->layout.nunits; i++)
		for (int k = 0; k < p->units[i].nfills; k++) {
			const struct slp_plan_fill *f = &p->units[i].fills[k];
			if (f->kind == SLP_FILL_SETTING && !strcmp(f->name, name)) return true;
		}
	return false;
}

/* The number as its attribute stores it: steps are counted from 1. */
static bool number_bits(const char *at, const char *function, const struct sl_plan_number *n, uint64_t *bits)
{
	bool step = !strcmp(n->name, "step");
	if (!isfinite(n->value) || (!strcmp(n->name, "lr") && n->value < 0))
		return slp_call_fail(at, function, SL_EINVAL, "%s is %g", n->name, n->value), false;
	if (step && !(n->value >= 1 && n->value < 0x1p53 && n->value == floor(n->value)))
		return slp_call_fail(at, function, SL_EINVAL, "step is %g, a whole number from 1 on needed", n->value),
		       false;
	memcpy(bits, &n->value, sizeof *bits);
	if (step) *bits = (uint64_t)n->value;
	return true;
}

static bool find_number(const char *at, const char *function, const sl_plan *p, const struct sl_plan_number *n,
                        struct slp_setting *s)
{
	int i = 0;
	if (!slp_given(at, function, "name of a number", n->name)) return false;
	while (i < SLP_PLAN_NUMBERS && strcmp(number_names[i], n->name)) i++;
	if (i == SLP_PLAN_NUMBERS || !has_number(p, n->name))
		return slp_call_fail(at, function, SL_EINVAL, "no update of the program has the number '%s'", n->name),
		       false;
	s->name = number_names[i];
	return number_bits(at, function, n, &s->bits);
}

bool slp_plan_numbers(const char *at, const char *function, const sl_plan *p, const struct sl_plan_number *numbers,
                      int count, struct slp_setting settings[SLP_PLAN_NUMBERS])
{
	if (count > 0 && !slp_given(at, function, "array of numbers", numbers)) return false;
	if (count < 0 || count > SLP_PLAN_NUMBERS)
		return slp_call_fail(at, function, SL_EINVAL, "%d numbers, at most %d exist", count, SLP_PLAN_NUMBERS),
		       false;
	for (int i = 0; i < count; i++)
		if (!find_number(at, function, p, &numbers[i], &settings[i])) return false;
	return true;
}

static bool value_of(const struct slp_plan_fill *f, const struct slp_rng *rng, const struct slp_setting *settings,
                     int nsettings, uint64_t *value)
{
	if (f->kind == SLP_FILL_SEED) *value = rng->seed;
	if (f->kind == SLP_FILL_STREAM) *value = rng->stream + f->stream;
	for (int i = 0; i < nsettings && f->kind == SLP_FILL_SETTING; i++)
		if (!strcmp(settings[i].name, f->name)) return *value = settings[i].bits, true;
	return f->kind != SLP_FILL_SETTING;
}

int slp_plan_fill(const struct slp_unit *u, const struct slp_rng *rng, const struct slp_setting *settings,
                  int nsettings, struct slp_patch *patches)
{
	int n = 0;
	for (int i = 0; i < u->nfills; i++) {
		const struct slp_plan_fill *f = &u->fills[i];
		uint64_t value = 0;
		if (value_of(f, rng, settings, nsettings, &value))
			patches[n++] = (struct slp_patch){f->call, f->offset, value};
	}
	return n;
}
