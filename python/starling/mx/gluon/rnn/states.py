"""Initial states of recurrent layers and cells."""
from ... import nd
from ..._mode import array_class


def begin_state(block, batch_size, func=None, **options):
    """Arrays for the states of a layer or cell, zeros if func is not given."""
    states = []
    for info in block.state_info(batch_size):
        given = {**info, **options}
        given.pop("__layout__", None)  # the names of the axes
        state = (func or nd.zeros)(**given)
        if not state.is_symbol:
            state.__class__ = array_class()
        states.append(state)
    return states


def new_states(block, x, batch_size):
    """Zeros on the context of the input x, of its class."""
    states = begin_state(block, batch_size, ctx=x.context)
    for state in states:
        state.__class__ = type(x)
    return states
