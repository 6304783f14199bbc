/* Operators of ONNX models: their values, nodes, attributes; functions that all operators use. */
#ifndef SLP_ONNX_IMPORT_H
#define SLP_ONNX_IMPORT_H

#include <string.h>

#include "onnx/read.h"
#include "nn/nn.h"
#include "src/onnx/onnx.pb-c.h"
#include "op.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

union slp_onnx_element {
	int64_t i; /* of integers and bools */
	double f;
};

/* A few elements that are known while the network is built: shapes, axes, limits, and results of computing with them. */
struct slp_onnx_known {
	struct slp_onnx_known *next; /* in the list of the run, or of the file */
	sl_tensor *made;             /* the same as a tensor; NULL: not requested yet */
	enum sl_dtype dtype;
	sl_shape shape;
	union slp_onnx_element v[];
};
enum { SLP_ONNX_KNOWN_MAX = 4096 }; /* elements; others are tensors */

struct slp_onnx_sequence;

/* One value, or none for a missing optional input. */
struct slp_onnx_value {
	sl_tensor *t;
	struct slp_onnx_known *known;
	const struct slp_onnx_sequence *sequence;
	int type;     /* the number of its type in the format, held wider perhaps; 0: that of the data type */
	bool shifted; /* int8, held as uint8, 128 larger: only operators of bytes.c see it */
	bool last;    /* (n, channels, height, width), held with the channels last: likewise */
};

/* A list of values: the last one, after those of another list; count 0: empty.  It has a reference to the tensor of its
 * value. */
struct slp_onnx_sequence {
	struct slp_onnx_sequence *next; /* in the list of the run */
	const struct slp_onnx_sequence *before;
	struct slp_onnx_value last;
	int64_t count;
};

/* `last` after another list, NULL: an empty one; the run's list owns it (onnx/model/ends.c).  NULL with an error
 * recorded. */
struct slp_onnx_sequence *slp_onnx_sequence_new(struct slp_onnx_sequence **list, const struct slp_onnx_sequence *before,
                                                struct slp_onnx_value last);
void slp_onnx_sequences_free(struct slp_onnx_sequence *list);
static inline struct slp_onnx_value slp_onnx_sequence_at(const struct slp_onnx_sequence *s, int64_t i)
{
	while (s->count > i + 1) s = s->before;
	return s->last;
}

