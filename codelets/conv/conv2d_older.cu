/* One of the three passes of a convolution by cuDNN's older interface, in all floating types.
 *
 * It proposes algorithms, best first.  Options are those that are deterministic, round no more than sl_config.tf32
 * allows (conv2d_notes.cuh), and work in the memory that the operation has (conv2d.c: workspace).  Descriptions and
 * choices are kept by the thread that made them. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "alloc.h"
#include "conv2d_graph.h"
#include "conv2d_notes.cuh"

enum { CACHE = 64, PROPOSALS = 8 };

struct option {
	int algorithm;
	cudnnMathType_t math;
	size_t bytes;
};

struct made {
	struct slp_conv_graph key;
	uint64_t used; /* 0: never */
	cudnnTensorDescriptor_t x, y;
	cudnnFilterDescriptor_t w;
	cudnnConvolutionDescriptor_t conv;
	struct option option[PROPOSALS];
	int options, chosen;
	cudnnStatus_t status; /* of descriptions and proposals, or of the last run */

	void clear()
	{
		if (x) slp_dnn.cudnnDestroyTensorDescriptor(x);
		if (y) slp_dnn.cudnnDestroyTensorDescriptor(y);
		if (w) slp_dnn.cudnnDestroyFilterDescriptor(w);
		if (conv) slp_dnn.cudnnDestroyConvolutionDescriptor(conv);
		memset(this, 0, sizeof *this);
	}
};

struct cache {
	struct made made[CACHE];
	uint64_t clock;
};

/* Allocated, because the thread's own memory would take space from its stack. */
static thread_local struct held {
	struct cache *cache; /* NULL: not yet, or no memory */

	~held()
	{
		if (!cache) return;
		for (struct made &m : cache->made) m.clear();
		free(cache);
	}
} held;

/* ---- descriptions and options ----------------------------------------------------------------------------------- */

