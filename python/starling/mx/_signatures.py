"""The signatures of MXNet 1.9.1, as dev/gluon-signatures.py reads them from MXNet itself: a line for each function and class.

name parameter parameter=default *several; a parameter without a default is an array, or is required.
"""
LINES = """\
nd.Activation data act_type out=None name=None
nd.BatchNorm data gamma beta moving_mean moving_var eps=0.001 momentum=0.9 fix_gamma=True use_global_stats=False output_mean_var=False axis=1 cudnn_off=False min_calib_range=None max_calib_range=None out=None name=None
nd.BatchNorm_v1 data gamma beta eps=0.001 momentum=0.9 fix_gamma=True use_global_stats=False output_mean_var=False out=None name=None
nd.BilinearSampler data grid cudnn_off=None out=None name=None
nd.BlockGrad data out=None name=None
nd.CTCLoss data label data_lengths label_lengths use_data_lengths=False use_label_lengths=False blank_label='first' out=None name=None
nd.CachedOp sym flags=()
nd.Cast data dtype out=None name=None
nd.Concat *data num_args dim=1 out=None name=None
nd.Convolution data weight bias kernel stride=() dilate=() pad=() num_filter num_group=1 workspace=1024 no_bias=False cudnn_tune=None cudnn_off=False layout=None out=None name=None
nd.Convolution_v1 data weight bias kernel stride=() dilate=() pad=() num_filter num_group=1 workspace=1024 no_bias=False cudnn_tune=None cudnn_off=False layout=None out=None name=None
nd.Correlation data1 data2 kernel_size=1 max_displacement=1 stride1=1 stride2=1 pad_size=0 is_multiply=True out=None name=None
nd.Crop *data num_args offset=[0,0] h_w=[0,0] center_crop=False out=None name=None
nd.Custom *data op_type out=None name=None
nd.Deconvolution data weight bias kernel stride=() dilate=() pad=() adj=() target_shape=() num_filter num_group=1 workspace=512 no_bias=True cudnn_tune=None cudnn_off=False layout=None out=None name=None
nd.Dropout data p=0.5 mode='training' axes=() cudnn_off=False out=None name=None
nd.ElementWiseSum *args out=None name=None
nd.Embedding data weight input_dim output_dim dtype='float32' sparse_grad=False out=None name=None
nd.Flatten data out=None name=None
nd.FullyConnected data weight bias num_hidden no_bias=False flatten=True out=None name=None
nd.GridGenerator data transform_type target_shape=[0,0] out=None name=None
nd.GroupNorm data gamma beta num_groups=1 eps=1e-05 output_mean_var=False out=None name=None
nd.IdentityAttachKLSparseReg data sparseness_target=0.1 penalty=0.001 momentum=0.9 out=None name=None
nd.InstanceNorm data gamma beta eps=0.001 out=None name=None
nd.L2Normalization data eps=1e-10 mode='instance' out=None name=None
nd.LRN data alpha=0.0001 beta=0.75 knorm=2.0 nsize out=None name=None
nd.LayerNorm data gamma beta axis=-1 eps=1e-05 output_mean_var=False out=None name=None
nd.LeakyReLU data gamma act_type='leaky' slope=0.25 lower_bound=0.125 upper_bound=0.334 out=None name=None
nd.LinearRegressionOutput data label grad_scale=1.0 out=None name=None
nd.LogisticRegressionOutput data label grad_scale=1.0 out=None name=None
nd.MAERegressionOutput data label grad_scale=1.0 out=None name=None
nd.MakeLoss data grad_scale=1.0 valid_thresh=0.0 normalization='null' out=None name=None
nd.NDArray handle writable=True
nd.Pad data mode pad_width constant_value=0.0 out=None name=None
nd.Pooling data kernel=() pool_type='max' global_pool=False cudnn_off=False pooling_convention='valid' stride=() pad=() p_value=None count_include_pad=None layout=None out=None name=None
nd.Pooling_v1 data kernel=() pool_type='max' global_pool=False pooling_convention='valid' stride=() pad=() out=None name=None
nd.RNN data parameters state state_cell sequence_length state_size num_layers bidirectional=False mode p=0.0 state_outputs=False projection_size=None lstm_state_clip_min=None lstm_state_clip_max=None lstm_state_clip_nan=False use_sequence_length=False out=None name=None
nd.ROIPooling data rois pooled_size spatial_scale out=None name=None
nd.Reshape data shape=() reverse=False target_shape=() keep_highest=False out=None name=None
nd.SVMOutput data label margin=1.0 regularization_coefficient=1.0 use_linear=False out=None name=None
nd.SequenceLast data sequence_length use_sequence_length=False axis=0 out=None name=None
nd.SequenceMask data sequence_length use_sequence_length=False value=0.0 axis=0 out=None name=None
nd.SequenceReverse data sequence_length use_sequence_length=False axis=0 out=None name=None
nd.SliceChannel data num_outputs axis=1 squeeze_axis=False out=None name=None
nd.Softmax data label grad_scale=1.0 ignore_label=-1.0 multi_output=False use_ignore=False preserve_shape=False normalization='null' out_grad=False smooth_alpha=0.0 out=None name=None
nd.SoftmaxActivation data mode='instance' out=None name=None
nd.SoftmaxOutput data label grad_scale=1.0 ignore_label=-1.0 multi_output=False use_ignore=False preserve_shape=False normalization='null' out_grad=False smooth_alpha=0.0 out=None name=None
nd.SpatialTransformer data loc target_shape=[0,0] transform_type sampler_type cudnn_off=None out=None name=None
nd.SwapAxis data dim1=0 dim2=0 out=None name=None
nd.UpSampling *data scale num_filter=0 sample_type multi_input_mode='concat' num_args workspace=512 out=None name=None
nd.abs data out=None name=None
nd.adam_update weight grad mean var lr beta1=0.9 beta2=0.999 epsilon=1e-08 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 lazy_update=True out=None name=None
nd.add lhs rhs
nd.add_n *args out=None name=None
nd.all_finite data init_output=True out=None name=None
nd.amp_cast data dtype out=None name=None
nd.amp_multicast *data num_outputs cast_narrow=False out=None name=None
nd.arange start stop=None step=1.0 repeat=1 infer_range=None ctx=None dtype='float32'
nd.arccos data out=None name=None
nd.arccosh data out=None name=None
nd.arcsin data out=None name=None
nd.arcsinh data out=None name=None
nd.arctan data out=None name=None
nd.arctanh data out=None name=None
nd.argmax data axis=None keepdims=False out=None name=None
nd.argmax_channel data out=None name=None
nd.argmin data axis=None keepdims=False out=None name=None
nd.argsort data axis=-1 is_ascend=True dtype='float32' out=None name=None
nd.array source_array ctx=None dtype=None
nd.batch_dot lhs rhs transpose_a=False transpose_b=False forward_stype=None out=None name=None
nd.batch_take a indices out=None name=None
nd.broadcast_add lhs rhs out=None name=None
nd.broadcast_axes data axis=() size=() out=None name=None
nd.broadcast_axis data axis=() size=() out=None name=None
nd.broadcast_div lhs rhs out=None name=None
nd.broadcast_equal lhs rhs out=None name=None
nd.broadcast_greater lhs rhs out=None name=None
nd.broadcast_greater_equal lhs rhs out=None name=None
nd.broadcast_hypot lhs rhs out=None name=None
nd.broadcast_lesser lhs rhs out=None name=None
nd.broadcast_lesser_equal lhs rhs out=None name=None
nd.broadcast_like lhs rhs lhs_axes=None rhs_axes=None out=None name=None
nd.broadcast_logical_and lhs rhs out=None name=None
nd.broadcast_logical_or lhs rhs out=None name=None
nd.broadcast_logical_xor lhs rhs out=None name=None
nd.broadcast_maximum lhs rhs out=None name=None
nd.broadcast_minimum lhs rhs out=None name=None
nd.broadcast_minus lhs rhs out=None name=None
nd.broadcast_mod lhs rhs out=None name=None
nd.broadcast_mul lhs rhs out=None name=None
nd.broadcast_not_equal lhs rhs out=None name=None
nd.broadcast_plus lhs rhs out=None name=None
nd.broadcast_power lhs rhs out=None name=None
nd.broadcast_sub lhs rhs out=None name=None
nd.broadcast_to data shape=() out=None name=None
nd.cast data dtype out=None name=None
nd.cast_storage data stype out=None name=None
nd.cbrt data out=None name=None
nd.ceil data out=None name=None
nd.choose_element_0index data index axis=-1 keepdims=False mode='clip' out=None name=None
nd.clip data a_min a_max out=None name=None
nd.col2im data output_size kernel stride=() dilate=() pad=() out=None name=None
nd.concat *data num_args dim=1 out=None name=None
nd.concatenate arrays axis=0 always_copy=True
nd.cos data out=None name=None
nd.cosh data out=None name=None
nd.crop data begin end step=() out=None name=None
nd.ctc_loss data label data_lengths label_lengths use_data_lengths=False use_label_lengths=False blank_label='first' out=None name=None
nd.cumsum a axis=None dtype=None out=None name=None
nd.degrees data out=None name=None
nd.depth_to_space data block_size out=None name=None
nd.diag data k=0 axis1=0 axis2=1 out=None name=None
nd.divide lhs rhs
nd.dot lhs rhs transpose_a=False transpose_b=False forward_stype=None out=None name=None
nd.elemwise_add lhs rhs out=None name=None
nd.elemwise_div lhs rhs out=None name=None
nd.elemwise_mul lhs rhs out=None name=None
nd.elemwise_sub lhs rhs out=None name=None
nd.empty shape ctx=None dtype=None stype=None
nd.equal lhs rhs
nd.erf data out=None name=None
nd.erfinv data out=None name=None
nd.exp data out=None name=None
nd.expand_dims data axis out=None name=None
nd.expm1 data out=None name=None
nd.eye N M=0 k=0 ctx=None dtype=None **
nd.fill_element_0index lhs mhs rhs out=None name=None
nd.fix data out=None name=None
nd.flatten data out=None name=None
nd.flip data axis out=None name=None
nd.floor data out=None name=None
nd.from_dlpack dlpack
nd.from_numpy ndarray zero_copy=True array_cls='NDArray'
nd.ftml_update weight grad d v z lr beta1=0.6 beta2=0.999 epsilon=1e-08 t wd=0.0 rescale_grad=1.0 clip_grad=-1.0 out=None name=None
nd.ftrl_update weight grad z n lr lamda1=0.01 beta=1.0 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 out=None name=None
nd.full shape val ctx=None dtype='float32' out=None
nd.gamma data out=None name=None
nd.gammaln data out=None name=None
nd.gather_nd data indices out=None name=None
nd.get_indexing_dispatch_code key
nd.get_oshape_of_gather_nd_op dshape ishape
nd.greater lhs rhs
nd.greater_equal lhs rhs
nd.hard_sigmoid data alpha=0.2 beta=0.5 out=None name=None
nd.histogram a bins=10 range=None
nd.identity data out=None name=None
nd.im2col data kernel stride=() dilate=() pad=() out=None name=None
nd.imdecode str_img clip_rect=(0,0,0,0) out=None index=0 channels=3 mean=None
nd.indexing_key_expand_implicit_axes key shape
nd.khatri_rao *args out=None name=None
nd.lamb_update_phase1 weight grad mean var beta1=0.9 beta2=0.999 epsilon=1e-06 t bias_correction=True wd rescale_grad=1.0 clip_gradient=-1.0 out=None name=None
nd.lamb_update_phase2 weight g r1 r2 lr lower_bound=-1.0 upper_bound=-1.0 out=None name=None
nd.lesser lhs rhs
nd.lesser_equal lhs rhs
nd.linalg_det A out=None name=None
nd.linalg_extractdiag A offset=0 out=None name=None
nd.linalg_extracttrian A offset=0 lower=True out=None name=None
nd.linalg_gelqf A out=None name=None
nd.linalg_gemm A B C transpose_a=False transpose_b=False alpha=1.0 beta=1.0 axis=-2 out=None name=None
nd.linalg_gemm2 A B transpose_a=False transpose_b=False alpha=1.0 axis=-2 out=None name=None
nd.linalg_inverse A out=None name=None
nd.linalg_makediag A offset=0 out=None name=None
nd.linalg_maketrian A offset=0 lower=True out=None name=None
nd.linalg_potrf A lower=True out=None name=None
nd.linalg_potri A lower=True out=None name=None
nd.linalg_slogdet A out=None name=None
nd.linalg_sumlogdiag A out=None name=None
nd.linalg_syrk A transpose=False alpha=1.0 out=None name=None
nd.linalg_trmm A B transpose=False rightside=False lower=True alpha=1.0 out=None name=None
nd.linalg_trsm A B transpose=False rightside=False lower=True alpha=1.0 out=None name=None
nd.linspace start stop num endpoint=True ctx=None dtype='float32'
nd.load fname
nd.load_frombuffer buf
nd.log data out=None name=None
nd.log10 data out=None name=None
nd.log1p data out=None name=None
nd.log2 data out=None name=None
nd.log_softmax data axis=-1 temperature=None dtype=None use_length=False out=None name=None
nd.logical_and lhs rhs
nd.logical_not data out=None name=None
nd.logical_or lhs rhs
nd.logical_xor lhs rhs
nd.make_loss data out=None name=None
nd.max data axis=None keepdims=False exclude=False out=None name=None
nd.max_axis data axis=None keepdims=False exclude=False out=None name=None
nd.maximum lhs rhs
nd.mean data axis=None keepdims=False exclude=False out=None name=None
nd.min data axis=None keepdims=False exclude=False out=None name=None
nd.min_axis data axis=None keepdims=False exclude=False out=None name=None
nd.minimum lhs rhs
nd.modulo lhs rhs
nd.moments data axes=None keepdims=False out=None name=None
nd.moveaxis tensor source destination
nd.mp_lamb_update_phase1 weight grad mean var weight32 beta1=0.9 beta2=0.999 epsilon=1e-06 t bias_correction=True wd rescale_grad=1.0 clip_gradient=-1.0 out=None name=None
nd.mp_lamb_update_phase2 weight g r1 r2 weight32 lr lower_bound=-1.0 upper_bound=-1.0 out=None name=None
nd.mp_nag_mom_update weight grad mom weight32 lr momentum=0.0 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 out=None name=None
nd.mp_sgd_mom_update weight grad mom weight32 lr momentum=0.0 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 lazy_update=True out=None name=None
nd.mp_sgd_update weight grad weight32 lr wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 lazy_update=True out=None name=None
nd.multi_all_finite *data num_arrays=1 init_output=True out=None name=None
nd.multi_lars lrs weights_sum_sq grads_sum_sq wds eta eps rescale_grad=1.0 out=None name=None
nd.multi_mp_sgd_mom_update *data lrs wds momentum=0.0 rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
nd.multi_mp_sgd_update *data lrs wds rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
nd.multi_sgd_mom_update *data lrs wds momentum=0.0 rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
nd.multi_sgd_update *data lrs wds rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
nd.multi_sum_sq *data num_arrays out=None name=None
nd.multiply lhs rhs
nd.nag_mom_update weight grad mom lr momentum=0.0 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 out=None name=None
nd.nanprod data axis=None keepdims=False exclude=False out=None name=None
nd.nansum data axis=None keepdims=False exclude=False out=None name=None
nd.negative data out=None name=None
nd.norm data ord=2 axis=None out_dtype=None keepdims=False out=None name=None
nd.normal loc=0.0 scale=1.0 shape=None ctx=None dtype=None out=None name=None
nd.not_equal lhs rhs
nd.one_hot indices depth on_value=1.0 off_value=0.0 dtype='float32' out=None name=None
nd.onehot_encode indices out
nd.ones shape ctx=None dtype=None **
nd.ones_like data out=None name=None
nd.pad data mode pad_width constant_value=0.0 out=None name=None
nd.pick data index axis=-1 keepdims=False mode='clip' out=None name=None
nd.power base exp
nd.preloaded_multi_mp_sgd_mom_update *data momentum=0.0 rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
nd.preloaded_multi_mp_sgd_update *data rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
nd.preloaded_multi_sgd_mom_update *data momentum=0.0 rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
nd.preloaded_multi_sgd_update *data rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
nd.prod data axis=None keepdims=False exclude=False out=None name=None
nd.radians data out=None name=None
nd.random_exponential lam=1.0 shape=None ctx=None dtype=None out=None name=None
nd.random_gamma alpha=1.0 beta=1.0 shape=None ctx=None dtype=None out=None name=None
nd.random_generalized_negative_binomial mu=1.0 alpha=1.0 shape=None ctx=None dtype=None out=None name=None
nd.random_negative_binomial k=1 p=1.0 shape=None ctx=None dtype=None out=None name=None
nd.random_normal loc=0.0 scale=1.0 shape=None ctx=None dtype=None out=None name=None
nd.random_pdf_dirichlet sample alpha is_log=False out=None name=None
nd.random_pdf_exponential sample lam is_log=False out=None name=None
nd.random_pdf_gamma sample alpha beta is_log=False out=None name=None
nd.random_pdf_generalized_negative_binomial sample mu alpha is_log=False out=None name=None
nd.random_pdf_negative_binomial sample k p is_log=False out=None name=None
nd.random_pdf_normal sample mu sigma is_log=False out=None name=None
nd.random_pdf_poisson sample lam is_log=False out=None name=None
nd.random_pdf_uniform sample low high is_log=False out=None name=None
nd.random_poisson lam=1.0 shape=None ctx=None dtype=None out=None name=None
nd.random_randint low high shape=None ctx=None dtype=None out=None name=None
nd.random_uniform low=0.0 high=1.0 shape=None ctx=None dtype=None out=None name=None
nd.ravel_multi_index data shape=None out=None name=None
nd.rcbrt data out=None name=None
nd.reciprocal data out=None name=None
nd.relu data out=None name=None
nd.repeat data repeats axis=None out=None name=None
nd.reset_arrays *data num_arrays out=None name=None
nd.reshape data shape=() reverse=False target_shape=() keep_highest=False out=None name=None
nd.reshape_like lhs rhs lhs_begin=None lhs_end=None rhs_begin=None rhs_end=None out=None name=None
nd.reverse data axis out=None name=None
nd.rint data out=None name=None
nd.rmsprop_update weight grad n lr gamma1=0.95 epsilon=1e-08 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 clip_weights=-1.0 out=None name=None
nd.rmspropalex_update weight grad n g delta lr gamma1=0.95 gamma2=0.9 epsilon=1e-08 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 clip_weights=-1.0 out=None name=None
nd.round data out=None name=None
nd.rsqrt data out=None name=None
nd.sample_exponential lam shape=() dtype=None out=None name=None
nd.sample_gamma alpha beta shape=() dtype=None out=None name=None
nd.sample_generalized_negative_binomial mu alpha shape=() dtype=None out=None name=None
nd.sample_multinomial data shape=() get_prob=False dtype='int32' out=None name=None
nd.sample_negative_binomial k p shape=() dtype=None out=None name=None
nd.sample_normal mu sigma shape=() dtype=None out=None name=None
nd.sample_poisson lam shape=() dtype=None out=None name=None
nd.sample_uniform low high shape=() dtype=None out=None name=None
nd.save fname data
nd.scatter_nd data indices shape out=None name=None
nd.sgd_mom_update weight grad mom lr momentum=0.0 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 lazy_update=True out=None name=None
nd.sgd_update weight grad lr wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 lazy_update=True out=None name=None
nd.shape_array data out=None name=None
nd.shuffle data out=None name=None
nd.sigmoid data out=None name=None
nd.sign data out=None name=None
nd.signsgd_update weight grad lr wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 out=None name=None
nd.signum_update weight grad mom lr momentum=0.0 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 wd_lh=0.0 out=None name=None
nd.sin data out=None name=None
nd.sinh data out=None name=None
nd.size_array data out=None name=None
nd.slice data begin end step=() out=None name=None
nd.slice_axis data axis begin end out=None name=None
nd.slice_like data shape_like axes=() out=None name=None
nd.smooth_l1 data scalar out=None name=None
nd.softmax data length axis=-1 temperature=None dtype=None use_length=False out=None name=None
nd.softmax_cross_entropy data label out=None name=None
nd.softmin data axis=-1 temperature=None dtype=None use_length=False out=None name=None
nd.softsign data out=None name=None
nd.sort data axis=-1 is_ascend=True out=None name=None
nd.space_to_depth data block_size out=None name=None
nd.split data num_outputs axis=1 squeeze_axis=False out=None name=None
nd.split_v2 ary indices_or_sections axis=0 squeeze_axis=False
nd.sqrt data out=None name=None
nd.square data out=None name=None
nd.squeeze data axis=None out=None name=None
nd.stack *data axis=0 num_args out=None name=None
nd.stop_gradient data out=None name=None
nd.subtract lhs rhs
nd.sum data axis=None keepdims=False exclude=False out=None name=None
nd.sum_axis data axis=None keepdims=False exclude=False out=None name=None
nd.swapaxes data dim1=0 dim2=0 out=None name=None
nd.take a indices axis=0 mode='clip' out=None name=None
nd.tan data out=None name=None
nd.tanh data out=None name=None
nd.tile data reps out=None name=None
nd.to_dlpack_for_read data
nd.to_dlpack_for_write data
nd.topk data axis=-1 k=1 ret_typ='indices' is_ascend=False dtype='float32' out=None name=None
nd.transpose data axes=() out=None name=None
nd.true_divide lhs rhs
nd.trunc data out=None name=None
nd.uniform low=0.0 high=1.0 shape=None ctx=None dtype=None out=None name=None
nd.unravel_index data shape=None out=None name=None
nd.waitall
nd.where condition x y out=None name=None
nd.zeros shape ctx=None dtype=None stype=None **
nd.zeros_like data out=None name=None
nd.random.NDArray handle writable=True
nd.random.current_context
nd.random.exponential scale=1 shape=None dtype=None ctx=None out=None **
nd.random.exponential_like data=None lam=None out=None name=None **
nd.random.gamma alpha=1 beta=1 shape=None dtype=None ctx=None out=None **
nd.random.gamma_like data=None alpha=None beta=None out=None name=None **
nd.random.generalized_negative_binomial mu=1 alpha=1 shape=None dtype=None ctx=None out=None **
nd.random.generalized_negative_binomial_like data=None mu=None alpha=None out=None name=None **
nd.random.multinomial data shape=None get_prob=False out=None dtype='int32' **
nd.random.negative_binomial k=1 p=1 shape=None dtype=None ctx=None out=None **
nd.random.negative_binomial_like data=None k=None p=None out=None name=None **
nd.random.normal loc=0 scale=1 shape=None dtype=None ctx=None out=None **
nd.random.normal_like data=None loc=None scale=None out=None name=None **
nd.random.poisson lam=1 shape=None dtype=None ctx=None out=None **
nd.random.poisson_like data=None lam=None out=None name=None **
nd.random.randint low high shape=None dtype=None ctx=None out=None **
nd.random.randn *shape **
nd.random.shuffle data **
nd.random.uniform low=0 high=1 shape=None dtype=None ctx=None out=None **
nd.random.uniform_like data=None low=None high=None out=None name=None **
nd.linalg.det A out=None name=None
nd.linalg.extractdiag A offset=0 out=None name=None
nd.linalg.extracttrian A offset=0 lower=True out=None name=None
nd.linalg.gelqf A out=None name=None
nd.linalg.gemm A B C transpose_a=False transpose_b=False alpha=1.0 beta=1.0 axis=-2 out=None name=None
nd.linalg.gemm2 A B transpose_a=False transpose_b=False alpha=1.0 axis=-2 out=None name=None
nd.linalg.inverse A out=None name=None
nd.linalg.makediag A offset=0 out=None name=None
nd.linalg.maketrian A offset=0 lower=True out=None name=None
nd.linalg.potrf A lower=True out=None name=None
nd.linalg.potri A lower=True out=None name=None
nd.linalg.slogdet A out=None name=None
nd.linalg.sumlogdiag A out=None name=None
nd.linalg.syevd A out=None name=None
nd.linalg.syrk A transpose=False alpha=1.0 out=None name=None
nd.linalg.trmm A B transpose=False rightside=False lower=True alpha=1.0 out=None name=None
nd.linalg.trsm A B transpose=False rightside=False lower=True alpha=1.0 out=None name=None
nd.contrib.AdaptiveAvgPooling2D data output_size=() out=None name=None
nd.contrib.BatchNormWithReLU data gamma beta moving_mean moving_var eps=0.001 momentum=0.9 fix_gamma=True use_global_stats=False output_mean_var=False axis=1 cudnn_off=False min_calib_range=None max_calib_range=None out=None name=None
nd.contrib.BilinearResize2D data like height=1 width=1 scale_height=None scale_width=None mode='size' align_corners=True out=None name=None
nd.contrib.CTCLoss data label data_lengths label_lengths use_data_lengths=False use_label_lengths=False blank_label='first' out=None name=None
nd.contrib.DeformableConvolution data offset weight bias kernel stride=() dilate=() pad=() num_filter num_group=1 num_deformable_group=1 workspace=1024 no_bias=False layout=None out=None name=None
nd.contrib.DeformablePSROIPooling data rois trans spatial_scale output_dim group_size pooled_size part_size=0 sample_per_part=1 trans_std=0.0 no_trans=False out=None name=None
nd.contrib.ModulatedDeformableConvolution data offset mask weight bias kernel stride=() dilate=() pad=() num_filter num_group=1 num_deformable_group=1 workspace=1024 no_bias=False im2col_step=64 layout=None out=None name=None
nd.contrib.MultiBoxDetection cls_prob loc_pred anchor clip=True threshold=0.01 background_id=0 nms_threshold=0.5 force_suppress=False variances=[0.1,0.1,0.2,0.2] nms_topk=-1 out=None name=None
nd.contrib.MultiBoxPrior data sizes=[1] ratios=[1] clip=False steps=[-1,-1] offsets=[0.5,0.5] out=None name=None
nd.contrib.MultiBoxTarget anchor label cls_pred overlap_threshold=0.5 ignore_label=-1.0 negative_mining_ratio=-1.0 negative_mining_thresh=0.5 minimum_negative_samples=0 variances=[0.1,0.1,0.2,0.2] out=None name=None
nd.contrib.MultiProposal cls_prob bbox_pred im_info rpn_pre_nms_top_n=6000 rpn_post_nms_top_n=300 threshold=0.7 rpn_min_size=16 scales=[4,8,16,32] ratios=[0.5,1,2] feature_stride=16 output_score=False iou_loss=False out=None name=None
nd.contrib.PSROIPooling data rois spatial_scale output_dim pooled_size group_size=0 out=None name=None
nd.contrib.Proposal cls_prob bbox_pred im_info rpn_pre_nms_top_n=6000 rpn_post_nms_top_n=300 threshold=0.7 rpn_min_size=16 scales=[4,8,16,32] ratios=[0.5,1,2] feature_stride=16 output_score=False iou_loss=False out=None name=None
nd.contrib.ROIAlign data rois pooled_size spatial_scale sample_ratio=-1 position_sensitive=False aligned=False out=None name=None
nd.contrib.RROIAlign data rois pooled_size spatial_scale sampling_ratio=-1 out=None name=None
nd.contrib.SparseEmbedding data weight input_dim output_dim dtype='float32' sparse_grad=False out=None name=None
nd.contrib.SyncBatchNorm data gamma beta moving_mean moving_var eps=0.001 momentum=0.9 fix_gamma=True use_global_stats=False output_mean_var=False ndev=1 key out=None name=None
nd.contrib.adamw_update weight grad mean var rescale_grad lr eta beta1=0.9 beta2=0.999 epsilon=1e-08 wd=0.0 clip_gradient=-1.0 out=None name=None
nd.contrib.allclose a b rtol=1e-05 atol=1e-08 equal_nan=True out=None name=None
nd.contrib.arange_like data start=0.0 step=1.0 repeat=1 ctx=None axis=None out=None name=None
nd.contrib.backward_gradientmultiplier data scalar=1.0 is_int=True out=None name=None
nd.contrib.backward_hawkesll out=None name=None **
nd.contrib.backward_index_copy out=None name=None **
nd.contrib.backward_quadratic out=None name=None **
nd.contrib.bipartite_matching data is_ascend=False threshold topk=-1 out=None name=None
nd.contrib.boolean_mask data index axis=0 out=None name=None
nd.contrib.box_decode data anchors std0=1.0 std1=1.0 std2=1.0 std3=1.0 clip=-1.0 format='center' out=None name=None
nd.contrib.box_encode samples matches anchors refs means stds out=None name=None
nd.contrib.box_iou lhs rhs format='corner' out=None name=None
nd.contrib.box_nms data overlap_thresh=0.5 valid_thresh=0.0 topk=-1 coord_start=2 score_index=1 id_index=-1 background_id=-1 force_suppress=False in_format='corner' out_format='corner' out=None name=None
nd.contrib.box_non_maximum_suppression data overlap_thresh=0.5 valid_thresh=0.0 topk=-1 coord_start=2 score_index=1 id_index=-1 background_id=-1 force_suppress=False in_format='corner' out_format='corner' out=None name=None
nd.contrib.calibrate_entropy hist hist_edges num_quantized_bins=255 out=None name=None
nd.contrib.cond pred then_func else_func
nd.contrib.count_sketch data h s out_dim processing_batch_size=32 out=None name=None
nd.contrib.ctc_loss data label data_lengths label_lengths use_data_lengths=False use_label_lengths=False blank_label='first' out=None name=None
nd.contrib.current_context
nd.contrib.dequantize data min_range max_range out_type='float32' out=None name=None
nd.contrib.dgl_adjacency data out=None name=None
nd.contrib.dgl_csr_neighbor_non_uniform_sample *seed_arrays csr_matrix probability num_args num_hops=1 num_neighbor=2 max_num_vertices=100 out=None name=None
nd.contrib.dgl_csr_neighbor_uniform_sample *seed_arrays csr_matrix num_args num_hops=1 num_neighbor=2 max_num_vertices=100 out=None name=None
nd.contrib.dgl_graph_compact *graph_data num_args return_mapping graph_sizes out=None name=None
nd.contrib.dgl_subgraph *data graph num_args return_mapping out=None name=None
nd.contrib.div_sqrt_dim data out=None name=None
nd.contrib.edge_id data u v out=None name=None
nd.contrib.fft data compute_size=128 out=None name=None
nd.contrib.foreach body data init_states
nd.contrib.getnnz data axis=None out=None name=None
nd.contrib.gradientmultiplier data scalar=1.0 is_int=True out=None name=None
nd.contrib.group_adagrad_update weight grad history lr rescale_grad=1.0 clip_gradient=-1.0 epsilon=1e-05 out=None name=None
nd.contrib.hawkesll lda alpha beta state lags marks valid_length max_time out=None name=None
nd.contrib.ifft data compute_size=128 out=None name=None
nd.contrib.index_array data axes=None out=None name=None
nd.contrib.index_copy old_tensor index_vector new_tensor out=None name=None
nd.contrib.interleaved_matmul_encdec_qk queries keys_values heads out=None name=None
nd.contrib.interleaved_matmul_encdec_valatt keys_values attention heads out=None name=None
nd.contrib.interleaved_matmul_selfatt_qk queries_keys_values heads out=None name=None
nd.contrib.interleaved_matmul_selfatt_valatt queries_keys_values attention heads out=None name=None
nd.contrib.isfinite data
nd.contrib.isinf data
nd.contrib.isnan data
nd.contrib.mp_adamw_update weight grad mean var weight32 rescale_grad lr eta beta1=0.9 beta2=0.999 epsilon=1e-08 wd=0.0 clip_gradient=-1.0 out=None name=None
nd.contrib.multi_adamw_update weights grads mean var rescale_grad lrs wds etas out=None name=None size=0
nd.contrib.multi_lamb_update weights grads mean var step_count lrs wds out=None num_tensors=0 **
nd.contrib.multi_mp_adamw_update weights grads mean var weights32 rescale_grad lrs wds etas out=None name=None size=0
nd.contrib.multi_mp_lamb_update weights grads mean var weights32 step_count lrs wds out=None num_tensors=0 **
nd.contrib.quadratic data a=0.0 b=0.0 c=0.0 out=None name=None
nd.contrib.quantize data min_range max_range out_type='uint8' out=None name=None
nd.contrib.quantize_asym data min_calib_range=None max_calib_range=None out=None name=None
nd.contrib.quantize_v2 data out_type='int8' min_calib_range=None max_calib_range=None out=None name=None
nd.contrib.quantized_act data min_data max_data act_type out=None name=None
nd.contrib.quantized_batch_norm data gamma beta moving_mean moving_var min_data max_data eps=0.001 momentum=0.9 fix_gamma=True use_global_stats=False output_mean_var=False axis=1 cudnn_off=False min_calib_range=None max_calib_range=None out=None name=None
nd.contrib.quantized_concat *data num_args dim=1 out=None name=None
nd.contrib.quantized_conv data weight bias min_data max_data min_weight max_weight min_bias max_bias kernel stride=() dilate=() pad=() num_filter num_group=1 workspace=1024 no_bias=False cudnn_tune=None cudnn_off=False layout=None out=None name=None
nd.contrib.quantized_elemwise_add lhs rhs lhs_min lhs_max rhs_min rhs_max min_calib_range=None max_calib_range=None out=None name=None
nd.contrib.quantized_elemwise_mul lhs rhs lhs_min lhs_max rhs_min rhs_max min_calib_range=None max_calib_range=None enable_float_output=False out=None name=None
nd.contrib.quantized_embedding data weight min_weight max_weight input_dim output_dim dtype='float32' sparse_grad=False out=None name=None
nd.contrib.quantized_flatten data min_data max_data out=None name=None
nd.contrib.quantized_fully_connected data weight bias min_data max_data min_weight max_weight min_bias max_bias num_hidden no_bias=False flatten=True out=None name=None
nd.contrib.quantized_pooling data min_data max_data kernel=() pool_type='max' global_pool=False cudnn_off=False pooling_convention='valid' stride=() pad=() p_value=None count_include_pad=None layout=None out=None name=None
nd.contrib.quantized_rnn data parameters state state_cell data_scale data_shift state_size num_layers bidirectional=False mode p=0.0 state_outputs=False projection_size=None lstm_state_clip_min=None lstm_state_clip_max=None lstm_state_clip_nan=False use_sequence_length=False out=None name=None
nd.contrib.rand_zipfian true_classes num_sampled range_max ctx=None
nd.contrib.requantize data min_range max_range out_type='int8' min_calib_range=None max_calib_range=None out=None name=None
nd.contrib.round_ste data out=None name=None
nd.contrib.sign_ste data out=None name=None
nd.contrib.uniform low=0 high=1 shape=None dtype=None ctx=None out=None **
nd.contrib.while_loop cond func loop_vars max_iterations=None
sym.Activation data act_type name=None attr=None out=None
sym.BatchNorm data gamma beta moving_mean moving_var eps=0.001 momentum=0.9 fix_gamma=True use_global_stats=False output_mean_var=False axis=1 cudnn_off=False min_calib_range=None max_calib_range=None name=None attr=None out=None
sym.BatchNorm_v1 data gamma beta eps=0.001 momentum=0.9 fix_gamma=True use_global_stats=False output_mean_var=False name=None attr=None out=None
sym.BilinearSampler data grid cudnn_off=None name=None attr=None out=None
sym.BlockGrad data name=None attr=None out=None
sym.CTCLoss data label data_lengths label_lengths use_data_lengths=False use_label_lengths=False blank_label='first' name=None attr=None out=None
sym.Cast data dtype name=None attr=None out=None
sym.Concat *data num_args dim=1 out=None name=None
sym.Convolution data weight bias kernel stride=() dilate=() pad=() num_filter num_group=1 workspace=1024 no_bias=False cudnn_tune=None cudnn_off=False layout=None name=None attr=None out=None
sym.Convolution_v1 data weight bias kernel stride=() dilate=() pad=() num_filter num_group=1 workspace=1024 no_bias=False cudnn_tune=None cudnn_off=False layout=None name=None attr=None out=None
sym.Correlation data1 data2 kernel_size=1 max_displacement=1 stride1=1 stride2=1 pad_size=0 is_multiply=True name=None attr=None out=None
sym.Crop *data num_args offset=[0,0] h_w=[0,0] center_crop=False out=None name=None
sym.Custom *data op_type out=None name=None
sym.Deconvolution data weight bias kernel stride=() dilate=() pad=() adj=() target_shape=() num_filter num_group=1 workspace=512 no_bias=True cudnn_tune=None cudnn_off=False layout=None name=None attr=None out=None
sym.Dropout data p=0.5 mode='training' axes=() cudnn_off=False name=None attr=None out=None
sym.ElementWiseSum *args out=None name=None
sym.Embedding data weight input_dim output_dim dtype='float32' sparse_grad=False name=None attr=None out=None
sym.Flatten data name=None attr=None out=None
sym.FullyConnected data weight bias num_hidden no_bias=False flatten=True name=None attr=None out=None
sym.GridGenerator data transform_type target_shape=[0,0] name=None attr=None out=None
sym.Group symbols create_fn='Symbol'
sym.GroupNorm data gamma beta num_groups=1 eps=1e-05 output_mean_var=False name=None attr=None out=None
sym.IdentityAttachKLSparseReg data sparseness_target=0.1 penalty=0.001 momentum=0.9 name=None attr=None out=None
sym.InstanceNorm data gamma beta eps=0.001 name=None attr=None out=None
sym.L2Normalization data eps=1e-10 mode='instance' name=None attr=None out=None
sym.LRN data alpha=0.0001 beta=0.75 knorm=2.0 nsize name=None attr=None out=None
sym.LayerNorm data gamma beta axis=-1 eps=1e-05 output_mean_var=False name=None attr=None out=None
sym.LeakyReLU data gamma act_type='leaky' slope=0.25 lower_bound=0.125 upper_bound=0.334 name=None attr=None out=None
sym.LinearRegressionOutput data label grad_scale=1.0 name=None attr=None out=None
sym.LogisticRegressionOutput data label grad_scale=1.0 name=None attr=None out=None
sym.MAERegressionOutput data label grad_scale=1.0 name=None attr=None out=None
sym.MakeLoss data grad_scale=1.0 valid_thresh=0.0 normalization='null' name=None attr=None out=None
sym.Pad data mode pad_width constant_value=0.0 name=None attr=None out=None
sym.Pooling data kernel=() pool_type='max' global_pool=False cudnn_off=False pooling_convention='valid' stride=() pad=() p_value=None count_include_pad=None layout=None name=None attr=None out=None
sym.Pooling_v1 data kernel=() pool_type='max' global_pool=False pooling_convention='valid' stride=() pad=() name=None attr=None out=None
sym.RNN data parameters state state_cell sequence_length state_size num_layers bidirectional=False mode p=0.0 state_outputs=False projection_size=None lstm_state_clip_min=None lstm_state_clip_max=None lstm_state_clip_nan=False use_sequence_length=False name=None attr=None out=None
sym.ROIPooling data rois pooled_size spatial_scale name=None attr=None out=None
sym.Reshape data shape=() reverse=False target_shape=() keep_highest=False name=None attr=None out=None
sym.SVMOutput data label margin=1.0 regularization_coefficient=1.0 use_linear=False name=None attr=None out=None
sym.SequenceLast data sequence_length use_sequence_length=False axis=0 name=None attr=None out=None
sym.SequenceMask data sequence_length use_sequence_length=False value=0.0 axis=0 name=None attr=None out=None
sym.SequenceReverse data sequence_length use_sequence_length=False axis=0 name=None attr=None out=None
sym.SliceChannel data num_outputs axis=1 squeeze_axis=False name=None attr=None out=None
sym.Softmax data label grad_scale=1.0 ignore_label=-1.0 multi_output=False use_ignore=False preserve_shape=False normalization='null' out_grad=False smooth_alpha=0.0 name=None attr=None out=None
sym.SoftmaxActivation data mode='instance' name=None attr=None out=None
sym.SoftmaxOutput data label grad_scale=1.0 ignore_label=-1.0 multi_output=False use_ignore=False preserve_shape=False normalization='null' out_grad=False smooth_alpha=0.0 name=None attr=None out=None
sym.SpatialTransformer data loc target_shape=[0,0] transform_type sampler_type cudnn_off=None name=None attr=None out=None
sym.SwapAxis data dim1=0 dim2=0 name=None attr=None out=None
sym.Symbol handle
sym.UpSampling *data scale num_filter=0 sample_type multi_input_mode='concat' num_args workspace=512 out=None name=None
sym.Variable name attr=None shape=None lr_mult=None wd_mult=None dtype=None init=None stype=None **
sym.abs data name=None attr=None out=None
sym.adam_update weight grad mean var lr beta1=0.9 beta2=0.999 epsilon=1e-08 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 lazy_update=True name=None attr=None out=None
sym.add_n *args out=None name=None
sym.all_finite data init_output=True name=None attr=None out=None
sym.amp_cast data dtype name=None attr=None out=None
sym.amp_multicast *data num_outputs cast_narrow=False out=None name=None
sym.arange start stop=None step=1.0 repeat=1 infer_range=False name=None dtype='float32' out=None name=None
sym.arccos data name=None attr=None out=None
sym.arccosh data name=None attr=None out=None
sym.arcsin data name=None attr=None out=None
sym.arcsinh data name=None attr=None out=None
sym.arctan data name=None attr=None out=None
sym.arctanh data name=None attr=None out=None
sym.argmax data axis=None keepdims=False name=None attr=None out=None
sym.argmax_channel data name=None attr=None out=None
sym.argmin data axis=None keepdims=False name=None attr=None out=None
sym.argsort data axis=-1 is_ascend=True dtype='float32' name=None attr=None out=None
sym.batch_dot lhs rhs transpose_a=False transpose_b=False forward_stype=None name=None attr=None out=None
sym.batch_take a indices name=None attr=None out=None
sym.broadcast_add lhs rhs name=None attr=None out=None
sym.broadcast_axes data axis=() size=() name=None attr=None out=None
sym.broadcast_axis data axis=() size=() name=None attr=None out=None
sym.broadcast_div lhs rhs name=None attr=None out=None
sym.broadcast_equal lhs rhs name=None attr=None out=None
sym.broadcast_greater lhs rhs name=None attr=None out=None
sym.broadcast_greater_equal lhs rhs name=None attr=None out=None
sym.broadcast_hypot lhs rhs name=None attr=None out=None
sym.broadcast_lesser lhs rhs name=None attr=None out=None
sym.broadcast_lesser_equal lhs rhs name=None attr=None out=None
sym.broadcast_like lhs rhs lhs_axes=None rhs_axes=None name=None attr=None out=None
sym.broadcast_logical_and lhs rhs name=None attr=None out=None
sym.broadcast_logical_or lhs rhs name=None attr=None out=None
sym.broadcast_logical_xor lhs rhs name=None attr=None out=None
sym.broadcast_maximum lhs rhs name=None attr=None out=None
sym.broadcast_minimum lhs rhs name=None attr=None out=None
sym.broadcast_minus lhs rhs name=None attr=None out=None
sym.broadcast_mod lhs rhs name=None attr=None out=None
sym.broadcast_mul lhs rhs name=None attr=None out=None
sym.broadcast_not_equal lhs rhs name=None attr=None out=None
sym.broadcast_plus lhs rhs name=None attr=None out=None
sym.broadcast_power lhs rhs name=None attr=None out=None
sym.broadcast_sub lhs rhs name=None attr=None out=None
sym.broadcast_to data shape=() name=None attr=None out=None
sym.cast data dtype name=None attr=None out=None
sym.cast_storage data stype name=None attr=None out=None
sym.cbrt data name=None attr=None out=None
sym.ceil data name=None attr=None out=None
sym.choose_element_0index data index axis=-1 keepdims=False mode='clip' name=None attr=None out=None
sym.clip data a_min a_max name=None attr=None out=None
sym.col2im data output_size kernel stride=() dilate=() pad=() name=None attr=None out=None
sym.concat *data num_args dim=1 out=None name=None
sym.cos data name=None attr=None out=None
sym.cosh data name=None attr=None out=None
sym.crop data begin end step=() name=None attr=None out=None
sym.ctc_loss data label data_lengths label_lengths use_data_lengths=False use_label_lengths=False blank_label='first' name=None attr=None out=None
sym.cumsum a axis=None dtype=None name=None attr=None out=None
sym.degrees data name=None attr=None out=None
sym.depth_to_space data block_size name=None attr=None out=None
sym.diag data k=0 axis1=0 axis2=1 name=None attr=None out=None
sym.dot lhs rhs transpose_a=False transpose_b=False forward_stype=None name=None attr=None out=None
sym.elemwise_add lhs rhs name=None attr=None out=None
sym.elemwise_div lhs rhs name=None attr=None out=None
sym.elemwise_mul lhs rhs name=None attr=None out=None
sym.elemwise_sub lhs rhs name=None attr=None out=None
sym.erf data name=None attr=None out=None
sym.erfinv data name=None attr=None out=None
sym.exp data name=None attr=None out=None
sym.expand_dims data axis name=None attr=None out=None
sym.expm1 data name=None attr=None out=None
sym.eye N M=0 k=0 dtype=None **
sym.fill_element_0index lhs mhs rhs name=None attr=None out=None
sym.fix data name=None attr=None out=None
sym.flatten data name=None attr=None out=None
sym.flip data axis name=None attr=None out=None
sym.floor data name=None attr=None out=None
sym.ftml_update weight grad d v z lr beta1=0.6 beta2=0.999 epsilon=1e-08 t wd=0.0 rescale_grad=1.0 clip_grad=-1.0 name=None attr=None out=None
sym.ftrl_update weight grad z n lr lamda1=0.01 beta=1.0 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 name=None attr=None out=None
sym.full shape val dtype=None **
sym.gamma data name=None attr=None out=None
sym.gammaln data name=None attr=None out=None
sym.gather_nd data indices name=None attr=None out=None
sym.hard_sigmoid data alpha=0.2 beta=0.5 name=None attr=None out=None
sym.histogram a bins=10 range=None **
sym.hypot left right
sym.identity data name=None attr=None out=None
sym.im2col data kernel stride=() dilate=() pad=() name=None attr=None out=None
sym.khatri_rao *args out=None name=None
sym.lamb_update_phase1 weight grad mean var beta1=0.9 beta2=0.999 epsilon=1e-06 t bias_correction=True wd rescale_grad=1.0 clip_gradient=-1.0 name=None attr=None out=None
sym.lamb_update_phase2 weight g r1 r2 lr lower_bound=-1.0 upper_bound=-1.0 name=None attr=None out=None
sym.linalg_det A name=None attr=None out=None
sym.linalg_extractdiag A offset=0 name=None attr=None out=None
sym.linalg_extracttrian A offset=0 lower=True name=None attr=None out=None
sym.linalg_gelqf A name=None attr=None out=None
sym.linalg_gemm A B C transpose_a=False transpose_b=False alpha=1.0 beta=1.0 axis=-2 name=None attr=None out=None
sym.linalg_gemm2 A B transpose_a=False transpose_b=False alpha=1.0 axis=-2 name=None attr=None out=None
sym.linalg_inverse A name=None attr=None out=None
sym.linalg_makediag A offset=0 name=None attr=None out=None
sym.linalg_maketrian A offset=0 lower=True name=None attr=None out=None
sym.linalg_potrf A lower=True name=None attr=None out=None
sym.linalg_potri A lower=True name=None attr=None out=None
sym.linalg_slogdet A name=None attr=None out=None
sym.linalg_sumlogdiag A name=None attr=None out=None
sym.linalg_syrk A transpose=False alpha=1.0 name=None attr=None out=None
sym.linalg_trmm A B transpose=False rightside=False lower=True alpha=1.0 name=None attr=None out=None
sym.linalg_trsm A B transpose=False rightside=False lower=True alpha=1.0 name=None attr=None out=None
sym.linspace start stop=None num endpoint=True name=None dtype='float32' out=None name=None
sym.load fname
sym.load_json json_str
sym.log data name=None attr=None out=None
sym.log10 data name=None attr=None out=None
sym.log1p data name=None attr=None out=None
sym.log2 data name=None attr=None out=None
sym.log_softmax data axis=-1 temperature=None dtype=None use_length=False name=None attr=None out=None
sym.logical_not data name=None attr=None out=None
sym.make_loss data name=None attr=None out=None
sym.max data axis=None keepdims=False exclude=False name=None attr=None out=None
sym.max_axis data axis=None keepdims=False exclude=False name=None attr=None out=None
sym.maximum left right
sym.mean data axis=None keepdims=False exclude=False name=None attr=None out=None
sym.min data axis=None keepdims=False exclude=False name=None attr=None out=None
sym.min_axis data axis=None keepdims=False exclude=False name=None attr=None out=None
sym.minimum left right
sym.moments data axes=None keepdims=False name=None attr=None out=None
sym.mp_lamb_update_phase1 weight grad mean var weight32 beta1=0.9 beta2=0.999 epsilon=1e-06 t bias_correction=True wd rescale_grad=1.0 clip_gradient=-1.0 name=None attr=None out=None
sym.mp_lamb_update_phase2 weight g r1 r2 weight32 lr lower_bound=-1.0 upper_bound=-1.0 name=None attr=None out=None
sym.mp_nag_mom_update weight grad mom weight32 lr momentum=0.0 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 name=None attr=None out=None
sym.mp_sgd_mom_update weight grad mom weight32 lr momentum=0.0 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 lazy_update=True name=None attr=None out=None
sym.mp_sgd_update weight grad weight32 lr wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 lazy_update=True name=None attr=None out=None
sym.multi_all_finite *data num_arrays=1 init_output=True out=None name=None
sym.multi_lars lrs weights_sum_sq grads_sum_sq wds eta eps rescale_grad=1.0 name=None attr=None out=None
sym.multi_mp_sgd_mom_update *data lrs wds momentum=0.0 rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
sym.multi_mp_sgd_update *data lrs wds rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
sym.multi_sgd_mom_update *data lrs wds momentum=0.0 rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
sym.multi_sgd_update *data lrs wds rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
sym.multi_sum_sq *data num_arrays out=None name=None
sym.nag_mom_update weight grad mom lr momentum=0.0 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 name=None attr=None out=None
sym.nanprod data axis=None keepdims=False exclude=False name=None attr=None out=None
sym.nansum data axis=None keepdims=False exclude=False name=None attr=None out=None
sym.negative data name=None attr=None out=None
sym.norm data ord=2 axis=None out_dtype=None keepdims=False name=None attr=None out=None
sym.normal loc=0.0 scale=1.0 shape=None ctx=None dtype=None name=None attr=None out=None
sym.one_hot indices depth on_value=1.0 off_value=0.0 dtype='float32' name=None attr=None out=None
sym.ones shape dtype=None **
sym.ones_like data name=None attr=None out=None
sym.pad data mode pad_width constant_value=0.0 name=None attr=None out=None
sym.pick data index axis=-1 keepdims=False mode='clip' name=None attr=None out=None
sym.pow base exp
sym.power base exp
sym.preloaded_multi_mp_sgd_mom_update *data momentum=0.0 rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
sym.preloaded_multi_mp_sgd_update *data rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
sym.preloaded_multi_sgd_mom_update *data momentum=0.0 rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
sym.preloaded_multi_sgd_update *data rescale_grad=1.0 clip_gradient=-1.0 num_weights=1 out=None name=None
sym.prod data axis=None keepdims=False exclude=False name=None attr=None out=None
sym.radians data name=None attr=None out=None
sym.random_exponential lam=1.0 shape=None ctx=None dtype=None name=None attr=None out=None
sym.random_gamma alpha=1.0 beta=1.0 shape=None ctx=None dtype=None name=None attr=None out=None
sym.random_generalized_negative_binomial mu=1.0 alpha=1.0 shape=None ctx=None dtype=None name=None attr=None out=None
sym.random_negative_binomial k=1 p=1.0 shape=None ctx=None dtype=None name=None attr=None out=None
sym.random_normal loc=0.0 scale=1.0 shape=None ctx=None dtype=None name=None attr=None out=None
sym.random_pdf_dirichlet sample alpha is_log=False name=None attr=None out=None
sym.random_pdf_exponential sample lam is_log=False name=None attr=None out=None
sym.random_pdf_gamma sample alpha beta is_log=False name=None attr=None out=None
sym.random_pdf_generalized_negative_binomial sample mu alpha is_log=False name=None attr=None out=None
sym.random_pdf_negative_binomial sample k p is_log=False name=None attr=None out=None
sym.random_pdf_normal sample mu sigma is_log=False name=None attr=None out=None
sym.random_pdf_poisson sample lam is_log=False name=None attr=None out=None
sym.random_pdf_uniform sample low high is_log=False name=None attr=None out=None
sym.random_poisson lam=1.0 shape=None ctx=None dtype=None name=None attr=None out=None
sym.random_randint low high shape=None ctx=None dtype=None name=None attr=None out=None
sym.random_uniform low=0.0 high=1.0 shape=None ctx=None dtype=None name=None attr=None out=None
sym.ravel_multi_index data shape=None name=None attr=None out=None
sym.rcbrt data name=None attr=None out=None
sym.reciprocal data name=None attr=None out=None
sym.relu data name=None attr=None out=None
sym.repeat data repeats axis=None name=None attr=None out=None
sym.reset_arrays *data num_arrays out=None name=None
sym.reshape data shape=() reverse=False target_shape=() keep_highest=False name=None attr=None out=None
sym.reshape_like lhs rhs lhs_begin=None lhs_end=None rhs_begin=None rhs_end=None name=None attr=None out=None
sym.reverse data axis name=None attr=None out=None
sym.rint data name=None attr=None out=None
sym.rmsprop_update weight grad n lr gamma1=0.95 epsilon=1e-08 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 clip_weights=-1.0 name=None attr=None out=None
sym.rmspropalex_update weight grad n g delta lr gamma1=0.95 gamma2=0.9 epsilon=1e-08 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 clip_weights=-1.0 name=None attr=None out=None
sym.round data name=None attr=None out=None
sym.rsqrt data name=None attr=None out=None
sym.sample_exponential lam shape=() dtype=None name=None attr=None out=None
sym.sample_gamma alpha beta shape=() dtype=None name=None attr=None out=None
sym.sample_generalized_negative_binomial mu alpha shape=() dtype=None name=None attr=None out=None
sym.sample_multinomial data shape=() get_prob=False dtype='int32' name=None attr=None out=None
sym.sample_negative_binomial k p shape=() dtype=None name=None attr=None out=None
sym.sample_normal mu sigma shape=() dtype=None name=None attr=None out=None
sym.sample_poisson lam shape=() dtype=None name=None attr=None out=None
sym.sample_uniform low high shape=() dtype=None name=None attr=None out=None
sym.scatter_nd data indices shape name=None attr=None out=None
sym.sgd_mom_update weight grad mom lr momentum=0.0 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 lazy_update=True name=None attr=None out=None
sym.sgd_update weight grad lr wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 lazy_update=True name=None attr=None out=None
sym.shape_array data name=None attr=None out=None
sym.shuffle data name=None attr=None out=None
sym.sigmoid data name=None attr=None out=None
sym.sign data name=None attr=None out=None
sym.signsgd_update weight grad lr wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 name=None attr=None out=None
sym.signum_update weight grad mom lr momentum=0.0 wd=0.0 rescale_grad=1.0 clip_gradient=-1.0 wd_lh=0.0 name=None attr=None out=None
sym.sin data name=None attr=None out=None
sym.sinh data name=None attr=None out=None
sym.size_array data name=None attr=None out=None
sym.slice data begin end step=() name=None attr=None out=None
sym.slice_axis data axis begin end name=None attr=None out=None
sym.slice_like data shape_like axes=() name=None attr=None out=None
sym.smooth_l1 data scalar name=None attr=None out=None
sym.softmax data length axis=-1 temperature=None dtype=None use_length=False name=None attr=None out=None
sym.softmax_cross_entropy data label name=None attr=None out=None
sym.softmin data axis=-1 temperature=None dtype=None use_length=False name=None attr=None out=None
sym.softsign data name=None attr=None out=None
sym.sort data axis=-1 is_ascend=True name=None attr=None out=None
sym.space_to_depth data block_size name=None attr=None out=None
sym.split data num_outputs axis=1 squeeze_axis=False name=None attr=None out=None
sym.split_v2 ary indices_or_sections axis=0 squeeze_axis=False
sym.sqrt data name=None attr=None out=None
sym.square data name=None attr=None out=None
sym.squeeze data axis=None name=None attr=None out=None
sym.stack *data axis=0 num_args out=None name=None
sym.stop_gradient data name=None attr=None out=None
sym.sum data axis=None keepdims=False exclude=False name=None attr=None out=None
sym.sum_axis data axis=None keepdims=False exclude=False name=None attr=None out=None
sym.swapaxes data dim1=0 dim2=0 name=None attr=None out=None
sym.take a indices axis=0 mode='clip' name=None attr=None out=None
sym.tan data name=None attr=None out=None
sym.tanh data name=None attr=None out=None
sym.tile data reps name=None attr=None out=None
sym.topk data axis=-1 k=1 ret_typ='indices' is_ascend=False dtype='float32' name=None attr=None out=None
sym.transpose data axes=() name=None attr=None out=None
sym.trunc data name=None attr=None out=None
sym.uniform low=0.0 high=1.0 shape=None ctx=None dtype=None name=None attr=None out=None
sym.unravel_index data shape=None name=None attr=None out=None
sym.var name attr=None shape=None lr_mult=None wd_mult=None dtype=None init=None stype=None **
sym.where condition x y name=None attr=None out=None
sym.zeros shape dtype=None **
sym.zeros_like data name=None attr=None out=None
np.abs x out=None **
np.absolute x out=None **
np.add x1 x2 out=None **
np.all a axis=None keepdims=False out=None
np.amax a axis=None keepdims=False out=None
np.amin a axis=None keepdims=False out=None
np.any a axis=None keepdims=False out=None
np.append arr values axis=None
np.arange start stop=None step=1 dtype=None ctx=None
np.arccos x out=None **
np.arccosh x out=None **
np.arcsin x out=None **
np.arcsinh x out=None **
np.arctan x out=None **
np.arctan2 x1 x2 out=None **
np.arctanh x out=None **
np.argmax a axis=None out=None
np.argmin a axis=None out=None
np.argsort a axis=-1 kind=None order=None
np.around x decimals=0 out=None **
np.array object dtype=None ctx=None
np.array_split ary indices_or_sections axis=0
np.atleast_1d *arys
np.atleast_2d *arys
np.atleast_3d *arys
np.average a axis=None weights=None returned=False out=None
np.bincount x weights=None minlength=0
np.bitwise_and x1 x2 out=None **
np.bitwise_not x out=None **
np.bitwise_or x1 x2 out=None **
np.bitwise_xor x1 x2 out=None **
np.blackman M dtype='float32' ctx=None
np.broadcast_arrays *args
np.broadcast_to array shape
np.cbrt x out=None **
np.ceil x out=None **
np.clip a a_min a_max out=None
np.column_stack tup
np.concatenate seq axis=0 out=None
np.copy a out=None
np.copysign x1 x2 out=None **
np.cos x out=None **
np.cosh x out=None **
np.cumsum a axis=None dtype=None out=None
np.deg2rad x out=None **
np.degrees x out=None **
np.delete arr obj axis=None
np.diag array k=0
np.diag_indices_from arr
np.diagflat array k=0
np.diagonal a offset=0 axis1=0 axis2=1
np.diff a n=1 axis=-1 prepend=None append=None
np.divide x1 x2 out=None **
np.dot a b out=None
np.dsplit ary indices_or_sections
np.dstack arrays
np.ediff1d ary to_end=None to_begin=None
np.einsum *operands **
np.empty shape dtype='float32' order='C' ctx=None
np.empty_like prototype dtype=None order='C' subok=False shape=None
np.equal x1 x2 out=None
np.exp x out=None **
np.expand_dims a axis
np.expm1 x out=None **
np.eye N M=None k=0 dtype='float32' **
np.fabs x out=None **
np.fix x out=None **
np.flip m axis=None out=None
np.fliplr m
np.flipud m
np.floor x out=None **
np.full shape fill_value dtype=None order='C' ctx=None out=None
np.full_like a fill_value dtype=None order='C' ctx=None out=None
np.genfromtxt *args **
np.greater x1 x2 out=None
np.greater_equal x1 x2 out=None
np.hamming M dtype='float32' ctx=None
np.hanning M dtype='float32' ctx=None
np.histogram a bins=10 range=None normed=None weights=None density=None
np.hsplit ary indices_or_sections
np.hstack arrays
np.hypot x1 x2 out=None **
np.identity n dtype=None ctx=None
np.indices dimensions dtype='int32' ctx=None
np.inner a b
np.insert arr obj values axis=None
np.invert x out=None **
np.isfinite x out=None **
np.isinf x out=None **
np.isnan x out=None **
np.isneginf x out=None **
np.isposinf x out=None **
np.lcm x1 x2 out=None **
np.ldexp x1 x2 out=None **
np.less x1 x2 out=None
np.less_equal x1 x2 out=None
np.linspace start stop num=50 endpoint=True retstep=False dtype=None axis=0 ctx=None
np.log x out=None **
np.log10 x out=None **
np.log1p x out=None **
np.log2 x out=None **
np.logical_not x out=None **
np.logspace start stop num=50 endpoint=True base=10.0 dtype=None axis=0 ctx=None
np.matmul a b out=None **
np.max a axis=None keepdims=False out=None
np.maximum x1 x2 out=None **
np.may_share_memory a b max_work=None
np.mean a axis=None dtype=None out=None keepdims=False
np.meshgrid *xi **
np.min a axis=None keepdims=False out=None
np.minimum x1 x2 out=None **
np.mod x1 x2 out=None **
np.moveaxis a source destination
np.multiply x1 x2 out=None **
np.nan_to_num x copy=True nan=0.0 posinf=None neginf=None **
np.ndarray handle writable=True
np.negative x out=None **
np.nonzero a
np.not_equal x1 x2 out=None
np.ones shape dtype='float32' order='C' ctx=None
np.ones_like a dtype=None order='C' ctx=None out=None
np.outer a b
np.pad x pad_width=None mode='constant' **
np.percentile a q axis=None out=None overwrite_input=None interpolation='linear' keepdims=False
np.polyval p x
np.power x1 x2 out=None **
np.prod a axis=None dtype=None out=None keepdims=False
np.product a axis=None dtype=None out=None keepdims=False
np.quantile a q axis=None out=None overwrite_input=None interpolation='linear' keepdims=False
np.rad2deg x out=None **
np.radians x out=None **
np.ravel x order='C'
np.reciprocal x out=None **
np.remainder x1 x2 out=None **
np.repeat a repeats axis=None
np.reshape a newshape order='C' out=None
np.resize a new_shape
np.rint x out=None **
np.roll a shift axis=None
np.rot90 m k=1 axes=(0,1)
np.round x decimals=0 out=None **
np.round_ x decimals=0 out=None **
np.row_stack arrays
np.set_printoptions precision=None threshold=None **
np.shape a
np.shares_memory a b max_work=None
np.sign x out=None **
np.sin x out=None **
np.sinh x out=None **
np.sometrue a axis=None keepdims=False out=None
np.sort a axis=-1 kind=None order=None
np.split ary indices_or_sections axis=0
np.sqrt x out=None **
np.square x out=None **
np.squeeze a axis=None out=None
np.stack arrays axis=0 out=None
np.std a axis=None dtype=None out=None ddof=0 keepdims=False
np.subtract x1 x2 out=None **
np.sum a axis=None dtype=None keepdims=False initial=None out=None
np.swapaxes a axis1 axis2
np.take a indices axis=None mode='raise' out=None
np.tan x out=None **
np.tanh x out=None **
np.tensordot a b axes=2
np.tile A reps
np.trace a offset=0 axis1=0 axis2=1 out=None
np.transpose a axes=None
np.tril m k=0
np.true_divide x1 x2 out=None
np.trunc x out=None **
np.unique ar return_index=False return_inverse=False return_counts=False axis=None
np.unravel_index indices shape order='C'
np.var a axis=None dtype=None out=None ddof=0 keepdims=False
np.vdot a b
np.vsplit ary indices_or_sections
np.vstack arrays out=None
np.where condition x=None y=None
np.zeros shape dtype=None order='C' ctx=None
np.zeros_like a dtype=None order='C' ctx=None out=None
np.random.beta a b size=None dtype=None ctx=None
np.random.chisquare df size=None dtype=None ctx=None
np.random.choice a size=None replace=True p=None ctx=None out=None
np.random.exponential scale=1.0 size=None ctx=None out=None
np.random.gamma shape scale=1.0 size=None dtype=None ctx=None out=None
np.random.gumbel loc=0.0 scale=1.0 size=None ctx=None out=None
np.random.logistic loc=0.0 scale=1.0 size=None ctx=None out=None
np.random.lognormal mean=0.0 sigma=1.0 size=None dtype=None ctx=None out=None
np.random.multinomial n pvals size=None **
np.random.multivariate_normal mean cov size=None check_valid=None tol=None
np.random.normal loc=0.0 scale=1.0 size=None dtype=None ctx=None out=None
np.random.pareto a size=None ctx=None out=None
np.random.power a size=None
np.random.rand *size **
np.random.randint low high=None size=None dtype=None ctx=None out=None
np.random.randn *size **
np.random.rayleigh scale=1.0 size=None ctx=None out=None
np.random.shuffle x
np.random.uniform low=0.0 high=1.0 size=None dtype=None ctx=None out=None
np.random.weibull a size=None ctx=None out=None
np.linalg.cholesky a
np.linalg.det a
np.linalg.eig a
np.linalg.eigh a UPLO='L'
np.linalg.eigvals a
np.linalg.eigvalsh a UPLO='L'
np.linalg.inv a
np.linalg.norm x ord=None axis=None keepdims=False
np.linalg.pinv a rcond=1e-15 hermitian=False
np.linalg.slogdet a
np.linalg.solve a b
np.linalg.svd a
np.linalg.tensorinv a ind=2
np.linalg.tensorsolve a b axes=None
npx.Context device_type device_id=0
npx.activation data act_type out=None name=None
npx.arange_like data start=0.0 step=1.0 repeat=1 ctx=None axis=None out=None name=None
npx.batch_dot lhs rhs transpose_a=False transpose_b=False forward_stype=None out=None name=None
npx.batch_flatten data out=None name=None
npx.batch_norm data gamma beta moving_mean moving_var eps=0.001 momentum=0.9 fix_gamma=True use_global_stats=False output_mean_var=False axis=1 cudnn_off=False min_calib_range=None max_calib_range=None out=None name=None
npx.cast data dtype out=None name=None
npx.check_call ret
npx.classproperty func
npx.constraint_check x msg
npx.convolution data weight bias kernel stride=() dilate=() pad=() num_filter num_group=1 workspace=1024 no_bias=False cudnn_tune=None cudnn_off=False layout=None out=None name=None
npx.cpu device_id=0
npx.cpu_pinned device_id=0
npx.current_context
npx.deconvolution data weight bias kernel stride=() dilate=() pad=() adj=() target_shape=() num_filter num_group=1 workspace=512 no_bias=True cudnn_tune=None cudnn_off=False layout=None out=None name=None
npx.dropout data p=0.5 mode='training' axes=() cudnn_off=False out=None name=None
npx.embedding data weight input_dim output_dim dtype='float32' sparse_grad=False out=None name=None
npx.erf data out=None name=None
npx.erfinv data out=None name=None
npx.fully_connected data weight bias num_hidden no_bias=False flatten=True out=None name=None
npx.gamma data out=None name=None
npx.gammaln data out=None name=None
npx.gather_nd data indices out=None name=None
npx.get_cuda_compute_capability ctx
npx.gpu device_id=0
npx.gpu_memory_info device_id=0
npx.is_np_array
npx.is_np_shape
npx.layer_norm data gamma beta axis=-1 eps=1e-05 output_mean_var=False out=None name=None
npx.leaky_relu data gamma act_type='leaky' slope=0.25 lower_bound=0.125 upper_bound=0.334 out=None name=None
npx.load file
npx.log_softmax data axis=-1 temperature=None dtype=None use_length=False out=None name=None
npx.multibox_detection cls_prob loc_pred anchor clip=True threshold=0.01 background_id=0 nms_threshold=0.5 force_suppress=False variances=[0.1,0.1,0.2,0.2] nms_topk=-1 out=None name=None
npx.multibox_prior data sizes=[1] ratios=[1] clip=False steps=[-1,-1] offsets=[0.5,0.5] out=None name=None
npx.multibox_target anchor label cls_pred overlap_threshold=0.5 ignore_label=-1.0 negative_mining_ratio=-1.0 negative_mining_thresh=0.5 minimum_negative_samples=0 variances=[0.1,0.1,0.2,0.2] out=None name=None
npx.nonzero a
npx.num_gpus
npx.one_hot indices depth on_value=1.0 off_value=0.0 dtype='float32' out=None name=None
npx.pick data index axis=-1 keepdims=False mode='clip' out=None name=None
npx.pooling data kernel=() pool_type='max' global_pool=False cudnn_off=False pooling_convention='valid' stride=() pad=() p_value=None count_include_pad=None layout=None out=None name=None
npx.relu data out=None name=None
npx.reset_np
npx.reshape a newshape reverse=False order='C'
npx.reshape_like lhs rhs lhs_begin=None lhs_end=None rhs_begin=None rhs_end=None out=None name=None
npx.rnn data parameters state state_cell sequence_length state_size num_layers bidirectional=False mode p=0.0 state_outputs=False projection_size=None lstm_state_clip_min=None lstm_state_clip_max=None lstm_state_clip_nan=False use_sequence_length=False out=None name=None
npx.roi_pooling data rois pooled_size spatial_scale out=None name=None
npx.save file arr
npx.sequence_mask data sequence_length use_sequence_length=False value=0.0 axis=0 out=None name=None
npx.set_np shape=True array=True
npx.shape_array data out=None name=None
npx.sigmoid data out=None name=None
npx.slice data begin end step=() out=None name=None
npx.smooth_l1 data scalar out=None name=None
npx.softmax data length axis=-1 temperature=None dtype=None use_length=False out=None name=None
npx.topk data axis=-1 k=1 ret_typ='indices' is_ascend=False dtype='float32' out=None name=None
npx.waitall
npx.with_metaclass meta *bases
random.Context device_type device_id=0
random.check_call ret
random.exponential scale=1 shape=None dtype=None ctx=None out=None **
random.gamma alpha=1 beta=1 shape=None dtype=None ctx=None out=None **
random.generalized_negative_binomial mu=1 alpha=1 shape=None dtype=None ctx=None out=None **
random.multinomial data shape=None get_prob=False out=None dtype='int32' **
random.negative_binomial k=1 p=1 shape=None dtype=None ctx=None out=None **
random.normal loc=0 scale=1 shape=None dtype=None ctx=None out=None **
random.poisson lam=1 shape=None dtype=None ctx=None out=None **
random.randint low high shape=None dtype=None ctx=None out=None **
random.randn *shape **
random.seed seed_state ctx='all'
random.shuffle data **
random.uniform low=0 high=1 shape=None dtype=None ctx=None out=None **
autograd.Function
autograd.MXCallbackList
autograd.NDArray handle writable=True
autograd.Symbol handle
autograd.backward heads head_grads=None retain_graph=False train_mode=True
autograd.c_array ctype values
autograd.c_array_buf ctype buf
autograd.c_handle_array objs
autograd.check_call ret
autograd.get_symbol x
autograd.grad heads variables head_grads=None retain_graph=None create_graph=False train_mode=True
autograd.is_recording
autograd.is_training
autograd.mark_variables variables gradients grad_reqs='write'
autograd.pause train_mode=False
autograd.predict_mode
autograd.record train_mode=True
autograd.set_recording is_recording
autograd.set_training train_mode
autograd.train_mode
init.Bilinear
init.Constant value
init.FusedRNN init num_hidden num_layers mode bidirectional=False forget_bias=1.0
init.InitDesc
init.Initializer
init.LSTMBias forget_bias=1.0
init.Load param default_init=None verbose=False
init.MSRAPrelu factor_type='avg' slope=0.25
init.Mixed patterns initializers
init.NDArray handle writable=True
init.Normal sigma=0.01
init.One
init.Orthogonal scale=1.414 rand_type='uniform'
init.Uniform scale=0.07
init.Xavier rnd_type='uniform' factor_type='avg' magnitude=3
init.Zero
init.alias *aliases
init.create *args **
init.is_np_array
init.load fname
init.register klass
optimizer.AdaDelta rho=0.9 epsilon=1e-05 rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None learning_rate=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.AdaGrad eps=1e-07 rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None learning_rate=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.Adam learning_rate=0.001 beta1=0.9 beta2=0.999 epsilon=1e-08 lazy_update=True rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.Adamax learning_rate=0.002 beta1=0.9 beta2=0.999 rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.DCASGD momentum=0.0 lamda=0.04 rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None learning_rate=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.FTML beta1=0.6 beta2=0.999 epsilon=1e-08 rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None learning_rate=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.Ftrl lamda1=0.01 learning_rate=0.1 beta=1 rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.LAMB learning_rate=0.001 beta1=0.9 beta2=0.999 epsilon=1e-06 lower_bound=None upper_bound=None bias_correction=True rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.LARS momentum=0.0 lazy_update=True eta=0.001 eps=0 momentum_correction=True rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None learning_rate=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.LBSGD momentum=0.0 multi_precision=False warmup_strategy='linear' warmup_epochs=5 batch_scale=1 updates_per_epoch=32 begin_epoch=0 num_epochs=60 rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None learning_rate=None lr_scheduler=None sym=None begin_num_update=0 param_dict=None
optimizer.NAG momentum=0.0 rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None learning_rate=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.NDabs data=None out=None name=None **
optimizer.Nadam learning_rate=0.001 beta1=0.9 beta2=0.999 epsilon=1e-08 schedule_decay=0.004 rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.Optimizer rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None learning_rate=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.RMSProp learning_rate=0.001 gamma1=0.9 gamma2=0.9 epsilon=1e-08 centered=False clip_weights=None rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.SGD momentum=0.0 lazy_update=True rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None learning_rate=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.SGLD rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None learning_rate=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.Signum learning_rate=0.01 momentum=0.9 wd_lh=0.0 rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.Test rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None learning_rate=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.Updater optimizer
optimizer.ccSGD *args momentum=0.0 lazy_update=True rescale_grad=1.0 param_idx2name=None wd=0.0 clip_gradient=None learning_rate=None lr_scheduler=None sym=None begin_num_update=0 multi_precision=False param_dict=None
optimizer.create name **
optimizer.get_updater optimizer
optimizer.register klass
metric.Accuracy axis=1 name='accuracy' output_names=None label_names=None
metric.Caffe name='caffe' output_names=None label_names=None
metric.CompositeEvalMetric metrics=None name='composite' output_names=None label_names=None
metric.CrossEntropy eps=1e-12 name='cross-entropy' output_names=None label_names=None
metric.CustomMetric feval name=None allow_extra_outputs=False output_names=None label_names=None
metric.EvalMetric name output_names=None label_names=None
metric.F1 name='f1' output_names=None label_names=None average='macro'
metric.Loss name='loss' output_names=None label_names=None
metric.MAE name='mae' output_names=None label_names=None
metric.MCC name='mcc' output_names=None label_names=None average='macro'
metric.MSE name='mse' output_names=None label_names=None
metric.NegativeLogLikelihood eps=1e-12 name='nll-loss' output_names=None label_names=None
metric.PCC name='pcc' output_names=None label_names=None has_global_stats=True
metric.PearsonCorrelation name='pearsonr' output_names=None label_names=None average='macro'
metric.Perplexity ignore_label axis=-1 name='perplexity' output_names=None label_names=None
metric.RMSE name='rmse' output_names=None label_names=None
metric.TopKAccuracy top_k=1 name='top_k_accuracy' output_names=None label_names=None
metric.Torch name='torch' output_names=None label_names=None
metric.alias *aliases
metric.check_label_shapes labels preds wrap=False shape=False
metric.create metric *args **
metric.np numpy_feval name=None allow_extra_outputs=False
metric.register klass name=None
lr_scheduler.CosineScheduler max_update base_lr=0.01 final_lr=0 warmup_steps=0 warmup_begin_lr=0 warmup_mode='linear'
lr_scheduler.FactorScheduler step factor=1 stop_factor_lr=1e-08 base_lr=0.01 warmup_steps=0 warmup_begin_lr=0 warmup_mode='linear'
lr_scheduler.LRScheduler base_lr=0.01 warmup_steps=0 warmup_begin_lr=0 warmup_mode='linear'
lr_scheduler.MultiFactorScheduler step factor=1 base_lr=0.01 warmup_steps=0 warmup_begin_lr=0 warmup_mode='linear'
lr_scheduler.PolyScheduler max_update base_lr=0.01 pwr=2 final_lr=0 warmup_steps=0 warmup_begin_lr=0 warmup_mode='linear'
gluon.Block prefix=None params=None
gluon.Constant name value
gluon.DeferredInitializationError
gluon.HybridBlock prefix=None params=None
gluon.Parameter name grad_req='write' shape=None dtype='float32' lr_mult=1.0 wd_mult=1.0 init=None allow_deferred_init=False differentiable=True stype='default' grad_stype='default'
gluon.ParameterDict prefix='' shared=None
gluon.SymbolBlock outputs inputs params=None
gluon.Trainer params optimizer optimizer_params=None kvstore='device' compression_params=None update_on_kvstore=None
gluon.nn.Activation activation prefix=None params=None
gluon.nn.AvgPool1D pool_size=2 strides=None padding=0 layout='NCW' ceil_mode=False count_include_pad=True global_pool pool_type prefix=None params=None
gluon.nn.AvgPool2D pool_size=(2,2) strides=None padding=0 ceil_mode=False layout='NCHW' count_include_pad=True global_pool pool_type prefix=None params=None
gluon.nn.AvgPool3D pool_size=(2,2,2) strides=None padding=0 ceil_mode=False layout='NCDHW' count_include_pad=True global_pool pool_type prefix=None params=None
gluon.nn.BatchNorm axis=1 momentum=0.9 epsilon=1e-05 center=True scale=True use_global_stats=False beta_initializer='zeros' gamma_initializer='ones' running_mean_initializer='zeros' running_variance_initializer='ones' in_channels=0 fuse_relu=False prefix=None params=None
gluon.nn.BatchNormReLU axis=1 momentum=0.9 epsilon=1e-05 center=True scale=True use_global_stats=False beta_initializer='zeros' gamma_initializer='ones' running_mean_initializer='zeros' running_variance_initializer='ones' in_channels=0 fuse_relu=False prefix=None params=None
gluon.nn.Block prefix=None params=None
gluon.nn.Conv1D channels kernel_size strides=1 padding=0 dilation=1 groups=1 layout='NCW' activation=None use_bias=True weight_initializer=None bias_initializer='zeros' in_channels=0 op_name='Convolution' adj=None prefix=None params=None
gluon.nn.Conv1DTranspose channels kernel_size strides=1 padding=0 output_padding=0 dilation=1 groups=1 layout='NCW' activation=None use_bias=True weight_initializer=None bias_initializer='zeros' in_channels=0 op_name='Convolution' adj=None prefix=None params=None
gluon.nn.Conv2D channels kernel_size strides=(1,1) padding=(0,0) dilation=(1,1) groups=1 layout='NCHW' activation=None use_bias=True weight_initializer=None bias_initializer='zeros' in_channels=0 op_name='Convolution' adj=None prefix=None params=None
gluon.nn.Conv2DTranspose channels kernel_size strides=(1,1) padding=(0,0) output_padding=(0,0) dilation=(1,1) groups=1 layout='NCHW' activation=None use_bias=True weight_initializer=None bias_initializer='zeros' in_channels=0 op_name='Convolution' adj=None prefix=None params=None
gluon.nn.Conv3D channels kernel_size strides=(1,1,1) padding=(0,0,0) dilation=(1,1,1) groups=1 layout='NCDHW' activation=None use_bias=True weight_initializer=None bias_initializer='zeros' in_channels=0 op_name='Convolution' adj=None prefix=None params=None
gluon.nn.Conv3DTranspose channels kernel_size strides=(1,1,1) padding=(0,0,0) output_padding=(0,0,0) dilation=(1,1,1) groups=1 layout='NCDHW' activation=None use_bias=True weight_initializer=None bias_initializer='zeros' in_channels=0 op_name='Convolution' adj=None prefix=None params=None
gluon.nn.Dense units activation=None use_bias=True flatten=True dtype='float32' weight_initializer=None bias_initializer='zeros' in_units=0 prefix=None params=None
gluon.nn.Dropout rate axes=() prefix=None params=None
gluon.nn.ELU alpha=1.0 prefix=None params=None
gluon.nn.Embedding input_dim output_dim dtype='float32' weight_initializer=None sparse_grad=False prefix=None params=None
gluon.nn.Flatten prefix=None params=None
gluon.nn.GELU prefix=None params=None
gluon.nn.GlobalAvgPool1D layout='NCW' pool_size strides padding ceil_mode global_pool pool_type count_include_pad=None prefix=None params=None
gluon.nn.GlobalAvgPool2D layout='NCHW' pool_size strides padding ceil_mode global_pool pool_type count_include_pad=None prefix=None params=None
gluon.nn.GlobalAvgPool3D layout='NCDHW' pool_size strides padding ceil_mode global_pool pool_type count_include_pad=None prefix=None params=None
gluon.nn.GlobalMaxPool1D layout='NCW' pool_size strides padding ceil_mode global_pool pool_type count_include_pad=None prefix=None params=None
gluon.nn.GlobalMaxPool2D layout='NCHW' pool_size strides padding ceil_mode global_pool pool_type count_include_pad=None prefix=None params=None
gluon.nn.GlobalMaxPool3D layout='NCDHW' pool_size strides padding ceil_mode global_pool pool_type count_include_pad=None prefix=None params=None
gluon.nn.GroupNorm num_groups=1 epsilon=1e-05 center=True scale=True beta_initializer='zeros' gamma_initializer='ones' prefix=None params=None
gluon.nn.HybridBlock prefix=None params=None
gluon.nn.HybridLambda function prefix=None
gluon.nn.HybridSequential prefix=None params=None
gluon.nn.InstanceNorm axis=1 epsilon=1e-05 center=True scale=False beta_initializer='zeros' gamma_initializer='ones' in_channels=0 prefix=None params=None
gluon.nn.Lambda function prefix=None
gluon.nn.LayerNorm axis=-1 epsilon=1e-05 center=True scale=True beta_initializer='zeros' gamma_initializer='ones' in_channels=0 prefix=None params=None
gluon.nn.LeakyReLU alpha prefix=None params=None
gluon.nn.MaxPool1D pool_size=2 strides=None padding=0 layout='NCW' ceil_mode=False global_pool pool_type count_include_pad=None prefix=None params=None
gluon.nn.MaxPool2D pool_size=(2,2) strides=None padding=0 layout='NCHW' ceil_mode=False global_pool pool_type count_include_pad=None prefix=None params=None
gluon.nn.MaxPool3D pool_size=(2,2,2) strides=None padding=0 ceil_mode=False layout='NCDHW' global_pool pool_type count_include_pad=None prefix=None params=None
gluon.nn.PReLU alpha_initializer=... in_channels=1 prefix=None params=None
gluon.nn.ReflectionPad2D padding=0 prefix=None params=None
gluon.nn.SELU prefix=None params=None
gluon.nn.Sequential prefix=None params=None
gluon.nn.Swish beta=1.0 prefix=None params=None
gluon.nn.SymbolBlock outputs inputs params=None
gluon.rnn.BidirectionalCell l_cell r_cell output_prefix='bi_'
gluon.rnn.DropoutCell rate axes=() prefix=None params=None
gluon.rnn.GRU hidden_size num_layers=1 layout='TNC' dropout=0 bidirectional=False input_size=0 i2h_weight_initializer=None h2h_weight_initializer=None i2h_bias_initializer='zeros' h2h_bias_initializer='zeros' dtype='float32' mode projection_size h2r_weight_initializer lstm_state_clip_min lstm_state_clip_max lstm_state_clip_nan use_sequence_length=False prefix=None params=None
gluon.rnn.GRUCell hidden_size i2h_weight_initializer=None h2h_weight_initializer=None i2h_bias_initializer='zeros' h2h_bias_initializer='zeros' input_size=0 prefix=None params=None
gluon.rnn.HybridRecurrentCell prefix=None params=None
gluon.rnn.HybridSequentialRNNCell prefix=None params=None
gluon.rnn.LSTM hidden_size num_layers=1 layout='TNC' dropout=0 bidirectional=False input_size=0 i2h_weight_initializer=None h2h_weight_initializer=None i2h_bias_initializer='zeros' h2h_bias_initializer='zeros' projection_size=None h2r_weight_initializer=None state_clip_min=None state_clip_max=None state_clip_nan=False dtype='float32' mode lstm_state_clip_min lstm_state_clip_max lstm_state_clip_nan use_sequence_length=False prefix=None params=None
gluon.rnn.LSTMCell hidden_size i2h_weight_initializer=None h2h_weight_initializer=None i2h_bias_initializer='zeros' h2h_bias_initializer='zeros' input_size=0 prefix=None params=None activation='tanh' recurrent_activation='sigmoid'
gluon.rnn.ModifierCell base_cell
gluon.rnn.RNN hidden_size num_layers=1 activation='relu' layout='TNC' dropout=0 bidirectional=False i2h_weight_initializer=None h2h_weight_initializer=None i2h_bias_initializer='zeros' h2h_bias_initializer='zeros' input_size=0 dtype='float32' mode projection_size h2r_weight_initializer lstm_state_clip_min lstm_state_clip_max lstm_state_clip_nan use_sequence_length=False prefix=None params=None
gluon.rnn.RNNCell hidden_size activation='tanh' i2h_weight_initializer=None h2h_weight_initializer=None i2h_bias_initializer='zeros' h2h_bias_initializer='zeros' input_size=0 prefix=None params=None
gluon.rnn.RecurrentCell prefix=None params=None
gluon.rnn.ResidualCell base_cell
gluon.rnn.SequentialRNNCell prefix=None params=None
gluon.rnn.ZoneoutCell base_cell zoneout_outputs=0.0 zoneout_states=0.0
gluon.loss.CTCLoss layout='NTC' label_layout='NT' weight=None batch_axis prefix=None params=None
gluon.loss.CosineEmbeddingLoss weight=None batch_axis=0 margin=0 prefix=None params=None
gluon.loss.HingeLoss margin=1 weight=None batch_axis=0 prefix=None params=None
gluon.loss.HuberLoss rho=1 weight=None batch_axis=0 prefix=None params=None
gluon.loss.HybridBlock prefix=None params=None
gluon.loss.KLDivLoss from_logits=True axis=-1 weight=None batch_axis=0 prefix=None params=None
gluon.loss.L1Loss weight=None batch_axis=0 prefix=None params=None
gluon.loss.L2Loss weight=1.0 batch_axis=0 prefix=None params=None
gluon.loss.LogisticLoss weight=None batch_axis=0 label_format='signed' prefix=None params=None
gluon.loss.Loss weight batch_axis prefix=None params=None
gluon.loss.PoissonNLLLoss weight=None from_logits=True batch_axis=0 compute_full=False prefix=None params=None
gluon.loss.SDMLLoss smoothing_parameter=0.3 weight=1.0 batch_axis=0 prefix=None params=None
gluon.loss.SigmoidBCELoss from_sigmoid=False weight=None batch_axis=0 prefix=None params=None
gluon.loss.SigmoidBinaryCrossEntropyLoss from_sigmoid=False weight=None batch_axis=0 prefix=None params=None
gluon.loss.SoftmaxCELoss axis=-1 sparse_label=True from_logits=False weight=None batch_axis=0 prefix=None params=None
gluon.loss.SoftmaxCrossEntropyLoss axis=-1 sparse_label=True from_logits=False weight=None batch_axis=0 prefix=None params=None
gluon.loss.SquaredHingeLoss margin=1 weight=None batch_axis=0 prefix=None params=None
gluon.loss.TripletLoss margin=1 weight=None batch_axis=0 prefix=None params=None
gluon.loss.is_np_array
gluon.data.ArrayDataset *args
gluon.data.BatchSampler sampler batch_size last_batch='keep'
gluon.data.DataLoader dataset batch_size=None shuffle=False sampler=None last_batch=None batch_sampler=None batchify_fn=None num_workers=0 pin_memory=False pin_device_id=0 prefetch=None thread_pool=False timeout=120 auto_reload=False
gluon.data.Dataset
gluon.data.FilterSampler fn dataset
gluon.data.RandomSampler length
gluon.data.RecordFileDataset filename
gluon.data.Sampler
gluon.data.SequentialSampler length start=0
gluon.data.SimpleDataset data
gluon.data.vision.CIFAR10 root='~/.mxnet/datasets/cifar10' train=True transform=None
gluon.data.vision.CIFAR100 root='~/.mxnet/datasets/cifar100' fine_label=False train=True transform=None
gluon.data.vision.FashionMNIST root='~/.mxnet/datasets/fashion-mnist' train=True transform=None
gluon.data.vision.ImageFolderDataset root flag=1 transform=None
gluon.data.vision.ImageRecordDataset filename flag=1 transform=None
gluon.data.vision.MNIST root='~/.mxnet/datasets/mnist' train=True transform=None
gluon.data.vision.transforms.Block prefix=None params=None
gluon.data.vision.transforms.Cast dtype='float32'
gluon.data.vision.transforms.CenterCrop size interpolation=1
gluon.data.vision.transforms.Compose transforms
gluon.data.vision.transforms.CropResize x y width height size=None interpolation=None
gluon.data.vision.transforms.HybridBlock prefix=None params=None
gluon.data.vision.transforms.HybridSequential prefix=None params=None
gluon.data.vision.transforms.Normalize mean=0.0 std=1.0
gluon.data.vision.transforms.RandomApply transforms p=0.5
gluon.data.vision.transforms.RandomBrightness brightness
gluon.data.vision.transforms.RandomColorJitter brightness=0 contrast=0 saturation=0 hue=0
gluon.data.vision.transforms.RandomContrast contrast
gluon.data.vision.transforms.RandomFlipLeftRight
gluon.data.vision.transforms.RandomFlipTopBottom
gluon.data.vision.transforms.RandomHue hue
gluon.data.vision.transforms.RandomLighting alpha
gluon.data.vision.transforms.RandomResizedCrop size scale=(0.08,1.0) ratio=(0.75,1.3333333333333333) interpolation=1
gluon.data.vision.transforms.RandomRotation angle_limits zoom_in=False zoom_out=False rotate_with_proba=1.0
gluon.data.vision.transforms.RandomSaturation saturation
gluon.data.vision.transforms.Resize size keep_ratio=False interpolation=1
gluon.data.vision.transforms.Rotate rotation_degrees zoom_in=False zoom_out=False
gluon.data.vision.transforms.Sequential prefix=None params=None
gluon.data.vision.transforms.ToTensor
gluon.data.vision.transforms.is_np_array
gluon.utils.HookHandle
gluon.utils.check_sha1 filename sha1_hash
gluon.utils.clip_global_norm arrays max_norm check_isfinite=True
gluon.utils.download url path=None overwrite=False sha1_hash=None retries=5 verify_ssl=True
gluon.utils.is_np_array
gluon.utils.is_np_shape
gluon.utils.replace_file src dst
gluon.utils.shape_is_known shape
gluon.utils.split_and_load data ctx_list batch_axis=0 even_split=True
gluon.utils.split_data data num_slice batch_axis=0 even_split=True
np.ndarray.abs *args **
np.ndarray.all axis=None out=None keepdims=False
np.ndarray.any axis=None out=None keepdims=False
np.ndarray.arccos *args **
np.ndarray.arccosh *args **
np.ndarray.arcsin *args **
np.ndarray.arcsinh *args **
np.ndarray.arctan *args **
np.ndarray.arctanh *args **
np.ndarray.argmax axis=None out=None
np.ndarray.argmax_channel *args **
np.ndarray.argmin axis=None out=None
np.ndarray.argsort axis=-1 kind=None order=None
np.ndarray.as_in_context context
np.ndarray.as_in_ctx ctx
np.ndarray.as_nd_ndarray
np.ndarray.as_np_ndarray
np.ndarray.asnumpy
np.ndarray.asscalar
np.ndarray.astype dtype order='K' casting='unsafe' subok=True copy=True
np.ndarray.attach_grad grad_req='write'
np.ndarray.backward out_grad=None retain_graph=False train_mode=True
np.ndarray.broadcast_axes *args **
np.ndarray.broadcast_like other
np.ndarray.broadcast_to shape
np.ndarray.cbrt *args **
np.ndarray.ceil *args **
np.ndarray.clip min=None max=None out=None
np.ndarray.copy order='C'
np.ndarray.copyto other
np.ndarray.cos *args **
np.ndarray.cosh *args **
np.ndarray.cumsum axis=None dtype=None out=None
np.ndarray.degrees *args **
np.ndarray.depth_to_space *args **
np.ndarray.detach
np.ndarray.diag k=0 **
np.ndarray.dot b out=None
np.ndarray.exp *args **
np.ndarray.expand_dims *args **
np.ndarray.expm1 *args **
np.ndarray.fix *args **
np.ndarray.flatten order='C'
np.ndarray.flip *args **
np.ndarray.floor *args **
np.ndarray.item *args
np.ndarray.log *args **
np.ndarray.log10 *args **
np.ndarray.log1p *args **
np.ndarray.log2 *args **
np.ndarray.log_softmax *args **
np.ndarray.max axis=None out=None keepdims=False
np.ndarray.mean axis=None dtype=None out=None keepdims=False
np.ndarray.min axis=None out=None keepdims=False
np.ndarray.nanprod *args **
np.ndarray.nansum *args **
np.ndarray.nonzero
np.ndarray.norm *args **
np.ndarray.one_hot *args **
np.ndarray.ones_like *args **
np.ndarray.pad *args **
np.ndarray.pick *args **
np.ndarray.prod axis=None dtype=None out=None keepdims=False
np.ndarray.radians *args **
np.ndarray.rcbrt *args **
np.ndarray.reciprocal *args **
np.ndarray.relu *args **
np.ndarray.repeat repeats axis=None
np.ndarray.reshape *args **
np.ndarray.reshape_like *args **
np.ndarray.reshape_view *shape **
np.ndarray.rint *args **
np.ndarray.round decimals=0 out=None **
np.ndarray.rsqrt *args **
np.ndarray.shape_array *args **
np.ndarray.sigmoid *args **
np.ndarray.sign *args **
np.ndarray.sin *args **
np.ndarray.sinh *args **
np.ndarray.size_array *args **
np.ndarray.slice *args **
np.ndarray.slice_assign rhs begin end step
np.ndarray.slice_assign_scalar value begin end step
np.ndarray.slice_axis *args **
np.ndarray.slice_like *args **
np.ndarray.softmax *args **
np.ndarray.softmin *args **
np.ndarray.sort axis=-1 kind=None order=None
np.ndarray.space_to_depth *args **
np.ndarray.split *args **
np.ndarray.split_v2 *args **
np.ndarray.sqrt *args **
np.ndarray.square *args **
np.ndarray.squeeze axis=None
np.ndarray.std axis=None dtype=None out=None ddof=0 keepdims=False
np.ndarray.sum axis=None dtype=None out=None keepdims=False
np.ndarray.swapaxes axis1 axis2
np.ndarray.take indices axis=None mode='raise'
np.ndarray.tan *args **
np.ndarray.tanh *args **
np.ndarray.tile *args **
np.ndarray.to_dlpack_for_read
np.ndarray.to_dlpack_for_write
np.ndarray.tolist
np.ndarray.topk *args **
np.ndarray.tostype stype
np.ndarray.transpose *axes
np.ndarray.trunc *args **
np.ndarray.var axis=None dtype=None out=None ddof=0 keepdims=False
np.ndarray.wait_to_read
np.ndarray.zeros_like *args **
"""
