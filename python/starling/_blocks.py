"""Blocks: networks and layers, written in C or in Python, and their parameters."""
import functools
import inspect
import weakref

from . import _copying, _core, _hooks, _nested, _ops, _show
from ._core import NULL, check, choice, ffi, here, lib, options, raise_error, shape_from, shape_of, text_of
from ._files import captured
from ._tensor import Callback, Tensor, array, borrow, device_of, dtype_of, wrap


class Initializer:
    """The first values of parameters; made by zeros, ones, constant, normal, uniform, xavier, he of starling.init."""

    __slots__ = ("_c",)

    def __init__(self, kind=0, value=0.0, fan="avg", gaussian=False):
        fans = {"avg": lib.SL_FAN_AVG, "in": lib.SL_FAN_IN, "out": lib.SL_FAN_OUT}
        if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
            raise _core.wrong("an initialiser's value", value, "a number")
        self._c = (kind, float(value), choice(fans, fan, "fan"), gaussian, True)


def initializer_of(value):
    """The C structure of an initialiser; None is the layer's own initialiser."""
    if value is None:
        return (0, 0.0, 0, False, False)
    if not isinstance(value, Initializer):
        raise _core.wrong("init", value, "an initialiser of starling.init")
    return value._c


class Parameter(_core.Owner):
    """A parameter of a block; its block owns it."""

    __slots__ = ("_p", "_kind")
    _instead = "data().copy() has its values, set(values) gives them to another parameter"

    def __init__(self, p, block, kind=Tensor):
        self._p, self._kind = ffi.gc(p, lambda _, block=block: None), kind  # the pointer keeps its block

    @property
    def name(self):
        """The name, which begins with its block's: "dense0_weight"."""
        return ffi.string(lib.sl_param_name(self._p)).decode()

    @property
    def shape(self):
        """The lengths of the axes; -1 for a length that is not known before the first input."""
        return shape_from(lib.sl_param_shape(self._p))

    def data(self, device=None):
        """The values on a device: the tensor itself, not a copy."""
        with _core.sharing:
            p = lib.sl_param_data_at(here(), self._p, device_of(device))
            if not p:
                raise_error()
            return borrow(p, self._kind)

    def grad(self):
        """The gradient from the last backward()."""
        with _core.sharing:
            p = lib.sl_param_grad_at(here(), self._p)
            if not p:
                raise_error()
            return borrow(p, self._kind)

    def set(self, values):
        """Replaces the values by a tensor of the parameter's data type, or by an array or list of numbers that it can hold."""
        values = values if isinstance(values, Tensor) else array(values, self._dtype())
        check(lib.sl_param_set_at(here(), self._p, values._p))

    @property
    def is_initialized(self):
        """Whether the parameter has values."""
        found = bool(lib.sl_param_data_at(here(), self._p, device_of(None)))
        if not found:
            lib.sl_error_clear()
        return found

    def _dtype(self):
        """The data type of the values; float32 before they exist."""
        return self.data().dtype if self.is_initialized else "float32"

    def on(self, x):
        """The values on the device of x, an input of forward, which calls this."""
        with _core.sharing:
            p = lib.sl_param_use_at(here(), self._p, x._p)
            if not p:
                raise_error()
            return borrow(p, type(x))

    def __repr__(self):
        return f"Parameter {self.name} {self.shape}"


# ---- from C into Python -----------------------------------------------------------------------------------------------

_memory: dict = {}  # C structures of blocks written in Python, by their addresses


def _address(p):
    return int(ffi.cast("uintptr_t", p))


@ffi.def_extern()
def slpy_destroy(block):
    _memory.pop(_address(block), None)


def _message(error):
    return f"{type(error).__name__}: {error}".encode()


class _Callback(Callback):
    """A forward or a loss: C gets the exception as its error, too."""

    def failed(self, error):
        _core.callbacks.failure = error
        lib.sl_error_raise_at(NULL, lib.SL_EINVAL, ffi.new("char[]", _message(error)))


def _result(y, of):
    if not isinstance(y, Tensor):
        raise TypeError(f"{of} returned {type(y).__name__}, a tensor is needed")
    _core.callbacks.result = y  # lives until C has its own reference
    return y._p


