"""mx.mod: programs of symbols with their parameters, an optimiser, and training over an iterator of batches."""
from . import _attributes, init as _init, metric as _metric, optimizer as _optimizer
from ._executor import Executor
from ._program import Group, _all_shapes, _Program
from .context import Context, cpu
from .io import DataDesc
from .unsupported import missing, not_here

__all__ = ["BatchEndParam", "Module"]


class BatchEndParam:
    """What a callback after a batch is told."""

    def __init__(self, epoch, nbatch, eval_metric, locals=None):
        self.epoch, self.nbatch, self.eval_metric, self.locals = epoch, nbatch, eval_metric, locals


def _described(shapes):
    """Names and shapes of inputs."""
    return [each if isinstance(each, DataDesc) else DataDesc(*each) for each in shapes or ()]


def _each(callbacks, *args):
    for callback in callbacks if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else ():
        callback(*args)


class Module:
    """A program of symbols: its variables are inputs, labels and parameters."""

    def __init__(self, symbol, data_names=("data",), label_names=("softmax_label",), logger=None, context=None, work_load_list=None,
                 fixed_param_names=None, state_names=None, group2ctxs=None, compression_params=None):
        if state_names or group2ctxs or compression_params:
            raise not_here("Module with states, groups of contexts or compression", "the other arguments")
        contexts = context if isinstance(context, (list, tuple)) else [context or cpu()]
        if len(contexts) != 1 or not isinstance(contexts[0], Context):
            raise not_here("Module on several contexts", "gluon.Trainer")
        self.symbol, self._heads, self._ctx = symbol, list(symbol) if isinstance(symbol, Group) else [symbol], contexts[0]
        self._names = _Program(self._heads).inputs()
        self._states = _Program(self._heads).states()
        self.data_names, self.label_names = list(data_names or ()), [n for n in label_names or () if n in self._names]
        if unknown := [n for n in [*self.data_names, *(fixed_param_names or ())] if n not in self._names]:
            raise ValueError(f"{unknown[0]} is no variable of the symbol; these are {', '.join(self._names)}")
        self._fixed, self.output_names = set(fixed_param_names or ()), [n for h in self._heads for n in h.list_outputs()]
        self.binded = self.params_initialized = self.optimizer_initialized = self.for_training = False
        self._run, self._kept = None, None

    def __getattr__(self, name):
        if name.startswith("__") or name in ("data_shapes", "label_shapes"):
            raise AttributeError(name)
        raise not_here(f"Module.{name}", "what help(mx.mod.Module) lists")

    # The program

    @property
    def _parameters(self):
        return [n for n in self._names if n not in self.data_names and n not in self.label_names and n not in self._states]

    def bind(self, data_shapes, label_shapes=None, for_training=True, inputs_need_grad=False, force_rebind=False, shared_module=None, grad_req="write"):
        """Makes arrays for the variables, for inputs of these shapes."""
        if shared_module is not None:
            raise not_here("Module.bind(shared_module=…)", "set_params")
        if self.binded and not force_rebind:
            return
        self.data_shapes, self.label_shapes, self.for_training = _described(data_shapes), _described(label_shapes), for_training
        self._need = inputs_need_grad, grad_req
        program, given = _Program(self._heads), {d.name: d.shape for d in [*self.data_shapes, *self.label_shapes] if d.name in self._names}
        shapes, unknown = _all_shapes(program, given)
        if unknown:
            raise ValueError(f"Module.bind: the shapes of {', '.join(unknown)} do not follow from those of the inputs")
        from . import nd

        old = self._run
        arrays = {n: nd.zeros(shapes[n], self._ctx) for n in self._names}
        wanted = [n for n in self._parameters if n not in self._fixed] + (self.data_names if inputs_need_grad else [])
        wanted = [n for n in wanted if (grad_req.get(n, "null") if isinstance(grad_req, dict) else grad_req) != "null"]
        grads = {n: nd.zeros(shapes[n], self._ctx) for n in wanted} if for_training else {}
        self._run = Executor(self._heads, self._ctx, arrays, grads, grad_req, self._states)
        self.binded = True
        if old is not None and self.params_initialized:
            self.set_params(*self._values(old))
        elif self._kept:
            self.set_params(*self._kept)

    def reshape(self, data_shapes, label_shapes=None):
        """The same parameters for inputs of other shapes."""
        self.bind(data_shapes, label_shapes, self.for_training, *self._need[:1], force_rebind=True, grad_req=self._need[1])

    @property
    def output_shapes(self):
        """(name, shape) of the results."""
        return [(n, y.shape) for n, y in zip(self.output_names, self._bound().outputs)]

    def _bound(self, parameters=False):
        if not self.binded or parameters and not self.params_initialized:
            raise AssertionError("Module: call bind, then init_params" if self.binded or parameters else "Module: call bind first")
        return self._run

    # Parameters

    def init_params(self, initializer="uniform", arg_params=None, aux_params=None, allow_missing=False, force_init=False, allow_extra=False):
        """Gives the parameters values: those of arg_params and aux_params, else the initializer's."""
        if self.params_initialized and not force_init:
            return
        run, given = self._bound(), {**(arg_params or {}), **(aux_params or {})}
        if not allow_extra and (extra := [n for n in given if n not in self._names]):
            raise ValueError(f"init_params: {extra[0]} is no parameter")
        initializer = _init.Uniform(0.01) if isinstance(initializer, str) and initializer == "uniform" else initializer
        for name in [*self._parameters, *self._states]:
            array = (run.aux_dict if name in self._states else run.arg_dict)[name]
            if name in given:
                array[slice(None)] = given[name].as_in_context(self._ctx)
            elif (arg_params or aux_params) and not allow_missing:
                raise RuntimeError(f"{name} is not presented")
            elif initializer is not None or _attributes.initialisers.get(name) is not None:
                self._fill(initializer, name, array)
        self.params_initialized = True

    def _fill(self, initializer, name, array):
        """The values of the variable's own initialiser, else the given one's of weights, and the usual ones of what is named otherwise."""
        if (own := _attributes.initialisers.get(name)) is not None:
            _init.fill(own, name, array, initializer)
            return
        usual = {"bias": 0, "beta": 0, "gamma": 1, "moving_mean": 0, "running_mean": 0, "moving_var": 1, "running_var": 1}
        value = next((v for end, v in usual.items() if name.endswith(end)), None)
        if value is None:
            _init.fill(initializer, name, array)
        else:
            array[slice(None)] = value

    @staticmethod
    def _values(run):
        return run.arg_dict, run.aux_dict

    def get_params(self):
        """(copies of the parameters, of running statistics), by name."""
        run = self._bound(True)
        return {n: run.arg_dict[n].copy() for n in self._parameters}, {n: run.aux_dict[n].copy() for n in self._states}

    def set_params(self, arg_params, aux_params, allow_missing=False, force_init=True, allow_extra=False):
        """Copies values into the parameters."""
        self.init_params(None if allow_missing else "uniform", {n: a for n, a in arg_params.items() if n in self._parameters or not allow_extra and n not in
                         [*self.data_names, *self.label_names]}, aux_params, allow_missing, force_init, allow_extra)  # fmt: skip

    # Training

    def init_optimizer(self, kvstore="local", optimizer="sgd", optimizer_params=(("learning_rate", 0.01),), force_init=False):
        """Sets the optimiser; gradients are divided by the batch, unless its settings say otherwise."""
        if self.optimizer_initialized and not force_init:
            return
        self._bound(True)
        if isinstance(optimizer, str):
            settings = {"rescale_grad": 1.0 / self.data_shapes[0].shape[0], **dict(optimizer_params)}
            optimizer = _optimizer.create(optimizer, param_idx2name=dict(enumerate(self._parameters)), sym=self.symbol, **settings)
        self._optimizer, self._updater, self.optimizer_initialized = optimizer, _optimizer.get_updater(optimizer), True

    def forward(self, data_batch, is_train=None):
        """Runs the program on a batch."""
        run = self._bound(True)
        data, label = data_batch.data, getattr(data_batch, "label", None) or []
        if [tuple(d.shape) for d in data] != [tuple(d.shape) for d in self.data_shapes]:
            self.reshape([(d.name, a.shape) for d, a in zip(self.data_shapes, data)], [(d.name, a.shape) for d, a in zip(self.label_shapes, label)])
            run = self._run
        given = {**dict(zip((d.name for d in self.data_shapes), data)), **dict(zip((d.name for d in self.label_shapes), label))}
        run.forward(self.for_training if is_train is None else is_train, **{n: a.as_in_context(self._ctx) for n, a in given.items() if n in run.arg_dict})

    def backward(self, out_grads=None):
        """Computes the gradients."""
        self._bound(True).backward(out_grads)

    def forward_backward(self, data_batch):
        """Runs the program in training, and computes the gradients."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def update(self):
        """A step of the optimiser."""
        if not self.optimizer_initialized:
            raise AssertionError("Module: call init_optimizer first")
        for i, name in enumerate(self._parameters):
            if name in self._run.grad_dict:
                self._updater(i, self._run.grad_dict[name], self._run.arg_dict[name])

    def get_outputs(self, merge_multi_context=True):
        """The results of the last run."""
        return list(self._bound().outputs)

    def get_input_grads(self, merge_multi_context=True):
        """The gradients of the inputs; None for one whose grad_req is null."""
        return [self._bound().grad_dict.get(n) for n in self.data_names]

    def update_metric(self, eval_metric, labels, pre_sliced=False):
        """Adds the last results to a metric."""
        eval_metric.update(list(labels or []), self.get_outputs())

    # Whole passes

    def score(self, eval_data, eval_metric, num_batch=None, batch_end_callback=None, score_end_callback=None, reset=True, epoch=0, sparse_row_id_fn=None):
        """A metric of the results for an iterator: (name, value)s."""
        metric = _metric.create(eval_metric)
        metric.reset()
        for i, batch in enumerate(self._batches(eval_data, num_batch, reset)):
            self.forward(batch, is_train=False)
            self.update_metric(metric, batch.label)
            _each(batch_end_callback, BatchEndParam(epoch, i, metric))
        _each(score_end_callback, BatchEndParam(epoch, num_batch, metric))
        return metric.get_name_value()

    def _batches(self, data, count=None, reset=True):
        if reset:
            data.reset()
        for i, batch in enumerate(data):
            if i == count:
                return
            yield batch

    def iter_predict(self, eval_data, num_batch=None, reset=True):
        """(results, number of the batch, the batch) for the batches of an iterator, without padding."""
        for i, batch in enumerate(self._batches(eval_data, num_batch, reset)):
            self.forward(batch, is_train=False)
            pad = batch.pad or 0
            yield [y[: y.shape[0] - pad] if pad else y for y in self.get_outputs()], i, batch

    def predict(self, eval_data, num_batch=None, merge_batches=True, reset=True, always_output_list=False, sparse_row_id_fn=None):
        """The results for an iterator, or for an array."""
        from . import nd

        if isinstance(eval_data, nd.NDArray):
            from .io import DataBatch

            self.forward(DataBatch([eval_data]), is_train=False)
            return self.get_outputs()[0]
        found = [outputs for outputs, _, _ in self.iter_predict(eval_data, num_batch, reset)]
        if not merge_batches or not found:
            return found
        merged = [nd.concat(*each, dim=0) for each in zip(*found)]
        return merged if always_output_list or len(merged) > 1 else merged[0]

    def fit(self, train_data, eval_data=None, eval_metric="acc", epoch_end_callback=None, batch_end_callback=None, kvstore="local", optimizer="sgd",
            optimizer_params=(("learning_rate", 0.01),), eval_end_callback=None, eval_batch_end_callback=None, initializer="uniform", arg_params=None,
            aux_params=None, allow_missing=False, force_rebind=False, force_init=False, begin_epoch=0, num_epoch=None, validation_metric=None,
            monitor=None, sparse_row_id_fn=None):
        """Trains over an iterator."""
        if num_epoch is None:
            raise AssertionError("please specify number of epochs")
        self.bind(train_data.provide_data, train_data.provide_label, force_rebind=force_rebind)
        self.init_params(initializer, arg_params, aux_params, allow_missing, force_init)
        self.init_optimizer(kvstore, optimizer, optimizer_params)
        metric = _metric.create(eval_metric)
        for epoch in range(begin_epoch, num_epoch):
            metric.reset()
            for i, batch in enumerate(self._batches(train_data)):
                self.forward_backward(batch)
                self.update()
                self.update_metric(metric, batch.label)
                _each(batch_end_callback, BatchEndParam(epoch, i, metric))
            _each(epoch_end_callback, epoch, self.symbol, *self.get_params())
            if eval_data is not None:
                self.score(eval_data, validation_metric or metric, None, eval_batch_end_callback, eval_end_callback, True, epoch)

    # Files

    def save_params(self, fname):
        """Writes the parameters in MXNet's format."""
        from . import nd

        values, states = self.get_params()
        nd.save(fname, {**{f"arg:{n}": a for n, a in values.items()}, **{f"aux:{n}": a for n, a in states.items()}})

    def load_params(self, fname):
        """Reads the parameters."""
        from .model import split_params

        self.set_params(*split_params(fname))

    def save_checkpoint(self, prefix, epoch, save_optimizer_states=False, remove_amp_cast=True):
        """Writes the program and the parameters."""
        if save_optimizer_states:
            raise not_here("Module.save_checkpoint(save_optimizer_states=True)", "gluon.Trainer.save_states")
        self.symbol.save(f"{prefix}-symbol.json")
        self.save_params(f"{prefix}-{epoch:04d}.params")

    @staticmethod
    def load(prefix, epoch, load_optimizer_states=False, **options):
        """A module from files of save_checkpoint; bind gives it the parameters."""
        from .model import load_checkpoint

        symbol, *params = load_checkpoint(prefix, epoch)
        made = Module(symbol, **options)
        made._kept = params
        return made


__getattr__ = missing("mx.mod")
