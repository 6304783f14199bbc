/* A convolution with its bias and relu, or one of its gradients, as one operation graph of cuDNN's backend API: of
 * float32 or a half type, with sums and intermediates in float32.
 *
 * cuDNN's heuristics propose engines, best first. Options are those that are deterministic and round no more than
 * sl_config.tf32 allows (conv2d_notes.cuh). An option's plan is made when the option is chosen; it must fit in the
 * operation's workspace. Without a choice, the first option that has a plan is used; if none has, that is remembered,
 * and the caller uses its other implementation. Plans are kept by the thread that made them. No plan is made while a
 * CUDA graph is recorded, because that loads and compiles kernels. */
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime_api.h>

#include "alloc.h"
#include "common/dnn_plan.cuh"
#include "conv2d_graph.h"
#include "conv2d_notes.cuh"
#include "common/forget.h"
#include "conv2d_ways.h"

typedef slp_dnn_descriptor descriptor;

enum { BUCKETS = 128, MOST_PLANS = 10000, CONFIGS = 64, KNOBS = 24, NOTES = 32, NOTHING = -1 };
enum { X = 1, W, B, Y, BARE, SUM }; /* tensors by number; the last two are internal to the operation */

/* An engine with its knobs. plan NULL: none was made yet, or it is refused. */
struct option {
	descriptor config, plan;
	int64_t engine;
	uint64_t knobs;
	bool refused;

	void forget()
	{
		slp_dnn_drop(plan);
		slp_dnn_drop(config);
		plan = config = NULL;
		refused = true;
	}
};

/* The entry of these sizes: the operation's descriptors, and options. */
struct planned {
	struct slp_conv_graph key;
	struct planned *next; /* in its bucket */
	slp_dnn_owner own;
	struct option option[SLP_CONV_OPTIONS];
	int options, chosen;

	void clear()
	{
		for (int i = 0; i < options; i++) option[i].forget();
		own.clear();
	}
};

/* Entries stay while the engine runs: a CUDA graph may hold their kernels. */
static thread_local struct plans {
	struct planned *bucket[BUCKETS];
	int count;
} cache;

/* Not called when the thread ends: plans need their handle. */
void slp_cudnn_forget(void)
{
	for (struct planned *&first : cache.bucket)
		for (struct planned *m; (m = first);) {
			first = m->next;
			m->clear();
			free(m);
		}
	cache.count = 0;
	slp_conv_ways_forget();
}

/* ---- descriptions ----------------------------------------------------------------------------------------------- */

struct builder : slp_dnn_builder {
	const struct slp_conv_graph &key;

	builder(struct planned *m) : slp_dnn_builder{&m->own, true}, key(m->key)
	{
	}
};

struct sizes {
	int64_t n, c, h, w;
};

static descriptor tensor(struct builder *b, int64_t number, const struct sizes &s, bool nhwc)
{
	const int64_t dims[] = {s.n, s.c, s.h, s.w}, alignment = SLP_DNN_ALIGNMENT, image = s.c * s.h * s.w;
	const int64_t plain[] = {image, s.h * s.w, s.w, 1}, last[] = {image, 1, s.w * s.c, s.c};
	bool within = number == BARE || number == SUM;
	cudnnDataType_t type = within ? CUDNN_DATA_FLOAT : (cudnnDataType_t)b->key.type;
	descriptor d = b->make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	b->set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number);
	b->set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	b->set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
	b->set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, nhwc ? last : plain);
	b->set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
	b->set(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &within);
	return b->finished(d);
}

