#!/usr/bin/env python3
"""Files of weights from strangers: `info` and `convert-weights` over each, and what must be true then.

    hostile_weights.py TEGULA [--make FOLDER]

Each command ends within 2 s with 65, uses less than 64 MiB, says in one line what is wrong with which file, and leaves no file behind:
neither an output nor what a pickle would have made. Then pickles are cut behind every opcode, and files of each valid form are
converted and compared with the elements that were put into them.

The files are made by a process of their own: what a parent holds counts as its child's memory until the child begins."""
import json
import os
import pickletools
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
import weight_files as w  # noqa: E402

MAX_SECONDS, MAX_KIB = 2, 64 << 10
SANITIZED = any(k in os.environ for k in ("ASAN_OPTIONS", "TSAN_OPTIONS"))
MARK = "made_by_a_pickle"
P2 = w.PROTO2
F = w.storage("FloatStorage", "0", 6)
GOOD = w.tensor(F, 0, (6,), (1,))
DATA = {"0": w.FLOATS}


# ---- Pickles -------------------------------------------------------------------------------------

def pickles():
    """(name, opcodes, what they try), each a value that goes into a file."""
    sh = w.text("touch " + MARK)
    yield "system", w.call("os", "system", sh), "os.system"
    yield "posix_system", w.call("posix", "system", sh), "the same by its other name"
    yield "popen", w.call("subprocess", "Popen", b"](" + w.text("touch") + w.text(MARK) + b"e"), "subprocess.Popen"
    yield "eval", w.call("builtins", "eval", w.text(f"open('{MARK}', 'w')")), "eval"
    yield "eval2", w.call("__builtin__", "eval", w.text(f"open('{MARK}', 'w')")), "the same of Python 2"
    yield "getattr", w.call("builtins", "getattr", w.name("os", "x"), w.text("system")), "getattr"
    yield "import", w.call("importlib", "import_module", w.text("os")), "an import"
    yield "runpy", w.call("runpy", "_run_code", w.text(f"open('{MARK}', 'w')")), "runpy"
    yield "load", w.call("torch", "load", w.text("a.pth")), "torch.load"
    yield "jit_load", w.call("torch.jit", "load", w.text("a.pth")), "torch.jit.load"
    yield "inside_a_name", w.name("torch._utils", "_rebuild_tensor_v2.__globals__") + b")R", "attributes of a good name"
    yield "longer_name", w.name("torch._utilss", "_rebuild_tensor_v2") + b")R", "nearly a good name"
    yield "stack_global", w.text("os") + w.text("system") + b"\x93" + w.tup(sh) + b"R", "os.system by STACK_GLOBAL"
    yield "newobj", w.name("subprocess", "Popen") + w.tup(sh) + b"\x81", "NEWOBJ"
    yield "newobj_ex", w.name("subprocess", "Popen") + w.tup(sh) + b"}\x92", "NEWOBJ_EX"
    yield "inst", b"(" + sh + b"ios\nsystem\n", "INST"
    yield "obj", b"(" + w.name("os", "system") + sh + b"o", "OBJ"
    yield "ext", b"\x82\x01)R", "EXT1"
    yield "protocol_0", b"cos\nsystem\n(S'touch " + MARK.encode() + b"'\ntR", "os.system of protocol 0"
    yield "build", w.name("__torch__", "M") + b")\x81" + w.name("os", "system") + b"b", "a state that is os.system"
    yield "script_class", w.call("__torch__.os", "system", sh), "calls a class of TorchScript"
    yield "class_args", w.name("__torch__", "M") + w.tup(sh) + b"\x81", "a class of TorchScript with arguments"
    yield "hooks", w.call("torch._utils", "_rebuild_tensor_v2", F, w.num(0), w.tup(w.num(6)), w.tup(w.num(1)), b"\x89",
                          w.call("os", "system", sh)), "os.system among the arguments of a tensor"
    yield "in_key", w.call("os", "system", sh), "os.system as what is called later"
    yield "call_a_tensor", GOOD + b")R", "calls a tensor"
    yield "call_a_text", w.text("os") + b")R", "calls a text"
    yield "persistent", w.tup(w.text("module"), w.text("M"), w.text("a.py"), w.text("code")) + b"Q", "a module with its code"
    yield "persistent_0", b"Pstorage\n", "PERSID"
    yield "no_storage", w.call("torch._utils", "_rebuild_tensor_v2", w.text("x"), w.num(0), w.tup(), w.tup(), b"\x89", w.ORDERED), \
        "a tensor of a text"
    yield "no_arguments", w.name("torch._utils", "_rebuild_tensor_v2") + b")R", "a tensor of nothing"
    yield "numpy", w.call("numpy.core.multiarray", "_reconstruct", w.name("numpy", "ndarray"), w.tup(w.num(0)), w.text("b")), "numpy"
    yield "deep_lists", b"]" * 200000 + b"a" * 199999, "200000 lists in each other"
    yield "deep_marks", b"(" * 100000 + b"t" * 100000, "100000 tuples in each other"
    yield "deep_dicts", b"}K\x01" * 100000 + b"N" + b"s" * 100000, "100000 dictionaries in each other"
    yield "deep_tuples", b"N" + b"\x85" * 1000000, "a million tuples in each other"
    deep = b"".join(b"}" + w.text("a") for _ in range(100)) + GOOD + b"s" * 100
    yield "deep_tensor", deep, "a tensor in 100 dictionaries"
    yield "itself", b"]q\x00h\x00a", "a list in itself"
    yield "itself_named", b"}q\x00" + w.text("a") + b"h\x00s", "a dictionary in itself"
    laughs = b"}q\x00" + w.text("t") + GOOD + b"s0".replace(b"0", b"")
    for i in range(1, 60):
        laughs += b"}q" + bytes([i]) + b"(" + w.text("a") + b"h" + bytes([i - 1]) + w.text("b") + b"h" + bytes([i - 1]) + b"u"
    yield "laughs", w.tup(laughs), "2^59 ways to one tensor"
    yield "memo_4g", b"Nr\xff\xff\xff\xff", "place 2^32-1 of the memo"
    yield "memo_never", b"j\x05\x00\x00\x00", "a place that nothing is in"
    yield "text_4g", b"X\xff\xff\xff\xffabc", "a text of 4 GiB"
    yield "text_2_63", b"\x8d" + struct.pack("<Q", 2**63) + b"abc", "a text of 2^63 bytes"
    yield "bytes_4g", b"B\xff\xff\xff\xffabc", "bytes of 4 GiB"
    yield "frame_2_63", b"\x95" + struct.pack("<Q", 2**63) + b"N", "a frame of 2^63 bytes"
    yield "long_255", b"\x8a\xff" + b"\x7f" * 255 + b"\x85R", "an integer of 255 bytes"
    yield "many_none", b"(" + b"N" * (7 << 20) + b"t", "7 million values in a tuple"
    yield "many_lists", b"(" + b"]" * (7 << 20) + b"t", "7 million lists"
    yield "many_stacked", b"K\x01" * (3 << 20) + b"N", "3 million values on the stack"
    yield "many_tensors", w.call("torch._utils", "_rebuild_tensor_v2", F, w.num(0), w.tup(w.num(1)), w.tup(w.num(1)), b"\x89",
                                 w.ORDERED).replace(b"tR", b"tq\x01R") + b"0" * 0 + (
        b"]q\x02(" + (w.name("torch._utils", "_rebuild_tensor_v2") + b"h\x01R") * 120000 + b"e") * 1, "120000 tensors"
    yield "set_a_list", b"]N" + b"Ns", "a key for a list"
    yield "append_a_dict", b"}Na", "an item for a dictionary"
    yield "odd", b"}(Nu", "a key without a value"
    yield "no_mark", b"Nt", "a tuple without a mark"
    yield "too_few", b"\x87", "a tuple of nothing"
    yield "state_of_a_number", b"K\x01K\x02b", "a state for a number"
    yield "nothing", b"", "no value"
    yield "two_values", b"NN", "two values"


