"""The peer of ProPainter's measurements beside the goldens: prints for each output the largest difference beside the tolerance, and ends with 1
where one is not met.

    propainter_check.py --recipe DIR --check DIR [--only WORD] [--threads N]

`--recipe DIR`: weights made by DIR/recipe.py. `--check DIR`: the conformance data. Python with numpy, torch, torchvision."""
import argparse
import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torchvision.ops import deform_conv2d

from propainter_peer import (attention, completed, consistent, conv, convex_up, correlations, feed_forward, from_recipe, gen_align, gen_decoder,
                             gen_encoder, generator, inpaint, layer_norm, looked_up, network_input, p3d, propagated,
                             raft, raft_norm, raft_update, rfc_align, soft_composition, soft_split, steps, up2, quarter_flow, quarter_mask, warped)


# ---- Check ---------------------------------------------------------------------------------------------------------------

def op_cases(w):
    """What computes each operator's golden, by the case's name, from its inputs."""
    raft_w, rfc, gen = w["raft"], w["rfc"], w["gen"]
    align = "feat_prop_module.deform_align."

    def deform(v):
        return lambda i: {"y": deform_conv2d(i["x"], i["offset"], v["weight"], v["bias"], padding=1, mask=i["mask"])}

    def lookup(i):
        levels = correlations(i["fmap1"], i["fmap2"])
        return {"level1_first8": levels[1][:8], "level3_first8": levels[3][:8], "lookup": looked_up(levels, i["coords"])}

    def update(i):
        net, mask, delta = raft_update(raft_w.under("update_block"), i["net"], i["inp"], i["corr"], i["flow"])
        return {"net_out": net, "mask": mask[:, :64], "delta": delta}

    def sparse(b, first):
        return lambda i: {"y": attention(gen.under(f"transformers.transformer.{b}.attention"), i["x"][0], i["mask"][0, ..., 0], first)[None]}

    def y(call):
        return lambda i: {"y": call(i["x"])}

    return {
        "deform_conv_gen": deform(gen.under(align + "backward_1")), "deform_conv_rfc": deform(rfc.under(align + "forward_")),
        "align_gen": lambda i: {"y": gen_align(gen.under(align + "backward_1"), i["x"], i["cond"], i["flow"])},
        "align_rfc": lambda i: {"y": rfc_align(rfc.under(align + "backward_"), i["x"], i["cond"])},
        "flow_warp_bilinear": lambda i: {"bilinear": warped(i["x"], i["flow"])},
        "flow_warp_nearest": lambda i: {"nearest": warped(i["x"], i["flow"], "nearest")},
        "fb_consistency": lambda i: {"valid": consistent(i["flow_fw"], i["flow_bw"])},
        "raft_corr_lookup": lookup, "raft_update_block": update,
        "raft_convex_upsample": lambda i: {"up": convex_up(i["flow"], i["mask"])},
        "upsample2x_align_corners": y(up2), "downsample_flow_quarter": y(quarter_flow), "downsample_mask_quarter": y(quarter_mask),
        "mask_maxpool": y(lambda x: F.max_pool2d(x, 7, 3, 3)), "instance_norm": y(lambda x: F.instance_norm(x, eps=1e-5)),
        "batch_norm_eval": y(lambda x: raft_norm(raft_w.under("cnet"), "norm1", x)),
        "layer_norm": y(lambda x: layer_norm(gen.under("transformers.transformer.0"), "norm1", x)), "gelu": y(F.gelu),
        "soft_split": lambda i: {"tokens": soft_split(gen.under("ss"), i["x"])},
        "soft_comp": lambda i: {"y": soft_composition(gen.under("sc"), i["tokens"][0], (20, 16))},
        "fusion_ffn": y(lambda x: feed_forward(gen.under("transformers.transformer.2.mlp"), x.view(2, 42, 512), (20, 16)).view(1, 84, 512)),
        "sparse_attention_padded": sparse(0, 0), "sparse_attention_exact": sparse(1, 1), "sparse_attention_nomask": sparse(2, 0),
        "gen_encoder": y(lambda x: gen_encoder(gen.under("encoder"), x)), "gen_decoder": y(lambda x: gen_decoder(gen.under("decoder"), x)),
        "rfc_downsample": y(lambda x: F.leaky_relu(conv(rfc, "downsample.0", F.pad(x, (2, 2, 2, 2, 0, 0), mode="replicate"), (1, 2, 2)), 0.2)),
        "rfc_p3d": y(lambda x: p3d(rfc.under("encoder1.2"), x, 2)),
    }


def seen_into(kept):
    return lambda name, value: kept.setdefault(name, value)


