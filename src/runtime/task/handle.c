/* StarPU's interface of a buffer: a variable whose copies from and to GPUs are made here.  If one of StarPU's own
 * copies fails, the program ends; here the buffer's value is spoilt, as by a failed kernel, and its readers report
 * that.  Where programs have a limit of memory, their values get it from an arena (memory/arena.h). */
#include "config.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/place.h"
#include "runtime/task/buffer.h"
#include "runtime/task/handle.h"

#include <errno.h>

#if (defined HAVE_CUDA || defined SLP_SIMULATION) && SLP_STARPU_1_4

struct interface {
	struct starpu_variable_interface variable; /* first: StarPU takes the whole for one */
	struct slp_buffer *buffer;
};

#ifdef HAVE_CUDA

static bool is_gpu(unsigned node)
{
	return starpu_node_get_kind(node) == STARPU_CUDA_RAM;
}

static void spoil(struct slp_buffer *b, unsigned from, unsigned to, cudaError_t e)
{
	char source[SL_DEVICE_NAME_MAX], target[SL_DEVICE_NAME_MAX], text[256];
	if (atomic_load(&b->fault)) return; /* the first one is reported */
	snprintf(text, sizeof text, "a copy of %zu bytes from %s to %s failed: CUDA: %s", b->bytes,
	         slp_node_name(from, source), slp_node_name(to, target), cudaGetErrorString(e));
	atomic_store(&b->fault, slp_fault_add(SL_EDEVICE, text));
}

static cudaError_t queue(const struct interface *from, unsigned from_node, const struct interface *to, unsigned to_node,
                         cudaStream_t stream)
{
	void *source = (void *)from->variable.ptr, *target = (void *)to->variable.ptr;
	bool out = is_gpu(from_node), in = is_gpu(to_node);
	if (in && out && from_node != to_node)
		return cudaMemcpyPeerAsync(target, starpu_memory_node_get_devid(to_node), source,
		                           starpu_memory_node_get_devid(from_node), to->variable.elemsize, stream);
	return cudaMemcpyAsync(target, source, to->variable.elemsize,
	                       !in   ? cudaMemcpyDeviceToHost
	                       : out ? cudaMemcpyDeviceToDevice
	                             : cudaMemcpyHostToDevice,
	                       stream);
}

/* As StarPU does: a second, waiting attempt if the first fails. */
static cudaError_t copy(const void *from, unsigned from_node, const void *to, unsigned to_node, cudaStream_t stream)
{
	const struct interface *target = to;
	cudaError_t e = stream ? queue(from, from_node, to, to_node, stream) : cudaErrorNotReady;
	bool again = e != cudaSuccess;
	if (again) e = queue(from, from_node, to, to_node, NULL);
	if (again && e == cudaSuccess) e = cudaStreamSynchronize(NULL);
	if (e != cudaSuccess) spoil(target->buffer, from_node, to_node, e);
	cudaGetLastError(); /* it was reported; it is not the next kernel's */
	starpu_interface_data_copy(from_node, to_node, target->variable.elemsize);
	return e;
}

static int copy_async(void *from, unsigned from_node, void *to, unsigned to_node, cudaStream_t stream)
{
	copy(from, from_node, to, to_node, stream);
	return -EAGAIN; /* StarPU waits for the work in the stream */
}

static int copy_now(void *from, unsigned from_node, void *to, unsigned to_node)
{
	copy(from, from_node, to, to_node, NULL);
	return 0;
}

static void set_copies(struct starpu_data_copy_methods *m)
{
	m->ram_to_cuda = m->cuda_to_ram = m->cuda_to_cuda = copy_now;
	m->ram_to_cuda_async = m->cuda_to_ram_async = m->cuda_to_cuda_async = copy_async;
}

#else

/* Simulated copies take time only. */
static void set_copies(struct starpu_data_copy_methods *m)
{
	(void)m;
}

#endif

