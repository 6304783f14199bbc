"""Calls whose results MXNet 1.9.1 has recorded in mxnet-answers.txt (dev/gluon-record), and that test_answers.py compares.

A line of CALLS is a call and, after bars, more arguments, each of which makes another call.  a(shape) are normal numbers,
p(shape) positive ones, n(shape, below) whole numbers of float32, k(…, dtype) of another type; all of them are the same each time.
"""
import json

import mxnet_more
import numpy

CALLS = {
    "nd": """
sum(a(2,3,4)) | axis=1 | axis=(0,2) | axis=(0,2), keepdims=True | axis=1, exclude=True | axis=(0,-1), exclude=True, keepdims=True | axis=()
mean(a(2,3,4)) | axis=1 | axis=(0,2), keepdims=True | axis=1, exclude=True | axis=-1
max(a(2,3,4)) | axis=1 | axis=(0,2), keepdims=True | axis=1, exclude=True
min(a(2,3,4)) | axis=1 | axis=(0,2), keepdims=True | axis=1, exclude=True
prod(a(2,3,4)) | axis=1 | axis=(0,2), keepdims=True | axis=1, exclude=True
nansum(holes(2,3,4)) | axis=1 | axis=(0,2), keepdims=True | axis=1, exclude=True
nanprod(holes(2,3,4)) | axis=1 | axis=(0,2), keepdims=True | axis=1, exclude=True
sum_axis(a(2,3,4)) | axis=1, exclude=True
max_axis(a(2,3,4)) | axis=1, exclude=True
min_axis(a(2,3,4)) | axis=1, keepdims=True
norm(a(2,3,4)) | ord=1 | axis=1 | ord=1, axis=(0,2) | axis=(0,1), keepdims=True | ord=1, axis=2, keepdims=True | axis=2, out_dtype="float64"
argmax(a(2,3,4)) | axis=1 | axis=-1, keepdims=True
argmin(a(2,3,4)) | axis=1 | axis=-1, keepdims=True
argmax_channel(a(3,4))
moments(a(2,3,4)) | axes=(0,) | axes=(0,2), keepdims=True
cumsum(a(2,3,4)) | axis=1 | axis=-1 | axis=0, dtype="float64"
softmax(a(2,3,4)) | axis=1 | temperature=2.0 | axis=0, temperature=0.5 | dtype="float64" | length=k(2,3,4,dtype="int32"), use_length=True | length=k(2,4,3,dtype="int32"), axis=1, use_length=True
log_softmax(a(2,3,4)) | axis=1 | temperature=2.0 | dtype="float64"
softmin(a(2,3,4)) | axis=1 | temperature=2.0 | dtype="float64"
softmax_cross_entropy(a(3,4), n(3,4))
SoftmaxActivation(a(2,3,4)) | mode="channel"
dot(a(2,3), a(3,4))
dot(a(3,2), a(3,4), transpose_a=True)
dot(a(2,3), a(4,3), transpose_b=True)
dot(a(3,2), a(4,3), transpose_a=True, transpose_b=True)
dot(a(2,3,4), a(4,5)) | forward_stype="default"
dot(a(2,3,4), a(4,5,2))
dot(a(4,3,2), a(4,5), transpose_a=True)
dot(a(2,3,4), a(5,4), transpose_b=True)
dot(a(3), a(3))
batch_dot(a(2,3,4), a(2,4,5))
batch_dot(a(2,4,3), a(2,4,5), transpose_a=True)
batch_dot(a(2,3,4), a(2,5,4), transpose_b=True)
reshape(a(2,3,4), shape=(4,6)) | reverse=True
reshape(a(2,3,4), shape=(-1,0)) | reverse=True
reshape(a(2,3,4), shape=(0,-3)) | reverse=True
reshape(a(2,3,4), shape=(-3,-2)) | reverse=True
reshape(a(8,3,4), shape=(-4,2,-1,0,0))
reshape(a(10,5,4), shape=(-1,0), reverse=True)
reshape(a(10,5,4), shape=(-1,0))
reshape(a(2,3,4), shape=(0,0,-4,2,-1)) | reverse=True
reshape(a(2,3,4), shape=(-2,))
Reshape(a(2,3,4), shape=(0,-1))
reshape(a(2,3,4), target_shape=(0,12), keep_highest=True)
reshape_like(a(2,3,4), a(6,4))
reshape_like(a(30,7), a(15,2,4), lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2)
reshape_like(a(6,4), a(2,3,4), lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2)
flatten(a(2,3,4))
Flatten(a(2,3,4))
transpose(a(2,3,4)) | axes=(1,0,2) | axes=(2,0,1) | axes=()
swapaxes(a(2,3,4), dim1=0, dim2=2)
SwapAxis(a(2,3,4), dim1=1, dim2=2)
expand_dims(a(2,3), axis=1) 
expand_dims(a(2,3), axis=-1) 
squeeze(a(1,3,1)) | axis=0 | axis=(0,2) | axis=-1
broadcast_to(a(1,3), shape=(2,3))
broadcast_to(a(1,3), shape=(2,0))
broadcast_axis(a(1,3,1), axis=(0,2), size=(2,3))
broadcast_axes(a(1,3,1), axis=0, size=2)
broadcast_like(a(1,3), a(2,3))
broadcast_like(a(1,3), a(5,2), lhs_axes=(0,), rhs_axes=(1,))
tile(a(2,3), reps=(2,)) 
tile(a(2,3), reps=(2,1,2))
repeat(a(2,3), repeats=2) | axis=1 | axis=-1
flip(a(2,3,4), axis=1)
flip(a(2,3,4), axis=(0,2))
reverse(a(2,3,4), axis=(0,2))
concat(a(2,3), a(2,3)) | dim=0 | dim=-1
Concat(a(2,3), a(2,3), dim=0)
concatenate([a(2,3), a(2,3)]) | axis=1
stack(a(2,3), a(2,3)) | axis=1 | axis=-1
split(a(2,4,6), num_outputs=2) | axis=2 | axis=0, squeeze_axis=True
SliceChannel(a(2,4,6), num_outputs=2, axis=0, squeeze_axis=True)
split_v2(a(2,4,6), indices_or_sections=2) | axis=1 | axis=0, squeeze_axis=True
split_v2(a(2,4,6), indices_or_sections=(1,3), axis=1)
slice(a(4,5,6), begin=(1,2), end=(3,5)) | step=(1,2)
slice(a(4,5,6), begin=(None,4), end=(None,0), step=(2,-1))
slice(a(4,5), begin=(-3,), end=(-1,))
crop(a(4,5), begin=(1,1), end=(3,4))
slice_axis(a(4,5), axis=1, begin=1, end=4)
slice_axis(a(4,5), axis=-1, begin=-3, end=None)
slice_like(a(4,5,6), a(2,3,4)) | axes=(0,) | axes=(0,-1)
diag(a(3,4)) | k=1 | k=-2
diag(a(3)) | k=1 | k=-2
diag(a(2,3,4)) | k=1 | axis1=1, axis2=2 | axis1=0, axis2=2, k=1
diag(a(3,4), axis1=1, axis2=0)
pad(a(1,2,3,4), mode="constant", pad_width=(0,0,0,0,1,1,2,0)) | constant_value=3
pad(a(1,2,3,4), mode="edge", pad_width=(0,0,0,0,1,1,2,0))
pad(a(1,2,3,4), mode="reflect", pad_width=(0,0,0,0,1,1,2,0))
Pad(a(1,2,3,4), mode="edge", pad_width=(0,0,0,0,0,1,2,0))
depth_to_space(a(1,8,2,3), block_size=2)
space_to_depth(a(1,2,4,6), block_size=2)
UpSampling(a(1,2,3,2), scale=2, sample_type="nearest")
UpSampling(a(1,2,3,2), scale=2, sample_type="nearest", num_args=1)
shape_array(a(2,3))
size_array(a(2,3))
where(n(2,3,2), a(2,3), a(2,3))
where(n(2,2), a(2,3), a(2,3))
take(a(4,3), n(2,2,4)) | axis=1 | axis=1, mode="wrap" | axis=-1, mode="clip"
take(a(4,3), nd.array([-1, 7])) | mode="wrap" | axis=1, mode="wrap" | axis=0, mode="clip"
pick(a(3,4), n(3,4)) | axis=1, keepdims=True | mode="wrap"
pick(a(3,4), n(4,3), axis=0) | keepdims=True
pick(a(3,4), nd.array([-1,9,2])) | mode="wrap" | mode="clip", keepdims=True
batch_take(a(3,4), k(3,4,dtype="int32"))
gather_nd(a(3,4,2), k(2,5,3,dtype="int32"))
scatter_nd(a(5), k(2,5,3,dtype="int32"), shape=(3,4))
one_hot(n(3,4), depth=5) | on_value=3.0, off_value=1.0 | dtype="int32"
one_hot(nd.array([-1, 7, 2]), depth=3)
ravel_multi_index(n(2,3,3), shape=(3,4))
sort(a(3,4)) | axis=0 | is_ascend=False | axis=None
argsort(a(3,4)) | axis=0 | is_ascend=False | dtype="int32" | axis=None
topk(a(3,4)) | k=2 | axis=0, k=2 | ret_typ="value", k=3 | ret_typ="mask", k=2 | ret_typ="both", k=2 | is_ascend=True | dtype="int32" | axis=None, k=3 | axis=0, ret_typ="mask", k=1
SequenceMask(a(4,2,3)) | sequence_length=nd.array([2,3]), use_sequence_length=True | sequence_length=nd.array([2,3]), use_sequence_length=True, value=-1 | sequence_length=nd.array([1,2,2,3]), use_sequence_length=True, axis=1
SequenceLast(a(4,2,3)) | sequence_length=nd.array([2,3]), use_sequence_length=True | axis=1 | sequence_length=nd.array([1,2,2,1]), use_sequence_length=True, axis=1
SequenceReverse(a(4,2,3)) | sequence_length=nd.array([2,3]), use_sequence_length=True | axis=0
clip(a(2,3), a_min=-0.5, a_max=0.5)
clip(a(2,3), -0.5, 0.5)
cast(a(2,3)*3, dtype="int32")
Cast(a(2,3)*300, dtype="uint8")
smooth_l1(a(2,3)) | scalar=2.0
hard_sigmoid(a(2,3)*3) | alpha=0.5 | beta=0.1
L2Normalization(a(2,3,4)) | mode="channel" | mode="spatial" | eps=0.5
LRN(a(1,5,2,2), nsize=3) | alpha=0.1 | beta=0.5, knorm=1.0
add_n(a(2,3), a(2,3), a(2,3))
FullyConnected(a(2,3,4), a(5,12), p(5), num_hidden=5)
FullyConnected(a(2,3,4), a(5,4), p(5), num_hidden=5, flatten=False)
FullyConnected(a(2,4), a(5,4), num_hidden=5, no_bias=True)
Convolution(a(1,2,5,5), a(4,2,3,3), p(4), kernel=(3,3), num_filter=4) | stride=(2,2) | pad=(1,1) | dilate=(2,2) | layout="NCHW" | cudnn_off=True, workspace=512
Convolution(a(1,4,5,5), a(4,2,3,3), kernel=(3,3), num_filter=4, num_group=2, no_bias=True)
Convolution(a(1,2,7), a(4,2,3), p(4), kernel=(3,), num_filter=4) | stride=2 | pad=1 | dilate=2 | layout="NCW"
Convolution(a(1,2,4,4,4), a(3,2,2,2,2), p(3), kernel=(2,2,2), num_filter=3) | stride=(2,2,2) | pad=(1,1,1)
Deconvolution(a(1,2,3,3), a(2,4,3,3), kernel=(3,3), num_filter=4) | stride=(2,2) | stride=(2,2), adj=(1,1) | pad=(1,1) | stride=(2,2), target_shape=(7,7) | dilate=(2,2)
Deconvolution(a(1,2,3,3), a(2,4,3,3), p(4), kernel=(3,3), num_filter=4, no_bias=False)
Deconvolution(a(1,2,5), a(2,4,3), kernel=(3,), num_filter=4, stride=(2,))
Pooling(a(1,2,5,5), kernel=(2,2)) | stride=(2,2) | pool_type="avg" | pool_type="sum" | pool_type="avg", pad=(1,1) | pool_type="avg", pad=(1,1), count_include_pad=False | stride=(2,2), pooling_convention="full" | pool_type="lp", p_value=2 | layout="NCHW" | pool_type="avg", stride=(2,2), pooling_convention="full" | stride=(2,2), pooling_convention="same"
Pooling(a(1,2,5,5), global_pool=True) | pool_type="avg" | pool_type="sum" | pool_type="lp", p_value=1
Pooling(a(1,2,7), kernel=(2,)) | stride=2 | pool_type="avg", pad=1
Pooling(a(1,2,4,4,4), kernel=(2,2,2)) | pool_type="avg", stride=(2,2,2)
Activation(a(2,3), act_type="relu")
Activation(a(2,3), act_type="sigmoid")
Activation(a(2,3), act_type="tanh")
Activation(a(2,3), act_type="softrelu")
Activation(a(2,3), act_type="softsign")
LeakyReLU(a(2,3)) | slope=0.1 | act_type="elu", slope=0.5 | act_type="selu" | act_type="gelu" | act_type="prelu", gamma=p(3)
LayerNorm(a(2,3,4), p(4), p(4)) | eps=0.5
LayerNorm(a(2,3,4), p(3), p(3), axis=1) | output_mean_var=True
InstanceNorm(a(2,3,4), p(3), p(3)) | eps=0.5
GroupNorm(a(2,4,3), p(2), p(2), num_groups=2) | eps=0.5
BatchNorm(a(2,3,4), p(3), p(3), a(3), p(3)) | fix_gamma=False | eps=0.5 | use_global_stats=True, fix_gamma=False
BatchNorm(a(2,3,4), p(4), p(4), a(4), p(4), axis=2, fix_gamma=False)
BatchNorm(a(2,3,4), p(4), p(4), a(4), p(4), axis=-1, fix_gamma=False)
BatchNorm(a(2,3,4), p(2), p(2), a(2), p(2), axis=0, fix_gamma=False)
Dropout(a(2,3)) | p=0.9 | axes=(0,) | p=0.0, mode="always"
LayerNorm(a(2,3,4) * 1e-3, p(4), p(4), eps=0.0)
InstanceNorm(a(2,3,4) * 1e-3, p(3), p(3), eps=0.0)
GroupNorm(a(2,4,3) * 1e-3, p(2), p(2), num_groups=2, eps=0.0)
BatchNorm(a(2,3,4), p(3), p(3), a(3), p(3) * 1e-6, eps=0.0, use_global_stats=True)
LeakyReLU(a(2,3), slope=0.0) | act_type="elu"
LRN(a(1,5,2,2), nsize=3, alpha=0.0) | beta=0.0 | knorm=0.0, alpha=0.5
hard_sigmoid(a(2,3), alpha=0.0) | beta=0.0
L2Normalization(a(2,3), eps=0.0)
clip(a(2,3), a_min=0.0, a_max=0.0)
pad(a(1,2,3,4), mode="constant", pad_width=(0,0,0,0,0,0,0,0), constant_value=5)
linspace(0, 0, 3)
arange(0)
full((2,), 0)
one_hot(n(3,4), depth=4, on_value=0.0, off_value=0.0)
smooth_l1(a(2,3), scalar=0.0)
Embedding(n(2,3,4), a(4,5), input_dim=4, output_dim=5) | sparse_grad=False
Embedding(nd.array([-1, 9]), a(4,5), input_dim=4, output_dim=5)
BlockGrad(a(2,3))
stop_gradient(a(2,3))
identity(a(2,3))
zeros_like(holes(2,3))
ones_like(holes(2,3))
zeros((2,3)) | dtype="int32" | stype="default"
ones((2,3)) | dtype="int32"
full((2,3), 4) | dtype="int32"
empty((2,3), dtype="int32").shape
eye(3) | M=4 | k=1 | M=4, k=-1, dtype="int32"
arange(5) | step=2 | dtype="int32"
arange(1, 7) | step=2 | repeat=2 | step=2, repeat=3, dtype="int32"
linspace(0, 1, 5) | endpoint=False | dtype="float64"
array([1, 2, 3]) | dtype="int32"
array(k(3,9,dtype="int64"))
array(a(2,3).asnumpy().astype("float64")).dtype.__name__
moveaxis(a(2,3,4), 0, 2)
moveaxis(a(2,3,4), source=(0,1), destination=(1,2))
linalg_gemm2(a(2,3), a(3,4)) | alpha=2.0
linalg_syrk(a(2,3)) | transpose=True | alpha=2.0
add(a(2,3), a(2,3))
add(a(2,3), 2)
add(2, a(2,3))
subtract(2, a(2,3))
divide(2, p(2,3))
power(2, a(2,3))
maximum(a(2,3), 0)
minimum(0, a(2,3))
equal(1, n(2,3,3))
greater(1, n(2,3,3))
lesser_equal(1, n(2,3,3))
modulo(a(2,3), 0.7)
modulo(3, a(2,3))
modulo(a(2,3), a(2,3))
power(a(2,3), a(2,3))
logical_and(n(2,3,2), n(2,3,2))
logical_or(n(2,3,2), 0)
logical_xor(1, n(2,3,2))
""",
    "nd.linalg": """
gemm2(a(2,3), a(3,4)) | alpha=2.0
gemm2(a(2,3,4), a(2,3,5), transpose_a=True)
gemm2(a(2,4,3), a(2,5,3), transpose_b=True)
gemm(a(2,3), a(3,4), a(2,4)) | alpha=2.0, beta=0.5
gemm(a(3,2), a(3,4), a(2,4), transpose_a=True)
syrk(a(2,3)) | transpose=True | alpha=0.5
""",
    "np": """
sum(d(2,3,4)) | axis=1 | axis=(0,2), keepdims=True | dtype="float64" | initial=2
mean(d(2,3,4)) | axis=1 | axis=(0,2), keepdims=True | dtype="float64"
max(d(2,3,4)) | axis=1 | keepdims=True
min(d(2,3,4)) | axis=1 | keepdims=True
prod(d(2,3)) | axis=1 | axis=0, keepdims=True | dtype="float64"
var(d(2,3,4)) | axis=1 | ddof=1 | axis=(0,2), keepdims=True, ddof=1 | dtype="float64"
std(d(2,3,4)) | axis=1 | ddof=1 | axis=(0,2), keepdims=True
argmax(d(2,3,4)) | axis=1
argmin(d(2,3,4)) | axis=1
cumsum(d(2,3)) | axis=1 | dtype="float64"
any(d(2,3) > 1) | axis=0 | axis=1, keepdims=True
all(d(2,3) > -1) | axis=0
average(d(2,3)) | axis=1 | axis=1, weights=np.array([1,2,3]) | axis=0, returned=True
sort(d(3,4)) | axis=0 | axis=None
argsort(d(3,4)) | axis=0 | axis=None
diff(d(2,5)) | n=2 | axis=0
clip(d(2,3), -0.5, 0.5)
clip(d(2,3), None, 0.5)
around(d(2,3)) | decimals=1
transpose(d(2,3,4)) | axes=(1,0,2)
reshape(d(2,3,4), (4,6)) | order="C"
reshape(d(2,3,4), (-1,6)) | order="C"
ravel(d(2,3)) | order="C"
expand_dims(d(2,3), axis=1)
expand_dims(d(2,3), axis=(0,2))
squeeze(d(1,3,1)) | axis=0 | axis=(0,2)
swapaxes(d(2,3,4), 0, 2)
broadcast_to(d(1,3), (2,3))
concatenate([d(2,3), d(2,3)]) | axis=1 | axis=None
stack([d(2,3), d(2,3)]) | axis=1 | axis=-1
vstack([d(3), d(3)])
hstack([d(2,3), d(2,3)])
hstack([d(3), d(3)])
dstack([d(2,3), d(2,3)])
column_stack([d(3), d(3)])
split(d(4,6), 2) | axis=1
split(d(4,6), (1,3))
array_split(d(5,2), 3)
hsplit(d(4,6), 2)
vsplit(d(4,6), 2)
take(d(4,3), q(2,4)) | axis=0 | axis=1, mode="wrap" | axis=0, mode="clip"
where(d(2,3) > 0, d(2,3), np.zeros((2,3)))
where(d(2,3) > 0, 1.0, d(2,3))
tile(d(2,3), (2,1))
repeat(d(2,3), 2) | axis=1
flip(d(2,3)) | axis=0 | axis=(0,1)
roll(d(2,3), 1) | axis=1
roll(d(2,3), (1,2), axis=(0,1))
rot90(d(2,3)) | k=2 | axes=(1,0)
moveaxis(d(2,3,4), 0, 2)
pad(d(2,3), ((1,1),(0,2))) | mode="edge" | mode="reflect" | mode="symmetric" | mode="maximum"
einsum("ij,jk->ik", d(2,3), d(3,4)) | optimize=True
tensordot(d(2,3,4), d(4,3,5), axes=([2,1],[0,1]))
tensordot(d(2,3,4), d(3,4,5))
dot(d(2,3), d(3,4))
dot(d(2,3,4), d(4))
matmul(d(2,3,4), d(2,4,5))
matmul(d(3), d(3,4))
inner(d(2,3), d(4,3))
outer(d(2), d(3))
vdot(d(2,3), d(2,3))
tril(d(3,4)) | k=1 | k=-1
triu(d(3,4)) | k=1 | k=-1
trace(d(3,4)) | offset=1
diag(d(3,4)) | k=1
diagonal(d(3,4)) | offset=1
diagonal(d(2,3,4)) | offset=1 | axis1=1, axis2=2
trace(d(2,3,4)) | offset=1, axis1=1, axis2=2
append(d(2,3), d(2,3)) | axis=0
meshgrid(d(2), d(3)) | indexing="ij"
atleast_1d(np.array(3.0))
atleast_2d(d(3))
zeros((2,3)) | dtype="int32" | order="C"
ones((2,3)) | dtype="int32"
full((2,3), 4) | dtype="int32"
full((2,3), 4.5)
full_like(d(2,3), 4) | dtype="int32"
zeros_like(d(2,3)) | dtype="int32"
ones_like(d(2,3)) | dtype="int32"
arange(5) | dtype="int32" | step=2
arange(1, 7, 2)
linspace(0, 1, 5) | endpoint=False | retstep=True | dtype="float64"
eye(3) | M=4 | k=1
identity(3) | dtype="int32"
maximum(d(2,3), 0)
minimum(d(2,3), d(2,3))
add(d(2,3), 1)
subtract(1, d(2,3))
power(d(2,3), 2)
mod(d(2,3), 0.7)
remainder(d(2,3), d(2,3))
fmod(d(2,3), 0.7)
hypot(d(2,3), d(2,3))
copysign(d(2,3), d(2,3))
equal(d(2,3), d(2,3))
greater(d(2,3), 0)
logical_and(d(2,3) > 0, d(2,3) > 1)
logical_not(d(2,3) > 0)
isnan(d(2,3))
isinf(d(2,3))
nonzero(d(2,3) > 0)
unique(q(6,3)) | return_counts=True
quantile(d(2,5), 0.5) | axis=1
percentile(d(2,5), 50) | axis=1
median(d(2,5)) | axis=1
histogram(d(20), bins=4, range=(-1, 1))
nan_to_num(d(2,3)) | nan=1.0
""",
    "npx": """
softmax(d(2,3)) | axis=0 | temperature=2.0
log_softmax(d(2,3)) | axis=0
one_hot(q(3,4), 5) | on_value=3.0, off_value=1.0
pick(d(3,4), q(3,4)) | axis=1, keepdims=True
topk(d(3,4)) | k=2 | ret_typ="value", k=2
reshape(d(2,3,4), (-2,-1))
reshape(d(2,3,4), (-1,-2)) | reverse=True
reshape(d(2,3,4), (-2,-2,-6,2,-1))
reshape(d(1,3,4), (-3,-4))
reshape(d(2,3,4), (-5,-4))
batch_dot(d(2,3,4), d(2,4,5)) | transpose_a=False
gather_nd(d(3,4), q(2,5,3))
relu(d(2,3))
sigmoid(d(2,3))
smooth_l1(d(2,3)) | scalar=2.0
arange_like(d(2,3)) | axis=1 | start=2.0, axis=0 | step=0.5, axis=1
fully_connected(d(2,3,4), d(5,12), d(5), num_hidden=5)
fully_connected(d(2,3,4), d(5,4), num_hidden=5, no_bias=True, flatten=False)
convolution(d(1,2,5,5), d(4,2,3,3), d(4), kernel=(3,3), num_filter=4) | stride=(2,2)
pooling(d(1,2,5,5), kernel=(2,2)) | pool_type="avg"
layer_norm(d(2,3,4), d(4), d(4)) | eps=0.5
batch_norm(d(2,3,4), d(3), d(3), d(3), d(3)*0+1) | fix_gamma=False
batch_norm(d(2,3,4), d(4), d(4), d(4), d(4)*0+1, axis=2)
embedding(q(2,3), d(3,5), input_dim=3, output_dim=5)
activation(d(2,3), act_type="tanh")
leaky_relu(d(2,3)) | slope=0.1
sequence_mask(d(3,2), np.array([1,2]), use_sequence_length=True) | value=-1
batch_flatten(d(2,3,4))
dropout(d(2,3)) | p=0.9
deconvolution(d(1,2,3,3), d(2,4,3,3), kernel=(3,3), num_filter=4)
""",
}
for _name in """exp log sqrt square abs relu sigmoid tanh reciprocal negative sign sin cos tan sinh cosh arcsinh arcsin arccos arctan erf log1p expm1
        log2 log10 rsqrt cbrt rcbrt floor ceil round rint trunc fix degrees radians softsign logical_not arctanh""".split():  # fmt: skip
    _domain = {"arcsin": "u", "arccos": "u", "arctanh": "u", "log": "p", "sqrt": "p", "log1p": "p", "log2": "p", "log10": "p", "rsqrt": "p"}.get(_name, "a")
    CALLS["nd"] += f"{_name}({_domain}(2,3))\n"
