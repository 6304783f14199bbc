/* Blocks within blocks: adding, walking, finding parameters by their path.  A block may have several parents; a walk
 * visits its parameters once. */
#include <stdlib.h>
#include <string.h>

#include "nn/nn.h"
#include "op.h"
#include "runtime/gate.h"
#include "runtime/recursive.h"
#include "starling/nn.h"

/* ---- changes ----------------------------------------------------------------------------------------------------- */

SLP_RECURSIVE_LOCK;

void slp_tree_lock(void)
{
	lock_again();
}

void slp_tree_unlock(void)
{
	unlock_again();
}

void slp_block_changed(sl_block *block)
{
	SLP_TREE();
	block->base->changes++;
	struct slp_hybrid *hybrid = block->base->hybrid;
	if (hybrid) hybrid->f->drop_plans(hybrid);
	for (int i = 0; i < block->base->nparents; i++) slp_block_changed(block->base->parents[i]);
}

void slp_block_leave(sl_block *parent, sl_block *child)
{
	SLP_TREE();
	struct slp_block *b = child->base;
	for (int i = 0; i < b->nparents; i++)
		if (b->parents[i] == parent) {
			b->parents[i] = b->parents[--b->nparents];
			return;
		}
}

static bool is_within(const sl_block *block, const sl_block *other)
{
	if (block == other) return true;
	for (int i = 0; i < other->base->nchildren; i++)
		if (is_within(block, other->base->children[i])) return true;
	return false;
}

void **slp_list_with(void **list, int count, void *item)
{
	void **longer = slp_malloc(((size_t)count + 1) * sizeof *longer);
	if (!longer) return NULL;
	if (count) memcpy(longer, list, (size_t)count * sizeof *longer);
	longer[count] = item;
	return longer;
}

static bool insert_child(sl_block *parent, const char *name, sl_block *child)
{
	struct slp_block *p = parent->base, *c = child->base;
	char number[16];
	snprintf(number, sizeof number, "%d", p->nchildren);
	char *copy = slp_strdup(name ? name : number);
	void **children = slp_list_with((void **)p->children, p->nchildren, child);
	void **names = slp_list_with((void **)p->child_names, p->nchildren, copy);
	void **parents = slp_list_with((void **)c->parents, c->nparents, parent);
	if (!copy || !children || !names || !parents) {
		free(copy);
		free(children);
		free(names);
		free(parents);
		return false;
	}
	slp_later(free, atomic_exchange(&c->parents, (sl_block **)parents));
	slp_later(free, atomic_exchange(&p->child_names, (char **)names));
	slp_later(free, atomic_exchange(&p->children, (sl_block **)children));
	c->nparents++;
	p->nchildren++;
	return true;
}

static int place_of(const sl_block *parent, const char *name)
{
	for (int i = 0; i < parent->base->nchildren; i++)
		if (!strcmp(parent->base->child_names[i], name)) return i;
	return -1;
}

static enum sl_status check_add(const char *at, const char *function, const sl_block *parent, const char *name,
                                const sl_block *child, bool replaces)
{
	const char *wrong = NULL;
	if (!parent || !child) wrong = parent ? "the child is NULL" : "the parent is NULL";
	else if (!parent->base || !child->base) wrong = "the blocks must be made with sl_block_init first";
	else if (is_within(parent, child)) wrong = "a block cannot be inside itself";
	else if (name && (!*name || strchr(name, '.'))) wrong = "a name has letters, and no dots";
	else if (name && !replaces && place_of(parent, name) >= 0) wrong = "there is already a child of that name";
	else if (replaces && (!name || place_of(parent, name) < 0)) wrong = "there is no child of that name";
	if (!wrong) return SL_OK;
	if ((parent && child) || sl_error() == SL_OK)
		slp_call_fail(at, function, SL_EINVAL, "%s%s%s: %s", sl_block_name(parent), name ? ", " : "",
		              name ? name : "", wrong);
	return SL_EINVAL;
}

/* Gives up a child that did not become one.  One around the parent is in use, whatever was given with it: its last
 * reference stays. */
