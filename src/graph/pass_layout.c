/* layout: images stay in lane order (codelets/common/lane_order.h) between operations that compute in it; those of half
 * types in blocks of channels, which libraries compute in.  On GPUs they have channels last, in half types and where
 * float32 may be rounded to TF32: tensor cores take them so, and cuDNN reorders all others in each call.  What follows
 * is said of lane order, and holds for all three.
 *
 * Convolutions and poolings take and give either order, so there is nothing to put between them: a value is in lane
 * order where everything that touches it can have it so, and a convolution that is fastest so does.  Elementwise
 * operations do not care, as long as all of their arguments are in one order. */
#include <stdlib.h>

#include "graph/pass.h"
#include "op_inner.h"
#include "op_list.h"
#include "runtime/engine.h"
#include "starling/graph.h"

/* ---- who can have which of its operands in lane order ------------------------------------------------------------ */

enum side { NEITHER, X, Y, ONE };
enum order { LANES, BLOCKS, LAST, ORDERS };

struct layout {
	sl_graph *g;
	bool *possible, *wanted; /* by value id */
	bool changed;
	enum order order;
};

/* The attribute that says it of a side. */
static const char *const attributes[ORDERS][ONE + 1] = {
        [LANES] = {[X] = "x_lanes", [Y] = "y_lanes"},
        [BLOCKS] = {[X] = "x_blocks", [Y] = "y_blocks", [ONE] = "blocks"},
        [LAST] = {[X] = "x_last", [Y] = "y_last", [ONE] = "last"},
};

/* Which of them is about each argument and the result. */
struct operation {
	const struct sl_op *op;
	enum side in[6], out;
};

static const struct operation convolutions[SLP_CONV_PASSES] = {
        [SLP_CONV_FORWARD] = {NULL, {X}, Y},
        [SLP_CONV_DATA] = {NULL, {Y}, X},
        [SLP_CONV_WEIGHTS] = {NULL, {X, Y}, NEITHER},
};

static const struct operation poolings[] = {
        {&slp_op_max_pool2d, {X}, Y},
        {&slp_op_avg_pool2d, {X}, Y},
        {&slp_op_max_pool2d_grad, {X, Y}, X},
        {&slp_op_avg_pool2d_grad, {X, Y}, X}, /* without relu: dy alone */
};

/* The first three are norms, which alone can have blocks. */
enum { NORMS = 3 };
static const struct operation images[] = {
        {&slp_op_batch_norm, {ONE}, ONE},
        {&slp_op_batch_norm_infer, {ONE}, ONE},
        {&slp_op_batch_norm_grad, {ONE, ONE, NEITHER, NEITHER, NEITHER, ONE}, ONE},
        {&slp_op_max_pool2d, {ONE}, ONE},
        {&slp_op_avg_pool2d, {ONE}, ONE},
        {&slp_op_max_pool2d_grad, {ONE, ONE}, ONE},
        {&slp_op_avg_pool2d_grad, {ONE, ONE}, ONE},
};

#define COUNT(a) (sizeof(a) / sizeof *(a))
static const struct {
	const struct operation *all;
	size_t count;
} others[ORDERS] = {
        [LANES] = {poolings, COUNT(poolings)},
        [BLOCKS] = {images, NORMS},
        [LAST] = {images, COUNT(images)},
};

static bool is_convolution(const struct slp_gnode *n)
{
	return slp_node_conv(n) < SLP_CONV_PASSES;
}

static const struct operation *operation_of(const struct layout *l, const struct slp_gnode *n)
{
	if (is_convolution(n)) return &convolutions[slp_node_conv(n)];
	for (size_t i = 0; i < others[l->order].count; i++)
		if (slp_node_is(n, others[l->order].all[i].op)) return &others[l->order].all[i];
	return NULL;
}

static enum side side_of_argument(const struct layout *l, const struct slp_gnode *n, int i)
{
	const struct operation *o = operation_of(l, n);
	if (!o) return NEITHER;
	if (n->nin == 1 && o->in[1] == Y) return Y;
	return i < (int)COUNT(o->in) ? o->in[i] : NEITHER;
}

static enum side side_of_result(const struct layout *l, const struct slp_gnode *n, int i)
{
	const struct operation *o = operation_of(l, n);
	return o && i == 0 ? o->out : NEITHER;
}

/* An operation on elements of tensors of one shape, whatever their order; numbers may be among them. */
static bool is_elementwise(const sl_graph *g, const struct slp_gnode *n)
{
	if (n->kind != SLP_NODE_OP || n->dead || !slp_fused_takes(n->op)) return false;
	for (int i = 0; i < n->nin; i++) {
		const struct slp_type *t = slp_value_type(g, n->in[i]);
		if (!slp_type_equal(t, &n->types[0]) && sl_shape_size(t->shape) != 1) return false;
	}
	return true;
}

