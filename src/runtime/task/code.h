/* Prepared code: calls that are submitted repeatedly with other storages (code.c). */
#ifndef SLP_CODE_H
#define SLP_CODE_H

#include "runtime/fault.h"
#include "runtime/observe/utilisation.h"
#include "runtime/task/storage.h"

struct slp_address {
	int slot;
	size_t offset;
};
/* The value of a slot in one submission; without storage: in scratch memory. */
struct slp_binding {
	struct slp_storage *storage;
	size_t offset;
};
/* Another value for 8 bytes of a call's attributes, in one submission. */
struct slp_patch {
	int call;
	unsigned offset;
	uint64_t value;
};
double slp_call_bytes(const struct slp_infer *c); /* moved by a call: op->bytes, or all operands once */
double
slp_call_gpu_seconds(const struct slp_infer *c); /* of a call on a GPU, roughly; in simulation, as it is described */
struct slp_code;
struct slp_code *slp_code_new(void);
void slp_code_release(struct slp_code *code); /* also from a worker */
/* A slot that is bound at each submission, or lies in scratch; -1 without memory. */
int slp_code_slot(struct slp_code *code);
int slp_code_scratch_slot(struct slp_code *code, size_t offset, size_t bytes);
void slp_code_name(struct slp_code *code, const char *format, ...) SLP_PRINTF(2); /* for people; without memory: none */
void slp_code_set_level(struct slp_code *code, int level); /* of the task that it becomes (priority.h) */
bool slp_code_writes(const struct slp_code *code, int slot);
/* Adds a call; addresses of its inputs, then of its outputs.  False with an error. */
bool slp_code_call(struct slp_code *code, const struct slp_infer *call, const struct slp_address *addresses);
size_t slp_code_scratch(const struct slp_code *code);
void slp_code_work(const struct slp_code *code, double *flops, double *bytes); /* adds what it computes and moves */
/* Runs it in the calling thread, with the team that this has borrowed, or alone.  base: the memory of each slot that is bound,
 * set here for the others; scratch: of slp_code_scratch bytes, aligned to 64.  The first kernel that fails ends it, with an
 * error. */
enum sl_status slp_code_run(const struct slp_code *code, char **base, struct slp_patch *patches, int npatches,
                            char *scratch);
/* Makes its scratch memory as large as this, if it has any: code of one size shares it. */
void slp_code_share_scratch(struct slp_code *code, size_t bytes);
void slp_code_turn(struct slp_code *code, enum slp_turn turn); /* of its tasks */
bool slp_code_in_flight(const struct slp_code *code);          /* a task that runs it has not ended */
bool slp_code_find_scratch(const struct slp_code *code); /* the workspace of its calls; false with an error; locked */
/* Locked.  bindings: one a slot; patches in the order of the calls. */
enum sl_status slp_code_submit(struct slp_code *code, const struct slp_binding *bindings, sl_device device,
                               const struct slp_patch *patches, int npatches);

#endif
