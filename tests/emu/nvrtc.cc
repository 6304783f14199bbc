/* Emulated GPUs: NVRTC, and the functions of the CUDA run time that load what it compiles.  A source is compiled by this
 * machine's C++ compiler (CXX, or c++) into a library that calls the function `kernel` for a thread: a kernel with one
 * argument by value, perhaps with shared memory, barriers, and shuffles of doubles.  In a build that looks for races
 * (races.cc) its accesses are watched as those of all kernels. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <cuda_runtime_api.h>
#include <nvrtc.h>

#include "common/gpu.cuh"
extern "C" {
#include "internal.h"
}

struct _nvrtcProgram {
	std::string source, code;
	std::vector<std::string> names, texts;
};

/* What compiled code calls of the emulation: the thread that runs, barriers and shuffles. */
struct emu_table {
	const uint3 *(*index)(int what);
	void (*meet)(int line);
	unsigned long long (*exchange)(unsigned lanes, unsigned long long value, int other, int line);
};

/* In front of a source, and behind it. */
static const char before[] =
        "#define __global__\n#define __device__\n#define __host__\n#define __shared__ static thread_local\n"
        "#include <cmath>\n#include <cstdint>\n#include <cstring>\n"
        "struct emu_index { unsigned x, y, z; };\n"
        "static struct emu_table {\n"
        "	const emu_index *(*index)(int what);\n"
        "	void (*meet)(int line);\n"
        "	unsigned long long (*exchange)(unsigned lanes, unsigned long long value, int other, int line);\n"
        "} emu;\n"
        "#define threadIdx (*emu.index(0))\n#define blockIdx (*emu.index(1))\n"
        "#define blockDim (*emu.index(2))\n#define gridDim (*emu.index(3))\n"
        "#define __syncthreads() emu.meet(__LINE__)\n"
        "static inline double __shfl_xor_sync(unsigned lanes, double value, int other, int line = __builtin_LINE())\n"
        "{\n"
        "	unsigned long long bits;\n"
        "	memcpy(&bits, &value, sizeof bits);\n"
        "	bits = emu.exchange(lanes, bits, other, line);\n"
        "	memcpy(&value, &bits, sizeof bits);\n"
        "	return value;\n"
        "}\n";
static const char after[] = "\nstatic void emu_run(const void *arg) { kernel(*(const call *)arg); }\n"
                            "static thread_local char emu_mark;\n"
                            "static const void *emu_shared() { return &emu_mark; }\n"
                            "extern \"C\" __attribute__((visibility(\"default\"))) const struct {\n"
                            "	void (*run)(const void *);\n	const void *(*shared)();\n"
                            "} emu_entry = {emu_run, emu_shared};\n"
                            "extern \"C\" __attribute__((visibility(\"default\"))) "
                            "void emu_begin(const emu_table *table) { emu = *table; }\n";

/* What a library has: the kernel, for a thread; a variable among its shared memory. */
struct emu_entry {
	void (*run)(const void *arg);
	const void *(*shared)();
};

#ifdef EMU_RACES
static const char watched[] = "-fsanitize=thread ";
#else
static const char watched[] = "";
#endif

static const uint3 *index_of(int what)
{
	return what == 0 ? &threadIdx : what == 1 ? &blockIdx : what == 2 ? &blockDim : &gridDim;
}

static void meet(int line)
{
	emu::wait(emu::AT_BLOCK, {"compiled", line, ~0u});
}

static unsigned long long exchange(unsigned lanes, unsigned long long value, int other, int line)
{
	return emu::shuffle(value, emu::thread_in_block() % warpSize ^ (unsigned)other, warpSize,
	                    {"compiled", line, lanes});
}

nvrtcResult nvrtcVersion(int *major, int *minor)
{
	*major = 0, *minor = 1;
	return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *to, const char *source, const char *, int headers,
                               const char *const *texts, const char *const *names)
{
	*to = new _nvrtcProgram{before + std::string(source) + after, "", {}, {}};
	for (int i = 0; i < headers; i++) (*to)->names.push_back(names[i]), (*to)->texts.push_back(texts[i]);
	return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *p)
{
	delete *p;
	*p = NULL;
	return NVRTC_SUCCESS;
}

static bool write_file(const std::string &path, const std::string &text)
{
	FILE *file = fopen(path.c_str(), "w");
	bool ok = file && fwrite(text.data(), 1, text.size(), file) == text.size();
	return file && fclose(file) == 0 && ok;
}

static std::string contents(const std::string &path)
{
	std::string text;
	char part[4096];
	FILE *file = fopen(path.c_str(), "r");
	for (size_t n; file && (n = fread(part, 1, sizeof part, file)) > 0;) text.append(part, n);
	if (file) fclose(file);
	return text;
}

