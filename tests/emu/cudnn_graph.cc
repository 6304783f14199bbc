/* Emulated GPUs: cuDNN's graph API as far as it is called: a convolution, then a bias, then relu, or a gradient of a
 * convolution, computed plainly; other graphs are in cudnn_operations.h.
 *
 * Descriptors are checked when they are finalized: nothing may be missing, of another type, or changed afterwards, and
 * tensors must fit together.  Engines are proposed as the real one does: the first ones are not deterministic, round
 * their factors, or want too much memory; what one has in the workspace is lost.  The sums are those of cudnn.cc, in
 * the same order. */
#include <cstring>
#include <map>
#include <vector>

#include "cudnn_computation.h"
#include "cudnn_handle.h"
extern "C" {
#include "internal.h"
}

static bool fails(enum emu_failure what)
{
	cudaError_t error;
	return emu_fails(what, &error);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------- */

struct attribute {
	cudnnBackendAttributeType_t type;
	std::vector<char> bytes;
};

struct node {
	cudnnBackendDescriptorType_t type;
	std::map<int, attribute> attributes;
	bool finished;
	int engine; /* of configurations and engines */
};

static size_t size_of(cudnnBackendAttributeType_t type)
{
	switch (type) {
	case CUDNN_TYPE_BOOLEAN: return sizeof(bool);
	case CUDNN_TYPE_INT64: return sizeof(int64_t);
	case CUDNN_TYPE_FLOAT: return sizeof(float);
	case CUDNN_TYPE_DOUBLE: return sizeof(double);
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR: return sizeof(void *);
	default: return sizeof(int); /* of an enum */
	}
}

static node *of(cudnnBackendDescriptor_t d)
{
	return (node *)d;
}

/* A value that must be there. */
template <class T> static const T *values(const node *n, int name, cudnnBackendAttributeType_t type, size_t count)
{
	auto found = n->attributes.find(name);
	if (found == n->attributes.end() || found->second.type != type) return NULL;
	return found->second.bytes.size() == count * sizeof(T) ? (const T *)found->second.bytes.data() : NULL;
}

static size_t count_of(const node *n, int name)
{
	auto found = n->attributes.find(name);
	return found == n->attributes.end() ? 0 : found->second.bytes.size() / size_of(found->second.type);
}

/* A finished descriptor of that type which is a value of another. */
static const node *part(const node *n, int name, cudnnBackendDescriptorType_t type, size_t at = 0)
{
	auto p = values<cudnnBackendDescriptor_t>(n, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count_of(n, name));
	const node *found = p && at < count_of(n, name) ? of(p[at]) : NULL;
	return found && found->finished && found->type == type ? found : NULL;
}

/* ---- what an operation graph computes ---------------------------------------------------------------------------- */

/* Whether elements of a tensor may share a place. */
static bool overlaps(const tensor &t)
{
	int64_t end = 1, last = 0;
	for (int axes = 0; axes < 4; axes++) { /* by rising strides */
		int next = -1;
		for (int i = 0; i < 4; i++)
			if (t.dim[i] > 1 && t.stride[i] > last && (next < 0 || t.stride[i] < t.stride[next])) next = i;
		if (next < 0) return false;
		if (t.stride[next] < end) return true;
		last = t.stride[next];
		end += (t.dim[next] - 1) * last;
	}
	return false;
}

/* The strides of what is within a graph, which cuDNN lays out as it likes, may be such: then elements follow each other. */
static void separate(tensor *t)
{
	if (!t->within || !overlaps(*t)) return;
	for (int64_t i = 3, step = 1; i >= 0; step *= t->dim[i--]) t->stride[i] = step;
}

static bool read_tensor(const node *n, tensor *to)
{
	if (!n || n->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) return false;
	auto number = values<int64_t>(n, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1);
	auto type = values<cudnnDataType_t>(n, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1);
	auto dim = values<int64_t>(n, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4);
	auto stride = values<int64_t>(n, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4);
	auto alignment = values<int64_t>(n, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1);
	auto within = values<bool>(n, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1);
	bool inner = within && *within; /* may have what a program cannot give */
	bool known = type && (*type == CUDNN_DATA_FLOAT || emu_is_half(*type) ||
	                      (inner && (*type == CUDNN_DATA_INT32 || *type == CUDNN_DATA_BOOLEAN)));
	if (!number || !known || !dim || !stride || !alignment || *alignment % 4) return false;
	to->type = *type;
	to->number = *number;
	to->within = inner;
	auto by_value = values<bool>(n, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1);
	to->by_value = by_value && *by_value;
	for (int i = 0; i < 4; i++) {
		to->dim[i] = dim[i];
		to->stride[i] = stride[i];
		if (dim[i] <= 0 || stride[i] <= 0) return false;
	}
	separate(to);
	return to->within || !overlaps(*to);
}

static bool operand(const node *operation, int name, tensor *to)
{
	return read_tensor(part(operation, name, CUDNN_BACKEND_TENSOR_DESCRIPTOR), to);
}

static bool read_pair(const node *n, int name, int64_t to[2])
{
	auto v = values<int64_t>(n, name, CUDNN_TYPE_INT64, 2);
	for (int i = 0; v && i < 2; i++) to[i] = v[i];
	return v;
}

static bool read_conv(const node *n, computation *c)
{
	int64_t after[2];
	if (!n) return false;
	auto type = values<cudnnDataType_t>(n, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1);
	auto mode = values<cudnnConvolutionMode_t>(n, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1);
	auto axes = values<int64_t>(n, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1);
	return type && *type == CUDNN_DATA_FLOAT && mode && *mode == CUDNN_CROSS_CORRELATION && axes && *axes == 2 &&
	       read_pair(n, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, c->pad) &&
	       read_pair(n, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, after) && !memcmp(c->pad, after, sizeof after) &&
	       read_pair(n, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, c->stride) &&
	       read_pair(n, CUDNN_ATTR_CONVOLUTION_DILATIONS, c->dilation) && c->stride[0] > 0 && c->stride[1] > 0 &&
	       c->dilation[0] > 0 && c->dilation[1] > 0;
}

static bool fits(const computation &c)
{
	int64_t size[2];
	for (int i = 0; i < 2; i++)
		size[i] = (c.x.dim[2 + i] + 2 * c.pad[i] - c.dilation[i] * (c.w.dim[2 + i] - 1) - 1) / c.stride[i] + 1;
	return c.x.dim[1] % c.w.dim[1] == 0 && c.w.dim[0] % (c.x.dim[1] / c.w.dim[1]) == 0 &&
	       c.y.has(c.x.dim[0], c.w.dim[0], size[0], size[1]);
}

/* How the three passes name their operands. */
static const struct {
	cudnnBackendDescriptorType_t type;
	int conv, x, w, y, alpha, beta;
} names[] = {
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static bool read_convolution(const node *n, enum pass pass, computation *c)
{
	const auto &o = names[pass];
	auto one = values<float>(n, o.alpha, CUDNN_TYPE_FLOAT, 1), zero = values<float>(n, o.beta, CUDNN_TYPE_FLOAT, 1);
	c->pass = pass;
	return one && *one == 1 && zero && *zero == 0 && operand(n, o.x, &c->x) && operand(n, o.w, &c->w) &&
	       operand(n, o.y, &c->y) && read_conv(part(n, o.conv, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR), c) &&
	       fits(*c);
}

/* One that takes what the computation has so far, whose result becomes that of both. */
static bool read_pointwise(const node *n, computation *c)
{
	tensor x, y;
	const node *how = part(n, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	auto mode =
	        how ? values<cudnnPointwiseMode_t>(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1) : NULL;
	if (!mode || !operand(n, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, &x) ||
	    !operand(n, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, &y))
		return false;
	if (x.number != c->y.number || !x.within || x.type != CUDNN_DATA_FLOAT ||
	    !y.has(x.dim[0], x.dim[1], x.dim[2], x.dim[3]) || c->relu)
		return false;
	c->y = y;
	if (*mode == CUDNN_POINTWISE_RELU_FWD) {
		auto nan = values<cudnnNanPropagation_t>(how, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION,
		                                         CUDNN_TYPE_NAN_PROPOGATION, 1);
		return c->relu = nan && *nan == CUDNN_PROPAGATE_NAN;
	}
	c->bias = *mode == CUDNN_POINTWISE_ADD && !c->bias && operand(n, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, &c->b) &&
	          c->b.has(1, y.dim[1], 1, 1);
	return c->bias;
}

static bool read_graph(const node *n, computation *c)
{
	auto handle = values<cudnnHandle_t>(n, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1);
	*c = {};
	bool ok = false;
	const node *p = NULL;
	for (int i = FORWARD; handle && i <= FILTER; i++)
		if ((p = part(n, CUDNN_ATTR_OPERATIONGRAPH_OPS, names[i].type)))
			ok = read_convolution(p, (enum pass)i, c);
	if (c->pass != FORWARD && count_of(n, CUDNN_ATTR_OPERATIONGRAPH_OPS) != 1) return false;
	for (size_t i = 1; ok && i < count_of(n, CUDNN_ATTR_OPERATIONGRAPH_OPS); i++) {
		p = part(n, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, i);
		ok = p && read_pointwise(p, c);
	}
	if (ok) c->handle = *handle;
	return ok && !c->y.within && c->x.type == c->w.type && c->x.type == c->y.type &&
	       (!c->bias || c->b.type == c->x.type);
}

#include "cudnn_operations.h"

/* ---- engines ----------------------------------------------------------------------------------------------------- */

/* Proposed in this order, those of mode A, then those of the mode for fallbacks.  `us` is how long one seems to take,
 * `off` by what part of it each result is off. */
static const struct engine {
	std::vector<cudnnBackendNumericalNote_t> notes;
	int64_t bytes;
	double us, off = 0;
	bool fallback = false;
} engines[] = {
        {{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 0, 1},
        {{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}, 0, 1},
        {{}, (int64_t)1 << 40, 1},
        {{CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13}, 0, 1, 4e-3},
        {{CUDNN_NUMERICAL_NOTE_WINOGRAD}, 0, 1, 4e-3},
        {{(cudnnBackendNumericalNote_t)15}, 0, 1, 4e-3},
        {{CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION}, 0, 1, 4e-3},
        {{CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 4096, 10},
        {{CUDNN_NUMERICAL_NOTE_FFT}, 0, 50},
        {{CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6}, 0, 50},
        {{CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}, 8192, 30},
        {{}, 0, 20, 0, true},
};
enum { ENGINES = sizeof engines / sizeof *engines };
static_assert((int)ENGINES <= (int)EMU_ENGINES, "they are counted");

static const node *graph_of(const node *config)
{
	return part(config, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
}

static bool read_config(const node *config, computation *c)
{
	const node *graph = graph_of(config);
	return graph && read_graph(graph, c);
}

/* The graph of the heuristics, as each configuration's. */
static cudnnStatus_t propose(const node *heuristics, int64_t most, int64_t *count, cudnnBackendDescriptor_t *to)
{
	auto mode = values<cudnnBackendHeurMode_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1);
	if (!mode || (*mode != CUDNN_HEUR_MODE_A && *mode != CUDNN_HEUR_MODE_FALLBACK))
		return CUDNN_STATUS_NOT_SUPPORTED;
	*count = 0;
	for (int i = 0; i < ENGINES && *count < most; i++) {
		if (engines[i].fallback != (*mode == CUDNN_HEUR_MODE_FALLBACK)) continue;
		node *n = of(to[(*count)++]);
		if (n->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) return CUDNN_STATUS_BAD_PARAM;
		n->engine = i;
		n->attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] =
		        heuristics->attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
		n->finished = true;
	}
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give_notes(const node *n, int64_t most, int64_t *count, cudnnBackendNumericalNote_t *to)
{
	const auto &notes = engines[n->engine].notes;
	for (*count = 0; *count < most && *count < (int64_t)notes.size(); ++*count) to[*count] = notes[*count];
	return CUDNN_STATUS_SUCCESS;
}

static bool plan_is_good(const node *n)
{
	computation c;
	const node *config = part(n, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	auto handle = values<cudnnHandle_t>(n, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1);
	operations others = {};
	if (config && handle && graph_of(config) && read_operations(graph_of(config), &others)) {
		if (emu_is_captured((*handle)->stream)) emu_misuse("cuDNN: a plan is made while a graph is recorded");
		return others.handle == *handle && !fails(EMU_PLAN);
	}
	if (!config || !handle || !read_config(config, &c) || c.handle != *handle) return false;
	if (emu_is_captured((*handle)->stream)) emu_misuse("cuDNN: a plan is made while a graph is recorded");
	if (emu_is_half(c.x.type) && fails(EMU_HALF)) return false;
	if (c.y.is_last() && fails(EMU_LAST)) return false;
	return !fails(EMU_PLAN);
}

/* ---- computing --------------------------------------------------------------------------------------------------- */

/* The address that a pack gives a tensor. */
static void *address(const node *pack, const tensor &t)
{
	size_t n = count_of(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
	auto numbers = values<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n);
	auto pointers = values<void *>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n);
	for (size_t i = 0; numbers && pointers && i < n; i++)
		if (numbers[i] == t.number && (uintptr_t)pointers[i] % 16 == 0)
			return emu_argument(pointers[i], "cuDNN: a tensor");
	return NULL;
}

/* Where a tensor is, or the number that it is. */
static bool give(const node *pack, const tensor &t, operations_work *w)
{
	size_t n = count_of(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
	auto numbers = values<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n);
	auto pointers = values<void *>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n);
	if (t.within) return true;
	for (size_t i = 0; t.by_value && numbers && pointers && i < n; i++)
		if (numbers[i] == t.number) return w->numbers[t.number] = *(float *)pointers[i], true;
	if (t.by_value) return false;
	return (w->addresses[t.number] = address(pack, t));
}

static cudnnStatus_t execute_operations(cudnnHandle_t handle, int device, const operations &o, const node *pack,
                                        char *memory, int64_t bytes)
{
	auto w = new operations_work{o, {}, {}, {}, memory, bytes};
	bool half = false;
	for (const operation &op : o.all) {
		bool there = give(pack, op.x, w) && give(pack, op.y, w) && (!op.has_b || give(pack, op.b, w)) &&
		             (!op.has_t || give(pack, op.t, w));
		half |= emu_is_half(op.x.type);
		if (there) continue;
		delete w;
		return CUDNN_STATUS_BAD_PARAM;
	}
	if (fails(EMU_EXECUTE)) {
		delete w;
		return CUDNN_STATUS_EXECUTION_FAILED;
	}
	if (emu_launch(handle->stream, operations_work::run, w, operations_work::drop) != cudaSuccess)
		return CUDNN_STATUS_EXECUTION_FAILED;
	if (half) emu_count_half(device);
	emu_count_fused(device);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack)
{
	int device = -1;
	work o = {};
	if (!handle || cudaGetDevice(&device) != cudaSuccess || handle->device != device || !of(plan)->finished ||
	    !of(pack)->finished)
		return CUDNN_STATUS_BAD_PARAM;
	const node *config =
	        part(of(plan), CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	auto memory = values<void *>(of(pack), CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1);
	operations others = {};
	if (config && memory && graph_of(config) && read_operations(graph_of(config), &others)) {
		int64_t bytes = engines[config->engine].bytes;
		emu_argument((char *)*memory + bytes - 1, "cuDNN: end of the workspace");
		return execute_operations(handle, device, others, of(pack),
		                          (char *)emu_argument(*memory, "cuDNN: workspace"), bytes);
	}
	if (!config || !memory || !read_config(config, &o.c)) return CUDNN_STATUS_BAD_PARAM;
	o.x = address(of(pack), o.c.x);
	o.w = address(of(pack), o.c.w);
	o.b = o.c.bias ? address(of(pack), o.c.b) : NULL;
	o.y = address(of(pack), o.c.y);
	o.bytes = engines[config->engine].bytes;
	o.off = engines[config->engine].off;
	o.memory = (char *)emu_argument(*memory, "cuDNN: workspace");
	emu_argument((char *)*memory + o.bytes - 1, "cuDNN: end of the workspace");
	if (!o.x || !o.w || !o.y || (o.c.bias && !o.b)) return CUDNN_STATUS_BAD_PARAM;
	if (fails(EMU_EXECUTE)) return CUDNN_STATUS_EXECUTION_FAILED;
	emu_takes(emu_way_us(config->engine, engines[config->engine].us));
	if (emu_launch(handle->stream, work::run, new work(o), work::drop) != cudaSuccess)
		return CUDNN_STATUS_EXECUTION_FAILED;
	emu_count_way(config->engine);
	for (auto note : engines[config->engine].notes) {
		if (note != CUDNN_NUMERICAL_NOTE_TENSOR_CORE) continue;
		if (emu_is_half(o.c.x.type)) emu_count_half(device);
		else emu_count_tf32(device);
	}
	emu_count_fused(device);
	if (o.c.y.is_last()) emu_count_last(device);
	return CUDNN_STATUS_SUCCESS;
}

/* ---- the interface ----------------------------------------------------------------------------------------------- */

static thread_local int plans; /* of this thread, whose handle they need */

void emu_check_plans(void)
{
	if (plans) emu_misuse("a handle of cuDNN is destroyed before %d of its plans", plans);
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *to)
{
	plans += type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
	*to = new node{type, {}, false, 0};
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
	plans -= of(d)->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
	delete of(d);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t n, const void *from)
{
	if (of(d)->finished || n < 1 || !from) return CUDNN_STATUS_BAD_PARAM;
	const char *bytes = (const char *)from;
	of(d)->attributes[name] = {type, std::vector<char>(bytes, bytes + (size_t)n * size_of(type))};
	return CUDNN_STATUS_SUCCESS;
}

static bool is_good(const node *n)
{
	computation c = {};
	operations others = {};
	tensor t;
	switch (n->type) {
	case CUDNN_BACKEND_TENSOR_DESCRIPTOR: return read_tensor(n, &t);
	case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR: return read_conv(n, &c);
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: return read_convolution(n, FORWARD, &c);
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: return read_convolution(n, DATA, &c);
	case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: return read_convolution(n, FILTER, &c);
	case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR: return read_graph(n, &c) || read_operations(n, &others);
	case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
		return part(n, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: return plan_is_good(n);
	default: return true; /* its use shows */
	}
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d)
{
	of(d)->finished = is_good(of(d));
	return of(d)->finished ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t most, int64_t *count, void *to)
{
	const node *n = of(d);
	*count = 1;
	if (!n->finished) return CUDNN_STATUS_BAD_PARAM;
	if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) return propose(n, most, count, (cudnnBackendDescriptor_t *)to);
	if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)
		return give_notes(n, most, count, (cudnnBackendNumericalNote_t *)to);
	if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) {
		*(int64_t *)to = n->engine;
		return CUDNN_STATUS_SUCCESS;
	}
	if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
		node *engine = of(*(cudnnBackendDescriptor_t *)to);
		engine->engine = n->engine;
		engine->finished = true;
		return CUDNN_STATUS_SUCCESS;
	}
	if (name != CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) return CUDNN_STATUS_NOT_SUPPORTED;
	const node *config = part(n, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	*(int64_t *)to = engines[config->engine].bytes;
	return CUDNN_STATUS_SUCCESS;
}