def shapes():
    """The same for tensors that lie."""
    big = 2**60

    def t(size, stride, first=0, of=F):
        return w.tensor(of, first, size, stride)
    yield "size_2_60", t((big,), (1,)), "2^60 elements"
    yield "size_overflow", t((2**31, 2**31, 2**31), (0, 0, 0)), "2^93 elements"
    yield "size_times_4", t((2**62,), (0,)), "2^62 elements, 2^64 bytes"
    yield "size_repeated", t((2**40,), (0,)), "one element 2^40 times"
    yield "stride_2_60", t((6,), (big,)), "elements 2^60 from each other"
    yield "stride_negative", t((6,), (-1,), 5), "a negative stride"
    yield "size_negative", t((-6,), (1,)), "a negative extent"
    yield "first_2_60", t((1,), (1,), big), "an element at 2^60"
    yield "first_2_64", t((1,), (1,), 2**64), "an element at 2^64"
    yield "one_too_many", t((7,), (1,)), "7 elements in a storage of 6"
    yield "first_too_far", t((6,), (1,), 1), "6 elements from the second of 6 on"
    yield "stride_too_far", t((2, 2), (5, 1), 1), "strides past the end"
    yield "rank_9", t((1,) * 9, (1,) * 9), "9 axes"
    yield "rank_100000", t((1,) * 100000, (1,) * 100000), "100000 axes"
    yield "strides_less", t((2, 3), (1,)), "fewer strides than extents"
    yield "count_2_60", t((6,), (1,), 0, w.storage("FloatStorage", "0", big)), "a storage of 2^60 elements"
    yield "count_2_62", t((6,), (1,), 0, w.storage("DoubleStorage", "0", 2**62)), "a storage of 2^65 bytes"
    yield "count_7", t((6,), (1,), 0, w.storage("FloatStorage", "0", 7)), "a storage larger than its record"
    yield "type_wider", t((6,), (1,), 0, w.storage("DoubleStorage", "0", 6)), "a storage of wider elements than are there"
    yield "no_record", t((6,), (1,), 0, w.storage("FloatStorage", "9", 6)), "a storage that is not there"
    yield "key_up", t((6,), (1,), 0, w.storage("FloatStorage", "../data.pkl", 6)), "a storage above its folder"
    yield "key_long", t((6,), (1,), 0, w.storage("FloatStorage", "0" * 5000, 6)), "a key of 5000 bytes"
    yield "key_number", w.tensor(w.tup(w.text("storage"), w.name("torch", "FloatStorage"), w.num(0), w.text("cpu"), w.num(6)) + b"Q",
                                 0, (6,), (1,)), "a key that is no text"


