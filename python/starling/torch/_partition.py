"""What the forward pass keeps for the backward pass.

PyTorch's partitioner chooses which values are kept, and which are computed again.  A kept view would be a copy here, so views are
always computed again.  The partitioner knows few operations as views; this module writes the other ones as these.  Attention's result
is kept in the layout that the next projection reads, (batch, positions, heads, width): once instead of twice.
"""
import operator

import torch
from torch._functorch import config
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.utils.checkpoint import CheckpointPolicy

aten = torch.ops.aten
ATTENTION = aten._scaled_dot_product_flash_attention_for_cpu.default
SWAPPED = [0, 2, 1, 3]


def _replace(node, target, *args):
    """Writes a node as another operation with the same result."""
    with node.graph.inserting_before(node):
        other = node.graph.call_function(target, args)
    other.meta = node.meta.copy()
    node.replace_all_uses_with(other)
    node.graph.erase_node(node)


def _order(n, a, b):
    order = list(range(n))
    order[a], order[b] = b, a
    return order


def _split(node):
    """The parts of a tensor as slices of it."""
    x, sizes, dim = (*node.args, 0)[:3]
    for part in list(node.users):
        i = part.args[1]
        begin = sum(sizes[:i])
        _replace(part, aten.slice.Tensor, x, dim, begin, begin + sizes[i])
    node.graph.erase_node(node)


def _unbind(node):
    """The same along an axis that they lack."""
    x, dim = (*node.args, 0)[:2]
    for part in list(node.users):
        _replace(part, aten.select.int, x, dim, part.args[1])
    node.graph.erase_node(node)


PARTS = {aten.split_with_sizes.default: _split, aten.unbind.int: _unbind}


def _as_views(graph):
    """Writes views as those operations that PyTorch's division knows as views."""
    for node in list(graph.nodes):
        if node.target is aten.transpose.int:
            x, a, b = node.args
            n = x.meta["val"].ndim
            _replace(node, aten.permute.default, x, _order(n, a % n, b % n) if n else [])
        elif node.target is aten._unsafe_view.default:
            _replace(node, aten.view.default, *node.args)
        elif node.target is aten.detach.default:
            _replace(node, aten.alias.default, *node.args)
        elif node.target in PARTS and all(u.target is operator.getitem for u in node.users):
            PARTS[node.target](node)


def _swap(graph, x):
    y = graph.call_function(aten.permute.default, (x, SWAPPED))
    y.meta["val"] = x.meta["val"].permute(SWAPPED)
    return y


def _keep_as_read(graph):
    """Has attention's results kept as projections read them, if one does."""
    for node in graph.find_nodes(op="call_function", target=ATTENTION):
        y = next((n for n in node.users if n.target is operator.getitem and n.args[1] == 0), None)
        if y is None or not any(n.target is aten.permute.default and list(n.args[1]) == SWAPPED for n in y.users):
            continue
        users = list(y.users)
        with graph.inserting_after(y):
            turned = _swap(graph, y)
        with graph.inserting_after(turned):
            kept = graph.call_function(aten.clone.default, (turned,))
        kept.meta["val"] = turned.meta["val"].clone(memory_format=torch.contiguous_format)
        kept.meta["recompute"] = CheckpointPolicy.MUST_SAVE
        with graph.inserting_after(kept):
            back = _swap(graph, kept)
        for user in users:
            user.replace_input_with(y, back)


def partition(joint, inputs, **options):
    """The forward and the backward pass of a graph of both."""
    _as_views(joint.graph)
    _keep_as_read(joint.graph)
    joint.graph.lint()
    joint.recompile()
    with config.patch(recompute_views=True):
        return min_cut_rematerialization_partition(joint, inputs, **options)
