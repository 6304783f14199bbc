/* Emulated GPUs: an operation graph of cuDNN that begins otherwise than with a convolution, as attention's do, one
 * operation after the other; included by cudnn_graph.cc.  What is within the graph is kept in full, in the type that it
 * was given. */
#ifndef EMU_CUDNN_OPERATIONS_H
#define EMU_CUDNN_OPERATIONS_H

#include <cmath>

struct operation {
	cudnnBackendDescriptorType_t type;
	int mode, axis;
	bool has_b, has_t;
	tensor x, b, t, y;
};

struct operations {
	cudnnHandle_t handle;
	std::vector<operation> all;
};

static int64_t elements(const tensor &t)
{
	return t.dim[0] * t.dim[1] * t.dim[2] * t.dim[3];
}

/* Whether b has x's axes, or 1 in their place. */
static bool spreads(const tensor &b, const tensor &x)
{
	for (int i = 0; i < 4; i++)
		if (b.dim[i] != 1 && b.dim[i] != x.dim[i]) return false;
	return true;
}

static bool read_how(const node *n, int name, cudnnBackendDescriptorType_t type, int mode,
                     cudnnBackendAttributeType_t mode_type, int computed, operation *o)
{
	const node *how = part(n, name, type);
	if (!how) return false;
	auto in = values<cudnnDataType_t>(how, computed, CUDNN_TYPE_DATA_TYPE, 1);
	auto m = mode >= 0 ? values<int>(how, mode, mode_type, 1) : NULL;
	auto axis = values<int64_t>(how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1);
	o->mode = m ? *m : -1;
	o->axis = axis && type == CUDNN_BACKEND_POINTWISE_DESCRIPTOR ? (int)*axis : -1;
	return in && (mode < 0 || m);
}

static bool read_product(const node *n, operation *o)
{
	if (!operand(n, CUDNN_ATTR_OPERATION_MATMUL_ADESC, &o->x) ||
	    !operand(n, CUDNN_ATTR_OPERATION_MATMUL_BDESC, &o->b) ||
	    !operand(n, CUDNN_ATTR_OPERATION_MATMUL_CDESC, &o->y) ||
	    !read_how(n, CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_BACKEND_MATMUL_DESCRIPTOR, -1, CUDNN_TYPE_INT64,
	              CUDNN_ATTR_MATMUL_COMP_TYPE, o))
		return false;
	o->has_b = true;
	return o->x.dim[3] == o->b.dim[2] && o->b.dim[0] == o->x.dim[0] && o->b.dim[1] == o->x.dim[1] &&
	       o->y.has(o->x.dim[0], o->x.dim[1], o->x.dim[2], o->b.dim[3]);
}

static bool read_elementwise(const node *n, operation *o)
{
	o->has_b = operand(n, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, &o->b);
	o->has_t = operand(n, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, &o->t);
	return operand(n, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, &o->x) &&
	       operand(n, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, &o->y) &&
	       read_how(n, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
	                CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MATH_PREC, o) &&
	       o->x.has(o->y.dim[0], o->y.dim[1], o->y.dim[2], o->y.dim[3]) && (!o->has_b || spreads(o->b, o->x)) &&
	       (!o->has_t || spreads(o->t, o->x)) && (o->mode != CUDNN_POINTWISE_GEN_INDEX || o->axis >= 0);
}

static bool read_reduction(const node *n, operation *o)
{
	return operand(n, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, &o->x) &&
	       operand(n, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, &o->y) &&
	       read_how(n, CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
	                CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
	                CUDNN_ATTR_REDUCTION_COMP_TYPE, o) &&
	       spreads(o->y, o->x);
}

static bool read_operation(const node *n, operation *o)
{
	o->type = n->type;
	switch (n->type) {
	case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: return read_product(n, o);
	case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return read_elementwise(n, o);
	case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: return read_reduction(n, o);
	case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
		return operand(n, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, &o->x) &&
		       operand(n, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, &o->y) && elements(o->x) == elements(o->y);
	default: return false;
	}
}

static bool read_operations(const node *n, operations *to)
{
	auto handle = values<cudnnHandle_t>(n, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1);
	size_t count = count_of(n, CUDNN_ATTR_OPERATIONGRAPH_OPS);
	auto ops = values<cudnnBackendDescriptor_t>(n, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
	                                            count);
	bool product = false;
	for (size_t i = 0; handle && ops && i < count; i++) {
		operation o = {};
		if (!of(ops[i])->finished || !read_operation(of(ops[i]), &o)) return false;
		product |= o.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
		to->all.push_back(o);
	}
	if (handle) to->handle = *handle;
	return product;
}

/* ---- computing --------------------------------------------------------------------------------------------------- */

/* What is queued: the operations, the addresses of tensors, numbers that were given by value. */
struct operations_work {
	operations o;
	std::map<int64_t, void *> addresses;
	std::map<int64_t, float> numbers;
	std::map<int64_t, std::vector<float>> kept; /* within the graph, by offset */
	char *memory;
	int64_t bytes;

