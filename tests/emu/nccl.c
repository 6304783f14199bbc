/* A stand-in for NCCL, for emulated GPUs of several processes on this machine: the functions that Starling loads, as
 * nccl.h of version 2.14 and later declares them.  A communicator does not block: it stands, and what is called is
 * queued, only once ncclCommGetAsyncError has been asked often enough.  What is sent goes through a Unix socket between
 * each two processes, in the thread of the stream; what a process that has gone was to send never comes, until the
 * communicator is aborted.
 *
 * Not as NCCL: ncclAllReduce adds from the last rank to the first, so that its order is another than that of the
 * tree. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal.h"

#define EXPORT __attribute__((visibility("default")))

typedef enum {
	ncclSuccess,
	ncclUnhandledCudaError,
	ncclSystemError,
	ncclInternalError,
	ncclInvalidArgument,
	ncclInvalidUsage,
	ncclRemoteError,
	ncclInProgress
} ncclResult_t;
typedef enum {
	ncclInt8,
	ncclUint8,
	ncclInt32,
	ncclUint32,
	ncclInt64,
	ncclUint64,
	ncclFloat16,
	ncclFloat32,
	ncclFloat64,
	ncclBfloat16,
	ncclNumTypes
} ncclDataType_t;
enum { MOST_RANKS = 16, MOST_OPS = 64, LOOKS = 3 };

typedef struct {
	char internal[128];
} ncclUniqueId;

typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking;
} ncclConfig_t;

enum op_kind { SEND, RECEIVE, REDUCE };
static const size_t sizes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

struct op {
	enum op_kind kind;
	int rank;
	char *data; /* the alias */
	size_t count;
	ncclDataType_t type;
};

typedef struct ncclComm {
	int rank, size, device, listener, fds[MOST_RANKS];
	ncclUniqueId id;
	int looks; /* until what was called is done */
	struct work *pending;
	atomic_int error, aborted, running;
	int groups;
	uint64_t sends, receives, reduces, bytes;
} * ncclComm_t;

/* What a group queues on a stream. */
struct work {
	ncclComm_t comm;
	cudaStream_t stream;
	int number, n; /* of the group; of what is in it */
	struct op ops[MOST_OPS];
};

static _Thread_local struct {
	int depth;
	struct work *work;
} group;

/* SL_EMU_NCCL_FAIL=KIND@GROUP@RANK: something happens to a rank: start (of the communicator), call (of a function),
 * kill, stop (in the thread of a stream). */
static bool happens(const struct ncclComm *c, int group, const char *kind)
{
	const char *text = getenv("SL_EMU_NCCL_FAIL");
	int n = (int)strlen(kind), which = 0, rank = 0;
	if (!text || strncmp(text, kind, (size_t)n) || sscanf(text + n, "@%d@%d", &which, &rank) != 2) return false;
	return which == group && rank == c->rank;
}

/* ---- processes find each other ----------------------------------------------------------------------------------- */

EXPORT ncclResult_t ncclGetVersion(int *version)
{
	*version = 21400;
	return ncclSuccess;
}

EXPORT const char *ncclGetErrorString(ncclResult_t r)
{
	static const char *const texts[] = {"no error",
	                                    "unhandled cuda error",
	                                    "unhandled system error",
	                                    "internal error",
	                                    "invalid argument",
	                                    "invalid usage",
	                                    "remote process exited or there was a network error",
	                                    "NCCL operation in progress"};
	return r <= ncclInProgress ? texts[r] : "unknown result code";
}

EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	uint64_t number;
	if (getrandom(&number, sizeof number, 0) != sizeof number) return ncclSystemError;
	memset(id, 0, sizeof *id);
	snprintf(id->internal, sizeof id->internal, "stand-in-for-nccl-%d-%016llx", (int)getpid(),
	         (unsigned long long)number);
	return ncclSuccess;
}

/* An abstract name: nothing is left in the file system. */
static socklen_t address_of(const ncclUniqueId *id, int rank, struct sockaddr_un *a)
{
	memset(a, 0, sizeof *a);
	a->sun_family = AF_UNIX;
	int n = snprintf(a->sun_path + 1, sizeof a->sun_path - 1, "%.80s-%d", id->internal, rank);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int listen_at(const ncclUniqueId *id, int rank)
{
	struct sockaddr_un a;
	socklen_t length = address_of(id, rank, &a);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, length) || listen(fd, MOST_RANKS)) return -1;
	return fd;
}

EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *to, int size, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	if (!config || config->magic != 0xcafebeef || config->version < 21400 || config->size < sizeof *config ||
	    config->blocking != 0)
		emu_misuse("ncclConfig_t is not initialised, or the communicator would block");
	if (size < 1 || size > MOST_RANKS || rank < 0 || rank >= size) return ncclInvalidArgument;
	ncclComm_t c = calloc(1, sizeof *c);
	if (!c) return ncclSystemError;
	c->rank = rank;
	c->size = size;
	c->device = emu_current();
	c->id = id;
	for (int r = 0; r < MOST_RANKS; r++) c->fds[r] = -1;
	c->listener = listen_at(&id, rank);
	*to = c;
	if (happens(c, 0, "start")) return ncclSystemError;
	return c->listener < 0 ? ncclSystemError : ncclInProgress;
}

static void connect_to(ncclComm_t c, int rank)
{
	struct sockaddr_un a;
	socklen_t length = address_of(&c->id, rank, &a);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, length) == 0 &&
	    send(fd, &c->rank, sizeof c->rank, MSG_NOSIGNAL) == sizeof c->rank)
		c->fds[rank] = fd;
	else if (fd >= 0) close(fd);
}

static void accept_one(ncclComm_t c)
{
	int rank, fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0) return;
	if (recv(fd, &rank, sizeof rank, MSG_WAITALL) == sizeof rank && rank > c->rank && rank < c->size)
		c->fds[rank] = fd;
	else close(fd);
}

/* Those below are connected to, those above connect. */
static bool all_are_here(ncclComm_t c)
{
	bool here = true;
	for (int r = 0; r < c->rank; r++)
		if (c->fds[r] < 0) connect_to(c, r);
	accept_one(c);
	for (int r = 0; r < c->size; r++) here &= r == c->rank || c->fds[r] >= 0;
	return here;
}

/* ---- work, in the thread of a stream ----------------------------------------------------------------------------- */

struct head {
	uint64_t count;
	uint32_t type;
};

/* What is under way with a rank: in each direction one operation after the other. */
struct lane {
	int op; /* -1: none is left */
	struct head head;
	size_t done; /* of head and data */
};

static int next_op(const struct work *w, int after, enum op_kind kind, int rank)
{
	for (int i = after + 1; i < w->n; i++)
		if (w->ops[i].kind == kind && w->ops[i].rank == rank) return i;
	return -1;
}

static struct lane lane_of(const struct work *w, int after, enum op_kind kind, int rank)
{
	struct lane l = {.op = next_op(w, after, kind, rank)};
	if (kind == SEND && l.op >= 0) l.head = (struct head){w->ops[l.op].count, w->ops[l.op].type};
	return l;
}