for _name in """exp log sqrt square abs tanh reciprocal negative sign sin cos tan sinh cosh arcsinh arctan log1p expm1 log2 log10 cbrt floor ceil
        rint trunc fix degrees radians absolute fabs rad2deg deg2rad""".split():  # fmt: skip
    CALLS["np"] += f"{_name}(abs(d(2,3)) + 0.1)\n"
for _name in """add sub mul div power maximum minimum equal not_equal lesser lesser_equal greater greater_equal hypot mod logical_and logical_or logical_xor
        plus minus""".split():  # fmt: skip
    CALLS["nd"] += f"broadcast_{_name}(p(2,1), n(1,3,2))\n"
for _name in ("add", "sub", "mul", "div"):
    CALLS["nd"] += f"elemwise_{_name}(p(2,3), p(2,3))\n"


_EDGES = {"uint8": "[200, 100, 3, 255]", "int32": "[2147483647, -2147483648, 7, -3]", "int64": "[2**62, -2**62, 2**53 - 1, -3]",
          "float16": "[1.5, -2, 3, 0.5]", "float32": "[1.5, -2, 3, 0.5]", "float64": "[1.5, -2, 3, 0.5]", "bool": "[True, False, True, True]"}  # fmt: skip


def arithmetic():
    """Operators over data types, with values at the end of what a type holds."""
    found = []
    for space, kinds in (("nd", ("uint8", "int32", "int64", "float16", "float32", "float64")), ("np", tuple(_EDGES))):
        for kind in kinds:
            x = f"{space}.array({_EDGES[kind]}, dtype={kind!r})"
            for op in ("+", "-", "*", "/", "**", "%", "==", "<"):
                second = "2" if op == "**" else "3"
                found += [f"{x} {op} {second}", f"{x} {op} 1.5", f"{second} {op} {x}"]
                if op not in ("**", "/", "%") or "float" in kind:
                    found.append(f"{x} {op} {x}")
            found += [f"-{x}", f"abs({x})", f"{space}.sum({x})", f"{space}.max({x})", f"{space}.prod({x})", f"{space}.mean({x})", f"{space}.cumsum({x}, axis=0)",
                      f"{space}.square({x})", f"{space}.maximum({x}, 5)", f"{space}.clip({x}, 2, 100)"]  # fmt: skip
            for other in kinds:
                found.append(f"{x}.astype({other!r})")
                if other != kind:
                    found += [f"{x} {op} {space}.array([1, 2, 3, 4], dtype={other!r})" for op in ("+", "*", "/", "<")]
    for op in ("+=", "-=", "*=", "/=", "**=", "%="):
        for kind in ("uint8", "int32", "float32"):
            for second in ("3", "1.5", "nd.array([1, 2, 3, 100], dtype=" + repr(kind) + ")"):
                found.append(f"inplace(nd.array({_EDGES[kind]}, dtype={kind!r}), {op!r}, {second})")
    return found