static sl_block *give_up(const sl_block *parent, sl_block *child)
{
	bool around = parent && child && parent->base && child->base && is_within(parent, child);
	if (!around || atomic_load(&child->base->refs) > 1) sl_block_free(child);
	return NULL;
}

/* Adds a child to parent under a name (NULL: its number); paths of parameters consist of such names.  Takes over the
 * caller's reference, also after an error, so that a new block can be passed directly; retain a block that already has
 * a parent, and its parameters are shared.  Plans of the parent and of the blocks around it are dropped.  Returns the
 * child; NULL, without a message, if the child is NULL after an earlier mistake, or with SL_EINVAL: a name that is
 * taken or has dots, a block inside itself (whose last reference is then kept).
 *
 *     net->hidden = sl_block_add(&net->base, "hidden", sl_dense(256, .activation = SL_RELU));
 *     sl_block_add(sequence, NULL, sl_dense(10)); */
sl_block *sl_block_add_at(const char *at, sl_block *parent, const char *name, sl_block *child)
{
	SLP_CALL("sl_block_add", at);
	SLP_TREE();
	enum sl_status s = check_add(at, "sl_block_add", parent, name, child, false);
	if (s == SL_OK && insert_child(parent, name, child)) {
		slp_block_changed(parent);
		return child;
	}
	if (s == SL_OK) slp_call_fail(at, "sl_block_add", SL_ENOMEM, "no memory for another child");
	return give_up(parent, child);
}

static void free_block(void *block)
{
	sl_block_free(block);
}

/* Replaces the parent's child of that name, which is released; trainers of its parameters keep these.  Takes over the
 * caller's reference, like sl_block_add, and drops plans.  Returns the child; NULL, without a message, if it is NULL
 * after an earlier mistake, or with SL_EINVAL: there is no child of that name, or the block would be inside itself.
 *
 *     sl_block_replace(&net->base, "output", sl_dense(5)); */
sl_block *sl_block_replace_at(const char *at, sl_block *parent, const char *name, sl_block *child)
{
	SLP_CALL("sl_block_replace", at);
	SLP_TREE();
	if (check_add(at, "sl_block_replace", parent, name, child, true) != SL_OK) return give_up(parent, child);
	struct slp_block *p = parent->base, *c = child->base;
	void **parents = slp_list_with((void **)c->parents, c->nparents, parent);
	sl_block **children = (sl_block **)slp_list_with((void **)p->children, p->nchildren, NULL);
	if (!parents || !children) {
		free(parents);
		free(children);
		slp_call_fail(at, "sl_block_replace", SL_ENOMEM, "no memory for another child");
		return give_up(parent, child);
	}
	int place = place_of(parent, name);
	sl_block *before = children[place];
	children[place] = child;
	slp_later(free, atomic_exchange(&c->parents, (sl_block **)parents));
	c->nparents++;
	slp_later(free, atomic_exchange(&p->children, children));
	slp_block_leave(parent, before);
	slp_later(free_block, before); /* other threads may be within it */
	slp_block_changed(parent);
	return child;
}

/* The number of the block's children; 0 for NULL. */
int sl_block_children(const sl_block *block)
{
	SLP_CALL("sl_block_children", NULL);
	return block && block->base ? block->base->nchildren : 0;
}