/* Groups follow from the channels of x and w. */
static descriptor convolution(struct builder *b, const struct slp_conv &c)
{
	const int64_t axes = 2, pad[] = {c.ph, c.pw}, stride[] = {c.sh, c.sw}, dilation[] = {c.dh, c.dw};
	cudnnDataType_t type = CUDNN_DATA_FLOAT;
	cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
	descriptor d = b->make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
	b->set(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	b->set(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
	b->set(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
	b->set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
	b->set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
	b->set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
	b->set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
	return b->finished(d);
}

/* cuDNN's names of the three passes' operands: of the images, x or its gradient, and so on. */
static const struct {
	cudnnBackendDescriptorType_t type;
	cudnnBackendAttributeName_t conv, x, w, y, alpha, beta;
} passes[SLP_CONV_PASSES] = {
#define PASS(name, attr, X, W, Y)                                                                                      \
	{                                                                                                              \
		CUDNN_BACKEND_OPERATION_CONVOLUTION_##name##_DESCRIPTOR,                                               \
		        CUDNN_ATTR_OPERATION_CONVOLUTION_##attr##_CONV_DESC,                                           \
		        CUDNN_ATTR_OPERATION_CONVOLUTION_##attr##_##X, CUDNN_ATTR_OPERATION_CONVOLUTION_##attr##_##W,  \
		        CUDNN_ATTR_OPERATION_CONVOLUTION_##attr##_##Y,                                                 \
		        CUDNN_ATTR_OPERATION_CONVOLUTION_##attr##_ALPHA,                                               \
		        CUDNN_ATTR_OPERATION_CONVOLUTION_##attr##_BETA                                                 \
	}
        PASS(FORWARD, FORWARD, X, W, Y),
        PASS(BACKWARD_DATA, BWD_DATA, DX, W, DY),
        PASS(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
#undef PASS
};

static descriptor convolve(struct builder *b, descriptor conv, descriptor x, descriptor w, descriptor y)
{
	const auto &p = passes[b->key.pass];
	float one = 1, zero = 0;
	descriptor d = b->make(p.type);
	b->set(d, p.conv, conv);
	b->set(d, p.x, x);
	b->set(d, p.w, w);
	b->set(d, p.y, y);
	b->set(d, p.alpha, CUDNN_TYPE_FLOAT, 1, &one);
	b->set(d, p.beta, CUDNN_TYPE_FLOAT, 1, &zero);
	return b->finished(d);
}

/* y = x + bias; bias NULL: relu(x), which is NaN where x is. */
static descriptor pointwise(struct builder *b, descriptor x, descriptor bias, descriptor y)
{
	cudnnPointwiseMode_t mode = bias ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_RELU_FWD;
	cudnnDataType_t type = CUDNN_DATA_FLOAT;
	cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
	descriptor how = b->make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	b->set(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
	b->set(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
	if (!bias) b->set(how, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
	b->finished(how);
	descriptor d = b->make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	b->set(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
	b->set(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	if (bias) b->set(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias);
	b->set(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	return b->finished(d);
}

static descriptor operation_graph(struct builder *b)
{
	const struct slp_conv_graph &f = b->key;
	const struct slp_conv &c = f.c;
	const struct sizes y_sizes = {c.n, c.oc, c.oh, c.ow};
	descriptor ops[3];
	int n = 0;
	descriptor x = tensor(b, X, {c.n, c.ic, c.ih, c.iw}, f.nhwc);
	descriptor w = tensor(b, W, {c.oc, c.ic / c.groups, c.kh, c.kw}, f.nhwc);
	descriptor y = tensor(b, Y, y_sizes, f.nhwc);
	descriptor bare = f.bias || f.relu ? tensor(b, BARE, y_sizes, f.nhwc) : y;
	descriptor sum = !f.bias ? bare : f.relu ? tensor(b, SUM, y_sizes, f.nhwc) : y;
	ops[n++] = convolve(b, convolution(b, c), x, w, bare);
	if (f.bias) ops[n++] = pointwise(b, bare, tensor(b, B, {1, c.oc, 1, 1}, f.nhwc), sum);
	if (f.relu) ops[n++] = pointwise(b, sum, NULL, y);
	return b->graph(f.handle, n, ops);
}

/* ---- engines ---------------------------------------------------------------------------------------------------- */

/* The name of an engine and its knobs, which does not depend on the order of the proposals. */
static uint64_t knobs_of(descriptor config)
{
	descriptor knobs[KNOBS];
	int64_t made = 0, n = 0, one = 0, hash = 0;
	while (made < KNOBS && (knobs[made] = slp_dnn_new(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR))) made++;
	if (!slp_dnn_get(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n, knobs))
		n = 0;
	for (int64_t i = 0; i < n && i < made; i++) {
		int64_t value = 0;
		cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)0;
		slp_dnn_get(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one, &type);
		slp_dnn_get(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &one, &value);
		uint64_t part = (uint64_t)type * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)value + 1;
		hash = (int64_t)((uint64_t)hash + part * (part >> 32 | 1)); /* in any order */
	}
	while (made) slp_dnn_drop(knobs[--made]);
	return (uint64_t)hash;
}

/* Whether the engine's notes are allowed; its index goes to o. */
static bool is_allowed(const struct slp_conv_graph &f, descriptor config, struct option *o)
{
	cudnnBackendNumericalNote_t notes[NOTES];
	descriptor engine = slp_dnn_new(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
	int64_t n = 0, one = 0;
	unsigned set = 0;
	bool ok = engine &&
	          slp_dnn_get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine) &&
	          slp_dnn_get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &one, &o->engine) &&
	          slp_dnn_get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, NOTES, &n, notes);
	for (int64_t i = 0; i < n; i++) set |= i < NOTES ? slp_note_bit(notes[i]) : (unsigned)SLP_NOTE_UNKNOWN;
	slp_dnn_drop(engine);
	set |= slp_notes_unsaid(&f, o->engine, set);
	return ok && slp_notes_may(slp_conv_precision(&f), set);
}

static bool is_listed(const struct planned *m, const struct option &o)
{
	for (int i = 0; i < m->options; i++)
		if (m->option[i].engine == o.engine && m->option[i].knobs == o.knobs) return true;
	return false;
}

/* The allowed engines that the heuristics propose in a mode, best first. */
static void list(struct planned *m, descriptor graph, cudnnBackendHeurMode_t mode)
{
	descriptor configs[CONFIGS];
	int64_t n = slp_dnn_propose(graph, mode, CONFIGS, configs);
	for (int64_t i = 0; i < n; i++) {
		struct option o = {};
		o.config = configs[i];
		bool taken = m->options < SLP_CONV_OPTIONS && is_allowed(m->key, o.config, &o);
		if (taken) o.knobs = knobs_of(o.config);
		if (taken && !is_listed(m, o)) m->option[m->options++] = o;
		else slp_dnn_drop(o.config);
	}
}

/* Its plan, if it fits in the workspace. */
static bool make_plan(struct planned *m, struct option *o)
{
	if (o->plan || o->refused) return o->plan;
	o->plan = slp_dnn_plan((cudnnHandle_t)m->key.handle, o->config, m->key.limit);
	o->refused = !o->plan;
	return o->plan;
}

static unsigned bucket_of(const struct slp_conv_graph *f)
{
	uint64_t hash = 0, words[sizeof *f / sizeof(uint64_t)];
	memcpy(words, f, sizeof words);
	for (uint64_t w : words) hash = (hash ^ w) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
	return (unsigned)(hash >> 32) % BUCKETS;
}

/* NULL: there is no memory, or the limit is reached. */
static struct planned *make(const struct slp_conv_graph *f, struct planned **first)
{
	struct planned *m = cache.count < MOST_PLANS ? (struct planned *)slp_try_calloc(1, sizeof *m) : NULL;
	if (!m) return NULL;
	m->key = *f;
	m->chosen = NOTHING;
	m->next = *first;
	*first = m;
	cache.count++;
	struct builder b(m);
	descriptor graph = operation_graph(&b);
	if (b.ok) list(m, graph, CUDNN_HEUR_MODE_A);
	if (b.ok) list(m, graph, CUDNN_HEUR_MODE_FALLBACK);
	if (b.ok && !m->options) list(m, graph, CUDNN_HEUR_MODE_B);
	cudaGetLastError(); /* drops the errors of engines that failed */
	return m;
}

static bool is_aligned(const struct slp_conv_graph_at *at)
{
	const void *const all[] = {at->x, at->w, at->y, at->b, at->work};
	uintptr_t bits = 0;
	for (const void *p : all) bits |= (uintptr_t)p;
	return bits % SLP_DNN_ALIGNMENT == 0;
}

/* The entry of these sizes, made now if necessary; NULL: there is none, and a CUDA graph is recorded. */
static struct planned *find(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at)
{
	struct planned **first = &cache.bucket[bucket_of(f)];
	if (!is_aligned(at)) return NULL;
	for (struct planned *m = *first; m; m = m->next)
		if (!memcmp(&m->key, f, sizeof *f)) return m;
	return slp_dnn_is_recorded(at->stream) ? NULL : make(f, first);
}

/* ---- choosing --------------------------------------------------------------------------------------------------- */

int slp_conv_graph_count(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at)
{
	const struct planned *m = find(f, at);
	return m ? m->options : 0;
}

void slp_conv_graph_name(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at, int i,
                         char to[SLP_CONV_NAME])
{
	const struct planned *m = find(f, at);
	to[0] = '\0';
	if (m && i < m->options)
		snprintf(to, SLP_CONV_NAME, "engine %" PRId64 " %" PRIx64, m->option[i].engine, m->option[i].knobs);
}

bool slp_conv_graph_choose(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at, int i)
{
	struct planned *m = find(f, at);
	if (!m || i >= m->options || m->option[i].refused || (!m->option[i].plan && slp_dnn_is_recorded(at->stream)))
		return false;
	if (!make_plan(m, &m->option[i])) return false;
	m->chosen = i;
	return true;
}

/* Keeps its plan, and drops the others. */
void slp_conv_graph_settle(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at)
{
	struct planned *m = find(f, at);
	for (int i = 0; m && i < m->options; i++)
		if (i != m->chosen) m->option[i].forget();
}

/* The first usable option, if none was chosen. */
static bool has_plan(struct planned *m, const struct slp_conv_graph_at *at)
{
	if (!m) return false;
	for (int i = 0; m->chosen == NOTHING && i < m->options && !slp_dnn_is_recorded(at->stream); i++) {
		if (make_plan(m, &m->option[i])) m->chosen = i;
		else m->option[i].forget();
	}
	return m->chosen != NOTHING && m->option[m->chosen].plan;
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static bool execute(const struct planned *m, descriptor plan, const struct slp_conv_graph_at *at)
{
	const int64_t numbers[] = {X, W, Y, B}, n = m->key.bias ? 4 : 3;
	const void *const pointers[] = {at->x, at->w, at->y, at->b};
	return slp_dnn_execute((cudnnHandle_t)m->key.handle, plan, n, numbers, pointers, at->work);
}

bool slp_conv_graph_can(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at)
{
	return has_plan(find(f, at), at);
}

/* A plan that failed once is not tried again. An error of a CUDA launch stays, for the caller to report. */
bool slp_conv_graph_run(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at)
{
	struct planned *m = find(f, at);
	if (!has_plan(m, at)) return false;
	struct option *o = &m->option[m->chosen];
	if (execute(m, o->plan, at)) return true;
	o->forget();
	return false;
}
