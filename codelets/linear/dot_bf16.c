/* Products of matrices in bfloat16 by oneDNN, where the processor has instructions for them (AVX512_BF16 or AMX).
 * Sums are float32, rounded once.  oneDNN keeps what it made for sizes that it has seen. */
#include <stdio.h>
#include <string.h>

#include "dot.h"

#ifdef HAVE_ONEDNN
#include <pthread.h>

#include "common/onednn.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;

static void start(void)
{
	dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
	bool there = (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
	if (!there || dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
	if (!engine)
		fputs("starling: no instructions for bfloat16 here (AVX512_BF16, AMX): products are computed in "
		      "float32\n",
		      stderr);
}

bool slp_bf16_products(void)
{
	pthread_once(&once, start);
	return engine;
}

/* A matrix of `rows` in memory, seen transposed or as it is. */
struct matrix {
	void *ptr;
	int64_t rows, columns, ld;
	bool transposed;
};

static bool describe(slp_dnn_md *md, const struct matrix *a)
{
	int64_t along = a->transposed ? a->ld : 1, down = a->transposed ? 1 : a->ld;
	return slp_dnn_md_matrix(md, dnnl_bf16, a->rows, a->columns, down, along);
}

static bool run(dnnl_primitive_t p, const slp_dnn_md *md, const struct matrix *a)
{
	static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
	dnnl_exec_arg_t args[3] = {{0, NULL}};
	dnnl_stream_t stream = NULL;
	bool ok = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) == dnnl_success;
	for (int i = 0; i < 3 && ok; i++) {
		args[i].arg = names[i];
		ok = dnnl_memory_create(&args[i].memory, slp_dnn_md_ref(&md[i]), engine, a[i].ptr) == dnnl_success;
	}
	ok = ok && dnnl_primitive_execute(p, stream, 3, args) == dnnl_success;
	ok = ok && dnnl_stream_wait(stream) == dnnl_success;
	for (int i = 0; i < 3; i++)
		if (args[i].memory) dnnl_memory_destroy(args[i].memory);
	if (stream) dnnl_stream_destroy(stream);
	return ok;
}

/* a[2] = a[0] a[1] */
static bool multiply(const struct matrix *a)
{
	slp_dnn_md md[3];
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_t p = NULL;
	int made = 0;
	while (made < 3 && describe(&md[made], &a[made])) made++;
	bool ok = made == 3 && slp_dnn_matmul_describe(&pd, engine, &md[0], &md[1], &md[2]) == dnnl_success &&
	          dnnl_primitive_create(&p, pd) == dnnl_success && run(p, md, a);
	if (p) dnnl_primitive_destroy(p);
	if (pd) dnnl_primitive_desc_destroy(pd);
	while (made) slp_dnn_md_free(&md[--made]);
	return ok;
}

enum sl_status slp_product_bf16(const struct slp_kernel *k)
{
	struct slp_product p =
	        slp_product_of(*(const struct sl_dot_opts *)k->attrs, k->in[0].type.shape, k->in[1].type.shape);
	sl_bfloat16 *a = k->in[0].ptr, *b = k->in[1].ptr, *c = k->out[0].ptr;
	if (p.m == 0 || p.n == 0) return SL_OK;
	if (p.k == 0) memset(c, 0, (size_t)slp_size(&k->out[0]) * sizeof *c);
	for (int64_t z = 0; z < p.count && p.k; z++) {
		const struct matrix matrices[] = {
		        {a + slp_product_index(&p, p.lead_a, z) * p.m * p.k, p.m, p.k, p.lda, p.ta},
		        {b + slp_product_index(&p, p.lead_b, z) * p.k * p.n, p.k, p.n, p.ldb, p.tb},
		        {c + z * p.m * p.n, p.m, p.n, p.n, false}};
		if (!multiply(matrices)) return slp_kernel_fail(k, SL_EKERNEL, "oneDNN refused a product in bfloat16");
	}
	return SL_OK;
}

#else

bool slp_bf16_products(void)
{
	return false;
}

enum sl_status slp_product_bf16(const struct slp_kernel *k)
{
	return slp_kernel_fail(k, SL_EINTERNAL, "built without oneDNN");
}

#endif
