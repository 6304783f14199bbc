/* Convolution on GPUs by cuDNN, in TF32 where sl_config.tf32 allows that, else in the arithmetic of the data type; half
 * types on tensor cores, with sums in float32. It uses cuDNN's graph API, with bias and relu in the graph, if that has
 * a plan (conv2d_graph.cu), else an algorithm of the older interface (conv2d_older.cu). Half-type calls that neither
 * computes are declined, and the engine computes them in float32 (src/runtime/task/promote.c).
 *
 * Operands in other layouts or types are copied (conv2d_operands.cuh). Images in NHWC are computed in that layout, or
 * in the plain one if cuDNN refuses.
 *
 * That is the choice by heuristics. With SL_GPU_AUTOTUNE, all of these alternatives are timed when sizes occur for the
 * first time, and the fastest is kept (src/tune.h). */
#include <cstring>
#include "cuda_libs.h"
#include "op.h"
#include "starling/options.h"

#include "common/activation.h"
#include "common/last.cuh"
#include "common/tune.cuh"
#include "conv2d_operands.cuh"
#include "conv2d_ways.h"

enum { PARTS = 32 };

/* ---- bias ------------------------------------------------------------------------------------------------------- */

/* y = activation(y + b), b for each channel, whose elements are runs of `step`; b NULL: none. */
template <class T>
__global__ static void finish_kernel(T *y, const T *b, int64_t n, int64_t step, int64_t channels, int activation)
{
	typedef typename slp_number<T>::type N;
	SLP_GRID_STRIDE(i, n)
	{
		N v = y[i];
		y[i] = slp_activated<N>(b ? v + (N)b[i / step % channels] : v, activation);
	}
}

/* The gradient of the bias from the sums of all parts. */
template <class T> static __device__ inline void add_parts(const T *partial, slp_vector<T> db, int parts, int64_t c)
{
	T sum = 0;
	for (int p = 0; p < parts; p++) sum += partial[c * parts + p];
	db.set(c, sum);
}

/* partial[channel][part] = the sum of dy over the images of a part; the last block of a channel adds them. */
template <class S, class T> __global__ static void sum_parts(const S *dy, T *partial, slp_vector<T> db, int parts,
                                                             int64_t images, int64_t channels, int64_t plane,
                                                             unsigned *arrived)
{
	int64_t channel = blockIdx.x / parts, part = blockIdx.x % parts;
	int64_t first = part * images / parts, count = plane ? (part + 1) * images / parts - first : 0;
	if (plane == 0) plane = 1;
	int64_t next = blockDim.x / plane, rest = blockDim.x - next * plane; /* a step, without divisions */
	T sum = 0;
	for (int64_t image = threadIdx.x / plane, at = threadIdx.x - image * plane; image < count;) {
		sum += (T)dy[((first + image) * channels + channel) * plane + at];
		image += next, at += rest;
		if (at >= plane) image++, at -= plane;
	}
	sum = slp_block_reduce(sum, slp_sum_of(), (T)0);
	if (threadIdx.x == 0) partial[blockIdx.x] = sum;
	bool last = slp_arrives_last(arrived + channel, (unsigned)parts);
	if (last && threadIdx.x == 0) add_parts(partial, db, parts, channel);
}

enum { WIDE = 32, DEEP = SLP_BLOCK / WIDE }; /* channels of a block; rows that it takes at a time */

/* The same in NHWC, of `rows` places; grid (channels / WIDE, parts). */
template <class S, class T> __global__ static void sum_rows(const S *dy, T *partial, slp_vector<T> db, int64_t rows,
                                                            int64_t channels, unsigned *arrived)
{
	__shared__ T sums[DEEP][WIDE];
	int lane = (int)(threadIdx.x % WIDE), depth = (int)(threadIdx.x / WIDE), parts = (int)gridDim.y;
	int64_t c = blockIdx.x * (int64_t)WIDE + lane, part = blockIdx.y, end = (part + 1) * rows / parts;
	T sum = 0;
	for (int64_t i = part * rows / parts + depth; c < channels && i < end; i += DEEP)
		sum += (T)dy[i * channels + c];
	sums[depth][lane] = sum;
	__syncthreads();
	bool mine = depth == 0 && c < channels;
	for (int i = 1; i < DEEP && mine; i++) sum += sums[i][lane];
	if (mine) partial[c * parts + part] = sum;
	bool last = slp_arrives_last(arrived + blockIdx.x, gridDim.y);
	if (last && mine) add_parts(partial, db, parts, c);
}

