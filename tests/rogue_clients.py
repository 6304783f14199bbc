# Connects to the port of rank 0 as port scanners do: sends nothing, or nonsense, and keeps the connection.  A child keeps them, too.
import os
import socket
import time

place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
kept = []


def connect():
    while True:
        try:
            return socket.create_connection(place, 60)
        except OSError:
            time.sleep(0.02)


for what in [b"", b"S", b"GET / HTTP/1.0\r\n\r\n", bytes(5000)] * 25:
    s = connect()
    try:
        s.sendall(what)
    except OSError:
        pass
    kept.append(s)
if os.fork() == 0:
    for fd in range(3):
        os.close(fd)
    time.sleep(20)
    os._exit(0)
