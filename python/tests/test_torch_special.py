"""Linear algebra and special functions of starling.torch against eager PyTorch.  Skipped where PyTorch is not installed."""
import unittest

try:
    import torch
except ImportError as error:
    raise unittest.SkipTest(f"needs PyTorch: {error}") from None

import starling.torch
from test_torch_ops import Case


class Linear(Case):
    """Square matrices are such that elimination exchanges rows."""

    def matrices(self, *shape):
        return torch.randn(*shape) + torch.eye(shape[-2], shape[-1]).flip(0)

    def both(self, f, *inputs):
        """Results that have no weights of a sum, with tuples."""
        torch._dynamo.reset()
        before = starling.torch.counts().get("left to PyTorch", 0)
        for a, b in zip(torch.compile(f, backend="starling")(*inputs), f(*inputs)):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
        self.assertEqual(starling.torch.counts().get("left to PyTorch", 0), before, starling.torch.fallbacks())

    def test_systems(self):
        a, b = self.matrices(2, 3, 5, 5), torch.randn(2, 3, 5, 4)
        self.check(torch.linalg.solve, a, b)
        self.check(lambda a, b: torch.linalg.solve(a, b.mT, left=False), a, b)
        self.check(torch.linalg.inv, a)
        self.check(torch.linalg.det, a)
        self.check(lambda a: torch.linalg.det(a.mT), a)
        self.check(lambda a: torch.linalg.slogdet(a)[1] * torch.linalg.slogdet(a)[0], a)
        self.check(lambda a, b: torch.linalg.solve(a, b[..., 0]), a, b)

    def test_factors(self):
        for shape in ((5, 5), (2, 4, 6), (2, 6, 4), (1, 1)):
            a = self.matrices(*shape)
            self.both(lambda a: torch.linalg.lu(a), a)
            self.both(lambda a: torch.linalg.lu_factor(a), a)
            self.both(lambda a: torch.linalg.qr(a), a)
            self.both(lambda a: torch.linalg.qr(a, mode="complete"), a)
        a = self.matrices(2, 5, 4)
        self.check(lambda a: torch.linalg.qr(a)[0] @ torch.linalg.qr(a)[1].sin(), a)
        a[0, 1:, 0] = 0  # nothing to reflect
        self.both(lambda a: torch.linalg.qr(a), a)

    def test_of_given_factors(self):
        a, b = self.matrices(2, 5, 5), torch.randn(2, 5, 3)
        lu, pivots = torch.linalg.lu_factor(a)
        for adjoint in (False, True):
            self.both(lambda b: (torch.linalg.lu_solve(lu, pivots, b, adjoint=adjoint),), b)
            self.both(lambda b: (torch.linalg.lu_solve(lu, pivots, b.mT, left=False, adjoint=adjoint),), b)
        self.both(lambda lu: torch.lu_unpack(lu, pivots), lu)

    def test_symmetric(self):
        a = self.matrices(2, 5, 5)
        spd, b = a @ a.mT + torch.eye(5), torch.randn(2, 5, 3)
        for upper in (False, True):
            torch._dynamo.reset()
            self.check(lambda a: torch.linalg.cholesky(a @ a.mT + torch.eye(5), upper=upper), a)
            self.check(lambda a, b: torch.linalg.solve_triangular(a, b, upper=upper), spd, b)
            self.check(lambda a, b: torch.linalg.solve_triangular(a, b.mT, upper=upper, left=False, unitriangular=True), spd / 9, b)
            factor = torch.linalg.cholesky(spd, upper=upper)
            self.check(lambda a, b: torch.cholesky_solve(b, a, upper=upper), factor, b)
            self.check(lambda a: torch.cholesky_inverse(a, upper=upper), factor)

    def test_singular(self):
        """PyTorch's error, and 0 as a determinant."""
        a = torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
        for f in (torch.linalg.inv, lambda a: torch.linalg.solve(a, a), lambda a: torch.linalg.cholesky(-a @ a.mT)):
            torch._dynamo.reset()
            with self.assertRaises(torch.linalg.LinAlgError):
                torch.compile(f, backend="starling")(a)
        self.both(lambda a: (torch.linalg.det(a), *torch.linalg.lu_factor_ex(a)), a)

    def test_large_ones_are_pytorchs(self):
        a = self.matrices(30, 30)
        torch.testing.assert_close(torch.compile(torch.linalg.inv, backend="starling")(a), torch.linalg.inv(a), rtol=1e-3, atol=1e-3)