/* The workspace is free again once the gradient of the weight, queued before, is done. Sums are of dy in the program's
 * layout, so their bits do not depend on the alternative that computed the weights. */
template <class T> static enum sl_status grad_bias(const struct slp_kernel *k, const struct operands<T> &o)
{
	const struct slp_conv &c = o.c;
	if (slp_size(&k->out[1]) == 0) return SL_OK;
	int parts = c.oc > SLP_ARRIVALS ? 1 : c.n < PARTS ? (int)c.n : PARTS;
	typedef typename slp_number<T>::type N;
	const struct slp_conv2d_attrs *t = slp_conv_attrs(k);
	bool nhwc = t->y_layout == SLP_LAYOUT_NHWC;
	bool whole = (nhwc || t->y_layout == SLP_LAYOUT_PLAIN) && !t->crop[0] && !t->crop[1] && !t->pool;
	const T *dy = whole ? (const T *)k->in[1].ptr : o.y;
	if ((size_t)(c.oc * parts) * sizeof(N) > o.limit)
		return slp_kernel_fail(k, SL_EUNSUPPORTED, "too many channels for the gradient of the bias");
	N *partial = (N *)o.work;
	unsigned *arrived = slp_arrivals(k);
	slp_vector<N> db = slp_vector<N>::of(&k->out[1]);
	if (!arrived) return SL_EKERNEL;
	if (whole && nhwc)
		SLP_LAUNCH((sum_rows<T, N>), dim3((unsigned)((c.oc + WIDE - 1) / WIDE), (unsigned)parts), SLP_BLOCK, 0,
		           k->stream, dy, partial, db, c.n * c.oh * c.ow, c.oc, arrived);
	else
		SLP_LAUNCH((sum_parts<T, N>), (unsigned)(c.oc * parts), SLP_BLOCK, 0, k->stream, dy, partial, db, parts,
		           c.n, c.oc, c.oh * c.ow, arrived);
	return slp_launched(k);
}

/* ---- the three operations --------------------------------------------------------------------------------------- */

static bool is_empty(const struct slp_conv &c)
{
	return c.n == 0 || c.ic == 0 || c.oc == 0 || c.ih == 0 || c.iw == 0;
}

static enum sl_status clear(const struct slp_kernel *k, void *to, int64_t elements, enum sl_dtype type)
{
	size_t bytes = (size_t)elements * sl_dtype_size(type);
	if (bytes) cudaMemsetAsync(to, 0, bytes, (cudaStream_t)k->stream);
	return slp_launched(k);
}

static cudnnDataType_t type_of(int64_t dtype)
{
	return dtype == SL_FLOAT64    ? CUDNN_DATA_DOUBLE
	       : dtype == SL_BFLOAT16 ? CUDNN_DATA_BFLOAT16
	       : dtype == SL_FLOAT16  ? CUDNN_DATA_HALF
	                              : CUDNN_DATA_FLOAT;
}

/* The arguments of cuDNN: the graph API includes bias and relu, and leaves other activations; the older interface
 * leaves all of that. */
struct asked {
	struct slp_conv_graph graph, older;
	struct slp_conv_graph_at at;
	bool by_graph; /* there is a graph API for it */
};

template <class T>
static struct asked asked_of(const struct slp_kernel *k, const struct operands<T> &o, enum slp_conv_pass pass)
{
	struct asked a;
	memset(&a, 0, sizeof a); /* padding too: they are compared as bytes */
	a.older.handle = is_empty(o.c) ? NULL : (cudnnHandle_t)slp_cudnn(k);
	a.older.c = o.c;
	a.older.limit = o.limit;
	a.older.pass = pass;
	a.older.nhwc = o.nhwc;
	a.older.type = type_of(k->in[0].type.dtype);
	bool half = slp_is_half(k->in[0].type.dtype);
	a.older.tensor_cores = half || (a.older.type == CUDNN_DATA_FLOAT && slp_tf32_convolutions());
	a.graph = a.older;
	a.graph.bias = o.b != NULL;
	a.graph.relu = slp_conv_attrs(k)->activation == SL_RELU;
	unsigned *arrivals = pass == SLP_CONV_WEIGHTS ? slp_arrivals(k) : NULL;
	a.at = {o.x, o.w, o.b, o.y, o.work, k->stream, arrivals};
	a.by_graph = a.graph.handle && a.graph.type != CUDNN_DATA_DOUBLE && slp_cudnn_graph();
	return a;
}

