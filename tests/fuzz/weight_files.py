"""Files of weights, made by hand: small valid ones, and parts that liars are put together from. Standard library alone.

A pickle is bytes of opcodes. `state` makes that of a dictionary of tensors; `archive`, `legacy` and `safetensors` make files."""
import io
import json
import struct
import zipfile
import zlib

PROTO2 = b"\x80\x02"
MAGIC = PROTO2 + b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
ELEMENT = {"FloatStorage": 4, "DoubleStorage": 8, "HalfStorage": 2, "BFloat16Storage": 2, "LongStorage": 8, "IntStorage": 4,
           "ShortStorage": 2, "CharStorage": 1, "ByteStorage": 1, "BoolStorage": 1}


def text(s):
    b = s.encode() if isinstance(s, str) else s
    return b"X" + struct.pack("<I", len(b)) + b


def num(n):
    if 0 <= n < 256:
        return b"K" + bytes([n])
    if 0 <= n < 65536:
        return b"M" + struct.pack("<H", n)
    if -2**31 <= n < 2**31:
        return b"J" + struct.pack("<i", n)
    b = n.to_bytes(n.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(b)]) + b


def tup(*items):
    return b"(" + b"".join(items) + b"t"


def name(module, word):
    return b"c" + module.encode() + b"\n" + word.encode() + b"\n"


def call(module, word, *args):
    return name(module, word) + tup(*args) + b"R"


ORDERED = name("collections", "OrderedDict") + b")R"


def storage(kind, key, count, *more, module="torch"):
    return tup(text("storage"), name(module, kind), text(key), text("cpu"), num(count), *more) + b"Q"


def tensor(of, first, size, stride):
    return call("torch._utils", "_rebuild_tensor_v2", of, num(first), tup(*map(num, size)), tup(*map(num, stride)),
                b"\x89", ORDERED)


def strides(size):
    out, n = [], 1
    for d in reversed(size):
        out.insert(0, n)
        n *= d
    return out


def state(pairs, proto=PROTO2):
    return proto + ORDERED + b"(" + b"".join(text(k) + v for k, v in pairs) + b"u."


def plain(tensors, more=()):
    """A pickle of {name: (kind, key, size)}, each with a storage of its own; `more`: behind the count."""
    pairs = []
    for k, (kind, key, size) in tensors.items():
        n = 1
        for d in size:
            n *= d
        pairs.append((k, tensor(storage(kind, key, n, *more), 0, size, strides(size))))
    return state(pairs)


def archive(pickle, data=(), folder="a", order=None, method=zipfile.ZIP_STORED, also=()):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as z:
        def put(path, b):
            z.writestr(zipfile.ZipInfo(f"{folder}/{path}"), b, method)
        put("data.pkl", pickle)
        if order:
            put("byteorder", order)
        for key, b in dict(data).items():
            put(f"data/{key}", b)
        for path, b in also:
            put(path, b)
        put("version", b"3\n")
    return out.getvalue()


def keys(names):
    return PROTO2 + b"](" + b"".join(map(text, names)) + b"e."


def legacy(pickle, data=(), listed=None):
    """data: {key: (elements, bytes)}"""
    data = dict(data)
    return (MAGIC + PROTO2 + num(1001) + b"." + PROTO2 + b"}(" + text("little_endian") + b"\x88u." + pickle +
            keys(data if listed is None else listed) + b"".join(struct.pack("<Q", n) + b for n, b in data.values()))


def safetensors(head, data=b"", length=None):
    head = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("<Q", len(head) if length is None else length) + head + data


# ---- An archive by hand --------------------------------------------------------------------------

def entry(path, b, method=0, flags=0, size=None, packed=None, crc=None, at=None):
    """What `zip_of` puts together: the bytes that lie there, and what the headers say of them. `at`: the directory's."""
    return {"path": path.encode() if isinstance(path, str) else path, "bytes": b, "method": method, "flags": flags,
            "size": len(b) if size is None else size, "packed": len(b) if packed is None else packed,
            "crc": zlib.crc32(b) if crc is None else crc, "at": at}


def zip_of(entries, count=None, directory=None, begin=None, end64=None):
    """The archive; count, directory (bytes) and begin as the end states them; end64: the same of 64 bits."""
    out, central = bytearray(), bytearray()
    for e in entries:
        local = b"PK\3\4" + struct.pack("<HHHHHIIIHH", 20, e["flags"], e["method"], 0, 0x21, e["crc"],
                                        e["packed"] & 0xffffffff, e["size"] & 0xffffffff, len(e["path"]), 0)
        at = len(out) if e["at"] is None else e["at"]
        out += local + e["path"] + e["bytes"]
        central += b"PK\1\2" + struct.pack("<HHHHHHIIIHHHHHII", 20, 20, e["flags"], e["method"], 0, 0x21, e["crc"],
                                           e["packed"] & 0xffffffff, e["size"] & 0xffffffff, len(e["path"]), 0, 0, 0, 0, 0,
                                           at) + e["path"]
    n = len(entries) if count is None else count
    size = len(central) if directory is None else directory
    start = len(out) if begin is None else begin
    tail = b""
    if end64:
        n64, size64, start64 = end64
        tail = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, n64, n64, size64, start64)
        tail += b"PK\6\7" + struct.pack("<IQI", 0, len(out) + len(central), 1)
    return bytes(out + central) + tail + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, n & 0xffff, n & 0xffff, size & 0xffffffff,
                                                          start & 0xffffffff, 0)


