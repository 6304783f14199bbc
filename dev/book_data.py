"""Generates small data sets with the file names that a book downloads, for book-cells.py."""
import csv
import io
import os
import pathlib
import sys
import tarfile
import types
import zipfile

import numpy

_random = numpy.random.RandomState(7)
_WORDS = """the time traveller for so it will be convenient to speak of him was expounding a recondite matter us his pale grey eyes shone
and twinkled usually face flushed animated fire burnt brightly soft radiance incandescent lights in lilies silver caught bubbles that
flashed passed our glasses chairs being patents embraced caressed rather than submitted sat upon there luxurious after dinner atmosphere
when thought runs gracefully free trammels precision""".split()


def _sentence(n):
    return " ".join(_random.choice(_WORDS, n))


def _text(lines, n=8):
    return "\n".join(_sentence(n) for _ in range(lines)) + "\n"


def _image(size=(64, 64), kind="JPEG"):
    from PIL import Image

    stream = io.BytesIO()
    rows = numpy.linspace(0, 255, size[1])[:, None, None] * numpy.ones((1, size[0], 3)) * _random.rand(1, 1, 3)
    Image.fromarray(rows.astype("uint8")).save(stream, kind)
    return stream.getvalue()


def _rows(*rows, delimiter=","):
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def _houses(train):
    head = ["Id", "MSSubClass", "MSZoning", "LotFrontage", "LotArea", "Street", "YrSold", "SaleType", "SaleCondition"] + ["SalePrice"] * train
    return _rows(head, *([i, 20 + 10 * (i % 5), "RL" if i % 3 else "NA", 60 + i % 7, 8000 + 13 * i, "Pave", 2006 + i % 4, "WD", "Normal"]
                         + [150000 + 1000 * (i % 40)] * train for i in range(100)))  # fmt: skip


def _folders(root, parts, names, count=6, kind="PNG", suffix="png"):
    return {f"{root}/{part}/{name}/{i}.{suffix}": _image(kind=kind) for part in parts for name in names for i in range(count)}


def _bananas():
    found = {}
    for part in ("bananas_train", "bananas_val"):
        rows = [[f"{i}.png", 0, 40, 40, 120, 120] for i in range(8)]
        found[f"banana-detection/{part}/label.csv"] = _rows(["img_name", "label", "xmin", "ymin", "xmax", "ymax"], *rows)
        found.update({f"banana-detection/{part}/images/{i}.png": _image((256, 256), "PNG") for i in range(8)})
    return found


def _voc():
    root, found = "VOCdevkit/VOC2012", {}
    for part in ("train", "val"):
        found[f"{root}/ImageSets/Segmentation/{part}.txt"] = "\n".join(f"{part}{i}" for i in range(6)) + "\n"
        for i in range(6):
            found[f"{root}/JPEGImages/{part}{i}.jpg"] = _image((500, 375))
            found[f"{root}/SegmentationClass/{part}{i}.png"] = _image((500, 375), "PNG")
    return found


def _kaggle(root, names):
    labels = [[i + 1, names[i % len(names)]] for i in range(20)]
    found = {f"{root}/trainLabels.csv": _rows(["id", "label"], *labels), f"{root}/labels.csv": _rows(["id", "breed"], *labels)}
    found.update({f"{root}/train/{i + 1}.{suffix}": _image((32, 32), kind) for i in range(20) for suffix, kind in (("png", "PNG"), ("jpg", "JPEG"))})
    found.update({f"{root}/test/{i + 1}.{suffix}": _image((32, 32), kind) for i in range(5) for suffix, kind in (("png", "PNG"), ("jpg", "JPEG"))})
    return found


def _reviews():
    return {f"aclImdb/{part}/{kind}/{i}.txt": _sentence(60) for part in ("train", "test") for kind in ("pos", "neg") for i in range(20)}


def _snli():
    head = ["gold_label", "binary", "binary2", "parse", "parse2", "sentence1", "sentence2"]
    rows = [[("entailment", "contradiction", "neutral")[i % 3], f"( {_sentence(6)} )", f"( {_sentence(5)} )"] + [""] * 4 for i in range(60)]
    return {f"snli_1.0/snli_1.0_{part}.txt": _rows(head, *rows, delimiter="\t") for part in ("train", "test", "dev")}


