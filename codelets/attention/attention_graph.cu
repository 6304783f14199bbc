/* Attention of half types as one operation graph of cuDNN's, forward or back: tensor cores compute, and no scores of all
 * queries and keys are kept.  Back, cuDNN has what goes back to the scores in its workspace, in the half type: so its
 * sums have one order.  As many heads go at once as have room there.
 *
 * A mask is added to the scores, which are then at least LEAST: so no sum of exponentials has infinities to subtract.  Queries
 * that see no key are set right after that, and before the gradients.
 *
 * Taken is the first plan that the heuristics propose.  Where there is none, and for widths or addresses that tensor
 * cores do not take, the caller has another way.  Plans are kept by the thread that made them; none is made while a
 * CUDA graph is recorded. */
#include <cfloat>
#include <cstdlib>
#include <cstring>

#include "attention.h"
#include "common/forget.h"
#include "op.h"
#include "common/dnn_plan.cuh"
#include "common/gpu.cuh"

enum { Q = 1, K, V, Y, LOGS, DY, DQ, DK, DV, SUMS, SCALE, HIDDEN, ONE, MASK, LEAST, WITHIN };
enum { PROPOSALS = 16, NOTES = 32 };

/* What a hidden key's score is at least. Engines may multiply it by log2(e). */
static const float least_score = -FLT_MAX / 4;

/* The key of a plan. Compared as bytes. */
struct wanted {
	cudnnHandle_t handle;
	int64_t type, back, causal, masked;
	int64_t batch, heads, t, s, d, dv;
	slp_head_steps q, k, v, y, mask; /* of the mask, 0 where it is the same for all */
	size_t limit;
};

/* plan NULL: none is usable. A plan that failed stays, because a CUDA graph may hold its kernels. */
struct known {
	wanted key;
	slp_dnn_owner own;
	slp_dnn_descriptor config, plan;
	bool fails;
	known *next;
};

static thread_local known *all_known;

