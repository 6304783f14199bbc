/* Attributes and types in a program's text. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "graph/text/parse.h"
#include "op_inner.h"
#include "op.h"

/* ---- types ------------------------------------------------------------------------------------------------------- */

static bool find_word(const char *const *words, const char *text, int *index)
{
	for (*index = 0; words[*index]; ++*index)
		if (!strcmp(words[*index], text)) return true;
	return false;
}

static bool find_dtype(const char *text, int *dtype)
{
	*dtype = (int)sl_dtype_named(text);
	return *dtype != SL_DTYPE_DEFAULT;
}

bool slp_parse_type(struct slp_parser *p, struct slp_type *type)
{
	int dtype = 0;
	bool ok = true;
	if (p->lex.kind != SLP_TOKEN_NAME || !find_dtype(p->lex.text, &dtype))
		return slp_lex_fail(&p->lex, SL_EFORMAT, "expected a data type such as float32");
	*type = (struct slp_type){(enum sl_dtype)dtype, {.ndim = -1}};
	if (!slp_lex_next(&p->lex)) return false;
	if (!slp_lex_accept(&p->lex, "(", &ok)) return true;
	type->shape.ndim = 0;
	while (ok && !slp_lex_is(&p->lex, ")")) {
		if (p->lex.kind != SLP_TOKEN_NUMBER || !p->lex.is_integer || p->lex.integer < 0)
			return slp_lex_fail(&p->lex, SL_EFORMAT, "a size expected");
		if (type->shape.ndim == SL_MAX_NDIM)
			return slp_lex_fail(&p->lex, SL_ESHAPE, "a tensor has at most %d axes", SL_MAX_NDIM);
		type->shape.dim[type->shape.ndim++] = p->lex.integer;
		ok = slp_lex_next(&p->lex);
		if (ok && !slp_lex_accept(&p->lex, ",", &ok)) break;
	}
	if (ok && !slp_shape_valid(type->shape)) return slp_lex_fail(&p->lex, SL_ESHAPE, "the shape is too large");
	return ok && slp_lex_expect(&p->lex, ")");
}

/* ---- values of attributes ---------------------------------------------------------------------------------------- */

/* The number of a word in this attribute. */
static bool word_value(const struct slp_attr *a, const char *text, int *value)
{
	static const char *const truth[] = {"false", "true", NULL};
	if (a->kind == SLP_BOOL) return find_word(truth, text, value);
	if (!strcmp(a->name, "dtype")) return find_dtype(text, value);
	return slp_text_names(a) && find_word(slp_text_names(a), text, value);
}

static bool store_integer(struct slp_parser *p, const struct slp_attr *a, char *to, int64_t value)
{
	bool fits = a->kind == SLP_INT64 || (value >= INT_MIN && value <= INT_MAX);
	if (!fits) return slp_lex_fail(&p->lex, SL_EINVAL, "%s is out of range", a->name);
	if (a->kind == SLP_INT64) memcpy(to, &value, sizeof value);
	else memcpy(to, &(int){(int)value}, sizeof(int));
	return true;
}

/* Reads element i of the attribute from the token. */
static bool store(struct slp_parser *p, const struct slp_attr *a, char *attrs, unsigned i)
{
	char *to = attrs + a->offset + i * slp_attr_size(a->kind);
	int word = 0;
	bool is_word = p->lex.kind == SLP_TOKEN_NAME && word_value(a, p->lex.text, &word);
	if (p->lex.kind != SLP_TOKEN_NUMBER && !is_word)
		return slp_lex_fail(&p->lex, SL_EFORMAT, "a value for %s expected", a->name);
	if (i >= a->count) return slp_lex_fail(&p->lex, SL_EINVAL, "%s takes at most %u values", a->name, a->count);
	double number = a->defaulted && p->lex.number == 0 ? -0.0 : p->lex.number; /* 0 was given */
	if (a->kind == SLP_DOUBLE) memcpy(to, &number, sizeof number);
	else if (a->kind == SLP_BOOL && is_word) *to = (char)word;
	else if (a->kind == SLP_BOOL) return slp_lex_fail(&p->lex, SL_EINVAL, "%s is true or false", a->name);
	else if (!is_word && !p->lex.is_integer) return slp_lex_fail(&p->lex, SL_EINVAL, "%s is an integer", a->name);
	else if (!store_integer(p, a, to, is_word ? word : p->lex.integer)) return false;
	return slp_lex_next(&p->lex);
}