def names_of_tensors():
    """Whole pickles."""
    yield "no_tensors", P2 + w.text("hello") + b".", "a text"
    yield "no_tensors_dict", P2 + b"}" + w.text("epoch") + w.num(3) + b"s.", "no tensors"
    many = b"".join(b"\x8c\4%04x" % i + b"h\1" for i in range(65000))
    yield "names_long", P2 + GOOD + b"q\1}(" + w.text("x") + b"h\1" + w.text("p" * 500) + b"}(" + many + b"uu\x86.", "65000 names of 505 bytes"
    yield "name_twice", w.state([("a", GOOD), ("a", GOOD)]), "two tensors of one name"
    yield "name_twice_path", w.state([("a.b", GOOD), ("a", b"}" + w.text("b") + GOOD + b"s")]), "a path that is a name"
    yield "name_empty", w.state([("", GOOD)]), "no name"
    yield "name_long", w.state([("a" * 5000, GOOD)]), "a name of 5000 bytes"
    yield "name_line", w.state([("a\nb", GOOD)]), "a name of two lines"
    yield "name_nul", w.state([("a\0b", GOOD)]), "a name with a NUL"
    yield "name_no_text", P2 + b"}" + w.text(b"\xff\xfe") + GOOD + b"s.", "a name that is no UTF-8"
    yield "name_of_names", P2 + b"}" + GOOD + GOOD + b"s.", "a name that is a tensor"
    yield "name_escape", w.state([("\x1b[2J", GOOD)]), "a name that clears the screen"


# ---- Archives ------------------------------------------------------------------------------------

def zeros(n):
    c = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = bytes(1 << 20)
    return b"".join(c.compress(block) for _ in range(n >> 20)) + c.flush()


