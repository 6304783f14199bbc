"""PyTorch's eager tensors on Starling's devices: a call queues its work and returns at once.

A tensor subclass sees each ATen operation below autograd, which stays PyTorch's.  Operation, shapes and numbers are the key of
a program of one operation, made by the table of the backend.  What the table lacks is decomposed, or computed in main memory,
which waits and is counted by starling.torch.fallbacks().  PyTorch's device type "starling" is PyTorch's PrivateUse1 renamed;
a subclass alone would have no name for .to(device), and PrivateUse1 alone would need a C++ allocator and a kernel for each
operation.  PyTorch's guard of devices that are written in Python knows one device: inside of PyTorch all tensors are on device 0,
and .device, .to and get_device of the class say where they are.
"""
import torch
from torch._subclasses import fake_tensor
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from .._core import Error
from ._backend import decompositions
from ._failures import in_node, result_of
from ._graph import RANDOM, Plan, counts, left_to_torch
from ._labels import check_labels
from ._memory import contiguous, generation
from ._table import aten, lowered
from ._text import DTYPES, Program, Unsupported, Value
from ._values import Box, Given, Ref, download, filled, moved, upload

MOST = 4096  # programs of one operation that are kept
RESHAPES = {
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten._reshape_alias.default, aten.unsqueeze.default,
    aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims,
}  # fmt: skip
SPLITS = {aten.split.Tensor, aten.split_with_sizes.default, aten.unbind.int}
SAME = {aten.detach.default, aten.alias.default, aten.lift_fresh.default}

# Its results cannot be described without values.
BY_VALUE = (fake_tensor.DataDependentOutputException, fake_tensor.DynamicOutputShapeException, fake_tensor.UnsupportedOperatorException)

_known: dict = {}
_results: dict = {}  # (operation, shapes, numbers): (shape, type, strides, offset) of its results
_generation = None


class StarlingTensor(torch.Tensor):
    """A tensor on one of Starling's devices.  Printing it, item() and cpu() wait for its values."""

    @staticmethod
    def __new__(cls, ref, where, strides=None, offset=None):
        t = torch.Tensor._make_wrapper_subclass(cls, ref.shape, strides=strides, storage_offset=offset, dtype=ref.dtype, device="starling:0")
        t._ref, t._where = ref, where
        return t

    @property
    def device(self):
        return torch.device("starling", self._where)

    def get_device(self):
        return self._where

    def tolist(self):
        return self.detach().cpu().tolist()

    def numpy(self, *, force=False):
        return self.cpu().numpy(force=force) if force else torch.Tensor.numpy(self)

    def to(self, *args, **kwargs):
        """As PyTorch's; the device comes first."""
        if args and isinstance(args[0], torch.Tensor):
            device, dtype = args[0].device, args[0].dtype
        else:
            device, dtype, *_ = torch._C._nn._parse_to(*args, **{k: v for k, v in kwargs.items() if k != "copy"})
        x = self
        if device is not None and device.type != "starling":
            return torch.Tensor.to(self, device, dtype or self.dtype)
        if device is not None and (device.index or 0) != self._where:
            x = _Move.apply(x, device.index or 0)
        elif kwargs.get("copy"):
            x = x.clone()
        return x if dtype is None or dtype == x.dtype else torch.Tensor.to(x, dtype)

    def __repr__(self, *, tensor_contents=None):
        text = repr(self.detach().cpu())
        more = f", device='{self.device}'" + (", requires_grad=True" if self.requires_grad and self.grad_fn is None else "")
        more += f", grad_fn=<{type(self.grad_fn).__name__}>" if self.grad_fn is not None else ""
        return f"{text[:-1]}{more})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        try:
            return dispatch(func, args, kwargs or {})
        except Exception as error:
            if not in_node():
                raise
            return result_of(func, error)

    __torch_function__ = torch._C._disabled_torch_function_impl


