"""Attention between views of projections, through torch.compile's backend, against eager PyTorch: values, gradients, and that
no copy of q, k, v and of their gradients is in the programs.  Skipped where PyTorch is not installed."""
import unittest
import unittest.mock

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as error:
    raise unittest.SkipTest(f"needs PyTorch: {error}") from None

import starling.torch  # noqa: F401
from starling.torch import _graph

torch.set_num_threads(2)
B, T, H, D = 2, 6, 3, 4
C = H * D


def split(y):
    """nanoGPT's and GPT-2's way."""
    return [p.view(*p.shape[:2], H, D).transpose(1, 2) for p in y.split(C, dim=2)]


def unbound(y):
    """timm's way."""
    return y.reshape(*y.shape[:2], 3, H, D).permute(2, 0, 3, 1, 4).unbind(0)


def joined(y):
    return y.transpose(1, 2).reshape(y.shape[0], y.shape[2], C)


class Heads(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(1)
        self.texts, original = [], _graph.Plan.compile

        def compiled(plan):
            self.texts.append(plan.text)
            original(plan)

        patch = unittest.mock.patch.object(_graph.Plan, "compile", compiled)
        patch.start()
        self.addCleanup(patch.stop)

    def check(self, function, *inputs):
        """Values and gradients of inputs, all of which want one."""
        results = []
        for f in (function, torch.compile(function, backend="starling", dynamic=False)):
            given = [x.clone().requires_grad_() for x in inputs]
            y = f(*given)
            (y * torch.linspace(-1, 1, y.numel()).view(y.shape)).sum().backward()
            results.append([y.detach(), *(x.grad for x in given)])
        for a, b in zip(*results):
            self.assertLess((a - b).abs().max(), 1e-5 * max(1, a.abs().max()))

    def operations(self):
        """How often the programs have these operations, in lines whose values somebody needs."""
        return {name: sum(text.count(f"= {name}(") for text in self.texts) for name in ("attention_heads", "attention_heads_grad", "concat")}

    def test_one_projection(self):
        for way in (split, unbound):
            for causal in (False, True):
                with self.subTest(way=way.__name__, causal=causal):
                    self.texts.clear()
                    torch._dynamo.reset()
                    f = lambda x, w, o: joined(F.scaled_dot_product_attention(*way(x @ w), is_causal=causal)) @ o
                    self.check(f, torch.randn(B, T, C), torch.randn(C, 3 * C), torch.randn(C, C))
                    self.assertEqual(self.operations(), {"attention_heads": 1, "attention_heads_grad": 1, "concat": 0})

    def test_three_projections(self):
        """Of different sequences."""
        view = lambda y: y.view(*y.shape[:2], H, D).transpose(1, 2)
        f = lambda x, m, q, k, v, o: joined(F.scaled_dot_product_attention(view(x @ q), view(m @ k), view(m @ v))) @ o
        self.check(f, torch.randn(B, T, C), torch.randn(B, T + 3, C), *(torch.randn(C, C) for _ in range(4)))
        self.assertEqual(self.operations()["attention_heads_grad"], 1)

    def test_other_orders_of_parts(self):
        """Parts in another order, and one that is read otherwise, are no part of the pattern."""
        for order in ((1, 0, 2), (0, 0, 2), (0, 2, 1)):
            with self.subTest(order=order):
                torch._dynamo.reset()
                f = lambda y: joined(F.scaled_dot_product_attention(*[split(y)[k] for k in order]))
                self.check(f, torch.randn(B, T, 3 * C))
        torch._dynamo.reset()
        self.check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), *(torch.randn(B, H, T, D) for _ in range(3)))

    def test_others_that_read_them(self):
        """The result, the projection and its parts are read by others, too."""

        def f(x, w):
            y = x @ w
            q, k, v = split(y)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return joined(a).sum() + (a * a).sum() + (q * k).sum() + y.sin().sum() + a.transpose(1, 2).cos().sum()

        self.check(lambda x, w: f(x, w).reshape(1), torch.randn(B, T, C), torch.randn(C, 3 * C))

    def test_long_sequences(self):
        """More queries and keys than one block."""
        f = lambda x, w: joined(F.scaled_dot_product_attention(*split(x @ w), is_causal=True))
        self.check(f, torch.randn(1, 300, C) / 4, torch.randn(C, 3 * C) / 4)

    def test_the_same_backward_pass_twice(self):
        block = nn.MultiheadAttention(C, H, batch_first=True)
        f = torch.compile(lambda x: block(x, x, x, need_weights=False)[0].sum(), backend="starling")
        x = torch.randn(B, T, C)
        y = f(x)
        y.backward(retain_graph=True)
        first = block.in_proj_weight.grad.clone()
        y.backward()
        self.assertTrue(torch.allclose(block.in_proj_weight.grad, 2 * first))


if __name__ == "__main__":
    unittest.main()
