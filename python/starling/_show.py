"""Networks and curves for people: as text, and in notebooks."""
import html
import math
import sys

_COLOURS = ("#3b6ea5", "#c0504d", "#5f8f3e", "#8064a2", "#d08a2e", "#4bacc6")


# ---- networks ---------------------------------------------------------------------------------------------------------


def _own_params(block):
    """Parameters of the block itself, with names within it."""
    before, found = f"{block.name}_", []
    inside = {p.name for child in block.children.values() for p in child.params()}
    for p in block.params():
        if p.name not in inside:
            found.append((p.name[len(before) :] if p.name.startswith(before) else p.name, p.shape))
    return found


def _setting(name, value):
    return f"{name}={value!r}" if name else repr(value)


def _head(block):
    """Its class, with the arguments of a layer."""
    args, options = block.__dict__.get("_made", ((), {}))
    shown = [_setting("", a) for a in args if isinstance(a, (bool, int, float, str, tuple))]
    shown += [_setting(name, value) for name, value in options.items() if isinstance(value, (bool, int, float, str, tuple))]
    return f"{type(block).__name__}({', '.join(shown)})" if shown or not block.children else type(block).__name__


def text_of(block):
    """The block and the blocks inside, one a line."""
    children = block.children
    if not children:
        return _head(block)
    lines = [f"  ({name}): " + text_of(child).replace("\n", "\n  ") for name, child in children.items()]
    return f"{type(block).__name__}(\n" + "\n".join(lines) + "\n)"


def _rows(block, name, depth):
    yield depth, name, _head(block), _own_params(block)
    for key, child in block.children.items():
        yield from _rows(child, key, depth + 1)


def _count(shape):
    return None if shape is None or min(shape, default=1) < 0 else math.prod(shape)


def html_of(block):
    """A table of the blocks and their parameters."""
    lines, total = [], 0
    for depth, name, head, params in _rows(block, block.name, 0):
        counts = [_count(shape) for _, shape in params]
        total += sum(c for c in counts if c)
        shapes = ", ".join(f"{n} {'?' if shape is None else tuple(shape)}" for n, shape in params)
        number = "" if not counts else "?" if None in counts else f"{sum(counts):,}"
        cells = (f'<td style="text-align:left;padding-left:{depth + 0.5}em">{html.escape(name)}</td>', f'<td style="text-align:left">{html.escape(head)}</td>',
                 f'<td style="text-align:left">{html.escape(shapes)}</td>', f'<td style="text-align:right">{number}</td>')  # fmt: skip
        lines.append(f"<tr>{''.join(cells)}</tr>")
    titles = "".join(f"<th>{t}</th>" for t in ("block", "layer", "parameters", "numbers"))
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody><tfoot><tr><td colspan=3>all</td><td>{total:,}</td></tr></tfoot></table>"


# ---- curves -----------------------------------------------------------------------------------------------------------


class Curves:
    """Numbers over the steps of a run, drawn in notebooks:

    curves = starling.Curves()
    for epoch in range(10):
        ...
        curves.add(loss=loss, accuracy=accuracy.get())
    curves
    """

    def __init__(self):
        self.values = {}
        self._steps = 0

    def add(self, step=None, **numbers):
        """Appends a number to each named curve; step is its place, by default the next one."""
        self._steps = self._steps + 1 if step is None else step
        for name, value in numbers.items():
            self.values.setdefault(name, []).append((self._steps, float(value)))

    def __repr__(self):
        last = (f"{name} {points[-1][1]:.6g}" for name, points in self.values.items())
        return f"Curves({', '.join(last)} after {self._steps})" if self.values else "Curves()"

    def _repr_html_(self):
        finite = [(x, y) for points in self.values.values() for x, y in points if math.isfinite(y)]
        if not finite:
            return "<p>no numbers yet</p>"
        (x0, x1), (y0, y1) = ((min(v), max(v)) for v in zip(*finite))
        width, height = 420, 220

        def place(x, y):
            return f"{50 + (x - x0) / ((x1 - x0) or 1) * (width - 60):.1f},{height - 25 - (y - y0) / ((y1 - y0) or 1) * (height - 40):.1f}"

        parts = []
        for i, (name, points) in enumerate(self.values.items()):
            line = " ".join(place(x, y) for x, y in points if math.isfinite(y))
            colour = _COLOURS[i % len(_COLOURS)]
            parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{line}"/>')
            parts.append(f'<text x="{width - 8}" y="{16 + 14 * i}" text-anchor="end" fill="{colour}">{html.escape(name)}</text>')
        for text, x, y, anchor in ((f"{y1:.4g}", 46, 20, "end"), (f"{y0:.4g}", 46, height - 22, "end"), (f"{x0:g}", 50, height - 8, "start"), (f"{x1:g}", width - 10, height - 8, "end")):
            parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>')
        frame = f'<rect x="50" y="15" width="{width - 60}" height="{height - 40}" fill="none" stroke="#999"/>'
        return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">{frame}{"".join(parts)}</svg>'


def progress(iterable, desc=None, total=None, unit="it", leave=True):
    """The same elements, with a progress bar of tqdm if it is installed and stderr is a terminal: progress(loader, desc="epoch 1")."""
    if "tqdm" not in sys.modules and not sys.stderr.isatty() and not hasattr(sys, "ps1"):
        return iterable
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return iterable
    return tqdm(iterable, desc=desc, total=total, unit=unit, leave=leave)
