/* ONNX models with branches, loops and lists of tensors, made here through protobuf-c; values are worked out by
 * hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "folder.h"
#include "onnx_builder.h"
#include "onnx/model/run.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };
static const int64_t zero[] = {0}, one[] = {1}, two[] = {2};
static const unsigned char yes[] = {1}, no[] = {0};
static struct slp_model model, first, second;

static sl_block *built(void)
{
	return slp_model_built(&model, (struct sl_import_onnx_opts){0});
}

static void number(struct slp_model *m, const char *name, const int64_t *v)
{
	slp_model_raw(slp_model_tensor(m, name, INT64, NULL, 0), v, sizeof *v);
}

static void truth(struct slp_model *m, const char *name, const unsigned char *v)
{
	slp_model_raw(slp_model_tensor(m, name, BOOL, NULL, 0), v, 1);
}

static void ints(struct slp_model *m, SlpOnnx__NodeProto *n, const char *name, const int64_t *v, size_t count)
{
	SlpOnnx__AttributeProto *a = slp_model_attribute(m, n, name, 7);
	a->n_ints = count, a->ints = (int64_t *)v;
}

static void branches(SlpOnnx__NodeProto *n)
{
	slp_model_graph(&model, n, "then_branch", &first);
	slp_model_graph(&model, n, "else_branch", &second);
}

static void begin_graph(struct slp_model *g, const char *inputs, const char *outputs)
{
	slp_model_begin(g, 17);
	slp_model_ends(g, inputs, outputs);
}

static void check_fails(sl_block *b, sl_tensor *x, enum sl_status status, const char *says)
{
	bool ran = b && sl_forward(b, x);
	CHECK_SAYING(!ran && sl_error() == status && strstr(sl_error_message(), says) &&
	                     strstr(sl_error_message(), "x.onnx"),
	             "says \"%s\", not \"%s\"", sl_error_message(), says);
	sl_error_clear();
	sl_block_free(b);
}

/* ---- If ---------------------------------------------------------------------------------------------------------- */

/* y = x + x, or -x: the graphs take x from around them, and call their results by the same name. */
static void twice_or_negative(const char *condition)
{
	char text[64];
	begin_graph(&first, "", "r");
	slp_model_node(&first, "Add x x -> r");
	begin_graph(&second, "", "r");
	slp_model_node(&second, "Neg x -> r");
	snprintf(text, sizeof text, "If %s -> y", condition);
	branches(slp_model_node(&model, text));
}

/* Which branch depends on the shape, of each input anew. */
static void test_if_shape(void)
{
	slp_model_begin(&model, 17);
	number(&model, "zero", zero);
	number(&model, "two", two);
	slp_model_node(&model, "Shape x -> s");
	slp_model_node(&model, "Gather s zero -> n");
	slp_model_node(&model, "Greater n two -> many");
	twice_or_negative("many");
	SL_SCOPE {
		sl_block *b = built();
		CHECK_MODEL(b, sl_ones(SL_SHAPE(3)), 2, 2, 2);
		CHECK_MODEL(b, sl_ones(SL_SHAPE(2)), -1, -1);
		sl_block_free(b);
	}
}

static void test_if_constant(void)
{
	for (int taken = 0; taken < 2; taken++) {
		slp_model_begin(&model, 17);
		truth(&model, "c", taken ? yes : no);
		twice_or_negative("c");
		SL_SCOPE {
			sl_block *b = built();
			CHECK_MODEL(b, sl_ones(SL_SHAPE(1)), taken ? 2 : -1);
			sl_block_free(b);
		}
	}
}