# An optimiser and its options; each is tried alone, and all with weight decay and clipping.
OPTIMIZERS = {
    "SGD": ["momentum=0.9", "lazy_update=False", "momentum=0.9, learning_rate=0.5"],
    "NAG": ["momentum=0.9", "momentum=0.5, learning_rate=0.2"],
    "Adam": ["beta1=0.5", "beta2=0.9", "epsilon=0.1", "beta1=0.0", "epsilon=0.0", "lazy_update=False"],
    "AdaGrad": ["eps=0.1"],
    "RMSProp": ["gamma1=0.5", "epsilon=0.1", "centered=True", "centered=True, gamma2=0.5", "clip_weights=0.3"],
    "AdaDelta": ["rho=0.5", "epsilon=0.1"],
    "Adamax": ["beta1=0.5", "beta2=0.9"],
    "Nadam": ["beta1=0.5", "beta2=0.9", "epsilon=0.1", "schedule_decay=0.5"],
    "Ftrl": ["lamda1=0.1", "beta=0.5"],
    "FTML": ["beta1=0.3", "beta2=0.9", "epsilon=0.1"],
    "Signum": ["momentum=0.5", "momentum=0.0", "wd_lh=0.1"],
    "LAMB": ["beta1=0.5", "epsilon=0.1", "lower_bound=0.5", "upper_bound=0.1", "bias_correction=False"],
    "DCASGD": ["lamda=0.5"],
}
_OF_ALL = ["", "learning_rate=0.05", "wd=0.1", "clip_gradient=0.02", "wd=0.3, clip_gradient=0.02", "rescale_grad=0.5", "learning_rate=0.0",
           "lr_scheduler=mx.lr_scheduler.FactorScheduler(step=1, factor=0.5, base_lr=0.1)", "begin_num_update=3"]  # fmt: skip
