/* Models as bytes, in files or in memory. */
#include "onnx/packed.h"

#include "alloc.h"

struct sink {
	ProtobufCBuffer base;
	struct slp_out out;
};

static void sink_append(ProtobufCBuffer *buffer, size_t length, const uint8_t *data)
{
	slp_out_put(&((struct sink *)buffer)->out, data, length);
}

bool slp_onnx_save(const SlpOnnx__ModelProto *model, const char *at, const char *function, const char *path)
{
	struct sink sink = {.base = {sink_append}};
	if (!slp_out_open(&sink.out, at, function, path)) return false;
	slp_onnx__model_proto__pack_to_buffer(model, &sink.base);
	return slp_out_close(&sink.out) == SL_OK;
}

bool slp_onnx_pack(const SlpOnnx__ModelProto *model, struct slp_file *f)
{
	f->size = slp_onnx__model_proto__get_packed_size(model);
	f->data = slp_malloc(f->size + 1);
	if (f->data) slp_onnx__model_proto__pack(model, f->data);
	return f->data != NULL;
}