def archives():
    good = w.plain({"a": ("FloatStorage", "0", (6,))})

    def of(*more, **end):
        return w.zip_of([w.entry("a/data.pkl", good), *more], **end)
    zero = w.entry("a/data/0", w.FLOATS)
    packed = zeros(1 << 28)
    yield "bomb_pickle", w.zip_of([w.entry("a/data.pkl", packed, 8, size=1 << 28)]), "a pickle of 256 MiB in 256 KiB"
    huge = w.plain({"a": ("ByteStorage", "0", (1 << 28,))})
    yield "bomb_record", w.zip_of([w.entry("a/data.pkl", huge), w.entry("a/data/0", packed, 8, size=1 << 28)]), "a tensor of 256 MiB in 256 KiB"
    small = w.plain({"a": ("ByteStorage", "0", (65536,))})
    yield "bomb_lies", w.zip_of([w.entry("a/data.pkl", small), w.entry("a/data/0", packed, 8, size=65536)]), "256 MiB that says 64 KiB"
    yield "short_lies", w.zip_of([w.entry("a/data.pkl", small), w.entry("a/data/0", zlib.compress(b"x")[2:-4], 8, size=65536)]), "a byte that says 64 KiB"
    yield "crc_lies", w.zip_of([w.entry("a/data.pkl", good), w.entry("a/data/0", zlib.compress(w.FLOATS)[2:-4], 8, size=24, crc=7)]), \
        "packed bytes of another checksum"
    yield "many_records", w.zip_of([w.entry("a/data.pkl", good), zero] + [w.entry(f"a/data/{i}", b"") for i in range(1, 250000)]), "250000 records"
    yield "bomb_many", w.zip_of([w.entry("a/data.pkl", w.state([(str(i), w.tensor(w.storage("ByteStorage", "0", 65536), 0, (65536,), (1,))) for i in range(2000)])),
                                 w.entry("a/data/0", zlib.compress(bytes(65536), 9)[2:-4], 8, size=65536)]), "2000 tensors of one packed record"
    two = w.plain({"a": ("FloatStorage", "0", (6,)), "b": ("FloatStorage", "1", (6,))})
    first = len(w.zip_of([w.entry("a/data.pkl", two)]).split(b"PK\1\2")[0])
    yield "overlap", w.zip_of([w.entry("a/data.pkl", two), zero, w.entry("a/data/1", b"", size=24, packed=24, at=first)]), "two records of the same bytes"
    yield "overlap_pickle", w.zip_of([w.entry("a/data.pkl", good), w.entry("a/data/0", b"", size=24, packed=24, at=0)]), "a record that lies in the pickle"
    yield "record_twice", of(zero, zero), "two records of one name"
    yield "pickle_twice", of(zero, w.entry("a/data.pkl", w.state([("b", GOOD)]))), "two pickles"
    yield "record_past_end", of(w.entry("a/data/0", w.FLOATS, size=1 << 30, packed=1 << 30)), "a record past the end"
    yield "record_elsewhere", of(w.entry("a/data/0", w.FLOATS, at=0x7fffffff)), "a record at 2 GiB"
    yield "record_no_header", of(w.entry("a/data/0", w.FLOATS, at=5)), "a record without a header"
    yield "stored_sizes", of(w.entry("a/data/0", w.FLOATS, size=1 << 31)), "a stored record of two sizes"
    yield "encrypted", of(w.entry("a/data/0", w.FLOATS, flags=1)), "an encrypted record"
    yield "method_99", of(w.entry("a/data/0", w.FLOATS, 99)), "a record packed by method 99"
    yield "method_lzma", of(w.entry("a/data/0", w.FLOATS, 14)), "a record packed by LZMA"
    yield "count_65535", of(zero, count=65535), "65535 records in the end, 2 in the directory"
    yield "count_1", of(zero, count=1), "1 record in the end, 2 in the directory"
    yield "directory_4g", of(zero, directory=0xfffffffe), "a directory of 4 GiB"
    yield "directory_past_end", of(zero, begin=0x7fffffff), "a directory past the end"
    for n in (2**60, 2**32, 10**9):
        yield f"count_{n}", of(zero, count=0xffff, directory=0xffffffff, begin=0xffffffff, end64=(n, 46 * n & 2**64 - 1, 100)), f"{n} records of 64 bits"
        yield f"count_small_{n}", of(zero, count=0xffff, directory=0xffffffff, begin=0xffffffff, end64=(n, 100, 200)), f"{n} records in 100 bytes"
    n = 10**7
    end = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, n, n, 46 * n, 30) + b"PK\6\7" + struct.pack("<IQI", 0, 30 + 46 * n, 1)
    yield "sparse_directory", (b"PK\3\4" + bytes(26), 46 * n, end + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 0xffff, 0xffff, 2**32 - 1, 2**32 - 1, 0)), \
        "10 million records in 460 MB of nothing"
    yield "no_folder", w.zip_of([w.entry("data.pkl", good), w.entry("data/0", w.FLOATS)]), "no folder"
    yield "no_pickle", w.zip_of([zero]), "no pickle"
    yield "folder_long", w.zip_of([w.entry("a" * 5000 + "/data.pkl", good)]), "a folder of 5000 bytes"
    yield "name_nul_zip", w.zip_of([w.entry(b"a/data.pkl\0x", good), zero]), "a name with a NUL"
    yield "empty_zip", b"PK\5\6" + bytes(18), "an empty archive"
    yield "only_magic", b"PK\3\4", "4 bytes"
    yield "order_middle", w.archive(good, DATA, order=b"middle"), "an order of bytes that is none"
    yield "order_large", w.archive(good, DATA, order=b"little" * 1000), "an order of 6000 bytes"
    out = w.archive(good, DATA)
    yield "a_word_document", out.replace(b"a/data.pkl", b"a/word.xml"), "an archive of something else"