# ---- Small valid files ---------------------------------------------------------------------------

FLOATS = struct.pack("<6f", 1, 2, 3, 4, 5, 6)
PLAIN = {"module.a.weight": ("FloatStorage", "0", (2, 3)), "module.n": ("LongStorage", "1", ())}


def seeds():
    """(name, bytes) of every form that is read."""
    yield "zip", archive(plain(PLAIN), {"0": FLOATS, "1": b"\1" + b"\0" * 7})
    yield "zip_big", archive(plain(PLAIN), {"0": FLOATS, "1": b"\1" + b"\0" * 7}, order=b"big")
    yield "zip_deflate", archive(plain(PLAIN), {"0": FLOATS * 30, "1": b"\1" + b"\0" * 7}, method=zipfile.ZIP_DEFLATED)
    yield "legacy", legacy(plain(PLAIN, (b"N",)), {"0": (6, FLOATS), "1": (1, b"\1" + b"\0" * 7)})
    part = tensor(storage("FloatStorage", "0", 6, tup(text("v"), num(2), num(3))), 1, (2,), (1,))
    yield "legacy_part", legacy(state([("x", part)]), {"0": (6, FLOATS)})
    for kind, size in ELEMENT.items():
        yield kind, legacy(state([("x", tensor(storage(kind, "0", 4, b"N"), 0, (2, 2), (1, 2)))]), {"0": (4, bytes(4 * size))})
    shared = storage("FloatStorage", "0", 6)
    yield "shared", archive(state([("a", tensor(shared, 0, (6,), (1,))), ("b", tensor(shared, 1, (2, 2), (1, 2))),
                                   ("c", tensor(shared, 3, (3, 4), (0, 0)))]), {"0": FLOATS})
    yield "wrapped", archive(PROTO2 + b"}(" + text("epoch") + num(3) + text("loss") + b"G" + bytes(8) + text("state_dict") +
                             plain(PLAIN)[2:-1] + b"u.", {"0": FLOATS, "1": bytes(8)})
    param = call("torch._utils", "_rebuild_parameter", tensor(shared, 0, (2, 3), (3, 1)), b"\x88", ORDERED)
    yield "parameter", archive(state([("p", param)]), {"0": FLOATS})
    v3 = call("torch._utils", "_rebuild_tensor_v3", storage("UntypedStorage", "0", 24, module="torch.storage"), num(1),
              tup(num(5)), tup(num(1)), b"\x89", ORDERED, name("torch", "uint32"))
    yield "v3", archive(state([("p", v3)]), {"0": FLOATS})
    inside = b"}(" + text("weight") + tensor(shared, 0, (6,), (1,)) + text("training") + b"\x88u"
    obj = name("__torch__", "M") + b")\x81}(" + text("l") + name("__torch__.torch.nn", "L") + b")\x81" + inside + b"b" + \
        text("k") + call("torch.jit._pickle", "build_intlist", b"](" + num(1) + b"e") + b"ub"
    yield "torchscript", archive(PROTO2 + obj + b".", {"0": FLOATS})
    four = b"\x80\x04\x95" + struct.pack("<Q", 3) + b"}\x94(\x8c\1x\x94\x8c\x0ctorch._utils\x8c\x12_rebuild_tensor_v2\x93(" + \
        shared + num(0) + tup(num(6)) + tup(num(1)) + b"\x89" + ORDERED + b"tRu."
    yield "protocol_4", archive(four, {"0": FLOATS})
    python2 = name("collections", "OrderedDict") + b"](](U\1x" + tensor(shared, 0, (6,), (1,)) + b"ee\x85R"
    yield "python2", archive(PROTO2 + python2 + b".", {"0": FLOATS})
    yield "safetensors", safetensors({"__metadata__": {"format": "pt"}, "b": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]},
                                      "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [8, 32]}}, bytes(8) + FLOATS)
    yield "safetensors_small", safetensors({"x": {"dtype": "BF16", "shape": [0, 3], "data_offsets": [0, 0]},
                                            "y": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}, b"\1")


WORDS = [b"_rebuild_tensor_v2", b"_rebuild_parameter", b"torch._utils", b"torch", b"FloatStorage", b"collections", b"OrderedDict",
         b"storage", b"__torch__", b"data.pkl", b"PK\1\2", b"PK\5\6", b"state_dict", b"data_offsets", b"dtype", b"shape", b"F32", b"BF16",
         b"\x80\2", b"\x93", b"\x81", b"\x8a\x08", MAGIC]
