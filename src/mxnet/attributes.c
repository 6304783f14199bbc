/* Attributes of MXNet's operators, which are Python's way of writing numbers and tuples. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "number.h"
#include "mxnet/mxnet.h"
#include "nn/nn.h"
#include "runtime/text.h"
#include "op.h"

void slp_mx_fail(struct slp_mx_call *c, enum sl_status status, const char *format, ...)
{
	char text[768];
	int n = snprintf(text, sizeof text, "node \"%.100s\" (%.60s): ", c->node->name, c->node->op);
	SLP_FORMAT(text + n, sizeof text - (size_t)n, format);
	slp_text_escape(text, sizeof text, false);
	if (!c->failed) slp_call_fail(c->at, c->function, status, "%s", text);
	c->failed = true;
}

static void bad(struct slp_mx_call *c, const char *name, const char *text)
{
	slp_mx_fail(c, SL_EFORMAT, "attribute %s has the invalid value \"%.100s\"", name, text);
}

const char *slp_mx_text(const struct slp_mx_call *c, const char *name, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(c->node->attrs, name));
	return text ? text : otherwise;
}

bool slp_mx_is(const struct slp_mx_call *c, const char *name, const char *otherwise, const char *value)
{
	return !strcmp(slp_mx_text(c, name, otherwise), value);
}

void slp_mx_only(struct slp_mx_call *c, const char *name, const char *value)
{
	const char *text = slp_mx_text(c, name, value);
	if (strcmp(text, value) && strcmp(text, "None"))
		slp_mx_fail(c, SL_EUNSUPPORTED, "attribute %s is \"%.100s\", only \"%s\" is supported", name, text,
		            value);
}

bool slp_mx_bool(struct slp_mx_call *c, const char *name, bool otherwise)
{
	const char *text = slp_mx_text(c, name, otherwise ? "True" : "False");
	if (!strcmp(text, "True") || !strcmp(text, "true") || !strcmp(text, "1")) return true;
	if (strcmp(text, "False") && strcmp(text, "false") && strcmp(text, "0") && strcmp(text, "None"))
		bad(c, name, text);
	return false;
}

double slp_mx_double(struct slp_mx_call *c, const char *name, double otherwise)
{
	const char *text = slp_mx_text(c, name, NULL);
	char *end;
	if (!text) return otherwise;
	double v = slp_number_read(text, &end);
	if (end == text || *end) bad(c, name, text);
	return v;
}

static bool is_end(const char *p)
{
	while (slp_is_space(*p)) p++;
	return !*p;
}

/* A whole number or None at *p, which moves behind it. */
static bool take_int(const char **p, int64_t *v)
{
	char *end;
	while (slp_is_space(**p)) ++*p;
	if (!strncmp(*p, "None", 4)) {
		*p += 4;
		*v = SLP_MX_NONE;
		return true;
	}
	errno = 0;
	*v = strtoll(*p, &end, 10);
	if (end == *p || errno) return false;
	*p = end;
	if (**p == 'L') ++*p;
	return true;
}

int64_t slp_mx_int(struct slp_mx_call *c, const char *name, int64_t otherwise)
{
	const char *text = slp_mx_text(c, name, NULL), *p = text;
	int64_t v = otherwise;
	if (text && (!take_int(&p, &v) || !is_end(p))) bad(c, name, text);
	return v;
}

int64_t slp_mx_need(struct slp_mx_call *c, const char *name, int64_t low, int64_t high)
{
	const char *text = slp_mx_text(c, name, NULL);
	int64_t v = slp_mx_int(c, name, low);
	if (!text) slp_mx_fail(c, SL_EFORMAT, "has no attribute %s", name);
	else if (v < low || v > high)
		slp_mx_fail(c, SL_EFORMAT, "attribute %s is %.100s, it must be in %lld to %lld", name, text,
		            (long long)low, (long long)high);
	return c->failed ? low : v;
}

int slp_mx_tuple(struct slp_mx_call *c, const char *name, int64_t v[SLP_MX_TUPLE])
{
	const char *text = slp_mx_text(c, name, NULL), *p = text;
	int n = 0;
	if (!text || !strcmp(text, "None")) return -1;
	while (slp_is_space(*p)) p++;
	char open = *p, close = open == '(' ? ')' : ']';
	if (open != '(' && open != '[') {
		v[0] = slp_mx_int(c, name, 0);
		return 1;
	}
	for (p++; !c->failed; n++) {
		while (slp_is_space(*p)) p++;
		if (*p == close) break;
		if (n == SLP_MX_TUPLE || !take_int(&p, &v[n])) bad(c, name, text);
		while (slp_is_space(*p)) p++;
		if (*p == ',') p++;
		else if (*p != close) bad(c, name, text);
	}
	if (!c->failed && !is_end(p + 1)) bad(c, name, text);
	return c->failed ? -1 : n;
}