METRICS = ["Accuracy()", "Accuracy(axis=0)", "TopKAccuracy(top_k=2)", "MAE()", "MSE()", "RMSE()", "CrossEntropy()", "CrossEntropy(eps=0.1)",
           "NegativeLogLikelihood()", "Perplexity(ignore_label=None)", "Perplexity(ignore_label=1)", "F1()", "F1(average='micro')", "MCC()",
           "MCC(average='micro')", "PCC()", "PearsonCorrelation()", "Loss()", "CustomMetric(lambda y, p: (abs(p).sum(), p.size))",
           "CompositeEvalMetric(['mae', 'mse'])"]  # fmt: skip
LOSSES = ["L1Loss()", "L1Loss(weight=0.5)", "L1Loss(batch_axis=1)", "L2Loss()", "L2Loss(weight=0.5)", "L2Loss(batch_axis=1)", "HuberLoss()",
          "HuberLoss(rho=0.3)", "HingeLoss()", "HingeLoss(margin=0.5)", "SquaredHingeLoss()", "LogisticLoss()", "LogisticLoss(label_format='binary')",
          "SigmoidBinaryCrossEntropyLoss()", "SigmoidBCELoss(weight=2)", "KLDivLoss()", "KLDivLoss(from_logits=False)", "KLDivLoss(batch_axis=1)",
          "PoissonNLLLoss()", "PoissonNLLLoss(from_logits=False)", "PoissonNLLLoss(compute_full=True)", "SoftmaxCrossEntropyLoss(sparse_label=False)",
          "SoftmaxCrossEntropyLoss(sparse_label=False, from_logits=True)", "SoftmaxCELoss(sparse_label=False, axis=0)"]  # fmt: skip


