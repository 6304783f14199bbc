/* Reading MXNet's symbols: the JSON, and checks that do not depend on operators. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "mxnet/mxnet.h"
#include "alloc.h"

enum { MOST_OUTPUTS = 4096 };

void slp_mx_free(struct slp_mx_symbol *s)
{
	for (int i = 0; s->nodes && i < s->count; i++) free(s->nodes[i].in);
	free(s->nodes);
	free(s->order);
	free(s->heads);
	json_decref(s->json);
	*s = (struct slp_mx_symbol){0};
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static bool no_memory(struct slp_file *f)
{
	return slp_file_fail(f, SL_ENOMEM, "no memory for its nodes");
}

/* [node, output] or [node, output, version]. */
static bool read_value(struct slp_file *f, const struct slp_mx_symbol *s, const char *whose, json_t *json,
                       struct slp_mx_value *v)
{
	json_t *node = json_array_get(json, 0), *out = json_array_get(json, 1);
	if (!json_is_integer(node) || !json_is_integer(out))
		return slp_file_fail(f, SL_EFORMAT, "%.100s: an input is not of the form [node, output]", whose);
	json_int_t n = json_integer_value(node), o = json_integer_value(out);
	if (n < 0 || n >= s->count)
		return slp_file_fail(f, SL_EFORMAT, "%.100s refers to node %lld of %d", whose, (long long)n, s->count);
	if (o < 0 || o >= MOST_OUTPUTS)
		return slp_file_fail(f, SL_EFORMAT, "%.100s refers to output %lld", whose, (long long)o);
	*v = (struct slp_mx_value){(int)n, (int)o};
	if (s->nodes[n].nout <= o) s->nodes[n].nout = (int)o + 1;
	return true;
}

static bool read_values(struct slp_file *f, const struct slp_mx_symbol *s, const char *whose, json_t *list,
                        struct slp_mx_value **values, int *count)
{
	size_t n = json_array_size(list);
	if (!json_is_array(list)) return slp_file_fail(f, SL_EFORMAT, "%.100s has no list of inputs", whose);
	*values = slp_malloc((n + 1) * sizeof **values);
	if (!*values) return no_memory(f);
	for (size_t i = 0; i < n; i++)
		if (!read_value(f, s, whose, json_array_get(list, i), &(*values)[i])) return false;
	*count = (int)n;
	return true;
}

/* Attributes have had three names since MXNet 0.x.  Their values are strings. */
static bool read_attrs(struct slp_file *f, struct slp_mx_node *n, json_t *json)
{
	static const char *const names[] = {"attrs", "attr", "param"};
	const char *key;
	json_t *value;
	for (int i = 0; i < 3 && !n->attrs; i++) n->attrs = json_object_get(json, names[i]);
	if (n->attrs && !json_is_object(n->attrs))
		return slp_file_fail(f, SL_EFORMAT, "node \"%.100s\" has attributes that are not an object", n->name);
	json_object_foreach(n->attrs, key, value)
	{
		if (!json_is_string(value))
			return slp_file_fail(f, SL_EFORMAT, "node \"%.100s\": attribute %.100s is not a string",
			                     n->name, key);
	}
	return true;
}

static bool read_node(struct slp_file *f, struct slp_mx_symbol *s, int i, json_t *json)
{
	struct slp_mx_node *n = &s->nodes[i];
	n->op = json_string_value(json_object_get(json, "op"));
	n->name = json_string_value(json_object_get(json, "name"));
	if (!n->op || !n->name || !*n->name) return slp_file_fail(f, SL_EFORMAT, "node %d has no op or no name", i);
	if (!read_attrs(f, n, json)) return false;
	if (json_object_get(json, "subgraphs"))
		return slp_file_fail(f, SL_EUNSUPPORTED, "node \"%.100s\" (%.60s) has a graph within", n->name, n->op);
	if (!read_values(f, s, n->name, json_object_get(json, "inputs"), &n->in, &n->nin)) return false;
	if (slp_mx_is_variable(n) && n->nin)
		return slp_file_fail(f, SL_EFORMAT, "variable \"%.100s\" has inputs", n->name);
	return true;
}