/* Adds the bias to the whole y, if the library has not, and applies the activation. */
template <class T> static enum sl_status finish(const struct slp_kernel *k, const struct operands<T> &o, bool bias)
{
	int64_t n = o.c.n * o.c.oc * o.c.oh * o.c.ow, step = o.nhwc ? 1 : o.c.oh * o.c.ow;
	int activation = slp_conv_attrs(k)->activation;
	if (n == 0 || (!bias && activation == SL_IDENTITY)) return SL_OK;
	SLP_LAUNCH(finish_kernel<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, o.y, (const T *)(bias ? o.b : NULL), n, step,
	           o.c.oc, activation);
	return slp_launched(k);
}

/* After cuDNN: the steps of a forward pass that it left. */
template <class T> static enum sl_status finished(const struct slp_kernel *k, const struct operands<T> &o,
                                                  enum slp_conv_pass pass, const struct asked &a, bool by_graph)
{
	if (pass != SLP_CONV_FORWARD || (by_graph && a.graph.relu)) return SL_OK;
	return finish<T>(k, o, !by_graph && o.b);
}

/* SL_EUNSUPPORTED, without a message, if another layout or type remains to be tried. */
template <class T>
static enum sl_status refuse(const struct slp_kernel *k, const struct operands<T> &o, const struct asked &a)
{
	if (!a.older.handle) return SL_EKERNEL; /* slp_cudnn has said why */
	bool other = o.nhwc || slp_is_half(k->in[0].type.dtype);
	if (other && !slp_conv_older_can(&a.older, &a.at)) return SL_EUNSUPPORTED;
	return slp_kernel_fail(k, SL_EKERNEL, "cuDNN: %s", slp_conv_older_why(&a.older, &a.at));
}

/* An empty sum: zeros. */
template <class T>
static enum sl_status clear_result(const struct slp_kernel *k, const struct operands<T> &o, enum slp_conv_pass pass)
{
	const struct slp_conv &c = o.c;
	int64_t x = c.n * c.ic * c.ih * c.iw, y = c.n * c.oc * c.oh * c.ow;
	enum sl_dtype type = k->in[0].type.dtype;
	if (pass == SLP_CONV_WEIGHTS) return clear(k, o.w, slp_size(&k->out[0]), type);
	return pass == SLP_CONV_DATA ? clear(k, o.x, x, type) : clear(k, o.y, y, type);
}

/* The arguments and functions of each alternative. */
static const struct interface {
	int (*count)(const struct slp_conv_graph *, const struct slp_conv_graph_at *);
	void (*name)(const struct slp_conv_graph *, const struct slp_conv_graph_at *, int, char *);
	bool (*choose)(const struct slp_conv_graph *, const struct slp_conv_graph_at *, int);
	void (*settle)(const struct slp_conv_graph *, const struct slp_conv_graph_at *);
	bool (*run)(const struct slp_conv_graph *, const struct slp_conv_graph_at *);
} interfaces[] = {
#define INTERFACE(name)                                                                                                \
	{                                                                                                              \
		slp_conv_##name##_count, slp_conv_##name##_name, slp_conv_##name##_choose, slp_conv_##name##_settle,   \
		        slp_conv_##name##_run                                                                          \
	}
        INTERFACE(graph),
        INTERFACE(older),
        INTERFACE(few),
#undef INTERFACE
};
enum { INTERFACES = sizeof interfaces / sizeof *interfaces };

static const struct slp_conv_graph *asked_by(const struct asked &a, int by)
{
	return by == SLP_BY_GRAPH ? &a.graph : &a.older;
}

/* Whether cuDNN supports this layout, as far as it has said. */
static bool takes(const struct asked &a)
{
	return (a.by_graph && slp_conv_graph_can(&a.graph, &a.at)) ||
	       (a.older.handle && slp_conv_older_can(&a.older, &a.at));
}

template <class T> static enum sl_status compute_by_heuristics(const struct slp_kernel *k, const struct operands<T> &o,
                                                               enum slp_conv_pass pass, const struct asked &a)
{
	if (slp_conv_few_can(&a.older, &a.at) && slp_conv_few_run(&a.older, &a.at)) return SL_OK;
	if (a.by_graph && slp_conv_graph_run(&a.graph, &a.at)) return finished<T>(k, o, pass, a, true);
	if (!a.older.handle || !slp_conv_older_run(&a.older, &a.at)) return refuse<T>(k, o, a);
	return finished<T>(k, o, pass, a, false);
}

