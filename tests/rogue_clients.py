"""Connects to a port as port scanners do: rogue_clients.py ADDRESS PORT SILENT RANDOM COMMAND...

So many strangers say nothing, so many send random bytes; some of those begin as a process of Starling does.  All keep their
connections, and come again a while after they were sent away.  Once all have come for the first time, COMMAND is started; its status is
returned.
"""
import os
import random
import resource
import selectors
import socket
import subprocess
import sys
import time

PAUSE = 0.5  # seconds, before one that was sent away comes again
address, port, silent, others = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
assert hard > silent + others + 100, f"only {hard} open files are allowed"
chance = random.Random(1)
kinds = ["silent"] * silent + ["random"] * others
chance.shuffle(kinds)
all_of_them = selectors.DefaultSelector()


def what(kind):
    if kind == "silent":
        return b""
    text = chance.randbytes(chance.choice([1, 7, 24, 80, 300, 5000]))
    return b"STARLING" + text if chance.random() < 0.3 else text


def connect(kind, until):
    """Blocks while nobody listens."""
    while True:
        try:
            s = socket.create_connection((address, port), 60)
            break
        except OSError:
            if time.monotonic() > until:
                return
            time.sleep(0.01)
    s.setblocking(False)
    try:
        s.send(what(kind))
    except OSError:
        pass
    all_of_them.register(s, selectors.EVENT_READ, kind)


began = time.monotonic()
for kind in kinds:
    connect(kind, began + 120)
print(f"strangers: {len(all_of_them.get_map())} have come in {time.monotonic() - began:.2f} s", file=sys.stderr, flush=True)
began, again, due = time.monotonic(), 0, []
command = subprocess.Popen(sys.argv[5:])
while command.poll() is None:
    for key, _ in all_of_them.select(0.02):
        try:
            more = key.fileobj.recv(4096)
        except OSError:
            more = b""
        if not more:
            all_of_them.unregister(key.fileobj)
            key.fileobj.close()
            due.append((time.monotonic() + PAUSE, key.data))
    while due and due[0][0] < time.monotonic():
        connect(due.pop(0)[1], 0)
        again += 1
print(f"strangers: {again} have come again, the command took {time.monotonic() - began:.2f} s", file=sys.stderr, flush=True)
sys.exit(command.returncode)
