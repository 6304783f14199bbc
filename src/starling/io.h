/* Models and arrays in files: MXNet's, ONNX, NumPy's.
 *
 * Errors of functions that read a file: SL_EIO, it cannot be read; SL_EFORMAT, it is damaged or another kind of file;
 * SL_EINVAL, the path is NULL.  Errors of functions that write a file: SL_EIO, it cannot be written (then an old file
 * is unchanged; after SL_OK the new one is on the disk); SL_EINVAL, the path is NULL; and the error that spoilt the
 * values, since they wait for these.  Messages name the file.  base.h and nn.h explain the rest. */
#ifndef STARLING_IO_H
#define STARLING_IO_H

#include <starling/nn.h>

#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif

/* ---- files of the program, replaced as a whole ------------------------------------------------------------------ */

typedef struct sl_file sl_file;
SL_API sl_file *sl_file_begin_at(const char *at, const char *path);
#define sl_file_begin(path) sl_file_begin_at(SL_HERE, path)
SL_API FILE *sl_file_stream(sl_file *file);
SL_API const char *sl_file_name(const sl_file *file);
SL_API enum sl_status sl_file_commit_all_at(const char *at, sl_file *const *files, int count);
#define sl_file_commit_all(files, count) sl_file_commit_all_at(SL_HERE, files, count)
#define sl_file_commit(file) sl_file_commit_all_at(SL_HERE, SL_ARRAY(sl_file *, file), 1)
SL_API void sl_file_discard(sl_file *SL_OPTIONAL file);

/* ---- NumPy's .npy ----------------------------------------------------------------------------------------------- */

SL_API sl_tensor *sl_load_npy_at(const char *at, const char *path);
#define sl_load_npy(path) sl_load_npy_at(SL_HERE, path)
SL_API enum sl_status sl_save_npy_at(const char *at, sl_tensor *t, const char *path);
/* In 0.1 the path came first.  That order is deprecated and works until 0.3. */
#ifdef __cplusplus
#define sl_save_npy(t, path) sl_save_npy_at(SL_HERE, t, path)
#else
#define sl_save_npy(t, path)                                                                                           \
	sl_save_npy_at(SL_HERE, _Generic((t), char *: (path), const char *: (path), default: (t)),                     \
	               _Generic((t), char *: (t), const char *: (t), default: (path)))
#endif

/* ---- models ------------------------------------------------------------------------------------------------------ */

#define SL_NAMES(...) SL_ARRAY(const char *, __VA_ARGS__), SL_COUNT_(char *, __VA_ARGS__)

struct sl_export_opts {
	const sl_shape *shapes; /* of the inputs: SL_SHAPES(SL_SHAPE(1, 512)) */
	int nshapes;
	const enum sl_dtype *dtypes; /* of each: SL_DTYPES(SL_FLOAT32, SL_INT32) */
	int ndtypes;                 /* 0: all are .dtype */
	enum sl_dtype dtype;
	int epoch;     /* the number in the name of the file of parameters */
	bool training; /* write the block in training mode, with dropout */
};
#define SL_SHAPES(...) .shapes = SL_ARRAY(sl_shape, __VA_ARGS__), .nshapes = SL_COUNT_(sl_shape, __VA_ARGS__)
#define SL_DTYPES(...) .dtypes = SL_ARRAY(enum sl_dtype, __VA_ARGS__), .ndtypes = SL_COUNT_(enum sl_dtype, __VA_ARGS__)
SL_API enum sl_status sl_export_at(const char *at, sl_block *block, const char *prefix, struct sl_export_opts opts);
/* clang-format off */
#define sl_export(block, prefix, ...)                                                                                  \
	sl_export_at(SL_HERE, SL_NO_PATH_(block), prefix, (struct sl_export_opts){__VA_ARGS__})
/* clang-format on */
SL_API enum sl_status sl_export_onnx_at(const char *at, sl_block *block, const char *path, struct sl_export_opts opts);
/* clang-format off */
#define sl_export_onnx(block, path, ...)                                                                               \
	sl_export_onnx_at(SL_HERE, SL_NO_PATH_(block), path, (struct sl_export_opts){__VA_ARGS__})
/* clang-format on */

struct sl_import_opts {
	const char *output; /* the node whose output is the result; NULL: the symbol's only result */
	bool lenient;       /* ignore arrays that the symbol does not use */
};
SL_API sl_block *sl_import_at(const char *at, const char *symbol, const char *const *SL_OPTIONAL inputs, int ninputs,
                              const char *SL_OPTIONAL params, struct sl_import_opts opts);
/* sl_import("my_mlp-symbol.json", SL_NAMES("data"), "my_mlp-0000.params") */
#define sl_import(symbol, ...) SL_IMPORT_(symbol, __VA_ARGS__)
#define SL_IMPORT_(symbol, inputs, ninputs, params, ...)                                                               \
	sl_import_at(SL_HERE, symbol, inputs, ninputs, params, (struct sl_import_opts){__VA_ARGS__})

struct sl_import_onnx_opts {
	const char *const *inputs; /* names of the inputs in order: SL_INPUTS("ids", "mask"); NULL: the file's order */
	int ninputs;
	const char *output;         /* name of a single result, or of the node that computes it */
	const char *const *outputs; /* names of several: SL_OUTPUTS("logits", "state"); NULL: the model's results */
	int noutputs;
};
#define SL_OUTPUTS(...) .outputs = SL_ARRAY(const char *, __VA_ARGS__), .noutputs = SL_COUNT_(char *, __VA_ARGS__)
#define SL_INPUTS(...) .inputs = SL_ARRAY(const char *, __VA_ARGS__), .ninputs = SL_COUNT_(char *, __VA_ARGS__)
SL_API sl_block *sl_import_onnx_at(const char *at, const char *path, struct sl_import_onnx_opts opts);
/* sl_import_onnx("model.onnx"), sl_import_onnx("model.onnx", SL_INPUTS("ids", "mask"), .output = "logits") */
#define sl_import_onnx(path, ...) sl_import_onnx_at(SL_HERE, path, (struct sl_import_onnx_opts){__VA_ARGS__})

#ifdef __cplusplus
}
[[deprecated("the tensor comes first: sl_save_npy(t, path)")]] inline enum sl_status
sl_save_npy_at(const char *at, const char *path, sl_tensor *t)
{
	return sl_save_npy_at(at, t, path);
}
#endif
#endif
