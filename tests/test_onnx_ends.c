/* ONNX models at the ends of what operators take: inputs and results that are sequences, as many tensors as they have
 * elements; sizes of 0 and 1; attributes that leave nothing to do. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "onnx_builder.h"

enum { FLOAT = 1, INT64 = 7 };
static struct slp_model m;

/* ---- sequences --------------------------------------------------------------------------------------------------- */

/* A sequence of tensors of a type, or one that need not be there. */
static SlpOnnx__TypeProto *sequence_type(int element, bool optional)
{
	static SlpOnnx__TypeProto__Tensor tensor;
	static SlpOnnx__TypeProto types[3];
	static SlpOnnx__TypeProto__Sequence sequence;
	static SlpOnnx__TypeProto__Optional outer;
	slp_onnx__type_proto__tensor__init(&tensor);
	slp_onnx__type_proto__sequence__init(&sequence);
	slp_onnx__type_proto__optional__init(&outer);
	for (int i = 0; i < 3; i++) slp_onnx__type_proto__init(&types[i]);
	tensor.has_elem_type = true, tensor.elem_type = element;
	types[0].tensor_type = &tensor;
	sequence.elem_type = &types[0];
	types[1].sequence_type = &sequence;
	outer.elem_type = &types[1];
	types[2].optional_type = &outer;
	return &types[optional ? 2 : 1];
}

static sl_block *built(void)
{
	return slp_model_built(&m, (struct sl_import_onnx_opts){0});
}

static sl_tensor *pair(float a, float b)
{
	return sl_from(((float[]){a, b}), SL_SHAPE(2));
}

/* A list given: its elements in reverse order, and a tensor behind them. */
static void test_list(void)
{
	for (int optional = 0; optional < 2; optional++)
		SL_SCOPE {
			slp_model_begin(&m, 17);
			slp_model_ends(&m, "list t", "longer n");
			m.ins[0]->type = sequence_type(FLOAT, optional);
			slp_model_node(&m, "SequenceInsert list t -> longer");
			slp_model_node(&m, "SequenceLength longer -> n");
			sl_block *b = built();
			sl_tensor *in[] = {pair(1, 2), pair(3, 4), pair(5, 6)}, *y[4] = {NULL};
			for (int compiled = 0; compiled < 2 && b; compiled++) {
				if (compiled) CHECK_OK(sl_hybridize(b));
				CHECK_OK(sl_forward_all(b, in, 3, y, 4));
				CHECK_VALUES(y[0], 1, 2);
				CHECK_VALUES(y[1], 3, 4);
				CHECK_VALUES(y[2], 5, 6);
				CHECK_VALUES(y[3], 3);
				CHECK_OK(sl_forward_all(b, in, 1, y, 2)); /* an empty list, and t */
				CHECK_VALUES(y[0], 1, 2);
				CHECK_VALUES(y[1], 1);
			}
			CHECK(b != NULL);
			sl_block_free(b);
		}
}

/* Two lists of one length; elements are converted to the type that is declared. */
static void test_two_lists(void)
{
	SL_SCOPE {
		slp_model_begin(&m, 17);
		slp_model_ends(&m, "a b", "y");
		m.ins[0]->type = m.ins[1]->type = sequence_type(INT64, false);
		slp_model_node(&m, "ConcatFromSequence a -> all");
		slp_model_node(&m, "ConcatFromSequence b -> others");
		slp_model_node(&m, "Sub all others -> y");
		slp_model_int(&m, m.node_list[0], "axis", 0);
		slp_model_int(&m, m.node_list[1], "axis", 0);
		sl_block *b = built();
		sl_tensor *in[4], *y = NULL;
		for (int i = 0; i < 4; i++) {
			uint8_t v[] = {(uint8_t)(10 * (i + 1)), (uint8_t)i};
			in[i] = sl_from(v, SL_SHAPE(2), .dtype = SL_UINT8);
		}
		CHECK_OK(sl_forward_all(b, in, 4, &y, 1));
		CHECK_VALUES(y, -20, -2, -20, -2);
		CHECK(y && sl_tensor_dtype(y) == SL_INT64);
		CHECK(!sl_forward_all(b, in, 4, &y, 1) && sl_forward_all(b, in, 3, &y, 1) == SL_EINVAL);
		CHECK_SAYING(strstr(sl_error_message(), "2 sequences of one length, and 0 tensors; it got 3"), "%s",
		             sl_error_message());
		sl_error_clear();
		sl_block_free(b);
	}
}

static void test_empty(void)
{
	SL_SCOPE {
		slp_model_begin(&m, 17);
		slp_model_ends(&m, "x", "list");
		m.outs[0]->type = sequence_type(FLOAT, false);
		slp_model_node(&m, "SequenceEmpty -> list");
		sl_block *b = built();
		CHECK(b && !sl_forward(b, pair(1, 2)) && sl_error() == SL_EUNSUPPORTED);
		CHECK_SAYING(strstr(sl_error_message(), "sequence is empty"), "%s", sl_error_message());
		sl_error_clear();
		sl_block_free(b);
	}
}

/* ---- sizes and attributes ---------------------------------------------------------------------------------------- */

/* The formula of a periodic window, at 0. */
static void test_window_of_one(void)
{
	static const struct {
		const char *node;
		double value;
	} windows[] = {{"HannWindow n -> w", 0}, {"HammingWindow n -> w", 4.0 / 46}, {"BlackmanWindow n -> w", 0}};
	static const int64_t one = 1;
	for (int i = 0; i < 6; i++)
		SL_SCOPE {
			slp_model_begin(&m, 17);
			slp_model_raw(slp_model_tensor(&m, "n", INT64, NULL, 0), &one, sizeof one);
			SlpOnnx__NodeProto *n = slp_model_node(&m, windows[i % 3].node);
			if (i > 2) slp_model_int(&m, n, "periodic", 0);
			slp_model_node(&m, "Add x w -> y");
			sl_block *b = built();
			double wanted = i > 2 ? 1 : windows[i % 3].value;
			CHECK_MODEL(b, pair(0, 1), wanted, 1 + wanted);
			sl_block_free(b);
		}
}

static void test_no_sign(void)
{
	SL_SCOPE {
		slp_model_begin(&m, 20);
		SlpOnnx__NodeProto *n = slp_model_node(&m, "IsInf x -> y");
		slp_model_int(&m, n, "detect_negative", 0);
		slp_model_int(&m, n, "detect_positive", 0);
		sl_block *b = built();
		CHECK_MODEL(b, sl_from(((float[]){NAN, INFINITY, -INFINITY, 1}), SL_SHAPE(4)), 0, 0, 0, 0);
		sl_block_free(b);
	}
}

static void test_no_elements(void)
{
	for (int opset = 11; opset < 14; opset += 2)
		SL_SCOPE {
			slp_model_begin(&m, opset);
			slp_model_node(&m, "Hardmax x -> y");
			sl_block *b = built();
			sl_tensor *y = sl_forward(b, sl_zeros(SL_SHAPE(3, 0)));
			CHECK_SAYING(y && sl_shape_equal(sl_tensor_shape(y), SL_SHAPE(3, 0)), "%s", sl_error_message());
			sl_block_free(b);
		}
}

static const struct slp_test tests[] = {
        {"a list", test_list},
        {"two lists", test_two_lists},
        {"an empty list", test_empty},
        {"window of one", test_window_of_one},
        {"no sign", test_no_sign},
        {"no elements", test_no_elements},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"onnx ends", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
