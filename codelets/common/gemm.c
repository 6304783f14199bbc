/* Matrix products on CPUs: chooses between oneDNN, OpenBLAS and plain C.
 *
 * The choice depends on the build, the environment (SL_GEMM=onednn|openblas|plain, read once) and the sizes, never on
 * timing, so that results are the same bits run to run.  oneDNN is asked on the whole team, which splits the work over
 * its OpenMP threads; OpenBLAS has threads of its own that would fight with the team, so it is kept to one thread and
 * called for blocks of C of a fixed size. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixed.h"
#include "gemm.h"
#include "op.h"
#include "op_inner.h"
#include "simd.h"

#ifdef HAVE_ONEDNN
#include <dnnl.h>
#include <omp.h>
#endif
#ifdef HAVE_OPENBLAS
#include <cblas.h>
#endif

#define T float
#define PLAIN(name) f32_##name
#include "gemm_plain.h"
#undef T
#undef PLAIN
#define T double
#define PLAIN(name) f64_##name
#include "gemm_plain.h"
#undef T
#undef PLAIN

enum library { PLAIN, OPENBLAS, ONEDNN, LIBRARIES };

static const char *const names[LIBRARIES] = {"plain", "OpenBLAS", "oneDNN"};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum library chosen;
static const char *reason = "nothing else is built in";

static bool present(enum library library)
{
	static const bool built[LIBRARIES] = {
	        [PLAIN] = true,
#ifdef HAVE_OPENBLAS
	        [OPENBLAS] = true,
#endif
#ifdef HAVE_ONEDNN
	        [ONEDNN] = true,
#endif
	};
	return built[library];
}

/* Whether OpenBLAS mistook this CPU for one without AVX-512, as releases older than the CPU do (0.3.21 takes Zen 5 for
 * Haswell): then plain C is faster. */
static bool openblas_is_behind(void)
{
#if defined(HAVE_OPENBLAS) && defined(SLP_TARGETS)
	const char *core = openblas_get_corename();
	return __builtin_cpu_supports("avx512f") && strcmp(core, "SkylakeX") && strcmp(core, "Cooperlake") &&
	       strcmp(core, "Sapphirerapids");
#else
	return false;
#endif
}

#ifdef HAVE_OPENBLAS
/* OpenBLAS starts a thread for each core when it is loaded. They would never have work, and they poll at first;
 * OpenBLAS starts them again if other code in the process asks for several. */
extern int blas_thread_shutdown_(void) __attribute__((weak));

__attribute__((constructor)) static void end_pool(void)
{
	if (blas_thread_shutdown_) blas_thread_shutdown_();
}
#endif

static void choose(void)
{
	const char *wish = getenv("SL_GEMM");
	bool granted = false;
	for (int i = PLAIN; i < LIBRARIES; i++)
		if (present(i) && !(i == OPENBLAS && openblas_is_behind())) chosen = i;
	bool depends = chosen == ONEDNN && slp_fixed_sums(); /* long sums of small results are divided among threads */
	if (depends) chosen = present(OPENBLAS) && !openblas_is_behind() ? OPENBLAS : PLAIN;
	if (depends) reason = "SL_FIXED_SUMS: oneDNN's bits depend on the number of threads here";
	else if (chosen != PLAIN) reason = "the fastest that is built in";
	else if (present(OPENBLAS)) reason = "this OpenBLAS takes this CPU for one without AVX-512";
	for (int i = PLAIN; wish && i < LIBRARIES; i++) {
		if (strcasecmp(wish, names[i]) || !present(i)) continue;
		chosen = i;
		granted = true;
		reason = "SL_GEMM requests it";
	}
	if (wish && *wish && !granted)
		fprintf(stderr,
		        "starling: SL_GEMM=%s must be one of onednn, openblas, plain that is built in; ignored\n",
		        wish);
#ifdef HAVE_OPENBLAS
	openblas_set_num_threads(1); /* starts the pool if there is none */
	end_pool();
#endif
}

static enum library library(void)
{
	pthread_once(&once, choose);
	return chosen;
}

const char *slp_sgemm_library(void)
{
	return names[library()];
}

const char *slp_sgemm_reason(void)
{
	library();
	return reason;
}

/* Products so thin or so small that a call of a library costs more than it saves (doc/performance.md). */
static bool is_small(bool tb, int64_t m, int64_t n, int64_t k)
{
	return m == 1 || n == 1 || k == 0 || (m <= 4 && !tb) || m * n * k <= 32768;
}

static bool fits_int(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc)
{
	return ((m | n | k | lda | ldb | ldc) >> 31) == 0;
}

/* ---- OpenBLAS: one call a block of C ---------------------------------------------------------------------------- */

#ifdef HAVE_OPENBLAS
struct blas {
	bool is_double, ta, tb;
	int64_t m, n, k, lda, ldb, ldc, rows, cols;
	double alpha, beta;
	const char *a, *b;
	char *c;
};

/* The product of a function's arguments. */
#define BLAS(of_doubles)                                                                                               \
	(struct blas)                                                                                                  \
	{                                                                                                              \
		.is_double = of_doubles, .ta = ta, .tb = tb, .m = m, .n = n, .k = k, .lda = lda, .ldb = ldb,           \
		.ldc = ldc, .alpha = alpha, .beta = beta, .a = (const char *)a, .b = (const char *)b, .c = (char *)c   \
	}