def _vectors(n, head=False):
    words = list(dict.fromkeys(_WORDS + "king queen man woman chip baby beautiful beijing china tokyo japan bad worst big biggest do did".split()))
    lines = [w + " " + " ".join(f"{x:.4f}" for x in _random.randn(n)) for w in words]
    return "\n".join(([f"{len(words)} {n}"] if head else []) + lines) + "\n"


def _movies():
    ratings = [[i % 30 + 1, i * 7 % 40 + 1, i % 5 + 1, 880000000 + i] for i in range(600)]
    users = [[i + 1, 20 + i, "MF"[i % 2], "student", "00000"] for i in range(30)]
    return {"ml-100k/u.data": _rows(*ratings, delimiter="\t"), "ml-100k/u.user": _rows(*users, delimiter="|")}


def _clicks():
    return {f"ctr/{part}.csv": _rows(*[[i % 2, *_random.randint(0, 20, 34)] for i in range(100)], delimiter="\t") for part in ("train", "test")}


_FILES = {
    "timemachine.txt": lambda: _text(300),
    "airfoil_self_noise.dat": lambda: _rows(*_random.rand(1503, 6).round(4).tolist(), delimiter="\t"),
    "kaggle_house_pred_train.csv": lambda: _houses(True),
    "kaggle_house_pred_test.csv": lambda: _houses(False),
    "fra-eng.zip": lambda: {"fra-eng/fra.txt": "".join(f"{_sentence(3).capitalize()}.\t{_sentence(4).capitalize()}!\n" for _ in range(700))},
    "hotdog.zip": lambda: _folders("hotdog", ("train", "test"), ("hotdog", "not-hotdog")),
    "banana-detection.zip": _bananas,
    "VOCtrainval_11-May-2012.tar": _voc,
    "pokemon.zip": lambda: _folders("pokemon", ("a", "b"), ("c",)),
    "kaggle_cifar10_tiny.zip": lambda: _kaggle("kaggle_cifar10_tiny", ["cat", "dog", "ship"]),
    "kaggle_dog_tiny.zip": lambda: _kaggle("kaggle_dog_tiny", ["pug", "beagle", "boxer"]),
    "ptb.zip": lambda: {f"ptb/ptb.{part}.txt": _text(200, 12) for part in ("train", "valid", "test")},
    "aclImdb_v1.tar.gz": _reviews,
    "wikitext-2-v1.zip": lambda: {f"wikitext-2/wiki.{part}.tokens": "\n".join(f"{_sentence(6)} . {_sentence(7)} ." for _ in range(80))
                                  for part in ("train", "valid", "test")},
    "snli_1.0.zip": _snli,
    "glove.6B.50d.zip": lambda: {"glove.6B.50d/vec.txt": _vectors(50)},
    "glove.6B.100d.zip": lambda: {"glove.6B.100d/vec.txt": _vectors(100)},
    "wiki.en.zip": lambda: {"wiki.en/vec.txt": _vectors(300, True)},
    "ml-100k.zip": _movies,
    "ctr.zip": _clicks,
}  # fmt: skip


def _bytes(value):
    return value if isinstance(value, bytes) else value.encode()


def content(name):
    """The bytes of the file with that name."""
    if name not in _FILES:
        raise OSError(f"book-check has no data in place of {name}")
    _random.seed(sum(name.encode()))
    parts, stream = _FILES[name](), io.BytesIO()
    if not isinstance(parts, dict):
        return _bytes(parts)
    if name.endswith(".zip"):
        with zipfile.ZipFile(stream, "w") as archive:
            for path, value in parts.items():
                archive.writestr(path, _bytes(value))
    else:
        with tarfile.open(fileobj=stream, mode="w:gz" if name.endswith("gz") else "w") as archive:
            for path, value in parts.items():
                entry = tarfile.TarInfo(path)
                entry.size = len(_bytes(value))
                archive.addfile(entry, io.BytesIO(_bytes(value)))
    return stream.getvalue()


# ---- in the place of functions