	static int64_t size(const tensor &t)
	{
		int64_t last = 0;
		for (int i = 0; i < 4; i++) last += (t.dim[i] - 1) * t.stride[i];
		return last + 1;
	}
	float get(const tensor &t, int64_t n, int64_t c, int64_t h, int64_t w)
	{
		if (numbers.count(t.number)) return numbers[t.number];
		int64_t at =
		        t.at(t.dim[0] > 1 ? n : 0, t.dim[1] > 1 ? c : 0, t.dim[2] > 1 ? h : 0, t.dim[3] > 1 ? w : 0);
		return t.within ? kept.at(t.number).at((size_t)at) : emu_load(t.type, addresses.at(t.number), at);
	}
	void put(const tensor &t, int64_t n, int64_t c, int64_t h, int64_t w, float x)
	{
		int64_t at = t.at(n, c, h, w);
		char rounded[4];
		if (!t.within) emu_store(t.type, addresses.at(t.number), at, x);
		if (!t.within) return;
		if (emu_is_half(t.type)) {
			emu_store(t.type, rounded, 0, x);
			x = emu_load(t.type, rounded, 0);
		}
		kept.at(t.number).at((size_t)at) = x;
	}
	float element(const operation &o, int64_t n, int64_t c, int64_t h, int64_t w)
	{
		float x = get(o.x, n, c, h, w), b = o.has_b ? get(o.b, n, c, h, w) : 0;
		const int64_t at[] = {n, c, h, w};
		switch (o.mode) {
		case CUDNN_POINTWISE_ADD: return x + b;
		case CUDNN_POINTWISE_SUB: return x - b;
		case CUDNN_POINTWISE_MUL: return x * b;
		case CUDNN_POINTWISE_DIV: return x / b;
		case CUDNN_POINTWISE_MAX: return x >= b || x != x ? x : b;
		case CUDNN_POINTWISE_EXP: return std::exp(x);
		case CUDNN_POINTWISE_LOG: return std::log(x);
		case CUDNN_POINTWISE_CMP_GE: return x >= b;
		case CUDNN_POINTWISE_GEN_INDEX: return (float)at[o.axis];
		case CUDNN_POINTWISE_BINARY_SELECT: return get(o.t, n, c, h, w) != 0 ? x : b;
		default: emu_misuse("cuDNN: pointwise mode %d is not emulated", o.mode);
		}
	}
	float product(const operation &o, int64_t n, int64_t c, int64_t h, int64_t w)
	{
		float sum = 0;
		for (int64_t i = 0; i < o.x.dim[3]; i++) sum += get(o.x, n, c, h, i) * get(o.b, n, c, i, w);
		return sum;
	}
	/* Over the axes that the result has not. */
	float reduced(const operation &o, int64_t n, int64_t c, int64_t h, int64_t w)
	{
		bool add = o.mode == CUDNN_REDUCE_TENSOR_ADD;
		if (!add && o.mode != CUDNN_REDUCE_TENSOR_MAX)
			emu_misuse("cuDNN: reduction %d is not emulated", o.mode);
		float all = add ? 0 : -INFINITY;
		int64_t begin[] = {n, c, h, w}, end[4];
		for (int i = 0; i < 4; i++) {
			bool over = o.y.dim[i] == 1;
			end[i] = over ? o.x.dim[i] : begin[i] + 1;
			if (over) begin[i] = 0;
		}
		for (n = begin[0]; n < end[0]; n++)
			for (c = begin[1]; c < end[1]; c++)
				for (h = begin[2]; h < end[2]; h++)
					for (w = begin[3]; w < end[3]; w++) {
						float x = get(o.x, n, c, h, w);
						all = add ? all + x : x > all || x != x ? x : all;
					}
		return all;
	}
	/* y's elements in the memory of x, as far as both describe it. */
	void reshape(const operation &o)
	{
		std::vector<float> memory((size_t)size(o.x));
		for (int64_t i = 0; i < elements(o.x); i++) {
			int64_t w = i % o.x.dim[3], h = i / o.x.dim[3] % o.x.dim[2];
			int64_t c = i / o.x.dim[3] / o.x.dim[2] % o.x.dim[1],
			        n = i / o.x.dim[3] / o.x.dim[2] / o.x.dim[1];
			memory.at((size_t)o.x.at(n, c, h, w)) = get(o.x, n, c, h, w);
		}
		for (int64_t i = 0; i < elements(o.y); i++) {
			int64_t w = i % o.y.dim[3], h = i / o.y.dim[3] % o.y.dim[2];
			int64_t c = i / o.y.dim[3] / o.y.dim[2] % o.y.dim[1],
			        n = i / o.y.dim[3] / o.y.dim[2] / o.y.dim[1];
			put(o.y, n, c, h, w, memory.at((size_t)o.y.at(n, c, h, w)));
		}
	}
	void one(const operation &o)
	{
		if (o.y.within) kept[o.y.number].assign((size_t)size(o.y), NAN);
		if (o.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) return reshape(o);
		for (int64_t n = 0; n < o.y.dim[0]; n++)
			for (int64_t c = 0; c < o.y.dim[1]; c++)
				for (int64_t h = 0; h < o.y.dim[2]; h++)
					for (int64_t w = 0; w < o.y.dim[3]; w++)
						put(o.y, n, c, h, w,
						    o.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR
						            ? product(o, n, c, h, w)
						    : o.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR
						            ? reduced(o, n, c, h, w)
						            : element(o, n, c, h, w));
	}
	static void run(void *arg)
	{
		operations_work &w = *(operations_work *)arg;
		if (w.bytes) memset(w.memory, 0xff, (size_t)w.bytes);
		for (const operation &o : w.o.all) w.one(o);
		w.kept.clear(); /* a recorded one runs again */
	}
	static void drop(void *arg)
	{
		delete (operations_work *)arg;
	}
};

#endif
