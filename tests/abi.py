"""Lists the public interface, a line for each function, structure and enumeration, with all types: abi.py SOURCE."""
import pathlib
import sys

source = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(source / "python/generate"))
from headers import Headers  # noqa: E402


def field(f):
    return f.type + (f"[{f.length}]" if f.length is not None else "")


headers = Headers(source / "src", names=("starling.h", "starling/dist.h", "starling/own.h"))
lines = [f"enum {name}: {', '.join(values)}" for name, values in headers.enums.items()]
lines += [f"function {f.name}: {f.returns} ({', '.join(map(field, f.parameters))})" for f in headers.functions.values()]
lines += [f"struct {name}: {'; '.join(f'{field(f)} {f.name}' for f in fields)}" for name, fields in headers.structs.items()]
print("\n".join(sorted(lines)))
