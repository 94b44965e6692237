"""Tests of the benchmark's scripts: tables, turns, edited models. Standard library only.

    test_scripts.py BENCH_NET"""
import copy
import io
import json
import os
import sys
import tempfile
import unittest
from contextlib import redirect_stdout

import lab
import onnx_edit
import table

BENCH_NET = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""

NET = {"family": "nets", "case": "a 512x512", "commit": "c0ffee", "time": "2026-01-02T03:04:05",
       "machine": {"cpu": "Some CPU", "cores": 2, "isa": ["avx2"]},
       "config": {"threads": 2, "isa": "avx2", "exact": False},
       "tegula": {"seconds": {"median": 0.5}, "peak_rss_bytes": 10 << 20},
       "peer": {"name": "onnxruntime", "seconds": {"median": 1.0}, "peak_rss_bytes": 40 << 20},
       "ratio": 2.0, "ratio_min": 1.5, "ratio_max": 2.5, "memory_ratio": 0.25}


def variation(**members):
    row = copy.deepcopy(NET)
    row.update(members)
    return row


class Tables(unittest.TestCase):
    def test_the_mean_of_networks_is_geometric_and_names_its_range(self):
        text = table.summary([NET, variation(case="b 512x512", ratio=8.0, memory_ratio=0.04)])
        self.assertIn("| warm networks at 512x512 (2) | 2 threads, avx2 | onnxruntime | "
                      "4.00 (2.00 to 8.00) | 0.10 |", text)

    def test_sizes_and_exact_runs_have_means_of_their_own(self):
        exact = variation(config={"threads": 2, "isa": "avx2", "exact": True}, ratio=1.2)
        text = table.summary([NET, exact, variation(case="a 1024x1024", ratio=3.0)])
        self.assertEqual(text.count("warm networks at 512x512 (1)"), 2)
        self.assertIn("warm networks at 1024x1024 (1) | 2 threads, avx2 | onnxruntime | 3.00", text)
        self.assertIn("2 threads, avx2, exact | onnxruntime | 1.20", text)

    def test_of_a_row_measured_twice_the_last_counts(self):
        self.assertEqual(table.latest([NET, variation(ratio=3.0)])[0]["ratio"], 3.0)

    def test_rows_without_a_peer_stay_out_of_the_summary_and_in_the_full_table(self):
        alone = {k: v for k, v in NET.items() if k not in ("peer", "ratio", "memory_ratio")}
        self.assertNotIn("networks", table.summary([alone]))
        self.assertIn("| nets | a 512x512 | 2 threads, avx2 | 0.5 s |", table.everything([alone]))

    def test_operators_are_grouped_by_what_they_are(self):
        for case, variant, group in (
                ("3x3 64->64 @128", "conv_direct", "direct convolution, 16 channels and more"),
                ("3x3 64->64 @128", "conv_winograd", "Winograd convolution, 16 channels and more"),
                ("3x3 64->64 @128", "conv_bf16", "direct convolution, 16 channels and more in bf16"),
                ("3x3 1->32 @256", "conv_stem", "convolution from few channels"),
                ("3x3 64->1 @256", "conv_few", "convolution to few channels"),
                ("1x1 64->64 @256", "conv_direct", "1x1 convolution"),
                ("dw 3x3 64 @256", "conv_depthwise", "depthwise convolution"),
                ("g8 3x3 128->128 @64", "conv_grouped", "grouped convolution"),
                ("T2x2 s2 128->64 @64", "conv_transpose", "transposed convolution"),
                ("3-D 3x3x3 32->32 @16x128", "conv_direct", "3-D convolution")):
            row = variation(family="ops", case=case, config={"threads": 1, "variant": variant})
            self.assertEqual(table.group_of(row), group)

    def test_two_kernels_of_one_operator_are_two_rows_of_two_means(self):
        rows = [variation(family="ops", case="3x3 64->64 @128", ratio=r,
                          config={"threads": 1, "isa": "avx2", "variant": v})
                for r, v in ((3.0, "conv_winograd"), (1.1, "conv_direct"))]
        text = table.summary(rows)
        self.assertIn("| Winograd convolution, 16 channels and more (1) | onnxruntime | 3.00 (3.00 to 3.00) |", text)
        self.assertIn("| direct convolution, 16 channels and more (1) | onnxruntime | 1.10 (1.10 to 1.10) |", text)