void slp_attention_forget(void)
{
	while (all_known) {
		known *k = all_known;
		all_known = k->next;
		slp_dnn_drop(k->plan);
		slp_dnn_drop(k->config);
		k->own.clear();
		free(k);
	}
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

struct four {
	int64_t at[4];
};

static four swapped(four x)
{
	int64_t row = x.at[2];
	x.at[2] = x.at[3];
	x.at[3] = row;
	return x;
}

/* Builds the graph: operations in their order, tensors by number; those from WITHIN on are internal to it. */
struct operations : slp_dnn_builder {
	const wanted &w;
	slp_dnn_descriptor ops[32];
	int nops;
	int64_t number;
	four pairs, pair_steps, rows, row_steps; /* a number for each query and key, or for each query */

	operations(known *k) : slp_dnn_builder{&k->own, true}, w(k->key), nops(0), number(WITHIN)
	{
		pairs = {w.batch, w.heads, w.t, w.s};
		pair_steps = {w.heads * w.t * w.s, w.t * w.s, w.s, 1};
		rows = {w.batch, w.heads, w.t, 1};
		row_steps = {w.heads * w.t, w.t, 1, 1};
	}
	slp_dnn_descriptor tensor(int64_t id, cudnnDataType_t type, four dims, four steps, bool by_value = false)
	{
		const int64_t alignment = SLP_DNN_ALIGNMENT;
		bool within = id >= WITHIN;
		slp_dnn_descriptor d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
		set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
		set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
		set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims.at);
		set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, steps.at);
		set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
		set(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &within);
		if (by_value) set(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
		return finished(d);
	}
	/* An operand: vectors of queries or keys; with `across`, the last axes swapped. */
	slp_dnn_descriptor operand(int64_t id, const slp_head_steps &o, int64_t places, int64_t width,
	                           bool across = false)
	{
		four dims = {w.batch, w.heads, places, width}, steps = {o.batch, o.head, o.row, 1};
		return tensor(id, (cudnnDataType_t)w.type, across ? swapped(dims) : dims,
		              across ? swapped(steps) : steps);
	}
	slp_dnn_descriptor of_pairs(cudnnDataType_t type = CUDNN_DATA_FLOAT)
	{
		return tensor(number++, type, pairs, pair_steps);
	}
	slp_dnn_descriptor of_rows(int64_t id = 0)
	{
		return tensor(id ? id : number++, CUDNN_DATA_FLOAT, rows, row_steps);
	}
	slp_dnn_descriptor scalar(int64_t id)
	{
		return tensor(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, true);
	}
	void add(slp_dnn_descriptor op)
	{
		finished(op);
		ok = ok && nops < (int)(sizeof ops / sizeof *ops);
		if (ok) ops[nops++] = op;
	}
	slp_dnn_descriptor multiply(slp_dnn_descriptor a, slp_dnn_descriptor b, slp_dnn_descriptor c)
	{
		cudnnDataType_t type = CUDNN_DATA_FLOAT;
		slp_dnn_descriptor how = make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
		set(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
		finished(how);
		slp_dnn_descriptor op = make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
		set(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
		set(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
		set(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
		set(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
		add(op);
		return c;
	}
	/* y = mode(x, b), or with t where it is true x, else b; axis: of an index */
	slp_dnn_descriptor pointwise(cudnnPointwiseMode_t mode, slp_dnn_descriptor x, slp_dnn_descriptor b,
	                             slp_dnn_descriptor y, cudnnDataType_t type = CUDNN_DATA_FLOAT, int64_t axis = -1,
	                             slp_dnn_descriptor t = NULL)
	{
		slp_dnn_descriptor how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
		set(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
		set(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
		if (axis >= 0) set(how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
		finished(how);
		slp_dnn_descriptor op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
		set(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
		set(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
		if (b) set(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
		if (t) set(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
		set(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
		add(op);
		return y;
	}
	slp_dnn_descriptor reduce(cudnnReduceTensorOp_t with, slp_dnn_descriptor x, slp_dnn_descriptor y)
	{
		cudnnDataType_t type = CUDNN_DATA_FLOAT;
		slp_dnn_descriptor how = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
		set(how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &with);
		set(how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
		finished(how);
		slp_dnn_descriptor op = make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
		set(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
		set(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
		set(op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
		add(op);
		return y;
	}
	/* y is x with its last axes swapped. */
	slp_dnn_descriptor reshape(slp_dnn_descriptor x, slp_dnn_descriptor y)
	{
		slp_dnn_descriptor op = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
		set(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
		set(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
		add(op);
		return y;
	}
	slp_dnn_descriptor turned(slp_dnn_descriptor x)
	{
		return reshape(x, tensor(number++, (cudnnDataType_t)w.type, swapped(pairs), swapped(pair_steps)));
	}
	/* x if a query sees the key, else a very small number. */
	slp_dnn_descriptor seen(slp_dnn_descriptor x)
	{
		if (!w.causal) return x;
		slp_dnn_descriptor query =
		        pointwise(CUDNN_POINTWISE_GEN_INDEX, x, NULL, of_pairs(CUDNN_DATA_INT32), CUDNN_DATA_INT32, 2);
		slp_dnn_descriptor key =
		        pointwise(CUDNN_POINTWISE_GEN_INDEX, x, NULL, of_pairs(CUDNN_DATA_INT32), CUDNN_DATA_INT32, 3);
		slp_dnn_descriptor sees =
		        pointwise(CUDNN_POINTWISE_CMP_GE, query, key, of_pairs(CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN);
		return pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, scalar(HIDDEN), of_pairs(), CUDNN_DATA_FLOAT, -1,
		                 sees);
	}
	/* x plus the mask. */
	slp_dnn_descriptor masked(slp_dnn_descriptor x)
	{
		if (!w.masked) return x;
		const slp_head_steps &m = w.mask;
		four dims = {m.batch ? w.batch : 1, m.head ? w.heads : 1, m.row ? w.t : 1, w.s}, steps = {0, 0, w.s, 1};
		steps.at[1] = m.head ? m.head : dims.at[2] * w.s;
		steps.at[0] = m.batch ? m.batch : dims.at[1] * steps.at[1];
		x = pointwise(CUDNN_POINTWISE_ADD, x, tensor(MASK, (cudnnDataType_t)w.type, dims, steps), of_pairs());
		return pointwise(CUDNN_POINTWISE_MAX, x, scalar(LEAST), of_pairs());
	}
	void forward()
	{
		slp_dnn_descriptor x = multiply(operand(Q, w.q, w.t, w.d), operand(K, w.k, w.s, w.d, true), of_pairs());
		x = seen(masked(pointwise(CUDNN_POINTWISE_MUL, x, scalar(SCALE), of_pairs())));
		slp_dnn_descriptor most = reduce(CUDNN_REDUCE_TENSOR_MAX, x, of_rows());
		x = pointwise(CUDNN_POINTWISE_SUB, x, most, of_pairs());
		x = pointwise(CUDNN_POINTWISE_EXP, x, NULL, of_pairs());
		slp_dnn_descriptor sum = reduce(CUDNN_REDUCE_TENSOR_ADD, x, of_rows());
		slp_dnn_descriptor log = pointwise(CUDNN_POINTWISE_LOG, sum, NULL, of_rows());
		pointwise(CUDNN_POINTWISE_ADD, most, log, of_rows(LOGS));
		x = pointwise(CUDNN_POINTWISE_DIV, x, sum, of_pairs((cudnnDataType_t)w.type));
		multiply(x, operand(V, w.v, w.s, w.dv), operand(Y, w.y, w.t, w.dv));
	}
	/* sums = dy · y of each query.  The strides of x overlap, as in the graph that an H100 has run: cuDNN lays out what is
	 * within a graph itself. */
	slp_dnn_descriptor weigh(slp_dnn_descriptor dy)
	{
		four dims = {w.batch, w.heads, w.t, w.dv},
		     steps = {w.heads * w.t * w.dv, w.t * w.dv, w.heads * w.dv, 1};
		slp_dnn_descriptor x = tensor(number++, CUDNN_DATA_FLOAT, dims, steps);
		pointwise(CUDNN_POINTWISE_MUL, dy, operand(Y, w.y, w.t, w.dv), x);
		x = reduce(CUDNN_REDUCE_TENSOR_ADD, x, of_rows());
		return pointwise(CUDNN_POINTWISE_MUL, x, scalar(ONE), of_rows(SUMS));
	}
	void backward()
	{
		slp_dnn_descriptor q = operand(Q, w.q, w.t, w.d), k = operand(K, w.k, w.s, w.d, true);
		slp_dnn_descriptor dy = operand(DY, w.y, w.t, w.dv), sums = weigh(dy);
		slp_dnn_descriptor x = multiply(q, k, of_pairs());
		x = masked(pointwise(CUDNN_POINTWISE_MUL, x, scalar(SCALE), of_pairs()));
		x = seen(pointwise(CUDNN_POINTWISE_SUB, x, of_rows(LOGS), of_pairs()));
		slp_dnn_descriptor share = pointwise(CUDNN_POINTWISE_EXP, x, NULL, of_pairs());
		multiply(turned(share), dy, operand(DV, w.v, w.s, w.dv));
		x = multiply(dy, operand(V, w.v, w.s, w.dv, true), of_pairs());
		x = pointwise(CUDNN_POINTWISE_SUB, x, sums, of_pairs());
		x = pointwise(CUDNN_POINTWISE_MUL, x, share, of_pairs());
		x = pointwise(CUDNN_POINTWISE_MUL, x, scalar(SCALE), of_pairs());
		multiply(turned(x), q, operand(DK, w.k, w.s, w.d));
		multiply(x, reshape(k, operand(number++, w.k, w.s, w.d)), operand(DQ, w.q, w.t, w.d));
	}
	slp_dnn_descriptor all()
	{
		if (w.back) backward();
		else forward();
		return graph(w.handle, nops, ops);
	}
};

/* Whether the engine is deterministic, and sums products in float32. */
static bool is_exact(slp_dnn_descriptor config)
{
	cudnnBackendNumericalNote_t notes[NOTES];
	int64_t n = 0;
	slp_dnn_descriptor engine = slp_dnn_new(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
	bool good = engine &&
	            slp_dnn_get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) &&
	            slp_dnn_get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, NOTES, &n, notes);
	for (int64_t i = 0; good && i < n; i++)
		good = i < NOTES && notes[i] != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC &&
		       notes[i] != CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS &&
		       notes[i] != CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
	slp_dnn_drop(engine);
	return good;
}

/* The plan of the best engine that is deterministic and fits in the workspace. */
static void make_plan(known *k)
{
	slp_dnn_descriptor configs[PROPOSALS];
	operations o(k);
	slp_dnn_descriptor graph = o.all();
	int64_t n = o.ok ? slp_dnn_propose(graph, CUDNN_HEUR_MODE_A, PROPOSALS, configs) : 0;
	for (int64_t i = 0; i < n; i++) {
		if (!k->plan && is_exact(configs[i])) k->plan = slp_dnn_plan(k->key.handle, configs[i], k->key.limit);
		if (k->plan && !k->config) k->config = configs[i];
		else slp_dnn_drop(configs[i]);
	}
	cudaGetLastError(); /* drops the errors of engines that failed */
}

/* The plan for this key, made now if there was none; NULL: there is none, and none can be made now. */
static known *find(const wanted &key, bool may_make)
{
	for (known *k = all_known; k; k = k->next)
		if (!memcmp(&k->key, &key, sizeof key)) return k;
	known *k = may_make ? (known *)slp_try_calloc(1, sizeof *k) : NULL;
	if (!k) return NULL;
	k->key = key;
	k->next = all_known;
	all_known = k;
	make_plan(k);
	return k;
}

/* ---- queries that see no key ------------------------------------------------------------------------------------- */

/* The operands of a masked call; heads from one on. */
struct unseen {
	slp_attention a;
	const uint16_t *mask;
	uint16_t hidden; /* what hides a key in the mask: -infinity, in the half type */
	uint16_t *y;
	float *logs;
	template <class F> void emu_pointers(F f)
	{
		f(mask), f(y), f(logs);
	}
};

static __device__ inline bool sees_none(const unseen &w, int64_t h, int64_t i)
{
	const uint16_t *row = w.mask + slp_attention_mask(&w.a, h) + i * w.a.mask_row;
	for (int64_t j = 0; j < slp_attention_seen(&w.a, i); j++)
		if (row[j] != w.hidden) return false;
	return true;
}

/* Their results are zeros, and their logarithms -infinity; only where all scores were raised masks are read. */
static __global__ void clear_unseen(unseen w, float least)
{
	SLP_GRID_STRIDE(row, w.a.heads * w.a.t)
	{
		int64_t h = row / w.a.t, i = row % w.a.t;
		if (!(w.logs[row] <= least / 2) || !sees_none(w, h, i)) continue;
		w.logs[row] = -INFINITY;
		for (int64_t c = 0; c < w.a.dv; c++) w.y[slp_attention_at(&w.a, &w.a.y, h, i) + c] = 0;
	}
}

/* Logarithms from which no score is large: +infinity for -infinity. */
static __global__ void raise_unseen(const float *logs, float *to, int64_t n)
{
	SLP_GRID_STRIDE(i, n) to[i] = logs[i] == -INFINITY ? INFINITY : logs[i];
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* A call, and the operands of its heads. */
struct job {
	const struct slp_kernel *k;
	const slp_attention *a;
	wanted key;
	bool back;
	char *work; /* sums and raised logarithms of queries, then cuDNN's */
};

static size_t sums_bytes(const job &j)
{
	return slp_attention_sums_bytes(j.key.batch * j.key.heads * j.key.t);
}

static int mask_input(const job &j)
{
	return j.back ? 6 : 3;
}

/* The logarithms of these heads, as the gradients' graph reads them. */
static const float *raised(const job &j, int64_t head)
{
	const float *logs = (const float *)j.k->in[5].ptr + head * j.a->t;
	float *to = (float *)(j.work + sums_bytes(j));
	int64_t n = j.key.batch * j.key.heads * j.key.t;
	if (!j.key.masked) return logs;
	SLP_LAUNCH(raise_unseen, slp_grid(n), SLP_BLOCK, 0, j.k->stream, logs, to, n);
	return to;
}

static void clear(const job &j)
{
	uint16_t hidden = j.key.type == CUDNN_DATA_BFLOAT16 ? 0xff80 : 0xfc00;
	unseen w = {*j.a, (const uint16_t *)j.k->in[mask_input(j)].ptr, hidden, (uint16_t *)j.k->out[0].ptr,
	            (float *)j.k->out[1].ptr};
	SLP_LAUNCH(clear_unseen, slp_grid(j.a->heads * j.a->t), SLP_BLOCK, 0, j.k->stream, w, least_score);
}

static const char *in(const job &j, int i, int64_t element)
{
	return (const char *)j.k->in[i].ptr + (size_t)element * sl_dtype_size(j.k->in[i].type.dtype);
}

static char *out(const job &j, int i, int64_t element)
{
	return (char *)j.k->out[i].ptr + (size_t)element * sl_dtype_size(j.k->out[i].type.dtype);
}

enum { MOST_OPERANDS = 16 };
struct pack {
	int64_t numbers[MOST_OPERANDS];
	const void *pointers[MOST_OPERANDS];
	int count;
	uintptr_t bits; /* of all addresses on the device */

	void add(int64_t number, const void *p, bool device = true)
	{
		numbers[count] = number;
		pointers[count++] = p;
		if (device) bits |= (uintptr_t)p;
	}
};

/* The operands from this head on. */
static void fill(pack *p, const job &j, int64_t head)
{
	const slp_attention &a = *j.a;
	int64_t q = slp_attention_at(&a, &a.q, head, 0), y = slp_attention_at(&a, &a.y, head, 0);
	int64_t k = slp_attention_at(&a, &a.k, head, 0), v = slp_attention_at(&a, &a.v, head, 0);
	p->add(Q, in(j, j.back, q));
	p->add(K, in(j, j.back + 1, k));
	p->add(V, in(j, j.back + 2, v));
	p->add(Y, j.back ? in(j, 4, y) : out(j, 0, y));
	p->add(LOGS, j.back ? (const void *)raised(j, head) : out(j, 1, head * a.t));
	if (j.key.masked) p->add(MASK, in(j, mask_input(j), slp_attention_mask(&a, head)));
	if (!j.back) return;
	p->add(DY, in(j, 0, y));
	p->add(DQ, out(j, 0, q));
	p->add(DK, out(j, 1, k));
	p->add(DV, out(j, 2, v));
	p->add(SUMS, j.work);
}

static bool execute(const job &j, slp_dnn_descriptor plan, const pack &p)
{
	size_t sums = j.back ? 2 * sums_bytes(j) : 0;
	return slp_dnn_execute(j.key.handle, plan, p.count, p.numbers, p.pointers, j.work + sums);
}

/* Computes some heads, from this one on. A plan that failed once is not tried again. */
static bool run(job *j, int64_t head, int64_t batch, int64_t heads)
{
	float scale = (float)j->a->scale, hidden = -FLT_MAX, one = 1, least = least_score;
	pack p = {};
	j->key.batch = batch, j->key.heads = heads;
	known *found = find(j->key, !slp_dnn_is_recorded(j->k->stream));
	if (!found || !found->plan || found->fails) return false;
	fill(&p, *j, head);
	p.add(SCALE, &scale, false);
	if (j->key.causal) p.add(HIDDEN, &hidden, false);
	if (j->key.masked) p.add(LEAST, &least, false);
	if (j->back) p.add(ONE, &one, false);
	if (p.bits % SLP_DNN_ALIGNMENT) return false;
	found->fails = !execute(*j, found->plan, p);
	return !found->fails;
}

/* Heads that follow each other without gaps count as `inner` of a batch. */
static slp_head_steps of_batches(const slp_attention &a, slp_head_steps o, int64_t inner)
{
	if (a.inner == 1) o.head = o.batch, o.batch *= inner;
	return o;
}

/* The heads of a batch: all, unless masks differ between batches. */
static int64_t heads_of_batch(const slp_attention &a)
{
	return a.inner > 1 ? a.inner : a.masked && a.nlead > 1 ? a.lead[a.nlead - 1] : a.heads;
}

static slp_head_steps steps_of_mask(const slp_attention &a)
{
	if (!a.masked) return {};
	return {a.nlead > 1 ? a.mask_step[0] : 0, a.nlead > 0 ? a.mask_step[a.nlead - 1] : 0, a.mask_row};
}

/* Computes all heads, as many at once as fit: whole batches, or parts of one. */
static bool run_all(job *j)
{
	const slp_attention &a = *j->a;
	int64_t most = slp_attention_graph_heads(&a, j->back), inner = heads_of_batch(a), part;
#ifdef SLP_EMULATE
	if (j->back && most > 3 && a.heads < 16) most = 3; /* small cases have several parts, too */
#endif
	j->key.q = of_batches(a, a.q, inner), j->key.k = of_batches(a, a.k, inner);
	j->key.v = of_batches(a, a.v, inner), j->key.y = of_batches(a, a.y, inner);
	j->key.masked = a.masked, j->key.mask = steps_of_mask(a);
	for (int64_t h = 0; h < a.heads; h += part) {
		int64_t left = inner - h % inner;
		part = most < inner ? (left < most ? left : most)
		                    : (a.heads - h < most ? a.heads - h : most) / inner * inner;
		if (!(part < inner ? run(j, h, 1, part) : run(j, h, part / inner, inner))) return false;
	}
	if (a.masked && !j->back) clear(*j);
	return true;
}

/* Masks of heads in batches: of its type, with a step along each. */
static bool takes_mask(const struct slp_kernel *k, const slp_attention *a, bool back)
{
	return !a->masked || (a->nlead <= 2 && k->in[back ? 6 : 3].type.dtype == k->in[0].type.dtype);
}

static bool takes(const struct slp_kernel *k, const slp_attention *a, bool back)
{
	enum sl_dtype logs = back ? k->in[5].type.dtype : k->out[1].type.dtype;
	return slp_is_half(k->in[0].type.dtype) && logs == SL_FLOAT32 && takes_mask(k, a, back) && a->before == 0 &&
	       a->heads > 0 && a->t > 0 && a->s > 0 && slp_attention_suits_graph(a->d, a->dv) &&
	       slp_attention_graph_heads(a, back) > 0;
}

extern "C" bool slp_attention_by_graph(const struct slp_kernel *k, const struct slp_attention *a, bool back)
{
	if (!takes(k, a, back) || slp_cudnn_load()) return false;
	job j = {};
	j.k = k, j.a = a, j.back = back, j.work = (char *)k->scratch;
	j.key.handle = (cudnnHandle_t)slp_cudnn(k);
	if (!j.key.handle || !slp_cudnn_graph()) return false;
	j.key.type = k->in[0].type.dtype == SL_BFLOAT16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
	j.key.back = back, j.key.causal = a->causal;
	j.key.t = a->t, j.key.s = a->s, j.key.d = a->d, j.key.dv = a->dv;
	j.key.limit = slp_attention_graph_work(a, back);
	return run_all(&j);
}