def legacies():
    good = w.plain({"a": ("FloatStorage", "0", (6,))}, (b"N",))
    yield "legacy_2_60", w.legacy(good, {"0": (2**60, w.FLOATS)}), "a storage of 2^60 elements"
    yield "legacy_2_63", w.legacy(good, {"0": (2**63, w.FLOATS)}), "a storage of 2^63 elements"
    yield "legacy_2_62", w.legacy(good, {"0": (2**62 + 6, w.FLOATS)}), "a storage of 2^64 + 24 bytes"
    yield "legacy_5", w.legacy(good, {"0": (5, w.FLOATS[:20])}), "a storage of 5 elements for 6"
    yield "legacy_no_key", w.legacy(good, {}), "no storage"
    yield "legacy_other_key", w.legacy(good, {"1": (6, w.FLOATS)}), "another storage"
    yield "legacy_twice", w.legacy(good, {"0": (6, w.FLOATS)}, ["0", "0"]), "a storage twice"
    yield "legacy_magic", w.legacy(good, {"0": (6, w.FLOATS)}).replace(b"\x50\x19.", b"\x50\x1a."), "another magic number"
    yield "legacy_version", w.legacy(good, {"0": (6, w.FLOATS)}).replace(w.num(1001), w.num(1002)), "version 1002"
    part = w.tensor(w.storage("FloatStorage", "0", 6, w.tup(w.text("v"), w.num(5), w.num(3))), 0, (3,), (1,))
    yield "legacy_part_past", w.legacy(w.state([("a", part)]), {"0": (6, w.FLOATS)}), "a part past the end of its storage"
    part = w.tensor(w.storage("FloatStorage", "0", 6, w.tup(w.text("v"), w.num(2), w.num(3))), 1, (3,), (1,))
    yield "legacy_part_over", w.legacy(w.state([("a", part)]), {"0": (6, w.FLOATS)}), "a tensor past the end of its part"
    both = w.state([("a", w.tensor(w.storage("FloatStorage", "0", 6, b"N"), 0, (6,), (1,))),
                    ("b", w.tensor(w.storage("DoubleStorage", "0", 6, b"N"), 0, (3,), (1,)))])
    yield "legacy_two_types", w.legacy(both, {"0": (6, w.FLOATS)}), "a storage of two types"
    yield "legacy_keys_nested", w.legacy(good, {}, []).replace(b"](e.", b"](](](eee."), "keys that are lists"
    yield "legacy_large", w.MAGIC + P2 + w.num(1001) + b"." + P2 + b"(" + b"N" * (20 << 20) + b"t.", "a pickle of 20 MiB"


