"""More calls for mxnet_cases.py: boxes, matrices, windows over three axes, images, iterators, vocabularies."""
import os
import tempfile

import numpy

CALLS = {
    "nd": """
Convolution(a(1,2,5,4,4), a(3,2,3,2,2), a(3), kernel=(3,2,2), num_filter=3) | stride=(2,1,1), pad=(1,0,1) | dilate=(2,1,1)
Convolution(a(2,4,4,3,3), a(6,2,2,2,2), None, kernel=(2,2,2), num_filter=6, num_group=2, no_bias=True)
Deconvolution(a(1,2,3,3,3), a(2,3,2,3,2), kernel=(2,3,2), num_filter=3) | stride=(2,1,2), pad=(1,0,0), adj=(1,0,1)
Pooling(a(1,2,5,4,6), kernel=(2,2,3), pool_type="max") | stride=(2,1,2), pad=(1,0,1) | pooling_convention="full", stride=(2,2,2)
Pooling(a(1,2,5,4,6), kernel=(2,2,3), pool_type="avg") | stride=(2,1,2), pad=(1,0,1) | stride=(2,1,2), pad=(1,0,1), count_include_pad=False
Pooling(a(1,2,5,4,6), kernel=(2,2,3), pool_type="sum", stride=(2,2,2))
Pooling(a(1,2,5,4,6), global_pool=True, kernel=(1,1,1), pool_type="avg")
CTCLoss(a(6,2,5), nd.array([[1,2,0],[3,3,4]])) | blank_label="last"
CTCLoss(a(6,2,5), nd.array([[1,2,-1],[3,3,1]]), blank_label="last")
CTCLoss(a(6,2,5), nd.array([[1,2,2],[3,3,4]]), nd.array([5,6]), nd.array([2,3]), use_data_lengths=True, use_label_lengths=True)
ROIPooling(a(2,3,8,8), nd.array([[0,0,0,4,4],[1,2,3,7,7],[0,6,6,20,20]]), pooled_size=(2,3), spatial_scale=1.0) | spatial_scale=0.5
gammaln(p(5))
gamma(p(5))
erfinv(u(5))
""",
    "nd.contrib": """
MultiBoxPrior(a(1,2,3,4), sizes=(0.5,0.3), ratios=(1,2,0.5)) | clip=True | steps=(0.2,0.3), offsets=(0.4,0.6)
MultiBoxPrior(a(1,2,3,4), sizes=(0.5,), ratios=(2.0,))
MultiBoxPrior(a(1,2,3,4))
MultiBoxTarget(boxes(6), labels(), a(2,3,6)) | overlap_threshold=0.3 | negative_mining_ratio=1.0, negative_mining_thresh=0.4 | negative_mining_ratio=1.0, minimum_negative_samples=2, ignore_label=-2.0
MultiBoxDetection(nd.softmax(a(2,3,6), axis=1), a(2,24) * 0.1, boxes(6)) | nms_threshold=0.2 | threshold=0.4 | force_suppress=True, nms_threshold=0.1 | nms_topk=3 | clip=False
box_iou(boxes(3)[0], boxes(4)[0]) | format="center"
box_nms(scored(2, 6), overlap_thresh=0.2) | id_index=0 | id_index=0, force_suppress=True | topk=3 | valid_thresh=0.3 | id_index=0, background_id=0 | in_format="center", out_format="corner" | out_format="center"
bipartite_matching(nd.array([[0.5,0.6],[0.1,0.2],[0.3,0.4]]), threshold=1e-12, is_ascend=False) | topk=1
bipartite_matching(nd.array([[0.5,0.6],[0.1,0.2],[0.3,0.4]]), threshold=0.45, is_ascend=True)
boolean_mask(a(4,3), nd.array([0,1,0,1])) 
index_copy(a(4,3), nd.array([2,0], dtype="int64"), a(2,3))
index_array(a(2,3)) | axes=(1,)
arange_like(a(2,3)) | axis=1 | start=2.0, step=0.5 | repeat=2
div_sqrt_dim(a(2,3))
quadratic(a(2,3), a=1.0, b=2.0, c=3.0)
gradientmultiplier(a(2,3), scalar=2.0)
isfinite(nd.array([1, float("inf"), float("nan")]))
isnan(nd.array([1, float("inf"), float("nan")]))
isinf(nd.array([1, float("-inf"), float("nan")]))
round_ste(a(2,3))
sign_ste(a(2,3))
AdaptiveAvgPooling2D(a(1,2,5,7), output_size=(2,3)) | output_size=1
BilinearResize2D(a(1,2,5,4), height=7, width=3) | align_corners=False
ROIAlign(a(2,3,8,8), nd.array([[0,0,0,4,4],[1,2,3,7,7.5]]), pooled_size=(2,3), spatial_scale=1.0) | sample_ratio=2, spatial_scale=0.5
interleaved_matmul_selfatt_qk(a(3,2,24), heads=2)
interleaved_matmul_selfatt_valatt(a(3,2,24), a(4,3,3), heads=2)
interleaved_matmul_encdec_qk(a(3,2,8), a(5,2,16), heads=2)
interleaved_matmul_encdec_valatt(a(5,2,16), a(4,3,5), heads=2)
box_decode(a(1,3,4) * 0.1, boxes(3)) | format="corner", std0=0.1, clip=0.05
""",
    "nd.linalg": """
potrf(definite(3))
potrf(definite(2,3))
potri(nd.linalg.potrf(definite(3)))
trsm(nd.linalg.potrf(definite(3)), a(3,2), alpha=2.0) | transpose=True
trsm(nd.linalg.potrf(definite(3)), a(2,3), rightside=True) | transpose=True
trsm(nd.linalg.potrf(definite(3)).T, a(3,2), lower=False)
trmm(a(3,3), a(3,2), alpha=2.0) | transpose=True | lower=False
trmm(a(3,3), a(2,3), rightside=True)
gelqf(a(2,4))
gelqf(a(2,2,3))
syevd(definite(3))
inverse(definite(2,3))
det(a(2,3,3))
det(a(3,3))
slogdet(a(2,3,3))
sumlogdiag(definite(2,3))
extractdiag(a(2,3,3)) | offset=1 | offset=-1
makediag(a(2,3)) | offset=1 | offset=-2
extracttrian(a(2,3,3)) | lower=False | offset=1 | offset=-1
maketrian(a(2,6)) | lower=False | offset=1 | offset=-1
gemm2(a(3,2,4), a(4,2,5), axis=0)
gemm(a(2,3), a(3,4), a(2,4), alpha=2.0, beta=0.5)
syrk(a(2,3), alpha=2.0) | transpose=True
""",
    "np.linalg": """
cholesky(np.array([[2.0, 1.0], [1.0, 3.0]]))
inv(np.array([[2.0, 1.0], [1.0, 3.0]]))
det(np.array([[2.0, 1.0], [1.0, 3.0]]))
slogdet(np.array([[2.0, 1.0], [1.0, 3.0]]))
solve(np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]))
solve(np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0], [2.0]]))
eigvalsh(np.array([[2.0, 1.0], [1.0, 3.0]]))
pinv(np.array([[2.0, 1.0], [1.0, 3.0], [0.0, 1.0]]))
""",
}

