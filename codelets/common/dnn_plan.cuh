/* cuDNN's graph API: descriptors and their owner, the engines that the heuristics propose, plans and their execution. */
#ifndef SLP_DNN_PLAN_CUH
#define SLP_DNN_PLAN_CUH

#include <cuda_runtime_api.h>

#include "cuda_libs.h"

typedef cudnnBackendDescriptor_t slp_dnn_descriptor;

enum { SLP_DNN_MOST = 128, SLP_DNN_ALIGNMENT = 16 };

static inline slp_dnn_descriptor slp_dnn_new(cudnnBackendDescriptorType_t type)
{
	slp_dnn_descriptor d = NULL;
	return slp_dnn_graph.cudnnBackendCreateDescriptor(type, &d) == CUDNN_STATUS_SUCCESS ? d : NULL;
}

static inline void slp_dnn_drop(slp_dnn_descriptor d)
{
	if (d) slp_dnn_graph.cudnnBackendDestroyDescriptor(d);
}

static inline bool slp_dnn_get(slp_dnn_descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                               int64_t most, int64_t *n, void *to)
{
	return slp_dnn_graph.cudnnBackendGetAttribute(d, name, type, most, n, to) == CUDNN_STATUS_SUCCESS;
}

/* Owns descriptors that belong together. */
struct slp_dnn_owner {
	int count;
	slp_dnn_descriptor all[SLP_DNN_MOST];

	void clear()
	{
		while (count) slp_dnn_drop(all[--count]);
	}
};

/* Makes descriptors that the owner holds. After a failure it makes none. */
struct slp_dnn_builder {
	slp_dnn_owner *owner;
	bool ok;

	slp_dnn_descriptor make(cudnnBackendDescriptorType_t type)
	{
		slp_dnn_descriptor d = ok && owner->count < SLP_DNN_MOST ? slp_dnn_new(type) : NULL;
		ok = d != NULL;
		if (ok) owner->all[owner->count++] = d;
		return d;
	}
	void set(slp_dnn_descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
	         const void *values)
	{
		ok = ok && slp_dnn_graph.cudnnBackendSetAttribute(d, name, type, n, values) == CUDNN_STATUS_SUCCESS;
	}
	void set(slp_dnn_descriptor d, cudnnBackendAttributeName_t name, slp_dnn_descriptor part)
	{
		set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
	}
	slp_dnn_descriptor finished(slp_dnn_descriptor d)
	{
		ok = ok && slp_dnn_graph.cudnnBackendFinalize(d) == CUDNN_STATUS_SUCCESS;
		return d;
	}
	slp_dnn_descriptor graph(cudnnHandle_t handle, int64_t n, const slp_dnn_descriptor *operations)
	{
		slp_dnn_descriptor d = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
		set(d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
		set(d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, operations);
		return finished(d);
	}
};

/* The engines, with their knobs, that the heuristics propose in this mode, best first; returns how many. The caller
 * drops them. */
static inline int64_t slp_dnn_propose(slp_dnn_descriptor graph, cudnnBackendHeurMode_t mode, int64_t most,
                                      slp_dnn_descriptor *configs)
{
	slp_dnn_owner own;
	own.count = 0;
	slp_dnn_builder b = {&own, true};
	int64_t made = 0, n = 0;
	slp_dnn_descriptor d = b.make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	b.set(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
	b.set(d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
	b.finished(d);
	while (b.ok && made < most && (configs[made] = slp_dnn_new(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR))) made++;
	if (!made || !slp_dnn_get(d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n, configs))
		n = 0;
	while (made > n) slp_dnn_drop(configs[--made]);
	own.clear();
	return made;
}

/* An engine's plan, which the caller drops; NULL: it does not support the operation, or needs more workspace. */
static inline slp_dnn_descriptor slp_dnn_plan(cudnnHandle_t handle, slp_dnn_descriptor config, size_t limit)
{
	int64_t bytes = 0, n = 0;
	slp_dnn_owner own;
	own.count = 0;
	slp_dnn_builder b = {&own, true};
	slp_dnn_descriptor plan = b.make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	b.set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	b.set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
	b.finished(plan);
	if (b.ok && slp_dnn_get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes) &&
	    (size_t)bytes <= limit)
		return plan;
	own.clear();
	cudaGetLastError(); /* drops the errors of engines that failed */
	return NULL;
}

/* Tensors by number, and their addresses. */
static inline bool slp_dnn_execute(cudnnHandle_t handle, slp_dnn_descriptor plan, int64_t n, const int64_t *numbers,
                                   const void *const *pointers, const void *work)
{
	slp_dnn_owner own;
	own.count = 0;
	slp_dnn_builder b = {&own, true};
	slp_dnn_descriptor d = b.make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
	b.set(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, numbers);
	b.set(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers);
	b.set(d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &work);
	b.finished(d);
	b.ok = b.ok && slp_dnn_graph.cudnnBackendExecute(handle, plan, d) == CUDNN_STATUS_SUCCESS;
	own.clear();
	return b.ok;
}

static inline bool slp_dnn_is_recorded(void *stream)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	return cudaStreamIsCapturing((cudaStream_t)stream, &status) != cudaSuccess ||
	       status != cudaStreamCaptureStatusNone;
}

#endif
