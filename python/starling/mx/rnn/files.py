"""Checkpoints of programs with recurrent cells: their files have a weight for each gate."""
from .. import model
from .cells import BaseRNNCell


def _of_all(cells, change, args):
    for cell in [cells] if isinstance(cells, BaseRNNCell) else cells:
        args = getattr(cell, change)(args)
    return args


def save_rnn_checkpoint(cells, prefix, epoch, symbol, arg_params, aux_params):
    """Writes PREFIX-symbol.json and PREFIX-EPOCH.params."""
    model.save_checkpoint(prefix, epoch, symbol, _of_all(cells, "unpack_weights", arg_params), aux_params)


def load_rnn_checkpoint(cells, prefix, epoch):
    """(symbol, arg_params, aux_params) of such files."""
    symbol, args, states = model.load_checkpoint(prefix, epoch)
    return symbol, _of_all(cells, "pack_weights", args), states


def do_rnn_checkpoint(cells, prefix, period=1):
    """A callback of Module.fit that writes a checkpoint every `period` epochs."""
    period = max(1, int(period))

    def callback(epoch, symbol=None, args=None, states=None):
        if (epoch + 1) % period == 0:
            save_rnn_checkpoint(cells, prefix, epoch + 1, symbol, args, states)

    return callback
