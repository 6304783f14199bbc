/* Kernels compiled at run time: NVRTC is loaded at the first source; what it gives is kept in memory and in a file for
 * each source, GPU architecture and version, FOLDER/starling/ARCHITECTURE-HASH.cubin, FOLDER that of StarPU's models.  A
 * file has the whole source and a check sum: a damaged one, or one of another source, is compiled again.  Files are
 * written under another name and moved, so that processes see whole ones. */
#include "compiled.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifdef HAVE_CUDA
#include <cuda_runtime_api.h>
#endif
#if defined HAVE_CUDA && CUDART_VERSION >= 12080 && __has_include(<nvrtc.h>)
#include <dlfcn.h>
#include <inttypes.h>
#include <nvrtc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "runtime/compat.h"
#include "starling/version.h"
#include "tune.h"

#define FUNCTIONS(X)                                                                                                   \
	X(nvrtcCompileProgram)                                                                                         \
	X(nvrtcCreateProgram)                                                                                          \
	X(nvrtcDestroyProgram)                                                                                         \
	X(nvrtcGetCUBIN)                                                                                               \
	X(nvrtcGetCUBINSize)                                                                                           \
	X(nvrtcVersion)

static struct {
#define X(f) __typeof__(&f) f;
	FUNCTIONS(X)
#undef X
} rtc;

enum { BUCKETS = 64, HEADERS = 16, DEVICES = 64 };

