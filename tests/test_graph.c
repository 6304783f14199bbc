/* Graphs: building and changing them, their order, types, what verify rejects. */
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "op_list/binary.h"
#include "op_list/linear.h"
#include "op_list/move.h"
#include "op_list/optim.h"
#include "op_list/reduce.h"
#include "op_list/unary.h"
#include "graph/pass/pass.h"
#include "program.h"

extern const struct sl_op slp_op_add, slp_op_mul, slp_op_relu, slp_op_sgd, slp_op_sum, slp_op_linear, slp_op_reshape,
        slp_op_neg, slp_op_copy_over;

static void clear(void)
{
	sl_wait_all();
	sl_error_clear();
}

static struct slp_type f32(sl_shape shape)
{
	return (struct slp_type){SL_FLOAT32, shape};
}

static struct slp_value op1(sl_graph *g, const struct sl_op *op, struct slp_value a)
{
	return (struct slp_value){slp_graph_add_op(g, "file.c:1", NULL, op, NULL, 1, &a), 0};
}

static struct slp_value op2(sl_graph *g, const struct sl_op *op, struct slp_value a, struct slp_value b)
{
	struct slp_value in[] = {a, b};
	return (struct slp_value){slp_graph_add_op(g, "file.c:2", NULL, op, NULL, 2, in), 0};
}

static struct slp_value input(sl_graph *g, const char *name, sl_shape shape)
{
	return (struct slp_value){slp_graph_add_input(g, "file.c:3", name, f32(shape)), 0};
}

static void infer_all(sl_graph *g)
{
	for (int i = 0; i < g->count; i++) CHECK_OK(slp_node_infer(g, i));
}

