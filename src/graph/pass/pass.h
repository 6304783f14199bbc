/* Functions that passes share. */
#ifndef SLP_PASS_H
#define SLP_PASS_H

#include "graph/graph.h"
#include "op.h"
#include "op_inner.h"
#include "starling/graph.h"

enum sl_status slp_pass_infer(sl_graph *g);
enum sl_status slp_pass_fold(sl_graph *g);
enum sl_status slp_pass_cse(sl_graph *g);
enum sl_status slp_pass_simplify(sl_graph *g);
enum sl_status slp_pass_norm(sl_graph *g);
enum sl_status slp_pass_block(sl_graph *g);
enum sl_status slp_pass_fuse(sl_graph *g);
enum sl_status slp_pass_layout(sl_graph *g);
enum sl_status slp_pass_chain(sl_graph *g);
enum sl_status slp_pass_dead(sl_graph *g);

/* The state of a pass that walks forward through a graph. */
struct slp_walk {
	sl_graph *g;
	int count;            /* values of the original graph: by value id */
	struct slp_value *to; /* its replacement */
	bool *written;        /* some node writes its memory: the time of a read matters */
	bool *output;         /* the program returns it */
};
bool slp_walk_begin(struct slp_walk *w, sl_graph *g); /* false, with an error: no memory */
/* Replaces arguments of a node, which comes after their replacements. */
void slp_walk_node(struct slp_walk *w, int node);
void slp_walk_replace(struct slp_walk *w, struct slp_value from, struct slp_value to);
/* Whether `to` can replace `from`: neither is written, and results of the program remain distinct tensors. */
bool slp_walk_may_replace(const struct slp_walk *w, struct slp_value from, struct slp_value to);
/* Whether a node may read v at another place in the order. */
bool slp_walk_may_read(const struct slp_walk *w, struct slp_value v);
void slp_walk_end(struct slp_walk *w); /* replaces outputs too */

/* Who uses each value (users.c): outputs of the program, whose node is -1, and arguments of nodes, in the order in
 * which these were found or added. These functions keep the lists up to date, in time that does not depend on the size
 * of the graph; other changes of the graph do not. */
struct slp_users {
	sl_graph *g;
	struct slp_uses {
		int first, last, count;      /* in list; -1: none */
		int memory;                  /* as slp_graph_memories */
		int first_write, last_write; /* of a memory: nodes that write it are among these */
	} * of;                              /* by value id */
	struct slp_user {
		int node, arg;
		int next, before; /* of the same value; -1: none */
	} * list;
	int *args; /* by node: where the uses by its arguments begin in list */
	int count; /* in list */
	int max_of, max_list, max_args;
};
bool slp_users_find(struct slp_users *u, sl_graph *g); /* false, with an error: no memory */
void slp_users_free(struct slp_users *u);
/* for (int i = slp_users_first(u, v); i >= 0; i = u->list[i].next) … u->list[i] */
static inline int slp_users_first(const struct slp_users *u, struct slp_value v)
{
	return u->of[slp_value_id(v)].first;
}
static inline int slp_users_count(const struct slp_users *u, struct slp_value v)
{
	return u->of[slp_value_id(v)].count;
}
static inline int slp_users_memory(const struct slp_users *u, struct slp_value v)
{
	return u->of[slp_value_id(v)].memory;
}
/* Adds the uses by an appended node, which writes nothing; false without memory. */
bool slp_users_add(struct slp_users *u, int node);
/* Replaces every use of `from` (also as an output of the program) by `to`. */
void slp_users_replace(struct slp_users *u, struct slp_value from, struct slp_value to);
/* As slp_graph_rewrite, slp_graph_kill. */
bool slp_users_rewrite(struct slp_users *u, int node, const struct sl_op *op, const void *attrs, int nin,
                       const struct slp_value *in);
void slp_users_kill(struct slp_users *u, int node);
/* Whether no node from `first` to `last` writes the memory of v. */
bool slp_users_stays(const struct slp_users *u, struct slp_value v, int first, int last);

/* The parts of fuse. */
enum sl_status slp_fuse_linear(sl_graph *g);
enum sl_status slp_fuse_pool(sl_graph *g);
enum sl_status slp_fuse_sums(sl_graph *g);
enum sl_status slp_fuse_half(sl_graph *g);
enum sl_status slp_fuse_heads(sl_graph *g);
enum sl_status slp_fuse_rows(sl_graph *g);
enum sl_status slp_fuse_losses(sl_graph *g);
enum sl_status slp_fuse_norms(sl_graph *g);
/* A part of block: weights of eight-bit products, for teams of so many threads (pack.c). */
enum sl_status slp_pack_products(sl_graph *g, int threads);

/* Parts of layout. */
enum sl_status slp_convert_parameters(sl_graph *g);
enum sl_status slp_fuse_biases(sl_graph *g);
enum sl_status slp_fuse_reductions(sl_graph *g);

/* A part of chain. */
enum sl_status slp_expand_norms(sl_graph *g);

/* Whether a node is a convolution that is fastest in N16; whether the program runs on CPUs (layout.c). */
bool slp_layout_prefers_n16(const sl_graph *g, const struct slp_gnode *n);
bool slp_layout_on_cpu(const sl_graph *g);
/* Whether the program runs on GPUs that are not simulated. */
bool slp_layout_on_gpu(const sl_graph *g);
/* Whether a node is a convolution on GPUs that computes in NHWC if its images can have that layout. */
bool slp_layout_nhwc(const sl_graph *g, const struct slp_gnode *n);

/* The node that computes v, if it is a call of this operation; else NULL. */
const struct slp_gnode *slp_value_op(const sl_graph *g, struct slp_value v, const struct sl_op *op);
bool slp_node_is(const struct slp_gnode *n, const struct sl_op *op);
/* The pass of a convolution that a node computes, in any form; SLP_CONV_PASSES: none. slp_node_lower_conv turns the
 * plain form into the lowered one. */
enum slp_conv_pass slp_node_conv(const struct slp_gnode *n);
void slp_node_lower_conv(struct slp_gnode *n);
/* A number in the attributes of a call, of a node; 0 if there is no attribute of that name. */
double slp_attr_number(const struct sl_op *op, const void *attrs, const char *name);
double slp_node_number(const struct slp_gnode *n, const char *name);
void slp_node_set_int(struct slp_gnode *n, const char *name, int value); /* of an int or a bool */
/* The order of the axes of a transpose, complete. */
bool slp_transpose_axes(const sl_graph *g, const struct slp_gnode *n, int axes[SL_MAX_NDIM]);
enum sl_status slp_pass_no_memory(const char *pass);

#endif
