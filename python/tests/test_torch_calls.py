"""What a call of torch.compile's backend and of compiled steps leaves behind, and memory that changes between calls, against
eager PyTorch.  Skipped where PyTorch is not installed."""
import collections
import copy
import gc
import unittest
import unittest.mock
import warnings

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as error:
    raise unittest.SkipTest(f"needs PyTorch: {error}") from None

import starling.torch
from starling.torch import _memory, _quick, _results

warnings.filterwarnings("ignore", module="torch")
torch.set_num_threads(2)


def resident():
    """The process's memory in KB, without what only awaits collection."""
    gc.collect()
    with open("/proc/self/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Rss"))


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(3)

    def close(self, a, b, tolerance=1e-5):
        torch.testing.assert_close(a.detach(), b.detach(), rtol=tolerance, atol=tolerance)


def both_ways(f, x, weights):
    """The value, and the gradients of the weights."""
    y = f(x, *weights)
    for w in weights:
        w.grad = None
    y.backward()
    return [y, *(w.grad for w in weights)]


def weighted(x, *weights):
    return sum((torch.tanh(x) * w).sum() * k for k, w in enumerate(weights, 1))


class Small(Case):
    """Programs that are computed in the calling thread."""

    def counted(self):
        """How many programs are computed here, and queued."""
        count = collections.Counter()

        def counting(name, f):
            def call(*args):
                found = f(*args)
                count[name] += found is not None
                return found

            return f and call

        makes, queued = _quick.caller, _quick.Quick.queued
        for owner, name, other in (
            (_quick, "caller", lambda *args: counting("computed", makes(*args))), (_quick.Quick, "queued", counting("queued", queued)),
        ):  # fmt: skip
            patch = unittest.mock.patch.object(owner, name, other)
            patch.start()
            self.addCleanup(patch.stop)
        return count

    def test_values_and_gradients(self):
        for n in (1, 10, 60):
            with self.subTest(weights=n):
                x, weights = torch.randn(8), [torch.randn(8, requires_grad=True) for _ in range(n)]
                f = torch.compile(weighted, backend="starling", dynamic=False)
                for _ in range(3):
                    for a, b in zip(both_ways(f, x, weights), both_ways(weighted, x, weights)):
                        self.close(a, b)

    def test_no_task_and_no_handle(self):
        count = self.counted()
        f, w = torch.compile(lambda x, w: (x * w).sum(), backend="starling", dynamic=False), torch.ones(8, requires_grad=True)
        _memory.forget()
        for _ in range(3):
            f(torch.randn(8), w).backward()
        self.assertEqual((count["computed"], count["queued"], len(_memory.handles)), (6, 0, 0))
        large = torch.randn(1024, 1024)
        self.close(torch.compile(lambda x: x * 2, backend="starling")(large), large * 2)
        self.assertEqual((count["computed"], count["queued"]), (7, 0))

    def test_another_number_of_threads_means_tasks(self):
        count, x = self.counted(), torch.randn(300, 300)
        f = torch.compile(lambda x: (x @ x).softmax(1), backend="starling")
        expected = f(x)
        self.addCleanup(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(torch.get_num_threads() + 1)
        self.assertTrue(torch.equal(f(x), expected))
        self.assertEqual((count["computed"], count["queued"]), (1, 1))

    def test_buffers_and_steps(self):
        """What is written in place: statistics, parameters, states of an optimiser."""
        model = nn.Sequential(nn.Linear(4, 6, bias=False), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 2))
        other = copy.deepcopy(model)
        ours, theirs = (torch.optim.AdamW(m.parameters(), lr=0.05, weight_decay=0.1) for m in (model, other))
        step = starling.torch.compile_step(model, F.mse_loss, ours)
        for k in range(5):
            x, y = torch.randn(8, 4), torch.randn(8, 2)
            ours.param_groups[0]["lr"] = theirs.param_groups[0]["lr"] = 0.05 / (k + 1)
            theirs.zero_grad()
            expected = F.mse_loss(other(x), y)
            expected.backward()
            theirs.step()
            self.close(step(x, y), expected, 1e-4)
        for a, b in zip(model.state_dict().values(), other.state_dict().values()):
            self.close(a, b, 1e-4)
        self.assertEqual(int(model[1].num_batches_tracked), 5)

    def test_threads_of_pytorch_do_not_matter(self):
        x, w = torch.randn(16, 16), torch.randn(16, 16)
        f = torch.compile(lambda x, w: (x @ w).softmax(1), backend="starling")
        expected = f(x, w)
        self.addCleanup(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)
        self.assertTrue(torch.equal(f(x, w), expected))
        self.assertEqual(torch.get_num_threads(), 1)

    def test_an_error_is_the_call_s(self):
        f = torch.compile(lambda x, i: F.embedding(i, x), backend="starling")
        x = torch.randn(4, 3)
        self.close(f(x, torch.tensor([1, 3])), x[[1, 3]])
        with self.assertRaises((IndexError, RuntimeError)):
            f(x, torch.tensor([1, 9]))
        self.close(f(x, torch.tensor([2, 0])), x[[2, 0]])


