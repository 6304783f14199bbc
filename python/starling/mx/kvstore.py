"""mx.kv: a store of arrays by keys, within one process: values that are pushed are added, over contexts, too."""
import pickle

from .._tensor import Tensor
from . import optimizer as _optimizer
from ._sparse import RowSparseNDArray, dense_of, stype_of
from .base import MXNetError
from .unsupported import missing, not_here

_LOCAL = ("local", "device", "nccl", "local_update_cpu", "local_allreduce_cpu", "local_allreduce_device")


def _pairs(key, values):
    """[(key, its arrays)] of one key with one array or several, or of a list of keys."""
    if not isinstance(key, (list, tuple)):
        return [(key, list(values) if isinstance(values, (list, tuple)) else [values])]
    if not isinstance(values, (list, tuple)) or len(values) != len(key):
        raise ValueError(f"there are {len(key)} keys, each needs a value")
    return [(k, list(v) if isinstance(v, (list, tuple)) else [v]) for k, v in zip(key, values)]


class KVStoreBase:
    """The base of stores: a custom one has broadcast and pushpull, and is registered."""

    OPTIMIZER = "optimizer"
    kv_registry: dict = {}

    @staticmethod
    def register(klass):
        """Registers a store by its name in lower case, for create."""
        KVStoreBase.kv_registry[klass.__name__.lower()] = klass
        return klass

    @staticmethod
    def is_capable(capability):
        """Whether the store has that capability, OPTIMIZER for example."""
        return False

    @property
    def type(self):
        """The name that the store was made with."""
        return type(self).__name__.lower()

    rank, num_workers = 0, 1

    def _lacks(self, method):
        raise NotImplementedError(f"a store of the kind {self.type!r} has no {method}")

    def broadcast(self, key, value, out, priority=0):
        """Copies a value to all arrays of out."""
        self._lacks("broadcast")

    def pushpull(self, key, value, out=None, priority=0):
        """Adds the values, and copies the sum to out."""
        self._lacks("pushpull")

    def set_optimizer(self, optimizer):
        """Values are gradients from now on."""
        self._lacks("set_optimizer")

    def save_optimizer_states(self, fname, dump_optimizer=False):
        """Writes the optimiser's states."""
        self._lacks("save_optimizer_states")

    def load_optimizer_states(self, fname):
        """Reads the optimiser's states."""
        self._lacks("load_optimizer_states")


def _sum(arrays):
    total = arrays[0].copy()
    for a in arrays[1:]:
        total = total + a
    return total


@KVStoreBase.register
class TestStore(KVStoreBase):
    """A store that keeps nothing."""

    def broadcast(self, key, value, out, priority=0):
        for o in out if isinstance(out, (list, tuple)) else [out]:
            o[:] = value

    def pushpull(self, key, value, out=None, priority=0):
        arrays = value if isinstance(value, (list, tuple)) else [value]
        self.broadcast(key, _sum(arrays), arrays if out is None else out)


class KVStore(KVStoreBase):
    """Arrays by their keys: integers or texts."""

    @staticmethod
    def is_capable(capability):
        return capability == KVStoreBase.OPTIMIZER

    def __init__(self, name):
        self._name, self._arrays, self._updater, self._kind = name, {}, None, None

    @property
    def type(self):
        """The name that the store was made with."""
        return self._name

    def _checked(self, key):
        kind = str if isinstance(key, str) else int
        if self._kind not in (None, kind) or not isinstance(key, (str, int)):
            raise MXNetError(f"key {key!r}: the keys of a store are all texts, or all integers")
        return key

    def _known(self, key):
        if self._checked(key) not in self._arrays:
            raise MXNetError(f"key {key!r} has not been inited")
        return self._arrays[key]

    def init(self, key, value):
        """Puts arrays into the store, each key once."""
        for k, (first, *_) in _pairs(key, value):
            if self._checked(k) in self._arrays:
                raise MXNetError(f"duplicate init of key {k!r}")
            self._kind = str if isinstance(k, str) else int
            self._arrays[k] = first.copy()

    def push(self, key, value, priority=0):
        """Adds the arrays of a key, and replaces (or updates, by the optimiser or updater) the stored one with the sum."""
        for k, arrays in _pairs(key, value):
            stored, total = self._known(k), _sum(arrays)
            if self._updater is not None:
                self._updater(k, total, stored)
            elif stype_of(stored) == stype_of(total):
                self._arrays[k] = total
            else:
                self._arrays[k] = dense_of(total)

    def pull(self, key, out=None, priority=0, ignore_sparse=True):
        """Copies stored arrays into out; sparse ones are left out unless ignore_sparse=False."""
        for k, arrays in _pairs(key, out):
            stored = self._known(k)
            for a in arrays:
                if not ignore_sparse or stype_of(a) == "default":
                    a[:] = stored if stype_of(a) == stype_of(stored) else dense_of(stored)

    def pushpull(self, key, value, out=None, priority=0):
        """push and pull."""
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def broadcast(self, key, value, out, priority=0):
        """init and pull."""
        self.init(key, value)
        self.pull(key, out, priority)

    def row_sparse_pull(self, key, out=None, priority=0, row_ids=None):
        """Copies the rows with these numbers into arrays of row_sparse."""
        if row_ids is None or out is None:
            raise MXNetError("row_sparse_pull needs out and row_ids")
        single = isinstance(row_ids, Tensor)
        for i, (k, arrays) in enumerate(_pairs(key, out)):
            stored = self._known(k)
            given = row_ids if single else row_ids[i] if isinstance(key, (list, tuple)) else row_ids
            for j, a in enumerate(arrays):
                if stype_of(a) != "row_sparse":
                    raise MXNetError("row_sparse_pull copies into arrays of row_sparse")
                rows = given if isinstance(given, Tensor) else given[j]
                source = stored if isinstance(stored, RowSparseNDArray) else stored.tostype("row_sparse")
                a[:] = source.retain(rows.reshape((-1,)))

    def set_optimizer(self, optimizer):
        """Values that are pushed are gradients, by which the optimiser updates the stored arrays."""
        self._updater = _optimizer.get_updater(optimizer)

    def set_updater(self, updater):
        """Values that are pushed go to updater(key, value, stored)."""
        self._updater = updater

    _set_updater = set_updater

    def set_gradient_compression(self, compression_params):
        """Refused: values are as they are."""
        raise not_here("KVStore.set_gradient_compression", "values as they are")

    def save_optimizer_states(self, fname, dump_optimizer=False):
        """Writes the optimiser's states."""
        if not isinstance(self._updater, _optimizer.Updater):
            raise AssertionError("Cannot save states for distributed training")
        with open(fname, "wb") as file:
            file.write(self._updater.get_states(dump_optimizer))

    def load_optimizer_states(self, fname):
        """Reads the optimiser's states, which save_optimizer_states wrote: a file that pickle reads, from a place to be trusted."""
        if not isinstance(self._updater, _optimizer.Updater):
            raise AssertionError("Cannot load states for distributed training")
        with open(fname, "rb") as file:
            self._updater.set_states(file.read())

    def __reduce__(self):
        raise pickle.PicklingError("a store is not copied")


def create(name="local"):
    """A store within one process, or a registered one."""
    if not isinstance(name, str):
        raise TypeError("name must be a string")
    if name.lower() in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[name.lower()]()
    if name not in _LOCAL:
        raise not_here(f"mx.kv.create({name!r})", "'local' or 'device'; processes add gradients by sl-launch and gluon.Trainer")
    return KVStore(name)


__getattr__ = missing("mx.kv")