/* Child i, which still belongs to the block; NULL if there is none. */
sl_block *sl_block_child(const sl_block *block, int i)
{
	SLP_CALL("sl_block_child", NULL);
	if (i < 0 || i >= sl_block_children(block)) return NULL;
	sl_block *const *children = block->base->children;
	return children[i];
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

struct list {
	sl_param **params;
	int count, capacity;
	bool failed;
};

static bool is_listed(const struct list *l, const sl_param *param)
{
	for (int i = 0; i < l->count; i++)
		if (l->params[i] == param) return true;
	return false;
}

static void collect(struct list *l, const sl_block *block)
{
	for (int i = 0; i < block->base->nparams; i++) {
		if (is_listed(l, block->base->params[i])) return; /* the whole block has been met */
		void *list = l->params;
		if (!slp_grow(&list, &l->capacity, l->count + 1, sizeof *l->params)) l->failed = true;
		l->params = list;
		if (l->failed) return;
		l->params[l->count++] = block->base->params[i];
	}
	for (int i = 0; i < block->base->nchildren; i++) collect(l, block->base->children[i]);
}

sl_param **slp_block_all_params(const char *at, sl_block *block, int *count)
{
	SLP_TREE();
	struct list l = {slp_calloc(1, sizeof *l.params), 0, 1, false};
	*count = 0;
	if (!block || !block->base) {
		free(l.params);
		if (sl_error() != SL_OK) return NULL;
		return slp_call_fail(at, "parameters", SL_EINVAL,
		                     "the block is NULL, or was not made with sl_block_init");
	}
	if (l.params) collect(&l, block);
	if (l.params && !l.failed) {
		*count = l.count;
		return l.params;
	}
	free(l.params);
	return slp_call_fail(at, "parameters", SL_ENOMEM, "no memory for the list");
}

/* Writes the block's parameters and those of its children, in order and each once, to params, at most max of them, and
 * returns their number; 0 after an error, SL_EINVAL for NULL.  They belong to their blocks.
 *
 *     int n = sl_block_params(net, NULL, 0); */
int sl_block_params(const sl_block *block, sl_param **params, int max)
{
	SLP_CALL("sl_block_params", NULL);
	int count = 0;
	sl_param **all = slp_block_all_params(NULL, (sl_block *)block, &count);
	for (int i = 0; params && i < count && i < max; i++) params[i] = all[i];
	free(all);
	return count;
}

static char *joined(const char *name, char *rest)
{
	char *path = rest ? slp_format("%s.%s", name, rest) : NULL;
	free(rest);
	return path;
}

char *slp_param_path(const sl_block *block, const sl_param *param)
{
	SLP_TREE();
	if (param->block == block) return slp_strdup(param->name);
	for (int i = 0; i < block->base->nchildren; i++) {
		char *rest = slp_param_path(block->base->children[i], param);
		if (rest) return joined(block->base->child_names[i], rest);
	}
	return NULL;
}

static sl_param *find(const sl_block *block, const char *path)
{
	const char *dot = strchr(path, '.');
	size_t n = dot ? (size_t)(dot - path) : strlen(path);
	for (int i = 0; !dot && i < block->base->nparams; i++)
		if (!strcmp(block->base->params[i]->name, path)) return block->base->params[i];
	for (int i = 0; dot && i < block->base->nchildren; i++)
		if (strlen(block->base->child_names[i]) == n && !strncmp(block->base->child_names[i], path, n))
			return find(block->base->children[i], dot + 1);
	return NULL;
}

/* "0.weight, 0.bias, 1.weight" as far as it fits. */
static void list_paths(const char *at, sl_block *block, char *text, size_t size)
{
	int count = 0;
	sl_param **all = slp_block_all_params(at, block, &count);
	size_t n = 0;
	text[0] = '\0';
	for (int i = 0; i < count && n < size; i++) {
		char *path = slp_param_path(block, all[i]);
		n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : "", path ? path : "?");
		free(path);
	}
	free(all);
}

/* The parameter at a path from the block: names of children and of the parameter, with dots between.  It belongs to
 * its block.  SL_EINVAL if there is none; the message lists the existing ones.
 *
 *     sl_print(sl_param_data(sl_block_find(net, "0.weight"))); */
sl_param *sl_block_find_at(const char *at, sl_block *block, const char *path)
{
	SLP_CALL("sl_block_find", at);
	char text[1024];
	if (!block || !block->base || !path) {
		if (sl_error() != SL_OK) return NULL;
		return slp_call_fail(at, "sl_block_find", SL_EINVAL, "the block or the path is NULL");
	}
	SLP_TREE();
	sl_param *param = find(block, path);
	if (param) return param;
	list_paths(at, block, text, sizeof text);
	return slp_call_fail(at, "sl_block_find", SL_EINVAL, "%s has no parameter \"%s\"; there are: %s",
	                     block->base->name, path, *text ? text : "none");
}
