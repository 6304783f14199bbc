/* Emulated GPUs: what an operation graph of cuDNN computes (cudnn_graph.cc), plainly.  The sums are those of cudnn.cc, in the
 * same order. */
#ifndef EMU_CUDNN_COMPUTATION_H
#define EMU_CUDNN_COMPUTATION_H

#include <cstring>

#include <cudnn.h>

#include "half_types.h"

struct tensor {
	cudnnDataType_t type;
	int64_t number, dim[4], stride[4];
	bool within, by_value;

	int64_t at(int64_t n, int64_t c, int64_t h, int64_t w) const
	{
		return n * stride[0] + c * stride[1] + h * stride[2] + w * stride[3];
	}
	bool is_last() const
	{
		return dim[1] > 1 && stride[1] == 1 && stride[3] != 1;
	}
	bool has(int64_t n, int64_t c, int64_t h, int64_t w) const
	{
		return dim[0] == n && dim[1] == c && dim[2] == h && dim[3] == w;
	}
};

enum pass { FORWARD, DATA, FILTER };

struct computation {
	enum pass pass;
	tensor x, w, b, y;
	int64_t pad[2], stride[2], dilation[2];
	bool bias, relu;
	cudnnHandle_t handle;
};

struct work {
	computation c;
	void *x, *w, *b, *y; /* one of them is written */
	char *memory;
	int64_t bytes;
	double off; /* of each sum, as a part of it */

	/* Sums of products, of float32 in double precision, of half types as tensor cores have them. */
	struct sum {
		double wide;
		float single;
		void add(float a, float b)
		{
			wide += (double)a * b;
			single += a * b;
		}
		void add(const sum &part)
		{
			wide += part.wide;
			single += part.single;
		}
	};
	float rounded(const sum &s) const
	{
		return (float)((emu_is_half(c.x.type) ? s.single : s.wide) * (1 + off));
	}
	float load(const void *from, int64_t at) const
	{
		return emu_load(c.x.type, from, at);
	}
	/* Of the images that output channel k looks at. */
	int64_t first_channel(int64_t k) const
	{
		return k / (c.w.dim[0] / (c.x.dim[1] / c.w.dim[1])) * c.w.dim[1];
	}
	/* Whether place i of y and tap r meet, and where in x, along an axis. */
	bool meet(int axis, int64_t i, int64_t r, int64_t *at) const
	{
		*at = i * c.stride[axis] + r * c.dilation[axis] - c.pad[axis];
		return *at >= 0 && *at < c.x.dim[2 + axis];
	}
	float forward(int64_t n, int64_t k, int64_t i, int64_t j) const
	{
		sum s = {};
		int64_t h, v;
		for (int64_t ch = 0; ch < c.w.dim[1]; ch++)
			for (int64_t r = 0; r < c.w.dim[2]; r++)
				for (int64_t q = 0; q < c.w.dim[3]; q++)
					if (meet(0, i, r, &h) && meet(1, j, q, &v))
						s.add(load(w, c.w.at(k, ch, r, q)),
						      load(x, c.x.at(n, first_channel(k) + ch, h, v)));
		float bare = rounded(s);
		if (b) bare += load(b, c.b.at(0, k, 0, 0));
		return c.relu && bare < 0 ? 0 : bare;
	}
	/* Of x at a place: of all places of y that looked at it. */
	float data(int64_t n, int64_t channel, int64_t h, int64_t v) const
	{
		sum s = {};
		for (int64_t k = 0; k < c.w.dim[0]; k++) {
			int64_t ch = channel - first_channel(k);
			if (ch < 0 || ch >= c.w.dim[1]) continue;
			for (int64_t r = 0; r < c.w.dim[2]; r++)
				for (int64_t q = 0; q < c.w.dim[3]; q++) {
					int64_t i = h + c.pad[0] - r * c.dilation[0],
					        j = v + c.pad[1] - q * c.dilation[1];
					if (i < 0 || j < 0 || i % c.stride[0] || j % c.stride[1]) continue;
					i /= c.stride[0], j /= c.stride[1];
					if (i >= c.y.dim[2] || j >= c.y.dim[3]) continue;
					s.add(load(w, c.w.at(k, ch, r, q)), load(y, c.y.at(n, k, i, j)));
				}
		}
		return rounded(s);
	}
	float filter(int64_t k, int64_t ch, int64_t r, int64_t q) const
	{
		sum all = {};
		int64_t h, v;
		for (int64_t n = 0; n < c.x.dim[0]; n++) {
			sum s = {};
			for (int64_t i = 0; i < c.y.dim[2]; i++)
				for (int64_t j = 0; j < c.y.dim[3]; j++)
					if (meet(0, i, r, &h) && meet(1, j, q, &v))
						s.add(load(y, c.y.at(n, k, i, j)),
						      load(x, c.x.at(n, first_channel(k) + ch, h, v)));
			all.add(s);
		}
		return rounded(all);
	}
	static void run(void *arg)
	{
		const work &o = *(const work *)arg;
		const tensor &to = o.c.pass == FORWARD ? o.c.y : o.c.pass == DATA ? o.c.x : o.c.w;
		void *at = o.c.pass == FORWARD ? o.y : o.c.pass == DATA ? o.x : o.w;
		if (o.bytes) memset(o.memory, 0xff, (size_t)o.bytes);
		for (int64_t n = 0; n < to.dim[0]; n++)
			for (int64_t k = 0; k < to.dim[1]; k++)
				for (int64_t i = 0; i < to.dim[2]; i++)
					for (int64_t j = 0; j < to.dim[3]; j++)
						emu_store(o.c.x.type, at, to.at(n, k, i, j),
						          o.c.pass == FORWARD ? o.forward(n, k, i, j)
						          : o.c.pass == DATA  ? o.data(n, k, i, j)
						                              : o.filter(n, k, i, j));
	}
	static void drop(void *arg)
	{
		delete (work *)arg;
	}
};

#endif