static inline bool slp_onnx_present(struct slp_onnx_value v)
{
	return v.t || v.known || v.sequence;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

struct slp_onnx_op;
struct slp_onnx_node;
struct slp_onnx_run;

/* One node being computed. */
struct slp_onnx_call {
	const char *at; /* "FILE, node NAME" */
	const SlpOnnx__NodeProto *node;
	const struct slp_onnx_op *op;
	int opset;
	struct slp_onnx_value *in, *out;
	int nin, nout;
	struct slp_onnx_known **made; /* the list that owns known values */
	struct slp_onnx_sequence **sequences;
	struct slp_onnx_run *run; /* and its node, for graphs within it */
	const struct slp_onnx_node *within;
	sl_tensor *beside; /* new tensors are made on its device */
	bool failed;
};

typedef void slp_onnx_import(struct slp_onnx_call *c);

struct slp_onnx_op {
	const char *name;
	slp_onnx_import *import;
	int min, max;           /* inputs; max -1: any number */
	unsigned known;         /* inputs that must be known: they are not parameters */
	const char *attributes; /* names, with blanks between them */
};
const struct slp_onnx_op *slp_onnx_op_find(const char *name); /* NULL: none */

/* Records "… at FILE, node NAME: OPERATOR: …", once. */
void slp_onnx_call_fail(struct slp_onnx_call *c, enum sl_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* ---- attributes: the value of one, or its default; those of another kind are recorded ---------------------------- */

const SlpOnnx__AttributeProto *slp_onnx_attr(const struct slp_onnx_call *c, const char *name);
int64_t slp_onnx_attr_int(struct slp_onnx_call *c, const char *name, int64_t otherwise);
/* Within bounds, which fit an int. */
int slp_onnx_attr_small(struct slp_onnx_call *c, const char *name, int otherwise, int low, int high);
double slp_onnx_attr_float(struct slp_onnx_call *c, const char *name, double otherwise);
bool slp_onnx_attr_is(struct slp_onnx_call *c, const char *name, const char *otherwise, const char *value);
/* The text, cut to the size. */
const char *slp_onnx_attr_text(struct slp_onnx_call *c, const char *name, const char *otherwise, char text[64]);
/* At most `max` numbers; returns their number, -1 if the attribute is missing. */
int slp_onnx_attr_ints(struct slp_onnx_call *c, const char *name, int64_t *v, int max);

/* ---- inputs and results ------------------------------------------------------------------------------------------ */

static inline bool slp_onnx_has(const struct slp_onnx_call *c, int i)
{
	return i < c->nin && slp_onnx_present(c->in[i]);
}
/* Input i as a tensor; NULL if it is missing, or after an error. */
sl_tensor *slp_onnx_tensor(struct slp_onnx_call *c, int i);
sl_tensor *slp_onnx_as_tensor(struct slp_onnx_call *c, struct slp_onnx_value v);
/* Input i, which must be known, or is read from the run. */
const struct slp_onnx_known *slp_onnx_known_in(struct slp_onnx_call *c, int i);
/* Numbers of input i, or of the attribute that earlier operator sets had: at most `max`; returns their number, -1:
 * neither exists. */
int slp_onnx_ints_in(struct slp_onnx_call *c, int i, const char *attribute, int64_t *v, int max);
/* The number of input i, or of the attribute where it had one once, or this. */
double slp_onnx_number_in(struct slp_onnx_call *c, int i, const char *attribute, double otherwise);
/* The shape of input i, which must be known. */
sl_shape slp_onnx_shape(struct slp_onnx_call *c, int i);
sl_shape slp_onnx_shape_of(struct slp_onnx_call *c, struct slp_onnx_value v);
enum sl_dtype slp_onnx_dtype(const struct slp_onnx_value *v);
/* The number of the type that input i has in the file; 0: a run computes it (onnx/model/block.c). */
int slp_onnx_file_type(const struct slp_onnx_call *c, int i);
/* An axis from the start; 0 after an error. */
int slp_onnx_axis(struct slp_onnx_call *c, int64_t axis, int ndim);

/* Whether anything takes result i. */
static inline bool slp_onnx_wants(const struct slp_onnx_call *c, int i)
{
	return i < c->nout && c->node->output[i][0];
}
static inline void slp_onnx_set_output(struct slp_onnx_call *c, int i, sl_tensor *t)
{
	if (!t) c->failed = true; /* and recorded */
	if (i < c->nout) c->out[i].t = t;
}
static inline void slp_onnx_set_output_value(struct slp_onnx_call *c, int i, struct slp_onnx_value v)
{
	if (!slp_onnx_present(v)) c->failed = true; /* and recorded */
	if (i < c->nout) c->out[i] = v;
}

/* ---- graphs within nodes (onnx/model/block.c) -------------------------------------------------------------------- */

/* The graph of this attribute; -1 after an error. */
int slp_onnx_graph_named(struct slp_onnx_call *c, const char *attribute);
int slp_onnx_graph_inputs(const struct slp_onnx_call *c, int graph);
int slp_onnx_graph_outputs(const struct slp_onnx_call *c, int graph);
/* The graph's declaration of a result: its shape has -1 for open sizes, ndim -1: not declared. */
struct slp_type slp_onnx_graph_type(const struct slp_onnx_call *c, int graph, int output);
/* Computes a graph of these values; the caller drops the results.  False after an error. */
bool slp_onnx_graph_run(struct slp_onnx_call *c, int graph, const struct slp_onnx_value *in,
                        struct slp_onnx_value *out);

static inline void slp_onnx_drop(struct slp_onnx_value *v)
{
	sl_release(v->t);
	*v = (struct slp_onnx_value){0};
}

/* ---- known values (known.c) -------------------------------------------------------------------------------------- */

/* Zeroed; NULL with an error recorded. */
struct slp_onnx_known *slp_onnx_known_new(struct slp_onnx_known **list, enum sl_dtype dtype, sl_shape shape);
void slp_onnx_known_free(struct slp_onnx_known *list);
double slp_onnx_known_number(const struct slp_onnx_known *k, int64_t i);
/* Whether a double holds the one known number, and the results of operations with it. */
bool slp_onnx_known_is_double(const struct slp_onnx_known *k);
void slp_onnx_known_put(struct slp_onnx_known *k, int64_t i, double v);
/* The values of a small tensor of the file (onnx/model/tensors.c); NULL after an error. */
struct slp_onnx_known *slp_onnx_known_of(struct slp_onnx_call *c, const SlpOnnx__TensorProto *t);
/* Whether results of this shape are kept as numbers, if their operands are. */
bool slp_onnx_is_few(sl_shape shape);
/* Elements of k: with these steps, in elements, along each axis of the result, from the first on. */
struct slp_onnx_known *slp_onnx_known_strided(struct slp_onnx_call *c, const struct slp_onnx_known *k, sl_shape shape,
                                              int64_t first, const int64_t *steps);

/* ---- values that a run computes (reading.c) ------------------------------------------------------------------------ */

/* Waits for a value; NULL after an error. */
struct slp_onnx_known *slp_onnx_read(struct slp_onnx_call *c, struct slp_onnx_value v);
/* Whether it has, or will have, values: not while a program is traced. */
bool slp_onnx_can_read(const struct slp_onnx_value *v);
/* Records that it cannot be read. */
void slp_onnx_cannot_read(struct slp_onnx_call *c, const char *what, const char *name);

/* ---- functions of values: of known ones while they are few, else of tensors (values.c) --------------------------- */

struct slp_onnx_value slp_onnx_reshaped(struct slp_onnx_call *c, struct slp_onnx_value v, sl_shape shape);
/* With a new axis of one element at this place. */
struct slp_onnx_value slp_onnx_with_axis(struct slp_onnx_call *c, struct slp_onnx_value v, int64_t axis);
struct slp_onnx_value slp_onnx_transposed(struct slp_onnx_call *c, struct slp_onnx_value v, const int *axes);
struct slp_onnx_value slp_onnx_sliced(struct slp_onnx_call *c, struct slp_onnx_value v, int axis, int64_t begin,
                                      int64_t end, int64_t step);
struct slp_onnx_value slp_onnx_broadcast(struct slp_onnx_call *c, struct slp_onnx_value v, sl_shape shape);
struct slp_onnx_value slp_onnx_joined(struct slp_onnx_call *c, const struct slp_onnx_value *list, int count, int axis);
struct slp_onnx_value slp_onnx_gathered(struct slp_onnx_call *c, struct slp_onnx_value v, struct slp_onnx_value indices,
                                        int axis);
struct slp_onnx_value slp_onnx_cast(struct slp_onnx_call *c, struct slp_onnx_value v, enum sl_dtype dtype);
struct slp_onnx_value slp_onnx_list_value(struct slp_onnx_call *c, enum sl_dtype dtype, const int64_t *v, int n);
/* The same axes with others at the front; -1 for the axis moved. */
struct slp_onnx_value slp_onnx_axis_moved(struct slp_onnx_call *c, struct slp_onnx_value v, int from, int to);

/* ---- integers: narrow types are wider here, and values out of range wrap (integers.c) ------------------
 */

/* Makes the inputs int64 where the operator computes integers that may not fit their type; true if it does. */
bool slp_onnx_widen(struct slp_onnx_call *c);
/* A tensor in the type of this number, if tensors have it: a result of the model. */
sl_tensor *slp_onnx_in_type(struct slp_onnx_call *c, sl_tensor *t, int type);
/* Gives the results their types, and cuts them to that type if the inputs were widened. */
void slp_onnx_set_types(struct slp_onnx_call *c, bool widened);
/* The value as all operators know it (import/bytes/bytes.c). */
struct slp_onnx_value slp_onnx_plain(struct slp_onnx_call *c, struct slp_onnx_value v);
/* The same for inputs; true: the first, of an operator that only moves elements, is still shifted, and results will be
 * (slp_onnx_shift_results). */
bool slp_onnx_plain_inputs(struct slp_onnx_call *c);
void slp_onnx_shift_results(struct slp_onnx_call *c);
/* Whether the operator takes values as they are held. */
bool slp_onnx_takes_bytes(const struct slp_onnx_op *op);
/* The number of a value's type in the format. */
int slp_onnx_type_of(const struct slp_onnx_value *v);
/* An integer without the bits that the type of this number lacks, in two's complement (import/elementwise.c). */
struct slp_onnx_value slp_onnx_wrapped(struct slp_onnx_call *c, struct slp_onnx_value v, int type);

/* Shapes the second operand where an operator set before 7 aligns it in another way (import/old.c). */
void slp_onnx_align_old(struct slp_onnx_call *c);
/* Applies an operator of two inputs: "Add", "Mul", …  After an error the value is empty, and the call has failed. */
struct slp_onnx_value slp_onnx_binary(struct slp_onnx_call *c, const char *operator, struct slp_onnx_value a,
                                      struct slp_onnx_value b);

/* A product of integers, of which `multiply` computes those of float64: exact in the bits of the type of input 0
 * (import/matrices.c). */
typedef sl_tensor *slp_onnx_multiply(struct slp_onnx_call *c, sl_tensor *a, sl_tensor *b, const void *how);
sl_tensor *slp_onnx_whole_product(struct slp_onnx_call *c, sl_tensor *a, sl_tensor *b, slp_onnx_multiply *multiply,
                                  const void *how);

/* The data type of this number in the format; SL_DTYPE_COUNT: none of ours. */
enum sl_dtype slp_onnx_element_numbered(int number);
/* The one that operators see (integers.c); SL_DTYPE_DEFAULT: none. */
enum sl_dtype slp_onnx_dtype_numbered(int number);
/* Indices as int32, counted from 0; negative ones are counted from the end of n elements. */
sl_tensor *slp_onnx_indices(struct slp_onnx_call *c, struct slp_onnx_value v, int64_t n);

/* slp_onnx_import_NAME for each line of the table. */
#define OP(onnx, name, ...) slp_onnx_import slp_onnx_import_##name;
#include "onnx/operators.def"

#endif
