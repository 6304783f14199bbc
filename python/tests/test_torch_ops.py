"""Operations of the table of starling.torch against eager PyTorch, results and gradients.  Skipped where PyTorch is not installed."""
import logging
import unittest
import warnings

try:
    import torch
    from torch.nn import functional as F
except ImportError as error:
    raise unittest.SkipTest(f"needs PyTorch: {error}") from None

import starling.torch

logging.getLogger("starling.torch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="torch")
torch.set_num_threads(2)


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(3)

    def check(self, f, *inputs, cuts=0, left=0):
        """Compares results and gradients, and counts cuts of the graphs and what was left to PyTorch."""
        before = starling.torch.counts()
        pairs = [[t.clone().requires_grad_(t.is_floating_point()) for t in inputs] for _ in range(2)]
        a, b = torch.compile(f, backend="starling")(*pairs[0]), f(*pairs[1])
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
        weights = torch.linspace(0.5, 1, b.numel()).view(b.shape)
        (a * weights).sum().backward(), (b * weights).sum().backward()
        for x, y in zip(*pairs):
            if y.grad is not None:
                torch.testing.assert_close(x.grad, y.grad, rtol=1e-4, atol=1e-5, equal_nan=True)
        after = starling.torch.counts()
        for name, most in (("cuts", cuts), ("left to PyTorch", left)):
            self.assertLessEqual(after.get(name, 0) - before.get(name, 0), most, starling.torch.fallbacks())


class Windows(Case):
    def test_signals(self):
        x, w, b = torch.randn(2, 6, 11), torch.randn(4, 3, 3), torch.randn(4)
        self.check(lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=2, dilation=2, groups=2), x, w, b)

    def test_transposed(self):
        for n in (1, 2):
            torch._dynamo.reset()
            convolution, size = (F.conv_transpose1d, (7,)) if n == 1 else (F.conv_transpose2d, (5, 6))
            x, w, b = torch.randn(2, 4, *size), torch.randn(4, 3, *[3] * n), torch.randn(6)
            self.check(lambda x, w, b: convolution(x, w, b, stride=2, padding=1, output_padding=1, groups=2), x, w, b)

    def test_adaptive_pooling(self):
        for size in ((3, 2), (1, 1), (6, 3), (9, 8)):
            torch._dynamo.reset()
            self.check(lambda x: F.adaptive_avg_pool2d(x, size), torch.randn(2, 3, 6, 7))

    def test_single_images(self):
        x = torch.randn(3, 8, 8)
        self.check(lambda x: F.max_pool2d(x, 3, 2, 1) + F.avg_pool2d(x, 3, 2, 1), x)

    def test_windows_over_the_border(self):
        x = torch.randn(2, 3, 7, 8)
        self.check(lambda x: F.avg_pool2d(x, 2, 2, ceil_mode=True, count_include_pad=False) + F.max_pool2d(x, 2, 2, ceil_mode=True), x)

    def test_repeated_ends(self):
        self.check(lambda x: F.pad(x, (1, 2, 2, 0), mode="replicate").sin(), torch.randn(2, 3, 5, 6))

    def test_padding(self):
        for pad, value in (((1, 2, 0, 3), 0.0), ((-1, 2), 1.5), ((-1, -2, 3, -1), 0.0)):
            torch._dynamo.reset()
            self.check(lambda x: F.pad(x, pad, value=value), torch.randn(2, 5, 6))

    def test_resizing(self):
        for mode, more in (("nearest", {}), ("bilinear", {"align_corners": False})):
            torch._dynamo.reset()
            self.check(lambda x: F.interpolate(x, scale_factor=2, mode=mode, **more), torch.randn(2, 3, 4, 5))