class _Move(torch.autograd.Function):
    """A copy on another device; its gradient goes back."""

    @staticmethod
    def forward(context, x, where):
        context.where = x._where
        return placed(x, where, x.stride())

    @staticmethod
    def backward(context, dy):
        return _Move.apply(dy, context.where) if dy._where != context.where else dy, None


def engine_device(where):
    """The engine's device of an index: a GPU where there are GPUs, else a team of CPU cores."""
    from ._device import kind

    return kind(), where


def _whole(p, shape, dtype, where, strides=None, host=None):
    return StarlingTensor(Ref(Box(p, host=host), shape, dtype), where, strides)


def placed(x, where, strides=None):
    """A copy on another device, which waits for nothing."""
    if x.dtype not in DTYPES:
        return from_host(to_host(x), where)
    return _whole(moved(x._ref.value(), engine_device(where)), x.shape, x.dtype, where, strides)


def from_host(t, where):
    """A tensor of the same values on a device."""
    if not t.numel() or t.dtype not in DTYPES:
        return _whole(None, t.shape, t.dtype, where, host=t.detach().resolve_conj().resolve_neg().contiguous().clone())
    p = upload(t, engine_device(where))
    # Labels are few: their check needs no wait then.
    return _whole(p, t.shape, t.dtype, where, host=t.detach().clone() if t.dtype == torch.int64 and t.ndim == 1 else None)


def to_host(x):
    """Its values in main memory."""
    host = x._ref.box.host
    if host is not None and x._ref.of is None:
        return host.clone()
    if not x.numel():
        return torch.empty(x.shape, dtype=x.dtype)
    if x.dtype not in DTYPES:
        return x._ref.host().clone()
    return download(x._ref.value(), x.shape, x.dtype)


# ---- one operation as a program ---------------------------------------------------------------------------------------


class Entry:
    """A compiled operation: its program, where its inputs are among the arguments, and its results."""

    __slots__ = ("plan", "sources", "results", "labels", "several")


def _is_value(a):
    return isinstance(a, (StarlingTensor, Given))


def _described(a):
    if isinstance(a, StarlingTensor):
        turned = a._ref.transposed
        return tuple(a.shape), a.dtype, a.stride(), turned is not None
    if isinstance(a, Given):
        return a.shape, a.dtype
    return type(a), a  # 1, 1.0 and True are equal keys, but not equal arguments


def _describe_results(func, flat, form):
    """The results that PyTorch would give: (whether it is a list, [(shape, dtype, strides, offset) or None])."""
    with fake_tensor.FakeTensorMode(), torch.no_grad():
        fakes = [
            torch.empty_strided(a.shape, a.stride() if isinstance(a, StarlingTensor) else contiguous(a.shape), dtype=a.dtype)
            if _is_value(a) else a
            for a in flat
        ]  # fmt: skip
        args, kwargs = tree_unflatten(fakes, form)
        val = func(*args, **kwargs)
    several = isinstance(val, (list, tuple))
    listed = list(val) if several else [val]
    return several, [(tuple(t.shape), t.dtype, t.stride(), t.storage_offset()) if isinstance(t, torch.Tensor) else t for t in listed]


def _compile(func, flat, form, where):
    """The program of an operation; Unsupported if the table has none."""
    several, results = _describe_results(func, flat, form)
    if not all(r is None or isinstance(r, tuple) for r in results):
        raise Unsupported("its result is no tensor")
    values, origin = list(flat), {}
    for i, a in enumerate(flat):
        if _is_value(a):
            v = values[i] = Value(None, f"a{i}", tuple(a.shape), a.dtype)
            v.source = v
            origin[v] = i, False
            turned = a._ref.transposed if isinstance(a, StarlingTensor) else None
            if turned is not None:
                v.base = Value(None, f"b{i}", turned.shape, turned.dtype)
                origin[v.base] = i, True
    args, kwargs = tree_unflatten(values, form)
    program = Program()
    program.in_order = all(a.is_contiguous() for a in flat[:1] if isinstance(a, torch.Tensor))
    made = lowered(program, func, args, kwargs, [None if r is None else r[:2] for r in results])
    made += [None] * (len(results) - len(made))
    wanted = list(dict.fromkeys(v for v in made if v is not None and v.program is program))
    entry = Entry()
    entry.plan = Plan(program, wanted, engine_device(where)) if wanted else None
    entry.sources = [origin[v] for v in entry.plan.inputs] if wanted else []
    entry.labels = [(origin[v][0], *limits) for v, limits in program.labels.items()]
    entry.several = several
    entry.results = [
        (None if v is None else wanted.index(v) if v.program is program else origin[v], r) for v, r in zip(made, results)
    ]
    return entry


