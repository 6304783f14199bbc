"""Numbers of classes that are none."""


def check_labels(t, classes, ignore):
    """PyTorch's error for labels that are no class."""
    low, high = t.aminmax() if t.numel() else (0, 0)
    if high >= classes or (low < 0 and bool(((t < 0) & (t != ignore)).any())):
        bad = high if high >= classes else low
        raise IndexError(f"Target {int(bad)} is out of bounds.")