class Attention(Case):
    def heads(self):
        return [torch.randn(2, 3, 5, 4) for _ in range(3)]

    def test_masks(self):
        added = torch.zeros(2, 1, 5, 5).masked_fill(torch.rand(2, 1, 5, 5) < 0.4, -1e9)
        added[0, 0, 2] = float("-inf")  # nothing is seen
        for mask in (added, torch.rand(5, 5) < 0.7):
            torch._dynamo.reset()
            self.check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask), *self.heads())

    def test_learnt_bias(self):
        self.check(lambda q, k, v, b: F.scaled_dot_product_attention(q, k, v, attn_mask=b), *self.heads(), torch.randn(1, 3, 5, 5), left=1000, cuts=4)

    def test_products_of_transposes(self):
        a, b = torch.randn(3, 4, 5), torch.randn(3, 6, 5)
        self.check(lambda a, b: torch.bmm(a, b.transpose(1, 2)) @ b + torch.bmm(a.mT, a).sum(), a, b)

    def test_labels_that_are_computed(self):
        def f(x, labels):
            return F.cross_entropy(x, F.pad(labels, (0, 1), value=-100)[1:])

        x, labels = torch.randn(4, 7), torch.tensor([1, 6, 0, 2])
        self.check(f, x, labels, left=1000)
        with self.assertRaises(IndexError):
            torch.compile(f, backend="starling")(x, torch.tensor([1, 6, 7, 2]))

    def test_no_label_that_counts(self):
        """The loss is not a number; the gradient is 0."""
        self.check(lambda x, labels: F.cross_entropy(x, labels), torch.randn(4, 7), torch.full((4,), -100))


class Indices(Case):
    def test_numbers_of_an_axis(self):
        x, i = torch.randn(5, 4, 3), torch.tensor([[0, 2], [-1, 2]])
        for f in (lambda x, i: x[i], lambda x, i: x[:, i], lambda x, i: x[..., i % 3], lambda x, i: x.index_select(1, i.flatten().abs())):
            torch._dynamo.reset()
            self.check(f, x, i, left=1)

    def test_numbers_of_several_axes(self):
        x = torch.randn(5, 4, 3)
        i, j = torch.tensor([0, 4, -2]), torch.tensor([3, -1, 3])
        self.check(lambda x, i, j: x[i, j], x, i, j)
        self.check(lambda x, i, j: x[:, i[:, None] % 4, j % 3], x, i, j, left=2)

    def test_a_number_for_each_line(self):
        x, i = torch.randn(4, 6, 3), torch.randint(6, (4, 2, 3))
        self.check(lambda x, i: x.gather(1, i), x, i)
        self.check(lambda x, i: x[:, :2].scatter_add(1, i % 2, x[:, 2:4]), x, i, left=1)
        with self.assertRaises(Exception):
            torch.compile(lambda x, i: x.gather(1, i), backend="starling")(x, torch.full((4, 2, 3), 6))

    def test_padding_of_embeddings(self):
        i = torch.tensor([[0, 2, 0], [4, 1, 2]])
        self.check(lambda w, i: F.embedding(i, w, padding_idx=0), torch.randn(5, 3), i)

    def test_integers_before_programs_cut_nothing(self):
        def f(w, i):
            mask = i != 3
            places = torch.cumsum(mask.int(), 1).type_as(mask.int()) * mask.int()
            return F.embedding(places.long(), w) * mask[..., None] + torch.where(i > 2, i, 0)[..., None]

        self.check(f, torch.randn(9, 4), torch.randint(5, (2, 6)), left=1000)


class Truths(Case):
    def test_infinities(self):
        x = torch.tensor([[1.0, float("inf"), -3e38], [float("-inf"), float("nan"), 3.4e38]])
        for b in (float("inf"), float("-inf")):
            torch._dynamo.reset()
            self.check(lambda x: torch.where(x == b, 2.0, 1.0) + torch.where(x != b, 0.5, 0.25) + torch.where(x.abs() < 2, x, 1.0), x)

    def test_signs(self):
        self.check(lambda x: torch.sign(x) + 0 * x.nan_to_num(), torch.tensor([float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 2.0]))

    def test_any_all_how_many(self):
        x = torch.randn(3, 4)
        self.check(lambda x: torch.where((x > 1).any(1, keepdim=True), x, 2 * x) * (x > -2).all() + (x > 0).sum(1, keepdim=True), x)