def _pointer(a, turned=False):
    if isinstance(a, Given):
        return a.p
    return a._ref.transposed.value() if turned else a._ref.value()


def _run(func, flat, form, where):
    """Runs an operation: None if the table lacks it, else (whether it has several results, [(pointer or None, description)])."""
    global _generation
    if _generation != generation():  # the engine was stopped meanwhile
        _known.clear()
        _generation = generation()
    key = (func, where, form, *map(_described, flat))
    try:
        entry = _known.get(key, False)
    except TypeError:  # an argument that is no key
        return None
    if entry is False:
        try:
            entry = _compile(func, flat, form, where)
        except (Unsupported, Error, NotImplementedError) as reason:
            entry = str(reason)
        except BY_VALUE:
            entry = "its result has no shape before it is computed"
        if len(_known) >= MOST:
            del _known[next(iter(_known))]
        _known[key] = entry
    if isinstance(entry, str):
        return None
    for i, classes, ignore in entry.labels:
        check_labels(to_host(flat[i]), classes, ignore)
    out = entry.plan.run([_pointer(flat[i], turned) for i, turned in entry.sources]) if entry.plan else []
    found = []
    for which, r in entry.results:
        found.append((None if which is None else out[which] if isinstance(which, int) else _pointer(flat[which[0]], which[1]), r))
    return entry.several, found


def compute_one(func, given, args):
    """The pointer of the result of an operation of a value and more arguments."""
    from ._device import current

    flat, form = tree_flatten(((given, *args), {}))
    found = _run(func, flat, form, current())
    if found is not None:
        return found[1][0][0]
    # The table lacks it for these arguments: in main memory.
    left_to_torch(func, _reason(func, flat, form, current()))
    host = [download(a.p, a.shape, a.dtype) if isinstance(a, Given) else a for a in flat]
    args, kwargs = tree_unflatten(host, form)
    return upload(func(*args, **kwargs), engine_device(current()))


def _reason(func, flat, form, where):
    entry = _known.get((func, where, form, *map(_described, flat)))
    return entry if isinstance(entry, str) else "with these arguments"


# ---- dispatch ---------------------------------------------------------------------------------------------------------


def _where(tensors):
    """The device of all arguments; formulas of gradients make further ones on device 0."""
    places = {t._where for t in tensors if t.ndim} or {t._where for t in tensors[:1]}
    if len(places) == 2 and in_node():
        places.discard(0)
    if len(places) > 1:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            + " and ".join(f"starling:{k}" for k in sorted(places)) + "!"
        )  # fmt: skip
    return places.pop()


def dispatch(func, args, kwargs):
    """An ATen operation of at least one tensor of ours."""
    handler = HANDLERS.get(func)
    if handler is not None:
        return handler(func, *args, **kwargs)
    if func in VIEWS:
        return view(func, *args, **kwargs)
    if func._schema.is_mutable:
        return change(func, args, kwargs)
    return compute(func, args, kwargs)