/* In one piece, and in no other order. */
static bool takes_blocks(const sl_graph *g, const struct slp_gnode *n)
{
	bool half = slp_value_type(g, n->in[0])->dtype == SL_BFLOAT16;
	bool other = slp_node_number(n, "pool") || slp_node_number(n, "crop");
	return half && !other && slp_conv_takes_blocks() && !slp_layout_likes_lanes(g, n);
}

/* That tensor cores compute in. */
static bool is_on_tensor_cores(enum sl_dtype type)
{
	return slp_is_half(type) || (type == SL_FLOAT32 && slp_engine.config.tf32 >= SL_TF32_CONV);
}

static bool takes_last(const sl_graph *g, const struct slp_gnode *n)
{
	bool other = slp_node_number(n, "pool") || slp_node_number(n, "crop") || slp_node_number(n, "groups") > 1;
	return !other && is_on_tensor_cores(slp_value_type(g, n->in[0])->dtype);
}

bool slp_layout_likes_lanes(const sl_graph *g, const struct slp_gnode *n)
{
	struct slp_infer c;
	if (!is_convolution(n) || !slp_node_call(g, n, &c)) return false;
	bool likes = slp_conv_likes_lanes(&c);
	slp_call_free(&c);
	return likes;
}

bool slp_layout_on_cpu(const sl_graph *g)
{
	bool cpu = slp_engine.ngpus == 0 || g->device.kind == SL_DEVICE_CPU;
	for (int i = 0; i < g->count; i++) {
		const sl_tensor *t = g->nodes[i].dead ? NULL : g->nodes[i].tensor;
		if (t && t->device.kind == SL_DEVICE_GPU) return false;
		cpu |= t && t->device.kind == SL_DEVICE_CPU;
	}
	return cpu;
}

/* The channels from which on it pays: reordering the weights of small convolutions costs more than it gains.
 * SL_CHANNELS_LAST gives others; 0: none are enough. */
static int64_t enough_channels(void)
{
	const char *wish = getenv("SL_CHANNELS_LAST");
	int64_t n = wish && *wish ? atoi(wish) : 32;
	return n > 0 ? n : INT64_MAX;
}

/* Simulated kernels take as long in either order. */
static bool on_gpu(const sl_graph *g)
{
	return slp_engine.ngpus > 0 && !sl_is_simulated() && !slp_layout_on_cpu(g) && enough_channels() < INT64_MAX;
}

/* ---- which values ------------------------------------------------------------------------------------------------ */

/* Channels must fill the 16 bytes that tensor cores load at a time. */
static bool may_be_last(const struct slp_type *t)
{
	int64_t each = slp_is_half(t->dtype) ? 8 : 4;
	return is_on_tensor_cores(t->dtype) && t->shape.ndim == 4 && t->shape.dim[1] % each == 0;
}

static bool may_be(const struct layout *l, const struct slp_type *t)
{
	if (t->shape.ndim != 4 || sl_shape_size(t->shape) == 0) return false;
	switch (l->order) {
	case LANES: return slp_promoted(t->dtype) == SL_FLOAT32 && t->shape.dim[0] % SLP_ORDER_LANES == 0;
	case BLOCKS: return t->dtype == SL_BFLOAT16 && t->shape.dim[1] % SLP_ORDER_BLOCK == 0;
	default: return may_be_last(t);
	}
}

static bool likes(const struct layout *l, const struct slp_gnode *n)
{
	if (!is_convolution(n)) return false;
	if (l->order == LANES) return slp_layout_likes_lanes(l->g, n);
	return l->order == BLOCKS ? takes_blocks(l->g, n) : takes_last(l->g, n);
}

/* A convolution that is faster so, and not only takes it. */
static bool wants_last(const sl_graph *g, const struct slp_gnode *n)
{
	bool weights = slp_node_conv(n) == SLP_CONV_WEIGHTS;
	const struct slp_type *t[] = {slp_value_type(g, n->in[0]),
	                              weights ? slp_value_type(g, n->in[1]) : &n->types[0]};
	for (int i = 0; i < 2; i++)
		if (!may_be_last(t[i]) || t[i]->shape.dim[1] < enough_channels()) return false;
	return true;
}

/* Weights are reordered then, and may be converted along with it. */
bool slp_layout_last(const sl_graph *g, const struct slp_gnode *n)
{
	return is_convolution(n) && on_gpu(g) && takes_last(g, n) && wants_last(g, n);
}