class Elements(Case):
    def test_of_two(self):
        x, y = torch.randn(4, 6) * 3, torch.randn(6)
        y[1] = float("nan")
        for f in (
            lambda x, y: torch.atan2(x, y) + torch.hypot(x, y), lambda x, y: torch.fmod(x, y) + torch.remainder(x, y), lambda x, y: torch.fmod(x, 0.7) - torch.remainder(x, -0.7),
            lambda x, y: x * torch.div(x, y, rounding_mode="floor") + torch.floor_divide(x.detach(), 0.7), lambda x, y: torch.fmax(x, y) * torch.fmin(x, 0.5 * y),
            lambda x, y: torch.copysign(x, y) + torch.copysign(x, -1.0) * torch.signbit(x), lambda x, y: torch.erfc(x) + x.tanh().erfinv() + torch.angle(x),
        ):  # fmt: skip
            torch._dynamo.reset()
            self.check(f, x, y)

    def test_ends(self):
        ends = torch.tensor([0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 7.0, -7.0])
        a, b = (t.flatten() for t in torch.meshgrid(ends, ends, indexing="ij"))
        for f in (torch.atan2, torch.fmod, torch.remainder, torch.floor_divide, torch.copysign):
            torch._dynamo.reset()
            torch.testing.assert_close(torch.compile(f, backend="starling")(a, b), f(a, b), equal_nan=True)
        for f in (torch.erfinv, torch.erfc, torch.angle):
            torch.testing.assert_close(torch.compile(f, backend="starling")(ends), f(ends), equal_nan=True)

    def test_integers(self):
        """Results that do not fit lose their upper bits, as in PyTorch."""
        before = starling.torch.counts().get("left to PyTorch", 0)
        for dtype in (torch.int64, torch.int32, torch.uint8):
            n = torch.tensor([3, 7, torch.iinfo(dtype).max, torch.iinfo(dtype).min, 0, 9], dtype=dtype)

            def f(n, x):
                return (n * 3 - 7, n + n * n, -n, n // 5, n % 5, n ^ 3, ~n & n | 4, torch.maximum(n, n + 1), n.cumsum(0), n.argmin(), n.argmax(), n.sort(descending=True)[0],
                        n.to(torch.uint8), n.to(torch.int64), n.clamp(2, 8), n.amax(), n.relu(), (x * 3).to(dtype), n.exp2().isinf())  # fmt: skip

            torch._dynamo.reset()
            given = n, torch.rand(5)
            for a, b in zip(torch.compile(f, backend="starling")(*given), f(*given)):
                self.assertIs(a.dtype, b.dtype)
                self.assertTrue(torch.equal(a, b), (dtype, a, b))
        self.assertEqual(starling.torch.counts().get("left to PyTorch", 0), before, starling.torch.fallbacks())


    def test_fractions(self):
        x = torch.tensor([0.0, 1.0, -2.0, 0.5, 0.25, 3e38, 1e-38, -1e-30, 7.25, float("inf"), float("nan")])
        for a, b in zip(torch.compile(torch.frexp, backend="starling")(x), torch.frexp(x)):
            torch.testing.assert_close(a, b, equal_nan=True)

    def test_truths(self):
        a, b = torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])
        before = starling.torch.counts().get("left to PyTorch", 0)
        for x, y in zip(torch.compile(lambda a, b: (a * b, a + b, torch.maximum(a, b), a * True), backend="starling")(a, b), (a & b, a | b, a | b, a)):
            self.assertTrue(torch.equal(x, y))
        self.assertEqual(starling.torch.counts().get("left to PyTorch", 0), before, starling.torch.fallbacks())

    def test_sums_of_integers(self):
        n = torch.tensor([[3, 2**62, 2**62], [-7, 2**62, 2**61]])
        f = lambda n: (n.sum(), n.sum(1), n.sum(0, keepdim=True), n.prod(1), n[0, 0].sum(), (n > 0).prod(1), n.int().sum(0))
        before = starling.torch.counts().get("left to PyTorch", 0)
        for x, y in zip(torch.compile(f, backend="starling")(n), f(n)):
            self.assertTrue(torch.equal(x, y), (x, y))
        self.assertEqual(starling.torch.counts().get("left to PyTorch", 0), before, starling.torch.fallbacks())


