/* Requests (requests.c) and the places of their values (values.c). */
#ifndef SLP_REQUESTS_H
#define SLP_REQUESTS_H

#include "dist/dist.h"
#include "dist/transport.h"
#include "runtime/task/buffer.h"

/* A tensor that is exchanged. */
struct slp_member {
	struct slp_buffer *buffer;
	size_t offset, bytes;
	uint32_t version; /* of the buffer, that the exchange writes */
	bool claims;      /* it is the first that lies in the buffer */
	char name[SLP_DIST_NAME];
};

enum slp_request_kind { SLP_REQUEST_SUM, SLP_REQUEST_BROADCAST, SLP_REQUEST_NCCL };

struct slp_request {
	struct slp_exchange x;
	enum slp_request_kind kind;
	bool over, any; /* any: as in struct slp_dist_what */
	const char *at;
	int missing; /* buffers that tasks still use */
	enum slp_outcome outcome;
	struct slp_request *next;
	struct slp_dist_part *parts; /* as in struct slp_dist_what */
	int nparts;
	unsigned node; /* the memory node of StarPU for its tensors */
	int count;     /* 0: memory of the caller, who waits */
	struct slp_member members[];
};

/* All are called by the communicating thread.  Acquires the values, joined if there are several tensors: x.data, NULL
 * without memory for that; and returns them to the tensors. */
void slp_values_open(struct slp_request *r);
bool slp_values_close(struct slp_request *r);
/* The reason why the values are invalid; NULL: they are valid. */
const char *slp_values_wrong(const struct slp_request *r, char text[SLP_DIST_WHY]);
uint32_t slp_values_fault(const struct slp_request *r); /* of the tensors: the first, or 0 */
/* The same as bfloat16, to be sent, which become those of x afterwards. */
struct slp_exchange slp_values_pack(const struct slp_exchange *x);
void slp_values_unpack(const struct slp_exchange *x);
void slp_values_end(void);

#endif