/* The condition is computed by the run: it chooses from the results of both. */
static void test_if_value(void)
{
	slp_model_begin(&model, 17);
	number(&model, "zero", zero);
	slp_model_int(&model, slp_model_node(&model, "ReduceSum x - -> sum"), "keepdims", 0);
	slp_model_int(&model, slp_model_node(&model, "Cast zero -> z"), "to", FLOAT);
	slp_model_node(&model, "Greater sum z -> more");
	twice_or_negative("more");
	SL_SCOPE {
		sl_block *b = built();
		CHECK_MODEL(b, sl_from(((float[]){3, -1}), SL_SHAPE(2)), 6, -2);
		CHECK_MODEL(b, sl_from(((float[]){-3, 1}), SL_SHAPE(2)), 3, -1);
		sl_block_free(b);
		slp_model_node(&second, "Concat r r -> rr"); /* of another shape than the other's */
		slp_model_int(&second, &second.nodes[1], "axis", 0);
		slp_model_ends(&second, "", "rr");
		model.nodes[3].n_attribute = 0;
		branches(&model.nodes[3]);
		b = built();
		sl_tensor *y = b ? sl_forward(b, sl_from(((float[]){-3, 1}), SL_SHAPE(2))) : NULL;
		CHECK(y && sl_tensor_size(y) == 4); /* node by node, the condition is read */
		if (b) CHECK_OK(sl_hybridize(b));
		check_fails(b, sl_ones(SL_SHAPE(2)), SL_EUNSUPPORTED, "node y: If: its condition (\"more\")");
	}
}

/* Parameters of branches are the block's, and are trained. */
static void test_if_parameters(void)
{
	static const float w[] = {2, 3}, v[] = {4, 5};
	begin_graph(&first, "", "r");
	slp_model_raw(slp_model_tensor(&first, "w", FLOAT, SLP_DIMS(2)), w, sizeof w);
	slp_model_node(&first, "Mul x w -> r");
	begin_graph(&second, "", "r");
	slp_model_raw(slp_model_tensor(&second, "w", FLOAT, SLP_DIMS(2)), v, sizeof v);
	slp_model_node(&second, "Mul x w -> r");
	slp_model_begin(&model, 17);
	truth(&model, "c", no);
	branches(slp_model_node(&model, "If c -> y"));
	SL_SCOPE {
		sl_block *b = built();
		CHECK_MODEL(b, sl_ones(SL_SHAPE(2)), 4, 5);
		CHECK(b && sl_block_find(b, "graph1_w") && sl_block_find(b, "graph2_w"));
		sl_block_free(b);
	}
}

/* ---- Loop -------------------------------------------------------------------------------------------------------- */

/* A round: sum + x[i] if i is odd, else sum - x[i]; what it was before is collected. */
static void begin_sums(const char *loop)
{
	static struct slp_model odd, even;
	begin_graph(&odd, "", "to");
	slp_model_node(&odd, "Add sum row -> to");
	begin_graph(&even, "", "to");
	slp_model_node(&even, "Sub sum row -> to");
	begin_graph(&first, "i on sum", "on next old");
	slp_model_node(&first, "Gather x i -> row");
	slp_model_node(&first, "Mod i two -> rest");
	slp_model_int(&first, slp_model_node(&first, "Cast rest -> is"), "to", BOOL);
	SlpOnnx__NodeProto *n = slp_model_node(&first, "If is -> next");
	slp_model_graph(&first, n, "then_branch", &odd);
	slp_model_graph(&first, n, "else_branch", &even);
	slp_model_node(&first, "Identity sum -> old");
	slp_model_begin(&model, 17);
	number(&model, "zero", zero);
	number(&model, "two", two);
	truth(&model, "yes", yes);
	slp_model_node(&model, "Shape x -> s");
	slp_model_node(&model, "Gather s zero -> n");
	slp_model_node(&model, "Gather x zero -> begin");
	slp_model_graph(&model, slp_model_node(&model, loop), "body", &first);
}

static void test_loop(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_from(((float[]){1, 2, 10, 20, 100, 200}), SL_SHAPE(3, 2));
		begin_sums("Loop n yes begin -> y all");
		sl_block *b = built();
		CHECK_MODEL(b, x, 1 - 1 + 10 - 100, 2 - 2 + 20 - 200);
		CHECK_MODEL(b, sl_slice(x, 0, 0, 2, 1), 10, 20);
		sl_block_free(b);
		begin_sums("Loop n - begin -> last y");
		b = built();
		CHECK_MODEL(b, x, 1, 2, 0, 0, 10, 20);
		CHECK(b && sl_shape_equal(sl_tensor_shape(sl_forward(b, x)), SL_SHAPE(3, 2)));
		sl_block_free(b);
	}
}