class Order(Case):
    def test_sorted(self):
        x = torch.randn(4, 6)
        x[1, 2] = float("nan")
        for f in (
            lambda x: x.sort(1)[0].cumsum(1), lambda x: x.topk(3, 0)[0], lambda x: x.kthvalue(2, 1)[0], lambda x: x.max(1)[0] + x.min(1)[0], lambda x: x.median(1)[0] + x.median(),
            lambda x: x.nanmedian(0)[0] + x.nanmedian(), lambda x: x.sum().sort()[0] + x.sum().max(0)[0],
        ):  # fmt: skip
            torch._dynamo.reset()
            self.check(f, x)

    def test_places(self):
        x = torch.randint(4, (5, 7)).float()  # with equal elements
        f = lambda x: (torch.sort(x, dim=1, stable=True, descending=True)[1], torch.argsort(x, dim=0, stable=True), x.argmax(1), x.argmin(), x.max(0, keepdim=True)[1], x.min(1)[1], x.cummax(1)[1], x.cummin(0)[1], (x > 1).max(1)[1])
        for a, b in zip(torch.compile(f, backend="starling")(x), f(x)):
            self.assertTrue(torch.equal(a, b))

    def test_so_far(self):
        x = torch.randn(3, 5)
        for f in (lambda x: x.cumprod(1), lambda x: x.logcumsumexp(0), lambda x: x.cummax(1)[0] * x.cummin(0)[0], lambda x: x.sum().cumprod(0)):
            torch._dynamo.reset()
            self.check(f, x)


class Parts(Case):
    def test_diagonals(self):
        x, y = torch.randn(3, 4, 5), torch.randn(3, 3)
        for f in (
            lambda x, y: x.diagonal(1, 2, 1) @ y[:3], lambda x, y: x.diagonal(-1, 0, 2), lambda x, y: x[0].diagonal_scatter(x[1, :, 0], 1, 0, 1)[:, :3] @ y, lambda x, y: torch.diag_embed(y, 1) + y.trace(),
        ):  # fmt: skip
            torch._dynamo.reset()
            self.check(f, x, y)

    def test_windows_of_an_axis(self):
        self.check(lambda x: x.unfold(1, 3, 2).sin(), torch.randn(2, 7, 3))

    def test_places_that_are_written_twice(self):
        x, y, i = torch.randn(5, 6), torch.randn(5, 6), torch.randint(5, (3, 4))
        k = torch.tensor([1, 4, 1])
        for f in (
            lambda x, y: x.scatter(0, i, y.detach()), lambda x, y: x.scatter(1, i, 2.5), lambda x, y: x.index_put((k,), y.detach()[:3]), lambda x, y: x.index_put((k, k), y.detach()[0, :3]),
            lambda x, y: x.masked_fill(y > 0, 3.0) + x.index_put((y < 0,), torch.tensor(0.5)), lambda x, y: x[:, :4].gather(0, i), lambda x, y: x.slice_scatter(y[:, :3], 1, 0, 6, 2),
            lambda x, y: x.put(i, y[:3, :4].contiguous().detach()) + x.put(i, y[1:4, :4].contiguous(), accumulate=True), lambda x, y: x.take(i - 2),
            lambda x, y: x.scatter_reduce(0, i, y[:3, :4].contiguous(), "mean") + x.scatter_reduce(0, i, y[:3, :4].contiguous(), "sum", include_self=False),
        ):  # fmt: skip
            torch._dynamo.reset()
            self.check(f, x, y)

    def test_a_bias_without_weights(self):
        x, b = torch.randn(3, 2, 4), torch.randn(2, 4)
        self.check(lambda x, b: F.layer_norm(x, (2, 4), None, b) + F.batch_norm(x, None, None, None, b[:, 0], training=True), x, b)
        self.check(lambda x: F.layer_norm(x, (4,)) + F.batch_norm(x, None, None, training=True), x)

    def test_products_of_nothing(self):
        x, y, b = torch.randn(3, 0), torch.randn(0, 4), torch.randn(3, 4)
        self.check(lambda b: torch.addmm(b, x, y) + x @ y, b)

    def test_products_added(self):
        x, y = torch.randn(4, 5), torch.randn(5)
        self.check(lambda x, y: torch.addmv(x[:, 0], x, y, beta=0.5, alpha=2) + torch.addbmm(x[:, :4], x[None], x.t()[None]).sum(1) + x.prod(1), x, y)


