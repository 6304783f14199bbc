/* Working memory of a kernel whose size only the worker knows, because it depends on the library or the number of
 * threads.  It belongs to the thread, grows to the largest requested size and is freed when the thread ends.  Memory
 * whose size is known when the operation is issued is k->scratch instead. */
#ifndef SLP_WORKSPACE_H
#define SLP_WORKSPACE_H

#include <stddef.h>

/* The team's threads share the first; the second is for each thread's own data; the others are for tensors in another
 * layout, for unpooled tensors, and for sums of a part, while an implementation uses the first; then for float32 copies
 * of operands in a half type, for plain copies of operands in NHWC, for sums of parts (conv2d_fixed.c), and
 * for the result of an expression (fused_reduce.c). */
enum slp_workspace {
	SLP_WORK_CALL,
	SLP_WORK_THREAD,
	SLP_WORK_ORDER,
	SLP_WORK_UNPOOLED,
	SLP_WORK_PART,
	SLP_WORK_FLOAT32,
	SLP_WORK_PLAIN,
	SLP_WORK_FIXED,
	SLP_WORK_EXPRESSION,
	SLP_WORKSPACES
};

/* At least `bytes`, aligned to 64, valid until the next call for the same workspace by this thread; NULL: no memory. */
void *slp_workspace(enum slp_workspace which, size_t bytes);

#endif
