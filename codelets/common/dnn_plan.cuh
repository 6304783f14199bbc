/* Plans of cuDNN's graph API: descriptors that a plan owns, and the choice of an engine among those that the heuristics
 * propose. */
#ifndef SLP_DNN_PLAN_CUH
#define SLP_DNN_PLAN_CUH

#include <cuda_runtime_api.h>

#include "cuda_libs.h"

typedef cudnnBackendDescriptor_t slp_dnn_descriptor;

enum { SLP_DNN_MOST = 128, SLP_DNN_PROPOSALS = 16, SLP_DNN_ALIGNMENT = 16 };

/* What was made; plan NULL: nothing that will do. */
struct slp_dnn_plan {
	slp_dnn_descriptor all[SLP_DNN_MOST], plan;
	int count;

	void clear()
	{
		while (count) slp_dnn_graph.cudnnBackendDestroyDescriptor(all[--count]);
		plan = NULL;
	}
};

/* Makes descriptors that m owns.  After a failure nothing is made any more. */
struct slp_dnn_builder {
	slp_dnn_plan *m;
	bool ok;

	slp_dnn_descriptor make(cudnnBackendDescriptorType_t type)
	{
		slp_dnn_descriptor d = NULL;
		ok = ok && m->count < SLP_DNN_MOST &&
		     slp_dnn_graph.cudnnBackendCreateDescriptor(type, &d) == CUDNN_STATUS_SUCCESS;
		if (ok) m->all[m->count++] = d;
		return d;
	}
	void drop()
	{
		slp_dnn_graph.cudnnBackendDestroyDescriptor(m->all[--m->count]);
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
	bool get(slp_dnn_descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
	         int64_t *n, void *to)
	{
		return ok && slp_dnn_graph.cudnnBackendGetAttribute(d, name, type, most, n, to) == CUDNN_STATUS_SUCCESS;
	}
	slp_dnn_descriptor finished(slp_dnn_descriptor d)
	{
		ok = ok && slp_dnn_graph.cudnnBackendFinalize(d) == CUDNN_STATUS_SUCCESS;
		return d;
	}

	/* Whether the engine gives the same bits each time, of products that are summed up in float32. */
	bool is_exact(slp_dnn_descriptor config)
	{
		cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
		int64_t n = 0;
		slp_dnn_descriptor engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
		if (!engine) return false;
		bool good = get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) &&
		            get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
		                CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, notes);
		for (int64_t i = 0; good && i < n; i++)
			good = notes[i] != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC &&
			       notes[i] != CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS &&
			       notes[i] != CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
		drop();
		return good;
	}

	/* m->plan, if the engine will do in `limit` bytes of workspace. */
	bool plan(cudnnHandle_t handle, slp_dnn_descriptor config, size_t limit)
	{
		int64_t bytes = 0, n = 0;
		if (!is_exact(config)) return false;
		slp_dnn_descriptor d = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
		if (!d) return false;
		set(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
		set(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
		finished(d);
		if (get(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, &bytes) &&
		    (size_t)bytes <= limit)
			m->plan = d;
		else drop();
		ok = true; /* the next engine may do */
		return m->plan;
	}

	/* The best of those proposed in this mode that will do.  Its configuration stays as long as it does. */
	void choose(cudnnHandle_t handle, slp_dnn_descriptor graph, cudnnBackendHeurMode_t mode, size_t limit)
	{
		slp_dnn_descriptor configs[SLP_DNN_PROPOSALS], d = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
		int64_t made = 0, n = 0;
		set(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
		set(d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
		finished(d);
		while (ok && made < SLP_DNN_PROPOSALS && m->count < SLP_DNN_MOST - 2)
			if ((configs[made] = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR))) made++;
		if (!made || !get(d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n, configs))
			n = 0;
		for (int64_t i = 0; i < n && i < made && !m->plan; i++) plan(handle, configs[i], limit);
	}
};

static inline bool slp_dnn_is_recorded(void *stream)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	return cudaStreamIsCapturing((cudaStream_t)stream, &status) != cudaSuccess ||
	       status != cudaStreamCaptureStatusNone;
}

#endif
