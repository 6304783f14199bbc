/* The part of block that leaves out taps of a convolution that only ever meet padding: those of a kernel larger than the
 * image, or of a dilated one.  The sums miss zeros alone.  The rest of the weights is sliced out once (hoist.c). */
#include "graph/pass/taps.h"
#include "op_list/move.h"

/* How many taps at each end of axis i only meet padding; as many at both, since padding is. */
static int unused(const struct slp_conv2d_blocked_attrs *a, int i)
{
	const struct sl_conv2d_opts *o = &a->conv;
	int64_t step = o->stride[i], dilation = o->dilation[i], pad = o->pad[i], kernel = a->kernel[i];
	int64_t last = (a->size[i] + 2 * pad - (kernel - 1) * dilation - 1) / step * step - pad; /* its first tap */
	int most = (int)((kernel - 1) / 2), n = 0;
	while (n < most && (n + 1) * dilation <= pad && last + n * dilation < 0 &&
	       (kernel - 1 - n) * dilation - pad >= a->size[i])
		n++;
	return n;
}

void slp_taps_crop(struct slp_conv2d_blocked_attrs *a, int crop[2])
{
	for (int i = 0; i < 2; i++) {
		crop[i] = unused(a, i);
		a->kernel[i] -= 2 * crop[i];
		a->conv.pad[i] -= crop[i] * a->conv.dilation[i];
	}
}

enum sl_status slp_taps_slice(sl_graph *g, int place, const int crop[2], struct slp_value *w)
{
	for (int i = 0; i < 2; i++) {
		int axis = slp_value_type(g, *w)->shape.ndim - 2 + i;
		if (!crop[i]) continue;
		struct slp_slice_attrs a = {.axis = axis,
		                            .begin = crop[i],
		                            .end = slp_value_type(g, *w)->shape.dim[axis] - crop[i],
		                            .step = 1};
		int node = slp_graph_add_op(g, g->nodes[place].at, NULL, &slp_op_slice, &a, 1, w);
		if (node < 0) return slp_pass_no_memory("block");
		slp_graph_before(g, node, place);
		enum sl_status s = slp_node_infer(g, node);
		if (s != SL_OK) return s;
		*w = (struct slp_value){node, 0};
	}
	return SL_OK;
}
