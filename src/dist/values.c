/* The values of requests: their place, in main memory or on a GPU; joins of several tensors; checks; rounding for the
 * exchange. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "dist/gpu.h"
#include "dist/requests.h"
#include "dtype.h"
#include "runtime/compat.h"
#include "runtime/process/processes.h"

static struct {
	sl_bfloat16 *packed; /* gradients as they travel, if they do so in a half type */
	size_t room;         /* elements of packed */
	char *joined;        /* tensors that are exchanged together */
	size_t joined_room;  /* bytes */
} values;

/* ---- where they are ---------------------------------------------------------------------------------------------- */

static char *address_of(const struct slp_request *r, int i)
{
	const struct slp_member *m = &r->members[i];
	return (char *)starpu_data_handle_to_pointer(m->buffer->handle, r->node) + m->offset;
}

static bool is_on_gpu(const struct slp_request *r)
{
	return r->node != STARPU_MAIN_RAM;
}

static bool move(const struct slp_request *r, void *to, const void *from, size_t bytes)
{
	if (is_on_gpu(r)) return slp_gpu_copy(to, from, bytes);
	memcpy(to, from, bytes);
	return true;
}

static char *joined(const struct slp_request *r, size_t bytes)
{
	if (r->x.gpu) return slp_gpu_room(SLP_ROOM_JOINED, bytes);
	char *to = bytes <= values.joined_room ? values.joined : slp_try_realloc(values.joined, bytes);
	if (!to) return NULL;
	if (bytes > values.joined_room) values.joined_room = bytes;
	return values.joined = to;
}

/* The values of several tensors, one behind the other; NULL: there is no memory. */
static void *join(const struct slp_request *r)
{
	char *all = joined(r, r->x.count * sl_dtype_size(r->x.dtype)), *to = all;
	bool ok = all;
	for (int i = 0; ok && i < r->count; to += r->members[i++].bytes)
		ok = move(r, to, address_of(r, i), r->members[i].bytes);
	return ok ? all : NULL;
}

uint32_t slp_values_fault(const struct slp_request *r)
{
	uint32_t fault = 0;
	for (int i = 0; !fault && i < r->count; i++) fault = atomic_load(&r->members[i].buffer->fault);
	return fault;
}

void slp_values_open(struct slp_request *r)
{
	if (!r->count) return;
	r->x.gpu = is_on_gpu(r);
	if (sl_is_simulated() || (r->count > 1 && slp_values_fault(r))) r->x.data = r; /* nobody looks at them */
	else r->x.data = r->count == 1 ? address_of(r, 0) : join(r);
	if (r->x.data || !r->x.gpu) return;
	r->x.gpu = false; /* there is no room for that on the GPU */
	r->x.data = join(r);
	if (slp_gpu_finish(slp_dist.patience)) r->x.data = NULL;
}

bool slp_values_close(struct slp_request *r)
{
	const char *from = r->x.data;
	bool ok = true;
	if (r->count < 2 || sl_is_simulated()) return true;
	for (int i = 0; ok && i < r->count; from += r->members[i++].bytes)
		ok = move(r, address_of(r, i), from, r->members[i].bytes);
	return ok && (!is_on_gpu(r) || !slp_gpu_finish(slp_dist.patience));
}

/* ---- whether they are sound -------------------------------------------------------------------------------------- */

/* The exchanged elements: 1: all are finite; 0: not all; -1: unknown. */
static int are_finite(const struct slp_request *r, const struct slp_dist_part *parts, int n)
{
	bool ok = true;
	if (r->x.gpu) slp_gpu_look_begin();
	for (int i = 0; ok && i < n; i++) {
		const char *data = (const char *)r->x.data + parts[i].first * sl_dtype_size(r->x.dtype);
		if (r->x.gpu) ok = slp_gpu_look_at(data, parts[i].count, r->x.dtype);
		else ok = slp_all_finite(data, parts[i].count, r->x.dtype);
	}
	if (!r->x.gpu) return ok;
	return ok ? slp_gpu_look_end(slp_dist.patience) : -1;
}

/* The name of a value that is not finite. */
static const char *not_finite(const struct slp_request *r)
{
	struct slp_dist_part part = {0, 0};
	for (int i = 0; r->count > 1 && i < r->count; i++, part.first += part.count) {
		part.count = r->members[i].bytes / sl_dtype_size(r->x.dtype);
		if (are_finite(r, &part, 1) == 0) return r->members[i].name;
	}
	return r->x.name;
}

/* Gradients that are not finite would spoil the parameters of all. */
const char *slp_values_wrong(const struct slp_request *r, char text[SLP_DIST_WHY])
{
	uint32_t fault = slp_values_fault(r);
	struct slp_dist_part all = {0, r->x.count};
	int finite = 1;
	bool look = !fault && r->x.data && r->x.rows && !r->any && !sl_is_simulated();
	if (look) finite = are_finite(r, r->nparts ? r->parts : &all, r->nparts ? r->nparts : 1);
	if (fault) slp_fault_text(fault, text, SLP_DIST_WHY);
	else if (!r->x.data) snprintf(text, SLP_DIST_WHY, "there is no memory to join the gradients");
	else if (finite < 0)
		snprintf(text, SLP_DIST_WHY, "CUDA failed while it looked at the gradient of %s", r->x.name);
	else if (!finite) snprintf(text, SLP_DIST_WHY, "the gradient of %s is not finite", not_finite(r));
	else return NULL;
	return text;
}

/* ---- on the wire ------------------------------------------------------------------------------------------------- */

static bool make_room(size_t count)
{
	if (count <= values.room) return true;
	void *packed = slp_try_realloc(values.packed, count * sizeof *values.packed);
	if (!packed) return false;
	values.packed = packed;
	values.room = count;
	return true;
}

struct slp_exchange slp_values_pack(const struct slp_exchange *x)
{
	struct slp_exchange packed = *x;
	const float *from = x->data;
	if (!make_room(x->count)) packed.spoilt = "there is no memory to pack the gradient";
	for (size_t i = 0; !packed.spoilt && i < x->count; i++) values.packed[i] = slp_bfloat16_of_float(from[i]);
	packed.data = values.packed;
	packed.dtype = SL_BFLOAT16;
	return packed;
}

void slp_values_unpack(const struct slp_exchange *x)
{
	float *to = x->data;
	for (size_t i = 0; i < x->count; i++) to[i] = slp_float_of_bfloat16(values.packed[i]);
}

void slp_values_end(void)
{
	free(values.packed);
	free(values.joined);
	memset(&values, 0, sizeof values);
}