static bool read_nodes(struct slp_file *f, struct slp_mx_symbol *s)
{
	json_t *nodes = json_object_get(s->json, "nodes");
	size_t n = json_array_size(nodes);
	if (n == 0 || n > INT_MAX / 2)
		return slp_file_fail(f, SL_EFORMAT, "has no list of nodes: this is not a symbol of MXNet");
	s->count = (int)n;
	s->nodes = slp_calloc(n, sizeof *s->nodes);
	if (!s->nodes) return no_memory(f);
	for (int i = 0; i < s->count; i++)
		if (!slp_file_spend(f, 1) || !read_node(f, s, i, json_array_get(nodes, (size_t)i))) return false;
	if (!read_values(f, s, "the result", json_object_get(s->json, "heads"), &s->heads, &s->nheads)) return false;
	if (s->nheads == 0) return slp_file_fail(f, SL_EFORMAT, "has no result: its list of heads is empty");
	return true;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Parameters and inputs are known by name: variables need different ones. */
static bool check_names(struct slp_file *f, const struct slp_mx_symbol *s)
{
	const char **names = slp_malloc((size_t)s->count * sizeof *names);
	int n = 0;
	if (!names) return no_memory(f);
	for (int i = 0; i < s->count; i++)
		if (slp_mx_is_variable(&s->nodes[i])) names[n++] = s->nodes[i].name;
	qsort(names, (size_t)n, sizeof *names, compare);
	for (int i = 1; i < n && !f->failed; i++)
		if (!strcmp(names[i - 1], names[i]))
			slp_file_fail(f, SL_EFORMAT, "has two variables named \"%.100s\"", names[i]);
	free(names);
	return !f->failed;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

enum { NEW, OPEN, DONE };

/* Walks from node to node without recursion: a chain may be as long as the file. */
static bool walk(struct slp_file *f, struct slp_mx_symbol *s, int root, char *state, int *next, int *stack, int *n)
{
	int depth = 0;
	stack[depth++] = root;
	state[root] = OPEN;
	while (depth) {
		int node = stack[depth - 1];
		if (next[node] == s->nodes[node].nin) {
			state[node] = DONE;
			s->order[(*n)++] = node;
			depth--;
			continue;
		}
		int in = s->nodes[node].in[next[node]++].node;
		if (state[in] == OPEN)
			return slp_file_fail(f, SL_EFORMAT, "has a cycle: node \"%.100s\" depends on itself",
			                     s->nodes[in].name);
		if (state[in] == DONE) continue;
		state[in] = OPEN;
		stack[depth++] = in;
	}
	return true;
}

static bool find_order(struct slp_file *f, struct slp_mx_symbol *s)
{
	size_t count = (size_t)s->count;
	char *state = slp_calloc(count, 1);
	int *next = slp_calloc(count, sizeof *next), *stack = slp_malloc(count * sizeof *stack), n = 0;
	s->order = slp_malloc(count * sizeof *s->order);
	bool ok = state && next && stack && s->order;
	if (!ok) no_memory(f);
	for (int i = 0; ok && i < s->count; i++)
		if (state[i] == NEW) ok = walk(f, s, i, state, next, stack, &n);
	free(state);
	free(next);
	free(stack);
	return ok;
}

bool slp_mx_parse(struct slp_file *f, struct slp_mx_symbol *s)
{
	json_error_t e;
	*s = (struct slp_mx_symbol){0};
	s->json = slp_json_read(f, (const char *)f->data, f->size, &e);
	if (!s->json) return slp_file_fail(f, SL_EFORMAT, "is not JSON: line %d: %s", e.line, e.text);
	return read_nodes(f, s) && check_names(f, s) && find_order(f, s);
}
