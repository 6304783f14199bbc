/* The alternatives chosen for calls of convolutions: in memory for each thread, and as text for src/tune.h. */
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "alloc.h"
#include "conv2d_ways.h"

enum { BUCKETS = 64 };

struct known {
	struct slp_conv_call call;
	struct slp_conv_way way;
	struct known *next;
};

static thread_local struct known *bucket[BUCKETS];

static struct known **first_of(const struct slp_conv_call *call)
{
	uint64_t hash = 0, words[sizeof *call / sizeof(uint64_t)];
	memcpy(words, call, sizeof words);
	for (uint64_t w : words) hash = (hash ^ w) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
	return &bucket[(hash >> 32) % BUCKETS];
}

struct slp_conv_way *slp_conv_known(const struct slp_conv_call *call)
{
	struct known *k = *first_of(call);
	while (k && memcmp(&k->call, call, sizeof *call)) k = k->next;
	return k ? &k->way : NULL;
}

struct slp_conv_way *slp_conv_note(const struct slp_conv_call *call, const struct slp_conv_way *way)
{
	struct known *k = (struct known *)slp_try_calloc(1, sizeof *k), **first = first_of(call);
	if (!k) return NULL;
	k->call = *call;
	k->way = *way;
	k->next = *first;
	*first = k;
	return &k->way;
}

void slp_conv_ways_forget(void)
{
	for (struct known *&first : bucket)
		for (struct known *k; (k = first);) {
			first = k->next;
			free(k);
		}
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

void slp_conv_key_text(const struct slp_conv_call *call, char to[SLP_TUNE_KEY])
{
	static const char *const passes[] = {"forward", "data", "weights"};
	const struct slp_conv_graph &f = call->f;
	const int64_t numbers[] = {f.type,           f.tensor_cores, f.bias, f.relu, f.nhwc,     call->how,
	                           (int64_t)f.limit, f.c.n,          f.c.ic, f.c.ih, f.c.iw,     f.c.oc,
	                           f.c.oh,           f.c.ow,         f.c.kh, f.c.kw, f.c.groups, f.c.sh,
	                           f.c.sw,           f.c.ph,         f.c.pw, f.c.dh, f.c.dw};
	int n = snprintf(to, SLP_TUNE_KEY, "cudnn %zu conv2d %s", slp_dnn.cudnnGetVersion(), passes[f.pass]);
	for (int64_t number : numbers)
		if (n < SLP_TUNE_KEY) n += snprintf(to + n, (size_t)(SLP_TUNE_KEY - n), " %" PRId64, number);
}

void slp_conv_way_text(const struct slp_conv_way *way, const char *option, char to[SLP_TUNE_TEXT])
{
	static const char *const names[] = {
#define X(name, text) text,
	        SLP_CONV_WAYS(X)
#undef X
	};
	snprintf(to, SLP_TUNE_TEXT, "%s %s%s%s",
	         way->nhwc ? "last" : "plain" /* files of earlier versions have this word */, names[way->by],
	         *option ? " " : "", option);
}
