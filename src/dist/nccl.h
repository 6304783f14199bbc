/* NCCL's interface.  The library is loaded on demand, and its functions are declared here, so
 * that building does not need it: the interface of version 2.14, which later versions keep. */
#ifndef SLP_NCCL_H
#define SLP_NCCL_H

#include <stddef.h>

#define SLP_NCCL_SONAME "libnccl.so.2"

typedef struct ncclComm *slp_nccl_comm;

struct slp_nccl_id {
	char bytes[128];
};

/* ncclConfig_t of that version, by which later versions recognise its fields. */
struct slp_nccl_config {
	size_t size;
	unsigned magic, version;
	int blocking;
};
enum { SLP_NCCL_VERSION = 21400 };
static const unsigned slp_nccl_magic = 0xcafebeef;

enum slp_nccl_result { SLP_NCCL_SUCCESS, SLP_NCCL_IN_PROGRESS = 7 };
enum { SLP_NCCL_SUM = 0 };
enum slp_nccl_type {
	SLP_NCCL_INT8,
	SLP_NCCL_UINT8,
	SLP_NCCL_INT32,
	SLP_NCCL_INT64 = 4,
	SLP_NCCL_FLOAT16 = 6,
	SLP_NCCL_FLOAT32,
	SLP_NCCL_FLOAT64,
	SLP_NCCL_BFLOAT16
};

/* X(name, result, parameters); a stream is a cudaStream_t. */
#define SLP_NCCL_FUNCTIONS(X)                                                                                          \
	X(ncclGetVersion, int, (int *version))                                                                         \
	X(ncclGetUniqueId, int, (struct slp_nccl_id * id))                                                             \
	X(ncclCommInitRankConfig, int,                                                                                 \
	  (slp_nccl_comm * comm, int ranks, struct slp_nccl_id id, int rank, struct slp_nccl_config *config))          \
	X(ncclCommAbort, int, (slp_nccl_comm comm))                                                                    \
	X(ncclCommGetAsyncError, int, (slp_nccl_comm comm, int *error))                                                \
	X(ncclGetErrorString, const char *, (int result))                                                              \
	X(ncclGroupStart, int, (void))                                                                                 \
	X(ncclGroupEnd, int, (void))                                                                                   \
	X(ncclSend, int, (const void *data, size_t count, int type, int rank, slp_nccl_comm comm, void *stream))       \
	X(ncclRecv, int, (void *data, size_t count, int type, int rank, slp_nccl_comm comm, void *stream))             \
	X(ncclAllReduce, int,                                                                                          \
	  (const void *from, void *to, size_t count, int type, int op, slp_nccl_comm comm, void *stream))

#endif
