"""mx.operator: operations that a program defines in Python, with gradients that it computes."""
from .._custom import Function
from . import _later
from ._array import NDArray
from .autograd import is_training
from .base import MXNetError
from .context import known
from .unsupported import missing, not_here

__all__ = ["CustomOp", "CustomOpProp", "get_all_registered_operators", "register"]
_props: dict = {}


class CustomOp:
    """An operation; a custom one defines forward and backward."""

    def forward(self, is_train, req, in_data, out_data, aux):
        """Puts the results into out_data by self.assign."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        """Puts the gradients of the inputs into in_grad by self.assign."""

    def assign(self, dst, req, src):
        """Writes src into dst, adds it, or leaves dst, as req says."""
        if req in ("write", "inplace"):
            dst[slice(None) if dst.ndim else ()] = src
        elif req == "add":
            dst[slice(None) if dst.ndim else ()] = dst + src


class CustomOpProp:
    """The names, shapes and types of an operation's inputs and results."""

    def __init__(self, need_top_grad=True):
        self.need_top_grad_ = need_top_grad

    def infer_shape(self, in_shape):
        """(shapes of inputs, of results, of auxiliary states); usually all are the first input's."""
        return in_shape, (in_shape[0],) * len(self.list_outputs()), ()

    def infer_type(self, in_type):
        """(types of inputs, of results, of auxiliary states); usually all are the first input's."""
        return in_type, [in_type[0]] * len(self.list_outputs()), [in_type[0]] * len(self.list_auxiliary_states())

    def list_arguments(self):
        """The names of the inputs."""
        return ["data"]

    def list_outputs(self):
        """The names of the results."""
        return ["output"]

    def list_auxiliary_states(self):
        """The names of the auxiliary states."""
        return []

    def need_top_grad(self):
        """Whether backward uses the results' gradients."""
        return self.need_top_grad_

    def declare_backward_dependency(self, out_grad, in_data, out_data):
        """What backward uses; everything is there."""
        return [*(out_grad if self.need_top_grad_ else ()), *in_data, *out_data]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        """The operation."""
        return CustomOp()


def register(reg_name):
    """Makes a class of properties known to nd.Custom and sym.Custom by a name."""

    def note(prop_cls):
        if not (isinstance(prop_cls, type) and issubclass(prop_cls, CustomOpProp)):
            raise TypeError(f"register({reg_name!r}) needs a class derived from CustomOpProp")
        _props[reg_name] = prop_cls
        return prop_cls

    return note


def get_all_registered_operators():
    """The names of MXNet's functions that are here, and of registered operations."""
    from . import nd

    return [name for name, thing in vars(nd).items() if callable(thing) and not name.startswith("_") and not isinstance(thing, type)] + list(_props)


class _Custom(Function):
    """A call of a custom operation."""

    def __init__(self, prop, aux, train, ctx, kind):
        super().__init__()
        self._prop, self._aux, self._train, self._ctx, self._kind = prop, aux, train, ctx, kind

    def _zeros(self, shapes, dtypes):
        from . import nd

        made = [nd.zeros(tuple(s), self._ctx, dtype=t) for s, t in zip(shapes, dtypes)]
        for a in made:
            a.__class__ = self._kind
        return made

    def _call(self, method, **arguments):
        """Calls a method of the program's operation, whose exceptions become MXNetError, as in MXNet."""
        try:
            getattr(self._op, method)(**arguments)
        except MXNetError:
            raise
        except Exception as error:
            raise MXNetError(f"{type(self._op).__name__}.{method}: {type(error).__name__}: {error}") from error

    def forward(self, *inputs):
        shapes, dtypes = [list(x.shape) for x in inputs], [x.dtype for x in inputs]
        if self._prop.list_arguments():
            _, out_shapes, *_ = self._prop.infer_shape(shapes)
            _, out_dtypes, *_ = self._prop.infer_type(dtypes)
        else:
            (_, out_shapes, *_), (_, out_dtypes, *_) = self._prop.infer_shape([]), self._prop.infer_type([])
        self._op = self._prop.create_operator(self._ctx, shapes, dtypes)
        out = self._zeros(out_shapes, out_dtypes)
        self._call("forward", is_train=self._train, req=["write"] * len(out), in_data=list(inputs), out_data=out, aux=self._aux)
        self._data = list(inputs), out
        return out if len(out) > 1 else out[0]

    def backward(self, *output_grads):
        inputs, out = self._data
        grads = self._zeros([x.shape for x in inputs], [x.dtype for x in inputs])
        self._call("backward", req=["write"] * len(grads), out_grad=list(output_grads), in_data=inputs, out_data=out, in_grad=grads, aux=self._aux)
        return grads


def Custom(*data, op_type, out=None, name=None, **options):
    """The operation that was registered by that name."""
    if op_type not in _props:
        raise not_here(f"nd.Custom(op_type={op_type!r})", "a name that mx.operator.register knows: " + (", ".join(_props) or "none yet"))
    prop = _props[op_type](**{k: str(v) for k, v in options.items() if not isinstance(v, NDArray)})
    named = [*prop.list_arguments(), *prop.list_auxiliary_states()]
    given = [*data, *(options[n] for n in named if isinstance(options.get(n), NDArray))]
    if len(given) != len(named):
        raise ValueError(f"Custom({op_type!r}) takes {', '.join(named) or 'no arrays'}; {len(given)} arrays were given")
    if "default" not in (kinds := {getattr(a, "stype", "default") for a in given} or {"default"}) or len(kinds) > 1:
        raise not_here(f"nd.Custom(op_type={op_type!r}) of sparse arrays", "tostype('default')")
    first = len(prop.list_arguments())
    kind = given[0]._array if given else NDArray
    return _Custom(prop, given[first:], is_training(), given[0].context if given else known(None), kind)(*given[:first])


def _states(call):
    """The arguments of a call that are auxiliary states."""
    prop = _props[call.kwargs["op_type"]](**{k: str(v) for k, v in call.kwargs.items() if k not in ("op_type", "name", "out") and not isinstance(v, NDArray)})
    first = len(prop.list_arguments())
    return [*call.args[first:], *(call.kwargs.get(n) for n in prop.list_auxiliary_states())]


_later.states_of["Custom"] = _states
custom_of_symbols = _later.kept(Custom)
__getattr__ = missing("mx.operator")
