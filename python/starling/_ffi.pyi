# The compiled module: cffi makes everything in it.
from typing import Any

ffi: Any
lib: Any