class Readme(unittest.TestCase):
    """A tree of its own with a README and results files."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name
        os.makedirs(os.path.join(self.root, "bench", "results"))
        os.makedirs(os.path.join(self.root, "docs"))
        for name, _ in table.PAGES:
            with open(os.path.join(self.root, name), "w") as f:
                f.write(f"before\n{table.BEGIN}\n{table.NOTHING}{table.END}\nbehind\n")

    def tearDown(self):
        self.folder.cleanup()

    def results(self, name, *rows):
        with open(os.path.join(self.root, "bench", "results", name), "w") as f:
            f.writelines(json.dumps(r) + "\n" for r in rows)

    def check(self):
        with redirect_stdout(io.StringIO()):
            return table.check(self.root)

    def test_without_results_it_says_so(self):
        self.assertEqual(self.check(), 0)

    def test_a_table_that_is_not_of_the_files_is_found(self):
        self.results("2026-01-02-x.jsonl", NET)
        self.assertEqual(self.check(), 1)
        table.write(self.root)
        self.assertEqual(self.check(), 0)
        self.results("2026-02-01-x.jsonl", variation(ratio=2.01))
        self.assertEqual(self.check(), 1)

    def test_rows_of_all_files_are_kept_and_the_last_of_each_counts(self):
        self.results("2026-01-02-x.jsonl", variation(case="a 1024x1024"), variation(case="b 1024x1024", ratio=3.0))
        self.results("2026-02-01-x.jsonl", variation(case="b 1024x1024", ratio=12.0, commit="later", time="2026-02-01T00:00:00"))
        text = table.headline(table.kept(self.root))
        self.assertIn("| warm networks at 1024x1024 (2) | as planned | onnxruntime | 4.90 (2.00 to 12.00) |", text)
        self.assertRegex(text, r"Measured \S+ on .*: commit .*; 2026-02-01 on .*: commit later\. Ratio")

    def test_writing_leaves_the_rest_of_the_pages_alone(self):
        self.results("2026-01-02-x.jsonl", variation(case="a 1024x1024"))
        table.write(self.root)
        for name, _ in table.PAGES:
            with open(os.path.join(self.root, name)) as f:
                text = f.read()
            self.assertTrue(text.startswith("before\n") and text.endswith("behind\n"))
            self.assertIn("| 2.00 (2.00 to 2.00) | 0.25 |", text)

    def test_the_five_rows_are_means_of_their_kind_and_what_was_not_measured_has_none(self):
        config = {"threads": 2, "isa": "avx2"}
        text = table.headline([variation(case="a 1024x1024"), variation(case="b 1024x1024", ratio=8.0),
                               variation(case="a 1024x1024", config={**config, "exact": True}, ratio=1.5),
                               variation(family="process", case="a 4096x4096", config={**config, "lean": True}, ratio=3.0)])
        self.assertIn("| warm networks at 1024x1024 (2) | as planned | onnxruntime | 4.00 (2.00 to 8.00) |", text)
        self.assertIn("| warm networks at 1024x1024 (1) | exact | onnxruntime | 1.50 (1.50 to 1.50) |", text)
        self.assertIn("| TIFF to TIFF at 4096x4096 (1) | small --ram | onnxruntime | 3.00 (3.00 to 3.00) |", text)
        self.assertEqual(text.count("\n|"), 5)

    def test_a_summary_that_is_not_of_the_files_is_found(self):
        self.results("2026-01-02-x.jsonl", variation(case="a 1024x1024"))
        table.write(self.root)
        with open(os.path.join(self.root, "docs", "benchmarks.md"), "a") as f:
            f.write("behind\n")
        self.assertEqual(self.check(), 0)
        with open(os.path.join(self.root, "docs", "benchmarks.md")) as f:
            text = f.read()
        with open(os.path.join(self.root, "docs", "benchmarks.md"), "w") as f:
            f.write(text.replace("2.00 (", "2.50 ("))
        self.assertEqual(self.check(), 1)


class Laboratory(unittest.TestCase):
    def test_turns_alternate(self):
        order = []
        seconds = lab.take_turns({n: lambda n=n: order.append(n) or 1.0 for n in "AB"}, 3)
        self.assertEqual("".join(order), "ABABAB")
        self.assertEqual(seconds, {"A": [1.0] * 3, "B": [1.0] * 3})

    def test_a_machine_that_slows_down_does_not_move_the_ratio(self):
        self.assertEqual(lab.ratios(theirs=[2.0, 4.0, 8.0], ours=[1.0, 2.0, 4.0])["ratio"], 2.0)

    def test_a_process_reports_its_peak_and_its_end(self):
        code, _, peak, out, err = lab.run_process(
            [sys.executable, "-c", "import sys; b = bytearray(100 << 20); print('{}'); sys.exit(3)"])
        self.assertEqual((code, lab.json_lines(out), err), (3, [{}], ""))
        self.assertTrue(100 << 20 < peak < 200 << 20, peak)

    def test_a_program_that_cannot_serve_is_a_failure_with_its_last_words(self):
        with self.assertRaisesRegex(lab.Failure, "no thanks"):
            lab.Served([sys.executable, "-c", "import sys; sys.exit('no thanks')"])


@unittest.skipUnless(BENCH_NET, "needs the program")
class Networks(unittest.TestCase):
    def test_the_reference_unet_is_one_that_the_engine_reads_and_serves(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "unet.onnx")
            onnx_edit.LEVELS, kept = (8, 16), onnx_edit.LEVELS
            onnx_edit.reference_unet(path)
            onnx_edit.LEVELS = kept
            served = lab.Served([BENCH_NET, "--serve", "--size", "32", path])
            self.assertGreater(served.turn(), 0)
            self.assertLess(served.ready["reference_relative_l2"], 1e-5)
            self.assertGreater(served.end()["peak_rss_bytes"], 1 << 20)

    def test_a_declared_size_is_set_free(self):
        fixed = onnx_edit.block(1, onnx_edit.number(1, 512))
        freed = onnx_edit.free_spatial(fixed * 4)
        self.assertEqual([list(onnx_edit.fields(v))[0][0] for _, _, v, _ in onnx_edit.fields(freed)],
                         [1, 1, 2, 2])


if __name__ == "__main__":
    unittest.main()