PROGRAMS = """
grad(nd.linalg.potrf, definite(3))
grad(nd.linalg.potri, nd.linalg.potrf(definite(3)))
grad(lambda x: nd.linalg.trsm(x, a(3,2)), nd.linalg.potrf(definite(3)))
grad(lambda x: nd.linalg.trsm(x, a(2,3), rightside=True, transpose=True), nd.linalg.potrf(definite(3)))
grad(lambda x: nd.linalg.trsm(nd.linalg.potrf(definite(3)), x, alpha=2.0), a(3,2))
grad(lambda x: nd.linalg.trmm(x, a(3,2), transpose=True), a(3,3))
grad(lambda x: nd.linalg.trmm(a(3,3), x, rightside=True), a(2,3))
grad(lambda x: nd.linalg.gelqf(x)[1], a(2,4))
grad(lambda x: nd.linalg.gelqf(x)[0], a(2,4))
grad(lambda x: nd.linalg.syevd(x)[1], definite(3))
grad(lambda x: nd.linalg.syevd(x)[0], definite(3))
grad(nd.linalg.inverse, definite(3))
grad(nd.linalg.det, a(2,3,3))
grad(lambda x: nd.linalg.slogdet(x)[1], a(2,3,3))
grad(nd.linalg.sumlogdiag, definite(2,3))
grad(nd.linalg.extracttrian, a(3,3))
grad(nd.linalg.maketrian, a(6))
grad(nd.gammaln, p(5))
grad(nd.gamma, p(5))
grad(nd.erfinv, u(5))
grad(lambda x: nd.CTCLoss(x, nd.array([[1,2,0],[3,3,4]])), a(6,2,5))
grad(lambda x: nd.ROIPooling(x, nd.array([[0,0,0,4,4],[1,2,3,7,7]]), pooled_size=(2,3), spatial_scale=1.0), a(2,3,8,8))
grad(lambda x: nd.contrib.ROIAlign(x, nd.array([[0,0,0,4,4],[1,2,3,7,7]]), pooled_size=(2,3), spatial_scale=1.0, sample_ratio=2), a(2,3,8,8))
grad(lambda x: nd.contrib.boolean_mask(x, nd.array([0,1,0,1])), a(4,3))
grad(lambda x: nd.contrib.box_nms(x, overlap_thresh=0.2), scored(1, 6))
grad(lambda x: nd.contrib.index_copy(x, nd.array([2,0], dtype="int64"), a(2,3)), a(4,3))
grad(lambda x: nd.contrib.BilinearResize2D(x, height=7, width=3), a(1,2,5,4))
grad(lambda x: nd.contrib.AdaptiveAvgPooling2D(x, output_size=(2,3)), a(1,2,5,7))
grad(lambda x: nd.contrib.gradientmultiplier(x, scalar=2.0), a(2,3))
grad(lambda x: nd.contrib.round_ste(x) * 2, a(2,3))
grad(lambda x: nd.Convolution(x, a(3,2,3,2,2), None, kernel=(3,2,2), num_filter=3, no_bias=True, stride=(2,1,1), pad=(1,0,1)), a(1,2,5,4,4))
grad(lambda x: nd.Convolution(a(1,2,5,4,4), x, None, kernel=(3,2,2), num_filter=3, no_bias=True, stride=(2,1,1), pad=(1,0,1)), a(3,2,3,2,2))
grad(lambda x: nd.Pooling(x, kernel=(2,2,3), pool_type="avg", stride=(2,1,2), pad=(1,0,1)), a(1,2,5,4,6))
layer('Conv3D(3, (2,3,2), strides=(1,2,1), padding=1)', (1,2,4,5,4))
layer('Conv3DTranspose(3, 2, strides=2, in_channels=2)', (1,2,3,3,3))
layer('Conv1DTranspose(3, 2, strides=2, in_channels=2)', (1,2,5))
layer('MaxPool3D(2)', (1,2,4,5,4))
layer('AvgPool3D(2, strides=1, padding=1)', (1,2,4,5,4))
layer('GlobalAvgPool3D()', (1,2,4,5,4))
layer('GlobalMaxPool3D()', (1,2,4,5,4))
layer('BatchNorm(axis=-1)', (3,4,2))
layer('LayerNorm(axis=1)', (3,4,2))
layer('LayerNorm(center=False, scale=False)', (3,4))
layer('InstanceNorm(axis=2)', (3,4,2))
layer('MaxPool2D(2, layout="NHWC")', (1,4,4,3))
layer('BatchNorm(gamma_initializer=mx.init.Constant(2.0), beta_initializer="ones")', (4,3))
layer('Dense(3, weight_initializer=mx.init.One(), bias_initializer="ones")', (2,4))
mark(a(3))
cast("float64")
cast("float16")
written("nd", "x.reshape((2, 3))")
written("nd", "nd.reshape(x, shape=(2, 3))")
written("nd", "x.expand_dims(0)")
written("nd", "nd.expand_dims(x, 0)")
written("nd", "x.reshape((1, 6)).squeeze()")
written("nd", "x.flatten()")
written("nd", "x[1:3]")
written("nd", "x.T")
written("np", "x.reshape((2, 3))  # np.array")
written("np", "np.reshape(x, (2, 3))  # np.array")
written("np", "np.expand_dims(x, 0)  # np.array")
written("np", "x.reshape((1, 6)).squeeze()  # np.array")
written("np", "x.ravel()  # np.array")
written("np", "x.flatten()  # np.array")
written("np", "x[1:3]  # np.array")
written("np", "x.T  # np.array")
written("np", "x.reshape(2, 3)[0]  # np.array")
while_loop()
image("resize", 5, 7)
image("resize", 10, 3)
image("resize", 4, 3)
image("nearest", 5, 7)
image("cubic", 5, 7)
image("cubic", 13, 17)
image("short", 5)
image("fixed")
image("center")
image("normalize")
image("transform")
io("pad")
io("discard")
io("roll_over")
embedding()
record()
""".strip().splitlines()