class Results(Case):
    """Memory of large results, which is used again once nobody has them."""

    def setUp(self):
        super().setUp()
        self.f = torch.compile(lambda x: x * 2, backend="starling", dynamic=False)
        self.x = torch.randn(512, 512)

    def test_kept_results_stay(self):
        kept = [self.f(self.x * k) for k in range(5)]
        views = [self.f(self.x * k)[1:].view(-1) for k in range(5)]
        for k in range(5):
            self.close(kept[k], self.x * k * 2)
            self.close(views[k], (self.x * k * 2)[1:].flatten())

    def test_freed_results_are_used_again(self):
        for _ in range(3):
            self.f(self.x)
        places = {self.f(self.x).data_ptr() for _ in range(20)}
        self.assertLessEqual(len(places), _results.MOST)

    def test_resized_or_shared_results_are_not(self):
        for change in (lambda t: t.untyped_storage().resize_(8), lambda t: t.share_memory_()):
            y = self.f(self.x)
            change(y)
            place = y.untyped_storage().data_ptr()
            del y
            for _ in range(4):
                y = self.f(self.x)
                self.close(y, self.x * 2)
                self.assertNotEqual(y.data_ptr(), place)

    def test_backward_passes_after_several_forward_passes(self):
        w = torch.randn(256, 256, requires_grad=True)
        loss = lambda x: ((x @ w).tanh() @ w).sin().sum()
        f, inputs = torch.compile(loss, backend="starling", dynamic=False), [torch.randn(256, 256) / 16 for _ in range(4)]
        for _ in range(2):
            for y in [f(x) for x in inputs]:
                y.backward()
            ours, w.grad = w.grad, None
            for x in inputs:
                loss(x).backward()
            self.close(ours, w.grad, 1e-3)
            w.grad = None


