"""Data sets of files, and runs that stop and go on from a checkpoint."""
import pathlib
import tempfile
import unittest

import numpy as np

import starling as sl
from starling import checkpoint, data


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Data(InFolder):
    def test_arrays(self):
        x, y = np.arange(24, dtype="float32").reshape(12, 2), np.arange(12) % 3
        made = data.arrays(x, y)
        self.assertEqual((len(made), made.shape, made.classes), (12, (2,), ["0", "1", "2"]))
        self.assertEqual((made[-1][0].tolist(), int(made[5][1])), ([22, 23], 2))
        self.assertRaises(IndexError, lambda: made[12])
        self.assertEqual(sum(1 for _ in made), 12)
        got = {tuple(r): int(n) for a, b in data.Loader(made, 5, seed=3, workers=2) for r, n in zip(a.tolist(), b.tolist())}
        self.assertEqual(got, {tuple(r): n for r, n in zip(x.tolist(), y.tolist())})
        self.assertEqual([b.shape for b in data.Loader(data.arrays(x), 6)], [(6, 2)] * 2)  # no y
        halves = [data.Loader(made, 2, seed=1, rank=r, ranks=2) for r in (0, 1)]
        rows = [r for loader in halves for a, _ in loader for r in a.tolist()]
        self.assertEqual(sorted(rows), x.tolist())
        self.assertRaisesRegex(sl.InvalidArgument, "are for data sets", lambda: data.Loader((x, y), 2, workers=1))
        self.assertRaises(sl.DTypeError, lambda: data.arrays(np.array(["a"])))

    def test_parts(self):
        made = data.arrays(np.arange(10, dtype="float32")[:, None], np.arange(10))
        one, other = made.split(7, seed=1)
        values = sorted(float(x[0]) for part in (one, other) for x, _ in part)
        self.assertEqual((len(one), len(other), values), (7, 3, list(range(10))))
        self.assertEqual([float(x[0]) for x, _ in made.rows(2, 3) + made.select([9, 0])], [2, 3, 4, 9, 0])
        self.assertRaises(sl.Error, lambda: made.rows(5, 6))
        self.assertRaises(TypeError, lambda: made + 3)

    def test_files(self):
        x, y = np.random.default_rng(0).random((6, 3)).astype("float32"), np.arange(6, dtype="int32")
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "y.npy", y)
        made = data.npy(self.folder / "x.npy", self.folder / "y.npy")
        self.assertEqual([a.tolist() for a, _ in made], x.tolist())
        (self.folder / "t.csv").write_text("a;b;c\n1;2;0.5\n3;4;1.5\n")
        table = data.csv(self.folder / "t.csv", separator=";", header=True, regression=True)
        self.assertEqual([(a.tolist(), float(b)) for a, b in table], [([1, 2], 0.5), ([3, 4], 1.5)])
        (self.folder / "words").write_bytes(b"abcdefg")
        self.assertEqual([bytes(a.astype("uint8")) for a, _ in data.tokens(self.folder / "words", 3, bytes=1)], [b"abc", b"def"])
        with self.assertRaisesRegex(sl.FileError, "nothing.csv"):
            data.csv(self.folder / "nothing.csv")

    def test_transforms(self):
        images = np.random.default_rng(0).random((4, 3, 8, 8)).astype("float32")
        made = data.arrays(images, np.zeros(4, "int32"))
        centre = made.transform(data.center_crop(4, 4), data.normalise([0.5] * 3, [0.25] * 3))
        np.testing.assert_allclose(centre[2][0], (images[2, :, 2:6, 2:6] - 0.5) / 0.25, rtol=1e-5)
        np.testing.assert_array_equal(made.transform(data.random_flip(1))[1][0], images[1, :, :, ::-1])
        several = [data.random_crop(8, 8, pad=1), data.colour_jitter(0.1, 0.1, 0.1), data.random_resized_crop(6, 6), data.resize(5, 5)]
        self.assertEqual(made.transform(*several)[0][0].shape, (3, 5, 5))
        self.assertRaisesRegex(TypeError, "transform is str", lambda: made.transform("flip"))