/* Moves what goes without waiting; false: the other end has gone. */
static bool move(const struct work *w, struct lane *l, enum op_kind kind, int rank)
{
	while (l->op >= 0) {
		const struct op *o = &w->ops[l->op];
		size_t bytes = o->count * sizes[o->type];
		bool head = l->done < sizeof l->head;
		char *at = head ? (char *)&l->head + l->done : o->data + (l->done - sizeof l->head);
		size_t rest = (head ? sizeof l->head : sizeof l->head + bytes) - l->done;
		ssize_t n = kind == SEND ? send(w->comm->fds[rank], at, rest, MSG_DONTWAIT | MSG_NOSIGNAL)
		                         : recv(w->comm->fds[rank], at, rest, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
		if (n <= 0) return false;
		l->done += (size_t)n;
		if (kind == RECEIVE && l->done == sizeof l->head &&
		    (l->head.count != o->count || l->head.type != o->type))
			emu_misuse("NCCL: rank %d sends %llu elements of type %u, rank %d awaits %zu of type %d", rank,
			           (unsigned long long)l->head.count, l->head.type, w->comm->rank, o->count, o->type);
		if (l->done == sizeof l->head + bytes) *l = lane_of(w, l->op, kind, rank);
	}
	return true;
}

/* All sends and receipts of a group at once. */
static void trade(const struct work *w)
{
	ncclComm_t c = w->comm;
	struct lane out[MOST_RANKS], in[MOST_RANKS];
	for (int r = 0; r < c->size; r++) {
		out[r] = lane_of(w, -1, SEND, r);
		in[r] = lane_of(w, -1, RECEIVE, r);
	}
	for (bool more = true; more && !c->aborted;) {
		struct pollfd polls[MOST_RANKS];
		more = false;
		for (int r = 0; r < c->size; r++) {
			bool open = r != c->rank && !c->error;
			if (open && !(move(w, &out[r], SEND, r) && move(w, &in[r], RECEIVE, r)))
				c->error = ncclRemoteError;
			short wanted = (short)((in[r].op >= 0 ? POLLIN : 0) | (out[r].op >= 0 ? POLLOUT : 0));
			polls[r] = (struct pollfd){.fd = wanted && !c->error ? c->fds[r] : -1, .events = wanted};
			more |= wanted != 0;
		}
		if (more) poll(polls, (nfds_t)c->size, 20);
	}
}

static float load(const char *p)
{
	uint16_t bits;
	float f;
	memcpy(&bits, p, sizeof bits);
	uint32_t wide = (uint32_t)bits << 16;
	memcpy(&f, &wide, sizeof f);
	return f;
}

static void store(char *p, float f)
{
	uint32_t wide;
	memcpy(&wide, &f, sizeof wide);
	uint16_t bits = (uint16_t)((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
	memcpy(p, &bits, sizeof bits);
}

static void add(char *sum, const char *term, size_t count, ncclDataType_t type)
{
#define ADD(T)                                                                                                         \
	for (size_t i = 0; i < count; i++) ((T *)sum)[i] = (T)(((T *)sum)[i] + ((const T *)term)[i]);                  \
	break
	switch (type) {
	case ncclInt8:
	case ncclUint8: ADD(uint8_t);
	case ncclInt32:
	case ncclUint32: ADD(uint32_t);
	case ncclInt64:
	case ncclUint64: ADD(uint64_t);
	case ncclFloat32: ADD(float);
	case ncclFloat64: ADD(double);
	case ncclBfloat16:
		for (size_t i = 0; i < 2 * count; i += 2) store(sum + i, load(sum + i) + load(term + i));
		break;
	case ncclFloat16: emu_misuse("NCCL: ncclAllReduce of float16 is not emulated"); break;
	case ncclNumTypes: break;
	}
#undef ADD
}

/* All get all, and add from the last to the first. */
static void reduce(const struct work *w)
{
	const struct op *o = &w->ops[0];
	size_t bytes = o->count * sizes[o->type], n = (size_t)w->comm->size;
	char *all = malloc(n * bytes);
	struct work t = {.comm = w->comm};
	if (!all) emu_misuse("no memory for a sum");
	for (int r = 0; r < w->comm->size; r++) {
		char *theirs = all + (size_t)r * bytes;
		if (r == w->comm->rank) memcpy(theirs, o->data, bytes);
		else {
			t.ops[t.n++] = (struct op){SEND, r, o->data, o->count, o->type};
			t.ops[t.n++] = (struct op){RECEIVE, r, theirs, o->count, o->type};
		}
	}
	trade(&t);
	for (size_t r = n - 1; r-- > 0;) add(all + (n - 1) * bytes, all + r * bytes, o->count, o->type);
	if (!w->comm->aborted) memcpy(o->data, all + (n - 1) * bytes, bytes);
	free(all);
}

static void run(void *arg)
{
	struct work *w = arg;
	if (happens(w->comm, w->number, "kill")) kill(getpid(), SIGKILL);
	if (happens(w->comm, w->number, "stop")) kill(getpid(), SIGSTOP);
	if (w->ops[0].kind == REDUCE) reduce(w);
	else trade(w);
}

static void drop(void *arg)
{
	struct work *w = arg;
	w->comm->running--;
	free(w);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* What was called is done after some looks; then the work is on the stream. */
EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *error)
{
	struct work *w = c->pending;
	*error = ncclInProgress;
	if (c->listener >= 0 && !all_are_here(c)) return ncclSuccess;
	if (c->listener >= 0) close(c->listener);
	c->listener = -1;
	if (c->looks > 0 && c->looks--) return ncclSuccess;
	c->pending = NULL;
	*error = (ncclResult_t)c->error;
	if (!w) return ncclSuccess;
	c->running++;
	if (emu_launch(w->stream, run, w, drop) != cudaSuccess) c->error = *error = ncclUnhandledCudaError;
	return ncclSuccess;
}

EXPORT ncclResult_t ncclGroupStart(void)
{
	group.depth++;
	return ncclSuccess;
}

EXPORT ncclResult_t ncclGroupEnd(void)
{
	if (group.depth-- <= 0) emu_misuse("ncclGroupEnd without ncclGroupStart");
	struct work *w = group.work;
	if (group.depth || !w) return ncclSuccess;
	group.work = NULL;
	if (w->comm->pending) emu_misuse("NCCL: a group before the last one is queued (ncclCommGetAsyncError)");
	w->number = ++w->comm->groups;
	if (happens(w->comm, w->number, "call")) return ncclSystemError;
	w->comm->pending = w;
	w->comm->looks = LOOKS;
	return ncclInProgress;
}

static ncclResult_t add_op(ncclComm_t c, cudaStream_t stream, struct op o)
{
	struct emu_device *d = emu_device_of(o.data);
	if (!c || c->listener >= 0) emu_misuse("NCCL: the communicator does not stand yet");
	if (o.rank < 0 || o.rank >= c->size || (unsigned)o.type >= ncclNumTypes || !o.count) return ncclInvalidArgument;
	if (!d || d->id != c->device) emu_misuse("NCCL: %p is not memory of gpu:%d", (void *)o.data, c->device);
	if (emu_current() != c->device || !stream) emu_misuse("NCCL: not the device or the stream of the communicator");
	o.data = emu_alias(d, o.data, o.count * sizes[o.type], "NCCL: values at");
	ncclGroupStart();
	if (!group.work && !(group.work = calloc(1, sizeof *group.work))) emu_misuse("no memory");
	struct work *w = group.work;
	if (w->comm && (w->comm != c || w->stream != stream))
		emu_misuse("NCCL: a group of several communicators or streams");
	if (w->n == MOST_OPS || (w->n && (o.kind == REDUCE || w->ops[0].kind == REDUCE)))
		emu_misuse("NCCL: too much in a group");
	w->comm = c;
	w->stream = stream;
	w->ops[w->n++] = o;
	c->sends += o.kind == SEND;
	c->receives += o.kind == RECEIVE;
	c->reduces += o.kind == REDUCE;
	c->bytes += o.kind == SEND ? o.count * sizes[o.type] : 0;
	return ncclGroupEnd();
}

EXPORT ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int rank, ncclComm_t c,
                             cudaStream_t s)
{
	if (c && rank == c->rank) emu_misuse("NCCL: a rank sends to itself");
	return add_op(c, s, (struct op){SEND, rank, (char *)(uintptr_t)data, count, type});
}

EXPORT ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int rank, ncclComm_t c, cudaStream_t s)
{
	if (c && rank == c->rank) emu_misuse("NCCL: a rank receives of itself");
	return add_op(c, s, (struct op){RECEIVE, rank, data, count, type});
}

EXPORT ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, int op, ncclComm_t c,
                                  cudaStream_t s)
{
	if (from != to || op != 0) emu_misuse("NCCL: only sums in place are emulated");
	return add_op(c, s, (struct op){REDUCE, 0, to, count, type});
}

/* What is under way ends without result. */
EXPORT ncclResult_t ncclCommAbort(ncclComm_t c)
{
	c->aborted = 1;
	while (c->running) usleep(1000);
	for (int r = 0; r < c->size; r++)
		if (c->fds[r] >= 0) close(c->fds[r]);
	if (c->listener >= 0) close(c->listener);
	if (emu_settings.stats)
		fprintf(stderr, "emulated NCCL: sends=%llu receives=%llu reduces=%llu bytes=%llu\n",
		        (unsigned long long)c->sends, (unsigned long long)c->receives, (unsigned long long)c->reduces,
		        (unsigned long long)c->bytes);
	free(c->pending);
	free(c);
	return ncclSuccess;
}