class Groups(Case):
    def test_rows_of_the_same_number(self):
        x, y = torch.randn(5, 6), torch.randn(4, 6)
        k, i = torch.tensor([1, 4, 1, 1]), torch.randint(3, (4, 6))
        for name in ("prod", "amax", "amin", "mean"):
            for whole in (True, False):
                torch._dynamo.reset()
                self.check(lambda x, y: x.scatter_reduce(0, i, y, name, include_self=whole), x, y)
                self.check(lambda x, y: x.index_reduce(0, k, y, name, include_self=whole) + x.t().contiguous().index_reduce(1, k, y.t().contiguous(), name, include_self=whole).t(), x, y)

    def test_ties_and_nan(self):
        x, y, k = torch.zeros(3, 2), torch.tensor([[1.0, float("nan")], [1.0, 2.0], [-3.0, float("-inf")]]), torch.tensor([2, 2, 0])
        for name in ("amax", "amin", "prod"):
            torch._dynamo.reset()
            f = lambda x, y: x.index_reduce(0, k, y, name)
            torch.testing.assert_close(torch.compile(f, backend="starling")(x, y), f(x, y), equal_nan=True)

    def test_strides(self):
        x, y = torch.randn(4, 6), torch.randn(2, 3)
        self.check(lambda x, y: x.as_strided((3, 2, 2), (6, 2, 0), 1).sin(), x, y)
        self.check(lambda x, y: torch.as_strided_scatter(x, y, (2, 3), (12, 2), 1), x, y)


    def test_elements_in_turn(self):
        x, y, mask = torch.randn(3, 4), torch.randn(9), torch.rand(3, 4) < 0.5
        self.check(lambda x, y: x.masked_scatter(mask, y), x, y)
        self.check(lambda x, y: x.masked_scatter(mask[0], y), x, y)

    def test_distances(self):
        x, y = torch.randn(2, 4, 3), torch.randn(2, 5, 3)
        y[0, 0] = x[0, 1]
        for order in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")):
            torch._dynamo.reset()
            self.check(lambda x, y: torch.cdist(x, y, p=order), x, y)


