/* Reading a program's text: common parts of statements (parse.c) and attributes of calls (parse_attrs.c). */
#ifndef SLP_PARSE_H
#define SLP_PARSE_H

#include "graph/text/lex.h"
#include "op.h"
#include "starling/graph.h"

struct slp_parser {
	struct slp_lexer lex;
	sl_graph *g;
	struct slp_names names; /* names in the text; their values: */
	struct slp_value *values;
	int nvalues, max_values;
	int depth; /* of nested calls */
	int literals;
};

/* The largest size of a tensor in a text, in bytes; fuzz targets set less. */
extern int64_t slp_text_most_bytes;

/* Reads name=value into attrs. */
bool slp_parse_attr(struct slp_parser *p, const struct sl_op *op, void *attrs);
/* A random operation without a seed draws from a stream of the run; without a stream either, from the next one. */
enum { SLP_GIVEN_SEED = 1, SLP_GIVEN_STREAM = 2 };
void slp_parse_random(struct slp_parser *p, const struct sl_op *op, void *attrs, unsigned given);
/* Reads "float32 (2, 3)", or a data type alone: ndim -1. */
bool slp_parse_type(struct slp_parser *p, struct slp_type *type);

#endif