/* Names of headers have at most one folder; those of the C library are this machine's. */
static bool write_headers(const nvrtcProgram p, const std::string &folder)
{
	bool ok = true;
	for (size_t i = 0; i < p->names.size() && ok; i++) {
		if (p->names[i] == "cmath" || p->names[i] == "math.h" || p->names[i] == "string.h") continue;
		size_t slash = p->names[i].find('/');
		if (slash != std::string::npos)
			ok = system(("mkdir -p '" + folder + "/" + p->names[i].substr(0, slash) + "'").c_str()) == 0;
		ok = ok && write_file(folder + "/" + p->names[i], p->texts[i]);
	}
	return ok;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int count, const char *const *options)
{
	bool exact = false;
	for (int i = 0; i < count; i++) exact = exact || !strcmp(options[i], "--fmad=false");
	if (!exact) {
		fprintf(stderr, "emulated GPU: a kernel is compiled with contraction\n");
		abort();
	}
	char folder[] = "/tmp/emu-nvrtc-XXXXXX";
	if (!mkdtemp(folder)) return NVRTC_ERROR_COMPILATION;
	std::string in = folder, compiler = getenv("CXX") ? getenv("CXX") : "c++";
	/* In two steps: linked without the run time of what watches it. */
	std::string command = compiler + " -std=c++17 -O1 -ffp-contract=off -fno-strict-aliasing -w -fPIC " + watched +
	                      "-c -I'" + in + "' -o '" + in + "/kernel.o' '" + in + "/kernel.cc' && " + compiler +
	                      " -shared -o '" + in + "/code' '" + in + "/kernel.o'";
	bool ok = write_headers(p, in) && write_file(in + "/kernel.cc", p->source) && system(command.c_str()) == 0;
	if (ok) p->code = contents(in + "/code");
	if (system(("rm -r '" + in + "'").c_str()) != 0) ok = false;
	emu_count_compiled();
	return ok && !p->code.empty() ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *bytes)
{
	*bytes = p->code.size();
	return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *to)
{
	memcpy(to, p->code.data(), p->code.size());
	return NVRTC_SUCCESS;
}

/* Compute capability 9.0. */
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int)
{
	*value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
	return attribute == cudaDevAttrComputeCapabilityMajor || attribute == cudaDevAttrComputeCapabilityMinor
	               ? cudaSuccess
	               : cudaErrorInvalidValue;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* How long the code is stands in its ELF header: the section headers are its end. */
static size_t length_of(const void *code)
{
	uint64_t sections;
	uint16_t size, count;
	if (memcmp(code, "\177ELF", 4)) return 0;
	memcpy(&sections, (const char *)code + 40, sizeof sections);
	memcpy(&size, (const char *)code + 58, sizeof size);
	memcpy(&count, (const char *)code + 60, sizeof count);
	return sections + (size_t)size * count;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, cudaJitOption *, void **, unsigned int,
                                cudaLibraryOption *, void **, unsigned int)
{
	char path[] = "/tmp/emu-library-XXXXXX";
	size_t n = length_of(code);
	int fd = n ? mkstemp(path) : -1;
	if (fd < 0) return cudaErrorInvalidKernelImage;
	bool ok = write(fd, code, n) == (ssize_t)n;
	close(fd);
	*library = ok ? (cudaLibrary_t)dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	unlink(path);
	return *library ? cudaSuccess : cudaErrorInvalidKernelImage;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
	const emu_table table = {index_of, meet, exchange};
	void (*begin)(const emu_table *) = (void (*)(const emu_table *))dlsym((void *)library, "emu_begin");
	*kernel = strcmp(name, "kernel") || !begin ? NULL : (cudaKernel_t)dlsym((void *)library, "emu_entry");
	if (*kernel) begin(&table);
	return *kernel ? cudaSuccess : cudaErrorSymbolNotFound;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	dlclose((void *)library);
	return cudaSuccess;
}

/* ---- launching --------------------------------------------------------------------------------------------------- */

/* Runs the kernel for the thread in threadIdx. */
static void run_thread(void *p)
{
	emu::call *c = (emu::call *)p;
	((const emu_entry *)(const void *)c->kernel)->run(c->values);
}

static void run_compiled(void *p)
{
	emu_race_shared(((const emu_entry *)(const void *)((emu::call *)p)->kernel)->shared());
	emu::run(p);
}

extern "C" void emu_launch_compiled(const void *kernel, unsigned blocks, unsigned threads, cudaStream_t stream,
                                    const void *arg, size_t bytes, int pointers)
{
	emu::call *c = emu::new_call("compiled", blocks, threads, 0);
	c->thread = run_thread, c->kernel = (void (*)())kernel;
	c->add(arg, bytes, alignof(void *));
	for (int i = 0; i < pointers; i++) {
		void **p = (void **)c->values + i;
		if (*p) *p = (void *)emu_argument(*p, "compiled");
	}
	emu_launch(stream, run_compiled, c, emu::drop);
}
