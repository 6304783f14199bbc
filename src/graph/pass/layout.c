/* layout: chooses the layouts of images (codelets/common/image_layout.h) between operations: N16 on CPUs where
 * convolutions compute 16 images at once, NC16 on CPUs for bfloat16, which oneDNN computes in, and NHWC on GPUs, in half
 * types and where float32 may be rounded to TF32: tensor cores take images so, and cuDNN reorders all others in each call.
 *
 * Convolutions and poolings take and give the plain layout too, so no reorder is inserted: a value gets a layout if every
 * operation that reads or writes it can take that, and at least one convolution is fastest in it.  Elementwise operations
 * take any layout, as long as all of their arguments have the same. */
#include <stdlib.h>

#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/norm.h"
#include "op_list/pool.h"
#include "runtime/engine.h"
#include "starling/graph.h"

/* ---- which operands can have another layout ---------------------------------------------------------------------- */

enum side { NEITHER, X, Y, ONE };

struct layout {
	sl_graph *g;
	bool *possible, *wanted; /* by value id */
	bool changed;
	enum slp_image_layout layout;
};

/* The attribute that describes each argument and the result: x_layout, y_layout, or one for all images. */
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

/* The first three are norms, which also take NC16. */
enum { NORMS = 3 };
static const struct operation images[] = {
        {&slp_op_batch_norm, {ONE}, ONE},
        {&slp_op_batch_norm_infer, {ONE}, ONE},
        {&slp_op_batch_norm_grad, {ONE, ONE, NEITHER, NEITHER, NEITHER, ONE}, ONE},
        {&slp_op_batch_norm_sum, {ONE, NEITHER, NEITHER, NEITHER, NEITHER, ONE}, ONE},
        {&slp_op_max_pool2d, {ONE}, ONE},
        {&slp_op_avg_pool2d, {ONE}, ONE},
        {&slp_op_max_pool2d_grad, {ONE, ONE}, ONE},
        {&slp_op_avg_pool2d_grad, {ONE, ONE}, ONE},
};

#define COUNT(a) (sizeof(a) / sizeof *(a))
static const struct {
	const struct operation *all;
	size_t count;
} others[SLP_LAYOUTS] = {
        [SLP_LAYOUT_N16] = {poolings, COUNT(poolings)},
        [SLP_LAYOUT_NC16] = {images, NORMS},
        [SLP_LAYOUT_NHWC] = {images, COUNT(images)},
};

static bool is_convolution(const struct slp_gnode *n)
{
	return slp_node_conv(n) < SLP_CONV_PASSES;
}

