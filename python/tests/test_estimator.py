"""gluon.contrib.estimator: training by handlers of events, in their order, with checkpoints and an early end."""
import io
import logging
import os
import re
import tempfile
import unittest
import warnings

import numpy as np
from starling import mx
from starling.mx import gluon
from starling.mx.gluon import nn
from starling.mx.gluon.contrib import estimator as es


def data(rows=24, batch=8):
    numbers = np.random.RandomState(3)
    x, y = numbers.rand(rows, 5).astype("float32"), numbers.randint(0, 3, rows).astype("float32")
    return x, y, gluon.data.DataLoader(gluon.data.ArrayDataset(mx.nd.array(x), mx.nd.array(y)), batch_size=batch)


def net(hybrid=False):
    made = (nn.HybridSequential if hybrid else nn.Sequential)()
    made.add(nn.Dense(4, activation="tanh", in_units=5), nn.Dense(3, in_units=4))
    made.initialize(mx.init.Constant(0.1))
    return made


class Told(es.TrainBegin, es.EpochBegin, es.BatchBegin, es.BatchEnd, es.EpochEnd, es.TrainEnd):
    """Notes the events that it is told."""

    def __init__(self, priority=0, stop_at=None):
        self.seen, self.priority, self.stop_at, self.batches = [], priority, stop_at, 0

    def train_begin(self, estimator, *args, **kwargs):
        self.seen.append("train")

    def epoch_begin(self, estimator, *args, **kwargs):
        self.seen.append("epoch")

    def batch_begin(self, estimator, *args, batch, **kwargs):
        self.seen.append(batch[0].shape[0])

    def batch_end(self, estimator, *args, pred, label, loss, **kwargs):
        assert pred[0].shape[0] == label[0].shape[0] == loss[0].shape[0]
        self.batches += 1
        return self.batches == self.stop_at

    def epoch_end(self, estimator, *args, **kwargs):
        self.seen.append("end")

    def train_end(self, estimator, *args, **kwargs):
        self.seen.append("done")