template <class T> static enum sl_status compute(const struct slp_kernel *k, const struct operands<T> &o,
                                                 enum slp_conv_pass pass, const struct asked &a,
                                                 const struct slp_conv_way &way)
{
	if (is_empty(o.c)) {
		enum sl_status s = clear_result<T>(k, o, pass);
		return s == SL_OK ? finished<T>(k, o, pass, a, false) : s;
	}
	if (way.by == SLP_BY_HEURISTICS) return compute_by_heuristics<T>(k, o, pass, a);
	if (!interfaces[way.by].run(asked_by(a, way.by), &a.at)) return SL_EUNSUPPORTED;
	return finished<T>(k, o, pass, a, way.by == SLP_BY_GRAPH);
}

/* Before any operand is copied. */
template <class T>
static bool prepare(const struct operands<T> &o, const struct asked &a, const struct slp_conv_way &way)
{
	if (is_empty(o.c)) return true;
	if (way.by == SLP_BY_HEURISTICS) return !way.nhwc || takes(a);
	return interfaces[way.by].choose(asked_by(a, way.by), &a.at, way.option);
}

/* SL_EUNSUPPORTED: cuDNN refuses this alternative. */
template <class T>
static enum sl_status run_way(const struct slp_kernel *k, enum slp_conv_pass pass, const struct slp_conv_way &way)
{
	struct operands<T> o = operands_of<T>(k, pass, way.nhwc);
	struct asked a = asked_of<T>(k, o, pass);
	if (!prepare(o, a, way)) return SL_EUNSUPPORTED;
	enum sl_status s = stage<T>(k, o, pass, false);
	if (s == SL_OK) s = compute<T>(k, o, pass, a, way);
	if (s == SL_OK && pass == SLP_CONV_WEIGHTS)
		s = o.c.n == 0 ? clear(k, k->out[1].ptr, slp_size(&k->out[1]), k->out[1].type.dtype)
		               : grad_bias<T>(k, o);
	return s == SL_OK ? stage<T>(k, o, pass, true) : s;
}

template <class T> static enum sl_status run_by_heuristics(const struct slp_kernel *k, enum slp_conv_pass pass)
{
	const struct slp_conv_way nhwc = {SLP_BY_HEURISTICS, 0, true}, plain = {SLP_BY_HEURISTICS, 0, false};
	enum sl_status s = slp_conv_is_nhwc(k) ? run_way<T>(k, pass, nhwc) : SL_EUNSUPPORTED;
	return s == SL_EUNSUPPORTED ? run_way<T>(k, pass, plain) : s;
}

/* ---- the fastest way --------------------------------------------------------------------------------------------- */

/* Calls visit(way, its text) for all alternatives of a call, in each layout of images that it may have. */
template <class T, class F> static void each_way(const struct slp_kernel *k, enum slp_conv_pass pass, F visit)
{
	for (int nhwc = slp_conv_is_nhwc(k); nhwc >= 0; nhwc--) {
		struct operands<T> o = operands_of<T>(k, pass, nhwc);
		struct asked a = asked_of<T>(k, o, pass);
		for (int by = a.by_graph ? SLP_BY_GRAPH : SLP_BY_OLDER; by < INTERFACES; by++) {
			int n = interfaces[by].count(asked_by(a, by), &a.at);
			for (int i = 0; i < n; i++) {
				struct slp_conv_way way = {(enum slp_conv_by)by, i, nhwc != 0};
				char option[SLP_CONV_NAME], text[SLP_TUNE_TEXT];
				interfaces[by].name(asked_by(a, by), &a.at, i, option);
				slp_conv_way_text(&way, option, text);
				if (!visit(way, text)) return;
			}
		}
	}
}

/* Times all of them on the call's operands. Writes the fastest one's text; negative: none computes it. */
template <class T>
static double measure(const struct slp_kernel *k, enum slp_conv_pass pass, const char *key, char fastest[SLP_TUNE_TEXT])
{
	double best = -1;
	each_way<T>(k, pass, [&](const struct slp_conv_way &way, const char *text) {
		double us = slp_time_of(k, best, [&] { return run_way<T>(k, pass, way); });
		slp_tune_say(key, text, us);
		if (us >= 0 && (best < 0 || us < best)) {
			best = us;
			memcpy(fastest, text, SLP_TUNE_TEXT);
		}
		return true;
	});
	return best;
}

