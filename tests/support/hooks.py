"""Plain hooks of PyTorch, against which passes are compared."""

from contextlib import contextmanager


@contextmanager
def hooked(module, end, act):
    """Within, what enters ("in") or leaves ("out") a module becomes what `act` makes of it.

    Where `act` returns nothing, it only looks.
    """

    def enter(module, inputs):
        new = act(inputs[0])
        return None if new is None else (new, *inputs[1:])

    def leave(module, inputs, output):
        several = isinstance(output, tuple)
        new = act(output[0] if several else output)
        return (new, *output[1:]) if several and new is not None else new

    handle = (
        module.register_forward_pre_hook(enter)
        if end == "in"
        else module.register_forward_hook(leave)
    )
    try:
        yield
    finally:
        handle.remove()