def raft_case(w, i, params):
    kept, x = {}, network_input(i["frames"].numpy())
    raft(w["raft"], x[:1], x[1:], params["iters"], seen_into(kept))
    kept |= {k.replace(f"_iter{params['iters']}", "_last"): v for k, v in kept.items() if k.endswith(f"_iter{params['iters']}")}
    return {k: v[0] for k, v in kept.items()}


def completion_case(w, i, params):
    kept = {}
    comb = completed(w["rfc"], i["flows_f"], i["flows_b"], i["masks"][:, None].float(), seen_into(kept))
    return kept | dict(zip(("comb_f", "comb_b"), comb))


def propagation_case(w, i, params):
    x, q = propagated(network_input(i["frames"].numpy()), i["masks"][:, None].float(), i["flows_f"], i["flows_b"])
    return {"updated_frames": x, "updated_masks": q}


def generator_case(w, i, params):
    kept, n, flows = {}, params["num_local"], params["flows_used"]
    generator(w["gen"], i["updated_frames"], i["masks"][:, None].float(), i["updated_masks"][:, None].float(), i["flows_f"][:flows], i["flows_b"][:flows],
              n, seen_into(kept))
    return kept


def preview(pixels, masks):
    """Holes in green, as masked_in shows them."""
    m = masks[..., None].astype(np.float64)
    return (m * (0.4 * pixels + 0.6 * np.array((0, 255, 0))) + (1 - m) * pixels).astype(np.uint8)


def film_case(w, i, params):
    kept, pixels, masks = {}, i["frames"].numpy(), i["masks"].numpy()
    settings = (params["subvideo_length"], params["neighbor_length"], params["ref_stride"], params["raft_iter"])
    said = [(s["neighbors"], s["refs"]) for s in params["schedule"]]
    if list(steps(len(pixels), *settings[:3])) != said:
        raise SystemExit("the schedule is not the golden's")
    kept["comp"] = torch.from_numpy(inpaint(w, pixels, masks, settings, seen_into(kept)))
    kept["masked_in"] = torch.from_numpy(preview(pixels, masks))
    kept["outside"] = (kept["comp"].numpy() != pixels)[masks == 0].any()
    return kept


STAGES = {"raft_pair": raft_case, "flow_completion": completion_case, "image_propagation": propagation_case, "inpaint_generator": generator_case,
          "propainter": film_case}


def judged(got, want, tolerance):
    """(what was found, beside what is allowed) of one output."""
    d = (got.double() - want.double()).abs()
    rows = []
    for name, allowed in tolerance.items():
        if name in ("outside_mask", "mismatch_threshold"):
            continue
        found = {"max_abs": lambda: d.max(), "mean_abs": lambda: d.mean(), "max_fraction_diff_gt0": lambda: (d > 0).double().mean(),
                 "max_fraction_diff_gt1": lambda: (d > 1).double().mean(), "mismatch_fraction": lambda: (d > 1e-4).double().mean()}[name]()
        rows.append((name, float(found), allowed))
    return rows


def check_case(folder, case, made):
    good = True
    for name, out in case["outputs"].items():
        if name not in made:
            print(f"{case['name']:28} {name:16} not computed here")
            continue
        want, got = torch.from_numpy(np.load(os.path.join(folder, out["file"]))), made[name]
        if "stored_index" in out:
            got = got[out["stored_index"]]
        if got.shape != want.shape:
            raise SystemExit(f"{case['name']} {name}: shape {tuple(got.shape)}, the golden's is {tuple(want.shape)}")
        for what, found, allowed in judged(got, want, case["tolerance"][name]):
            met = found <= allowed
            good = good and met
            print(f"{case['name']:28} {name:16} {what:22} {found:.3g} of {allowed:.3g}{'' if met else '  NOT MET'}")
    if made.get("outside", False):
        print(f"{case['name']:28} pixels outside of the mask changed  NOT MET")
        good = False
    return good


def check(w, root, only):
    good, ops = True, op_cases(w)
    for level in ("ops", "stages", "e2e"):
        folder = os.path.join(root, level)
        with open(os.path.join(folder, "index.json")) as f:
            cases = json.load(f)["cases"]
        for case in cases:
            call = ops.get(case["name"]) or STAGES.get(case["op"])
            if only not in case["name"]:
                continue
            if not call:
                print(f"{case['name']:28} is not a matter of this script")
                continue
            i = {k: torch.from_numpy(np.load(os.path.join(folder, v["file"]))) for k, v in case["inputs"].items()}
            good &= check_case(folder, case, call(i) if level == "ops" else call(w, i, case["params"]))
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--recipe", required=True)
    p.add_argument("--check", required=True)
    p.add_argument("--only", default="")
    p.add_argument("--threads", type=int, default=2)
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    with torch.inference_mode():
        sys.exit(0 if check(from_recipe(args.recipe), args.check, args.only) else 1)


if __name__ == "__main__":
    main()
