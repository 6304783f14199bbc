"""Optimisers, training steps, metrics, and batches on several devices."""
import weakref

from . import _core
from ._blocks import Block, loss_function, loss_of_all
from ._core import NULL, check, choice, ffi, here, lib, options, owned, pointer, raise_error, text_of, wrong
from ._tensor import Tensor, array, device_of, wrap, wait_interruptibly

OPTIMIZERS = {ffi.string(lib.sl_optimizer_name(kind)).decode(): kind for kind in sorted(ffi.typeof("enum sl_optimizer_kind").elements)}
_schedules = {"constant": lib.SL_CONSTANT, "steps": lib.SL_STEPS, "cosine": lib.SL_COSINE, "polynomial": lib.SL_POLYNOMIAL}
_reductions = {"mean": lib.SL_REDUCTION_MEAN, "sum": lib.SL_REDUCTION_SUM}
_settings = [name for name, _ in ffi.typeof("struct sl_optimizer").fields if name not in ("kind", "schedule", "as_written")]
SETTINGS = [name for name in _settings if name not in ("lr", "weight_decay", "clip_norm", "clip_value", "average", "loss_scaling", "shard_state", "state_on")]
_of_kind = {lib.SL_CONSTANT: (), lib.SL_STEPS: ("every", "factor"), lib.SL_COSINE: ("total", "final_lr"), lib.SL_POLYNOMIAL: ("total", "final_lr", "power")}
_terms = [name for name, _ in ffi.typeof("struct sl_schedule").fields if name not in ("kind", "as_written")]


def _only(given, known, what):
    for name in given:
        if name not in known:
            raise TypeError(f"{what} has no setting {name!r}; it has {', '.join(known)}")
    return given


def _terms_of(struct, given):
    """The structure; names the setting whose value is not a number."""
    try:
        return options(struct, **given)
    except TypeError:
        for name, value in given.items():
            if not isinstance(value, dict) and not hasattr(value, "__float__"):
                raise wrong(name, value, "a number") from None
        raise


class Schedule:
    """A schedule of the learning rate: Schedule("cosine", warmup=100, total=10000)."""

    def __init__(self, kind="constant", **terms):
        number = choice(_schedules, kind, "kind")
        self._c = {"kind": number, **_only(terms, ["warmup", *_of_kind.get(number, _terms)], f"the schedule {kind!r}")}


class Trainer(_core.Settled):
    """Updates the parameters of a block: Trainer(net, "adam", lr=0.001).

    With state_on="cpu" the optimiser's states are in main memory, and parameters of a network on a GPU are updated there."""

    _instead = "make another one, and give it the state with save and load"
    _settings = (*_settings, "schedule")

    def __init__(self, block, optimizer="sgd", *, schedule=None, **settings):
        c = {"kind": choice(OPTIMIZERS, optimizer, "optimizer"), **_only(settings, _settings, f"optimizer {optimizer!r}")}
        if schedule is not None:
            if not isinstance(schedule, Schedule):
                raise wrong("schedule", schedule, "starling.Schedule(…)")
            c["schedule"] = schedule._c
        if "state_on" in c:
            c["state_on"] = device_of(c["state_on"])
        p = lib.sl_trainer_new_at(here(), pointer("block", block, Block), _terms_of("sl_optimizer", c))
        self._p = owned(p, lib.sl_trainer_free, block)
        self._refer(block=block)

    def step(self, batch_size, *, ignore_stale=False):
        """Updates the parameters by the gradients, divided by batch_size."""
        check(lib.sl_trainer_step_at(here(), self._p, batch_size, (ignore_stale,)))

    def group(self, pattern, *, lr_scale=None, weight_decay=None, no_decay=False):
        """Sets another learning rate or decay for parameters whose paths match: group("*bias", no_decay=True)."""
        opts = options("sl_group_opts", lr_scale=lr_scale, weight_decay=weight_decay, no_decay=no_decay)
        check(lib.sl_trainer_group_at(here(), self._p, text_of(pattern, "pattern"), opts))

    def use_averages(self, averages=True):
        """Replaces the network's parameters by their moving averages; False restores the parameters."""
        check(lib.sl_trainer_use_averages_at(here(), self._p, averages))

    @property
    def lr(self):
        """The learning rate of the next step."""
        return lib.sl_trainer_lr(self._p)

    @lr.setter
    def lr(self, value):
        lib.sl_trainer_set_lr(self._p, value)
        if lib.sl_error():
            raise_error()

    @property
    def steps(self):
        """The number of steps so far."""
        return lib.sl_trainer_steps(self._p)

    @property
    def loss_scale(self):
        """The factor of losses with loss scaling: Trainer(net, "sgd", loss_scaling={"start": 65536})."""
        return lib.sl_trainer_loss_scale(self._p)

    @property
    def overflows(self):
        """The number of steps that loss scaling has skipped."""
        return lib.sl_trainer_overflows(self._p)

    def save(self, path):
        """Writes its state to a file."""
        check(lib.sl_trainer_save_at(here(), self._p, text_of(path, "path")))

    def load(self, path):
        """Reads its state from a file."""
        check(lib.sl_trainer_load_at(here(), self._p, text_of(path, "path")))


