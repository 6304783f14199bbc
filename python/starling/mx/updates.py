"""mx.nd's updates of parameters by the rules of optimisers (optimizer.py): the new weight is the result, states change in place."""
from .. import _ops as ops
from . import optimizer as _optimizer
from ._signed import into
from ._sparse import BaseSparseNDArray
from ._program import classify
from .functions import stack
from .unsupported import not_here

__all__ = ["all_finite", "multi_all_finite", "multi_sum_sq", "reset_arrays", "lamb_update_phase1", "lamb_update_phase2"]

# The rules: MXNet's function: (the optimiser, its state's names, the optimiser's settings by the function's options).
_RULES = {
    "sgd_update": (_optimizer.SGD, (), {}),
    "sgd_mom_update": (_optimizer.SGD, ("mom",), {"momentum": 0.0}),
    "nag_mom_update": (_optimizer.NAG, ("mom",), {"momentum": 0.0}),
    "signsgd_update": (_optimizer.Signum, (), {}),
    "signum_update": (_optimizer.Signum, ("mom",), {"momentum": 0.0, "wd_lh": 0.0}),
    "adam_update": (_optimizer.Adam, ("mean", "var"), {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
    "ftml_update": (_optimizer.FTML, ("d", "v", "z"), {"beta1": 0.6, "beta2": 0.999, "epsilon": 1e-8, "t": 1}),
    "ftrl_update": (_optimizer.Ftrl, ("z", "n"), {"lamda1": 0.01, "beta": 1.0}),
    "rmsprop_update": (_optimizer.RMSProp, ("n",), {"gamma1": 0.95, "epsilon": 1e-8, "clip_weights": -1.0}),
    "rmspropalex_update": (_optimizer.RMSProp, ("n", "g", "delta"), {"gamma1": 0.95, "gamma2": 0.9, "epsilon": 1e-8, "clip_weights": -1.0}),
}  # fmt: skip


def _limit(value):
    return value if value is not None and value > 0 else None


def _settings(kind, options):
    """(the options as the optimiser has them, the number of the update)."""
    found, t = dict(options), int(options.get("t", 1))
    found.pop("t", None)
    if "clip_weights" in found:
        found["clip_weights"] = _limit(found["clip_weights"])
    if kind is _optimizer.Signum:
        found.setdefault("momentum", 0.0)
    return found, t


def _step(kind, states, options, weight, grad, lr, wd, rescale_grad, clip_gradient):
    """Changes weight and states by one step."""
    settings, t = _settings(kind, options)
    if kind is _optimizer.RMSProp:
        settings["centered"] = len(states) == 3
    o = kind(learning_rate=lr, wd=wd, rescale_grad=rescale_grad, clip_gradient=_limit(clip_gradient), begin_num_update=t - 1, **settings)
    if kind is _optimizer.Adam:  # the function has no correction of the first steps
        if any(isinstance(a, BaseSparseNDArray) for a in (weight, grad, *states)):
            raise not_here("adam_update of sparse arrays", "optimizer.Adam, or dense arrays")
        o._by_operations(lr, wd, weight, grad, states)
        return
    single = kind in (_optimizer.SGD, _optimizer.NAG, _optimizer.Signum)
    o.update(0, weight, grad, (states[0] if states else None) if single else tuple(states))


_COMMON = ("wd", "lr", "rescale_grad", "clip_gradient", "lazy_update")


def _check(name, options, *known):
    """TypeError for an option that the update does not have."""
    rule = _RULES[name.removeprefix("preloaded_").removeprefix("multi_").removeprefix("mp_")]
    if unknown := options.keys() - {*rule[1], *rule[2], *_COMMON, *known}:
        raise TypeError(f"nd.{name}() got an unexpected keyword argument {min(unknown)!r}")


def _update(name):
    kind, state_names, defaults = _RULES[name]

    def call(weight, grad, *states, lr=None, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0, clip_grad=-1.0, lazy_update=True, out=None, **options):
        _check(name, options)
        if len(states) > len(state_names):
            states, (lr, *more) = states[: len(state_names)], states[len(state_names) :]
            if more:
                raise TypeError(f"nd.{name}() takes its options by name")
        states += tuple(options.pop(n) for n in state_names[len(states) :] if n in options)
        if lr is None or len(states) < len(state_names):
            raise TypeError(f"nd.{name}() needs weight, grad, {', '.join((*state_names, 'lr'))}")
        target = weight if out is weight else weight.copy()
        _step(kind, states, {**defaults, **options}, target, grad, lr, wd, rescale_grad, max(clip_gradient, clip_grad))
        if kind is _optimizer.NAG and target is not weight:  # the momentum has the decay of the weight that is there, as in MXNet
            states[0][:] = states[0] + (target - weight) * (lr * wd)
        return target if out is None or out is weight else into(target, out)

    call.__name__, call.__doc__ = name, f"A step of {kind.__name__}: the new weight, also in out; {', '.join(state_names) or 'no state'} changes in place."
    return call


def _of_master(name, states):
    """The update of a weight whose exact values are in another array, weight32."""

    def call(weight, grad, *arrays, out=None, **options):
        _check(f"mp_{name}", options, "weight32")
        *rest, weight32 = (*arrays, options.pop("weight32")) if "weight32" in options else arrays or (None,)
        if len(rest) != states or weight32 is None:
            raise TypeError(f"nd.mp_{name}() needs weight, grad, {'mom, ' * states}weight32, and its options by name")
        globals()[name](weight32, grad.astype("float32"), *rest, out=weight32, **options)
        result = weight32.astype(weight.dtype)
        return result if out is None else into(result, out)

    call.__name__, call.__doc__ = f"mp_{name}", f"{name} of weight32; the result is rounded to the weight's data type."
    return call


def _of_several(name, each):
    """The update of several weights, with their rates and decays."""

    def call(*data, lrs=(), wds=(), num_weights=1, out=None, **options):
        _check(f"multi_{name}", options)
        if len(data) != each * num_weights:
            raise ValueError(f"nd.multi_{name}() got {len(data)} arrays, {num_weights} weights need {each * num_weights}")
        if len(lrs) != num_weights or len(wds) != num_weights:
            raise ValueError(f"nd.multi_{name}() got {len(lrs)} rates and {len(wds)} decays for {num_weights} weights")
        outs = out if isinstance(out, (list, tuple)) else [out] * num_weights
        parts = [data[i * each : (i + 1) * each] for i in range(num_weights)]
        return [globals()[name](*part, lr=lr, wd=wd, out=o, **options) for part, lr, wd, o in zip(parts, lrs, wds, outs)]

    call.__name__, call.__doc__ = f"multi_{name}", f"{name} of several weights."
    return call


def _with_arrays(name):
    """The same with rates and decays in two arrays at the end."""

    def call(*data, num_weights=1, out=None, **options):
        _check(f"preloaded_multi_{name}", options)
        lrs, wds = (a.asnumpy().tolist() for a in data[-2:])
        return globals()[f"multi_{name}"](*data[:-2], lrs=lrs, wds=wds, num_weights=num_weights, out=out, **options)

    call.__name__, call.__doc__ = f"preloaded_multi_{name}", f"multi_{name} with the rates and decays in the last two arrays; waits for them."
    return call


for _name in _RULES:
    globals()[_name] = _update(_name)
for _name, _states in (("sgd_update", 0), ("sgd_mom_update", 1), ("nag_mom_update", 1)):
    globals()[f"mp_{_name}"] = _of_master(_name, _states)
for _name, _each in (("sgd_update", 2), ("sgd_mom_update", 3), ("mp_sgd_update", 3), ("mp_sgd_mom_update", 4)):
    globals()[f"multi_{_name}"] = _of_several(_name, _each)
    globals()[f"preloaded_multi_{_name}"] = _with_arrays(_name)
__all__ += [name for name in globals() if name.endswith("_update") and not name.startswith("_")]


def lamb_update_phase1(weight, grad, mean, var, t, wd, beta1=0.9, beta2=0.999, epsilon=1e-6, bias_correction=True, rescale_grad=1.0,
                       clip_gradient=-1.0):
    """The direction of a step of LAMB; mean and var change in place."""
    o = _optimizer.LAMB(beta1=beta1, beta2=beta2, epsilon=epsilon, bias_correction=bias_correction, rescale_grad=rescale_grad,
                        clip_gradient=_limit(clip_gradient))  # fmt: skip
    return o._direction(weight, grad, (mean, var), wd, t)


def lamb_update_phase2(weight, g, r1, r2, lr, lower_bound=-1.0, upper_bound=-1.0):
    """The weight after a step of LAMB along g; r1 and r2 are the norms of weight and g."""
    o = _optimizer.LAMB(lower_bound=_limit(lower_bound), upper_bound=_limit(upper_bound))
    return weight - g * (o._ratio(r1, r2) * lr)


def all_finite(data, init_output=True):
    """1 if no element is infinite or NaN, else 0."""
    return multi_all_finite(data)


def multi_all_finite(*data, num_arrays=1, init_output=True):
    """1 if no element of the arrays is infinite or NaN, else 0."""
    finite = [ops.min(ops.isfinite(a).astype("float32")).reshape((1,)) for a in data]
    return classify(ops.min(ops.stack(finite, 0)).reshape((1,)) if len(finite) > 1 else finite[0], data[0])


def multi_sum_sq(*data, num_arrays=None):
    """The sums of squares of several arrays, in one array."""
    return stack(*[ops.sum(ops.square(a.astype("float32"))).reshape(()) for a in data], axis=0)


def reset_arrays(*data, num_arrays=None):
    """Makes arrays zero."""
    for a in data:
        a[:] = 0