class Epochs(InFolder):
    def test_left_early(self):
        """A new iteration is a new epoch, of a data set as of arrays."""
        x = np.arange(10, dtype="float32")
        for workers in (0, 2):
            for shuffle in (False, True):
                whole, left = (data.Loader(data.arrays(x), 4, shuffle=shuffle, seed=3, workers=workers) for _ in range(2))
                epochs = [[b.tolist() for b in whole] for _ in range(5)]
                self.assertEqual(next(iter(left)).tolist(), epochs[0][0])
                self.assertEqual([b.tolist() for b in left], epochs[1])
                for i, _ in zip(range(3), left):  # all batches, but not the end
                    pass
                self.assertEqual([b.tolist() for b in left], epochs[3])
                iter(left)  # begins nothing
                self.assertEqual([b.tolist() for b in left], epochs[4])
                self.assertEqual(next(iter(data.Loader((x,), 4, shuffle=False))).tolist(), [0, 1, 2, 3])

    def test_two_at_once(self):
        loader = data.Loader(data.arrays(np.arange(10)), 4)
        first, second = iter(loader), iter(loader)
        next(first), next(second)
        self.assertRaisesRegex(sl.StateError, "another iteration", next, first)
        self.assertEqual(len(list(second)), 2)
        self.assertEqual(len(list(loader)), 3)

    def test_resumed_in_the_middle(self):
        """The first iteration after loading a checkpoint goes on; later ones begin anew."""
        path, made = self.folder / "middle.safetensors", data.arrays(np.arange(10, dtype="float32"))
        loader = data.Loader(made, 2, seed=4)
        for i, _ in enumerate(loader):
            if i == 1:
                checkpoint.save(path, loader=loader)
                break
        whole = data.Loader(made, 2, seed=4)
        epochs = [[b.tolist() for b in whole] for _ in range(2)]
        for peek in (False, True):
            again = data.Loader(made, 2, seed=4)
            if peek:
                next(iter(again))
            checkpoint.load(path, loader=again)
            self.assertEqual([b.tolist() for b in again], epochs[0][2:])
            self.assertEqual([b.tolist() for b in again], epochs[1])
        checkpoint.load(path, loader=again)
        self.assertEqual(next(iter(again)).tolist(), epochs[0][2])
        self.assertEqual([b.tolist() for b in again], epochs[1])


class Runs(InFolder):
    def run_of(self, path=None, stop=None, resume=None):
        """Six epochs, or those up to `stop`; the parameters at the end."""
        sl.seed(5)
        x, y = np.random.default_rng(2).random((20, 4)).astype("float32"), np.arange(20) % 3
        net = sl.nn.Sequential(sl.nn.Dense(8, activation="relu"), sl.nn.Dropout(0.5), sl.nn.Dense(3))
        net.initialize()
        trainer = sl.Trainer(net, "adam", lr=0.01)
        loader, mean, total = data.Loader(data.arrays(x, y), 6, seed=4), sl.Mean(), sl.zeros(3)
        run = {"trainer": trainer, "loader": loader, "metrics": mean, "tensors": {"total": total}}
        at = {"epoch": 0}
        if resume:
            net(sl.zeros((1, 4)))  # shapes are known then
            at = checkpoint.load(resume, **run)
        for epoch in range(at["epoch"], stop or 6):
            for a, b in loader:
                with sl.record():
                    loss = sl.softmax_cross_entropy(net(a), b)
                loss.backward()
                trainer.step(len(a))
                mean.add(loss)
                total += loss.mean()
        if path:
            job = checkpoint.begin(path, epoch=stop, step=trainer.steps, note="läuft", keep=2, **run)
            job.end()
            self.assertTrue(job.written)
            checkpoint.save(path / "again.safetensors", epoch=stop, **run)
        return [p.data().tolist() for p in net.params()], mean.get(), total.tolist(), at

    def test_resumed(self):
        whole = self.run_of()
        self.run_of(self.folder / "run", stop=2)
        rest = self.run_of(resume=self.folder / "run")
        self.assertEqual(rest[:3], whole[:3])
        self.assertEqual((rest[3]["epoch"], rest[3]["step"], rest[3]["note"]), (2, 8, "läuft"))
        self.assertEqual(checkpoint.note(self.folder / "run"), "läuft")

    def test_mistakes(self):
        net = sl.nn.Dense(2, in_units=3)
        net.initialize()
        path = self.folder / "one.safetensors"
        checkpoint.save(path, net=net)
        other = sl.nn.Dense(2, in_units=4)
        other.initialize()
        with self.assertRaisesRegex(sl.Error, "weight"):
            checkpoint.load(path, net=other)
        with self.assertRaisesRegex(sl.FileError, "nowhere"):
            checkpoint.load(self.folder / "nowhere", net=net)
        with self.assertRaisesRegex(TypeError, "trainer is Dense, Trainer is needed"):
            checkpoint.save(path, trainer=net)
        with self.assertRaisesRegex(sl.InvalidArgument, "arrays"):
            checkpoint.save(path, net=net, loader=data.Loader(np.zeros((4, 2)), 2))


if __name__ == "__main__":
    unittest.main()
