/* A backward pass: the recorded calls behind some heads, newest first. */
#ifndef SLP_WALK_H
#define SLP_WALK_H

#include "autograd/autograd.h"

/* Nodes that one walk meets. */
struct walk {
	const char *at, *function; /* of the call, and its name */
	uint64_t number;
	struct slp_node **nodes;
	int count, capacity;
	struct slp_var **leaves;
	int nleaves, max_leaves;
	struct partial { /* a leaf's gradient from one device, before another device contributed */
		struct slp_var *leaf;
		sl_tensor *sum;
	} * partials;
	int npartials, max_partials;
	struct slp_var **inside; /* results of repeated parts: held */
	int ninside, max_inside;
	bool retain;
	bool again;   /* gradients are recorded, so that they have gradients */
	double scale; /* of all gradients */
	sl_tensor *const
	        *wants; /* gradients with respect to these alone are computed, and returned; NULL: stored in leaves */
	sl_tensor **given; /* held: the gradients; NULL: not reached */
	int nwants;
};

/* Walks back from the heads, whose gradients are grads (NULL: ones). */
enum sl_status slp_walk(struct walk *w, sl_tensor *const *heads, int count, sl_tensor *const *grads);

/* ---- leaves.c ---------------------------------------------------------------------------------------------------- */

/* The sums of leaves become their gradients, or results of the walk.  After an error only drops the sums: s is
 * restored. */
enum sl_status slp_store_all(const struct walk *w, enum sl_status s);
void slp_walk_free(struct walk *w); /* its lists */

/* ---- again.c: gradients that have gradients ---------------------------------------------------------------------- */

/* The operands of a recorded call with their histories, in the innermost scope: the operands of g become these, in
 * arrays that the caller frees.  False with an error. */
bool slp_node_histories(struct slp_node *n, struct slp_grad *g);
/* Whether the gradient of a call is that of the same computation by other operations (sl_op.again), and makes that: out
 * gets its results, in the innermost scope. */
bool slp_node_is_made_again(const struct slp_node *n);
bool slp_node_make_again(struct slp_node *n, sl_tensor **out);

#endif