static void blas_call(const struct blas *p, int64_t i, int64_t j)
{
	enum CBLAS_TRANSPOSE ta = p->ta ? CblasTrans : CblasNoTrans, tb = p->tb ? CblasTrans : CblasNoTrans;
	size_t size = p->is_double ? sizeof(double) : sizeof(float);
	int m = (int)(p->m - i < p->rows ? p->m - i : p->rows), n = (int)(p->n - j < p->cols ? p->n - j : p->cols);
	const char *a = p->a + size * (p->ta ? i : i * p->lda), *b = p->b + size * (p->tb ? j * p->ldb : j);
	char *c = p->c + size * (i * p->ldc + j);
	int k = (int)p->k, lda = (int)p->lda, ldb = (int)p->ldb, ldc = (int)p->ldc;
	if (p->is_double)
		cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, p->alpha, (const double *)a, lda, (const double *)b, ldb,
		            p->beta, (double *)c, ldc);
	else
		cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, (float)p->alpha, (const float *)a, lda, (const float *)b,
		            ldb, (float)p->beta, (float *)c, ldc);
}

static void blas_blocks(void *arg, int64_t begin, int64_t end)
{
	const struct blas *p = arg;
	int64_t across = (p->n + p->cols - 1) / p->cols;
	for (int64_t i = begin; i < end; i++) blas_call(p, i / across * p->rows, i % across * p->cols);
}

/* The whole of C at once, or blocks whose size depends on the sizes alone: enough blocks for a team. */
static void blas_run(bool team, struct blas p)
{
	enum { LONG = 16, SHORT = 4, SMALLEST = 192, FEW = 2 * SMALLEST };
	p.rows = p.m;
	p.cols = p.n;
	if (team && p.m >= p.n) p.rows = (p.m + LONG - 1) / LONG;
	if (team && p.m < p.n) p.cols = (p.n + LONG - 1) / LONG;
	if (team && p.m >= p.n && p.n >= SHORT * FEW) p.cols = (p.n + SHORT - 1) / SHORT;
	if (team && p.m < p.n && p.m >= SHORT * FEW) p.rows = (p.m + SHORT - 1) / SHORT;
	if (p.rows < SMALLEST && p.rows < p.m) p.rows = SMALLEST;
	if (p.cols < SMALLEST && p.cols < p.n) p.cols = SMALLEST;
	int64_t blocks = ((p.m + p.rows - 1) / p.rows) * ((p.n + p.cols - 1) / p.cols);
	if (team) slp_parallel_for(blocks, 1, blas_blocks, &p);
	else blas_blocks(&p, 0, blocks);
}
#endif

#ifdef HAVE_ONEDNN
/* oneDNN splits a product by the number of OpenMP threads, and on processors without AVX-512 its bits depend on that.
 * So a product for the calling thread alone is computed by one thread, inside a parallel region or not. Returns the
 * number of threads to restore afterwards, 0 for no change. */
static int alone(bool team)
{
	if (team || omp_in_parallel()) return 0;
	int threads = omp_get_max_threads();
	if (threads == 1) return 0;
	omp_set_num_threads(1);
	return threads;
}
#endif

/* ---- the entries ------------------------------------------------------------------------------------------------ */

static enum sl_status sgemm(bool team, bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                            int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
	if (m == 0 || n == 0) return SL_OK;
	enum library which = is_small(tb, m, n, k) || !fits_int(m, n, k, lda, ldb, ldc) ? PLAIN : library();
#ifdef HAVE_ONEDNN
	if (which == ONEDNN) {
		int threads = alone(team);
		dnnl_status_t s =
		        dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
		if (threads) omp_set_num_threads(threads);
		return s == dnnl_success ? SL_OK : SL_EKERNEL;
	}
#endif
#ifdef HAVE_OPENBLAS
	if (which == OPENBLAS) {
		blas_run(team, BLAS(false));
		return SL_OK;
	}
#endif
	(void)which;
	f32_run(team, f32_make(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));
	return SL_OK;
}

static void dgemm(bool team, bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha, const double *a,
                  int64_t lda, const double *b, int64_t ldb, double beta, double *c, int64_t ldc)
{
	if (m == 0 || n == 0) return;
#ifdef HAVE_OPENBLAS
	enum library wanted = library() == ONEDNN && !openblas_is_behind() ? OPENBLAS : library();
	if (wanted == OPENBLAS && !is_small(tb, m, n, k) && fits_int(m, n, k, lda, ldb, ldc)) {
		blas_run(team, BLAS(true));
		return;
	}
#endif
	f64_run(team, f64_make(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));
}

enum sl_status slp_sgemm(const struct slp_kernel *kernel, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                         float alpha, const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                         int64_t ldc)
{
	enum sl_status s = sgemm(true, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
	return s == SL_OK ? s : slp_kernel_fail(kernel, s, "%s refused a product of matrices", slp_sgemm_library());
}

enum sl_status slp_sgemm_serial(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                                int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
	return sgemm(false, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void slp_dgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t lda,
               const double *b, int64_t ldb, double beta, double *c, int64_t ldc)
{
	dgemm(true, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void slp_dgemm_serial(bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t lda,
                      const double *b, int64_t ldb, double beta, double *c, int64_t ldc)
{
	dgemm(false, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
