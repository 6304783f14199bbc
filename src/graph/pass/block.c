/* block: in programs without gradients, images stay in blocks of channels (codelets/common/blocks.h, oneDNN's nChw8c
 * and nChw16c) between operations.
 *
 * Blocks begin at a convolution that has a fast kernel for them. Poolings, normalisations, concatenations and
 * elementwise operations continue in it; all other readers get the value in the plain layout. Convolutions then include
 * a following relu, bounds and an addition. On CPUs only; programs with gradients use N16 (layout.c). */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "graph/pass/pass.h"
#include "graph/pass/taps.h"
#include "op_inner.h"
#include "op_list/binary.h"
#include "op_list/conv.h"
#include "op_list/move.h"
#include "op_list/norm.h"
#include "op_list/pool.h"
#include "op_list/unary.h"
#include "runtime/device/team.h"
#include "runtime/engine.h"
#include "starling/autograd.h"
#include "starling/graph.h"
#include "starling/primitives.h"

struct blocks {
	sl_graph *g;
	int block, threads, count; /* values of the original graph */
	int *channels;             /* by value id: channels of images in blocks; 0: it is plain */
	int *depth;                /* and their layers, of volumes; 0: images */
	struct slp_value *other;   /* the value in the other layout, once it exists; node -1 */
	int *uses;
	bool winograd;
	enum sl_status status;
};

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

/* Adds an operation before node `place`; -1 after an error, which is in b->status. */
static int add(struct blocks *b, int place, const struct sl_op *op, const void *attrs, int nin,
               const struct slp_value *in)
{
	int node = slp_graph_add_op(b->g, b->g->nodes[place].at, NULL, op, attrs, nin, in);
	if (node < 0) b->status = slp_pass_no_memory("block");
	if (node < 0) return -1;
	slp_graph_before(b->g, node, place);
	b->status = slp_node_infer(b->g, node);
	return b->status == SL_OK ? node : -1;
}

static void rewrite(struct blocks *b, int node, const struct sl_op *op, const void *attrs, int nin,
                    const struct slp_value *in)
{
	if (!slp_graph_rewrite(b->g, node, op, attrs, nin, in)) b->status = slp_pass_no_memory("block");
	else b->status = slp_node_infer(b->g, node);
}

static int channels_of(const struct blocks *b, struct slp_value v)
{
	return slp_value_id(v) < b->count ? b->channels[slp_value_id(v)] : 0;
}

static int depth_of(const struct blocks *b, struct slp_value v)
{
	return slp_value_id(v) < b->count ? b->depth[slp_value_id(v)] : 0;
}

/* The node's result is in blocks from now on. */
static void mark(struct blocks *b, int node, int channels, int depth)
{
	b->channels[node * SLP_MAX_OUTPUTS] = channels;
	b->depth[node * SLP_MAX_OUTPUTS] = depth;
}

static const struct slp_type *type_of(const struct blocks *b, struct slp_value v)
{
	return slp_value_type(b->g, v);
}

/* The value in the other layout, for node `place`; one reorder serves all readers. */
static struct slp_value reordered(struct blocks *b, int place, struct slp_value v)
{
	struct slp_value *other = &b->other[slp_value_id(v)];
	if (other->node >= 0) return *other;
	int channels = channels_of(b, v);
	struct slp_blocks_attrs a = {b->block, channels ? channels : (int)type_of(b, v)->shape.dim[1], depth_of(b, v)};
	int node = add(b, place, channels ? &slp_op_from_blocks : &slp_op_to_blocks, &a, 1, &v);
	return *other = node < 0 ? v : (struct slp_value){node, 0};
}

static struct slp_value in_blocks(struct blocks *b, int place, struct slp_value v)
{
	return channels_of(b, v) ? v : reordered(b, place, v);
}

static struct slp_value in_plain(struct blocks *b, int place, struct slp_value v)
{
	return channels_of(b, v) ? reordered(b, place, v) : v;
}

