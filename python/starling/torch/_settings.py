"""What a compiled step takes from a model beside its modules and tensors: hooks, and settings of PyTorch's layers."""

PLAIN = (bool, int, float, str, tuple, type(None))
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Settings:
    """The settings of these modules: numbers such as a dropout's probability of layers of torch.nn, hooks of all."""

    def __init__(self, modules=()):
        layers = [m.__dict__ for m in modules if type(m).__module__.startswith("torch.nn.")]
        self.places = [(d, name) for d in layers for name, value in d.items() if isinstance(value, PLAIN)]
        self.hooks = [m.__dict__[name] for m in modules for name in HOOKS]

    def now(self):
        """Their values, of which a program is made."""
        numbers = [d.get(name) for d, name in self.places]
        return tuple(numbers), tuple(key for d in self.hooks for key in d) if any(self.hooks) else ()


def refuse_hooks(optimizer):
    """An error for hooks that see gradients, or an optimiser's step: a compiled step has neither."""
    for name in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"):
        if getattr(optimizer, name, None):
            raise NotImplementedError(f"compile_step: {type(optimizer).__name__} with a hook of its step")
    for p in (p for g in optimizer.param_groups for p in g["params"]):
        if p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None):
            raise NotImplementedError(f"compile_step: a hook of a parameter of shape {tuple(p.shape)}; gradients are not kept")