static int find(const sl_graph *g, const char *name)
{
	for (int i = 0; i < g->count; i++)
		if (!g->nodes[i].dead && !strcmp(g->nodes[i].name, name)) return i;
	return -1;
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

static void test_build(void)
{
	sl_graph *g = slp_graph_new();
	struct slp_value x = input(g, "x", SL_SHAPE(2, 3)), y = op1(g, &slp_op_relu, x), z = op2(g, &slp_op_add, y, x);
	CHECK(slp_graph_add_output(g, z, "z"));
	CHECK(g->nodes[z.node].types[0].shape.ndim == -1);
	CHECK(slp_graph_verify(g) == SL_EINTERNAL); /* types are missing */
	sl_error_clear();
	infer_all(g);
	CHECK_OK(slp_graph_verify(g));
	CHECK(sl_shape_equal(slp_value_type(g, z)->shape, SL_SHAPE(2, 3)));
	int *uses = slp_graph_uses(g);
	CHECK(uses[slp_value_id(x)] == 2 && uses[slp_value_id(y)] == 1 && uses[slp_value_id(z)] == 1);
	free(uses);
	sl_graph_free(g);
}

/* The lists say what a search would find. */
static void check_users(struct slp_users *kept)
{
	struct slp_users found;
	CHECK(slp_users_find(&found, kept->g));
	for (int id = 0; id < kept->g->count * SLP_MAX_OUTPUTS; id++) {
		struct slp_value v = {id / SLP_MAX_OUTPUTS, id % SLP_MAX_OUTPUTS};
		CHECK(slp_users_count(kept, v) == slp_users_count(&found, v));
		int count = 0, before = -1;
		for (int i = slp_users_first(kept, v); i >= 0; i = kept->list[i].next, count++) {
			struct slp_user user = kept->list[i];
			CHECK(user.before == before);
			CHECK(slp_value_equal(v, user.node < 0 ? kept->g->outputs[user.arg]
			                                       : kept->g->nodes[user.node].in[user.arg]));
			before = i;
		}
		CHECK(count == slp_users_count(kept, v) && kept->of[id].last == before);
	}
	slp_users_free(&found);
}

static void test_users(void)
{
	sl_graph *g = slp_graph_new();
	struct slp_users u;
	struct slp_value x = input(g, "x", SL_SHAPE(2, 3)), y = op1(g, &slp_op_relu, x), z = op2(g, &slp_op_add, y, x);
	CHECK(slp_graph_add_output(g, z, "z"));
	CHECK(slp_users_find(&u, g));
	check_users(&u);
	CHECK(slp_users_count(&u, x) == 2 && slp_users_count(&u, y) == 1 && slp_users_count(&u, z) == 1);
	for (int i = 0; i < 40; i++) { /* the lists grow */
		struct slp_value more = op2(g, &slp_op_mul, z, x);
		CHECK(slp_users_add(&u, more.node));
		check_users(&u);
	}
	CHECK(slp_users_count(&u, z) == 41 && slp_users_count(&u, x) == 42);
	slp_users_replace(&u, y, x);
	CHECK(slp_value_equal(g->nodes[z.node].in[0], x) && !slp_users_count(&u, y));
	check_users(&u);
	CHECK(slp_users_rewrite(&u, z.node, &slp_op_tanh, NULL, 1, &y));
	CHECK(slp_users_count(&u, y) == 1 && slp_users_count(&u, x) == 41);
	check_users(&u);
	slp_users_kill(&u, z.node + 7);
	CHECK(slp_users_count(&u, z) == 40 && slp_users_count(&u, x) == 40 && g->nodes[z.node + 7].dead);
	check_users(&u);
	slp_users_replace(&u, z, x);
	CHECK(slp_value_equal(g->outputs[0], x) && slp_value_equal(g->nodes[z.node + 1].in[0], x));
	check_users(&u);
	slp_users_free(&u);
	sl_graph_free(g);
}

static void test_names(void)
{
	sl_graph *g = slp_graph_new();
	struct slp_value x = input(g, "x", SL_SHAPE(1));
	for (int i = 0; i < 200; i++) x = op1(g, &slp_op_relu, x);
	input(g, "x", SL_SHAPE(1));
	for (int i = 0; i < g->count; i++)
		for (int j = 0; j < i; j++) CHECK(strcmp(g->nodes[i].name, g->nodes[j].name) != 0);
	CHECK(find(g, "relu") == 1);
	CHECK(g->nodes[5].at == g->nodes[6].at && !strcmp(g->nodes[5].at, "file.c:1"));
	sl_graph_free(g);
}

static void test_copy(void)
{
	SL_SCOPE {
		sl_tensor *w = sl_ones(SL_SHAPE(2));
		sl_graph *g = slp_graph_new();
		struct slp_value a = input(g, "a", SL_SHAPE(2)), b = input(g, "b", SL_SHAPE(2));
		struct slp_value p = {slp_graph_add_tensor(g, NULL, "w", SLP_NODE_PARAM, w), 0};
		struct slp_value dead = op2(g, &slp_op_add, a, b), m = op2(g, &slp_op_mul, p, b);
		slp_graph_add_output(g, m, "m");
		slp_graph_add_output(g, p, NULL);
		g->inputs[0] = b.node, g->inputs[1] = a.node;
		g->nodes[m.node].backward = true;
		g->nrandom = 3;
		slp_graph_kill(g, dead.node);
		sl_graph *c = slp_graph_copy(g);
		CHECK(atomic_load(&w->refs) == 3);
		sl_graph_free(g);
		CHECK(atomic_load(&w->refs) == 2);
		CHECK(c->count == 5 && c->inputs[0] == b.node && c->nrandom == 3 && c->nodes[m.node].backward);
		CHECK(c->nodes[dead.node].dead && c->nodes[p.node].tensor == w);
		CHECK(!strcmp(c->output_names[0], "m") && !c->output_names[1] && !strcmp(c->nodes[m.node].name, "mul"));
		CHECK(slp_graph_compact(c));
		infer_all(c);
		CHECK_OK(slp_graph_verify(c));
		CHECK(c->count == 4 && !strcmp(c->nodes[c->inputs[0]].name, "b"));
		sl_graph_free(c);
		CHECK(atomic_load(&w->refs) == 1);
	}
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

static void test_appended(void)
{
	sl_graph *g = slp_graph_new();
	struct slp_value x = input(g, "x", SL_SHAPE(4)), a = op1(g, &slp_op_relu, x), b = op1(g, &slp_op_neg, a);
	slp_graph_add_output(g, b, NULL);
	struct slp_value c = op1(g, &slp_op_neg, x), d = op1(g, &slp_op_neg, c);
	g->nodes[b.node].in[0] = d;
	slp_graph_kill(g, a.node);
	CHECK(slp_graph_compact(g));
	infer_all(g);
	CHECK_OK(slp_graph_verify(g));
	CHECK(g->count == 4 && g->outputs[0].node == 3 && g->nodes[3].in[0].node == 2);
	g->nodes[2].in[0] = (struct slp_value){3, 0};
	CHECK(slp_graph_verify(g) == SL_EINTERNAL);
	sl_error_clear();
	CHECK(!slp_graph_compact(g) && sl_error() == SL_EINTERNAL); /* a circle */
	sl_error_clear();
	sl_graph_free(g);
}

static void test_deep(void)
{
	enum { N = 100000 };
	sl_graph *g = slp_graph_new();
	struct slp_value x = input(g, "x", SL_SHAPE(4)), y = op1(g, &slp_op_neg, x), v = x;
	slp_graph_add_output(g, y, NULL);
	for (int i = 0; i < N; i++) v = op1(g, &slp_op_neg, v);
	g->nodes[y.node].in[0] = v;
	CHECK(slp_graph_compact(g));
	CHECK(g->count == N + 2 && g->outputs[0].node == N + 1);
	sl_graph_free(g);
}

/* w is read, changed through another view of its storage, and read again; then nodes are appended that read it. */
static void test_effects(void)
{
	SL_SCOPE {
		sl_tensor *w = sl_ones(SL_SHAPE(4)), *rows = sl_rows(w, 0, 2);
		sl_graph *g = slp_graph_new();
		struct slp_value x = input(g, "x", SL_SHAPE(2));
		struct slp_value p = {slp_graph_add_tensor(g, NULL, "w", SLP_NODE_PARAM, w), 0};
		struct slp_value q = {slp_graph_add_tensor(g, NULL, "rows", SLP_NODE_PARAM, rows), 0};
		int before = slp_graph_add_op(g, NULL, "before", &slp_op_neg, NULL, 1, &p);
		int write = slp_graph_add_op(g, NULL, "write", &slp_op_sgd, NULL, 2, (struct slp_value[]){q, x});
		int after = slp_graph_add_op(g, NULL, "after", &slp_op_neg, NULL, 1, &p);
		int early = slp_graph_add_op(g, NULL, "early", &slp_op_relu, NULL, 1, &p);
		int late = slp_graph_add_op(g, NULL, "late", &slp_op_relu, NULL, 1, &p);
		slp_graph_before(g, early, before);
		(void)late;
		slp_graph_add_output(g, (struct slp_value){before, 0}, NULL);
		slp_graph_add_output(g, (struct slp_value){after, 0}, NULL);
		CHECK(slp_node_has_effect(&g->nodes[write]) && !slp_node_has_effect(&g->nodes[after]));
		CHECK(slp_node_writes(&g->nodes[write], 0) && !slp_node_writes(&g->nodes[write], 1));
		/* What `before` needs comes from a node at the end: it moves, and the write must wait for it. */
		struct slp_value s = {slp_graph_add_op(g, NULL, "moved", &slp_op_neg, NULL, 1, &p), 0};
		slp_graph_before(g, s.node, before);
		g->nodes[before].in[0] = s;
		CHECK(slp_graph_compact(g));
		infer_all(g);
		CHECK_OK(slp_graph_verify(g));
		CHECK(find(g, "moved") < find(g, "before") && find(g, "moved") < find(g, "write"));
		CHECK(find(g, "early") < find(g, "write") && find(g, "write") < find(g, "after"));
		CHECK(find(g, "write") < find(g, "late"));
		/* An early node that needs a result of the end pulls it, and the write before that, forward. */
		int first = find(g, "before");
		g->nodes[first].in[0] = (struct slp_value){find(g, "late"), 0};
		CHECK(slp_graph_compact(g));
		CHECK(find(g, "write") < find(g, "late") && find(g, "late") < find(g, "before"));
		CHECK(find(g, "early") < find(g, "write") && find(g, "moved") < find(g, "write"));
		sl_graph_free(g);
	}
}

/* ---- types, and what is wrong ------------------------------------------------------------------------------------ */

static void test_infer(void)
{
	SL_SCOPE {
		sl_graph *g = slp_graph_new();
		struct slp_value x = input(g, "x", SL_SHAPE(2, 3)), y = input(g, "y", SL_SHAPE(4, 5));
		struct slp_value z = op2(g, &slp_op_add, x, y), r = op1(g, &slp_op_relu, z), u = {0};
		CHECK_FAILS(slp_node_infer(g, z.node), SL_ESHAPE, "add", "file.c:2", "(2, 3)", "(4, 5)");
		CHECK_FAILS(slp_node_infer(g, r.node), SL_ESHAPE, "relu", "not known");
		u.node = slp_graph_add_op(g, "file.c:9", "alone", &slp_op_add, NULL, 1, &x);
		CHECK_FAILS(slp_node_infer(g, u.node), SL_EINVAL, "alone", "takes 2", "file.c:9");
		struct slp_infer c;
		CHECK(slp_graph_rewrite(g, z.node, &slp_op_add, NULL, 2, (struct slp_value[]){x, x}));
		CHECK(slp_node_call(g, &g->nodes[z.node], &c));
		CHECK(c.nin == 2 && c.nout == 1 && c.out[0].shape.dim[1] == 3 && c.in[1].shape.dim[0] == 2);
		slp_call_free(&c);
		CHECK(slp_value_type(g, z)->shape.ndim == -1);
		sl_graph_free(g);
	}
}

static void test_verify(void)
{
	SL_SCOPE {
		sl_graph *g = slp_graph_new();
		struct slp_value x = input(g, "x", SL_SHAPE(2));
		struct slp_value c = {slp_graph_add_tensor(g, NULL, "c", SLP_NODE_CONST, sl_ones(SL_SHAPE(2))), 0};
		struct slp_value y = op2(g, &slp_op_add, x, c);
		slp_graph_add_output(g, y, NULL);
		infer_all(g);
		CHECK_OK(slp_graph_verify(g));
		g->nodes[y.node].in[1].out = 1;
		CHECK_FAILS(slp_graph_verify(g), SL_EINTERNAL, "add", "does not exist");
		g->nodes[y.node].in[1].out = 0;
		g->nodes[y.node].types[0].shape.dim[0] = 3;
		CHECK_FAILS(slp_graph_verify(g), SL_EINTERNAL, "add", "another type");
		g->nodes[y.node].types[0].shape.dim[0] = 2;
		g->nodes[x.node].types[0].shape.ndim = -1;
		CHECK_FAILS(slp_graph_verify(g), SL_EINTERNAL, "x", "not known");
		g->nodes[x.node].types[0].shape.ndim = 1;
		int w = slp_graph_add_op(g, NULL, NULL, &slp_op_sgd, NULL, 2, (struct slp_value[]){c, x});
		CHECK_FAILS(slp_graph_verify(g), SL_EINTERNAL, "sgd", "writes a constant");
		slp_graph_kill(g, w);
		slp_graph_kill(g, c.node);
		CHECK_FAILS(slp_graph_verify(g), SL_EINTERNAL, "removed");
		sl_graph_free(g);
	}
}

static const struct slp_test building_tests[] = {
        {"build", test_build}, {"users", test_users}, {"names", test_names}, {"copy", test_copy}, {0},
};
static const struct slp_test order_tests[] = {
        {"appended", test_appended},
        {"deep", test_deep},
        {"effects", test_effects},
        {0},
};
static const struct slp_test type_tests[] = {
        {"infer", test_infer},
        {"verify", test_verify},
        {0},
};

int main(int argc, char **argv)
{
/* clang-format off */
#define SUITE(title, list) {.name = title, .tests = list, .start = slp_start_engine, .stop = slp_stop_engine, .after = clear}
	/* clang-format on */
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             SUITE("building", building_tests),
	                             SUITE("order", order_tests),
	                             SUITE("types", type_tests),
	                             {0},
	                     });
}