static sl_tensor *filled(const struct blocks *b, int64_t count, double value)
{
	sl_tensor *t = sl_full(SL_SHAPE(count), value, .device = b->g->device);
	return t;
}

/* A constant vector, for node `place`. */
static struct slp_value constant(struct blocks *b, int place, int64_t count, double value)
{
	int node = -1;
	SL_PAUSE
		SL_SCOPE {
			sl_tensor *t = filled(b, count, value);
			if (t) node = slp_graph_add_tensor(b->g, b->g->nodes[place].at, NULL, SLP_NODE_CONST, t);
		}
	if (node < 0) b->status = sl_error() != SL_OK ? sl_error() : slp_pass_no_memory("block");
	else slp_graph_before(b->g, node, place);
	return (struct slp_value){node, 0};
}

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

/* Whether Winograd's transforms cost little beside the products that they save; SL_WINOGRAD=0: never. */
static bool winograd_pays(const struct blocks *b, const struct slp_conv2d_blocked_attrs *a)
{
	const struct sl_conv2d_opts *o = &a->conv;
	bool plain =
	        o->stride[0] == 1 && o->stride[1] == 1 && o->dilation[0] == 1 && o->dilation[1] == 1 && o->groups == 1;
	return b->winograd && plain && !a->depth.kernel && a->kernel[0] == 3 && a->kernel[1] == 3 &&
	       a->channels[0] >= 64 && a->channels[1] >= 64;
}

/* Blocks of channels must pay: whole blocks in each group, one channel a group, or so few channels of x that it stays
 * plain.  Where x is in blocks already, half a block costs less than the way out of blocks and back. */
static bool fits(const struct blocks *b, const struct slp_gnode *n, const struct slp_conv2d_blocked_attrs *a)
{
	enum { MOST_TERMS = 1 << 15 }; /* of a sum in one accumulator: longer ones round too much */
	int groups = a->conv.groups, in = a->channels[0] / groups, out = a->channels[1] / groups;
	int least = channels_of(b, n->in[0]) ? b->block / 2 : b->block;
	if ((int64_t)in * a->kernel[0] * a->kernel[1] > MOST_TERMS) return false;
	if (groups > 1 && in == 1 && out == 1) return true;
	if (groups > 1) return in % b->block == 0 && out % b->block == 0;
	return out >= least && (in >= least || a->x_plain);
}

/* In blocks, the layers of a volume are further rows. */
static void describe_depth(const struct blocks *b, const struct slp_gnode *n, struct slp_conv2d_blocked_attrs *a)
{
	sl_shape x = type_of(b, n->in[0])->shape;
	a->depth = ((const struct slp_conv3d_attrs *)(const void *)n->attrs.bytes)->depth;
	a->depth.kernel = (int)type_of(b, n->in[1])->shape.dim[2];
	if (!a->depth.stride) a->depth.stride = 1;
	if (!a->depth.dilation) a->depth.dilation = 1;
	a->layers = channels_of(b, n->in[0]) ? depth_of(b, n->in[0]) : (int)x.dim[2];
	if (channels_of(b, n->in[0])) a->size[0] /= a->layers;
	else a->size[0] = (int)x.dim[3], a->size[1] = (int)x.dim[4];
}

static bool describe(const struct blocks *b, const struct slp_gnode *n, struct slp_conv2d_blocked_attrs *a)
{
	const struct slp_type *x = type_of(b, n->in[0]);
	int volume = n->op == &slp_op_conv3d;
	if (n->types[0].dtype != SL_FLOAT32 || n->types[0].shape.ndim != 4 + volume ||
	    sl_shape_size(n->types[0].shape) == 0)
		return false;
	sl_shape w = type_of(b, n->in[1])->shape;
	bool plain = !channels_of(b, n->in[0]);
	*a = (struct slp_conv2d_blocked_attrs){.conv = *(const struct sl_conv2d_opts *)(const void *)n->attrs.bytes,
	                                       .block = b->block};
	slp_conv_defaults(&a->conv);
	a->images = (int)x->shape.dim[0];
	a->channels[0] = (int)w.dim[1] * a->conv.groups;
	a->channels[1] = (int)w.dim[0];
	a->x_plain = plain && a->channels[0] < 5;
	for (int i = 0; i < 2; i++) { /* in blocks, height and width are the same axes */
		a->kernel[i] = (int)w.dim[2 + volume + i];
		a->size[i] = (int)x->shape.dim[2 + i];
	}
	if (volume) describe_depth(b, n, a);
	return true;
}