@ffi.def_extern()
def slpy_forward(c_block, inputs, n):
    p = NULL
    with _Callback():
        block = ffi.from_handle(ffi.cast("struct slpy_block *", c_block).object)()
        if block is None:
            raise _core.StateError("the Python object of a block is gone; keep its parent or the network")
        p = _result(block._forward_for_c([borrow(inputs[i], block._arrays_are) for i in range(n)]), f"forward of {block.name}")
    return p


def loss_function(loss):
    """A loss for C: a pointer, and the object that must live as long as C uses it."""
    name = loss if isinstance(loss, str) else getattr(loss, "_c_name", None)
    if name:
        if getattr(_ops.__dict__.get(name), "_c_name", None) != name:
            raise _core.InvalidArgument(f"loss: {name!r} is no function of two tensors, as 'softmax_cross_entropy' is")
        return ffi.addressof(lib, f"sl_{name}_at"), None
    if not callable(loss):
        raise _core.wrong("loss", loss, "a function")

    @ffi.callback("sl_tensor *(*)(const char *, sl_tensor *, sl_tensor *)", error=NULL)
    def call(at, output, target):
        p = NULL
        with _Callback():
            p = _result(loss(borrow(output, Tensor), borrow(target, Tensor)), "the loss")
        return p

    return call, call


def loss_of_all(loss, block):
    """The same for a loss of all results of a block and all targets: loss(outputs, targets), which are lists."""

    @ffi.callback("sl_tensor *(*)(void *, sl_tensor *const *, int, sl_tensor *const *, int)", error=NULL)
    def call(context, outputs, noutputs, targets, ntargets):
        p = NULL
        with _Callback():
            results = [borrow(outputs[i], Tensor) for i in range(noutputs)]
            if noutputs == 1 and block._last is not None:  # a block written in Python gives one tensor for several
                results = _nested.cut(results[0], block._last)
            p = _result(loss(results, [borrow(targets[i], Tensor) for i in range(ntargets)]), "the loss")
        return p

    return call


# ---- blocks -----------------------------------------------------------------------------------------------------------


def _noted(init):
    """A layer's __init__ that keeps its arguments, for copies."""

    @functools.wraps(init)
    def noted(self, *args, **options):
        self.__dict__["_made"] = (args, options)
        init(self, *args, **options)

    return noted


def _is_same(a, b):
    """Whether two attributes have the same effect in forward."""
    return a is b or (type(a) is type(b) and isinstance(a, (bool, int, float, str, tuple)) and bool(a == b))