def _get(url, *_, **__):
    data = content(str(url).split("/")[-1].split("?")[0])
    return types.SimpleNamespace(content=data, text=data.decode("latin1"), status_code=200, ok=True, raise_for_status=lambda: None)


def _download(url, path=None, fname=None, dirname=None, **_):
    name = str(url).split("/")[-1]
    target = pathlib.Path(path or fname or name)
    target = target / name if target.is_dir() else pathlib.Path(dirname or ".") / target
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content(name))
    return str(target)


def _images(mx, shape, count=40):
    class Images(mx.gluon.data.dataset.Dataset if hasattr(mx.gluon.data, "dataset") else mx.gluon.data.Dataset):
        """Images with a class for each."""

        def __init__(self, root=None, train=True, transform=None, **_):
            random = numpy.random.RandomState(1 if train else 2)
            self._label = (numpy.arange(count) % 10).astype("int32")
            self._data = (random.rand(count, *shape) * 100 + 15 * self._label.reshape(-1, 1, 1, 1)).astype("uint8")
            self._transform = transform

        def __len__(self):
            return count

        def __getitem__(self, i):
            from mxnet import util

            array = mx.np.array if util.is_np_array() else mx.nd.array
            image = array(self._data[i], dtype="uint8")
            return self._transform(image, self._label[i]) if self._transform else (image, self._label[i])

    return Images


def _mnist():
    labels = numpy.arange(40) % 10
    images = (numpy.random.RandomState(1).rand(40, 1, 28, 28) / 2 + labels.reshape((-1, 1, 1, 1)) / 20).astype("float32")
    return {"train_data": images, "train_label": labels, "test_data": images[:20], "test_label": labels[:20]}


def _random_weights(mx):
    """Networks of the zoo with random weights in place of trained ones."""
    vision = mx.gluon.model_zoo.vision

    def without(make):
        def call(*args, pretrained=False, ctx=None, **options):
            net = make(*args, **options)
            if pretrained:
                net.initialize(mx.init.Xavier(), ctx=ctx)
                array = mx.np.array if mx.util.is_np_array() else mx.nd.array
                net(array(numpy.zeros((1, 3, 299, 299)), ctx=ctx))
            return net

        return call

    for name, make in list(vars(vision).items()):
        if callable(make) and not isinstance(make, type) and not name.startswith("_") and name.islower() and name not in ("download", "check_sha1"):
            setattr(vision, name, without(make))


def _module(name, **names):
    module = sys.modules[name] = types.ModuleType(name)
    vars(module).update(names)
    return module


def _quiet_notebook():
    """Stands in for IPython, which shows pictures."""
    nothing = lambda *_, **__: None  # noqa: E731
    display = _module("IPython.display", display=nothing, clear_output=nothing, set_matplotlib_formats=nothing, HTML=nothing, SVG=nothing, Image=nothing)
    _module("IPython", display=display, get_ipython=nothing, version_info=(8, 0))
    backend = _module("matplotlib_inline.backend_inline", set_matplotlib_formats=nothing)
    _module("matplotlib_inline", backend_inline=backend)


def replace(side):
    """Replaces downloads, data sets of images and Jupyter by what this module makes; writes the book's images."""
    _quiet_notebook()
    import requests
    import urllib.request
    import mxnet as mx

    requests.get = _get
    urllib.request.urlopen = lambda url, *_, **__: io.BytesIO(content(str(url).split("/")[-1]))
    vision = mx.gluon.data.vision
    vision.MNIST = vision.FashionMNIST = _images(mx, (28, 28, 1))
    vision.CIFAR10 = vision.CIFAR100 = _images(mx, (32, 32, 3))
    _random_weights(mx)
    for module in (mx.gluon.utils, mx.test_utils):
        module.download = _download
    mx.test_utils.get_mnist = _mnist
    for name in ("catdog.jpg", "cat1.jpg", "banana.jpg", "rainier.jpg", "autumn-oak.jpg", "cat.jpg", "dog.jpg", "real.jpg"):
        pathlib.Path("..", "img", name).write_bytes(_image((400, 300)))
        os.makedirs("../../img", exist_ok=True)