def made(network=None, quiet=True, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        e = es.Estimator(network or net(), gluon.loss.SoftmaxCrossEntropyLoss(), **options)
    if quiet:
        e.logger.handlers = []
    return e


class Training(unittest.TestCase):
    def test_same_as_a_loop(self):
        """fit gives the parameters that a loop by hand gives, and the metric of its predictions."""
        x, y, loader = data()
        by_hand, other = net(), net()
        trainer, loss = gluon.Trainer(by_hand.collect_params(), "sgd", {"learning_rate": 0.5}), gluon.loss.SoftmaxCrossEntropyLoss()
        for _ in range(2):
            right = 0
            for a, b in loader:
                with mx.autograd.record():
                    out = by_hand(a)
                    each = loss(out, b)
                each.backward()
                trainer.step(8)
                right += int((out.asnumpy().argmax(1) == b.asnumpy()).sum())
        e = made(other, train_metrics=mx.metric.Accuracy(), trainer=gluon.Trainer(other.collect_params(), "sgd", {"learning_rate": 0.5}))
        e.fit(loader, epochs=2)
        for p, q in zip(by_hand.collect_params().values(), other.collect_params().values()):
            np.testing.assert_array_equal(p.data().asnumpy(), q.data().asnumpy())
        self.assertEqual(e.train_metrics[0].get(), ("training accuracy", right / 24))
        e.evaluate(loader)
        predicted = other(mx.nd.array(x)).asnumpy().argmax(1)
        self.assertAlmostEqual(e.val_metrics[0].get()[1], (predicted == y).mean())

    def test_events(self):
        told, first, loader = Told(), Told(priority=-5000), data(20)[2]
        e = made()
        e.fit(loader, epochs=2, event_handlers=[told, first])
        self.assertEqual(told.seen, ["train"] + ["epoch", 8, 8, 4, "end"] * 2 + ["done"])
        self.assertEqual(told.batches, 6)
        order = e._prepare_default_handlers(None, [told, first])
        self.assertEqual([type(h).__name__ for h in order],
                         ["Told", "GradientUpdateHandler", "MetricHandler", "Told", "StoppingHandler", "LoggingHandler"])  # fmt: skip
        self.assertIs(order[0], first)
        self.assertIsInstance(order[-1], es.LoggingHandler)

    def test_ends(self):
        loader, told = data()[2], Told(stop_at=2)
        made().fit(loader, epochs=1, event_handlers=told)
        self.assertEqual(told.batches, 2)
        told = Told()
        made().fit(loader, batches=5, event_handlers=told)
        self.assertEqual(told.batches, 5)
        for wrong in ({}, {"epochs": 1, "batches": 1}):
            self.assertRaises(ValueError, made().fit, loader, **wrong)
        self.assertRaises(ValueError, made().fit, [mx.nd.ones((2, 5))], epochs=1)

    def test_early_stopping(self):
        class Given(mx.metric.EvalMetric):
            """A metric with values that are given, one an epoch."""

            def __init__(self, values):
                self._given = list(values)
                super().__init__("given")

            def update(self, labels, preds):
                pass

            def get(self):
                return self.name, self._given[0]

            def get_global(self):
                return self.get()

        class Next(es.EpochEnd):
            priority = 1

            def __init__(self, metric):
                self._metric = metric

            def epoch_end(self, estimator, *args, **kwargs):
                del self._metric._given[0]

        for mode, values, stopped in (("max", [1, 2, 3, 2, 2, 9], 4), ("min", [5, 4, 4, 4, 1, 0], 3), ("max", [1, 1.05, 1.1, 1.2, 0], 2)):
            metric = Given([*values, 0])
            early = es.EarlyStoppingHandler(metric, mode=mode, patience=2, min_delta=0.1 if stopped == 2 else 0)
            made(train_metrics=metric).fit(data()[2], epochs=6, event_handlers=[early, Next(metric)])
            self.assertEqual(early.stopped_epoch, stopped, (mode, values))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            self.assertTrue(es.EarlyStoppingHandler(mx.metric.F1())._best.grows)
            self.assertFalse(es.EarlyStoppingHandler(mx.metric.MSE())._best.grows)
        self.assertEqual(len(found), 2)
        self.assertRaises(ValueError, es.EarlyStoppingHandler, "acc")

    def test_log(self):
        e, text = made(quiet=True), io.StringIO()
        e.logger.addHandler(logging.StreamHandler(text))
        e.fit(data()[2], val_data=data()[2], epochs=1, event_handlers=es.LoggingHandler(log_interval=2, metrics=e.train_metrics))
        lines = text.getvalue().splitlines()
        self.assertRegex(lines[0], "^Training begin: using optimizer SGD with current learning rate 0.0010")
        self.assertEqual(sum(bool(re.match(r"\[Epoch 0\]\[Batch [02]\]\[Samples (8|24)\] time/interval: [\d.]+s training accuracy: [\d.]+", s)) for s in lines), 2)
        self.assertIn("Validation Begin", lines)
        self.assertRegex(lines[-1], r"^Train finished using total \d+s with 1 epochs. training accuracy: 0\.\d+")

    def test_mistakes(self):
        network = net()
        for wrong in ({"train_metrics": "acc"}, {"trainer": "sgd"}, {"context": "cpu"}, {"batch_processor": object()}):
            self.assertRaises(ValueError, made, network, **wrong)
        self.assertRaises(ValueError, es.Estimator, network, "mse")
        e = made(network)
        self.assertRaises(ValueError, e.fit, data()[2], epochs=1, event_handlers=[es.LoggingHandler(metrics=[mx.metric.RMSE()])])
        self.assertRaises(ValueError, e.fit, data()[2], epochs=1, event_handlers=[Told(), "no handler"])
        self.assertRaises(ValueError, es.CheckpointHandler, tempfile.gettempdir(), save_best=True)


class Checkpoints(unittest.TestCase):
    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            network = net(hybrid=True)
            network.hybridize()
            e = made(network, train_metrics=mx.metric.Accuracy())
            saver = es.CheckpointHandler(folder, "m", monitor=e.train_metrics[0], save_best=True, mode="max", epoch_period=None, batch_period=2, max_checkpoints=2)
            e.fit(data()[2], batches=8, event_handlers=saver)
            names = sorted(n for n in os.listdir(folder) if "epoch" in n)
            self.assertEqual(names, [f"m-epoch{i}batch{j}.{end}" for i, j in ((1, 5), (2, 7)) for end in ("params", "states")])
            self.assertTrue({"m-best.params", "m-best.states", "m-symbol.json"} <= set(os.listdir(folder)))
            again = net()
            again.load_parameters(os.path.join(folder, "m-epoch2batch7.params"))
            for p, q in zip(network.collect_params().values(), again.collect_params().values()):
                np.testing.assert_array_equal(p.data().asnumpy(), q.data().asnumpy())

    def test_resume(self):
        """Two epochs, and two more from the files, are four epochs, with the optimiser's states."""
        found = []
        for parts in ((4,), (2, 4)):
            with tempfile.TemporaryDirectory() as folder:
                for i, epochs in enumerate(parts):
                    network = net()
                    e = made(network, trainer=gluon.Trainer(network.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9}))
                    e.fit(data()[2], epochs=epochs, event_handlers=es.CheckpointHandler(folder, "m", resume_from_checkpoint=i > 0))
                found.append([p.data().asnumpy() for p in network.collect_params().values()])
                self.assertIn("m-epoch3batch12.params", os.listdir(folder))
                saver = es.CheckpointHandler(folder, "m", resume_from_checkpoint=True)
                self.assertRaises(ValueError, e.fit, data()[2], epochs=4, event_handlers=saver)
        for a, b in zip(*found):
            np.testing.assert_array_equal(a, b)


if __name__ == "__main__":
    unittest.main()