static cudnnMathType_t math_of(const struct made *m)
{
	enum slp_precision p = slp_conv_precision(&m->key);
	return p == SLP_BY_HALVES ? CUDNN_TENSOR_OP_MATH : p == SLP_BY_TF32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

static cudnnStatus_t describe(struct made *m)
{
	const struct slp_conv &c = m->key.c;
	cudnnDataType_t type = (cudnnDataType_t)m->key.type;
	cudnnTensorFormat_t order = m->key.nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
	cudnnDataType_t sums = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
	cudnnStatus_t s = slp_dnn.cudnnCreateTensorDescriptor(&m->x);
	if (s == CUDNN_STATUS_SUCCESS) s = slp_dnn.cudnnCreateTensorDescriptor(&m->y);
	if (s == CUDNN_STATUS_SUCCESS) s = slp_dnn.cudnnCreateFilterDescriptor(&m->w);
	if (s == CUDNN_STATUS_SUCCESS) s = slp_dnn.cudnnCreateConvolutionDescriptor(&m->conv);
	if (s == CUDNN_STATUS_SUCCESS)
		s = slp_dnn.cudnnSetTensor4dDescriptor(m->x, order, type, (int)c.n, (int)c.ic, (int)c.ih, (int)c.iw);
	if (s == CUDNN_STATUS_SUCCESS)
		s = slp_dnn.cudnnSetTensor4dDescriptor(m->y, order, type, (int)c.n, (int)c.oc, (int)c.oh, (int)c.ow);
	if (s == CUDNN_STATUS_SUCCESS)
		s = slp_dnn.cudnnSetFilter4dDescriptor(m->w, type, order, (int)c.oc, (int)(c.ic / c.groups), (int)c.kh,
		                                       (int)c.kw);
	if (s == CUDNN_STATUS_SUCCESS)
		s = slp_dnn.cudnnSetConvolution2dDescriptor(m->conv, (int)c.ph, (int)c.pw, (int)c.sh, (int)c.sw,
		                                            (int)c.dh, (int)c.dw, CUDNN_CROSS_CORRELATION, sums);
	if (s == CUDNN_STATUS_SUCCESS) s = slp_dnn.cudnnSetConvolutionGroupCount(m->conv, (int)c.groups);
	if (s == CUDNN_STATUS_SUCCESS) s = slp_dnn.cudnnSetConvolutionMathType(m->conv, math_of(m));
	return s;
}

/* Keeps the proposals that are usable. */
template <class P> static void take(struct made *m, const P *proposals, int count)
{
	for (int i = 0; m->status == CUDNN_STATUS_SUCCESS && i < count; i++) {
		const P &p = proposals[i];
		if (p.status != CUDNN_STATUS_SUCCESS || p.memory > m->key.limit) continue;
		if (!slp_notes_may(slp_conv_precision(&m->key), slp_notes_of(p, m->key.c.kh, m->key.c.kw))) continue;
		m->option[m->options++] = {(int)p.algo, p.mathType, p.memory};
	}
}

static void propose(struct made *m)
{
	int n = 0;
	cudnnHandle_t h = m->key.handle;
	if (m->key.pass == SLP_CONV_FORWARD) {
		cudnnConvolutionFwdAlgoPerf_t p[PROPOSALS];
		m->status =
		        slp_dnn.cudnnGetConvolutionForwardAlgorithm_v7(h, m->x, m->w, m->conv, m->y, PROPOSALS, &n, p);
		take(m, p, n);
	} else if (m->key.pass == SLP_CONV_DATA) {
		cudnnConvolutionBwdDataAlgoPerf_t p[PROPOSALS];
		m->status = slp_dnn.cudnnGetConvolutionBackwardDataAlgorithm_v7(h, m->w, m->y, m->conv, m->x, PROPOSALS,
		                                                                &n, p);
		take(m, p, n);
	} else {
		cudnnConvolutionBwdFilterAlgoPerf_t p[PROPOSALS];
		m->status = slp_dnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7(h, m->x, m->y, m->conv, m->w,
		                                                                  PROPOSALS, &n, p);
		take(m, p, n);
	}
}

static bool choose(struct made *m, int i)
{
	if (i >= m->options) return false;
	m->chosen = i;
	if (slp_conv_precision(&m->key) == SLP_PRECISE) return true; /* CUDNN_FMA_MATH stays */
	return slp_dnn.cudnnSetConvolutionMathType(m->conv, m->option[i].math) == CUDNN_STATUS_SUCCESS;
}

/* The entry of these sizes, made now if necessary in place of the least recently used one. */
static struct made *find(const struct slp_conv_graph *f)
{
	static struct made none; /* it stays as it is: no options */
	if (!held.cache) held.cache = (struct cache *)slp_try_calloc(1, sizeof *held.cache);
	if (!held.cache) {
		none.status = CUDNN_STATUS_ALLOC_FAILED;
		return &none;
	}
	struct made *oldest = &held.cache->made[0];
	for (struct made &m : held.cache->made) {
		if (m.used && !memcmp(&m.key, f, sizeof *f)) {
			m.used = ++held.cache->clock;
			return &m;
		}
		if (m.used < oldest->used) oldest = &m;
	}
	oldest->clear();
	oldest->key = *f;
	oldest->used = ++held.cache->clock;
	oldest->status = describe(oldest);
	if (oldest->status == CUDNN_STATUS_SUCCESS) propose(oldest);
	if (!choose(oldest, 0)) oldest->options = 0;
	return oldest;
}

/* ---- the interface ----------------------------------------------------------------------------------------------- */

int slp_conv_older_count(const struct slp_conv_graph *f, const struct slp_conv_graph_at *)
{
	return find(f)->options;
}

void slp_conv_older_name(const struct slp_conv_graph *f, const struct slp_conv_graph_at *, int i,
                         char to[SLP_CONV_NAME])
{
	const struct made *m = find(f);
	to[0] = '\0';
	if (i < m->options) snprintf(to, SLP_CONV_NAME, "algorithm %d %d", m->option[i].algorithm, m->option[i].math);
}

bool slp_conv_older_choose(const struct slp_conv_graph *f, const struct slp_conv_graph_at *, int i)
{
	return choose(find(f), i);
}

void slp_conv_older_settle(const struct slp_conv_graph *, const struct slp_conv_graph_at *)
{
}

bool slp_conv_older_can(const struct slp_conv_graph *f, const struct slp_conv_graph_at *)
{
	return find(f)->options > 0;
}

const char *slp_conv_older_why(const struct slp_conv_graph *f, const struct slp_conv_graph_at *)
{
	const struct made *m = find(f);
	return m->status == CUDNN_STATUS_SUCCESS ? "no deterministic algorithm fits the workspace"
	                                         : slp_dnn.cudnnGetErrorString(m->status);
}

/* cuDNN's factors have the type of the computation. */
static cudnnStatus_t execute(const struct made *m, const struct slp_conv_graph_at *at, const void *one,
                             const void *zero)
{
	const struct option &o = m->option[m->chosen];
	if (m->key.pass == SLP_CONV_FORWARD)
		return slp_dnn.cudnnConvolutionForward(m->key.handle, one, m->x, at->x, m->w, at->w, m->conv,
		                                       (cudnnConvolutionFwdAlgo_t)o.algorithm, at->work, o.bytes, zero,
		                                       m->y, (void *)at->y);
	if (m->key.pass == SLP_CONV_DATA)
		return slp_dnn.cudnnConvolutionBackwardData(m->key.handle, one, m->w, at->w, m->y, at->y, m->conv,
		                                            (cudnnConvolutionBwdDataAlgo_t)o.algorithm, at->work,
		                                            o.bytes, zero, m->x, (void *)at->x);
	return slp_dnn.cudnnConvolutionBackwardFilter(m->key.handle, one, m->x, at->x, m->y, at->y, m->conv,
	                                              (cudnnConvolutionBwdFilterAlgo_t)o.algorithm, at->work, o.bytes,
	                                              zero, m->w, (void *)at->w);
}

bool slp_conv_older_run(const struct slp_conv_graph *f, const struct slp_conv_graph_at *at)
{
	struct made *m = find(f);
	float one = 1, zero = 0;
	double wide_one = 1, wide_zero = 0;
	bool wide = f->type == CUDNN_DATA_DOUBLE;
	if (m->options == 0) return false;
	m->status = execute(m, at, wide ? (const void *)&wide_one : &one, wide ? (const void *)&wide_zero : &zero);
	if (m->status == CUDNN_STATUS_NOT_SUPPORTED) m->options = 0;
	return m->status == CUDNN_STATUS_SUCCESS;
}