class Changing(Case):
    """Memory that is freed, resized or given to others between calls."""

    def test_a_storage_that_became_too_small(self):
        for size in (64, 1 << 19):  # computed here, and queued
            f, x = torch.compile(lambda x: x + 1, backend="starling", dynamic=False), torch.ones(size)
            f(x)
            kept = x.untyped_storage()
            for length in (16, 0):
                kept.resize_(length)
                with self.assertRaisesRegex(RuntimeError, "resized"):
                    f(x)
            kept.resize_(4 * size)
            x.fill_(3)
            self.close(f(x), x + 1)

    def test_memory_of_another_kind(self):
        """Parameters whose data were replaced, which Dynamo does not look at."""
        f, x, w = torch.compile(lambda x, w: x @ w, backend="starling", dynamic=False), torch.randn(3, 4), nn.Parameter(torch.randn(4, 4))
        for data in (torch.randn(4, 4), torch.randn(4, 4).t(), torch.randn(8, 4)[::2], torch.randn(17)[1:].view(4, 4), torch.randn(4, 1).expand(4, 4)):
            w.data = data
            self.close(f(x, w), x @ w)
        for data in (torch.randn(4, 5), torch.randn(4, 4, dtype=torch.float64)):
            w.data = data
            self.close(f(x.to(data.dtype), w), x.to(data.dtype) @ w)
        one = torch.randn(1, dtype=torch.complex64).conj().imag  # negated, and in order
        self.close(torch.compile(lambda x: x + 1, backend="starling")(one), one + 1)

    def test_the_engine_is_stopped_between_calls(self):
        f, x = torch.compile(lambda x, w: (x * w).sum(), backend="starling"), torch.randn(8)
        for restart in (lambda: None, lambda: starling.ones(2).numpy(), starling.init_engine):
            w = torch.randn(8, requires_grad=True)
            y = f(x, w)
            self.close(y, (x * w).sum())
            starling.shutdown()
            restart()
            y.backward()
            self.close(w.grad, x)

    def test_a_large_result_is_changed_in_place_by_a_program(self):
        """Its memory is the engine's."""
        make = torch.compile(lambda x: x * 2, backend="starling")

        def change(y):
            y.add_(1)
            return y.sum()

        change, x = torch.compile(change, backend="starling"), torch.ones(1 << 19)
        y = make(x)
        self.close(change(y), torch.tensor(3.0 * (1 << 19)))
        self.close(y, torch.full((1 << 19,), 3.0))
        del y
        self.close(make(x), x * 2)

    def test_views_of_one_memory(self):
        def change(a, b):
            a.mul_(2)
            return b + a.sum()

        f = torch.compile(change, backend="starling")
        for size in (12, 1 << 19):
            x, y = torch.arange(size) / size, torch.arange(size) / size
            for part in (slice(None), slice(4, None), slice(0, size, 3)):
                self.close(f(x[: size - 2], x[part]), change(y[: size - 2], y[part]), 1e-3)
                self.close(x, y)

    def test_inputs_that_do_not_lie_in_one_piece(self):
        f = torch.compile(lambda x: x.exp().sum(1), backend="starling")
        whole = torch.randn(6, 10)
        for x in (whole, whole.t()[:6, :6].t(), whole[:, ::2], whole[:, :1].expand(6, 10), whole[::2], torch.randn(6, 10, dtype=torch.complex64).conj().imag):
            self.close(f(x), x.exp().sum(1))

    def test_gradients_that_do_not_lie_in_one_piece(self):
        f, w = torch.compile(lambda w: w.tanh(), backend="starling"), torch.randn(4, 5, requires_grad=True)
        for g in (torch.randn(5, 4).t(), torch.ones(1).expand(4, 5), torch.randn(4, 10)[:, ::2]):
            (a,), (b,) = (torch.autograd.grad(h(w), w, g) for h in (f, torch.tanh))
            self.close(a, b)