/* Prepares the alternative with that text, and drops the others' state. */
template <class T>
static bool settle(const struct slp_kernel *k, enum slp_conv_pass pass, const char *text, struct slp_conv_way *to)
{
	bool found = false;
	each_way<T>(k, pass, [&](const struct slp_conv_way &way, const char *other) {
		*to = way;
		found = !strcmp(text, other);
		return !found;
	});
	if (!found) return false;
	struct operands<T> o = operands_of<T>(k, pass, to->nhwc);
	struct asked a = asked_of<T>(k, o, pass);
	if (!prepare(o, a, *to)) return false;
	interfaces[to->by].settle(asked_by(a, to->by), &a.at);
	return true;
}

template <class T> static struct slp_conv_call call_of(const struct slp_kernel *k, enum slp_conv_pass pass)
{
	const struct slp_conv2d_attrs *t = slp_conv_attrs(k);
	struct operands<T> o = operands_of<T>(k, pass, slp_conv_is_nhwc(k));
	struct asked a = asked_of<T>(k, o, pass);
	struct slp_conv_call call;
	memset(&call, 0, sizeof call); /* padding too */
	call.f = a.graph;
	const int64_t how[] = {a.by_graph && slp_conv_graph_count(&a.graph, &a.at) > 0, /* operands lie well */
	                       t->x_layout == SLP_LAYOUT_N16, /* a bit a layout: files of earlier versions have these */
	                       t->y_layout == SLP_LAYOUT_N16,
	                       t->x_layout == SLP_LAYOUT_NC16,
	                       t->y_layout == SLP_LAYOUT_NC16,
	                       t->x_layout == SLP_LAYOUT_NHWC,
	                       t->y_layout == SLP_LAYOUT_NHWC,
	                       t->wide,
	                       pass == SLP_CONV_WEIGHTS && slp_size(&k->out[1]) > 0,
	                       t->crop[0] > 0,
	                       t->crop[1] > 0,
	                       t->activation != SL_IDENTITY};
	for (int64_t bit : how) call.how = call.how << 1 | bit;
	call.how = call.how << 2 | t->pool | (t->w_layout == SLP_LAYOUT_NHWC ? INT64_C(1) << 20 : 0);
	return call;
}

/* The alternative chosen by measurement, now or at an earlier start; while a CUDA graph is recorded, only by the
 * latter. */
template <class T> static struct slp_conv_way *find_way(const struct slp_kernel *k, enum slp_conv_pass pass)
{
	struct slp_conv_call call = call_of<T>(k, pass);
	struct slp_conv_way way = {SLP_BY_HEURISTICS, 0, false}, *known = slp_conv_known(&call);
	if (known || !slp_is_plain_run(k)) return known;
	char key[SLP_TUNE_KEY], text[SLP_TUNE_TEXT], mine[SLP_TUNE_TEXT];
	slp_conv_key_text(&call, key);
	if (!slp_tune_find(key, text) || !settle<T>(k, pass, text, &way)) {
		double us = measure<T>(k, pass, key, mine);
		memcpy(text, mine, sizeof text);
		if (us >= 0) slp_tune_keep(key, text, us);
		if (us < 0 || (!settle<T>(k, pass, text, &way) && !settle<T>(k, pass, mine, &way)))
			way.by = SLP_BY_HEURISTICS;
	}
	return slp_conv_note(&call, &way);
}

template <class T> static enum sl_status run(const struct slp_kernel *k, enum slp_conv_pass pass)
{
	struct slp_conv_way *way = slp_tune_wanted() ? find_way<T>(k, pass) : NULL;
	if (!way || way->by == SLP_BY_HEURISTICS) return run_by_heuristics<T>(k, pass);
	enum sl_status s = run_way<T>(k, pass, *way);
	if (s != SL_EUNSUPPORTED) return s;
	way->by = SLP_BY_HEURISTICS; /* it fails now: not again */
	return run_by_heuristics<T>(k, pass);
}

#define OPERATION(name, pass)                                                                                          \
	extern "C" enum sl_status slp_cuda_##name(const struct slp_kernel *k)                                          \
	{                                                                                                              \
		enum sl_status s = SL_EINTERNAL;                                                                       \
		slp_with_float(k->in[0].type.dtype, [&](auto zero) { s = run<decltype(zero)>(k, pass); });             \
		return s;                                                                                              \
	}
OPERATION(conv2d, SLP_CONV_FORWARD)
OPERATION(conv2d_grad_data, SLP_CONV_DATA)
OPERATION(conv2d_grad_weights, SLP_CONV_WEIGHTS)