def compute(func, args, kwargs):
    """A function of tensors."""
    from ._device import on

    flat, form = tree_flatten((args, kwargs))
    ours = [a for a in flat if isinstance(a, StarlingTensor)]
    where = _where(ours)
    for i, a in enumerate(flat):
        if isinstance(a, torch.Tensor) and not isinstance(a, StarlingTensor):
            if a.ndim:
                raise RuntimeError(f"Expected all tensors to be on the same device, but found starling:{where} and cpu!")
            flat[i] = from_host(a, where) if func not in NUMBERS_TOO else a.item()
        elif isinstance(a, StarlingTensor) and a._where != where:  # of no axes, as formulas of gradients make them on device 0
            flat[i] = placed(a, where)
    with on(where):
        found = _run(func, flat, form, where) if all(t.numel() for t in ours) else None
        if found is None:
            args, kwargs = tree_unflatten(flat, form)
            result = decomposed(func, args, kwargs)
            if result is not NotImplemented:
                return result
            return in_main_memory(func, flat, form, where)
    several, listed = found
    out = [_result(p, r, where, func, flat, form, i) for i, (p, r) in enumerate(listed)]
    return tuple(out) if several else out[0]


def decomposed(func, args, kwargs):
    """An operation as others, or NotImplemented."""
    if func in decompositions():
        return decompositions()[func](*args, **kwargs)
    return func.decompose(*args, **kwargs)


def _result(p, r, where, func, flat, form, i):
    if r is None:
        return None
    shape, dtype, strides, _ = r
    if p is not None:
        return _whole(p, shape, dtype, where, strides)
    if 0 in shape:
        return _whole(None, shape, dtype, where, strides, host=torch.empty(shape, dtype=dtype))

    def late():  # the places of maxima, which a gradient does not read
        args, kwargs = tree_unflatten([to_host(a) if isinstance(a, StarlingTensor) else a for a in flat], form)
        return upload(func(*args, **kwargs)[i], engine_device(where))

    return StarlingTensor(Ref(Box(late=late), shape, dtype), where, strides)


def in_main_memory(func, flat, form, where):
    """What the table lacks, computed by PyTorch; changes in place come back."""
    if any(a.numel() for a in flat if isinstance(a, StarlingTensor)):
        left_to_torch(func, _reason(func, flat, form, where))
    host = [to_host(a) if isinstance(a, StarlingTensor) else a for a in flat]
    args, kwargs = tree_unflatten(host, form)
    if kwargs.get("device") is not None:
        kwargs["device"] = torch.device("cpu")
    out = func(*args, **kwargs)
    back = {id(h): a for a, h in zip(flat, host) if isinstance(a, StarlingTensor)}
    for t in written(func, args, kwargs):
        a = back.get(id(t))
        if a is not None:
            if t.shape != a.shape:
                raise NotImplementedError(f"{func} gives another size to a tensor on a device")
            assign(a, t)
    place = lambda t: back[id(t)] if id(t) in back else from_host(t, where) if isinstance(t, torch.Tensor) else t
    return tree_map(place, out)


def written(func, args, kwargs):
    """The tensors that an operation changes."""
    for i, a in enumerate(func._schema.arguments):
        if a.alias_info is not None and a.alias_info.is_write:
            value = args[i] if i < len(args) else kwargs.get(a.name)
            yield from value if isinstance(value, (list, tuple)) else [value]


def _storage(x):
    """All of the memory that x is a view of."""
    root = x._ref.root
    return x if root is x._ref else StarlingTensor(root, x._where)


def view(func, x, *args, **kwargs):
    """A view."""
    names = [a.name for a in func._schema.arguments][1:]
    args = list(args) + [kwargs.get(name) for name in names[len(args) :] if name in kwargs]
    if func in SPLITS:
        return _split(func, x, *args)
    if func is aten.as_strided.default:
        given = args[2] if len(args) > 2 else None
        x, args = _storage(x), [*args[:2], x.storage_offset() if given is None else given]
    flat, form = tree_flatten(((x, *args), {}))
    key = (func, *[_described(a) for a in flat], form)
    if key not in _results:
        if len(_results) >= MOST:
            _results.clear()
        _results[key] = _describe_results(func, flat, form)[1][0]
    shape, dtype, strides, offset = _results[key]
    ref = Ref(x._ref.box, shape, dtype, x._ref, None if func in RESHAPES else func, tuple(args))
    return StarlingTensor(ref, x._where, strides, x.storage_offset() + offset)