static const struct operation *operation_of(const struct layout *l, const struct slp_gnode *n)
{
	if (is_convolution(n)) return &convolutions[slp_node_conv(n)];
	for (size_t i = 0; i < others[l->layout].count; i++)
		if (slp_node_is(n, others[l->layout].all[i].op)) return &others[l->layout].all[i];
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

/* An operation on elements of tensors of one shape, in any layout; numbers may be among them. */
static bool is_elementwise(const sl_graph *g, const struct slp_gnode *n)
{
	if (n->kind != SLP_NODE_OP || n->dead || !slp_fused_takes(n->op)) return false;
	for (int i = 0; i < n->nin; i++) {
		const struct slp_type *t = slp_value_type(g, n->in[i]);
		if (!slp_type_equal(t, &n->types[0]) && sl_shape_size(t->shape) != 1) return false;
	}
	return true;
}

/* On whole images: neither pooled nor cropped. */
static bool takes_nc16(const sl_graph *g, const struct slp_gnode *n)
{
	bool half = slp_value_type(g, n->in[0])->dtype == SL_BFLOAT16;
	bool other = slp_node_number(n, "pool") || slp_node_number(n, "crop");
	return half && !other && slp_conv_takes_nc16() && !slp_layout_prefers_n16(g, n);
}

/* The types that tensor cores support. */
static bool is_on_tensor_cores(enum sl_dtype type)
{
	return slp_is_half(type) || (type == SL_FLOAT32 && slp_engine.config.tf32 >= SL_TF32_CONV);
}

static bool takes_nhwc(const sl_graph *g, const struct slp_gnode *n)
{
	bool other = slp_node_number(n, "pool") || slp_node_number(n, "crop") || slp_node_number(n, "groups") > 1;
	return !other && is_on_tensor_cores(slp_value_type(g, n->in[0])->dtype);
}

bool slp_layout_prefers_n16(const sl_graph *g, const struct slp_gnode *n)
{
	struct slp_infer c;
	if (!is_convolution(n) || !slp_node_call(g, n, &c)) return false;
	bool likes = slp_conv_prefers_n16(&c);
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

/* The least channels that pay: reordering the weights of small convolutions costs more than it gains. SL_CHANNELS_LAST
 * gives another number; 0: never. */
static int64_t enough_channels(void)
{
	const char *wish = getenv("SL_CHANNELS_LAST");
	int64_t n = wish && *wish ? atoi(wish) : 32;
	return n > 0 ? n : INT64_MAX;
}

bool slp_layout_on_gpu(const sl_graph *g)
{
	return slp_engine.ngpus > 0 && !sl_is_simulated() && !slp_layout_on_cpu(g);
}

/* Simulated kernels take the same time in either layout. */
static bool on_gpu(const sl_graph *g)
{
	return slp_layout_on_gpu(g) && enough_channels() < INT64_MAX;
}

/* ---- which values ------------------------------------------------------------------------------------------------ */

/* Channels must fill the 16 bytes that tensor cores load at a time. */
static bool may_be_nhwc(const struct slp_type *t)
{
	int64_t each = slp_is_half(t->dtype) ? 8 : 4;
	return is_on_tensor_cores(t->dtype) && t->shape.ndim == 4 && t->shape.dim[1] % each == 0;
}

static bool may_be(const struct layout *l, const struct slp_type *t)
{
	if (t->shape.ndim != 4 || sl_shape_size(t->shape) == 0) return false;
	switch (l->layout) {
	case SLP_LAYOUT_N16: return slp_promoted(t->dtype) == SL_FLOAT32 && t->shape.dim[0] % SLP_N16_IMAGES == 0;
	case SLP_LAYOUT_NC16: return t->dtype == SL_BFLOAT16 && t->shape.dim[1] % SLP_NC16_CHANNELS == 0;
	default: return may_be_nhwc(t);
	}
}

static bool likes(const struct layout *l, const struct slp_gnode *n)
{
	if (!is_convolution(n)) return false;
	if (l->layout == SLP_LAYOUT_N16) return slp_layout_prefers_n16(l->g, n);
	return l->layout == SLP_LAYOUT_NC16 ? takes_nc16(l->g, n) : takes_nhwc(l->g, n);
}

/* A convolution that is faster in NHWC, not only able to take it. */
static bool wants_nhwc(const sl_graph *g, const struct slp_gnode *n)
{
	bool weights = slp_node_conv(n) == SLP_CONV_WEIGHTS;
	const struct slp_type *t[] = {slp_value_type(g, n->in[0]),
	                              weights ? slp_value_type(g, n->in[1]) : &n->types[0]};
	for (int i = 0; i < 2; i++)
		if (!may_be_nhwc(t[i]) || t[i]->shape.dim[1] < enough_channels()) return false;
	return true;
}

/* Its weights are reordered then, and may be converted in the same copy. */
bool slp_layout_nhwc(const sl_graph *g, const struct slp_gnode *n)
{
	return is_convolution(n) && on_gpu(g) && takes_nhwc(g, n) && wants_nhwc(g, n);
}

/* Of images of one place, NHWC and the plain layout are the same bytes: any operation gives and takes them. */
static bool is_either(const struct layout *l, const struct slp_type *t)
{
	return l->layout == SLP_LAYOUT_NHWC && t->shape.ndim == 4 && t->shape.dim[2] * t->shape.dim[3] == 1;
}

static void possible_results(struct layout *l, int node)
{
	const struct slp_gnode *n = &l->g->nodes[node];
	for (int i = 0; i < n->nout && !n->dead; i++)
		l->possible[node * SLP_MAX_OUTPUTS + i] =
		        may_be(l, &n->types[i]) &&
		        (side_of_result(l, n, i) != NEITHER || is_elementwise(l->g, n) || is_either(l, &n->types[i]));
}

/* A convolution that is faster in the plain layout gets its arguments in that; an argument in another has a side. */
static void restrict_arguments(struct layout *l, int node)
{
	const struct slp_gnode *n = &l->g->nodes[node];
	bool liked = likes(l, n), wants = liked && (l->layout != SLP_LAYOUT_NHWC || wants_nhwc(l->g, n));
	for (int i = 0; i < n->nin; i++) {
		bool can = side_of_argument(l, n, i) != NEITHER ? liked || !is_convolution(n) : is_elementwise(l->g, n);
		if (!can && !is_either(l, slp_value_type(l->g, n->in[i]))) l->possible[slp_value_id(n->in[i])] = false;
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

/* Operands that must have the same layout: those of elementwise operations, and those that one attribute describes. */
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
	for (int i = 0; i < g->noutputs; i++)
		if (!is_either(l, slp_value_type(g, g->outputs[i]))) l->possible[slp_value_id(g->outputs[i])] = false;
	for (l->changed = true; l->changed;) {
		l->changed = false;
		for (int i = 0; i < g->count; i++)
			if (g->nodes[i].kind == SLP_NODE_OP) tie_operands(l, i);
	}
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static void set_layout(struct slp_gnode *n, enum side side, enum slp_image_layout layout)
{
	bool one = side == ONE && slp_attr_find(n->op, "layout");
	if (one) slp_node_set_int(n, "layout", layout);
	if (!one && side != Y) slp_node_set_int(n, "x_layout", layout);
	if (!one && side != X) slp_node_set_int(n, "y_layout", layout);
}

static void set_sides(const struct layout *l, int node)
{
	struct slp_gnode *n = &l->g->nodes[node];
	for (int i = 0; i < n->nin + 1; i++) {
		enum side side = i < n->nin ? side_of_argument(l, n, i) : side_of_result(l, n, 0);
		int id = i < n->nin ? slp_value_id(n->in[i]) : node * SLP_MAX_OUTPUTS;
		if (side == NEITHER || !l->possible[id] || !l->wanted[id]) continue;
		slp_node_lower_conv(n);
		set_layout(n, side, l->layout);
	}
}

static enum sl_status arrange(sl_graph *g, enum slp_image_layout layout)
{
	size_t values = (size_t)g->count * SLP_MAX_OUTPUTS + 1;
	struct layout l = {g, slp_calloc(values, sizeof(bool)), slp_calloc(values, sizeof(bool)), false, layout};
	enum sl_status s = l.possible && l.wanted ? SL_OK : slp_pass_no_memory("layout");
	if (s == SL_OK && (layout == SLP_LAYOUT_NHWC ? on_gpu(g) : slp_layout_on_cpu(g))) {
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
	for (int i = SLP_LAYOUT_PLAIN + 1; i < SLP_LAYOUTS && s == SL_OK; i++) s = arrange(g, (enum slp_image_layout)i);
	if (s != SL_OK || !slp_layout_on_gpu(g)) return s;
	s = slp_fuse_biases(g);
	return s == SL_OK ? slp_convert_parameters(g) : s;
}