# Layers, each with the shape of its input.
LAYERS = {
    (2, 3, 4): ["Dense(5)", "Dense(5, use_bias=False)", "Dense(5, flatten=False)", "Dense(5, activation='tanh')", "Dense(5, bias_initializer='ones')",
                "Conv1D(4, 3)", "Conv1D(4, 3, strides=2, padding=1)", "Conv1D(3, 2, groups=3, use_bias=False)", "Conv1D(4, 2, dilation=2, activation='relu')",
                "Conv1D(4, 3, layout='NWC')", "MaxPool1D()", "MaxPool1D(2, 1, 1)", "MaxPool1D(3, 2, ceil_mode=True)", "AvgPool1D(2, 1, 1, count_include_pad=False)",
                "AvgPool1D(3, 2, 1)", "GlobalAvgPool1D()", "GlobalMaxPool1D()", "BatchNorm()", "BatchNorm(axis=2)", "BatchNorm(axis=-1)", "BatchNorm(scale=False)",
                "BatchNorm(center=False)", "BatchNorm(epsilon=0.0)", "BatchNorm(momentum=0.0)", "LayerNorm(epsilon=0.0)", "InstanceNorm(epsilon=0.0)",
                "GroupNorm(3, epsilon=0.0)", "LeakyReLU(0.0)", "ELU(0.0)", "Dropout(0.0)", "Swish(0.0)", "Dense(5, weight_initializer='zeros')", "BatchNorm(epsilon=0.5)", "BatchNorm(momentum=0.5)", "BatchNorm(use_global_stats=True)",
                "BatchNorm(gamma_initializer='zeros')", "BatchNormReLU()", "BatchNormReLU(epsilon=0.5)", "LayerNorm()", "LayerNorm(axis=1)", "LayerNorm(epsilon=0.5)",
                "LayerNorm(center=False)", "LayerNorm(scale=False)", "InstanceNorm()", "InstanceNorm(scale=True, epsilon=0.5)", "InstanceNorm(axis=2)", "GroupNorm(3)",
                "GroupNorm(3, epsilon=0.5)", "GroupNorm(1, center=False, scale=False)", "LeakyReLU(0.3)", "PReLU()", "PReLU(in_channels=3)", "ELU(0.5)", "SELU()", "GELU()", "Swish(2.0)", "Flatten()",
                "Activation('softsign')", "Activation('softrelu')", "Dropout(0.9)", "Dropout(0.5, axes=(1,))", "Lambda('tanh')", "HybridLambda(lambda F, x: F.relu(x))"],
    (2, 3, 6, 5): ["Conv2D(4, 3)", "Conv2D(4, (3, 2), strides=(2, 1), padding=(1, 0))", "Conv2D(6, 2, groups=3, use_bias=False)", "Conv2D(4, 2, dilation=(2, 1))",
                   "Conv2D(4, 2, layout='NHWC')", "Conv2D(4, 2, activation='sigmoid', bias_initializer='ones')", "Conv2DTranspose(4, 3)",
                   "Conv2DTranspose(4, 3, strides=2, padding=1, output_padding=1)", "Conv2DTranspose(3, 2, groups=3, use_bias=False)", "MaxPool2D()", "MaxPool2D(3, 2, 1)",
                   "MaxPool2D((2, 3), (1, 2))", "MaxPool2D(3, 2, ceil_mode=True)", "MaxPool2D(layout='NHWC')", "AvgPool2D()", "AvgPool2D(3, 2, 1)",
                   "AvgPool2D(3, 2, 1, count_include_pad=False)", "AvgPool2D(3, 2, ceil_mode=True)", "GlobalAvgPool2D()", "GlobalMaxPool2D()", "GlobalAvgPool2D(layout='NHWC')", "BatchNorm(in_channels=3)",
                   "ReflectionPad2D(2)", "BatchNorm(axis=3)"],
    (4, 2, 3): ["RNN(3)", "RNN(3, activation='tanh', bidirectional=True)", "LSTM(3)", "LSTM(3, 2, layout='NTC')", "GRU(3)", "GRU(3, 2, bidirectional=True)",
                "LSTM(3, i2h_bias_initializer='ones')", "LSTM(3, projection_size=2)", "LSTM(3, state_clip_min=-0.1, state_clip_max=0.1)", "GRU(3, input_size=3)"],
}  # fmt: skip