def _step_opts(reduction, accumulate, passes_off, buckets, bucket_axis):
    buckets = _core.buckets_of(bucket_axis, buckets)
    return options("sl_step_opts", passes_off=passes_off, accumulate=accumulate, reduction=choice(_reductions, reduction, "reduction"), buckets=buckets)


class _WholeStep(_core.Settled):
    """The base of compiled steps."""

    def _compiled(self, p, loss, block, trainer):
        self._p = owned(p, lib.sl_step_free, loss, block, trainer)
        self._refer(block=block, trainer=trainer)

    def _run(self, **batch):
        return lib.sl_step_run_at(here(), self._p, ffi.new("struct sl_step_batch *", batch)[0])

    def _on_shards(self, n, inputs, nin, targets, ntargets, losses):
        first = self._run(**{"in": inputs}, nin=nin or -1, targets=targets if ntargets else NULL, ntargets=ntargets, losses=losses, shards=n or -1)
        if first == NULL:
            check(lib.sl_error())


class Step(_WholeStep):
    """A whole training step as one compiled program: forward, loss, backward, update.

        step = Step(net, starling.softmax_cross_entropy, trainer)
        losses = step(x, y)

    It minimises the mean of all losses, or with reduction="sum" their sum; with accumulate=n, each n-th call makes a
    step with the gradients of n micro-batches.  With buckets=(16, 32, 64) inputs and targets are padded along bucket_axis to
    one of these sizes, and losses of padding do not count (see Block.hybridize).
    """

    def __init__(self, block, loss, trainer, *, reduction="mean", accumulate=1, passes_off=0, buckets=(), bucket_axis=0):
        function, called = loss_function(loss)
        opts = _step_opts(reduction, accumulate, passes_off, buckets, bucket_axis)
        p = lib.sl_step_compile_at(here(), pointer("block", block, Block), function, pointer("trainer", trainer, Trainer), opts)
        self._compiled(p, called, block, trainer)

    def __call__(self, x, target):
        """Trains on a batch; returns the losses."""
        return wrap(self._run(x=pointer("x", x, Tensor), target=pointer("target", target, Tensor)), type(x))

    def with_output(self, x, target):
        """Trains on a batch; returns the losses and the output of the network."""
        output = ffi.new("sl_tensor **")
        losses = wrap(self._run(x=x._p, target=target._p, output=output), type(x))
        return losses, wrap(output[0], type(x))

    def on_shards(self, xs, targets):
        """Trains on a batch that was split (split_and_load); returns the losses of each shard."""
        xs = list(xs)
        x, y = _tensors("input", xs), _tensors("target", list(targets))
        if not xs or len(x) != len(y):
            raise _core.ShapeError(f"{len(x)} shards of inputs, and {len(y)} of targets")
        losses = ffi.new("sl_tensor *[]", len(x))
        self._on_shards(len(x), x, 1, y, 1, losses)
        return [wrap(losses[i], type(xs[i])) for i in range(len(x))]