static void possible_results(struct layout *l, int node)
{
	const struct slp_gnode *n = &l->g->nodes[node];
	for (int i = 0; i < n->nout && !n->dead; i++)
		l->possible[node * SLP_MAX_OUTPUTS + i] =
		        may_be(l, &n->types[i]) && (side_of_result(l, n, i) != NEITHER || is_elementwise(l->g, n));
}

/* A convolution that is faster in the plain order gets its arguments in that; a lane-ordered argument has a side. */
static void restrict_arguments(struct layout *l, int node)
{
	const struct slp_gnode *n = &l->g->nodes[node];
	bool liked = likes(l, n), wants = liked && (l->order != LAST || wants_last(l->g, n));
	for (int i = 0; i < n->nin; i++) {
		bool can = side_of_argument(l, n, i) != NEITHER ? liked || !is_convolution(n) : is_elementwise(l->g, n);
		if (!can) l->possible[slp_value_id(n->in[i])] = false;
		if (can && wants) l->wanted[slp_value_id(n->in[i])] = true;
	}
	if (is_convolution(n) && !liked) l->possible[node * SLP_MAX_OUTPUTS] = false;
	if (wants && side_of_result(l, n, 0) != NEITHER) l->wanted[node * SLP_MAX_OUTPUTS] = true;
}

static void tie(struct layout *l, int a, int b)
{
	bool possible = l->possible[a] && l->possible[b], wanted = l->wanted[a] || l->wanted[b];
	l->changed |= possible != l->possible[a] || possible != l->possible[b] || wanted != l->wanted[a] ||
	              wanted != l->wanted[b];
	l->possible[a] = l->possible[b] = possible;
	l->wanted[a] = l->wanted[b] = wanted;
}

/* Operands that must be in the same order: those of elementwise operations, and those that one attribute is about. */
static void tie_operands(struct layout *l, int node)
{
	const struct slp_gnode *n = &l->g->nodes[node];
	bool elementwise = is_elementwise(l->g, n);
	int result = node * SLP_MAX_OUTPUTS;
	for (int i = 0; i < n->nin && !n->dead; i++) {
		bool whole = slp_type_equal(slp_value_type(l->g, n->in[i]), &n->types[0]);
		bool same_side =
		        side_of_argument(l, n, i) != NEITHER && side_of_argument(l, n, i) == side_of_result(l, n, 0);
		if ((elementwise && whole) || same_side) tie(l, slp_value_id(n->in[i]), result);
	}
}

static void choose(struct layout *l)
{
	sl_graph *g = l->g;
	for (int i = 0; i < g->count; i++) possible_results(l, i);
	for (int i = 0; i < g->count; i++)
		if (g->nodes[i].kind == SLP_NODE_OP && !g->nodes[i].dead) restrict_arguments(l, i);
	for (int i = 0; i < g->noutputs; i++) l->possible[slp_value_id(g->outputs[i])] = false;
	for (l->changed = true; l->changed;) {
		l->changed = false;
		for (int i = 0; i < g->count; i++)
			if (g->nodes[i].kind == SLP_NODE_OP) tie_operands(l, i);
	}
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static void set_sides(const struct layout *l, int node)
{
	struct slp_gnode *n = &l->g->nodes[node];
	for (int i = 0; i < n->nin + 1; i++) {
		enum side side = i < n->nin ? side_of_argument(l, n, i) : side_of_result(l, n, 0);
		int id = i < n->nin ? slp_value_id(n->in[i]) : node * SLP_MAX_OUTPUTS;
		if (side == NEITHER || !l->possible[id] || !l->wanted[id]) continue;
		slp_node_lower_conv(n);
		slp_node_set_int(n, attributes[l->order][side], true);
	}
}

static enum sl_status arrange(sl_graph *g, enum order order)
{
	size_t values = (size_t)g->count * SLP_MAX_OUTPUTS + 1;
	struct layout l = {g, slp_calloc(values, sizeof(bool)), slp_calloc(values, sizeof(bool)), false, order};
	enum sl_status s = l.possible && l.wanted ? SL_OK : slp_pass_no_memory("layout");
	if (s == SL_OK && (order == LAST ? on_gpu(g) : slp_layout_on_cpu(g))) {
		choose(&l);
		for (int i = 0; i < g->count; i++)
			if (operation_of(&l, &g->nodes[i])) set_sides(&l, i);
	}
	free(l.possible);
	free(l.wanted);
	return s;
}

enum sl_status slp_pass_layout(sl_graph *g)
{
	enum sl_status s = SL_OK;
	for (enum order o = LANES; o < ORDERS && s == SL_OK; o++) s = arrange(g, o);
	return s;
}