def tensors():
    def one(name="a", **v):
        return {name: {"dtype": "F32", "shape": [6], "data_offsets": [0, 24], **v}}
    yield "st_length_2_63", w.safetensors(one(), w.FLOATS, 2**63), "a header of 2^63 bytes"
    yield "st_length_past", w.safetensors(one(), w.FLOATS, 10**6), "a header past the end"
    yield "st_length_0", w.safetensors(b"", b"{}" * 8, 0), "no header"
    yield "st_shape_2_60", w.safetensors(one(shape=[2**60]), w.FLOATS), "2^60 elements"
    yield "st_shape_2_62", w.safetensors(one(shape=[2**62]), w.FLOATS), "2^64 bytes"
    yield "st_shape_overflow", w.safetensors(one(shape=[2**32, 2**32, 6]), w.FLOATS), "2^64 times 6 elements"
    yield "st_shape_2_64", w.safetensors(one(shape=[2**64]), w.FLOATS), "an extent of 2^64"
    yield "st_shape_negative", w.safetensors(one(shape=[-6]), w.FLOATS), "a negative extent"
    yield "st_shape_real", w.safetensors(one(shape=[6.0]), w.FLOATS), "an extent of 6.0"
    yield "st_shape_rank", w.safetensors(one(shape=[1] * 9), w.FLOATS), "9 axes"
    yield "st_no_shape", w.safetensors({"a": {"dtype": "F32", "data_offsets": [0, 24]}}, w.FLOATS), "no shape"
    yield "st_past_end", w.safetensors(one(shape=[7], data_offsets=[0, 28]), w.FLOATS), "a tensor past the end"
    yield "st_reversed", w.safetensors(one(data_offsets=[24, 0]), w.FLOATS), "an end before its beginning"
    yield "st_offset_2_63", w.safetensors(one(data_offsets=[2**63 - 25, 2**63 - 1]), w.FLOATS), "offsets near 2^63"
    yield "st_three", w.safetensors(one(data_offsets=[0, 24, 48]), w.FLOATS), "three offsets"
    yield "st_short", w.safetensors(one(data_offsets=[0, 20]), w.FLOATS), "fewer bytes than elements"
    yield "st_overlap", w.safetensors({**one(), **one("b")}, w.FLOATS), "two tensors of the same bytes"
    yield "st_overlap_part", w.safetensors({**one(), **one("b", data_offsets=[12, 36])}, w.FLOATS + bytes(12)), "tensors that overlap"
    yield "st_gap", w.safetensors({**one(), **one("b", data_offsets=[28, 52])}, w.FLOATS + bytes(28)), "bytes between tensors"
    yield "st_behind", w.safetensors(one(), w.FLOATS + b"x"), "bytes behind the last tensor"
    yield "st_twice", w.safetensors(b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"a":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}}', w.FLOATS), \
        "two tensors of one name"
    yield "st_type", w.safetensors(one(dtype="F8_E4M3", shape=[24]), w.FLOATS), "8-bit floats"
    yield "st_type_long", w.safetensors(one(dtype="F32" * 10000), w.FLOATS), "a type of 30000 letters"
    yield "st_no_object", w.safetensors(b"{}", b""), "no tensors"
    yield "st_name_line", w.safetensors(one("a\nb"), w.FLOATS), "a name of two lines"
    yield "st_name_long", w.safetensors(one("a" * 5000), w.FLOATS), "a name of 5000 bytes"
    yield "st_name_surrogate", w.safetensors(b'{"\\udcff":{"dtype":"F32","shape":[6],"data_offsets":[0,24]}}', w.FLOATS), "a name that is no UTF-8"
    yield "st_deep", w.safetensors(b'{"a":' + b"[" * 100000), "100000 lists in each other"
    yield "st_commas", w.safetensors(b"{" + b"," * (7 << 20)), "7 million commas"
    yield "st_many", w.safetensors(b'{"a":[' + b"1," * (3 << 20) + b"1]}"), "3 million numbers"
    yield "st_members", w.safetensors(b"{" + b",".join(b'"%d":{}' % i for i in range(100000)) + b"}"), "100000 members"
    yield "st_large", w.safetensors(b"{" + b" " * (30 << 20) + b"}"), "a header of 30 MiB"


def make(folder):
    """The files and what they try, as a JSON file."""
    made = []

    def put(name, data, tries):
        with open(os.path.join(folder, name), "wb") as f:
            if isinstance(data, tuple):  # a hole in the middle
                f.write(data[0])
                f.seek(data[1], os.SEEK_CUR)
                data = data[2]
            f.write(data)
        made.append((name, tries))
    for n, ops, tries in [*pickles(), *shapes()]:
        whole = P2 + w.ORDERED + b"(" + w.text("good") + GOOD + w.text("x") + ops + b"u."
        put(f"{n}.pth", w.archive(whole, DATA, method=zipfile.ZIP_DEFLATED if len(whole) > 1 << 19 else zipfile.ZIP_STORED), tries)
        put(f"{n}_old.pth", w.legacy(whole, {"0": (6, w.FLOATS)}), tries)
    for n, whole, tries in names_of_tensors():
        put(f"{n}.pth", w.archive(whole, DATA), tries)
    for n, data, tries in [*archives(), *legacies()]:
        put(f"{n}.pth", data, tries)
    for n, data, tries in tensors():
        put(f"{n}.safetensors", data, tries)
    with open(os.path.join(folder, "made.json"), "w", encoding="ascii") as f:
        json.dump(made, f)