static bool plan_kernel(const struct blocks *b, struct slp_conv2d_blocked_attrs *a)
{
	a->winograd = winograd_pays(b, a);
	if (slp_conv_blocked_plan(a, b->threads)) return true;
	if (!a->winograd) return false;
	a->winograd = false;
	return slp_conv_blocked_plan(a, b->threads);
}

static bool plan_convolution(const struct blocks *b, const struct slp_gnode *n, struct slp_conv2d_blocked_attrs *a,
                             int crop[2])
{
	struct slp_conv2d_blocked_attrs whole;
	if (slp_node_number(n, "activation") != SL_IDENTITY || !describe(b, n, a) || !fits(b, n, a)) return false;
	whole = *a;
	slp_taps_crop(a, crop);
	if (plan_kernel(b, a)) return true;
	if (!crop[0] && !crop[1]) return false;
	*a = whole;
	crop[0] = crop[1] = 0;
	return plan_kernel(b, a);
}

static bool take_convolution(struct blocks *b, int node)
{
	struct slp_conv2d_blocked_attrs a;
	int crop[2];
	const struct slp_gnode *n = &b->g->nodes[node];
	struct slp_value x = n->in[0], w = n->in[1], bias = n->nin == 3 ? n->in[2] : (struct slp_value){-1, 0};
	int depth = n->op == &slp_op_conv3d ? (int)n->types[0].shape.dim[2] : 0;
	if (!plan_convolution(b, n, &a, crop)) return false;
	if (!a.x_plain) x = in_blocks(b, node, x);
	if (b->status == SL_OK) b->status = slp_taps_slice(b->g, node, crop, &w);
	int packed = b->status == SL_OK ? add(b, node, &slp_op_conv2d_pack, &a, 1, &w) : -1;
	if (packed >= 0 && bias.node < 0) bias = constant(b, node, a.channels[1], 0);
	if (b->status != SL_OK) return false;
	rewrite(b, node, &slp_op_conv2d_blocked, &a, 3, (struct slp_value[]){x, {packed, 0}, bias});
	mark(b, node, a.channels[1], depth);
	return true;
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

static bool take_pool(struct blocks *b, int node)
{
	const struct slp_gnode *n = &b->g->nodes[node];
	int channels = channels_of(b, n->in[0]);
	struct slp_value x = n->in[0];
	if (!channels || depth_of(b, x)) return false;
	rewrite(b, node, &slp_op_pool2d_blocked, n->attrs.bytes, 1, &x);
	mark(b, node, channels, 0);
	return true;
}

static bool take_norm(struct blocks *b, int node)
{
	const struct slp_gnode *n = &b->g->nodes[node];
	struct slp_value x = n->in[0];
	int channels = channels_of(b, x), activation = (int)slp_node_number(n, "activation");
	if (!channels || (activation != SL_IDENTITY && activation != SL_RELU)) return false;
	struct slp_value in[5] = {{0, 0}, n->in[1], n->in[2], n->in[3], n->in[4]};
	struct slp_norm_fold_attrs attrs = {slp_node_number(n, "eps")};
	in[0] = constant(b, node, channels, 1);
	int made = b->status == SL_OK ? add(b, node, &slp_op_norm_fold, &attrs, 5, in) : -1;
	if (made < 0) return false;
	struct slp_affine_attrs a = {activation == SL_RELU};
	rewrite(b, node, &slp_op_affine_blocked, &a, 3, (struct slp_value[]){x, {made, 0}, {made, 1}});
	mark(b, node, channels, depth_of(b, x));
	return true;
}

/* A concatenation along the axis of channels, of whole blocks. */
static bool take_concat(struct blocks *b, int node)
{
	struct slp_gnode *n = &b->g->nodes[node];
	int axis = (int)slp_node_number(n, "axis"), channels = 0, axes = n->types[0].shape.ndim;
	if ((axes != 4 && axes != 5) || (axis != 1 && axis != 1 - axes)) return false;
	for (int i = 0; i < n->nin; i++) {
		int each = channels_of(b, n->in[i]);
		if (!each || each % b->block) return false;
		channels += each;
	}
	slp_node_set_int(n, "axis", 1);
	b->status = slp_node_infer(b->g, node);
	mark(b, node, channels, depth_of(b, n->in[0]));
	return true;
}

/* Whether the operation keeps 0, so that the padding of the last block may be computed, too. */
static bool keeps_zero(const struct slp_gnode *n)
{
	return n->op == &slp_op_relu || n->op == &slp_op_add ||
	       (n->op == &slp_op_maximum_scalar && slp_node_number(n, "value") <= 0) ||
	       (n->op == &slp_op_minimum_scalar && slp_node_number(n, "value") >= 0);
}

/* An operation on elements of tensors of one shape, some of them in blocks. */
static bool take_elementwise(struct blocks *b, int node)
{
	struct slp_gnode *n = &b->g->nodes[node];
	int channels = 0;
	sl_shape shape = n->types[0].shape;
	int depth = shape.ndim == 5 ? (int)shape.dim[2] : 0;
	if (!slp_fused_takes(n->op) || n->types[0].dtype != SL_FLOAT32 || shape.ndim < 4 || shape.ndim > 5)
		return false;
	for (int i = 0; i < n->nin; i++) channels += channels_of(b, n->in[i]) > 0 ? (int)shape.dim[1] : 0;
	if (!channels || (shape.dim[1] % b->block && !keeps_zero(n))) return false;
	for (int i = 0; i < n->nin; i++) {
		const struct slp_type *t = type_of(b, n->in[i]);
		if (channels_of(b, n->in[i]) ? channels_of(b, n->in[i]) != shape.dim[1]
		                             : sl_shape_size(t->shape) != 1 && !sl_shape_equal(t->shape, shape))
			return false;
	}
	for (int i = 0; i < n->nin && b->status == SL_OK; i++) {
		struct slp_value v = n->in[i];
		bool number = !channels_of(b, v) && !sl_shape_equal(type_of(b, v)->shape, shape);
		if (!number) v = in_blocks(b, node, v);
		n = &b->g->nodes[node];
		n->in[i] = v;
	}
	if (b->status == SL_OK) b->status = slp_node_infer(b->g, node);
	mark(b, node, (int)shape.dim[1], depth);
	return true;
}

/* ---- operations that convolutions absorb ------------------------------------------------------------------------- */

/* The convolution whose result v has a single user; NULL: there is none. */
static struct slp_conv2d_blocked_attrs *convolution_of(const struct blocks *b, struct slp_value v,
                                                       const struct sl_op *op)
{
	struct slp_gnode *n = &b->g->nodes[v.node];
	bool is = n->kind == SLP_NODE_OP && !n->dead &&
	          (n->op == &slp_op_conv2d_blocked || n->op == &slp_op_conv2d_blocked_add);
	if (!is || (op && n->op != op) || b->uses[slp_value_id(v)] != 1) return NULL;
	return (struct slp_conv2d_blocked_attrs *)(void *)n->attrs.bytes;
}

/* Node takes the place of the convolution before it, which includes it now. */
static bool become(struct blocks *b, int node, struct slp_value v)
{
	const struct slp_gnode *conv = &b->g->nodes[v.node];
	rewrite(b, node, conv->op, conv->attrs.bytes, conv->nin, conv->in);
	slp_graph_kill(b->g, v.node);
	mark(b, node, channels_of(b, v), depth_of(b, v));
	return true;
}

/* relu, and bounds: minimum_scalar with a number not below 0, maximum_scalar with one not above. */
static bool take_over_unary(struct blocks *b, int node)
{
	const struct slp_gnode *n = &b->g->nodes[node];
	bool relu = n->op == &slp_op_relu, upper = n->op == &slp_op_minimum_scalar,
	     lower = n->op == &slp_op_maximum_scalar;
	if ((!relu && !upper && !lower) || !keeps_zero(n)) return false;
	struct slp_conv2d_blocked_attrs *a = convolution_of(b, n->in[0], NULL);
	if (!a || (a->relu && !relu)) return false;
	double value = relu ? 0 : slp_node_number(n, "value");
	if (relu && !a->bounded) return a->relu = true, become(b, node, n->in[0]);
	if (!a->bounded) a->low = -FLT_MAX, a->high = FLT_MAX;
	a->bounded = true;
	if (upper && value < a->high) a->high = value;
	if (!upper && value > a->low) a->low = value;
	return become(b, node, n->in[0]);
}

/* An addition of the convolution's result to another tensor of its shape, which is computed before. */
static bool take_over_add(struct blocks *b, int node)
{
	const struct slp_gnode *n = &b->g->nodes[node];
	if (n->op != &slp_op_add || slp_value_equal(n->in[0], n->in[1])) return false;
	for (int i = 1; i >= 0; i--) {
		const struct slp_conv2d_blocked_attrs *a = convolution_of(b, n->in[i], &slp_op_conv2d_blocked);
		const struct slp_gnode *conv = &b->g->nodes[n->in[i].node];
		if (!a || a->relu || a->bounded || channels_of(b, n->in[!i]) != a->channels[1]) continue;
		if (slp_value_equal(conv->in[0], n->in[!i]))
			continue; /* it is still read while the result overwrites it */
		struct slp_value v = n->in[i], in[] = {n->in[!i], conv->in[0], conv->in[1], conv->in[2]};
		rewrite(b, node, &slp_op_conv2d_blocked_add, a, 4, in);
		slp_graph_kill(b->g, v.node);
		mark(b, node, channels_of(b, v), depth_of(b, v));
		return true;
	}
	return false;
}

/* A relu after a normalisation. */
static bool take_over_norm(struct blocks *b, int node)
{
	const struct slp_gnode *n = &b->g->nodes[node];
	struct slp_gnode *norm = n->op == &slp_op_relu ? &b->g->nodes[n->in[0].node] : NULL;
	if (!norm || norm->kind != SLP_NODE_OP || norm->op != &slp_op_affine_blocked ||
	    b->uses[slp_value_id(n->in[0])] != 1)
		return false;
	((struct slp_affine_attrs *)(void *)norm->attrs.bytes)->relu = true;
	return become(b, node, n->in[0]);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static bool take(struct blocks *b, int node)
{
	const struct sl_op *op = b->g->nodes[node].op;
	if (op == &slp_op_conv2d || op == &slp_op_conv3d) return take_convolution(b, node);
	if (op == &slp_op_max_pool2d || op == &slp_op_avg_pool2d) return take_pool(b, node);
	if (op == &slp_op_batch_norm_infer) return take_norm(b, node);
	if (op == &slp_op_concat) return take_concat(b, node);
	if (!channels_of(b, b->g->nodes[node].in[0]) && b->g->nodes[node].nin < 2) return false;
	return take_over_unary(b, node) || take_over_add(b, node) || take_over_norm(b, node) ||
	       take_elementwise(b, node);
}

static void take_node(struct blocks *b, int node)
{
	bool some = b->g->nodes[node].nin > 0;
	if (!some || take(b, node) || b->status != SL_OK) return;
	for (int i = 0; i < b->g->nodes[node].nin && b->status == SL_OK; i++) {
		struct slp_value v = in_plain(b, node, b->g->nodes[node].in[i]);
		b->g->nodes[node].in[i] = v;
	}
}

static void take_outputs(struct blocks *b)
{
	for (int i = 0; i < b->g->noutputs && b->status == SL_OK; i++) {
		struct slp_value v = b->g->outputs[i];
		if (!channels_of(b, v)) continue;
		struct slp_blocks_attrs a = {b->block, channels_of(b, v), depth_of(b, v)};
		int node = b->other[slp_value_id(v)].node;
		if (node < 0)
			node = slp_graph_add_op(b->g, b->g->nodes[v.node].at, NULL, &slp_op_from_blocks, &a, 1, &v);
		if (node < 0) b->status = slp_pass_no_memory("block");
		else b->status = slp_node_infer(b->g, node);
		b->g->outputs[i] = b->other[slp_value_id(v)] = (struct slp_value){node, 0};
	}
}

/* Whether the program is an inference: it neither changes parameters nor returns many images. */
static bool is_inference(const sl_graph *g)
{
	int images = 0, convolutions = 0;
	for (int i = 0; i < g->count; i++) {
		const struct slp_gnode *n = &g->nodes[i];
		if (n->kind != SLP_NODE_OP || n->dead) continue;
		if (n->backward || slp_node_has_effect(n)) return false;
		convolutions += n->op == &slp_op_conv2d || n->op == &slp_op_conv3d;
	}
	for (int i = 0; i < g->noutputs; i++) {
		const struct slp_gnode *n = &g->nodes[g->outputs[i].node];
		int axes = n->types[g->outputs[i].out].shape.ndim;
		images += n->kind == SLP_NODE_OP && (axes == 4 || axes == 5);
	}
	return convolutions > 0 && images <= 1 + convolutions / 4;
}

/* The size of all teams, since kernels and their weights depend on it; 0: sizes differ. */
static int threads_of_teams(void)
{
	int threads = slp_engine.nslaves ? 0 : slp_team_threads(0);
	for (int i = 1; i < slp_engine.nteams && threads; i++)
		if (slp_team_threads(i) != threads) threads = 0;
	return threads;
}

static bool begin(struct blocks *b, sl_graph *g)
{
	const char *wish = getenv("SL_WINOGRAD");
	*b = (struct blocks){
	        .g = g, .block = slp_block_size(), .threads = threads_of_teams(), .count = g->count * SLP_MAX_OUTPUTS};
	b->winograd = !(wish && !strcmp(wish, "0"));
	b->channels = slp_calloc((size_t)b->count + 1, sizeof *b->channels);
	b->depth = slp_calloc((size_t)b->count + 1, sizeof *b->depth);
	b->other = slp_calloc((size_t)b->count + 1, sizeof *b->other);
	b->uses = slp_graph_uses(g);
	for (int i = 0; b->other && i < b->count; i++) b->other[i].node = -1;
	return b->channels && b->depth && b->other && b->uses;
}

/* Images in blocks, of a program without gradients. */
static enum sl_status take_all(sl_graph *g)
{
	struct blocks b;
	enum sl_status s = begin(&b, g) ? SL_OK : slp_pass_no_memory("block");
	int count = s == SL_OK && b.block && b.threads ? g->count : 0;
	for (int i = 0; i < count && b.status == SL_OK; i++)
		if (g->nodes[i].kind == SLP_NODE_OP && !g->nodes[i].dead) take_node(&b, i);
	if (count) take_outputs(&b);
	if (s == SL_OK) s = b.status;
	free(b.channels);
	free(b.depth);
	free(b.other);
	free(b.uses);
	return s == SL_OK ? slp_pass_dead(g) : s;
}

enum sl_status slp_pass_block(sl_graph *g)
{
	int threads = threads_of_teams();
	if (!slp_layout_on_cpu(g)) return SL_OK;
	enum sl_status s = threads ? slp_pack_products(g, threads) : SL_OK;
	return s == SL_OK && is_inference(g) ? take_all(g) : s;
}
