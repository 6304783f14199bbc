/* Models and tensors of the cases in src/onnx/operators.def, made of their texts. */
#ifndef SLP_TESTS_ONNX_CASE_H
#define SLP_TESTS_ONNX_CASE_H

#include <starling.h>

enum { SLP_CASE_MOST = 32 };

/* A model in memory, its inputs and what a text says of its results. */
struct slp_case {
	void *bytes;
	size_t size;
	int nin, nout;
	sl_tensor *in[SLP_CASE_MOST]; /* in the innermost scope */
};

/* What a text says of a tensor: "f32[2,2]{1 2 3 4}". */
struct slp_case_tensor {
	char type[8];
	int onnx; /* number of the type */
	sl_shape shape;
	double *v; /* the caller frees it; NULL: any values */
};

/* False, with a line on stderr, if the text is wrong.  Frees nothing: slp_case_free does. */
bool slp_case_parse(const char *program, struct slp_case *c);
void slp_case_free(struct slp_case *c);
/* Reads a tensor and moves *text behind it. */
bool slp_case_tensor_parse(const char **text, struct slp_case_tensor *t);
/* The type of tensors that holds elements of this type of the format. */
enum sl_dtype slp_case_dtype(const char *type);

#endif