/* Reads a value, or several in parentheses; *count: their number. */
static bool store_all(struct slp_parser *p, const struct slp_attr *a, char *attrs, int *count)
{
	bool ok = true;
	*count = 0;
	if (!slp_lex_accept(&p->lex, "(", &ok)) return *count = 1, store(p, a, attrs, 0);
	while (ok && !slp_lex_is(&p->lex, ")")) {
		ok = store(p, a, attrs, (unsigned)*count);
		++*count;
		if (ok && !slp_lex_accept(&p->lex, ",", &ok)) break;
	}
	return ok && slp_lex_expect(&p->lex, ")");
}

/* The attribute of this name, and that of its length if it is a list with one. */
static const struct slp_attr *find(const struct sl_op *op, const char *name, const struct slp_attr **length)
{
	*length = NULL;
#define X(text, count, list)                                                                                           \
	if (!strcmp(name, text) && slp_attr_find(op, count) && slp_attr_find(op, list))                                \
		return *length = slp_attr_find(op, count), slp_attr_find(op, list);
	SLP_TEXT_LISTS(X)
#undef X
	return slp_attr_find(op, name);
}

/* ---- attributes of earlier versions ------------------------------------------------------------------------------ */

/* Before layouts had one attribute, each had a boolean an operand. */
static const struct {
	const char *name, *now[2];
	int layout;
} earlier[] = {
        {"x_lanes", {"x_layout"}, SLP_LAYOUT_N16},
        {"y_lanes", {"y_layout"}, SLP_LAYOUT_N16},
        {"x_blocks", {"x_layout"}, SLP_LAYOUT_NC16},
        {"y_blocks", {"y_layout"}, SLP_LAYOUT_NC16},
        {"x_last", {"x_layout"}, SLP_LAYOUT_NHWC},
        {"y_last", {"y_layout"}, SLP_LAYOUT_NHWC},
        {"blocks", {"layout"}, SLP_LAYOUT_NC16},
        {"last", {"layout"}, SLP_LAYOUT_NHWC},
        {"last", {"x_layout", "y_layout"}, SLP_LAYOUT_NHWC},
        {"to_lanes", {"layout"}, SLP_LAYOUT_N16},
};

/* The row for the name at the token, if the operation has the attributes that replace it; -1: there is none. */
static int find_earlier(const struct slp_parser *p, const struct sl_op *op)
{
	int i = (int)(sizeof earlier / sizeof *earlier) - 1;
	while (i >= 0 && (strcmp(earlier[i].name, p->lex.text) || !slp_attr_find(op, earlier[i].now[0]))) i--;
	return i;
}

static bool parse_earlier(struct slp_parser *p, const struct sl_op *op, void *attrs, int row)
{
	bool set = false;
	const struct slp_attr boolean = {.name = earlier[row].name, .kind = SLP_BOOL, .count = 1};
	if (!slp_lex_next(&p->lex) || !slp_lex_expect(&p->lex, "=") || !store(p, &boolean, (char *)&set, 0))
		return false;
	for (int i = 0; set && i < 2 && earlier[row].now[i]; i++)
		memcpy((char *)attrs + slp_attr_find(op, earlier[row].now[i])->offset, &earlier[row].layout,
		       sizeof(int));
	return true;
}

bool slp_parse_attr(struct slp_parser *p, const struct sl_op *op, void *attrs)
{
	const struct slp_attr *length, *a = find(op, p->lex.text, &length);
	int count = 0, row = a ? -1 : find_earlier(p, op);
	if (row >= 0) return parse_earlier(p, op, attrs, row);
	if (!a) return slp_lex_fail(&p->lex, SL_EINVAL, "%s has no attribute %s", op->name, p->lex.text);
	if (!slp_lex_next(&p->lex) || !slp_lex_expect(&p->lex, "=")) return false;
	if (!store_all(p, a, attrs, &count)) return false;
	if (length) memcpy((char *)attrs + length->offset, &count, sizeof count);
	return true;
}

void slp_parse_random(struct slp_parser *p, const struct sl_op *op, void *attrs, unsigned given)
{
	const struct slp_attr *seed = slp_attr_find(op, "seed"), *stream = slp_attr_find(op, "stream");
	uint64_t value = SLP_RNG_VIRTUAL, number = (uint64_t)p->g->nrandom;
	if (!seed || !stream || given & SLP_GIVEN_SEED) return;
	memcpy((char *)attrs + seed->offset, &value, sizeof value);
	if (given & SLP_GIVEN_STREAM) memcpy(&number, (char *)attrs + stream->offset, sizeof number);
	else memcpy((char *)attrs + stream->offset, &number, sizeof number);
	if (number >= (uint64_t)p->g->nrandom && number < INT_MAX) p->g->nrandom = (int)number + 1;
}
