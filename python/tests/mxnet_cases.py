"""Calls whose results MXNet 1.9.1 has recorded in mxnet-answers.txt (tools/gluon-record), and that test_answers.py compares.

A line of CALLS is a call and, after bars, more arguments, each of which makes another call.  a(shape) are normal numbers,
p(shape) positive ones, n(shape, below) whole numbers of float32, k(…, dtype) of another type; all of them are the same each time.
"""
import json

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
Dropout(a(2,3)) | p=0.9 | axes=(0,)
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


def calls():
    """All calls, as expressions."""
    found = arithmetic()
    for space, text in CALLS.items():
        for line in text.strip().splitlines():
            call, *more = (part.strip() for part in line.split(" | "))
            found.append(f"{space}.{call}")
            found += [f"{space}.{call[:-1]}, {extra})" for extra in more]
    return found


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

    def inplace(x, op, other):
        scope = {"x": x, "other": other}
        exec(f"x {op} other", scope)
        return scope["x"]

    return {
        "inplace": inplace, "mx": mx, "nd": nd, "np": np, "npx": mx.npx, "numpy": numpy, "holes": holes, "gluon": mx.gluon, "autograd": mx.autograd,
        "a": lambda *shape: nd.array(numbers(shape)),
        "p": lambda *shape: nd.array(abs(numbers(shape)) + numpy.float32(0.1)),
        "u": lambda *shape: nd.array(numpy.tanh(numbers(shape))),
        "n": lambda *shape: nd.array(integers(shape[:-1], shape[-1])),
        "k": lambda *shape, dtype: nd.array(integers(shape[:-1], shape[-1]), dtype=dtype),
        "d": lambda *shape: np.array(numbers(shape)),
        "q": lambda *shape: np.array(integers(shape[:-1], shape[-1]), dtype="int32"),
    }  # fmt: skip


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
        if call.startswith(("np.", "npx.")) or "np.array" in call:
            mx.npx.set_np()
        else:
            mx.npx.reset_np()
        yield call, json.dumps(answer_to(call, names))
    mx.npx.reset_np()