def scenarios():
    """Training, metrics and losses."""
    found = [f"layer({text!r}, {shape}{more})" for shape, layers in LAYERS.items() for text in layers for more in ("", ", False")]
    for name, own in OPTIMIZERS.items():
        for options in _OF_ALL + own + [f"{o}, wd=0.1, clip_gradient=0.05" for o in own]:
            found.append(f"train({name!r}{options and ', '}{options})")
            if "rescale" not in options:
                found.append(f"updates({name!r}{options and ', '}{options})")
    found += [f"metric({text!r})" for text in METRICS]
    for text in LOSSES:
        found.append(f"loss({text!r})")
        found += [f"loss({text!r}, {shape})" for shape in ("(4, 1)", "(1, 3)", "(4, 3)")]
    for text in ("SoftmaxCrossEntropyLoss()", "SoftmaxCrossEntropyLoss(from_logits=True)", "SoftmaxCrossEntropyLoss(weight=0.5)"):
        found += [f"sparse_loss({text!r}, (4, 3))", f"sparse_loss({text!r}, (4, 3), (4, 1))", f"sparse_loss({text!r}, (4, 5, 3))", f"sparse_loss({text!r}, (4, 5, 3), (4, 1, 1))",
                  f"sparse_loss({text!r}, (4, 5, 3), (4, 5, 1))", f"sparse_loss({text[:-1]}{', ' if text[-2] != '(' else ''}axis=1)".replace("sparse_loss(", "sparse_loss('") + "', (4, 3, 5))"]  # fmt: skip
    found += ["gluon.loss.TripletLoss()(a(4,3), p(4,3), u(4,3))", "gluon.loss.TripletLoss(margin=3, weight=2)(a(4,3), p(4,3), u(4,3), p(4))",
              "gluon.loss.CosineEmbeddingLoss()(a(4,3), p(4,3), nd.array([1,-1,1,-1]))", "gluon.loss.CosineEmbeddingLoss(margin=0.1, weight=2)(a(4,3), p(4,3), nd.array([1,-1,1,-1]), p(4,1))",
              "gluon.loss.SigmoidBCELoss()(a(4,3), n(4,3,2), None, p(1,3))", "gluon.loss.SigmoidBCELoss(from_sigmoid=True)(nd.sigmoid(a(4,3)), n(4,3,2), p(4,1), p(1,3))"]  # fmt: skip
    return found + list(PROGRAMS)


# Pieces of programs: statements, and what they leave in y.
PROGRAMS = """
run("y = a(3,4); y[1] += 1")
run("y = a(3,4); y[0] = nd.ones((1, 4))")
run("y = a(3,4); y[0] = nd.ones((4,))")
run("y = a(3,4); y[0, 1] = nd.ones((1,))")
run("y = a(3,4); y[1, 2] += 1")
run("y = a(3,4); y[:, 1] = nd.ones((3,))")
run("y = a(3,4); y[:, 1] = nd.ones((3, 1))")
run("y = a(3,4); y[1:3] = nd.ones((1, 2, 4))")
run("y = a(3,4); y[1:3] = 5")
run("y = a(3,4); y[1] = numpy.arange(4)")
run("y = a(3,4); y[1] = [1, 2, 3, 4]")
run("y = a(3,4); y[:] = numpy.ones((1, 4))")
run("y = a(3,4); y[0] *= y[1]")
run("y = a(3,4); y[0:2] -= nd.ones((2, 4))")
run("y = a(2,3,4); y[0, 1] = nd.zeros((1, 4))")
run("y = a(2,3,4); y[0][1] = 7")
run("y = a(2,3,4); y[..., 0] = 7")
run("y = nd.arange(4); y[1] += 1")
run("y = nd.arange(4); y[2] = nd.array([9])")
run("y = a(3,4); y[nd.array([0, 2])] = nd.ones((2, 4))")
run("y = a(3,4); y[nd.array([0, 2])] += 1")
run("y = a(3,4); y[::2] = 1")
run("y = a(3,4); y[-1] = nd.ones((1, 4)); y[0:1] = y[2]")
run("y = d(3,4); y[1] += 1")
run("y = d(3,4); y[0] = np.ones((1, 4))")
run("y = d(3,4); y[0, 1] = np.array(3.0)")
run("y = d(3,4); y[0, 1] = np.ones((1,))")
run("y = d(3,4); y[y > 0] = 0")
run("y = a(3,4); x = a(2); x += 300; y = y + x[0]")
run("y = nd.array([1, 2, 3], dtype='int32') < 1.5")
run("y = nd.array([1, 2, 3], dtype='int32') == 2.5")
run("y = np.array([1, 2, 3], dtype='int32') <= 1.5")
run("y = nd.array([1, 2, 3], dtype='uint8') - 300")
run("y = nd.array([1, 2, 3], dtype='uint8') + 300")
run("y = 300 - nd.array([1, 2, 3], dtype='uint8')")
run("y = nd.take(nd.arange(20000000), nd.array([16777217, 16777219], dtype='int32'))")
run("y = nd.pick(nd.arange(20000000).reshape((1, -1)), nd.array([16777217], dtype='int32'))")
run("y = nd.take(nd.arange(20000000), nd.array([16777217], dtype='int64'))")
run("y = nd.array([16777217, 2**31 - 1], dtype='int32')")
run("y = [nd.full((1,), 16777217, dtype='int32'), nd.full((1,), 2**53 - 1, dtype='int64')]")
run("y = nd.array([2**62 + 1], dtype='int64')")
run("import pickle; y = pickle.loads(pickle.dumps(a(3,4)))")
run("import copy; y = copy.deepcopy(a(3,4)); y[0] = 1")
run("import copy; x = a(3,4); y = copy.copy(x); y[0] = 1; y = x")
run("import pickle; y = pickle.loads(pickle.dumps(d(3,4)))")
run("y = bool(numpy.all(a(3,4).asnumpy() > -9))")
run("y = bool(np.all(d(3,4) > -9))")
run("y = bool(numpy.all(nd.ones((2,2))))")
run("y = float(numpy.mean(nd.ones((2,2))))")
run("y = numpy.sqrt(a(2,3).asnumpy() ** 2)")
run("x = a(3,4); x.attach_grad(); autograd.set_recording(True); z = (x * x).sum(); autograd.set_recording(False); z.backward(); y = x.grad")
run("x = a(3,4); x.attach_grad(); autograd.set_recording(True); z = nd.sum(x, axis=1, exclude=True); autograd.set_recording(False); z.backward(); y = x.grad")
run("x = a(3,4); x.attach_grad(); autograd.set_recording(True); z = nd.dot(x, a(4,2)) % 0.5; autograd.set_recording(False); z.backward(); y = x.grad")
run("x = a(3,4); x.attach_grad(); autograd.set_recording(True); z = nd.softmax(x, k(3,5,dtype='int32'), use_length=True); autograd.set_recording(False); z.backward(a(3,4)); y = x.grad")
run("x = a(2,3,4); x.attach_grad(); autograd.set_recording(True); z = nd.LayerNorm(x, p(3), p(3), axis=1); autograd.set_recording(False); z.backward(a(2,3,4)); y = x.grad")
run("x = a(2,3,4); x.attach_grad(); autograd.set_recording(True); z = nd.Pooling(x, kernel=(2,), pool_type='lp', p_value=2); autograd.set_recording(False); z.backward(); y = x.grad")
net("n.weight.lr_mult = 0.0", 1)
net("n.weight.lr_mult = 5.0", 2)
net("t.optimizer.wd = 0.5", 1)
net("n.weight.wd_mult = 3.0", 1, wd=0.2)
net("n.bias.wd_mult = 0.0", 2, wd=0.2)
net("t.set_learning_rate(0.01)", 1, momentum=0.9)
net("t.optimizer.lr = 0.01", 1, momentum=0.9)
net("t.optimizer.clip_gradient = 0.01", 1)
net("t.optimizer.momentum = 0.1", 2, momentum=0.9)
net("t.optimizer.rescale_grad = 5", 1)
net("t.optimizer.momentum = 0.9", 1)
net("t.optimizer.momentum = 0.0", 2, momentum=0.9)
net("n.collect_params().setattr('grad_req', 'add')", 1)
net("n.collect_params('.*bias').setattr('grad_req', 'null')", 1)
net("n.weight.set_data(nd.ones((3, 4)))", 1, momentum=0.9)
net("n.weight.grad_req = 'null'; n.weight.grad_req = 'write'", 1)
several_blocks("sgd", momentum=0.9)
several_blocks("adam")
stale()
stale(True)
stale_part()
replaced()
carried("lstm")
carried("gru")
carried("rnn")
ragged()
step_modes()
""".strip().splitlines()