/* As long as 2^k < n; the number of rounds is left out. */
static void test_while(void)
{
	begin_graph(&first, "i on k v", "more kk vv");
	slp_model_node(&first, "Add k k -> kk");
	slp_model_node(&first, "Less kk n -> more");
	slp_model_node(&first, "Add v x -> vv");
	slp_model_begin(&model, 17);
	number(&model, "zero", zero);
	number(&model, "one", one);
	slp_model_node(&model, "Shape x -> s");
	slp_model_node(&model, "Gather s zero -> n");
	slp_model_node(&model, "Less one n -> more");
	slp_model_graph(&model, slp_model_node(&model, "Loop - more one x -> k y"), "body", &first);
	SL_SCOPE {
		sl_block *b = built();
		CHECK_MODEL(b, sl_ones(SL_SHAPE(1)), 1);
		CHECK_MODEL(b, sl_ones(SL_SHAPE(2)), 2, 2);
		CHECK_MODEL(b, sl_ones(SL_SHAPE(5)), 4, 4, 4, 4, 4);
		sl_block_free(b);
	}
}

/* A loop that nobody can count, or that is too long. */
static void test_endless(void)
{
	static const int64_t much[] = {INT64_C(1) << 40};
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2));
		for (int i = 0; i < 4; i++) {
			begin_graph(&first, "i on v", i == 1 ? "other w" : "on w");
			slp_model_node(&first, "Add v x -> w");
			slp_model_int(&first, slp_model_node(&first, "ReduceMax x -> r"), "keepdims", 0);
			slp_model_int(&first, slp_model_node(&first, "Cast r -> other"), "to", BOOL);
			slp_model_begin(&model, 17);
			number(&model, "much", much);
			slp_model_int(&model, slp_model_node(&model, "ReduceMax x -> r"), "keepdims", 0);
			slp_model_int(&model, slp_model_node(&model, "Cast r -> c"), "to", BOOL);
			slp_model_int(&model, slp_model_node(&model, "Cast r -> n"), "to", INT64);
			slp_model_graph(&model,
			                slp_model_node(&model, i == 0   ? "Loop - c x -> y"
			                                       : i == 1 ? "Loop much - x -> y"
			                                       : i == 2 ? "Loop n - x -> y"
			                                                : "Loop much - much -> y"),
			                "body", &first);
			if (i == 3) first.graph.node[0]->input[1] = first.graph.node[0]->input[0];
			if (i == 3)
				model.nodes[3].n_attribute = 0,
				slp_model_graph(&model, &model.nodes[3], "body", &first);
			sl_block *b = built();
			if (b && i < 3) CHECK_OK(sl_hybridize(b));
			check_fails(b, x, i < 3 ? SL_ESTATE : SL_EUNSUPPORTED,
			            i == 0   ? "node y: Loop: its condition (\"c\")"
			            : i == 1 ? "node y: Loop: its condition"
			            : i == 2 ? "node y: Loop: input 0 (\"n\")"
			                     : "node y: Loop: unrolled");
		}
	}
}

static void test_no_rounds(void)
{
	SL_SCOPE {
		begin_sums("Loop zero - begin -> last y");
		check_fails(built(), sl_ones(SL_SHAPE(2, 2)), SL_EUNSUPPORTED, "runs 0 times");
		begin_sums("Loop zero - begin -> y all");
		sl_block *b = built();
		CHECK_MODEL(b, sl_ones(SL_SHAPE(2, 2)), 1, 1);
		sl_block_free(b);
	}
}

/* ---- Scan -------------------------------------------------------------------------------------------------------- */

