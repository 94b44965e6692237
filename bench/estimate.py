"""How good the estimate of a run's time is: the family `estimate`.

`calibrate` measures the machine once, into a folder of the bench's own; then for each network, with
uncompressed and zstd files, what `plan` says (seconds_estimate) is set against what `run` takes
(seconds of the done event), warm. The ratio is estimate over measured; 0.7 to 1.4 is the goal."""
import os
import shutil

import lab
import overlap

NETWORKS = ("tegula_denoise", "unet2d_nuclei_broad", "fsrcnn_x2", "reference_unet")


def events(bench, verb, model, image, out, kind):
    command = [bench.program("cli/tegula"), verb, "-m", model, image, "-o", out, *bench.common(), "--json",
               "--compress", kind, "--dtype", "same", "--normalize", "scale:1/65535"]
    code, _, _, text, err = lab.run_process(command + (["--yes"] if verb == "run" else []))
    if code != 0:
        raise lab.Failure(f"tegula {verb} ended with {code}: {lab.last_words(err)}")
    return lab.json_lines(text)


def row_of(bench, name, model, image, kind):
    out = bench.file("estimate_out.tif")
    lab.remove(out)
    plan = events(bench, "plan", model, image, out, kind)[-1]
    if not plan["calibrated"]:
        raise lab.Failure(f"{name}: the plan is not calibrated")
    seconds = []
    for _ in range(bench.few_rounds()):
        seconds.append(events(bench, "run", model, image, out, kind)[-1]["seconds"])
        lab.remove(out)
    guess = plan["seconds_estimate"]
    measured = lab.summary(seconds)
    return {"family": "estimate", "case": f"{name}, {kind} in and out", "config": bench.config(),
            "tegula": {"seconds": measured}, "peer": {"name": "its estimate", "seconds": lab.summary([guess])},
            "ratio": guess / measured["median"], "ratio_min": guess / max(seconds), "ratio_max": guess / min(seconds)}


def estimate(bench, gray, networks):
    """Rows; `gray` is the drawn image, `networks` names and paths."""
    folder = bench.file("calibration")
    os.makedirs(folder, exist_ok=True)
    os.environ["TEGULA_CACHE"] = folder
    code, _, _, _, err = lab.run_process([bench.program("cli/tegula"), "calibrate"])
    if code != 0:
        raise lab.Failure(f"calibrate ended with {code}: {lab.last_words(err)}")
    found, paths = overlap.images(bench, gray), dict(networks)
    for name in NETWORKS:
        for kind in ("none", "zstd"):
            if name in paths and bench.wanted(name):
                yield row_of(bench, name, paths[name], found["gray", kind], kind)
    del os.environ["TEGULA_CACHE"]
    shutil.rmtree(folder)