def names(mx, given):
    """What the calls use beside the names of mxnet_cases.py."""
    nd, numbers = mx.nd, lambda *shape: given["a"](*shape).asnumpy()

    def definite(*shape):
        m = numbers(*shape, shape[-1])
        return nd.array(m @ numpy.swapaxes(m, -1, -2) + 2 * numpy.eye(shape[-1]))

    def boxes(n):
        corners = numpy.sort(numpy.abs(numpy.tanh(numbers(n, 2, 2))), 1)
        return nd.array((corners + numpy.array([[[0.0]], [[0.1]]])[:, 0]).reshape((1, n, 4)))

    def labels():
        rows = numpy.concatenate([numpy.array([[1.0], [0.0]]), boxes(2).asnumpy()[0]], 1)
        return nd.array(numpy.stack([rows, numpy.concatenate([rows[:1], -numpy.ones((1, 5))])]))

    def scored(n, count):
        each = boxes(n * count).asnumpy().reshape((n, count, 4))
        score = numpy.linspace(0.9, 0.1, n * count).reshape((n, count))[:, [3, 0, 2, 5, 1, 4]]
        return nd.array(numpy.concatenate([numpy.arange(n * count).reshape((n, count, 1)) % 2, score[..., None], each], -1))

    def grad(function, x):
        """The gradient with respect to x of a weighted sum of the result."""
        x.attach_grad()
        with mx.autograd.record():
            y = function(x)
            z = (y * nd.array(numpy.cos(numpy.arange(y.size)).reshape(y.shape))).sum()
        z.backward()
        return x.grad

    def mark(x):
        gradient = nd.ones(x.shape)
        mx.autograd.mark_variables([x], [gradient])
        with mx.autograd.record():
            y = (x * x).sum()
        y.backward()
        return [gradient, x.grad]

    def cast(dtype):
        net = mx.gluon.nn.Dense(3, in_units=2)
        net.initialize(mx.init.One())
        net.cast(dtype)
        y = net(nd.ones((2, 2), dtype=dtype))
        return [y, net.weight.data()]

    def written(space, change):
        """An array, another one made of it, and both after the other one is written."""
        x = getattr(mx, space).arange(6)
        y = eval(change, {"x": x, "nd": nd, "np": mx.np})
        y[:] = 7
        return [x, y]

    def while_loop():
        out, last = nd.contrib.while_loop(lambda i, s: i < 3, lambda i, s: (s * i, [i + 1, s + i]), [nd.array([0]), nd.array([1])], max_iterations=5)
        return [out, *last]

    def picture(h=10, w=14):
        y, x = numpy.mgrid[:h, :w]
        return nd.array(numpy.stack([(37 * y + 11 * x) % 256, (y * x * 3) % 256, 255 - 5 * x - y], -1), dtype="uint8")

    def image(kind, *size):
        x = picture()
        if kind in ("resize", "nearest", "cubic"):
            return mx.image.imresize(x, *size, {"nearest": 0, "resize": 1, "cubic": 2}[kind])
        if kind == "short":
            return mx.image.resize_short(x, size[0], 1)
        if kind == "fixed":
            return mx.image.fixed_crop(x, 2, 1, 6, 4, (3, 3), 1)
        if kind == "center":
            return list(mx.image.center_crop(x, (5, 6), 1))
        if kind == "normalize":
            return mx.image.color_normalize(x.astype("float32"), nd.array([1, 2, 3]), nd.array([4, 5, 6]))
        transforms = mx.gluon.data.vision.transforms
        return transforms.Compose([transforms.Resize((6, 5)), transforms.CenterCrop(4), transforms.ToTensor()])(x)

    def io(handle):
        data = mx.io.NDArrayIter(numpy.arange(14).reshape(7, 2), numpy.arange(7), 3, last_batch_handle=handle)
        found = []
        for _ in range(2):
            for batch in data:
                found += [batch.data[0], batch.label[0], nd.array([batch.pad or 0])]
            data.reset()
        return found + [str(data.provide_data), str(data.provide_label)]

    def embedding():
        import collections

        text = mx.contrib.text
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "vectors.txt")
            with open(path, "w") as file:
                file.write("a 1 2 3\nb 4 5 6\nc 7 8 9\n")
            vocabulary = text.vocab.Vocabulary(collections.Counter("b c c d d d".split()), min_freq=1, reserved_tokens=["<pad>"])
            whole, part = (text.embedding.CustomEmbedding(path, vocabulary=v) for v in (None, vocabulary))
        return [whole.idx_to_token, whole.idx_to_vec, part.idx_to_token, part.idx_to_vec, whole.get_vecs_by_tokens(["A", "b"], True),
                vocabulary.to_indices(["c", "x"]), vocabulary.to_tokens([1, 2])]  # fmt: skip

    def record():
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("a.idx", "a.rec")]
            file = mx.recordio.MXIndexedRecordIO(*paths, "w")
            for i in range(3):
                file.write_idx(i, mx.recordio.pack((0, [1.0 * i, 2.0] if i else 7.0, i, 0), b"%d" % i * (i + 1) + b"\x0a\x23\xd7\xce" * i))
            file.close()
            with open(paths[1], "rb") as raw:
                whole = list(raw.read())
            file = mx.recordio.MXIndexedRecordIO(*paths, "r")
            read = [mx.recordio.unpack(file.read_idx(i)) for i in (2, 0)]
            file.close()
        return [whole, [[str(h.label), h.id, str(s)] for h, s in read]]

    return {key: value for key, value in locals().items() if callable(value) and key not in ("numbers", "picture")} | {"nn": mx.gluon.nn}
