/* Models and arrays in files: MXNet's, ONNX, NumPy's. */
#ifndef STARLING_IO_H
#define STARLING_IO_H

#include <starling/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- NumPy's .npy ----------------------------------------------------------------------------------------------- */

SL_API sl_tensor *sl_load_npy_at(const char *at, const char *path);
#define sl_load_npy(path) sl_load_npy_at(SL_HERE, path)
SL_API enum sl_status sl_save_npy_at(const char *at, const char *path, sl_tensor *t);
#define sl_save_npy(path, t) sl_save_npy_at(SL_HERE, path, t)

#ifdef __cplusplus
}
#endif
#endif
