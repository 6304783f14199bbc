# Spack's recipe for Starling; see packaging/README.md.
import os

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Starling(AutotoolsPackage, CudaPackage):
    """Deep learning in C on every processor of the machine: tensor operations, their gradients and whole networks run as
    StarPU tasks."""

    # The archive of "make dist", in the folder in which spack runs.
    manual_download = True
    url = f"file://{os.getcwd()}/starling-0.2.0.tar.xz"

    version("0.2.0")

    variant("onednn", default=True, description="Compute convolutions and products with oneDNN")
    variant("openblas", default=True, description="Compute products in float64 with OpenBLAS")
    variant("onnx", default=True, description="Read and write networks in ONNX files")
    variant("images", default=True, description="Read PNG and JPEG images")
    variant("mpi", default=False, description="Exchange between processes over MPI")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("starpu@1.4~mpi~simgrid~examples+shared")
    depends_on("starpu+cuda", when="+cuda")
    depends_on("cudnn", when="+cuda")
    depends_on("hwloc@2:")
    depends_on("jansson")
    depends_on("libsodium@1.0.12:")
    depends_on("zlib-api")
    depends_on("onednn@2.6: cpu_runtime=omp", when="+onednn")
    depends_on("openblas threads=pthreads", when="+openblas")
    depends_on("protobuf-c", when="+onnx")
    depends_on("libpng", when="+images")
    depends_on("jpeg", when="+images")
    depends_on("mpi", when="+mpi")

    conflicts("cuda_arch=none", when="+cuda", msg="cuda_arch=90 for an H100, for instance")

    def configure_args(self):
        args = [f"--with-starpu={self.spec['starpu'].prefix}"]
        args += self.with_or_without("onednn", activation_value="prefix")
        for option in ("openblas", "onnx", "mpi"):
            args += self.with_or_without(option)
        for option in ("png", "jpeg"):
            args += self.with_or_without(option, variant="images")
        if self.spec.satisfies("+cuda"):
            args.append(f"--with-cuda={self.spec['cuda'].prefix}")
            args.append("CUDA_ARCHS=" + " ".join(self.spec.variants["cuda_arch"].value))
        else:
            args.append("--without-cuda")
        return args
