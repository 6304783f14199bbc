"""Files that Python itself reads and writes completely."""
import ctypes
import gzip
import os
import stat

from ._core import FileError, FormatError, NULL, OutOfMemory, check, ffi, here, lib, raise_error, text_of

_libc = ctypes.CDLL(None)
_libc.fwrite.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
_libc.fwrite.restype = ctypes.c_size_t


def write(path, data):
    """Replaces a file by these bytes: until all are on the disk, the old file stays."""
    at, name = here(), ffi.new("char[]", text_of(path, "path"))
    file = lib.sl_file_begin_at(at, name)
    if file == NULL:
        raise_error()
    try:
        stream = int(ffi.cast("intptr_t", lib.sl_file_stream(file)))
        _libc.fwrite(data, 1, len(data), stream)  # the next call reports a write that fails
    except BaseException:
        lib.sl_file_discard(file)
        raise
    check(lib.sl_file_commit_all_at(at, ffi.new("sl_file *[]", [file]), 1))


def _opened(function, path):
    """Opens a regular file; a pipe could wait forever, a device never end."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise FileError(f"{function}: {error}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise FileError(f"{function}: {str(path)!r} is not a regular file")
    return os.fdopen(fd, "rb")


def read(function, path):
    """The bytes of a regular file."""
    with _opened(function, path) as file:
        try:
            return file.read(os.fstat(file.fileno()).st_size)
        except OSError as error:
            raise FileError(f"{function}: {error}") from None
        except MemoryError:
            raise OutOfMemory(f"{function}: no memory for {str(path)!r}") from None


def read_idx(function, path):
    """Shape and bytes of an IDX file, plain or compressed: unpacks at most what its header says and the file can contain."""
    size, most = os.stat(path).st_size, 1032  # bytes that a byte of deflate may become
    with _opened(function, path) as plain:
        try:
            file = gzip.GzipFile(fileobj=plain) if str(path).endswith(".gz") else plain
            head = file.read(4)
            axes = head[3] if len(head) == 4 else 0
            head = file.read(4 * axes)
            shape = [int.from_bytes(head[4 * i : 4 * i + 4], "big") for i in range(axes)]
            bytes_ = 1
            for n in shape:
                bytes_ *= n
            if not axes or len(head) < 4 * axes or bytes_ > most * size:
                raise FormatError(f"{function}: {str(path)!r} is not an IDX file, or is too short for the shape {tuple(shape)}")
            data = file.read(bytes_)
        except (OSError, EOFError) as error:
            raise FileError(f"{function}: {str(path)!r}: {error}") from None
    if len(data) != bytes_:
        raise FormatError(f"{function}: {str(path)!r} ends too early for the shape {tuple(shape)}")
    return shape, data