class Block(_core.Owner):
    """The base of networks and layers.  A custom block defines forward, with operations and other blocks:

        class Net(starling.Block):
            def __init__(self):
                super().__init__()
                self.hidden = starling.nn.Dense(256, activation="relu")
                self.output = starling.nn.Dense(10)

            def forward(self, x):
                return self.output(self.hidden(x))

    Blocks that become attributes are children: their parameters are also the network's.
    """

    _instead = "make another one in the same way, and give it the values with save_params and load_params"
    _arrays_are = Tensor  # the class of its inputs and parameters
    _results = None  # of a block that returns several tensors: how they are cut out of one, by the form of the inputs
    _inputs = None   # how its inputs are nested, if they are not just tensors
    _last = None     # of _results: those of the forward that ran last
    _hybrid = None   # the options of hybridize, if it is compiled

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if cls._is_layer() and "__init__" in cls.__dict__:
            cls.__init__ = _noted(cls.__init__)

    def __init__(self):
        memory = ffi.new("struct slpy_block *")
        handle = ffi.new_handle(weakref.ref(self))
        memory.object = handle
        base = ffi.addressof(memory, "base")
        check(lib.sl_block_init_at(here(), base, type(self).__name__.encode(), lib.slpy_forward, lib.slpy_destroy))
        _memory[_address(base)] = (memory, handle)
        self._own(base)
        object.__setattr__(self, "_made_params", {})

    def __copy__(self):
        raise TypeError(f"copy.copy cannot copy {type(self).__name__}: use copy.deepcopy, or {self._instead}")

    def __reduce__(self):
        found = _copying.reduce(self, Parameter, Sequential) if self._arrays_are._truths else None
        return super().__reduce__() if found is None else found

    def __setstate__(self, state):
        _copying.restore(self, state)

    def _own(self, p):
        object.__setattr__(self, "_p", _core.owned(p, lib.sl_block_free))
        object.__setattr__(self, "_children", {})

    @classmethod
    def _from(cls, p, children=()):
        """The Python object of a block made in C."""
        block = cls.__new__(cls)
        Block._own(block, p)
        for i, child in enumerate(children):
            block._children[str(i)] = child
        return block

    def __setattr__(self, name, value):
        if self._is_layer() and name in _core.settings_of(type(self)):
            raise AttributeError(f"{type(self).__name__} has its {name} from when it was made: make another one")
        if isinstance(value, Block) and not name.startswith("__"):
            self.add_child(name, value)
        before = self.__dict__.get(name, getattr(type(self), name, value))
        object.__setattr__(self, name, value)
        if not _is_same(before, value) and not getattr(_core.callbacks, "depth", 0):
            self._trace_again()

    def _trace_again(self):
        """Drops the programs, of this block and those around it, that have read an attribute that has changed."""
        if self._hybrid is not None:
            Block.hybridize(self, **self._hybrid)
        for parent in self.__dict__.get("_parents", ()):
            parent._trace_again()

    @classmethod
    def _is_layer(cls):
        """Whether this is a layer in C, which reads its options once."""
        return cls.__module__ == "starling.nn"

    def add_child(self, name, child):
        """Adds a child block."""
        if not isinstance(child, Block):
            raise _core.wrong(f"child {name!r}", child, "Block")
        if "_p" not in self.__dict__:
            raise _core.StateError(f"call super().__init__() in {type(self).__name__}.__init__ before setting {name}")
        added = lib.sl_block_add_at(here(), self._p, name.encode(), lib.sl_block_retain(child._p))
        if not added:
            raise_error()
        dict.__setitem__(self._children, name, child)
        child.__dict__.setdefault("_parents", weakref.WeakSet()).add(self)
        return child

    def param(self, name, shape, *, init=None, dtype=None, grad=True):
        """Adds a parameter to this block; lengths of -1 are not known yet.  forward uses it by param.on(x)."""
        opts = (initializer_of(init), dtype_of(dtype), not grad)
        p = lib.sl_block_param_at(here(), self._p, name.encode(), shape_of(shape), opts)
        if not p:
            raise_error()
        if "_made_params" in self.__dict__:
            self._made_params[name] = (shape, {"init": init, "dtype": dtype, "grad": grad})
        return Parameter(p, self, self._arrays_are)

    def forward(self, *inputs):
        """Computes the result; custom blocks define it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *inputs, **named):
        """The result of forward, or of the compiled program after hybridize().

        Inputs and results are tensors, or lists and tuples of them, or None.  Inputs of a block written in Python may be named.
        """
        if named:
            inputs = self._positional(inputs, named)
        try:
            values = ffi.new("sl_tensor *[]", [x._p for x in inputs])
            if self._inputs is not None:
                self._flat(inputs)
        except AttributeError:
            inputs = self._flat(inputs)
            values = ffi.new("sl_tensor *[]", [x._p for x in inputs])
        y = wrap(lib.sl_forward_at(here(), self._p, values, len(inputs)), type(inputs[0]) if inputs else Tensor)
        if getattr(_core.callbacks, "failure", None) is not None:
            _hooks.recover()
        if "_traced_results" in self.__dict__:
            return self.__dict__.pop("_traced_results")
        return y if self._results is None else _nested.cut(y, self._results[self._key(inputs)])

    def _several(self, inputs, count=None):
        """The first `count` results of a block in C that has several, or all of them."""
        if not all(isinstance(x, Tensor) for x in inputs):
            inputs = self._flat(inputs)
        most = count or lib.SL_MAX_RESULTS
        values, results = ffi.new("sl_tensor *[]", [x._p for x in inputs]), ffi.new("sl_tensor *[]", most)
        if count:
            check(lib.sl_forward_all_at(here(), self._p, values, len(inputs), results, count))
        else:
            count = lib.sl_forward_most_at(here(), self._p, values, len(inputs), results, most)
            if not count:
                raise_error()
        if getattr(_core.callbacks, "failure", None) is not None:
            _hooks.recover()
        return tuple(wrap(p, type(inputs[0]) if inputs else Tensor) for p in results[0:count])

    def _positional(self, inputs, named):
        """Named inputs at their positions in forward's signature."""
        given = inspect.signature(self.forward)
        try:
            bound = given.bind(*inputs, **named)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(f"{self.name}: forward must take {', '.join(bound.kwargs)} by place, too")
        values = list(bound.args)
        while len(values) > len(inputs) and values[-1] is None:  # as if it was not named
            values.pop()
        return tuple(values)

    def _flat(self, inputs):
        """The tensors among nested inputs; records how they are nested."""
        leaves = []
        try:
            form = _nested.flatten(inputs, leaves)
        except TypeError:
            _core.bad_argument(self.name, [(f"input {i}", x, Tensor) for i, x in enumerate(inputs)], None)
        if self._hybrid is not None and self._inputs != form:
            Block.hybridize(self, **self._hybrid)  # anew: its programs know their inputs by shapes alone
        object.__setattr__(self, "_inputs", form)
        return leaves

    def _key(self, inputs):
        return (*(x.shape for x in inputs), lib.sl_is_recording(), lib.sl_is_training())

    def _forward_for_c(self, inputs):
        """forward as the library calls it: with tensors only, and one result."""
        y = self.forward(*(inputs if self._inputs is None else _nested.unflatten(self._inputs, iter(inputs))))
        self._note_results(y)
        exported = getattr(_core.callbacks, "exported", None)
        if exported is not None and isinstance(y, (list, tuple)):
            return self._results_of_program(y, exported is self)
        object.__setattr__(self, "_last", None)
        if not isinstance(y, (list, tuple)):
            if self._results is not None:
                self._results[self._key(inputs)] = None
            return y
        if self._results is None:
            object.__setattr__(self, "_results", {})
        y, parts = _nested.join(y, f"forward of {self.name}")
        self._results[self._key(inputs)] = parts
        object.__setattr__(self, "_last", parts)
        return y

    def _note_results(self, y):
        """Told what forward has returned to the library."""

    def _results_of_program(self, y, whole):
        """The first of several results in a program that is exported, where each stays a value of its own."""
        leaves = []
        try:
            _nested.flatten(y, leaves)
        except TypeError as error:
            raise TypeError(f"forward of {self.name}: {error}") from None
        if not leaves:
            raise TypeError(f"forward of {self.name} returned an empty {type(y).__name__}, a tensor is needed")
        if whole:
            for further in leaves[1:]:
                check(lib.sl_also_at(here(), further._p))
        else:  # within it: __call__ returns them
            self.__dict__["_traced_results"] = y
        return leaves[0]

    @property
    def name(self):
        """Its type and a number, counted over the process: "dense0"."""
        return ffi.string(lib.sl_block_name(self._p)).decode()

    @property
    def children(self):
        """The blocks inside, by name."""
        return dict(self._children)

    def params(self):
        """All parameters, including those of blocks inside."""
        n = lib.sl_block_params(self._p, NULL, 0)
        found = ffi.new("sl_param *[]", max(n, 1))
        lib.sl_block_params(self._p, found, n)
        return [Parameter(found[i], self, self._arrays_are) for i in range(n)]

    def find(self, path):
        """The parameter of that name: "0.weight"."""
        if not isinstance(path, str):
            raise _core.wrong("path", path, "str")
        p = lib.sl_block_find_at(here(), self._p, path.encode())
        if not p:
            raise_error()
        return Parameter(p, self, self._arrays_are)

    def initialize(self, init=None, *, devices=None, dtype=None, force=False, gather=0):
        """Gives the parameters their first values, now or as soon as their shapes are known.

        gather: the number of backward passes whose gradients are added until a trainer's step uses them.
        """
        opts = {"init": initializer_of(init), "dtype": dtype_of(dtype), "force": force, "gather": gather}
        if devices is not None:
            devices = devices if isinstance(devices, (list, tuple)) else [devices]
            array_ = ffi.new("sl_device[]", [device_of(d) for d in devices])
            opts.update(devices=array_, ndevices=len(devices))
        with _core.sharing:
            check(lib.sl_initialize_at(here(), self._p, options("sl_initialize_opts", **opts)))

    def freeze(self, pattern="*"):
        """Stops training the parameters whose paths match a pattern ("features.*")."""
        with _core.sharing:
            check(lib.sl_freeze_at(here(), self._p, text_of(pattern, "pattern")))
        self.__dict__.setdefault("_freezes", []).append((pattern, True))

    def unfreeze(self, pattern="*"):
        """Trains the parameters whose paths match a pattern again."""
        with _core.sharing:
            check(lib.sl_unfreeze_at(here(), self._p, text_of(pattern, "pattern")))
        self.__dict__.setdefault("_freezes", []).append((pattern, False))

    def recompute(self, active=True):
        """Computes the inside of the block again in the backward pass, instead of keeping it: less memory, more work.

        forward is then called twice, and must do the same both times.
        """
        check(lib.sl_block_recompute_at(here(), self._p, bool(active)))
        object.__setattr__(self, "_recomputed", bool(active))

    def hybridize(self, active=True, *, static_alloc=False, static_shape=False, fallback=False, passes_off=0, buckets=(), bucket_axis=0, memory=0):
        """Runs the block as a compiled program from now on: forward is called once for each kind of input.

        With buckets=(16, 32, 64) inputs are padded along bucket_axis to one of these sizes, and results cut back, so that
        many sizes share a few programs; networks whose results would depend on the padding are refused.  With memory=n, a
        program uses at most n bytes of its GPU, and records nothing for a backward pass.
        """
        given = dict(static_alloc=static_alloc, static_shape=static_shape, fallback=fallback, passes_off=passes_off, memory=memory)
        opts = options("sl_hybridize_opts", off=not active, buckets=_core.buckets_of(bucket_axis, buckets), **given)
        check(lib.sl_hybridize_at(here(), self._p, opts))
        object.__setattr__(self, "_hybrid", dict(given, buckets=buckets, bucket_axis=bucket_axis) if active else None)

    def register_forward_hook(self, hook):
        """Calls hook(block, inputs, results) after each forward pass of this block; .remove() of the returned object ends that.

        inputs is a tuple; results is a tensor, or a tuple of several.  The function must not change the block; what it returns is
        ignored, what it raises is raised by the call of the network.  In a compiled network it is called with symbols, while the
        program is traced, and for the compiled block itself also with the values of each call.
        """
        return _hooks.register(self, hook)

    def _repr_html_(self):
        return _show.html_of(self)

    def __repr__(self):
        return _show.text_of(self)

    def summary(self, shape):
        """A table of the layers, their results' shapes and their parameters for an input of this shape."""
        return captured(lambda file: lib.sl_summary_at(here(), file, self._p, shape_of(shape)))

    def save_params(self, path):
        """Writes the parameters to a file; the extension chooses the format (.params, .safetensors)."""
        check(lib.sl_save_params_at(here(), self._p, text_of(path, "path")))

    def load_params(self, path, *, lenient=False, names=()):
        """Reads parameters from a file.

        names: rules that translate names in the file, (name in the file, path here) or (name, path, True) for a transposed
        matrix; a star matches any text, and a path of None skips arrays: [("encoder.*", "0.*")].
        """
        texts = [[NULL if t is None else ffi.new("char[]", text_of(t, "name")) for t in rule[:2]] for rule in names]
        rules = [(*text, len(rule) > 2 and bool(rule[2])) for text, rule in zip(texts, names)]
        c_rules = ffi.new("struct sl_param_name[]", rules)
        check(lib.sl_load_params_at(here(), self._p, text_of(path, "path"), (lenient, c_rules, len(rules))))

    def _export(self, function, path, shapes, dtype, epoch, training):
        opts = {"epoch": epoch, "training": training}
        if isinstance(dtype, (list, tuple)):
            dtypes = ffi.new("enum sl_dtype[]", [dtype_of(d) for d in dtype])
            opts.update(dtypes=dtypes, ndtypes=len(dtypes))
        else:
            opts["dtype"] = dtype_of(dtype)
        if shapes is not None:
            shapes = ffi.new("sl_shape[]", [shape_of(s) for s in shapes])
            opts.update(shapes=shapes, nshapes=len(shapes))
        before = getattr(_core.callbacks, "exported", None)
        _core.callbacks.exported = self
        try:
            check(function(here(), self._p, text_of(path, "path"), options("sl_export_opts", **opts)))
        finally:
            _core.callbacks.exported = before

    def export(self, prefix, *, shapes=None, dtype=None, epoch=0, training=False):
        """Writes PREFIX-symbol.json and PREFIX-0000.params, in MXNet's format; dtype may be a list, one for each input.

        Each result of forward, including nested ones, becomes a result of the file, in the same order.
        """
        self._export(lib.sl_export_at, prefix, shapes, dtype, epoch, training)

    def export_onnx(self, path, *, shapes=None, dtype=None, training=False):
        """Writes the network as an ONNX model; dtype may be a list, one for each input.

        Each result of forward, including nested ones, becomes an output of the model, in the same order.
        """
        self._export(lib.sl_export_onnx_at, path, shapes, dtype, 0, training)


