/* Emulated GPUs: copies and memset. */
#include "internal.h"

/* A side of a copy: pointer, distance of rows and of slices, the device that it must be on (-1: any). */
struct side {
	char *p;
	size_t pitch, slice;
	int device;
};

enum { ANY = -1 };

/* Where the copy shall look; place: the device, or EMU_HOST. */
static char *resolve(const struct side *s, size_t span, bool on_device, bool on_host, const char *what, int *place)
{
	struct emu_device *d = emu_device_of(s->p);
	*place = d ? d->id : EMU_HOST;
	if (!d && !on_host) emu_misuse("copy: %s %p is host memory", what, (void *)s->p);
	if (d && !on_device) emu_misuse("copy: %s %p is memory of gpu:%d", what, (void *)s->p, d->id);
	if (d && s->device != ANY && s->device != d->id)
		emu_misuse("copy: %s %p is memory of gpu:%d, not gpu:%d", what, (void *)s->p, d->id, s->device);
	return d ? emu_alias(d, s->p, span, what) : s->p;
}

static cudaError_t copy(struct side to, struct side from, struct cudaExtent e, enum cudaMemcpyKind kind,
                        cudaStream_t handle, bool wait)
{
	cudaError_t error = cudaErrorNoDevice;
	if (!emu_start() || emu_fails(EMU_COPY, &error)) return emu_result(error);
	if (wait) EMU_NOT_CAPTURED;
	if (!e.width || !e.height || !e.depth) return cudaSuccess;
	bool any = kind == cudaMemcpyDefault, to_device = kind == cudaMemcpyHostToDevice,
	     to_host = kind == cudaMemcpyDeviceToHost;
	bool between = kind == cudaMemcpyDeviceToDevice, on_host = kind == cudaMemcpyHostToHost;
	size_t to_span = (e.depth - 1) * to.slice + (e.height - 1) * to.pitch + e.width;
	size_t from_span = (e.depth - 1) * from.slice + (e.height - 1) * from.pitch + e.width;
	struct CUstream_st *s = emu_stream_of(handle);
	struct emu_work *w = emu_work_new(EMU_MOVE);
	w->to = resolve(&to, to_span, any || to_device || between, any || to_host || on_host, "destination",
	                &w->target);
	w->from =
	        resolve(&from, from_span, any || to_host || between, any || to_device || on_host, "source", &w->source);
	/* As the real one: copies from or to host memory that is not pinned are not asynchronous. */
	bool pageable =
	        (w->target == EMU_HOST && !emu_is_pinned(to.p)) || (w->source == EMU_HOST && !emu_is_pinned(from.p));
	w->to_pitch = to.pitch, w->to_slice = to.slice;
	w->from_pitch = from.pitch, w->from_slice = from.slice;
	w->width = e.width, w->height = e.height, w->depth = e.depth;
	error = emu_submit(s, w);
	if (wait || pageable) emu_count_wait(wait ? EMU_WAIT_PLAIN_COPY : EMU_WAIT_PAGEABLE);
	if (wait || pageable) emu_drain(s);
	return error;
}

static struct side line(const void *p, size_t n, int device)
{
	return (struct side){(char *)p, n, 0, device};
}

static struct cudaExtent extent(size_t width, size_t height)
{
	return (struct cudaExtent){width, height, 1};
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
	return copy(line(to, n, ANY), line(from, n, ANY), extent(n, 1), kind, NULL, true);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s)
{
	return copy(line(to, n, ANY), line(from, n, ANY), extent(n, 1), kind, s, false);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
{
	return copy(line(to, to_pitch, ANY), line(from, from_pitch, ANY), extent(width, height), kind, NULL, true);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t s)
{
	return copy(line(to, to_pitch, ANY), line(from, from_pitch, ANY), extent(width, height), kind, s, false);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t n)
{
	return copy(line(to, n, to_device), line(from, n, from_device), extent(n, 1), cudaMemcpyDeviceToDevice, NULL,
	            true);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t n, cudaStream_t s)
{
	return copy(line(to, n, to_device), line(from, n, from_device), extent(n, 1), cudaMemcpyDeviceToDevice, s,
	            false);
}

static struct side box(struct cudaPitchedPtr p, struct cudaPos at, int device)
{
	size_t slice = p.pitch * p.ysize;
	return (struct side){(char *)p.ptr + at.x + p.pitch * at.y + slice * at.z, p.pitch, slice, device};
}

static cudaError_t copy_box(const struct cudaMemcpy3DPeerParms *p, cudaStream_t s, bool wait)
{
	if (p->srcArray || p->dstArray) emu_misuse("copy: arrays are not emulated");
	return copy(box(p->dstPtr, p->dstPos, p->dstDevice), box(p->srcPtr, p->srcPos, p->srcDevice), p->extent,
	            cudaMemcpyDeviceToDevice, s, wait);
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p)
{
	return copy_box(p, NULL, true);
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t s)
{
	return copy_box(p, s, false);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t s)
{
	struct side side = line(to, n, ANY);
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	struct emu_work *w = emu_work_new(EMU_SET);
	w->to = resolve(&side, n, true, false, "memset", &w->target);
	w->value = value;
	w->width = n;
	return emu_submit(emu_stream_of(s), w);
}

cudaError_t cudaMemset(void *to, int value, size_t n)
{
	EMU_NOT_CAPTURED;
	return cudaMemsetAsync(to, value, n, NULL);
}
