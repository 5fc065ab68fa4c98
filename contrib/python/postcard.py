"""The encoding of control messages: docs/wire.md, "Control messages"."""


def number(n):
    """u16, u32 and u64."""
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def text(data):
    """Bytes, or text."""
    data = data.encode() if isinstance(data, str) else data
    return number(len(data)) + data


class Reader:
    """Takes fields from the front of a body."""

    def __init__(self, body):
        self.body, self.at = body, 0

    def take(self, n):
        part = self.body[self.at : self.at + n]
        if len(part) != n:
            raise ValueError("a message that is cut off")
        self.at += n
        return part

    def number(self):
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def boolean(self):
        return self.take(1) == b"\1"

    def bytes(self):
        return self.take(self.number())

    def text(self):
        return self.bytes().decode()

    def option(self, read):
        return read() if self.boolean() else None

    def list(self, read):
        return [read() for _ in range(self.number())]