def _split(func, x, *args):
    """Several views."""
    dim = (args[1] if len(args) > 1 else 0) if func is not aten.unbind.int else (args[0] if args else 0)
    n = x.shape[dim]
    if func is aten.unbind.int:
        return [view(aten.select.int, x, dim, i) for i in range(n)]
    sizes = args[0] if func is aten.split_with_sizes.default else [min(args[0], n - i) for i in range(0, n, args[0])]
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [view(aten.slice.Tensor, x, dim, e - s, e) for s, e in zip(sizes, ends)]


def change(func, args, kwargs):
    """A change in place: the values of the function without it, put into the tensor."""
    from ._device import on

    name = func._schema.name.split("::")[1]
    x = args[0]
    if func in RESHAPED_IN_PLACE:
        y = view(RESHAPED_IN_PLACE[func], *args, **kwargs)
        x.data, x._ref = y, y._ref
        return x
    if name.endswith("_") and isinstance(x, StarlingTensor):
        if RANDOM in func.tags:
            counts["random in PyTorch"] += 1
            t = func(torch.empty(x.shape, dtype=x.dtype), *args[1:], **kwargs)
            return assign(x, t)
        plain = getattr(getattr(torch.ops.aten, name[:-1], None), func._overloadname, None)
        if plain is not None:
            return assign(x, compute(plain, args, kwargs))
    flat, form = tree_flatten((args, kwargs))
    where = _where([a for a in flat if isinstance(a, StarlingTensor)])
    with on(where):
        return in_main_memory(func, flat, form, where)


def assign(x, y, non_blocking=False):
    """x = y in place, converted and broadcast."""
    from ._device import on

    if not isinstance(x, StarlingTensor):
        return x.copy_(to_host(y))
    if not x.numel():
        return x
    if x.dtype not in DTYPES:
        x._ref.host().copy_(to_host(y) if isinstance(y, StarlingTensor) else y.detach())
        return x
    with on(x._where):
        if not isinstance(y, StarlingTensor):
            y = y.detach().to(x.dtype).expand(x.shape)
            host = y.clone() if x.dtype == torch.int64 and x.ndim == 1 and x._ref.of is None else None
            x._ref.write(upload(y, engine_device(x._where)))
            x._ref.box.host = host
            return x
        if y._where != x._where:
            y = placed(y, x._where)
        if y.dtype != x.dtype:
            y = compute(aten._to_copy.default, (y,), {"dtype": x.dtype})
        if y.shape != x.shape:
            y = view(aten.expand.default, y, list(x.shape))
        x._ref.write(y._ref.value())
    return x


# ---- operations with a way of their own -------------------------------------------------------------------------------


def _same(func, x):
    return StarlingTensor(x._ref, x._where, x.stride(), x.storage_offset())