# ---- Running -------------------------------------------------------------------------------------

class Run:
    def __init__(self, tegula, folder):
        self.tegula, self.folder, self.n, self.failed, self.seconds, self.kib = tegula, folder, 0, 0, 0.0, 0

    def fail(self, what):
        self.failed += 1
        print("FAILED:", what, flush=True)

    def command(self, *words, limit=None):
        """(exit code, lines of stderr); limit: of bytes of a file"""
        start = time.monotonic()
        with tempfile.TemporaryFile() as err:
            p = subprocess.Popen([self.tegula, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err, cwd=self.folder,
                                 preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            seconds = time.monotonic() - start
            err.seek(0)
            lines = err.read().decode("utf-8", "replace").splitlines()
        used = usage.ru_utime + usage.ru_stime
        self.n += 1
        if usage.ru_maxrss > self.kib:
            self.worst = words
        self.seconds, self.kib = max(self.seconds, min(used, seconds)), max(self.kib, usage.ru_maxrss)
        if min(used, seconds) > MAX_SECONDS * (10 if SANITIZED else 1):
            self.fail(f"{words}: {used:.1f} s of a processor")
        if usage.ru_maxrss > MAX_KIB and not SANITIZED:
            self.fail(f"{words}: {usage.ru_maxrss} KiB")
        return p.returncode, lines

    def refused(self, name, tries, info_may_pass=()):
        before = sorted(os.listdir(self.folder))
        for words in (("info", name), ("convert-weights", name, "-o", "out.safetensors")):
            code, lines = self.command(*words)
            if code == 0 and words[0] == "info" and name in info_may_pass:
                continue
            if code != 65 or not lines or name not in lines[0] or any("tegula:" in x for x in lines[1:]):
                self.fail(f"{words}, {tries}: exit {code}: {lines}")
        if sorted(os.listdir(self.folder)) != before:
            self.fail(f"{name}, {tries}: left {set(os.listdir(self.folder)) - set(before)}")

    def cut(self):
        """Pickles that end behind each of their opcodes."""
        whole = w.plain(w.PLAIN)
        ends = [at for _, _, at in pickletools.genops(whole) if at]
        for at in ends:
            for name, data in (("cut.pth", w.archive(whole[:at], {**DATA, "1": bytes(8)})),
                               ("cut_old.pth", w.legacy(whole[:at], {"0": (6, w.FLOATS), "1": (1, bytes(8))}))):
                path = os.path.join(self.folder, name)
                with open(path, "wb") as f:
                    f.write(data)
                code, lines = self.command("info", name)
                if code != 65 or len(lines) != 1:
                    self.fail(f"{name} behind byte {at}: exit {code}: {lines}")
                os.remove(path)
        return len(ends)


# ---- Valid files ---------------------------------------------------------------------------------

def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    head.pop("__metadata__", None)
    return {k: (v["dtype"], v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in head.items()}


F6 = ("F32", [2, 3], w.FLOATS)
ONE = b"\1" + bytes(7)
SIX = ("F32", [6], w.FLOATS)


def at(*i):
    return b"".join(w.FLOATS[4 * k:4 * k + 4] for k in i)


VALID = {
    "zip": {"a.weight": F6, "n": ("I64", [], ONE)},
    "zip_big": {"a.weight": ("F32", [2, 3], b"".join(w.FLOATS[i:i + 4][::-1] for i in range(0, 24, 4))), "n": ("I64", [], ONE[::-1])},
    "zip_deflate": {"a.weight": F6, "n": ("I64", [], ONE)},
    "legacy": {"a.weight": F6, "n": ("I64", [], ONE)},
    "legacy_part": {"x": ("F32", [2], at(3, 4))},
    "shared": {"a": SIX, "b": ("F32", [2, 2], at(1, 3, 2, 4)), "c": ("F32", [3, 4], at(*[3] * 12))},
    "wrapped": {"a.weight": F6, "n": ("I64", [], bytes(8))},
    "parameter": {"p": F6},
    "v3": {"p": ("U32", [5], at(1, 2, 3, 4, 5))},
    "torchscript": {"l.weight": SIX},
    "protocol_4": {"x": SIX},
    "python2": {"x": SIX},
    "safetensors": {"b": ("I64", [], bytes(8)), "a": F6},
    "safetensors_small": {"x": ("BF16", [0, 3], b""), "y": ("BOOL", [1], b"\1")},
}


def convert_valid(run):
    for name, data in w.seeds():
        path, out = (os.path.join(run.folder, n) for n in ("valid.pth", "valid.safetensors"))
        with open(path, "wb") as f:
            f.write(data)
        code, lines = run.command("convert-weights", "valid.pth", "-o", "valid.safetensors", "-q", "-y")
        if code:
            run.fail(f"{name}: exit {code}: {lines}")
        elif name in VALID and read_safetensors(out) != VALID[name]:
            run.fail(f"{name}: {read_safetensors(out)}")
        os.remove(path)
    missing = set(VALID) - {n for n, _ in w.seeds()}
    if missing:
        run.fail(f"no seeds {missing}")


# ---- What is there -------------------------------------------------------------------------------

def overwriting(run):
    """The input is never replaced, what is there not without -y, no pipe and nobody's OUT.partial ever; a stop leaves no output."""
    here, data = run.folder, dict(w.seeds())["safetensors"]

    def put(name, b=data):
        with open(os.path.join(here, name), "wb") as f:
            f.write(b)

    def get(name):
        with open(os.path.join(here, name), "rb") as f:
            return f.read()

    def want(code, *words, **how):
        got, lines = run.command("convert-weights", *words, "-q", **how)
        if got != code:
            run.fail(f"{words}: exit {got}, expected {code}: {lines}")
    put("in.safetensors")
    os.symlink("in.safetensors", os.path.join(here, "soft.safetensors"))
    os.link(os.path.join(here, "in.safetensors"), os.path.join(here, "hard.safetensors"))
    for out in ("in", "soft", "hard", "./in"):
        for more in ((), ("-y",)):
            want(64, "in.safetensors", "-o", out + ".safetensors", *more)
    want(64, "soft.safetensors", "-o", "in.safetensors", "-y")
    put("other.safetensors", b"precious")
    want(73, "in.safetensors", "-o", "other.safetensors")
    if get("in.safetensors") != data or get("other.safetensors") != b"precious":
        run.fail("an input or an output that was there was replaced")
    want(0, "in.safetensors", "-o", "other.safetensors", "-y")
    os.mkfifo(os.path.join(here, "pipe.safetensors"))
    want(73, "in.safetensors", "-o", "pipe.safetensors", "-y")
    os.mkdir(os.path.join(here, "folder.safetensors"))
    want(73, "in.safetensors", "-o", "folder.safetensors", "-y")
    want(64, "in.safetensors", "-o", "-")
    put("mine.safetensors.partial", b"years of work")
    want(73, "in.safetensors", "-o", "mine.safetensors", "-y")
    if get("mine.safetensors.partial") != b"years of work" or os.path.exists(os.path.join(here, "mine.safetensors")):
        run.fail("somebody's own .partial was replaced")
    big = w.safetensors({"x": {"dtype": "U8", "shape": [1 << 20], "data_offsets": [0, 1 << 20]}}, bytes(1 << 20))
    put("big.safetensors", big)
    want(74, "big.safetensors", "-o", "limited.safetensors", limit=1 << 16)
    if os.path.exists(os.path.join(here, "limited.safetensors")):
        run.fail("a file that could not be written whole has its name")
    want(66, "nowhere.pth", "-o", "n.safetensors")
    want(73, "in.safetensors", "-o", "nowhere/n.safetensors")


def main():
    tegula = os.path.abspath(sys.argv[1])
    if sys.argv[2:3] == ["--make"]:
        return make(sys.argv[3])
    with tempfile.TemporaryDirectory(dir=os.environ.get("TG_DISK")) as folder:
        subprocess.run([sys.executable, "-B", os.path.abspath(__file__), tegula, "--make", folder], check=True)
        with open(os.path.join(folder, "made.json"), encoding="ascii") as f:
            made = json.load(f)
        run = Run(tegula, folder)
        for name, tries in made:
            run.refused(name, tries, ("bomb_lies.pth", "short_lies.pth", "crc_lies.pth"))
        cuts = run.cut()
        convert_valid(run)
        overwriting(run)
        print("largest:", run.worst)
        print(f"{len(made)} files, {cuts} cuts, {run.n} commands: at most {run.seconds:.2f} s and {run.kib} KiB; {run.failed} failed")
        return run.failed


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