/* Columns of x from the last to the first: their sum, and the sums until each, as columns. */
static void test_scan(void)
{
	static const int64_t back[] = {1};
	begin_graph(&first, "sum column", "next also");
	slp_model_node(&first, "Add sum column -> next");
	slp_model_node(&first, "Identity next -> also");
	for (int which = 0; which < 3; which++) {
		slp_model_begin(&model, 17);
		number(&model, "zero", zero);
		slp_model_int(&model, slp_model_node(&model, "Gather x zero -> begin"), "axis", 1);
		SlpOnnx__NodeProto *n =
		        slp_model_node(&model, which ? "Scan begin x -> last y" : "Scan begin x -> y also");
		slp_model_int(&model, n, "num_scan_inputs", 1);
		slp_model_graph(&model, n, "body", &first);
		ints(&model, n, "scan_input_axes", one, 1);
		ints(&model, n, "scan_input_directions", back, 1);
		ints(&model, n, "scan_output_axes", one, 1);
		if (which == 2) ints(&model, n, "scan_output_directions", back, 1);
		SL_SCOPE {
			sl_block *b = built();
			sl_tensor *x = sl_from(((float[]){1, 2, 3, 10, 20, 30}), SL_SHAPE(2, 3));
			if (which == 0) CHECK_MODEL(b, x, 7, 70);
			if (which == 1) CHECK_MODEL(b, x, 4, 6, 7, 40, 60, 70);
			if (which == 2) CHECK_MODEL(b, x, 7, 6, 4, 70, 60, 40);
			sl_block_free(b);
		}
	}
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* Rows of x in turn behind and before a list that grows, one taken out, all joined. */
static void test_sequences(void)
{
	begin_graph(&first, "i on list", "on longer");
	slp_model_node(&first, "Gather x i -> row");
	slp_model_node(&first, "Neg row -> negative");
	slp_model_node(&first, "SequenceInsert list row -> more");
	slp_model_node(&first, "SequenceInsert more negative zero -> longer");
	slp_model_begin(&model, 17);
	number(&model, "zero", zero);
	number(&model, "one", one);
	slp_model_node(&model, "Shape x -> s");
	slp_model_node(&model, "Gather s zero -> n");
	slp_model_node(&model, "SequenceEmpty -> nothing");
	slp_model_graph(&model, slp_model_node(&model, "Loop n - nothing -> list"), "body", &first);
	slp_model_node(&model, "SequenceErase list one -> less");
	SlpOnnx__NodeProto *n = slp_model_node(&model, "ConcatFromSequence less -> y");
	slp_model_int(&model, n, "axis", 0);
	slp_model_int(&model, n, "new_axis", 1);
	SL_SCOPE {
		sl_block *b = built();
		sl_tensor *x = sl_from(((float[]){1, 2, 3, 4, 5, 6}), SL_SHAPE(3, 2));
		CHECK_MODEL(b, x, -5, -6, -1, -2, 1, 2, 3, 4, 5, 6);
		CHECK_MODEL(b, sl_slice(x, 0, 0, 1, 1), -1, -2);
		sl_block_free(b);
	}
}

/* For each place of two lists, and a tensor that is the same for all: their sum and difference, in lists of their own. */
static void map_parts(const char *second_list, const char *inputs)
{
	begin_graph(&first, inputs, "sum less");
	slp_model_node(&first, "Add a b -> both");
	slp_model_node(&first, "Add both same -> sum");
	slp_model_node(&first, "Sub a b -> less");
	slp_model_begin(&model, 17);
	number(&model, "one", one);
	slp_model_node(&model, "Neg x -> z");
	slp_model_node(&model, "SplitToSequence x one -> p");
	slp_model_node(&model, second_list);
	slp_model_int(&model, slp_model_node(&model, "ReduceMax x -> top"), "keepdims", 0);
	slp_model_graph(&model, slp_model_node(&model, "SequenceMap p q top -> sums lesses"), "body", &first);
	SlpOnnx__NodeProto *n = slp_model_node(&model, "ConcatFromSequence sums -> u");
	slp_model_int(&model, n, "axis", 0);
	n = slp_model_node(&model, "ConcatFromSequence lesses -> v");
	slp_model_int(&model, n, "axis", 0);
	n = slp_model_node(&model, "Concat u v -> y");
	slp_model_int(&model, n, "axis", 0);
}

static void test_map(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_from(((float[]){1, 2, 5}), SL_SHAPE(3));
		map_parts("SplitToSequence z one -> q", "a b same");
		sl_block *b = built();
		CHECK_MODEL(b, x, 5, 5, 5, 2, 4, 10);
		CHECK_MODEL(b, sl_slice(x, 0, 1, 2, 1), 2, 4);
		sl_block_free(b);
		map_parts("SequenceConstruct z -> q", "a b same");
		check_fails(built(), x, SL_ESHAPE, "SequenceMap: its sequences have different lengths, 3 and 1");
		map_parts("SequenceConstruct z -> q", "a b same more");
		check_fails(built(), x, SL_EFORMAT, "SequenceMap: its graph has 4 inputs and 2 results");
		map_parts("SequenceConstruct z -> q", "a b same");
		model.nodes[4].input[0] = model.nodes[4].input[2];
		check_fails(built(), x, SL_EFORMAT, "SequenceMap: input 0 must be a sequence");
	}
}

