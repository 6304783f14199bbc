/* Recomputed blocks: one call on the tape stands for a block; its intermediate values are not kept, and the backward
 * pass runs the block again when it reaches the call. */
#include <stdlib.h>
#include <string.h>

#include "autograd/autograd.h"
#include "op.h"
#include "runtime/fault.h"

static _Thread_local struct slp_look *looking;

/* ---- looking ----------------------------------------------------------------------------------------------------- */

bool slp_comes_from_inside(const sl_tensor *t)
{
	return t->var && t->var->inside;
}

static bool note(struct slp_look *look, sl_tensor *t)
{
	for (int i = 0; i < look->count; i++)
		if (look->met[i]->var == t->var) return true;
	if (!slp_grow((void **)&look->met, &look->capacity, look->count + 1, sizeof *look->met)) return false;
	look->met[look->count++] = sl_retain(t);
	return true;
}

/* Results get a variable that only says that gradients flow through. */
static bool mark(sl_tensor *t)
{
	struct slp_var *v = slp_var_new();
	if (!v) return false;
	v->inside = true;
	v->type = t->type;
	v->device = t->device;
	if (t->var) slp_var_release(t->var);
	t->var = v;
	return true;
}

static bool look_call(const char *at, const struct sl_op *op, const void *attrs, int nin, sl_tensor *const *in,
                      int nout, sl_tensor *const *out)
{
	bool any = false, ok = true;
	(void)attrs;
	for (int i = 0; ok && i < nin; i++) {
		if (in[i]->gradient) {
			slp_call_fail(at, op->name, SL_EUNSUPPORTED,
			              "argument %d is a gradient whose computation was not recorded", i);
			return false;
		}
		if (!slp_tape.wants(in[i])) continue;
		any = true;
		ok = slp_comes_from_inside(in[i]) || note(looking, in[i]);
	}
	for (int i = 0; ok && any && i < nout; i++) ok = mark(out[i]);
	if (!ok) slp_call_fail(at, op->name, SL_ENOMEM, "no memory to record the call");
	return ok;
}

static bool look_may_change(const char *at, const struct sl_op *op, sl_tensor *t)
{
	return slp_tape.may_change(at, op, t);
}

static bool look_wants(const sl_tensor *t)
{
	return slp_tape.wants(t);
}

static const struct slp_recorder looks = {look_call, look_may_change, look_wants};

void slp_look_begin(struct slp_look *look)
{
	*look = (struct slp_look){.outer = looking};
	looking = look;
	look->by = slp_record_by(&looks);
}

void slp_look_end(struct slp_look *look)
{
	slp_record_by(look->by);
	looking = look->outer;
}

void slp_look_free(struct slp_look *look)
{
	for (int i = 0; i < look->count; i++) sl_release(look->met[i]);
	free(look->met);
}

bool slp_is_looking(void)
{
	return slp_mode.recorder == &looks;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

void slp_part_release(struct slp_part *part)
{
	if (atomic_fetch_sub(&part->refs, 1) == 1) part->destroy(part);
}

static void part_hold(const void *attrs, bool hold)
{
	struct slp_part *part = *(struct slp_part *const *)attrs;
	if (hold) atomic_fetch_add(&part->refs, 1);
	else slp_part_release(part);
}

/* Known to the tape only: it never becomes a task.  It saves its inputs, and the outside tensors that it uses. */
static const struct sl_op part_op = {
        .name = "recomputed block",
        .doc = "a block that is computed again in the backward pass",
        .args = "x ...",
        .nin_min = 1,
        .nin_max = SLP_MANY,
        .period = 1,
        .nout = SLP_TAPE_OUTPUTS, /* at most */
        .attrs_size = sizeof(struct slp_part *),
        .saves = SLP_IN(0),
        .hold = part_hold,
};

bool slp_part_record(const char *at, struct slp_part *part, const struct slp_look *look, sl_tensor *const *in,
                     sl_tensor *const *out, int nout)
{
	int nin = part->nin;
	sl_tensor **all = slp_malloc((size_t)(nin + look->count) * sizeof *all);
	if (!all) return slp_call_fail(at, "sl_forward", SL_ENOMEM, "no memory to record the call") != NULL;
	for (int i = 0; i < nin; i++) all[i] = in[i];
	for (int i = 0; i < look->count; i++) all[nin + i] = look->met[i];
	bool ok = slp_mode.recorder->call(at, &part_op, &part, nin + look->count, all, nout, out);
	free(all);
	return ok;
}

bool slp_node_is_part(const struct slp_node *n)
{
	return n->op == &part_op;
}

/* The inputs as they were, with their variables: gradients flow on to where they came from. */
static bool inputs_of(const struct slp_node *n, sl_tensor **in, int nin)
{
	for (int i = 0; i < nin; i++) {
		in[i] = slp_scope_add(slp_tensor_alias(n->in[i], true));
		if (!in[i]) return slp_error_set(SL_ENOMEM, "sl_backward: no memory") == SL_OK;
		if (!n->in_vars[i]) continue;
		slp_var_retain(n->in_vars[i]);
		in[i]->var = n->in_vars[i];
	}
	return true;
}

bool slp_node_repeat(const struct slp_node *n, sl_tensor **out)
{
	struct slp_part *part;
	memcpy(&part, n->attrs.bytes, sizeof part);
	sl_tensor **in = slp_malloc((size_t)part->nin * sizeof *in);
	if (!in) return slp_error_set(SL_ENOMEM, "sl_backward: no memory") == SL_OK;
	SLP_MODE_SCOPE();
	slp_mode.in_custom = true; /* no other walk can begin */
	bool ok = inputs_of(n, in, part->nin) && part->repeat(part, in, out);
	free(in);
	return ok;
}
