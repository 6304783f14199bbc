"""PyTorch's eager tensors on Starling's devices, against PyTorch on its CPU.  Skipped where PyTorch is not installed."""
import copy
import gc
import logging
import unittest
import warnings
from unittest import mock

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as error:
    raise unittest.SkipTest(f"needs PyTorch: {error}") from None

import starling as sl
import starling.torch
from starling.torch import _eager

logging.getLogger("starling.torch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="torch")
torch.set_num_threads(2)


def setUpModule():
    sl.shutdown()
    sl.init_engine(teams=2)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.devices = [starling.torch.device(0), starling.torch.device(1)]

    def close(self, a, b, tolerance=1e-5):
        torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=tolerance, atol=tolerance)


class Tensors(Case):
    def test_devices(self):
        d0, d1 = self.devices
        self.assertEqual((d1, d1.type, d1.index), (torch.device("starling", 1), "starling", 1))
        x = torch.randn(2, 3).to(d1)
        self.assertEqual((x.device, x.get_device(), x.to(d0).device, x.cpu().device.type), (d1, 1, d0, "cpu"))
        for t in (torch.zeros(3, device=d1), torch.ones_like(x), x.new_full((2,), 3), torch.arange(4, device=d1), torch.randn(2, device=d1), x + 1):
            self.assertEqual(t.device, d1)
        self.assertIn("device='starling:1'", repr(x))
        with self.assertRaises(ValueError):
            starling.torch.device(99)
        for other in (torch.ones(2, 3, device=d0), torch.ones(2, 3)):
            with self.assertRaisesRegex(RuntimeError, "same device"):
                x + other

    def test_types_that_the_engine_lacks(self):
        """They stay in main memory, whose functions PyTorch computes; gradients of floats go through them."""
        device = starling.torch.device(1)
        x, y = torch.randn(4, 2), torch.randn(2, 4, 2)
        for f in (
            lambda x, y: torch.view_as_complex(x) * 2, lambda x, y: torch.complex(x, y[0]).abs() + x, lambda x, y: torch.view_as_real(torch.view_as_complex(x).conj().resolve_conj()),
            lambda x, y: torch.fft.rfft(x, dim=0).abs().sum() + torch.cov(x).sum() + torch.corrcoef(x).sum(),
            lambda x, y: torch.linalg.eigvals(x[:2]), lambda x, y: torch.polar(x.abs(), y[1])[:, 1].t().clone().imag,
        ):  # fmt: skip
            ours, theirs = [[t.clone().to(d).requires_grad_() for t in (x, y)] for d in (device, "cpu")]
            a, b = f(*ours), f(*theirs)
            self.assertEqual(a.device, device)
            torch.testing.assert_close(a.detach().cpu(), b.detach())
            a.abs().sum().backward(), b.abs().sum().backward()
            torch.testing.assert_close(ours[0].grad.cpu(), theirs[0].grad)
        z = torch.ones(3, dtype=torch.complex64).to(device)
        z[1:] += 1j
        z.mul_(2)
        self.assertEqual(z.tolist(), [2, 2 + 2j, 2 + 2j])
        self.assertEqual(z.to(starling.torch.device(0)).tolist(), z.tolist())
        a = x.to(device)
        self.assertTrue(torch.equal(a, a.clone()) and torch.allclose(a, a + 1e-9) and not torch.equal(a, a + 1))
        self.assertEqual(torch.nonzero(a > 0).tolist(), torch.nonzero(x > 0).tolist())

    def test_views_and_changes(self):
        def program(t):
            t[1] = 5
            t[:, 2] *= 2
            t.t()[0, 1:] += 1
            t.view(-1)[3] = 9
            u = t[1:]
            w = t.permute(1, 0)
            t[:] += t * 2
            t.add_(1)
            u.mul_(3)
            kept = w.clone()
            w[1:3, :2].sub_(7)
            t.unsqueeze(0)[0, 0, 0] = -1
            a, b = t.split(2, 1)
            b.copy_(a)
            for row in t.unbind(0):
                row += 2
            t.clamp_(max=50)
            return t, u, w, kept, t.reshape(4, 3), t.expand(2, 3, 4).sum(0)

        x = torch.randn(3, 4)
        for a, b in zip(program(x.clone().to(self.devices[1])), program(x.clone())):
            self.close(a, b)

    def test_gradients_that_pytorch_makes_indices_for(self):
        """Views that overlap, on the last device: PyTorch's formulas make index tensors without a device."""
        where = starling.torch.device(starling.torch.device_count() - 1)
        window = torch.hann_window(16)
        for function in (
            lambda x, device: torch.as_strided(x, (5, 4), (2, 1)) ** 2,
            lambda x, device: torch.stft(x, 16, 4, window=window.to(device), return_complex=True).abs(),
        ):
            a = torch.randn(64, requires_grad=True)
            b = a.detach().to(where).requires_grad_()
            function(a, "cpu").sum().backward()
            function(b, where).sum().backward()
            torch.testing.assert_close(b.grad.cpu(), a.grad, rtol=1e-4, atol=1e-5)

    def test_an_error_in_a_backward_pass(self):
        """backward() raises the error of the operation, and the next one works."""
        dispatch, failing = _eager.dispatch, {torch.ops.aten.mul.Tensor, torch.ops.aten.native_layer_norm_backward.default}

        def fail(func, args, kwargs):
            if func in failing:
                raise ValueError(str(func))
            return dispatch(func, args, kwargs)

        for function in (lambda x: x * x, lambda x: F.layer_norm(x, (3,))):  # operations of one result and of several
            for k in range(starling.torch.device_count()):
                x = torch.ones(2, 3).to(starling.torch.device(k)).requires_grad_()
                y = function(x).sum()
                with mock.patch.object(_eager, "dispatch", fail):
                    self.assertRaisesRegex(ValueError, "aten", y.backward)
                y = function(x).sum()
                x.grad = None
                y.backward()
                self.assertEqual(x.grad.cpu().shape, (2, 3))

    def test_views_that_the_table_lacks(self):
        views = (
            lambda t: t.diagonal(), lambda t: t.unfold(1, 2, 2), lambda t: t.as_strided((2, 2), (4, 1), 1),
            lambda t: t[1:].as_strided((2, 2), (4, 1), 1), lambda t: t[1:].diagonal(),
        )  # fmt: skip

        def changed(x, view):
            y = x.clone().view(3, 4)
            view(y).mul_(3)
            return y

        for k, view in enumerate(views):
            with self.subTest(k=k):
                x = torch.randn(12)
                t, x = x.to(self.devices[1]).requires_grad_(), x.requires_grad_()
                for y in (changed(t, view), changed(x, view)):
                    (y * torch.linspace(1, 2, y.numel()).view(y.shape).to(y.device)).sum().backward()
                self.close(changed(t, view), changed(x, view))
                self.close(t.grad, x.grad)
        with self.assertRaises(RuntimeError):
            torch.randn(4).to(self.devices[1]).expand(3, 4).mul_(2)

    def test_views_of_views(self):
        views = (
            lambda t: t[1:].as_strided((2, 2), (4, 1), 1), lambda t: t[1:].as_strided((2,), (1,)),
            lambda t: t[:, 1:][1:].as_strided((2, 3), (4, 1)), lambda t: t.detach()[2].as_strided((2,), (2,)),
            lambda t: t.t()[1].unsqueeze(0).as_strided((3,), (4,)),
        )  # fmt: skip
        for k, view in enumerate(views):
            with self.subTest(k=k):
                x = torch.randn(3, 4)
                t, x = x.to(self.devices[1]).requires_grad_(), x.requires_grad_()
                self.close(view(t), view(x))
                for y in (view(t), view(x)):
                    if y.requires_grad:
                        (y * torch.linspace(1, 2, y.numel()).view(y.shape).to(y.device)).sum().backward()
                if x.grad is not None:
                    self.close(t.grad, x.grad)

    def test_old_values_stay_with_their_readers(self):
        x = torch.zeros(200, 200, device=self.devices[0])
        kept = []
        for k in range(20):
            kept.append(x @ x + k)
            x += 1
        for k, y in enumerate(kept):
            self.assertTrue(torch.equal(y.cpu(), torch.full((200, 200), 200.0 * k * k + k)))

    def test_gradients(self):
        def program(w, device):
            a = w.clone().to(device).requires_grad_()
            b = w.to(device) * 2
            y = F.softmax(a @ b.t(), 1).log().sum() + (a * 3).tanh().mean() + a[1:].exp().sum()
            y.backward()
            return a.grad

        w = torch.randn(4, 5)
        self.close(program(w, self.devices[1]), program(w, "cpu"))

    def test_gradients_between_devices(self):
        d0, d1 = self.devices
        a = torch.ones(3, device=d0, requires_grad=True)
        ((a * 2).to(d1) * 3).sum().backward()
        self.assertEqual((a.grad.device, a.grad.tolist()), (d0, [6.0] * 3))
        c = torch.ones(3, requires_grad=True)
        (c.to(d1) * 4).sum().backward()
        self.assertEqual((type(c.grad), c.grad.tolist()), (torch.Tensor, [4.0] * 3))
        with self.assertRaises(RuntimeError):  # a saved value that was changed
            y = a.exp()
            y += 1
            y.sum().backward()

    def test_in_main_memory(self):
        before = sum(starling.torch.fallbacks().values())
        x = torch.randn(4, 5)
        y = x.to(self.devices[1])
        values, places = y.sort(1)
        self.close(values, x.sort(1)[0])
        self.assertEqual((places.device, places.tolist()), (self.devices[1], x.sort(1)[1].tolist()))
        self.assertEqual(y.argmax(1).tolist(), x.argmax(1).tolist())
        torch.cumprod(y, 0, out=(out := torch.empty_like(y)))
        self.close(out, x.cumprod(0))
        self.assertGreater(sum(starling.torch.fallbacks().values()), before)

    def test_empty_integers_random(self):
        d = self.devices[1]
        self.assertEqual((torch.ones(0, 3).to(d) + 1).cpu().shape, (0, 3))
        self.assertEqual((torch.arange(5, device=d)[1:3]).tolist(), [1, 2])
        torch.manual_seed(5)
        a = torch.empty(3, 4).normal_()
        torch.manual_seed(5)
        self.close(torch.empty(3, 4, device=d).normal_(), a)
        y, places = F.max_pool2d(torch.arange(16.0).view(1, 1, 4, 4).to(d), 2, return_indices=True)
        self.assertEqual((y.flatten().tolist(), places.flatten().tolist()), ([5, 7, 13, 15], [5, 7, 13, 15]))

    def test_shapes_and_conditions(self):
        x, v = torch.randn(3, 4), torch.randn(3)
        for d in self.devices:
            y, w = x.to(d), v.to(d)
            self.close(w @ y, v @ x)
            self.close(y.clone().unsqueeze_(1).squeeze_(), x)
            a, b = y.clone().requires_grad_(), x.clone().requires_grad_()
            (torch.maximum(a, -a).sum() + a.clamp(-0.5, 0.5).sum() + torch.where(a > 0, a, 0).sum() + a.cumsum(0).sum()).backward()
            (torch.maximum(b, -b).sum() + b.clamp(-0.5, 0.5).sum() + torch.where(b > 0, b, 0).sum() + b.cumsum(0).sum()).backward()
            self.close(a.grad, b.grad)

    def test_losses_and_norms(self):
        labels, weights = torch.tensor([0, 1, 3, 1]), torch.rand(5)
        for f in (
            lambda x, y: F.nll_loss(x, y[0], y[1], ignore_index=1), lambda x, y: F.nll_loss(x, y[0], y[1], reduction="none"),
            lambda x, y: F.nll_loss(x[0], y[0][2], y[1]), lambda x, y: F.cross_entropy(x, y[0], y[1], reduction="sum", ignore_index=3),
            lambda x, y: F.layer_norm(x, x.shape).square().mean() + F.layer_norm(x, (5,), y[1], y[1]).sin().sum(),
            lambda x, y: F.batch_norm(x, None, None, training=True).sin() + F.batch_norm(x, y[1], y[1] + 1, training=False).cos(),
            lambda x, y: F.hardtanh(x, -0.3, 0.4) + x.flip(0, 1).cumsum(1) + torch.cat([x[:, :0], x.round(decimals=2)], 1),
            lambda x, y: F.avg_pool2d(x[None, None], 2, 1, 1, divisor_override=3).sin() + torch.div(x[0, 0], 0.3, rounding_mode="trunc"),
        ):  # fmt: skip
            x = torch.randn(4, 5)
            a, b = x.to(self.devices[1]).requires_grad_(), x.clone().requires_grad_()
            before = starling.torch.fallbacks()
            r, s = f(a, [t.to(self.devices[1]) for t in (labels, weights)]), f(b, [labels, weights])
            r.sum().backward(), s.sum().backward()
            self.assertEqual(starling.torch.fallbacks(), before)
            self.close(r, s)
            self.close(a.grad, b.grad, 1e-4)

    def test_labels(self):
        x = torch.randn(3, 4).to(self.devices[1])
        for bad in (torch.tensor([0, 4, 1]), torch.tensor([0, -3, 1])):
            with self.assertRaises(IndexError):
                F.cross_entropy(x, bad.to(self.devices[1]))
        self.assertTrue(torch.isfinite(F.cross_entropy(x, torch.tensor([0, 3, 1]).to(self.devices[1])).cpu()))

    def test_memory_is_given_back(self):
        def step():
            x = torch.ones(50, 50, device=self.devices[0], requires_grad=True)
            (x @ x).sum().backward()

        step()
        starling.torch.synchronize()
        gc.collect()
        known, tensors = len(_eager._known), sl.stats().get("tensors")
        for _ in range(20):
            step()
        starling.torch.synchronize()
        gc.collect()
        self.assertEqual((len(_eager._known), sl.stats().get("tensors")), (known, tensors))

    def test_the_engine_is_stopped(self):
        sl.shutdown()
        sl.init_engine(teams=2)
        x = torch.ones(3, device=self.devices[1])
        self.assertEqual((x * 2).tolist(), [2.0] * 3)


