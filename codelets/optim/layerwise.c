/* Layerwise rules: the step of each parameter is scaled by a trust ratio, the norm of the parameter over that of the step's
 * direction.  A pass over all parameters updates the states and adds up both norms, a second one moves the parameters. */
#include "optim.h"

#include "loss/softmax_rows.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* After the scratch memory for clipping: for each chunk, then for each parameter, two sums of squares. */
static int64_t chunks_of(const struct slp_infer *c)
{
	int64_t all = 0;
	for (int i = 0; i < c->nin; i += c->op->period) all += slp_optim_chunks(sl_shape_size(c->in[i].shape));
	return all;
}

size_t slp_optim_layerwise_scratch(const struct slp_infer *c)
{
	return slp_optim_scratch(c) + (size_t)(2 * (chunks_of(c) + c->nin / c->op->period)) * sizeof(double);
}

/* The second pass reads everything but the gradients, and writes the parameters. */
double slp_optim_layerwise_bytes(const struct slp_infer *c)
{
	double n = 0;
	for (int i = 0; i < c->nin; i += c->op->period) n += (double)sl_shape_size(c->in[i].shape);
	return slp_optim_bytes(c) + (c->op->period - 1) * n * (double)sl_dtype_size(c->in[0].dtype);
}

/* ---- reference --------------------------------------------------------------------------------------------------- */

static void read_element(const struct slp_view *w, int period, int64_t i, double t[SLP_OPTIM_TENSORS])
{
	for (int j = 0; j < period; j++) t[j] = slp_get(w + j, i);
}

static void move_ref(const struct slp_kernel *k, const struct slp_view *w, slp_optim_direction *direction)
{
	double t[SLP_OPTIM_TENSORS], param = 0, step = 0;
	for (int64_t i = 0; i < slp_size(w); i++) {
		read_element(w, k->op->period, i, t);
		param += slp_optim_square(t[0]);
		step += slp_optim_square(direction(k->attrs, t));
	}
	double rate = slp_optim_lr(k->attrs) * slp_optim_ratio(param, step);
	for (int64_t i = 0; i < slp_size(w); i++) {
		read_element(w, k->op->period, i, t);
		slp_set(w, i, t[0] - rate * direction(k->attrs, t));
	}
}

enum sl_status slp_optim_layerwise_ref(const struct slp_kernel *k, slp_optim_one *update,
                                       slp_optim_direction *direction)
{
	enum sl_status status = slp_optim_ref(k, update);
	for (const struct slp_view *w = k->in; !status && w < k->in + k->nin; w += k->op->period)
		move_ref(k, w, direction);
	return status;
}

/* ---- CPU --------------------------------------------------------------------------------------------------------- */

struct job {
	const struct slp_kernel *k;
	const struct slp_optim_layerwise *how;
	const void *rule;
	struct slp_optim_clip clip;
	double (*sums)[2]; /* of each chunk */
	double *ratios;    /* of each parameter */
};

/* A chunk: n elements of a parameter and of its gradient and states. */
struct chunk {
	int64_t number;
	int param;
	float *t[SLP_OPTIM_TENSORS];
	int64_t n;
};

static struct chunk chunk_at(const struct slp_view *w, int period, int64_t within)
{
	struct chunk c = {.n = slp_size(w) - within * SLP_OPTIM_CHUNK};
	if (c.n > SLP_OPTIM_CHUNK) c.n = SLP_OPTIM_CHUNK;
	for (int i = 0; i < period; i++) c.t[i] = (float *)w[i].ptr + within * SLP_OPTIM_CHUNK;
	return c;
}

/* Calls `piece` for the chunks [begin, end). */
static void each_chunk(const struct job *j, int64_t begin, int64_t end,
                       void (*piece)(const struct job *j, const struct chunk *c))
{
	int period = j->k->op->period;
	int64_t first = 0;
	for (int p = 0; p * period < j->k->nin && first < end; p++) {
		const struct slp_view *w = j->k->in + p * period;
		int64_t chunks = slp_optim_chunks(slp_size(w));
		for (int64_t i = begin > first ? begin - first : 0; i < chunks && first + i < end; i++) {
			struct chunk c = chunk_at(w, period, i);
			c.number = first + i;
			c.param = p;
			piece(j, &c);
		}
		first += chunks;
	}
}

static void update_chunk(const struct job *j, const struct chunk *c)
{
	j->how->update(j->rule, &j->clip, c->t, c->n);
	j->how->norms(j->rule, c->t, c->n, j->sums[c->number]);
}

static void move_chunk(const struct job *j, const struct chunk *c)
{
	j->how->move(j->rule, (float)j->ratios[c->param], c->t, c->n);
}

static void update_chunks(void *job, int64_t begin, int64_t end)
{
	each_chunk(job, begin, end, update_chunk);
}

static void move_chunks(void *job, int64_t begin, int64_t end)
{
	each_chunk(job, begin, end, move_chunk);
}

static void find_ratios(const struct job *j)
{
	const double(*sum)[2] = (const double(*)[2])j->sums;
	for (int p = 0; p < j->k->nin / j->k->op->period; p++) {
		double param = 0, step = 0;
		for (int64_t i = slp_optim_chunks(slp_size(&j->k->in[p * j->k->op->period])); i > 0; i--, sum++) {
			param += (*sum)[0];
			step += (*sum)[1];
		}
		j->ratios[p] = slp_optim_ratio(param, step);
	}
}

enum sl_status slp_optim_layerwise_cpu(const struct slp_kernel *k, const struct slp_optim_layerwise *how,
                                       const void *rule)
{
	enum { AT_ONCE = SLP_GRAIN / SLP_OPTIM_CHUNK };
	struct job j = {.k = k, .how = how, .rule = rule, .sums = k->scratch};
	int64_t chunks = 0;
	for (int i = 0; i < k->nin; i += k->op->period) chunks += slp_optim_chunks(slp_size(&k->in[i]));
	j.ratios = (double *)(j.sums + chunks);
	j.clip.scale = (float)slp_optim_cpu_scale(k); /* its sums are needed no more */
	j.clip.limit = (float)slp_optim_limit(k->attrs);
	slp_parallel_for(chunks, AT_ONCE, update_chunks, &j);
	find_ratios(&j);
	slp_parallel_for(chunks, AT_ONCE, move_chunks, &j);
	return SL_OK;
}
