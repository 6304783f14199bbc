/* Products of matrices in bfloat16 by oneDNN (bf16.h). oneDNN caches its kernels by size. */
#include "bf16.h"
#include "op.h"

#include <stdio.h>
#include <string.h>

#ifdef HAVE_ONEDNN
#include <pthread.h>

#include "onednn.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;

static void start(void)
{
	dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
	bool there = (isa & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
	if (!there || dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
	if (!engine)
		fputs("starling: no fast instructions for bfloat16 here (AMX, or AVX512_BF16 of AMD): products are "
		      "computed in float32\n",
		      stderr);
}

bool slp_bf16_available(void)
{
	pthread_once(&once, start);
	return engine;
}

enum { OPERANDS = 3 };

static bool describe(slp_dnn_md *md, const struct slp_bf16_matrix *a, bool wide)
{
	int64_t along = a->transposed ? a->ld : 1, down = a->transposed ? 1 : a->ld;
	return slp_dnn_md_matrix(md, wide ? dnnl_f32 : dnnl_bf16, a->rows, a->columns, down, along);
}

static bool run(dnnl_primitive_t p, const slp_dnn_md *md, void *const ptr[OPERANDS])
{
	static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
	dnnl_exec_arg_t args[OPERANDS] = {{0, NULL}};
	dnnl_stream_t stream = NULL;
	bool ok = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) == dnnl_success;
	for (int i = 0; i < OPERANDS && ok; i++) {
		args[i].arg = names[i];
		ok = dnnl_memory_create(&args[i].memory, slp_dnn_md_ref(&md[i]), engine, ptr[i]) == dnnl_success;
	}
	ok = ok && dnnl_primitive_execute(p, stream, OPERANDS, args) == dnnl_success;
	ok = ok && dnnl_stream_wait(stream) == dnnl_success;
	for (int i = 0; i < OPERANDS; i++)
		if (args[i].memory) dnnl_memory_destroy(args[i].memory);
	if (stream) dnnl_stream_destroy(stream);
	return ok;
}

static void clear(const struct slp_bf16_matrix *c, bool wide)
{
	size_t size = wide ? sizeof(float) : sizeof(sl_bfloat16);
	for (int64_t i = 0; i < c->rows; i++)
		memset((char *)c->ptr + (size_t)(i * c->ld) * size, 0, (size_t)c->columns * size);
}

enum sl_status slp_bf16_multiply(const struct slp_kernel *k, const struct slp_bf16_matrix *a,
                                 const struct slp_bf16_matrix *b, const struct slp_bf16_matrix *c, bool wide)
{
	const struct slp_bf16_matrix *matrices[OPERANDS] = {a, b, c};
	slp_dnn_md md[OPERANDS];
	dnnl_primitive_desc_t pd = NULL;
	dnnl_primitive_t p = NULL;
	int made = 0;
	if (a->columns == 0) return clear(c, wide), SL_OK;
	while (made < OPERANDS && describe(&md[made], matrices[made], wide && made == 2)) made++;
	bool ok = made == OPERANDS && slp_dnn_matmul_describe(&pd, engine, &md[0], &md[1], &md[2]) == dnnl_success &&
	          dnnl_primitive_create(&p, pd) == dnnl_success && run(p, md, (void *[]){a->ptr, b->ptr, c->ptr});
	if (p) dnnl_primitive_destroy(p);
	if (pd) dnnl_primitive_desc_destroy(pd);
	while (made) slp_dnn_md_free(&md[--made]);
	return ok ? SL_OK : slp_kernel_fail(k, SL_EKERNEL, "oneDNN refused a product in bfloat16");
}

#else

bool slp_bf16_available(void)
{
	return false;
}

enum sl_status slp_bf16_multiply(const struct slp_kernel *k, const struct slp_bf16_matrix *a,
                                 const struct slp_bf16_matrix *b, const struct slp_bf16_matrix *c, bool wide)
{
	(void)a;
	(void)b;
	(void)c;
	(void)wide;
	return slp_kernel_fail(k, SL_EINTERNAL, "built without oneDNN");
}

#endif