class Networks(Case):
    def test_training(self):
        net = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 16), nn.LayerNorm(16), nn.GELU(),
            nn.Linear(16, 10),
        )  # fmt: skip
        x, y = torch.randn(5, 1, 8, 8), torch.randint(10, (5,))
        for make in (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, 1e-3, eps=1e-4)):
            ours, theirs = copy.deepcopy(net).to(self.devices[1]), copy.deepcopy(net)
            self.assertEqual((type(ours[0].weight), ours[0].weight.device), (_eager.StarlingTensor, self.devices[1]))
            a, b = make(ours.parameters()), make(theirs.parameters())
            for _ in range(3):
                for model, optimizer, device in ((ours, a, self.devices[1]), (theirs, b, "cpu")):
                    optimizer.zero_grad()
                    F.cross_entropy(model(x.to(device)), y.to(device)).backward()
                    optimizer.step()
            for p, q in zip(ours.state_dict().values(), theirs.state_dict().values()):
                self.close(p, q, 1e-4)
            ours.eval(), theirs.eval()
            with torch.no_grad():
                self.close(ours(x.to(self.devices[1])), theirs(x), 1e-4)

    def test_data_parallel(self):
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
        x = torch.randn(7, 4)
        ours = nn.DataParallel(copy.deepcopy(net).to(self.devices[0]), device_ids=self.devices)
        y = ours(x.to(self.devices[0]))
        (y * y).sum().backward()
        z = net(x)
        (z * z).sum().backward()
        self.close(y, z)
        for p, q in zip(ours.parameters(), net.parameters()):
            self.assertEqual(p.grad.device, self.devices[0])
            self.close(p.grad, q.grad)


if __name__ == "__main__":
    unittest.main()
