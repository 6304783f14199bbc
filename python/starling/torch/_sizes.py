"""The sizes of a call, which are symbols in the graph of a program for any sizes."""
import torch


class Symbols:
    """The sizes of a call: numbers in the place of a graph's symbols."""

    def __init__(self, placeholders):
        self.by = []  # (placeholder's position, axis or None, symbol)
        known = set()
        for i, n in enumerate(placeholders):
            val = n.meta.get("val")
            dims = [(None, val)] if isinstance(val, torch.SymInt) else enumerate(val.shape) if isinstance(val, torch.Tensor) else []
            for axis, d in dims:
                symbol = d.node.expr if isinstance(d, torch.SymInt) else None
                if symbol is not None and symbol.is_Symbol and symbol not in known:
                    known.add(symbol)
                    self.by.append((i, axis, symbol))

    def key(self, args):
        """The numbers of a call."""
        return tuple(int(args[i]) if axis is None else int(args[i].shape[axis]) for i, axis, _ in self.by) if self.by else ()

    def concrete(self, key):
        """A function that puts these numbers in the place of symbols."""
        numbers = {symbol: n for (_, _, symbol), n in zip(self.by, key)}

        def one(x):
            if not isinstance(x, (torch.SymInt, torch.SymFloat, torch.SymBool)):
                return x
            y = x.node.expr.xreplace(numbers) if hasattr(x.node.expr, "xreplace") else x.node.expr
            if getattr(y, "free_symbols", None):
                raise NotImplementedError(f"the size {x} is not known before the call")
            return int(y) if isinstance(x, torch.SymInt) else float(y) if isinstance(x, torch.SymFloat) else bool(y)

        def concrete(x):
            if isinstance(x, (list, tuple)):
                return type(x)(map(concrete, x)) if type(x) in (list, tuple) else [concrete(k) for k in x]
            if isinstance(x, dict):
                return {k: concrete(v) for k, v in x.items()}
            return one(x)

        return concrete