class Volumes(Case):
    def test_convolutions(self):
        x, w, b = torch.randn(2, 4, 5, 6, 7), torch.randn(6, 2, 3, 2, 3), torch.randn(6)
        self.check(lambda x, w, b: F.conv3d(x, w, b, stride=(2, 1, 2), padding=(1, 0, 2), dilation=(1, 2, 1), groups=2), x, w, b)
        x, w = torch.randn(2, 4, 3, 4, 3), torch.randn(4, 3, 2, 3, 2)
        self.check(lambda x, w, b: F.conv_transpose3d(x, w, b, stride=(2, 1, 2), padding=(1, 0, 1), output_padding=(1, 0, 1), groups=2), x, w, b)
        self.check(lambda x, w: F.conv3d(x, w), torch.randn(3, 4, 4, 4), torch.randn(2, 3, 2, 2, 2))

    def test_means(self):
        for options in ({}, {"stride": (2, 1, 2), "padding": 1}, {"stride": 2, "padding": 1, "count_include_pad": False, "ceil_mode": True}, {"divisor_override": 5},
                        {"stride": 2, "padding": 1, "ceil_mode": True}, {"stride": 3, "ceil_mode": True, "divisor_override": 7}):  # fmt: skip
            torch._dynamo.reset()
            self.check(lambda x: F.avg_pool3d(x, (2, 3, 2), **options), torch.randn(2, 3, 5, 6, 7))
            options = {k: v[1:] if isinstance(v, tuple) else v for k, v in options.items()}
            self.check(lambda x: F.avg_pool2d(x, (3, 2), **options), torch.randn(2, 3, 6, 7))

    def test_largest(self):
        """Among equal elements, the first one of a window counts."""
        x = torch.randint(4, (2, 2, 5, 6, 7)).float()
        x[0, 0, 1, 2, 3], x[1, :, 2] = float("nan"), float("-inf")
        for options in ({}, {"stride": (2, 1, 2), "padding": 1}, {"stride": 2, "dilation": 2, "ceil_mode": True}):
            for f, given in ((F.max_pool3d, x), (F.max_pool2d, x[0])):
                torch._dynamo.reset()
                options = {k: v if isinstance(v, bool) or given is x else v[1:] if isinstance(v, tuple) else v for k, v in options.items()}
                self.check(lambda x: f(x, 2, **options), given)
                g = lambda x: f(x, 2, return_indices=True, **options)
                self.assertTrue(torch.equal(torch.compile(g, backend="starling")(given)[1], g(given)[1]))

    def test_adaptive(self):
        x = torch.randn(2, 3, 5, 6, 7)
        self.check(lambda x: F.adaptive_max_pool3d(x, (3, 2, 5)), x)
        self.check(lambda x: F.adaptive_max_pool2d(x, (3, 5)), x[0])
        f = lambda x: F.adaptive_max_pool2d(x, (4, 3), return_indices=True)[1]
        self.assertTrue(torch.equal(torch.compile(f, backend="starling")(x[0]), f(x[0])))


class Storage(Case):
    def test_memory_that_is_gone(self):
        f = torch.compile(lambda x: x * 2, backend="starling")
        for size in (0, 8):
            x = torch.ones(1000)
            self.assertTrue(torch.equal(f(x), x * 2))
            x.untyped_storage().resize_(size)
            with self.assertRaises(Exception):
                f(x)
        x = torch.ones(1000)
        self.assertTrue(torch.equal(f(x), x * 2))

    def test_written_between_the_passes(self):
        for change in (lambda x: x.mul_(2), lambda x: x.resize_(3)):
            torch._dynamo.reset()
            x, w = torch.randn(6), torch.randn(6, requires_grad=True)
            y = torch.compile(lambda x, w: (x * w).sum(), backend="starling")(x, w)
            change(x)
            with self.assertRaises(RuntimeError):
                y.backward()

    def test_small_results_are_tensors_of_their_own(self):
        f = torch.compile(lambda x: (x + 1, x * 2), backend="starling")
        for _ in range(3):
            a, b = f(torch.ones(3))
            a.resize_(5).fill_(7)
            self.assertTrue(torch.equal(b, torch.full((3,), 2.0)))

    def test_large_and_small_results(self):
        f = torch.compile(lambda x: (x.sum(), x * 2, x.t().contiguous()), backend="starling")
        for n in (3, 200):
            x = torch.randn(n, n)
            for a, b in zip(f(x), (x.sum(), x * 2, x.t())):
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