class Models(Case):
    """Models that change after a step was compiled."""

    def beside(self, model, change, again=False):
        """Losses and parameters of steps before and after a change, beside eager PyTorch's."""
        x, y, losses = torch.randn(5, 4), torch.randn(5, 4), []
        for compiled in (True, False):
            torch.manual_seed(4)
            m = copy.deepcopy(model)
            optimizer = torch.optim.SGD(m.parameters(), lr=0.1)

            def eager(x, y):
                optimizer.zero_grad()
                loss = F.mse_loss(m(x), y)
                loss.backward()
                optimizer.step()
                return loss

            step = starling.torch.compile_step(m, F.mse_loss, optimizer) if compiled else eager
            found = [step(x, y), step(x, y)]
            change(m, optimizer)
            losses.append(torch.stack([k.detach() for k in [*found, step(x, y), step(x, y), m(x).sum()]]))
        self.close(*losses)

    def test_values_and_memory(self):
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))

        def new_memory(m, _):
            for p in m.parameters():
                p.data = torch.randn(p.shape)

        self.beside(model, new_memory)
        self.beside(model, lambda m, _: m[0].weight.data.mul_(2))

    def test_ties(self):
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))

        def tie(m, optimizer):
            m[2].weight = m[0].weight

        self.beside(model, tie)
        tied = copy.deepcopy(model)
        tied[2].weight = tied[0].weight

        def untie(m, optimizer):
            m[2].weight = nn.Parameter(m[2].weight.detach().clone())
            optimizer.add_param_group({"params": [m[2].weight]})

        self.beside(tied, untie)

    def test_another_module(self):
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))

        def replace(m, optimizer):
            m[2] = nn.Linear(4, 4)
            optimizer.add_param_group({"params": list(m[2].parameters()), "lr": 0.1})

        self.beside(model, replace)

    def test_settings_of_layers_and_hooks(self):
        """Another slope, or another factor by a hook, makes another program."""
        model = nn.Sequential(nn.Linear(4, 4), nn.LeakyReLU(0.1), nn.Linear(4, 4))

        def steeper(m, _):
            m[1].negative_slope = 3.0

        self.beside(model, steeper)
        self.beside(model, lambda m, _: m[1].register_forward_hook(lambda module, inputs, y: y * 2))
        hooked = copy.deepcopy(model)
        hooked[1].register_full_backward_hook(lambda module, given, wanted: (given[0] * 0.5,))
        self.beside(hooked, lambda m, _: m[1]._backward_hooks.clear())

    def test_hooks_of_gradients_are_refused(self):
        model = nn.Linear(4, 4)
        step = starling.torch.compile_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1))
        for hook in (
            lambda: model.weight.register_hook(lambda g: g * 3), lambda: model.bias.register_post_accumulate_grad_hook(lambda p: None),
            lambda: step.optimizer.register_step_pre_hook(lambda *_: None),
        ):  # fmt: skip
            handle = hook()
            with self.assertRaisesRegex(NotImplementedError, "hook"):
                step(torch.randn(3, 4), torch.randn(3, 4))
            handle.remove()
            step(torch.randn(3, 4), torch.randn(3, 4))

    def test_shared_memory(self):
        model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
        whole = torch.randn(6, 4)
        model[0].weight.data, model[1].weight.data = whole[:4], whole[2:]
        step = starling.torch.compile_step(model, F.mse_loss, torch.optim.SGD(model.parameters(), lr=0.1))
        with self.assertRaisesRegex(NotImplementedError, "share memory"):
            step(torch.randn(3, 4), torch.randn(3, 4))
        model[1].weight.data = torch.randn(4, 4)
        step(torch.randn(3, 4), torch.randn(3, 4))

    def test_tensors_without_elements(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.c = nn.Parameter(torch.empty(0)), nn.Parameter(torch.empty(0, 4)), nn.Linear(4, 4)

            def forward(self, x):
                return self.c(torch.cat([x, self.b])) + self.a.sum()

        self.beside(Model(), lambda m, _: None)


class Leaks(Case):
    def grows(self, one, count, warm):
        """KB by which the process has grown in each of so many calls, after some that it may need."""
        for _ in range(warm):
            one()
        before = resident()
        for _ in range(count):
            one()
        return (resident() - before) / count

    def test_steps(self):
        """10**5 of them: 0.0 KB each; one tensor kept would be 0.5."""
        model = nn.Sequential(nn.Linear(5, 30), nn.Tanh(), nn.Linear(30, 3))
        optimizer = torch.optim.AdamW(model.parameters())
        compiled = torch.compile(model, backend="starling", dynamic=False)
        step = starling.torch.compile_step(model, F.mse_loss, optimizer)

        def both():
            x, y = torch.randn(4, 5), torch.randn(4, 3)
            F.mse_loss(compiled(x), y).backward()
            step(x, y)

        self.assertLess(self.grows(both, 4000, 500), 0.15)

    def test_compiled_steps(self):
        """Compiled steps whose models are gone leave no tensors of their tracing, and no handles."""
        from torch._subclasses.fake_tensor import FakeTensorMode

        def left():
            gc.collect()
            _memory.drop_freed()
            return sum(type(x) is FakeTensorMode for x in gc.get_objects()), len(_memory.handles)

        def one():
            model = nn.Sequential(nn.Linear(5, 30), nn.ReLU(), nn.Linear(30, 3))
            step = starling.torch.compile_step(model, F.mse_loss, torch.optim.AdamW(model.parameters()))
            step(torch.randn(4, 5), torch.randn(4, 3))

        one()
        before = left()
        for _ in range(4):
            one()
        after = left()
        self.assertLessEqual(after[0], before[0])
        self.assertLessEqual(after[1], before[1])


if __name__ == "__main__":
    unittest.main()
