"""Attributes of MXNet's classes whose names begin with _: programs that look into MXNet get a named refusal."""
from .unsupported import not_here

_NAMES = {
    "NDArray": "_fresh_grad _basic_indexing_slice_is_contiguous _basic_indexing_contiguous_flat_begin_end _get_index_nd _sync_copyfrom _at _slice "
               "_full_like _prepare_value_nd",
    "Trainer": "_kvstore _updaters _update_on_kvstore _params_to_init _kv_initialized _init_kvstore _contexts _compression_params _distributed "
               "_reset_kvstore _row_sparse_pull",
    "Block": "_params _reg_params _cached_graph _cached_op _collect_params_with_prefix _active _flags _unfuse _build_cache",
    "Parameter": "_ctx_list _ctx_map _deferred_init _finish_deferred_init _reduce _init_impl _check_and_get _stype _grad_stype _var",
}  # fmt: skip
_OF = {kind: frozenset(names.split()) for kind, names in _NAMES.items()}


def inside(kind, name, instead):
    """The exception for an attribute whose name begins with _: a refusal if MXNet's class has it."""
    if name in _OF[kind]:
        return not_here(f"{kind}.{name}, an inside of MXNet's,", instead)
    return AttributeError(f"'{kind}' object has no attribute {name!r}")


class OfClass:
    """An attribute of the class, too, that is refused."""

    def __init__(self, kind, name, instead):
        self._refusal = kind, name, instead

    def __get__(self, value, owner):
        raise inside(*self._refusal)


def refuse_all(kind, owner, instead):
    """Gives a class the attributes of MXNet's that are refused."""
    for name in _OF[kind]:
        if name not in owner.__dict__:
            setattr(owner, name, OfClass(kind, name, instead))
