#!/usr/bin/env python3
"""Plants a known bug into a copy of a source file: `plant.py SOURCE_FOLDER NAME OUT.c`.

A fuzzer that finds nothing has shown nothing until it is known to reach the code. So for each
target a copy of one of its files loses a check, the target is built once more with that copy, and
the test asks the fuzzer to find it within seconds. The product's own sources know nothing of this.
`plant.py --list` prints NAME TARGET FILE, one a line. `plant.py --check SOURCE_FOLDER` says which text is gone."""
import os
import sys

PLANTS = {
    # name: target, file, text that stands there once, what replaces it
    "tiff_directory": ("tiff", "io/tiff_ifd.c",
                       "*alike = (uint32_t)i;", "alike[64 * v] = (uint32_t)i;"),
    "tiff_strip": ("tiff", "io/unpack_packbits.c",
                   "n = n < io->room ? n : io->room;\n    memcpy", "memcpy"),
    "png_palette": ("png", "io/png_source.c",
                   "        if (k >= p->n_palette)\n",
                   "        if (k >= p->n_palette)\n            __builtin_trap();\n        if (!err)\n"),
    "jpeg_budget": ("jpeg", "io/jpeg_source.c", "if (jpeg_bytes(d) + row > budget)",
                    "(void)budget;\n    if (!row)"),
    "codec_pieces": ("codec", "io/unpack_lzw.c", "t->held_at += n, t->held_n -= n;",
                     "t->held_at += n, t->held_n = 0;"),
    "codec_ycbcr": ("codec", "io/unpack_ycbcr.c", " + (rows % down != 0)", ""),
    "set_itself": ("set", "io/ome_set.c", "return o->member ?", "return !path ?"),
    "ome_uuid": ("ome", "io/ome_xml.c", "strncat(out, (const char *)v, cap - 1);",
                 "(void)cap;\n    strcpy(out, (const char *)v);"),
    "onnx_wire": ("onnx", "io/onnx_wire.c", " || out->v > (uint64_t)(w->end - w->p)", ""),
    "onnx_shape": ("onnx", "kernels/ops/op_slice.c", "s->step[k] = step;",
                   "s->step[k] = step;\n    if (step > 1)\n        __builtin_trap();"),
    "npy_header": ("npy", "io/npy.c", "if (!end || (size_t)(end - l->p - 1) >= cap)",
                   "(void)cap;\n    if (!end)"),
    "config_planes": ("config", "engine/base/spec.c", "(s.n == 0 || s.range[s.n].lo >= s.range[s.n - 1].hi)",
                      "s.n >= 0"),
    "json_surrogates": ("json", "engine/base/json_read.c", "c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);",
                   "if (low > 0xdf00)\n            __builtin_trap();\n"
                   "        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);"),
    "yaml_depth": ("yaml", "io/yaml_tree.c", "if (b->depth == TGI_YAML_DEPTH)", "if (b->depth == 8 * TGI_YAML_DEPTH)"),
    "memlog_columns": ("memlog", "engine/memory/log_read.c", "if (r->n_columns == TGI_MEMLOG_COLUMNS)",
                       "if (r->n_columns == 4096)"),
    "video_track": ("video", "io/video_mkv.c", "if (track < 128)", "if (track < 1u << 16)"),
    "weights_room": ("weights", "io/weights.c", "    if (p.span > p.room)\n", "    if (p.span > p.room && p.span == 1)\n"),
    "weights_stack": ("weights", "io/pickle.c", "return m->n_stack - floor >= n;", "return floor + n < 4;"),
    "film_size": ("film", "io/av/av_film.c",
                  "f->frame->width != f->info.width || f->frame->height != f->info.height ||", ""),
    "journal_tile": ("journal", "engine/out/journal_resume.c", "r->tile >= (uint64_t)j->layout->n_tiles || ", ""),
}


def count(root, name):
    """How often the text of a plant stands in its file: once is right."""
    with open(os.path.join(root, PLANTS[name][1]), encoding="utf-8") as f:
        return f.read().count(PLANTS[name][2])


def main():
    if sys.argv[1] == "--list":
        for name, (target, path, _, _) in PLANTS.items():
            print(name, target, path)
        return 0
    if sys.argv[1] == "--check":
        gone = [name for name in PLANTS if count(sys.argv[2], name) != 1]
        print("%d plants, without their place: %s" % (len(PLANTS), ", ".join(gone) or "none"))
        return 1 if gone else 0
    root, name, out = sys.argv[1:]
    _, path, good, bad = PLANTS[name]
    with open(os.path.join(root, path), encoding="utf-8") as f:
        text = f.read()
    if text.count(good) != 1:
        sys.exit(f"{path}: the text of plant {name} stands there {text.count(good)} times, not once")
    with open(out, "w", encoding="utf-8") as f:
        f.write(text.replace(good, bad))
    return 0


if __name__ == "__main__":
    sys.exit(main())
