/* A table of a network: each block's results, parameters, flops and bytes, counted while it runs. */
#include <stdlib.h>
#include <string.h>

#include "nn/nn.h"
#include "number.h"
#include "op.h"
#include "starling/nn.h"

struct row {
	const sl_block *block;
	int outer; /* row of the block around it, or -1 */
	int depth;
	sl_shape output;
	double params; /* elements of the block's own parameters */
	double flops, bytes;
};

/* A run that is looked at. */
struct look {
	struct row *rows;
	int count, capacity, current;
	bool failed;
};
static _Thread_local struct look *looking;

bool slp_summary_looks(void)
{
	return looking != NULL;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static double type_bytes(const struct slp_type *types, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += (double)sl_shape_size(types[i].shape) * (double)sl_dtype_size(types[i].dtype);
	return sum;
}

/* Each operation counts for the block that called it. */
static void observe(const struct slp_infer *c)
{
	struct look *l = looking;
	if (!l || l->current < 0) return;
	struct row *r = &l->rows[l->current];
	r->flops += c->op->flops ? c->op->flops(c) : 0;
	r->bytes += c->op->bytes ? c->op->bytes(c) : type_bytes(c->in, c->nin) + type_bytes(c->out, c->nout);
}

bool slp_summary_enter(sl_block *block)
{
	struct look *l = looking;
	if (!l) return false;
	if (!slp_grow((void **)&l->rows, &l->capacity, l->count + 1, sizeof *l->rows)) l->failed = true;
	if (l->failed) return false;
	l->rows[l->count] = (struct row){
	        .block = block, .outer = l->current, .depth = l->current < 0 ? 0 : l->rows[l->current].depth + 1};
	l->current = l->count++;
	return true;
}

static bool is_first(const struct look *l, int row)
{
	for (int i = 0; i < row; i++)
		if (l->rows[i].block == l->rows[row].block) return false;
	return true;
}

void slp_summary_leave(sl_tensor *result)
{
	struct look *l = looking;
	struct row *r = &l->rows[l->current];
	const struct slp_block *b = r->block->base;
	r->output = sl_tensor_shape(result);
	for (int i = 0; i < b->nparams && is_first(l, l->current); i++)
		r->params += (double)sl_shape_size(b->params[i]->shape);
	l->current = r->outer;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static int longest(int width, int n)
{
	return n > width ? n : width;
}

static void print_rows(FILE *file, const struct look *l)
{
	int name = 5, type = 4, shape = 6;
	char text[128];
	for (int i = 0; i < l->count; i++) {
		const struct row *r = &l->rows[i];
		name = longest(name, 2 * r->depth + (int)strlen(r->block->base->name));
		type = longest(type, (int)strlen(r->block->base->type));
		shape = longest(shape, (int)strlen(sl_shape_string(r->output, text)));
	}
	struct row sum = {0};
	slp_fprintf(file, "%-*s  %-*s  %-*s  %12s  %14s  %14s\n", name, "layer", type, "type", shape, "output",
	            "parameters", "flops", "bytes");
	for (int i = 0; i < l->count; i++) {
		const struct row *r = &l->rows[i];
		slp_fprintf(file, "%*s%-*s  %-*s  %-*s  %12.0f  %14.0f  %14.0f\n", 2 * r->depth, "",
		            name - 2 * r->depth, r->block->base->name, type, r->block->base->type, shape,
		            sl_shape_string(r->output, text), r->params, r->flops, r->bytes);
		sum.params += r->params;
		sum.flops += r->flops;
		sum.bytes += r->bytes;
	}
	slp_fprintf(file, "%-*s  %12.0f  %14.0f  %14.0f\n", name + type + shape + 4, "total", sum.params, sum.flops,
	            sum.bytes);
}

static void print_params(FILE *file, sl_param *const *params, int count)
{
	double trained = 0, kept = 0, bytes = 0;
	for (int i = 0; i < count; i++) {
		double n = params[i]->data ? (double)sl_tensor_size(params[i]->data) : 0;
		*(params[i]->opts.no_grad ? &kept : &trained) += n;
		bytes += n * (double)sl_dtype_size(params[i]->dtype);
	}
	slp_fprintf(file, "%.0f parameters are trained, %.0f are not; together they take %.0f bytes\n", trained, kept,
	            bytes);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

/* Zeros as the parameters would have them. */
static sl_tensor *input(const char *at, sl_param *const *params, int count, sl_shape shape)
{
	struct sl_make make = {0};
	if (count) make.dtype = params[0]->dtype;
	if (count && params[0]->ndevices) make.device = params[0]->devices[0];
	return sl_zeros_at(at, shape, make);
}

static enum sl_status look_at(const char *at, struct look *l, sl_block *block, sl_tensor *const *in, int nin)
{
	struct look *outer = looking;
	SLP_MODE_SCOPE();
	struct slp_trace *trace = slp_trace_pause();
	looking = l;
	slp_mode.observer = observe;
	sl_tensor *y = sl_forward_at(at, block, in, nin);
	looking = outer;
	slp_trace_resume(trace);
	if (!y) return sl_error();
	enum sl_status s =
	        sl_is_symbol(y) ? SL_OK : sl_wait_at(at, y); /* no other code checks what this run has done */
	if (s != SL_OK) return s;
	if (l->failed) slp_call_fail(at, "sl_summary", SL_ENOMEM, "no memory for the table");
	return l->failed ? SL_ENOMEM : SL_OK;
}

/* For inputs that are given, or without them for zeros of that shape. */
static enum sl_status summary(const char *at, FILE *file, sl_block *block, sl_shape shape, sl_tensor *const *in,
                              int nin)
{
	int count = 0;
	if (!slp_given(at, "sl_summary", "file", file)) return sl_error();
	sl_param **params = slp_block_all_params(at, block, &count);
	if (!params) return sl_error();
	struct look l = {.current = -1};
	enum sl_status s = SL_EINVAL;
	SL_PAUSE
		SL_SCOPE {
			sl_tensor *x = in ? NULL : input(at, params, count, shape);
			s = in || x ? look_at(at, &l, block, in ? in : &x, in ? nin : 1) : sl_error();
		}
	if (s == SL_OK) {
		print_rows(file, &l);
		print_params(file, params, count);
		if (ferror(file)) {
			slp_call_fail(at, "sl_summary", SL_EIO, "the table could not be written");
			s = SL_EIO;
		}
	}
	free(l.rows);
	free(params);
	return s;
}

/* Prints a table of the block and the blocks in it, in the order in which they run: output shapes, elements of their
 * parameters (shared ones counted once), and flops and bytes of memory traffic of each block's own calls.  The network,
 * which must be initialised, runs once, imperatively and in inference mode, on zeros of the shape, so deferred shapes
 * are known afterwards.  Errors: those of the run; SL_EIO: the file cannot be written.
 *
 *     sl_summary(stdout, net, SL_SHAPE(1, 1, 28, 28)); */
enum sl_status sl_summary_at(const char *at, FILE *file, sl_block *block, sl_shape shape)
{
	SLP_CALL("sl_summary", at);
	return summary(at, file, block, shape, NULL, 0);
}

/* As sl_summary, for given inputs, of any number and type: the network runs on their values, and the errors are those
 * of sl_summary.
 *
 *     sl_tensor *in[] = {tokens, mask};
 *     sl_summary_of(stdout, net, in, 2); */
enum sl_status sl_summary_of_at(const char *at, FILE *file, sl_block *block, sl_tensor *const *in, int nin)
{
	SLP_CALL("sl_summary_of", at);
	if (!slp_given(at, "sl_summary_of", "in", in)) return sl_error();
	return summary(at, file, block, SL_SCALAR, in, nin);
}