static starpu_ssize_t allocate(void *data, unsigned node)
{
	struct starpu_variable_interface *v = data;
	if (!slp_arena_serves(node)) return starpu_interface_variable_ops.allocate_data_on_node(data, node);
	uintptr_t memory = slp_place_get(((struct interface *)data)->buffer, node);
	if (!memory) memory = slp_arena_get(node, v->elemsize);
	if (!memory) return starpu_interface_variable_ops.allocate_data_on_node(data, node);
	v->ptr = v->dev_handle = memory;
	v->offset = 0;
	return (starpu_ssize_t)v->elemsize;
}

static void release(void *data, unsigned node)
{
	struct starpu_variable_interface *v = data;
	if (!slp_place_put(node, v->dev_handle) && !slp_arena_put(node, v->dev_handle)) {
		starpu_interface_variable_ops.free_data_on_node(data, node);
		return;
	}
	v->ptr = v->dev_handle = 0;
}

static void register_handle(starpu_data_handle_t handle, int home, void *data)
{
	starpu_interface_variable_ops.register_data_handle(handle, home, data);
	for (unsigned node = 0; node < STARPU_MAXNODES; node++)
		((struct interface *)starpu_data_get_interface_on_node(handle, node))->buffer =
		        ((struct interface *)data)->buffer;
}

/* Memory that another handle had. */
static void reuse(void *to, const void *from, unsigned node)
{
	(void)node;
	struct starpu_variable_interface *t = to;
	const struct starpu_variable_interface *f = from;
	t->ptr = f->ptr;
	t->dev_handle = f->dev_handle;
	t->offset = f->offset;
}

static struct starpu_data_interface_ops ops;

static struct starpu_data_interface_ops *interface_ops(void)
{
	static struct starpu_data_copy_methods methods;
	if (ops.interface_size) return &ops;
	methods = *starpu_interface_variable_ops.copy_methods;
	set_copies(&methods);
	ops = starpu_interface_variable_ops;
	ops.register_data_handle = register_handle;
	ops.reuse_data_on_node = reuse;
	ops.allocate_data_on_node = allocate;
	ops.free_data_on_node = release;
	ops.copy_methods = &methods;
	ops.interface_size = sizeof(struct interface);
	return &ops;
}

/* Slave processes know StarPU's interfaces only. */
static bool register_ours(starpu_data_handle_t *handle, struct slp_buffer *b, size_t bytes, void *data)
{
	if (!slp_engine.ngpus || slp_engine.nslaves) return false;
	struct interface i = {{.id = STARPU_VARIABLE_INTERFACE_ID,
	                       .ptr = (uintptr_t)data,
	                       .dev_handle = (uintptr_t)data,
	                       .elemsize = bytes},
	                      b};
	starpu_data_register(handle, data ? STARPU_MAIN_RAM : -1, &i, interface_ops());
	return true;
}

/* Memory goes back to the arena at once then, not to StarPU's list of pieces by size. */
void slp_handles_use_arenas(bool yes)
{
	interface_ops()->dontcache = yes;
}

bool slp_handles_can_use_arenas(void)
{
	return slp_engine.ngpus && !slp_engine.nslaves;
}

#else

void slp_handles_use_arenas(bool yes)
{
	(void)yes;
}

bool slp_handles_can_use_arenas(void)
{
	return false;
}

static bool register_ours(starpu_data_handle_t *handle, struct slp_buffer *b, size_t bytes, void *data)
{
	(void)handle, (void)b, (void)bytes, (void)data;
	return false;
}

#endif

static void register_data(starpu_data_handle_t *handle, struct slp_buffer *b, size_t bytes, void *data)
{
	if (!register_ours(handle, b, bytes, data))
		starpu_variable_data_register(handle, data ? STARPU_MAIN_RAM : -1, (uintptr_t)data, bytes);
}

void slp_handle_register(struct slp_buffer *b, void *data)
{
	register_data(&b->handle, b, b->spilled ? 1 : b->bytes, data); /* StarPU touches both ends */
}

void slp_handle_register_scratch(starpu_data_handle_t *handle, size_t bytes)
{
	register_data(handle, NULL, bytes, NULL);
}
