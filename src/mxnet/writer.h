/* Writing an MXNet symbol: nodes, attributes, inputs. */
#ifndef SLP_MX_WRITER_H
#define SLP_MX_WRITER_H

#include "export/program.h"
#include "mxnet/export_operators.h"
#include "starling/graph.h"

struct slp_mx_word {
	char *begin; /* of names */
	int count;   /* of the existing ones */
};

struct slp_mx_writer {
	const char *at;
	const sl_graph *g;
	json_t *nodes, *variables, *attrs; /* attrs: of the node that is written next */
	struct slp_mx_value *values;       /* the value of output o of node n: values[n * SLP_MAX_OUTPUTS + o] */
	const struct slp_gnode *now;       /* that is being written */
	int helpers;                       /* nodes written for it besides the last */
	struct slp_mx_word *words;
	int nwords, max_words;
	bool failed;
};

/* The name of the node that stands for the operation now (mxnet/names.c); false without memory. */
bool slp_mx_name(struct slp_mx_writer *w, const char *op, char name[256]);
void slp_mx_names_free(struct slp_mx_writer *w);
/* Whether a reshape is (n, a, b, …) to (n, a·b·…). */
bool slp_mx_is_flatten(const sl_graph *g, const struct slp_gnode *n);

void slp_mx_write_fail(struct slp_mx_writer *w, enum sl_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Sets an attribute of the next node. */
void slp_mx_set(struct slp_mx_writer *w, const char *name, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
void slp_mx_set_number(struct slp_mx_writer *w, const char *name, double v);
void slp_mx_set_tuple(struct slp_mx_writer *w, const char *name, const int64_t *v, int n);
/* The value of input i of the operation. */
struct slp_mx_value slp_mx_in(struct slp_mx_writer *w, const struct slp_gnode *n, int i);
/* Writes a node with the attributes that were set; its name is that of the operation and, with a suffix, that. */
struct slp_mx_value slp_mx_emit(struct slp_mx_writer *w, const char *op, const char *suffix, int nin,
                                const struct slp_mx_value *in);
/* The same, as the operation's result. */
void slp_mx_result(struct slp_mx_writer *w, const char *op, int nin, const struct slp_mx_value *in);
/* The same with the operation's own first nin inputs. */
void slp_mx_as(struct slp_mx_writer *w, const char *op, int nin);

#endif
