/* The library's own memory (alloc.h): the only place that requests it, where tests can make an allocation fail. */
#include "op.h"
#include "runtime/compat.h"
#include "runtime/fault.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/budget.h"
#include "runtime/memory/memory_limit.h"

_Atomic long slp_fail_alloc;

static bool told_to_fail(void)
{
	if (atomic_load_explicit(&slp_fail_alloc, memory_order_relaxed) <= 0) return false;
	return atomic_fetch_sub(&slp_fail_alloc, 1) == 1;
}

static _Atomic size_t last_refused;

/* Values that a file can have leave for it. */
static bool is_short(size_t bytes)
{
	if (slp_memory_limit_allows(bytes)) return false;
	bool (*leave)(size_t) = atomic_load(&slp_memory_leave_for_others);
	return !leave || !leave(bytes);
}

static bool refused(size_t bytes)
{
	if (told_to_fail()) return true;
	if (bytes >= SLP_MEMORY_LARGE) return is_short(bytes);
	return slp_budget_current && !slp_budget_has_small(bytes);
}

static void *noted(void *p, size_t bytes)
{
	if (!p) atomic_store(&last_refused, bytes);
	return p;
}

const char *slp_refused_text(char text[160])
{
	size_t refused = atomic_load(&last_refused);
	*text = '\0';
	return refused ? slp_memory_limit_text(refused, text) : text;
}

void *slp_try_malloc(size_t bytes)
{
	return noted(refused(bytes) ? NULL : malloc(bytes), bytes);
}

void *slp_try_calloc(size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes)) return noted(NULL, SIZE_MAX);
	return noted(refused(bytes) ? NULL : calloc(n, size), bytes);
}

void *slp_try_realloc(void *p, size_t bytes)
{
	return noted(refused(bytes) ? NULL : realloc(p, bytes), bytes);
}

/* Large arrays are in large pages where the system has some: fewer page faults and TLB misses. */
static void *in_large_pages(void *p, size_t bytes)
{
	enum { PAGE = 2 << 20 };
	uintptr_t begin = ((uintptr_t)p + PAGE - 1) & ~(uintptr_t)(PAGE - 1),
	          end = ((uintptr_t)p + bytes) & ~(uintptr_t)(PAGE - 1);
	if (p && begin < end) (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* a wish */
	return p;
}

void *slp_try_aligned_alloc(size_t alignment, size_t bytes)
{
	return noted(refused(bytes) ? NULL : in_large_pages(aligned_alloc(alignment, bytes), bytes), bytes);
}

void *slp_try_pages(size_t bytes)
{
	if (told_to_fail() || !slp_memory_limit_allows_movable(bytes)) return noted(NULL, bytes);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return noted(p == MAP_FAILED ? NULL : in_large_pages(p, bytes), bytes);
}

void slp_free_pages(void *pages, size_t bytes)
{
	if (pages) munmap(pages, bytes);
}

char *slp_try_strdup(const char *text)
{
	return told_to_fail() ? NULL : strdup(text);
}

char *slp_try_format(const char *format, va_list args)
{
	char *text;
	return told_to_fail() || vasprintf(&text, format, args) < 0 ? NULL : text;
}

struct piece {
	struct piece *next;
};

void slp_free_pieces(void *pieces)
{
	for (struct piece *p = pieces, *next; p; p = next) {
		next = p->next;
		free(p);
	}
}

/* A test can have the large one fail; the small ones come with it. */
void *slp_try_pieces(size_t large, int n, size_t small)
{
	struct piece *pieces = slp_try_malloc(large);
	if (pieces) pieces->next = NULL;
	for (int i = 0; pieces && i < n; i++) {
		struct piece *p = malloc(small);
		if (p) p->next = pieces;
		else slp_free_pieces(pieces);
		pieces = p;
	}
	return pieces;
}

/* ---- with an error ----------------------------------------------------------------------------------------------- */

enum sl_status slp_no_memory(size_t bytes)
{
	const struct slp_call *c = &slp_current_call;
	char text[160];
	const char *file = slp_budget_current ? slp_budget_current->file : "";
	slp_call_fail(c->at, c->at ? c->function : "starling", SL_ENOMEM, "%.200s%s%s", file, *file ? ": " : "",
	              slp_memory_limit_text(bytes, text));
	return SL_ENOMEM;
}

/* A worker has no program to tell: its kernels' failures are faults. */
static void *checked(void *p, size_t bytes)
{
	if (!p && starpu_worker_get_id() < 0) slp_no_memory(bytes);
	return p;
}

void *slp_malloc(size_t bytes)
{
	return checked(slp_try_malloc(bytes), bytes);
}

void *slp_calloc(size_t n, size_t size)
{
	return checked(slp_try_calloc(n, size), n * size);
}

void *slp_realloc(void *p, size_t bytes)
{
	return checked(slp_try_realloc(p, bytes), bytes);
}

char *slp_strdup(const char *text)
{
	return checked(slp_try_strdup(text), strlen(text) + 1);
}

char *slp_vformat(const char *format, va_list args)
{
	return checked(slp_try_format(format, args), strlen(format) + 1);
}

char *slp_format(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	char *text = slp_vformat(format, args);
	va_end(args);
	return text;
}

FILE *slp_memory_file(char **text, size_t *size)
{
	return checked(told_to_fail() ? NULL : open_memstream(text, size), BUFSIZ);
}
