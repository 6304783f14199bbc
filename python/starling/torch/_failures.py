"""Errors of operations in nodes of PyTorch's backward pass.

Autograd runs the nodes of devices in threads of its own.  While such a thread unwinds from an error of Python's, PyTorch calls the
guard of devices, which is Python here, with the error still set; that ends the process.  So an operation that fails there
returns something that is no tensor, which PyTorch reports as an error of C++ with its text, and backward() raises the error of that
number.
"""
import functools
import itertools
import re

import torch

MOST = 16  # errors that are kept for backward()
_kept: dict = {}
_numbers = itertools.count(1)
_MARK = re.compile(r"error (\d+) of starling\.torch")


class _NoTensor:
    def __init__(self, number):
        self.number = number

    def __str__(self):
        return f"the result of an operation that failed (error {self.number} of starling.torch)"


def _number(error):
    """The number of the error that this one reports, or None."""
    found = _MARK.search(str(error)) if isinstance(error, RuntimeError) else None
    return int(found[1]) if found else None


def in_node():
    """Whether PyTorch's own code of a node called the operation; a Function's backward, which is Python, can have the error itself."""
    node = torch._C._current_autograd_node()
    return node is not None and not isinstance(node, torch.autograd.function.BackwardCFunction)


def result_of(func, error):
    """The result of an operation that failed in a node."""
    number = _number(error)
    if number is None:
        number = next(_numbers)
        _kept[number] = error
        while len(_kept) > MOST:
            _kept.pop(next(iter(_kept)), None)
    results = tuple(_NoTensor(number) for _ in func._schema.returns)
    return results[0] if len(results) == 1 else results


def raising(run):
    """Autograd's function that runs a backward pass, which raises the error of the operation."""

    @functools.wraps(run)
    def call(*args, **kwargs):
        try:
            return run(*args, **kwargs)
        except RuntimeError as error:
            cause = _kept.pop(_number(error), None)
            if cause is None:
                raise
        raise cause

    return call


def patch():
    """Puts this into torch.autograd."""
    torch.autograd._engine_run_backward = torch.autograd.graph._engine_run_backward = raising(torch.autograd.graph._engine_run_backward)
