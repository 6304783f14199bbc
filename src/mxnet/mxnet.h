/* MXNet's symbols: graphs of named operators with attributes as text, in JSON, as MXNet 1.9.1 writes and reads them. */
#ifndef SLP_MXNET_H
#define SLP_MXNET_H

#include <jansson.h>

#include "io/file.h"
#include "op.h"

/* ---- symbols (mxnet/symbol.c) ------------------------------------------------------------------------------------ */

struct slp_mx_value {
	int node, out;
};

struct slp_mx_node {
	const char *op, *name; /* "null": a variable */
	json_t *attrs;         /* strings by name; NULL: none */
	struct slp_mx_value *in;
	int nin, nout; /* nout: the outputs that are used */
	bool needed;   /* for the head */
};

struct slp_mx_symbol {
	json_t *json; /* holds all text */
	struct slp_mx_node *nodes;
	int count;
	int *order; /* nodes, arguments before users */
	struct slp_mx_value *heads;
	int nheads;
};

/* Takes a file in memory apart and checks it: numbers in range, names there, no cycles.  Operators are not looked at.
 * False with an error recorded; free it either way. */
bool slp_mx_parse(struct slp_file *f, struct slp_mx_symbol *s);
void slp_mx_free(struct slp_mx_symbol *s);
static inline bool slp_mx_is_variable(const struct slp_mx_node *n)
{
	return n->op[0] == 'n' && n->op[1] == 'u' && n->op[2] == 'l' && n->op[3] == 'l' && !n->op[4];
}

/* ---- computing one node (mx_import_*.c) -------------------------------------------------------------------------- */

struct slp_mx_op;

struct slp_mx_call {
	const char *at, *function; /* for messages, and for the operations */
	const struct slp_mx_node *node;
	const struct slp_mx_op *op;
	sl_tensor *const *in; /* while checking: the values of parameters, NULL for unknown ones */
	int nin;              /* that are looked at */
	sl_tensor **out;      /* node->nout of them */
	bool checking;        /* only the attributes are checked, nothing is computed */
	unsigned ones;        /* set while checking: parameters that count as ones, whatever the file contains */
	bool failed;
};

/* Reads the attributes of the node, then computes its outputs, if it is not only to be checked. */
typedef void slp_mx_import(struct slp_mx_call *c);
struct slp_mx_writer;
struct slp_gnode;
/* Writes one of our operations. */
typedef void slp_mx_export(struct slp_mx_writer *w, const struct slp_gnode *n);

struct slp_mx_op {
	const char *name;         /* MXNet's */
	const struct sl_op *ours; /* the operation that is written as this one; NULL: none */
	int min, max;             /* inputs; max -1: any number */
	int used;                 /* inputs that are looked at; 0: all.  Others are labels, of operators for training */
	slp_mx_import *import;
	slp_mx_export *export;
};
/* By MXNet's name, by ours; NULL: none. */
const struct slp_mx_op *slp_mx_op_find(const char *name);
const struct slp_mx_op *slp_mx_op_for(const struct sl_op *ours);

/* Records "FUNCTION at AT: node NAME (OP): …", once. */
void slp_mx_fail(struct slp_mx_call *c, enum sl_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Whether the attributes are valid and results are needed. */
static inline bool slp_mx_go(const struct slp_mx_call *c)
{
	return !c->failed && !c->checking;
}

/* ---- attributes (mxnet/attributes.c): the text of one, or its default; invalid ones are recorded ------------------
 */

#define SLP_MX_NONE INT64_MIN
enum { SLP_MX_TUPLE = 16 };

const char *slp_mx_text(const struct slp_mx_call *c, const char *name, const char *otherwise);
bool slp_mx_is(const struct slp_mx_call *c, const char *name, const char *otherwise, const char *value);
bool slp_mx_bool(struct slp_mx_call *c, const char *name, bool otherwise);
double slp_mx_double(struct slp_mx_call *c, const char *name, double otherwise);
/* SLP_MX_NONE for None. */
int64_t slp_mx_int(struct slp_mx_call *c, const char *name, int64_t otherwise);
/* Like slp_mx_int, but the attribute must be there, and within bounds. */
int64_t slp_mx_need(struct slp_mx_call *c, const char *name, int64_t low, int64_t high);
/* "(1, 2)", "[1, None]" or "3"; returns their number, -1 if it is missing or None. */
int slp_mx_tuple(struct slp_mx_call *c, const char *name, int64_t v[SLP_MX_TUPLE]);
/* An attribute whose value is one of the operator's default must have it: other values are not supported. */
void slp_mx_only(struct slp_mx_call *c, const char *name, const char *value);

#endif
