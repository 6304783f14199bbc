/* Symbols and programs: define, compile, run with inputs.  Symbols are owned like tensors (tensor.h); the caller owns
 * new programs and plans, and frees them.  Errors are reported as base.h describes. */
#ifndef STARLING_GRAPH_H
#define STARLING_GRAPH_H

#include <starling/tensor.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

/* ---- symbols: tensors without values.  Every operation and every block takes them ------------------------------- */

struct sl_var_opts {
	const sl_shape *shape; /* NULL: not known yet; sl_var("data", SL_VAR_SHAPE(1, 512)) */
	enum sl_dtype dtype;
};
#define SL_VAR_SHAPE(...) .shape = SL_ARRAY(sl_shape, SL_SHAPE(__VA_ARGS__))
SL_API sl_tensor *sl_var_at(const char *at, const char *name, struct sl_var_opts opts);
#define sl_var(name, ...) sl_var_at(SL_HERE, name, (struct sl_var_opts){__VA_ARGS__})
SL_API bool sl_is_symbol(const sl_tensor *t);
SL_API const char *sl_symbol_name(const sl_tensor *t);

/* ---- programs --------------------------------------------------------------------------------------------------- */

/* A program: the operations behind some symbols, in the order they were called. */
typedef struct sl_graph sl_graph;

SL_API sl_graph *sl_graph_define_at(const char *at, sl_tensor *const *heads, int count);
#define sl_graph_define(...)                                                                                           \
	sl_graph_define_at(SL_HERE, SL_ARRAY(sl_tensor *, __VA_ARGS__), SL_COUNT_(sl_tensor *, __VA_ARGS__))
SL_API enum sl_status sl_graph_call_at(const char *at, const sl_graph *graph, sl_tensor *const *in, int nin,
                                       sl_tensor **out);
#define sl_graph_call(graph, in, nin, out) sl_graph_call_at(SL_HERE, graph, in, nin, out)
SL_API sl_graph *sl_graph_parse_at(const char *at, const char *text);
#define sl_graph_parse(text) sl_graph_parse_at(SL_HERE, text)
SL_API void sl_graph_free(sl_graph *SL_OPTIONAL graph);
SL_API enum sl_status sl_graph_print_at(const char *at, FILE *file, const sl_graph *graph);
#define sl_graph_print(file, graph) sl_graph_print_at(SL_HERE, file, graph)
SL_API enum sl_status sl_graph_dot_at(const char *at, FILE *file, const sl_graph *graph);
#define sl_graph_dot(file, graph) sl_graph_dot_at(SL_HERE, file, graph)
SL_API int sl_graph_inputs(const sl_graph *graph, const char **SL_OPTIONAL names, int max);
SL_API int sl_graph_outputs(const sl_graph *graph, const char **names, int max);

/* ---- compiling and running -------------------------------------------------------------------------------------- */

/* X(NAME, name, doc) for each pass of the compiler, in the order they run. */
#define SL_PASS_LIST(X)                                                                                                \
	X(INFER, infer, "shapes and dtypes of every result")                                                           \
	X(FOLD, fold, "operations on constants alone are computed once")                                               \
	X(CSE, cse, "the same operation on the same arguments is computed once")                                       \
	X(SIMPLIFY, simplify, "algebraic identities")                                                                  \
	X(NORM, norm, "normalisation with given statistics becomes part of the layer before it")                       \
	X(BLOCK, block, "inference: images in blocks of channels, the order of convolutions of few images")            \
	X(FUSE, fuse, "layers with their activations, gradients with their reductions")                                \
	X(LAYOUT, layout, "images stay in the order that convolutions compute in")                                     \
	X(CHAIN, chain, "elementwise operations become one")                                                           \
	X(DEAD, dead, "results that nothing reads are removed")                                                        \
	X(SEGMENT, segment, "operations share tasks that are worth their overhead")                                    \
	X(MEMORY, memory, "intermediates share memory once they are dead")
enum sl_pass {
#define X(NAME, name, doc) SL_PASS_##NAME,
	SL_PASS_LIST(X)
#undef X
	        SL_PASSES
};

struct sl_compile_opts {
	const sl_shape *shapes; /* of the inputs, in the order of sl_graph_inputs; NULL: those given to sl_var */
	unsigned off;           /* passes not to run: 1u << SL_PASS_FUSE | … (infer cannot be switched off) */
	bool check;             /* run each pass and compare results before and after it: slow, for finding bugs */
	sl_device device;       /* the device to run on; default: the default device */
	bool training;          /* a part of training steps: weights change between runs, so that nothing is packed */
	size_t memory;          /* bytes that it may use on its GPU; 0: what there is */
};
/* The result of compiling; see sl_plan_info. */
struct sl_plan_info {
	int nodes_before, nodes;  /* operations before and after the passes */
	int segments;             /* StarPU tasks in a run */
	size_t memory, unplanned; /* peak bytes of intermediates: as planned, and if each had its own memory */
	double flops, bytes;      /* of a run */
	double seconds;           /* of compiling */
	/* With a limit of memory: */
	size_t limit;                 /* bytes; 0: there is none */
	size_t copied_out, copied_in; /* bytes that a run copies to main memory and back, as planned */
	double busy_seconds;          /* of a run's operations, as estimated ... */
	double run_seconds;           /* ... and of a run with its copies */
	int repeated;                 /* operations whose results are computed again instead of being copied */
};

typedef struct sl_plan sl_plan;
SL_API sl_plan *sl_compile_at(const char *at, const sl_graph *graph, struct sl_compile_opts opts);
#define sl_compile(graph, ...) sl_compile_at(SL_HERE, graph, (struct sl_compile_opts){__VA_ARGS__})
SL_API enum sl_status sl_plan_run_at(const char *at, sl_plan *plan, sl_tensor *const *in, int nin, sl_tensor **out);
#define sl_plan_run(plan, in, nin, out) sl_plan_run_at(SL_HERE, plan, in, nin, out)
/* Another value for an attribute of all updates in one run: lr, rescale, step. */
struct sl_plan_number {
	const char *name;
	double value;
};
SL_API enum sl_status sl_plan_run_with_at(const char *at, sl_plan *plan, sl_tensor *const *in, int nin,
                                          const struct sl_plan_number *numbers, int count, sl_tensor **out);
#define sl_plan_run_with(plan, in, nin, numbers, count, out)                                                           \
	sl_plan_run_with_at(SL_HERE, plan, in, nin, numbers, count, out)
SL_API bool sl_plan_may_call(const sl_plan *plan);
SL_API bool sl_plan_is_small(const sl_plan *plan);
SL_API enum sl_status sl_plan_call_at(const char *at, sl_plan *plan, void *const *in, int nin,
                                      const struct sl_plan_number *numbers, int count, void *const *out);
#define sl_plan_call(plan, in, nin, numbers, count, out) sl_plan_call_at(SL_HERE, plan, in, nin, numbers, count, out)
SL_API const sl_graph *sl_plan_graph(const sl_plan *plan);
SL_API struct sl_plan_info sl_plan_info(const sl_plan *plan);
SL_API void sl_plan_free(sl_plan *SL_OPTIONAL plan);

#ifdef __cplusplus
}
#endif
#endif