class Recurrent(Block):
    """The base of recurrent layers.  Called with x they return y; called with states as well they also return the last states:

        y = lstm(x)
        y, state, cell = lstm(x, state, cell)      # of Rnn and Gru: y, state = gru(x, state)
    """

    _before_states = 1  # inputs before the states: x, and lengths

    def __call__(self, *inputs):
        if not all(isinstance(x, Tensor) for x in inputs):
            inputs = self._flat(inputs)  # a list of states counts as so many
        further = len(inputs) - self._before_states
        return self._several(inputs, 1 + further) if further > 0 else super().__call__(*inputs)


class Imported(Block):
    """A network in an ONNX model.  Calls return the result, or a tuple of several."""

    def __call__(self, *inputs):
        results = self._several(inputs)
        return results if len(results) > 1 else results[0]


class Sequential(Block):
    """A chain of blocks: Sequential(Dense(256), Dense(10))."""

    def __init__(self, *blocks):
        Block._own(self, lib.sl_sequential_at(here(), NULL, 0))
        self.add(*blocks)

    def add(self, *blocks):
        """Appends blocks."""
        for block in blocks:
            self.add_child(str(len(self._children)), block)

    def __len__(self):
        return len(self._children)

    def __getitem__(self, i):
        children = list(self._children.values())
        return type(self)(*children[i]) if isinstance(i, slice) else children[i]

    def __iter__(self):
        return iter(self._children.values())


