"""Memory of the results of programs that the calling thread computes.

New memory of the system costs more than writing it, as each page is cleared at first use, and the allocator gives larger pieces
back with the last tensor.  So a program keeps the memory of results, and uses it again once nobody has a tensor over it: what
the forward pass keeps for the backward pass lies in one piece for each type, other large results in one piece each.
"""
import torch

from . import _memory

LARGE = 1 << 17  # bytes
MOST = 2  # pieces that are kept for the same results: several forward passes may precede their backward passes
ALIGNED = 64  # bytes, as kernels want it

# What the code that inductor writes calls, a tenth of the price of PyTorch's own functions; PyTorch may lack them.
_guards = torch._C._dynamo.guards
_new = getattr(_guards, "_empty_strided_cpu", None) or (lambda shape, strides, dtype: torch.empty(shape, dtype=dtype))
_share = getattr(_guards, "_reinterpret_tensor", None) or (
    lambda base, shape, strides, offset: torch.empty(0, dtype=base.dtype).set_(base.untyped_storage(), offset, shape, strides)
)
_owners = getattr(torch._C, "_storage_Use_Count", None) or (lambda storage: -1)


class Piece:
    """A piece of memory."""

    def __init__(self, elements, dtype):
        self.base = torch.empty(elements, dtype=dtype)
        self.storage = self.base.untyped_storage()
        self.bytes, self.owners = self.storage.nbytes(), max(_owners(self.storage._cdata), 1)

    def is_free(self):
        """Whether no tensor is over it, in no process, and nobody has resized it."""
        s = self.storage
        return _owners(s._cdata) == self.owners and s.nbytes() == self.bytes and not s.is_shared()


class Group:
    """Results of a type that lie in one piece: (number of the result, shape, strides, bytes) of each."""

    def __init__(self, dtype, results):
        self.dtype, self.places, self.kept = dtype, [], []
        end = 0
        for i, shape, strides, size in results:
            self.places.append((i, shape, strides, end // dtype.itemsize))
            end += (size + ALIGNED - 1) // ALIGNED * ALIGNED
        self.elements = end // dtype.itemsize

    def piece(self):
        """Memory that nobody uses."""
        found = None
        for _ in range(len(self.kept)):
            try:
                piece = self.kept.pop(0)
            except IndexError:  # another thread has it
                break
            if found is None and piece.is_free():
                found = piece
            else:
                self.kept.append(piece)
        return found or Piece(self.elements, self.dtype)

    def put(self, results):
        """Puts tensors in their places among the results."""
        piece = self.piece()
        for i, shape, strides, offset in self.places:
            results[i] = _share(piece.base, shape, strides, offset)
        if len(self.kept) >= MOST:
            del self.kept[0]
        self.kept.append(piece)


class Results:
    """The results of a program; saved: the numbers of the results that only the backward pass reads."""

    def __init__(self, plan, saved):
        described = [(i, tuple(v.shape), _memory.contiguous(v.shape), v.size * v.dtype.itemsize) for i, v in enumerate(plan.results)]
        types = [v.dtype for v in plan.results]
        together = {dtype: [d for d in described if d[0] in saved and types[d[0]] == dtype] for dtype in types}
        self.groups = [Group(dtype, given) for dtype, given in together.items() if given]
        alone = [d for d in described if d[0] not in saved]
        self.groups += [Group(types[d[0]], [d]) for d in alone if d[3] >= LARGE]
        together = {place[0] for group in self.groups for place in group.places}
        self.alone = [None if i in together else (shape, strides, types[i]) for i, shape, strides, _ in described]

    def put(self, results):
        """Fills the list of results with tensors over kept pieces of memory; the caller makes the other tensors."""
        for group in self.groups:
            group.put(results)