def _copied(func, x, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    """_to_copy: to main memory, to another device, to another type."""
    if device is not None and device.type != "starling":
        t = to_host(x)
        return t.to(device, dtype or x.dtype)
    if dtype is not None and dtype != x.dtype:
        return compute(func, (x,), {"dtype": dtype})
    return _clone(func, x)


def _clone(func, x, memory_format=None):
    if not x.numel() or x.dtype not in DTYPES:
        return from_host(to_host(x), x._where)
    return _whole(x._ref.value(), x.shape, x.dtype, x._where)


def _like(value):
    """A tensor of one number, of the shape of x."""

    def function(func, x, *given, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        shape = x.shape
        if func in NEW:
            shape, *given = given
            given = [] if func is aten.new_empty_strided.default else given
        number = given[0] if given else value
        if device is not None and device.type != "starling":
            return torch.full(tuple(shape), number, dtype=dtype or x.dtype, device=device)
        # A 0 may come from inside of PyTorch, where all of our tensors are on device 0.
        return constant(shape, dtype or x.dtype, number, device.index if device is not None and device.index else x._where)

    return function


def constant(shape, dtype, number, where):
    """A tensor of one number on a device, made when it is read."""
    shape = tuple(shape)
    if 0 in shape or dtype not in DTYPES:
        return _whole(None, shape, dtype, where, host=torch.full(shape, number, dtype=dtype))
    return StarlingTensor(Ref(Box(late=lambda: filled(shape, dtype, float(number), engine_device(where))), shape, dtype), where)


def _filled(func, x, value=0):
    if isinstance(value, torch.Tensor):
        value = value.item()
    if x.dtype not in DTYPES:
        return assign(x, torch.full(x.shape, value, dtype=x.dtype))
    if x.numel():
        x._ref.write(filled(x.shape, x.dtype, float(value), engine_device(x._where)))
    return x


def _item(func, x):
    return to_host(x).item()


def _batch_norm(func, x, w, b, mean, var, training, momentum, eps):
    if not training:
        return compute(aten._native_batch_norm_legit_no_training.default, (x, w, b, mean, var, momentum, eps), {})
    if mean is None:
        return compute(aten._native_batch_norm_legit.no_stats, (x, w, b, True, momentum, eps), {})
    y, m, s, new_mean, new_var = compute(aten._native_batch_norm_legit_functional.default, (x, w, b, mean, var, True, momentum, eps), {})
    assign(mean, new_mean)
    assign(var, new_var)
    return y, m, s


def _batch_norm_backward(func, *args):
    return compute(func, tuple(None if isinstance(a, StarlingTensor) and not a.numel() else a for a in args), {})


def _cat(func, xs, dim=0):
    kept = [x for x in xs if x.numel()]
    return compute(func, (kept if kept and len(kept) < len(xs) else xs, dim), {})


NEW = {aten.new_empty_strided.default, aten.new_empty.default, aten.new_zeros.default, aten.new_ones.default, aten.new_full.default}
NUMBERS_TOO = {getattr(getattr(aten, name), "Tensor") for name in ("add", "sub", "mul", "div")}
VIEWS = RESHAPES | SPLITS | {
    aten.expand.default, aten.slice.Tensor, aten.select.int, aten.permute.default, aten.transpose.int, aten.t.default,
    aten.diagonal.default, aten.as_strided.default, aten.unfold.default,
}  # fmt: skip
RESHAPED_IN_PLACE = {
    aten.squeeze_.default: aten.squeeze.default, aten.squeeze_.dim: aten.squeeze.dim, aten.squeeze_.dims: aten.squeeze.dims,
    aten.unsqueeze_.default: aten.unsqueeze.default, aten.t_.default: aten.t.default, aten.transpose_.default: aten.transpose.int,
}  # fmt: skip
HANDLERS = {
    **dict.fromkeys(SAME, _same), aten._to_copy.default: _copied, aten.clone.default: _clone, aten.zero_.default: _filled,
    aten.fill_.Scalar: _filled, aten.fill_.Tensor: _filled, aten._local_scalar_dense.default: _item, aten.cat.default: _cat,
    aten.native_batch_norm_backward.default: _batch_norm_backward,
    aten.copy_.default: lambda func, x, y, non_blocking=False: assign(x, y), aten.native_batch_norm.default: _batch_norm,
    **dict.fromkeys((aten.zeros_like.default, aten.empty_like.default, aten.new_zeros.default, aten.new_empty.default, aten.new_empty_strided.default), _like(0)),
    **dict.fromkeys((aten.ones_like.default, aten.new_ones.default), _like(1)), aten.full_like.default: _like(None),
    aten.new_full.default: _like(None),
}  # fmt: skip