static void check_parts(const char *split, const char *count, double first_one, double last)
{
	static const int64_t sizes[] = {1, 3};
	slp_model_begin(&model, 17);
	number(&model, "two", two);
	slp_model_raw(slp_model_tensor(&model, "sizes", INT64, SLP_DIMS(2)), sizes, sizeof sizes);
	number(&model, "minus", (const int64_t[]){-1});
	slp_model_node(&model, split);
	slp_model_node(&model, "SequenceLength parts -> n");
	slp_model_node(&model, "SequenceAt parts minus -> end");
	slp_model_int(&model, slp_model_node(&model, "ReduceSum end - -> sum"), "keepdims", 0);
	slp_model_int(&model, slp_model_node(&model, "Cast n -> f"), "to", FLOAT);
	slp_model_node(&model, "SequenceConstruct f sum -> pair");
	SlpOnnx__NodeProto *n = slp_model_node(&model, "ConcatFromSequence pair -> y");
	slp_model_int(&model, n, "axis", -1);
	slp_model_int(&model, n, "new_axis", 1);
	SL_SCOPE {
		sl_block *b = built();
		CHECK_SAYING(b != NULL, "%s", count);
		CHECK_MODEL(b, sl_from(((float[]){1, 2, 4, 8}), SL_SHAPE(4)), first_one, last);
		sl_block_free(b);
	}
}

static void test_parts(void)
{
	check_parts("SplitToSequence x two -> parts", "twos", 2, 12);
	check_parts("SplitToSequence x sizes -> parts", "sizes", 2, 14);
	check_parts("SplitToSequence x -> parts", "ones", 4, 8);
}

/* ---- broken models ----------------------------------------------------------------------------------------------- */

static void test_broken(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2));
		slp_model_begin(&model, 17);
		truth(&model, "c", yes);
		twice_or_negative("c");
		model.nodes[0].n_attribute = 1;
		truth(&model, "d", no);
		model.nodes[0].input[0] = (char *)"d";
		check_fails(built(), x, SL_EFORMAT, "lacks the graph else_branch");
		model.attributes[0].g.len = 3;
		check_fails(built(), x, SL_EFORMAT, "graph within a node that is damaged");
		slp_model_begin(&model, 17);
		truth(&model, "c", yes);
		twice_or_negative("c");
		slp_model_node(&model, "Neg r -> z"); /* names of branches are not seen around them */
		check_fails(built(), x, SL_EFORMAT, "takes \"r\"; nothing computes it");
		slp_model_begin(&model, 17);
		truth(&model, "c", yes);
		begin_graph(&first, "", "q");
		slp_model_node(&first, "Neg later -> q");
		second = first;
		branches(slp_model_node(&model, "If c -> y"));
		slp_model_node(&model, "Neg x -> later");
		check_fails(built(), x, SL_EFORMAT, "takes \"later\", which is computed after it");
		model.graph.n_node = 1;
		model.nodes[0].n_attribute = 0;
		begin_graph(&first, "", "nowhere");
		begin_graph(&second, "", "nowhere");
		branches(&model.nodes[0]);
		check_fails(built(), x, SL_EFORMAT, "nothing computes \"nowhere\"");
	}
}

