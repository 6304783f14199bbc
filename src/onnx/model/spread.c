/* ONNX models: scatters of whole rows.  PyTorch spreads the numbers of rows over all elements of these, by Expand, and
 * scatters elements: ScatterElements(x, Expand(Reshape(rows, [-1, 1, …])), v).  The node takes the numbers themselves then, as
 * ScatterND. */
#include <stdlib.h>

#include "onnx/model/model.h"

/* The node that computes an input of another; NULL: none, or of another operator. */
static const struct slp_onnx_node *source(const struct slp_onnx_model *m, const struct slp_onnx_node *n, int i,
                                          const char *operator)
{
	int name = i < n->nin ? n->in[i] : -1, node = name >= 0 ? m->names[name].node : -1;
	const struct slp_onnx_node *from = node >= 0 ? &m->nodes[node] : NULL;
	return from && !from->as && !strcmp(from->proto->op_type, operator) ? from : NULL;
}

/* Whether a value is the constant [n, 1, 1, …]. */
static bool is_column(struct slp_onnx_parsing *p, int name)
{
	enum { INT64 = 7 };
	const SlpOnnx__TensorProto *t = name >= 0 ? p->m->names[name].tensor : NULL;
	struct slp_onnx_data d = {0};
	if (!t || t->data_type != INT64 || t->n_dims != 1 || t->dims[0] < 2 || t->dims[0] > SL_MAX_NDIM) return false;
	bool is = slp_onnx_data_read(p->f, t, &d);
	for (int64_t i = 1, one; is && i < t->dims[0]; i++) {
		memcpy(&one, (const char *)d.data + (size_t)i * sizeof one, sizeof one);
		is = one == 1;
	}
	free(d.owned);
	return is;
}

/* Along the first axis, without a reduction: as it is by default. */
static bool is_plain(const SlpOnnx__NodeProto *n)
{
	for (size_t i = 0; i < n->n_attribute; i++) {
		const SlpOnnx__AttributeProto *a = n->attribute[i];
		if (!a->name || strcmp(a->name, "axis") || a->i) return false;
	}
	return true;
}

void slp_onnx_spread_join(struct slp_onnx_parsing *p)
{
	struct slp_onnx_model *m = p->m;
	for (int i = 0; i < m->nnodes && !p->f->failed; i++) {
		struct slp_onnx_node *n = &m->nodes[i];
		if (n->as || n->nin != 3 || strcmp(n->proto->op_type, "ScatterElements") || !is_plain(n->proto))
			continue;
		const struct slp_onnx_node *expand = source(m, n, 1, "Expand"),
		                           *reshape = expand ? source(m, expand, 0, "Reshape") : NULL;
		if (!reshape || reshape->nin != 2 || !is_column(p, reshape->in[1])) continue;
		n->as = "ScatterND";
		n->in[1] = expand->in[0];
	}
}