class StepAll(_WholeStep):
    """A whole training step of a network with several inputs or results, any number of targets, and any loss of them all:

        def loss(outputs, targets):
            return sl.l2_loss(outputs[0], targets[0]) + 0.5 * sl.softmax_cross_entropy(outputs[1], targets[1])

        step = StepAll(net, loss, trainer)
        losses = step([image, text], [box, label])

    loss is called with lists of the results and the targets when the step is compiled.  The options are those of Step.
    """

    def __init__(self, block, loss, trainer, *, reduction="mean", accumulate=1, passes_off=0, buckets=(), bucket_axis=0):
        opts = _step_opts(reduction, accumulate, passes_off, buckets, bucket_axis)
        c_block, c_trainer = pointer("block", block, Block), pointer("trainer", trainer, Trainer)
        called = loss_of_all(loss, block)
        opts.loss_of_all = called
        self._compiled(lib.sl_step_compile_at(here(), c_block, NULL, c_trainer, opts), called, block, trainer)

    def __call__(self, inputs, targets):
        """Trains on a batch; returns the losses."""
        x, y = _tensors("input", inputs), _tensors("target", targets)
        return wrap(self._run(**{"in": x}, nin=len(x) or -1, targets=y if len(y) else NULL, ntargets=len(y)), Tensor)

    def on_shards(self, inputs, targets):
        """Trains on a batch that was split, given as a list for each shard; returns the losses of each shard."""
        x, y = [_tensors("input", s) for s in inputs], [_tensors("target", s) for s in targets]
        if not x or len(x) != len(y) or any(len(s) != len(x[0]) for s in x) or any(len(s) != len(y[0]) for s in y):
            raise _core.ShapeError("each shard has the same number of inputs, and of targets")
        all_x, all_y = ffi.new("sl_tensor *[]", [t for s in x for t in s]), ffi.new("sl_tensor *[]", [t for s in y for t in s])
        losses = ffi.new("sl_tensor *[]", len(x))
        self._on_shards(len(x), all_x, len(x[0]), all_y, len(y[0]), losses)
        return [wrap(losses[i], Tensor) for i in range(len(x))]


_kept = weakref.WeakKeyDictionary()  # the tensors of each array: iterating over a tensor makes rows that nobody else keeps


def _tensors(name, given):
    """An array of the tensors for C, which keeps them."""
    if isinstance(given, Tensor):
        given = [given]
    if not isinstance(given, (list, tuple)):
        raise wrong(f"{name}s", given, "a list of tensors")
    pointers = ffi.new("sl_tensor *[]", [pointer(f"{name} {i}", t, Tensor) for i, t in enumerate(given)])
    _kept[pointers] = list(given)
    return pointers


class Cache(_core.Settled):
    """Keys and values of earlier steps for a network of causal attention, so that only new steps are computed:

        cache = Cache(net, 1024)
        y = cache(prompt)                  # (1, 5) words
        y = cache(next_word)               # (1, 1), at the cost of one

    len(cache) is its number of steps.
    """

    def __init__(self, net, steps):
        self._p = owned(lib.sl_cache_new_at(here(), pointer("net", net, Block), steps), lib.sl_cache_free, net)
        self._refer(net=net)

    def __len__(self):
        return lib.sl_cache_length(self._p)

    def __call__(self, x):
        """The network's results for the next steps, x (rows, steps, ...)."""
        return wrap(lib.sl_cache_forward_at(here(), self._p, pointer("x", x, Tensor)), type(x))

    def cut(self, length):
        """Keeps the first `length` steps and forgets the others."""
        check(lib.sl_cache_cut_at(here(), self._p, length))


def split_and_load(x, devices, *, uneven=False, weights=None):
    """Splits the rows of x over the devices, one part for each."""
    if not isinstance(devices, (list, tuple)):
        raise wrong("devices", devices, "a list of devices")
    n = len(devices)
    c_devices = ffi.new("sl_device[]", [device_of(d) for d in devices])
    parts = ffi.new("sl_tensor *[]", n)
    shares = NULL if weights is None else ffi.new("double[]", list(weights))
    check(lib.sl_split_and_load_at(here(), pointer("x", x, Tensor), c_devices, n, parts, (uneven, shares, NULL)))
    return [wrap(parts[i], type(x)) for i in range(n)]


class Metric(_core.Settled):
    """A running mean that tasks compute; reading it waits."""

    def __init__(self, p):
        self._p = owned(p, lib.sl_metric_free)

    def add(self, values, labels=None):
        """Adds scores and their labels to an accuracy, values to a mean."""
        check(lib.sl_metric_add_at(here(), self._p, pointer("values", values, Tensor), NULL if labels is None else pointer("labels", labels, Tensor)))

    def get(self):
        """The current mean; NaN without values."""
        wait_interruptibly()
        value = lib.sl_metric_get_at(here(), self._p)
        if value != value and lib.sl_error():
            raise_error()
        return value

    def reset(self):
        """Forgets all values."""
        lib.sl_metric_reset(self._p)


def Accuracy():
    """The share of samples whose label has the largest score."""
    return Metric(lib.sl_accuracy_new_at(here()))


def TopK(k):
    """The share of samples whose label is among the k largest scores."""
    return Metric(lib.sl_topk_new_at(here(), k))


def Mean():
    """The mean of the added values."""
    return Metric(lib.sl_mean_new_at(here()))
