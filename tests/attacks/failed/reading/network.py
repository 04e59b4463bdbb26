# Calls home: the grader's machine, the net, a raw socket, and the abstract sockets of others.
# review: Memory is reached past Python
# says: RuntimeError: called nobody
# %% solution decode
import socket


def decode(pattern, exponent_bits, mantissa_bits):
    reached = []
    for address in (("127.0.0.1", @PORT@), ("1.1.1.1", 53), ("localhost", @PORT@)):
        try:
            socket.create_connection(address, 0.2).sendall(b"hello")
            reached.append(address)
        except OSError:
            pass
    for line in open("/proc/net/unix").readlines()[1:]:
        if "@" in line:
            reached.append(line)
    raise RuntimeError(f"called {reached or 'nobody'}")