/* Graphs within graphs within graphs. */
static void test_deep(void)
{
	static struct slp_model inner, outer;
	begin_graph(&inner, "", "q");
	slp_model_node(&inner, "Neg x -> q");
	for (int depth = 1; depth < 40; depth++) {
		begin_graph(&outer, "", "q");
		slp_model_graph(&outer, slp_model_node(&outer, "If c -> q"), "then_branch", &inner);
		slp_model_begin(&model, 17);
		truth(&model, "c", yes);
		slp_model_graph(&model, slp_model_node(&model, "If c -> y"), "then_branch", &outer);
		begin_graph(&inner, "", "q");
		inner.graph.n_node = 0;
		slp_model_graph(&inner, slp_model_node(&inner, "If c -> q"), "then_branch", &outer);
		if (depth == 3 || depth == 39)
			SL_SCOPE {
				sl_block *b = built();
				if (depth == 3) CHECK_MODEL(b, sl_ones(SL_SHAPE(1)), -1);
				else CHECK(!b && sl_error() == SL_EUNSUPPORTED);
				sl_error_clear();
				sl_block_free(b);
			}
	}
}

static void call(struct slp_model *m, const char *node, float k)
{
	SlpOnnx__NodeProto *n = slp_model_node(m, node);
	n->domain = (char *)"here";
	if (k == 0) return;
	SlpOnnx__AttributeProto *a = slp_model_attribute(m, n, "k", 1);
	a->has_f = true, a->f = k;
}

/* Functions of the model: attributes of the call, or their defaults; names of their own in each call. */
static void test_functions(void)
{
	static struct slp_model m, body;
	SlpOnnx__FunctionProto f, *functions[] = {&f};
	SlpOnnx__AttributeProto otherwise, *defaults[] = {&otherwise};
	char *in[] = {(char *)"a"}, *out[] = {(char *)"b"};
	SL_SCOPE {
		slp_model_begin(&body, 17);
		slp_model_node(&body, "Neg a -> t");
		slp_model_attribute(&body, slp_model_node(&body, "LeakyRelu t -> b"), "alpha", 1)->ref_attr_name =
		        (char *)"k";
		slp_onnx__function_proto__init(&f);
		slp_onnx__attribute_proto__init(&otherwise);
		otherwise.name = (char *)"k", otherwise.has_type = true, otherwise.type = 1;
		otherwise.has_f = true, otherwise.f = 0.25F;
		f.name = (char *)"Twist", f.domain = (char *)"here";
		f.input = in, f.n_input = 1, f.output = out, f.n_output = 1;
		f.node = body.graph.node, f.n_node = body.graph.n_node;
		f.attribute_proto = defaults, f.n_attribute_proto = 1;
		slp_model_begin(&m, 17);
		m.model.functions = functions, m.model.n_functions = 1;
		call(&m, "Twist x -> u", 0.5F);
		call(&m, "Twist u -> y", 0);
		sl_block *b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
		CHECK_MODEL(b, sl_from(((float[]){1, -2}), SL_SHAPE(2)), 0.5, -0.5);
		sl_block_free(b);
		f.name = (char *)"Neg", f.domain = NULL; /* calls itself */
		slp_model_begin(&m, 17);
		m.model.functions = functions, m.model.n_functions = 1;
		slp_model_node(&m, "Neg x -> y");
		b = slp_model_built(&m, (struct sl_import_onnx_opts){0});
		CHECK_SAYING(!b && strstr(sl_error_message(), "function \"Neg\""), "%s", sl_error_message());
		sl_error_clear();
	}
}

/* ---- the nodes before the first one that reads a value ----------------------------------------------------------- */