class Special(Case):
    def near(self, f, x, gradient=True):
        """Values beside PyTorch's in float64, to float32's precision, and the gradient beside PyTorch's."""
        torch._dynamo.reset()
        before = starling.torch.counts().get("left to PyTorch", 0)
        a, b = x.clone().requires_grad_(gradient), x.clone().requires_grad_(gradient)
        y, exact = torch.compile(f, backend="starling")(a), f(b)
        torch.testing.assert_close(y.detach().double(), f(x.double()), rtol=2e-5, atol=1e-5, equal_nan=True)
        if gradient:
            y.sum().backward(), exact.sum().backward()
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5, equal_nan=True)
        self.assertEqual(starling.torch.counts().get("left to PyTorch", 0), before, starling.torch.fallbacks())

    def test_gamma(self):
        x = torch.cat([torch.linspace(-4.9, 30, 700), torch.tensor([1e-3, 150.0, 2e6, 1.0, 2.0])])
        x = x[(x - x.round()).abs() > 1e-2]  # poles have no digits
        self.near(torch.lgamma, x)
        self.near(torch.digamma, x)
        for n in (1, 2, 5):
            self.near(lambda x: torch.polygamma(n, x), x[x.abs() < 20], gradient=False)
        s = torch.tensor([1.0, 2.0, 3.0, 2.5, 0.5, 7.0, 11.0])
        q = torch.cat([x[x.abs() < 20], torch.tensor([0.0, -1.0, 1e4, float("nan")])])
        self.near(lambda q: torch.special.zeta(s[:, None].to(q.dtype), q), q, gradient=False)
        self.near(lambda x: torch.polygamma(2, x), torch.tensor([-1e-5, -1.0 + 1e-4, 1e-3]), gradient=False)
        ends = torch.tensor([0.0, -0.0, -1.0, -2.0, float("inf"), float("-inf"), float("nan"), 1e20, -3e38])
        for f in (torch.lgamma, torch.digamma):
            torch._dynamo.reset()
            torch.testing.assert_close(torch.compile(f, backend="starling")(ends), f(ends), equal_nan=True)

    def test_half_types(self):
        """PyTorch computes them in float32, too."""
        x = torch.linspace(0.1, 4, 80).bfloat16()
        for f in (torch.lgamma, torch.digamma, torch.special.i0, torch.special.i1e, lambda x: torch.polygamma(2, x)):
            torch._dynamo.reset()
            torch.testing.assert_close(torch.compile(f, backend="starling")(x), f(x), rtol=8e-3, atol=1e-5)

    def test_bessel(self):
        s, ends = torch.special, torch.tensor([0.0, float("nan"), 3.0, 3.75, 2.0])
        x = torch.cat([torch.linspace(-12, 12, 501), ends])
        for f in (s.i0, s.i0e, s.i1, s.i1e):
            self.near(f, x)
        for f in (s.modified_bessel_i0, s.modified_bessel_i1, s.bessel_j0, s.bessel_j1, s.spherical_bessel_j0):
            self.near(f, x, gradient=False)
        x = torch.cat([torch.linspace(-1, 12, 501), ends])
        for f in (s.bessel_y0, s.bessel_y1, s.modified_bessel_k0, s.modified_bessel_k1, s.scaled_modified_bessel_k0, s.scaled_modified_bessel_k1):
            self.near(f, x[x != 0], gradient=False)

    def test_chebyshev(self):
        x, n = torch.cat([torch.linspace(-2.2, 2.2, 89), torch.tensor([1.0, -1.0, float("nan")])]), torch.tensor([-2.0, 0.0, 1.0, 2.0, 3.7, 6.0, 9.0])
        for name in (f"{s}chebyshev_polynomial_{kind}" for s in ("", "shifted_") for kind in "tuvw"):
            f = getattr(torch.special, name)
            g = lambda x: f(x / 2 if "shifted" in name else x, n[:, None].to(x.dtype))
            torch._dynamo.reset()
            y, exact = torch.compile(g, backend="starling")(x), g(x.double()).float()
            torch.testing.assert_close(y, exact, rtol=1e-4, atol=1e-4, equal_nan=True)

    def test_errors(self):
        x = torch.cat([torch.linspace(-6, 20, 400), torch.tensor([1e4, 1e-5, float("nan")])])
        self.near(torch.special.erfcx, x)
        x = torch.cat([torch.linspace(0.001, 0.999, 400), torch.tensor([0.0, 1.0, 0.5, 1e-5, 1e-12, 1e-30, -0.1, 1.1, float("nan")])])
        self.near(torch.special.ndtri, x, gradient=False)


if __name__ == "__main__":
    unittest.main()
