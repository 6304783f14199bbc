"""The wheel carries compiled code for one platform that any Python 3 can load."""
from setuptools import Distribution, setup

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # older than setuptools 70
    from wheel.bdist_wheel import bdist_wheel


class PlatformWheel(bdist_wheel):
    """py3-none-PLATFORM: the extension module keeps to Python's stable interface."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class Compiled(Distribution):
    """Its files go where those of a platform go: auditwheel refuses libraries elsewhere."""

    def has_ext_modules(self):
        return True


setup(cmdclass={"bdist_wheel": PlatformWheel}, distclass=Compiled)