/* kernel NULL: the source cannot be compiled. */
struct entry {
	struct entry *next;
	cudaLibrary_t library;
	cudaKernel_t kernel;
	char key[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool wanted;
static struct entry *bucket[BUCKETS];

static uint64_t hash_of(const void *text, size_t n, uint64_t hash)
{
	for (const unsigned char *c = text; n--; c++) hash = (hash ^ *c) * UINT64_C(0x100000001b3);
	return hash;
}

static const uint64_t first_hash = UINT64_C(0xcbf29ce484222325);

/* ---- NVRTC ------------------------------------------------------------------------------------------------------- */

#ifdef SLP_EMULATE /* a stand-in is linked */
static bool load_rtc(void)
{
#define X(f) rtc.f = f;
	FUNCTIONS(X)
#undef X
	return true;
}
#else
static bool load_rtc(void)
{
	static bool tried;
	char name[32];
	if (tried) return rtc.nvrtcVersion;
	tried = true;
	snprintf(name, sizeof name, "libnvrtc.so.%d", CUDART_VERSION / 1000);
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	bool all = library;
#define X(f)                                                                                                           \
	if (all) {                                                                                                     \
		void *function = dlsym(library, #f);                                                                   \
		memcpy(&rtc.f, &function, sizeof function);                                                            \
		all = function;                                                                                        \
	}
	FUNCTIONS(X)
#undef X
	if (!all) memset(&rtc, 0, sizeof rtc);
	return all;
}
#endif

enum { LEAST = 1 << 16 };

/* The elements from which on a kernel is compiled; emulated GPUs compile small cases, too, unless launches are as large as on
 * a GPU. */
static int64_t least(void)
{
#ifdef SLP_EMULATE
	int64_t emu_blocks(int64_t most);
	return emu_blocks(LEAST) < LEAST ? 64 : LEAST;
#else
	return LEAST;
#endif
}

bool slp_compiled_wanted(int64_t elements)
{
	if (elements < least()) return false;
	pthread_mutex_lock(&lock);
	bool can = wanted && load_rtc();
	pthread_mutex_unlock(&lock);
	return can;
}

void slp_compiled_start(bool wish)
{
	wanted = wish;
}

/* The machine code of a source, malloc'd; NULL: it does not compile. */
static char *compile(const char *source, const struct slp_compiled_header *headers, int arch, size_t *bytes)
{
	const char *names[HEADERS], *texts[HEADERS];
	char option[40], *code = NULL;
	const char *options[] = {option, "--fmad=false", "--std=c++17"}; /* without contraction, as all kernels */
	nvrtcProgram program;
	int n = 0;
	for (; n < HEADERS && headers[n].name; n++) names[n] = headers[n].name, texts[n] = headers[n].text;
	snprintf(option, sizeof option, "--gpu-architecture=sm_%d", arch);
	if (rtc.nvrtcCreateProgram(&program, source, "kernel.cu", n, texts, names) != NVRTC_SUCCESS) return NULL;
	bool ok = rtc.nvrtcCompileProgram(program, 3, options) == NVRTC_SUCCESS &&
	          rtc.nvrtcGetCUBINSize(program, bytes) == NVRTC_SUCCESS && *bytes > 0;
	if (ok && (code = slp_try_malloc(*bytes)) && rtc.nvrtcGetCUBIN(program, code) != NVRTC_SUCCESS) {
		free(code);
		code = NULL;
	}
	rtc.nvrtcDestroyProgram(&program);
	return code;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* The file of a key; false: there is no folder. */
static bool path_of(const char *key, int arch, char path[SLP_TUNE_PATH])
{
	char within[SLP_TUNE_PATH];
	slp_tune_path(within); /* makes the folder */
	char *end = strrchr(within, '/');
	if (!end) return false;
	*end = '\0';
	int n = snprintf(path, SLP_TUNE_PATH - 32, "%s/sm_%d-%016" PRIx64 ".cubin", within, arch,
	                 hash_of(key, strlen(key), first_hash));
	return n > 0 && n < SLP_TUNE_PATH - 32;
}

struct header {
	uint64_t key, code, sum; /* bytes of both, which follow; of all */
};

static uint64_t sum_of(const char *key, const char *code, size_t bytes)
{
	return hash_of(code, bytes, hash_of(key, strlen(key), first_hash));
}

static char *read_from(FILE *file, const char *key, size_t *bytes)
{
	struct header h;
	size_t n = strlen(key);
	if (fread(&h, sizeof h, 1, file) != 1 || h.key != n || h.code == 0 || h.code > 64 << 20) return NULL;
	char *text = slp_try_malloc(n + h.code);
	bool ok = text && fread(text, n + h.code, 1, file) == 1 && !memcmp(text, key, n) &&
	          h.sum == sum_of(key, text + n, h.code);
	if (ok) memmove(text, text + n, h.code);
	else free(text);
	*bytes = h.code;
	return ok ? text : NULL;
}

static char *read_code(const char *path, const char *key, size_t *bytes)
{
	FILE *file = fopen(path, "re");
	char *code = file ? read_from(file, key, bytes) : NULL;
	if (file) fclose(file);
	return code;
}

/* A file that cannot be written is no error: the next start compiles. */
static void write_code(const char *path, const char *key, const char *code, size_t bytes)
{
	char other[SLP_TUNE_PATH];
	struct header h = {strlen(key), bytes, sum_of(key, code, bytes)};
	if (snprintf(other, sizeof other, "%s.%ld", path, (long)getpid()) >= (int)sizeof other) return;
	FILE *file = fopen(other, "we");
	if (!file) return;
	bool ok = fwrite(&h, sizeof h, 1, file) == 1 && fwrite(key, h.key, 1, file) == 1 &&
	          fwrite(code, bytes, 1, file) == 1;
	ok &= fclose(file) == 0;
	if (!ok || rename(other, path) != 0) remove(other);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* 10 times the compute capability of the calling thread's GPU; 0: unknown. */
static int architecture(void)
{
	static int known[DEVICES];
	int device = -1, major = 0, minor = 0;
	if (cudaGetDevice(&device) != cudaSuccess || device < 0 || device >= DEVICES) return 0;
	if (known[device]) return known[device];
	if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
	    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess)
		return 0;
	return known[device] = 10 * major + minor;
}

static struct entry *find(const char *key)
{
	struct entry *e = bucket[hash_of(key, strlen(key), first_hash) % BUCKETS];
	while (e && strcmp(e->key, key)) e = e->next;
	return e;
}

static struct entry *add(const char *key)
{
	size_t n = strlen(key);
	struct entry *e = slp_try_calloc(1, sizeof *e + n + 1);
	if (!e) return NULL;
	memcpy(e->key, key, n + 1);
	struct entry **first = &bucket[hash_of(key, n, first_hash) % BUCKETS];
	e->next = *first;
	return *first = e;
}

static bool load_code(struct entry *e, const char *code)
{
	bool ok = cudaLibraryLoadData(&e->library, code, NULL, NULL, 0, NULL, NULL, 0) == cudaSuccess;
	if (ok && cudaLibraryGetKernel(&e->kernel, e->library, "kernel") != cudaSuccess) {
		cudaLibraryUnload(e->library);
		e->library = NULL;
		ok = false;
	}
	cudaGetLastError();
	return ok;
}

static void load_kernel(struct entry *e, const char *source, const struct slp_compiled_header *headers, int arch)
{
	char path[SLP_TUNE_PATH];
	size_t bytes = 0;
	bool kept = path_of(e->key, arch, path);
	char *code = kept ? read_code(path, e->key, &bytes) : NULL;
	if (code && load_code(e, code)) return free(code);
	free(code);
	struct starpu_task *task = starpu_task_get_current();
	if (task) slp_task_time_is_void(task); /* most of it is compilation */
	code = compile(source, headers, arch, &bytes);
	if (code && load_code(e, code) && kept) write_code(path, e->key, code, bytes);
	free(code);
}

/* Everything that machine code depends on. */
static char *key_of(const char *source, int arch)
{
	int major = 0, minor = 0;
	size_t n = strlen(source) + 128;
	char *key = slp_try_malloc(n);
	rtc.nvrtcVersion(&major, &minor);
	if (key) snprintf(key, n, "starling %s, nvrtc %d.%d, sm_%d\n%s", SL_VERSION, major, minor, arch, source);
	return key;
}

const void *slp_compiled_kernel(const char *source, const struct slp_compiled_header *headers, bool may_load)
{
	const void *kernel = NULL;
	int arch = architecture();
	pthread_mutex_lock(&lock);
	char *key = wanted && arch && load_rtc() ? key_of(source, arch) : NULL;
	struct entry *e = key ? find(key) : NULL;
	if (key && !e && may_load && (e = add(key))) load_kernel(e, source, headers, arch);
	if (e) kernel = e->kernel;
	free(key);
	pthread_mutex_unlock(&lock);
	return kernel;
}

void slp_compiled_launch(const void *kernel, unsigned blocks, unsigned threads, void *stream, void *arg, size_t bytes,
                         int pointers)
{
#ifdef SLP_EMULATE
	extern void emu_launch_compiled(const void *, unsigned, unsigned, cudaStream_t, const void *, size_t, int);
	emu_launch_compiled(kernel, blocks, threads, stream, arg, bytes, pointers);
#else
	void *args[] = {arg};
	dim3 grid = {blocks, 1, 1}, block = {threads, 1, 1};
	(void)bytes;
	(void)pointers;
	cudaLaunchKernel(kernel, grid, block, args, 0, stream);
#endif
}

void slp_compiled_forget(void)
{
	slp_compiled_forget_notes();
	pthread_mutex_lock(&lock);
	for (int i = 0; i < BUCKETS; i++)
		for (struct entry *e; (e = bucket[i]);) {
			bucket[i] = e->next;
			if (e->library) cudaLibraryUnload(e->library);
			free(e);
		}
	pthread_mutex_unlock(&lock);
}

#else

bool slp_compiled_wanted(int64_t elements)
{
	(void)elements;
	return false;
}

void slp_compiled_start(bool wish)
{
	(void)wish;
}

const void *slp_compiled_kernel(const char *source, const struct slp_compiled_header *headers, bool may_load)
{
	(void)source;
	(void)headers;
	(void)may_load;
	return NULL;
}

void slp_compiled_launch(const void *kernel, unsigned blocks, unsigned threads, void *stream, void *arg, size_t bytes,
                         int pointers)
{
	(void)kernel;
	(void)blocks;
	(void)threads;
	(void)stream;
	(void)arg;
	(void)bytes;
	(void)pointers;
}

void slp_compiled_forget(void)
{
}
#endif
