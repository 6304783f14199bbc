"""mx.gluon.utils: batches on several contexts."""
import hashlib
import os
import ssl
import tempfile
import urllib.request
import warnings

import numpy

from .._signed import as_mxnet as _as_mxnet
from ..unsupported import missing
from .. import nd
from .._mode import array_class


def split_data(data, num_slice, batch_axis=0, even_split=True):
    """Splits an array into parts along an axis."""
    size = data.shape[batch_axis]
    if even_split and size % num_slice:
        raise ValueError(
            f"data with shape {data.shape} cannot be evenly split into {num_slice} slices along axis {batch_axis}. Use a batch size "
            f"that's multiple of {num_slice} or set even_split=False to allow uneven partitioning of data."
        )
    each, extra = divmod(size, num_slice)
    bounds = [i * each + min(i, extra) for i in range(num_slice + 1)]
    if not batch_axis:
        return [data[b:e] for b, e in zip(bounds, bounds[1:])]  # of sparse arrays, too
    front = (slice(None),) * batch_axis
    return [data[front + (slice(b, e),)] for b, e in zip(bounds, bounds[1:])]


def split_and_load(data, ctx_list, batch_axis=0, even_split=True):
    """Splits an array into parts, one on each context."""
    if not hasattr(data, "as_in_context"):
        data = nd.array(data, ctx_list[0])
        data.__class__ = array_class()
    if len(ctx_list) == 1:
        return [data.as_in_context(ctx_list[0])]
    parts = split_data(data, len(ctx_list), batch_axis, even_split)
    return [part.as_in_context(ctx) for part, ctx in zip(parts, ctx_list)]


def clip_global_norm(arrays, max_norm, check_isfinite=True):
    """Scales arrays in place so that their common norm is at most max_norm; returns the norm before (an
    array, if check_isfinite is False)."""
    norm = float(numpy.sqrt(sum(float(a.norm().asscalar()) ** 2 for a in arrays)))
    if check_isfinite and not numpy.isfinite(norm):
        warnings.warn(UserWarning("nan or inf is detected. Clipping results will be undefined."), stacklevel=2)
    scale = max_norm / (norm + 1e-8)
    if scale < 1:
        for a in arrays:
            a *= scale
    return norm if check_isfinite else nd.array([norm])


def check_sha1(filename, sha1_hash):
    """Whether a file has that checksum, in hexadecimal digits."""
    with open(filename, "rb") as file:
        return hashlib.sha1(file.read()).hexdigest() == sha1_hash


def download(url, path=None, overwrite=False, sha1_hash=None, retries=5, verify_ssl=True):
    """Fetches a file, unless it is there with that checksum; tries again if that fails; returns its path."""
    name = url.split("/")[-1]
    if path is None:
        path = name
    elif os.path.isdir(os.path.expanduser(path)):
        path = os.path.join(path, name)
    path = os.path.expanduser(path)
    if not overwrite and os.path.exists(path) and (not sha1_hash or check_sha1(path, sha1_hash)):
        return path
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    for left in range(retries, -1, -1):
        try:
            _fetch(url, path, folder, sha1_hash, verify_ssl)
            break
        except Exception:
            if not left:
                raise
            warnings.warn(f"download of {url} failed, it is tried again", stacklevel=2)
    return path


def _fetch(url, path, folder, sha1_hash, verify_ssl):
    """Fetches a file once: it is there whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".part-", delete=False) as part:
        try:
            for data in _parts_of(url, verify_ssl):
                part.write(data)
            part.close()
            if sha1_hash and not check_sha1(part.name, sha1_hash):
                raise UserWarning(f"File {path} is downloaded but the content hash does not match. The repo may be outdated or download may be incomplete.")
            os.replace(part.name, path)
        except BaseException:
            os.unlink(part.name)
            raise


def _parts_of(url, verify_ssl):
    """The bytes behind a URL, piece by piece: by requests, as in MXNet, if it is installed."""
    try:
        import requests  # here, because few programs fetch files
    except ImportError:
        requests = None
    if requests is None or not url.startswith(("http://", "https://")):
        with urllib.request.urlopen(url, context=None if verify_ssl else ssl._create_unverified_context()) as source:
            while data := source.read(1 << 20):
                yield data
        return
    answer = requests.get(url, stream=True, verify=verify_ssl)
    if answer.status_code != 200:
        raise RuntimeError(f"Failed downloading url {url}")
    yield from (data for data in answer.iter_content(chunk_size=1 << 20) if data)


_as_mxnet("gluon.utils", globals())
__getattr__ = missing("mx.gluon.utils")