class Lambda(Block):
    """A function of tensors as a block."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def forward(self, *inputs):
        return self._function(*inputs)


def load(symbol, inputs=None, params=None, *, output=None, lenient=False):
    """The network in files of MXNet, PREFIX-symbol.json and PREFIX-0000.params, whose inputs are named, "data" if not; or
    in an ONNX model, FILE.onnx, whose inputs come in the order of the file if they are not named.  output names a result; of an
    ONNX model also several, which are all of its results otherwise: calls return a tuple of them."""
    path = text_of(symbol, "symbol")
    onnx = path != NULL and path.endswith(b".onnx")
    if inputs is None:
        inputs = () if onnx else ("data",)
    names = [ffi.new("char[]", n.encode()) for n in ([inputs] if isinstance(inputs, str) else inputs)]
    array_ = ffi.new("const char *[]", names)
    if onnx:
        wanted = () if output is None else [output] if isinstance(output, str) else output
        texts = [ffi.new("char[]", n.encode()) for n in wanted]
        results = ffi.new("const char *[]", texts)
        return Imported._from(lib.sl_import_onnx_at(here(), path, (array_, len(names), NULL, results, len(texts))))
    output = NULL if output is None else ffi.new("char[]", output.encode())
    p = lib.sl_import_at(here(), path, array_, len(names), text_of(params, "params"), (output, lenient))
    return Block._from(p)


def taken(block):
    """A new reference to a block, for another block to take over; NULL for None."""
    return NULL if block is None else lib.sl_block_retain(_core.pointer("a block inside", block, Block))