/* The places of the elements of w x² above 0, times the size of x, w x² again. */
static sl_block *places_of_large(void)
{
	static const float w[] = {1, -1, 1};
	slp_model_begin(&model, 17);
	slp_model_ends(&model, "x", "y b");
	slp_model_raw(slp_model_tensor(&model, "w", FLOAT, SLP_DIMS(3)), w, sizeof w);
	slp_model_node(&model, "Size x -> n");
	slp_model_node(&model, "Mul x x -> a");
	slp_model_node(&model, "Mul a w -> b");
	slp_model_node(&model, "Relu b -> r");
	slp_model_node(&model, "NonZero r -> z");
	slp_model_node(&model, "Mul z n -> m");
	slp_model_int(&model, slp_model_node(&model, "Cast m -> y"), "to", FLOAT);
	sl_block *b = built();
	if (b) slp_onnx_head_attach(b);
	return b;
}

static void check_places(sl_block *b, sl_tensor *x, int count, const double *y, const double *squares)
{
	sl_tensor *out[2] = {NULL};
	CHECK_OK(sl_forward_all(b, &x, 1, out, 2));
	sl_shape s = out[0] ? sl_tensor_shape(out[0]) : SL_SCALAR;
	CHECK(s.ndim == 2 && s.dim[1] == count);
	for (int i = 0; i < 2 * count && out[0]; i++)
		CHECK(sl_item(sl_slice(sl_reshape(out[0], SL_SHAPE(-1)), 0, i, i + 1, 1)) == y[i]);
	for (int i = 0; i < 3 && out[1]; i++)
		CHECK(sl_item(sl_slice(sl_reshape(out[1], SL_SHAPE(-1)), 0, i, i + 1, 1)) == squares[i]);
}

/* Several shapes in turn, so that each finds its own program and its own numbers. */
static void test_head(void)
{
	SL_SCOPE {
		sl_block *b = places_of_large();
		sl_tensor *x = sl_from(((float[]){2, 3, 0}), SL_SHAPE(1, 3));
		sl_tensor *z = sl_from(((float[]){0, 0, 0, 1, 5, 2}), SL_SHAPE(2, 3));
		CHECK(b != NULL);
		if (b) CHECK_OK(sl_hybridize(b, .fallback = true));
		for (int i = 0; i < 3 && b; i++) {
			check_places(b, x, 1, (const double[]){0, 0}, (const double[]){4, -9, 0});
			check_places(b, z, 2, (const double[]){6, 6, 0, 12}, (const double[]){0, 0, 0});
			CHECK(slp_onnx_head_of(b) && sl_block_plan(slp_onnx_head_of(b), 1 - !i));
		}
		SL_RECORD
			check_places(b, x, 1, (const double[]){0, 0}, (const double[]){4, -9, 0});
		sl_block_free(b);
	}
}

/* A parameter with other values, and another tensor. */
static void test_head_changed(void)
{
	SL_SCOPE {
		sl_block *b = places_of_large();
		sl_tensor *x = sl_from(((float[]){2, 3, 0}), SL_SHAPE(1, 3));
		CHECK(b != NULL);
		if (b) CHECK_OK(sl_hybridize(b, .fallback = true));
		if (b) check_places(b, x, 1, (const double[]){0, 0}, (const double[]){4, -9, 0});
		sl_param *w = b ? sl_block_find(b, "w") : NULL;
		CHECK(w != NULL);
		if (w) CHECK_OK(sl_param_set(w, sl_from(((float[]){-1, 1, 1}), SL_SHAPE(3))));
		if (w) check_places(b, x, 1, (const double[]){0, 3}, (const double[]){-4, 9, 0});
		sl_block_free(b);
	}
}

static const struct slp_test tests[] = {
        {"branches by shapes", test_if_shape},
        {"branches that are known", test_if_constant},
        {"branches by values", test_if_value},
        {"parameters of branches", test_if_parameters},
        {"loops", test_loop},
        {"loops with a condition", test_while},
        {"loops without end", test_endless},
        {"no rounds", test_no_rounds},
        {"scans", test_scan},
        {"lists", test_sequences},
        {"parts", test_parts},
        {"map", test_map},
        {"broken graphs", test_broken},
        {"deep graphs", test_deep},
        {"programs before values that are read", test_head},
        {"programs that have changed", test_head_changed},
        {"functions", test_functions},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"onnx control", tests, slp_start_with_scratch, slp_stop_with_scratch, NULL, NULL},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