def calls():
    """All calls, as expressions."""
    found = arithmetic() + scenarios()
    for space, text in [*CALLS.items(), *mxnet_more.CALLS.items()]:
        for line in text.strip().splitlines():
            call, *more = (part.strip() for part in line.split(" | "))
            found.append(f"{space}.{call}")
            found += [f"{space}.{call[:-1]}, {extra})" for extra in more]
    return found + mxnet_more.PROGRAMS


def inputs(mx):
    """What the expressions use, for a face of MXNet: its arrays of the same numbers."""
    state = numpy.random.RandomState(7)
    normal, whole, nd, np = state.standard_normal(4000).astype("float32"), state.randint(0, 1 << 30, 4000), mx.nd, mx.np

    def numbers(shape):
        n = int(numpy.prod(shape))
        start = 11 * len(shape) + sum(shape)
        return normal[start : start + n].reshape(shape)

    def integers(shape, below):
        n = int(numpy.prod(shape))
        return (whole[n : 2 * n] % below).reshape(shape)

    def holes(*shape):
        values = numbers(shape).copy()
        values.reshape(-1)[::4] = numpy.nan
        return nd.array(values)

    gluon, autograd = mx.gluon, mx.autograd

    def dense():
        net = gluon.nn.Dense(3, in_units=4)
        net.initialize()
        net.weight.set_data(nd.array(numbers((3, 4))))
        net.bias.set_data(nd.array(numbers((3,))))
        return net

    def backward(nets, k, size=5):
        x, target = nd.array(numbers((size + k, 4))), nd.array(numbers((size + k, 3)))
        with autograd.record():
            losses = [gluon.loss.L2Loss()(net(x), target) for net in nets]
        autograd.backward(losses)
        return size + k

    def train(name, **options):
        """Four steps of a Trainer; the parameters."""
        net = dense()
        trainer = gluon.Trainer(net.collect_params(), name, options)
        for k in range(4):
            trainer.step(backward([net], k))
        return [net.weight.data(), net.bias.data()]

    def updates(name, **options):
        """Four updates by an optimiser alone."""
        updater, weight = mx.optimizer.get_updater(mx.optimizer.create(name, **options)), nd.array(numbers((2, 3)))
        for k in range(4):
            updater(0, nd.array(numbers((2, 3)) * (k - 1.5) + 0.1), weight)
        return weight

    def layer(text, shape, training=True):
        """The result, its gradient, and what the parameters are after a forward pass in training."""
        block = eval(f"gluon.{'rnn' if text.startswith(('RNN', 'LSTM', 'GRU')) else 'nn'}.{text}", {"gluon": gluon})
        block.initialize()
        x = nd.array(numbers(shape))
        block(x)
        params = block.collect_params()
        for name in sorted(params.keys()):
            if name.endswith("weight") or name.endswith("running_mean"):
                params[name].set_data(nd.array(numbers(params[name].shape)) * 0.5)
        x.attach_grad()
        if "Dropout" in text and training:
            mx.random.seed(3)
            with autograd.record():
                return sorted(set(numpy.round((block(x) / x).asnumpy().reshape(-1), 3).tolist()))
        with autograd.record(train_mode=training):
            y = block(x)
        if not training or "SELU" in text:  # MXNet's gradients are of training, and that of SELU is not its derivative
            return y
        y.backward()
        return [y, x.grad] + [params[n].data() for n in sorted(params.keys()) if "running" in n]

    def metric(text):
        """Two updates, reset_local, one more."""
        m = eval(f"mx.metric.{text}", {"mx": mx})
        label, pred = nd.array(integers((6,), 2)), nd.softmax(nd.array(numbers((6, 2))))
        differences = any(name in text for name in ("MAE", "MSE", "Pearson", "Custom", "Composite", "Loss"))
        given = (pred * 2, pred) if differences else (label, pred)
        m.update(*([x] for x in given))
        m.update(*([x[:3]] for x in given))
        before = m.get(), m.get_global(), m.get_name_value(), m.get_global_name_value()
        m.reset_local()
        between = m.get(), m.get_global()
        m.update(*([x[2:], x[:4]] for x in given))
        after = m.get(), m.get_global()
        m.reset()
        return json.loads(json.dumps([before, between, after, m.get_global()], default=float), parse_float=lambda v: float(f"{float(v):.5g}"))

    def loss(text, weights=None):
        """The loss and its gradient."""
        pred, label = nd.array(numbers((4, 3))), nd.array(abs(numbers((3, 4)).T))
        pred.attach_grad()
        f = eval(f"gluon.loss.{text}", {"gluon": gluon})
        with autograd.record():
            y = f(pred.abs() if "Poisson" in text else pred, label) if weights is None else f(pred.abs() if "Poisson" in text else pred, label, nd.array(abs(numbers(weights))))
        y.backward()
        return [y, pred.grad]

    def sparse_loss(text, shape, weights=None):
        axis = 1 if "axis=1" in text else len(shape) - 1
        pred, label = nd.array(numbers(shape)), nd.array(integers(shape[:axis] + shape[axis + 1 :], shape[axis]))
        pred.attach_grad()
        f = eval(f"gluon.loss.{text}", {"gluon": gluon})
        with autograd.record():
            y = f(pred, label) if weights is None else f(pred, label, nd.array(abs(numbers(weights))))
        y.backward()
        return [y, pred.grad]

    def run(program):
        scope = dict(names)
        exec(program, scope)
        return scope["y"]

    def net(change, after, **options):
        """Four steps of SGD; the program changes something after some of them."""
        n = dense()
        t = gluon.Trainer(n.collect_params(), "sgd", {"learning_rate": 0.1, **options})
        for k in range(4):
            if k == after:
                exec(change, {"n": n, "t": t, "nd": nd})
            t.step(backward([n], k))
        return [n.weight.data(), n.bias.data()]

    def several_blocks(name, **options):
        """A trainer of two blocks, and of one parameter of a third."""
        nets = [dense(), dense(), dense()]
        params = [p for n in nets[:2] for p in n.collect_params().values()] + [nets[2].bias]
        t = gluon.Trainer(params, name, options)
        for k in range(4):
            t.step(backward(nets, k))
        return [p.data() for n in nets for p in (n.weight, n.bias)]

    def stale(ignore=False):
        """A second step without a backward pass."""
        n = dense()
        t = gluon.Trainer(n.collect_params(), "adam")
        t.step(backward([n], 0))
        before, warned = n.weight.data().asnumpy(), False
        try:
            t.step(5, ignore_stale_grad=ignore)
        except UserWarning:
            warned = True
        return [warned, bool((before == n.weight.data().asnumpy()).all())]

    def stale_part():
        """A step of two blocks, of which the backward pass reached one: nothing changes."""
        nets = [dense(), dense()]
        t = gluon.Trainer([p for n in nets for p in n.collect_params().values()], "sgd")
        try:
            t.step(backward(nets[:1], 0))
        except UserWarning:
            return [nets[0].weight.data(), nets[1].weight.data()]

    def replaced():
        """A layer in the place of another one."""

        class Net(gluon.nn.HybridBlock):
            def __init__(self):
                super().__init__()
                self.output = gluon.nn.Dense(2, in_units=4)

            def hybrid_forward(self, F, x):
                return self.output(x)

        n = Net()
        n.initialize()
        n.output = dense()
        y = n(nd.array(numbers((2, 4))))
        return [y, len(list(n.collect_params())), n.output.weight.data()]

    def carried(kind):
        """Recurrent states that go on after a backward pass."""
        layer = {"lstm": gluon.rnn.LSTM, "gru": gluon.rnn.GRU, "rnn": gluon.rnn.RNN}[kind](3, input_size=4)
        layer.initialize()
        for p in layer.collect_params().values():
            p.set_data(nd.array(numbers(p.shape)) * 0.3)
        t = gluon.Trainer(layer.collect_params(), "sgd", {"learning_rate": 0.1})
        states = layer.begin_state(batch_size=2)
        for k in range(3):
            x = nd.array(numbers((5, 2, 4))) * (k + 1)
            states = [s.detach() for s in states] if k == 2 else states
            with autograd.record():
                y, states = layer(x, states)
                total = (y * y).sum()
            total.backward()
            t.step(2)
        return [y, states[0], layer.l0_i2h_weight.data()]

    def ragged():
        """Samples of different lengths, and lists of them."""
        data = gluon.data.SimpleDataset([numpy.arange(n, dtype="float32") for n in (2, 3, 1)])
        pairs = gluon.data.ArrayDataset([[1, 2], [3], [4, 5, 6]], numpy.arange(3))
        loader = gluon.data.DataLoader(data, 2, batchify_fn=lambda rows: [len(r) for r in rows])
        return [len(data), data[1], [pairs[i][0] for i in range(3)], list(loader)]

    def step_modes():
        """allreduce_grads and update in the place of step."""
        n = dense()
        t = gluon.Trainer(n.collect_params(), "sgd", {"learning_rate": 0.1}, update_on_kvstore=False)
        size = backward([n], 0)
        t.allreduce_grads()
        t.update(size)
        return n.weight.data()

    def inplace(x, op, other):
        scope = {"x": x, "other": other}
        exec(f"x {op} other", scope)
        return scope["x"]

    names = {
        "inplace": inplace, "train": train, "updates": updates, "metric": metric, "loss": loss, "sparse_loss": sparse_loss, "run": run, "net": net, "layer": layer,
        "several_blocks": several_blocks, "stale": stale, "stale_part": stale_part, "replaced": replaced, "carried": carried, "ragged": ragged,
        "step_modes": step_modes, "mx": mx, "nd": nd, "np": np, "npx": mx.npx, "numpy": numpy, "holes": holes, "gluon": mx.gluon, "autograd": mx.autograd,
        "a": lambda *shape: nd.array(numbers(shape)),
        "p": lambda *shape: nd.array(abs(numbers(shape)) + numpy.float32(0.1)),
        "u": lambda *shape: nd.array(numpy.tanh(numbers(shape))),
        "n": lambda *shape: nd.array(integers(shape[:-1], shape[-1])),
        "k": lambda *shape, dtype: nd.array(integers(shape[:-1], shape[-1]), dtype=dtype),
        "d": lambda *shape: np.array(numbers(shape)),
        "q": lambda *shape: np.array(integers(shape[:-1], shape[-1]), dtype="int32"),
    }  # fmt: skip
    return {**names, **mxnet_more.names(mx, names)}


def told(value):
    """A result as JSON can hold it."""
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        elements = value.astype("float64").reshape(-1) if value.dtype.kind in "fiub" else value.reshape(-1)
        return [value.dtype.name, list(value.shape), [float(f"{v:.6g}") if abs(v) < 1e6 or v != v else float(v) for v in elements.tolist()]]
    if isinstance(value, (list, tuple)):
        return {"list": [told(v) for v in value]}
    return {"value": value if isinstance(value, (bool, int, float, str, type(None))) else str(value)}


def answer_to(call, names):
    """What a call gives, or the error that it is."""
    try:
        return told(eval(call, dict(names)))
    except NotImplementedError as error:
        return {"refused": str(error)}
    except Exception as error:
        return {"error": type(error).__name__}


def answers(mx):
    """(call, its result as JSON) for each call."""
    names = inputs(mx)
    for call in calls():
        if call.startswith(("np.", "npx.")) or "np.array" in call or "d(3,4)" in call:
            mx.npx.set_np()
        else:
            mx.npx.reset_np()
        yield call, json.dumps(answer_to(call, names))
    mx.npx.reset_np()
