"""mx.runtime: what this build can do, under MXNet's names of features."""
from .context import num_gpus
from .unsupported import missing

_HERE = frozenset(["OPENMP", "LAPACK", "F16C", "CPU_SSE", "CPU_SSE2", "CXX14", "SIGNAL_HANDLER"])
_NAMES = """CUDA CUDNN NCCL CUDA_RTC TENSORRT CPU_SSE CPU_SSE2 CPU_SSE3 CPU_SSE4_1 CPU_SSE4_2 CPU_SSE4A CPU_AVX CPU_AVX2 OPENMP SSE F16C
        JEMALLOC BLAS_OPEN BLAS_ATLAS BLAS_MKL BLAS_APPLE LAPACK MKLDNN OPENCV CAFFE PROFILER DIST_KVSTORE CXX14 INT64_TENSOR_SIZE
        SIGNAL_HANDLER DEBUG TVM_OP""".split()  # fmt: skip


class Feature:
    """A feature, and whether it is there."""

    def __init__(self, name, enabled):
        self.name, self.enabled = name, enabled

    def __repr__(self):
        return f"{'✔' if self.enabled else '✖'} {self.name}"


def feature_list():
    """All features."""
    return [Feature(name, name in _HERE or name == "CUDA" and num_gpus() > 0) for name in _NAMES]


class Features(dict):
    """The features by name; there is one object of them."""

    _one = None

    def __new__(cls):
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one

    def __init__(self):
        super().__init__((f.name, f) for f in feature_list())

    def __repr__(self):
        return str(list(self.values()))

    def is_enabled(self, feature_name):
        """Whether a feature is there; RuntimeError for an unknown name."""
        if feature_name.upper() not in self:
            raise RuntimeError(f"Feature '{feature_name}' is unknown, known features are: {list(self)}")
        return self[feature_name.upper()].enabled


__getattr__ = missing("mx.runtime")
