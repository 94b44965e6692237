"""ProPainter with PyTorch, as its own script runs it: the whole film in memory, pairs in batches, the correlation volume, unfolded patches,
attention with its copies. Written from ../shared/conformance/propainter/SPEC.md (sections by number below); float32 on the processor, or
where --device says; --half: all but RAFT in float16, as that script does.

    propainter_peer.py --recipe DIR --time STAGE [--size WxH] [--frames N] [--refs N] [--rounds N] [--threads N] [--mask SHARE]
    propainter_peer.py --weights DIR --run OUT.npy --film FRAMES.npy --masks MASKS.npy [--motion-masks MASKS.npy]
                       [--settings L,neighbor_length,ref_stride,iterations]
                       [--device cuda] [--half]

`--recipe DIR`: weights made by DIR/recipe.py. `--weights DIR`: the three published files, .pth, or .npz by the same names.
`propainter_check.py` compares it with the goldens. `--time STAGE`, of raft (all pairs, both directions), completion (N - 1 flows, both directions), propagation, generator (one step; N frames, the
last --refs of them references) and e2e, prints a line of JSON: of each round, after one that warms up (--cold: none), seconds and the peak of
resident memory above the round's start, when weights and inputs are there. What goes in is drawn, with a box of SHARE of each side as the mask,
unless --film and --masks (uint8, [T,H,W,3] and [T,H,W]) give it. `--keep DIR` writes what went in and came out. `--serve`: a round
for each line on stdin, and at its end the last one's peak, all that is resident included. On a GPU a round ends when its queue is empty, and
the most that tensors took there at once is told too. Python with numpy, torch, torchvision."""
import argparse
import ctypes
import gc
import importlib.util
import json
import math
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torchvision.ops import deform_conv2d

FILES = {"raft": "raft-things", "rfc": "recurrent_flow_completion", "gen": "ProPainter"}


# ---- Weights -------------------------------------------------------------------------------------------------------------

class Weights(dict):
    """Tensors by name; `under` gives those below a name."""

    def under(self, name):
        return Weights((k[len(name) + 1:], v) for k, v in self.items() if k.startswith(name + "."))


def from_recipe(folder):
    spec = importlib.util.spec_from_file_location("recipe", os.path.join(folder, "recipe.py"))
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    made = {m: Weights() for m in FILES}
    for r in recipe.rows():
        a = recipe.make(r["model"], r["tensor"], r["shape_t"], r["kind"], recipe.parse_offset(r["offset"]), float.fromhex(r["a"]))
        made[r["model"]][r["tensor"]] = torch.from_numpy(a)
    return made


def from_files(folder, device="cpu"):
    made = {}
    for model, name in FILES.items():
        path = os.path.join(folder, name)
        if os.path.exists(path + ".pth"):
            found = torch.load(path + ".pth", map_location=device, weights_only=True)
        else:
            found = {k: torch.as_tensor(v, device=device) for k, v in np.load(path + ".npz").items()}
        made[model] = Weights((k.removeprefix("module."), v) for k, v in found.items())
    return made


def halved(made):
    """All but RAFT."""
    return {m: Weights((k, v.half() if m != "raft" and v.is_floating_point() else v) for k, v in of.items()) for m, of in made.items()}


def conv(w, name, x, stride=1, padding=0, dilation=1, groups=1):
    call = F.conv3d if w[name + ".weight"].dim() == 5 else F.conv2d
    return call(x, w[name + ".weight"], w[name + ".bias"], stride, padding, dilation, groups)


def linear(w, name, x):
    return F.linear(x, w[name + ".weight"], w[name + ".bias"])


def up2(x):
    return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)


def unseen(name, value):
    """Where nobody asked for what lies between: `see` of the functions below."""


# ---- 2. RAFT -------------------------------------------------------------------------------------------------------------

def raft_norm(w, name, x):
    if name + ".weight" not in w:
        return F.instance_norm(x, eps=1e-5)
    return F.batch_norm(x, w[name + ".running_mean"], w[name + ".running_var"], w[name + ".weight"], w[name + ".bias"], False, 0.0, 1e-5)


def raft_block(w, x, stride):
    y = F.relu(raft_norm(w, "norm1", conv(w, "conv1", x, stride, 1)))
    y = F.relu(raft_norm(w, "norm2", conv(w, "conv2", y, 1, 1)))
    if stride == 2:
        x = raft_norm(w, "downsample.1", conv(w, "downsample.0", x, 2))
    return F.relu(x + y)


def raft_encoder(w, x):
    x = F.relu(raft_norm(w, "norm1", conv(w, "conv1", x, 2, 3)))
    for layer, stride in ((1, 1), (2, 2), (3, 2)):
        x = raft_block(w.under(f"layer{layer}.0"), x, stride)
        x = raft_block(w.under(f"layer{layer}.1"), x, 1)
    return conv(w, "conv2", x)


def correlations(f1, f2):
    """The four levels, each [pairs * h * w, 1, rows, columns]."""
    b, c, h, w = f1.shape
    volume = torch.matmul(f1.view(b, c, h * w).transpose(1, 2), f2.view(b, c, h * w)) / math.sqrt(c)
    levels = [volume.reshape(b * h * w, 1, h, w)]
    for _ in range(3):
        levels.append(F.avg_pool2d(levels[-1], 2, 2))
    return levels


def sampled(x, at, mode="bilinear"):
    """Samples at pixel coordinates [n, rows, columns, (x, y)], zeros outside, by way of the coordinates -1 to 1."""
    h, w = x.shape[-2:]
    grid = torch.stack((2 * at[..., 0] / (w - 1) - 1, 2 * at[..., 1] / (h - 1) - 1), dim=-1)
    return F.grid_sample(x, grid.to(x.dtype), mode=mode, padding_mode="zeros", align_corners=True)


def pixel_grid(b, h, w):
    y, x = torch.meshgrid(torch.arange(h, dtype=torch.float32), torch.arange(w, dtype=torch.float32), indexing="ij")
    return torch.stack((x, y)).expand(b, 2, h, w)


def looked_up(levels, coords):
    b, _, h, w = coords.shape
    step = torch.arange(-4, 5, dtype=torch.float32)
    window = torch.stack(torch.meshgrid(step, step, indexing="ij"), dim=-1)  # [i, j] = (x + i - 4, y + j - 4)
    centre = coords.permute(0, 2, 3, 1).reshape(b * h * w, 1, 1, 2)
    taken = [sampled(c, centre / 2 ** level + window).view(b, h, w, 81) for level, c in enumerate(levels)]
    return torch.cat(taken, dim=-1).permute(0, 3, 1, 2).contiguous()


def gru_half(w, k, net, x):
    padding = (0, 2) if k == 1 else (2, 0)
    both = torch.cat((net, x), 1)
    z = torch.sigmoid(conv(w, f"convz{k}", both, 1, padding))
    r = torch.sigmoid(conv(w, f"convr{k}", both, 1, padding))
    q = torch.tanh(conv(w, f"convq{k}", torch.cat((r * net, x), 1), 1, padding))
    return (1 - z) * net + z * q


def raft_update(w, net, inp, corr, flow):
    e = w.under("encoder")
    cor = F.relu(conv(e, "convc2", F.relu(conv(e, "convc1", corr)), 1, 1))
    flo = F.relu(conv(e, "convf2", F.relu(conv(e, "convf1", flow, 1, 3)), 1, 1))
    motion = torch.cat((F.relu(conv(e, "conv", torch.cat((cor, flo), 1), 1, 1)), flow), 1)
    x, g = torch.cat((inp, motion), 1), w.under("gru")
    net = gru_half(g, 2, gru_half(g, 1, net, x), x)
    delta = conv(w, "flow_head.conv2", F.relu(conv(w, "flow_head.conv1", net, 1, 1)), 1, 1)
    mask = 0.25 * conv(w, "mask.2", F.relu(conv(w, "mask.0", net, 1, 1)))
    return net, mask, delta


def convex_up(flow, mask):
    b, _, h, w = flow.shape
    mask = torch.softmax(mask.view(b, 1, 9, 8, 8, h, w), dim=2)
    near = F.unfold(8 * flow, 3, padding=1).view(b, 2, 9, 1, 1, h, w)
    return (mask * near).sum(2).permute(0, 1, 4, 2, 5, 3).reshape(b, 2, 8 * h, 8 * w)


def raft(w, image1, image2, iterations=20, see=unseen):
    """Flows of pairs at full size. As in the original the mask head and the upsampling run in every iteration."""
    b = len(image1)
    f1, f2 = raft_encoder(w.under("fnet"), torch.cat((image1, image2))).split(b)
    levels = correlations(f1.contiguous(), f2.contiguous())
    c = raft_encoder(w.under("cnet"), image1)
    see("fmap1", f1)
    see("cnet", c)
    net, inp, update = torch.tanh(c[:, :128]), torch.relu(c[:, 128:]), w.under("update_block")
    start = pixel_grid(b, *f1.shape[-2:])
    coords = start.clone()
    for i in range(1, iterations + 1):
        corr, flow = looked_up(levels, coords), coords - start
        net, mask, delta = raft_update(update, net, inp, corr, flow)
        coords = coords + delta
        up = convex_up(coords - start, mask)
        for name, value in (("corr", corr), ("flow_in", flow), ("net", net), ("mask", mask), ("delta", delta), ("flow_low", coords - start),
                            ("flow_up", up)):
            see(f"{name}_iter{i}", value)
    return up


def clip_length(width):
    return 12 if width <= 640 else 8 if width <= 720 else 4 if width <= 1280 else 2


def raft_both(w, frames, iterations=20):
    """Forward and backward flows of a film [T,3,H,W], clip by clip."""
    n, forward, backward = clip_length(frames.shape[-1]), [], []
    for s in range(0, len(frames), n):
        clip = frames[max(0, s - 1):s + n]
        if len(clip) > 1:
            forward.append(raft(w, clip[:-1], clip[1:], iterations))
            backward.append(raft(w, clip[1:], clip[:-1], iterations))
    return torch.cat(forward), torch.cat(backward)


# ---- 3. Flow completion --------------------------------------------------------------------------------------------------

def p3d(w, x, stride):
    x = F.leaky_relu(conv(w, "conv1.0", x, (1, stride, stride), (0, 1, 1)), 0.2)
    return conv(w, "conv2.0", x, 1, (2, 0, 0), (2, 1, 1))


def rfc_encoder(w, x):
    x = F.leaky_relu(p3d(w.under("0"), x, 1), 0.2)
    return F.leaky_relu(p3d(w.under("2"), x, 2), 0.2)


def conv_offset(w, cond):
    for k in (0, 2, 4):
        cond = F.leaky_relu(conv(w, f"conv_offset.{k}", cond, 1, 1), 0.1)
    return conv(w, "conv_offset.6", cond, 1, 1)


def rfc_align(w, x, cond):
    o = conv_offset(w, cond)
    return deform_conv2d(x, 5 * torch.tanh(o[:, :288]), w["weight"], w["bias"], padding=1, mask=torch.sigmoid(o[:, 288:]))


def two_convs(w, x, slope):
    return conv(w, "2", F.leaky_relu(conv(w, "0", x, 1, 1), slope), 1, 1)


def rfc_propagate(w, s, see=unseen):
    """s: [N,128,h,w]. Second-order recurrence, backward, then forward over what that gave."""
    n, passes = len(s), {}
    for name in ("backward_", "forward_"):
        out = [None] * n
        p1 = p2 = torch.zeros_like(s[:1])
        for k, t in enumerate(range(n - 1, -1, -1) if name == "backward_" else range(n)):
            d, c = torch.zeros_like(p1), s[t:t + 1]
            if k > 0:
                d = rfc_align(w.under(f"deform_align.{name}"), torch.cat((p1, p2), 1), torch.cat((p1, c, p2), 1))
            earlier = [passes["backward_"][t]] if name == "forward_" else []
            out[t] = d + two_convs(w.under(f"backbone.{name}"), torch.cat([c, *earlier, d], 1), 0.1)
            p2, p1 = p1 if k > 0 else p2, out[t]
        passes[name] = out
        see(name, torch.cat(out))
    return s + conv(w, "fusion", torch.cat((torch.cat(passes["backward_"]), torch.cat(passes["forward_"])), 1))


def rfc_network(w, x, see=unseen):
    """x: [1,3,N,H,W], dx, dy, mask. The predicted flows [N,2,H,W]."""
    def frames(y):
        return y[0].transpose(0, 1).contiguous()

    x = F.leaky_relu(conv(w, "downsample.0", F.pad(x, (2, 2, 2, 2, 0, 0), mode="replicate"), (1, 2, 2)), 0.2)
    e1 = rfc_encoder(w.under("encoder1"), x)
    x = rfc_encoder(w.under("encoder2"), e1)
    see("encoder1", frames(e1))
    see("encoder2", frames(x))
    for k, d in ((0, 3), (2, 2), (4, 1)):
        x = F.leaky_relu(conv(w, f"mid_dilation.{k}", x, 1, (0, d, d), (1, d, d)), 0.2)
    see("mid", frames(x))
    x = rfc_propagate(w.under("feat_prop_module"), frames(x), see)
    see("prop", x)
    x = F.leaky_relu(conv(w, "decoder2.0", x, 1, 1), 0.2)
    x = F.leaky_relu(conv(w, "decoder2.2.conv", up2(x), 1, 1), 0.2)
    see("decoder2", x)
    x = x + frames(e1)
    x = F.leaky_relu(conv(w, "decoder1.0", x, 1, 1), 0.2)
    x = F.leaky_relu(conv(w, "decoder1.2.conv", up2(x), 1, 1), 0.2)
    x = F.leaky_relu(conv(w, "upsample.0", x, 1, 1), 0.2)
    return conv(w, "upsample.2.conv", up2(x), 1, 1)


def completed(w, forward, backward, masks, see=unseen):
    """One window: N flows of each direction, N + 1 masks [N + 1,1,H,W]."""
    def run(flows, m):
        x = torch.cat((flows * (1 - m), m), 1)
        return rfc_network(w, x.transpose(0, 1)[None].contiguous(), see)

    m_f, m_b = masks[:-1], masks[1:]
    pred_f = run(forward, m_f)
    see, saw = unseen, see
    pred_b = run(backward.flip(0), m_b.flip(0)).flip(0)
    saw("pred_f", pred_f)
    saw("pred_b", pred_b)
    return pred_f * m_f + forward * (1 - m_f), pred_b * m_b + backward * (1 - m_b)


def completion_windows(flows, length):
    """(first, end, first kept, end kept) of each."""
    if flows <= length:
        return [(0, flows, 0, flows)]
    return [(max(0, f - 5), min(flows, f + length + 5), f, min(flows, f + length)) for f in range(0, flows, length)]


def complete_all(w, forward, backward, masks, length):
    parts = []
    for s, e, a, b in completion_windows(len(forward), length):
        f, r = completed(w, forward[s:e], backward[s:e], masks[s:e + 1])
        parts.append((f[a - s:b - s], r[a - s:b - s]))
    return tuple(torch.cat(p) for p in zip(*parts))


# ---- 4. Image propagation ------------------------------------------------------------------------------------------------

def warped(x, flow, mode="bilinear"):
    at = pixel_grid(1, *x.shape[-2:]).permute(0, 2, 3, 1) + flow.permute(0, 2, 3, 1)
    return sampled(x, at, mode)


def consistent(f, b):
    bw = warped(b, f)
    bound = 0.01 * ((f ** 2).sum(1, keepdim=True) + (bw ** 2).sum(1, keepdim=True)) + 0.5
    return (((f + bw) ** 2).sum(1, keepdim=True) < bound).to(f)


def binary(v):
    return (v > 0.1).to(v)


def image_pass(image, masks, flows, checks, order):
    """flows[k], checks[k]: what the k-th step after the first takes."""
    p_all, q_all = [None] * len(image), [None] * len(image)
    for k, t in enumerate(order):
        i, m = image[t:t + 1], masks[t:t + 1]
        if k == 0:
            p, q = i, m
        else:
            f, b = flows[k - 1], checks[k - 1]
            v, pw, qw = consistent(f, b), warped(p, f, "nearest"), binary(warped(q, f))
            u = binary(m * v * (1 - qw))
            p, q = u * pw + (1 - u) * i, binary(m * (1 - v * (1 - qw)))
        p_all[t], q_all[t] = p, q
    return torch.cat(p_all), torch.cat(q_all)


def propagated(frames, masks, forward, backward):
    """One window: updated frames and masks."""
    n = len(frames)
    f, b = [forward[t:t + 1] for t in range(n - 1)], [backward[t:t + 1] for t in range(n - 1)]
    p, q = image_pass(frames * (1 - masks), masks, f[::-1], b[::-1], range(n - 1, -1, -1))
    p, q = image_pass(p, q, b, f, range(n))
    return frames * (1 - masks) + p * masks, q


def propagation_windows(frames, length):
    length = min(100, length)
    if frames <= length:
        return [(0, frames, 0, frames)]
    return [(max(0, f - 10), min(frames, f + length + 10), f, min(frames, f + length)) for f in range(0, frames, length)]


def propagate_all(frames, masks, forward, backward, length):
    parts = []
    for s, e, a, b in propagation_windows(len(frames), length):
        x, q = propagated(frames[s:e], masks[s:e], forward[s:e - 1], backward[s:e - 1])
        parts.append((x[a - s:b - s], q[a - s:b - s]))
    return tuple(torch.cat(p) for p in zip(*parts))


# ---- 5. Generator --------------------------------------------------------------------------------------------------------

def gen_encoder(w, x):
    x = F.leaky_relu(conv(w, "layers.0", x, 2, 1), 0.2)
    x = F.leaky_relu(conv(w, "layers.2", x, 1, 1), 0.2)
    x = F.leaky_relu(conv(w, "layers.4", x, 2, 1), 0.2)
    e = F.leaky_relu(conv(w, "layers.6", x, 1, 1), 0.2)
    x = F.leaky_relu(conv(w, "layers.8", e, 1, 1), 0.2)
    n, _, h, width = e.shape
    for layer, groups in ((10, 2), (12, 4), (14, 8), (16, 1)):
        both = torch.cat((e.view(n, groups, -1, h, width), x.view(n, groups, -1, h, width)), 2).view(n, -1, h, width)
        x = F.leaky_relu(conv(w, f"layers.{layer}", both, 1, 1, 1, groups), 0.2)
    return x


def gen_align(w, x, cond, flow):
    o = conv_offset(w, cond)
    offset = 3 * torch.tanh(o[:, :288]) + flow.flip(1).repeat(1, 144, 1, 1)
    return deform_conv2d(x, offset, w["weight"], w["bias"], padding=1, mask=torch.sigmoid(o[:, 288:]))


def feature_pass(w, name, x, masks, flows, checks, order):
    out, p = [None] * len(x), None
    for k, t in enumerate(order):
        c, m = x[t:t + 1], masks[t:t + 1]
        d = c
        if p is not None:
            f = flows[k - 1]
            cond = torch.cat((c, warped(p, f), f, consistent(f, checks[k - 1]), m), 1)
            d = gen_align(w.under(f"deform_align.{name}"), p, cond, f)
        p = out[t] = d + two_convs(w.under(f"backbone.{name}"), torch.cat((c, d, m), 1), 0.2)
    return torch.cat(out)


def feature_propagation(w, x, masks, forward, backward, see=unseen):
    n = len(x)
    f, b = [forward[t:t + 1] for t in range(n - 1)], [backward[t:t + 1] for t in range(n - 1)]
    back = feature_pass(w, "backward_1", x, masks, f[::-1], b[::-1], range(n - 1, -1, -1))
    fore = feature_pass(w, "forward_1", back, masks, b, f, range(n))
    see("prop_backward", back)
    see("prop_forward", fore)
    return x + two_convs(w.under("fuse"), torch.cat((back, fore, masks), 1), 0.2)


def soft_split(w, x):
    n, _, h, width = x.shape
    rows, columns = (h - 1) // 3 + 1, (width - 1) // 3 + 1
    patches = F.unfold(x, 7, padding=3, stride=3).transpose(1, 2)
    return linear(w, "embedding", patches).view(n, rows, columns, 512)


def soft_composition(w, x, size):
    patches = linear(w, "embedding", x.flatten(1, 2)).transpose(1, 2)
    return conv(w, "bias_conv", F.fold(patches, size, 7, padding=3, stride=3), 1, 1)


def windows_of(x):
    """[T,rows,columns,512] to [windows,4 heads,T,45,128]."""
    t, rows, columns, _ = x.shape
    x = x.view(t, rows // 5, 5, columns // 9, 9, 4, 128)
    return x.permute(1, 3, 5, 0, 2, 4, 6).reshape(-1, 4, t, 45, 128)


def of_windows(x, rows, columns):
    t = x.shape[2]
    x = x.view(rows // 5, columns // 9, 4, t, 5, 9, 128)
    return x.permute(3, 0, 4, 1, 5, 2, 6).reshape(t, rows, columns, 512)


def attended(q, k, v):
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(128), dim=-1), v)


ROLLED = ((-3, -5), (-3, 5), (3, -5), (3, 5))


def with_rolled(x, valid, pooled):
    """Window tokens, then the rolled, then the pooled ones: [windows,4,T,45 + 148 + P,128]."""
    own = windows_of(x)
    rolled = torch.cat([windows_of(torch.roll(x, shift, dims=(1, 2))) for shift in ROLLED], 3)[:, :, :, valid]
    t = pooled.shape[0]
    pooled = pooled.view(1, t, -1, 4, 128).permute(0, 3, 1, 2, 4).repeat(len(own), 1, 1, 1, 1)
    return torch.cat((own, rolled, pooled), 3)


def attention(w, x, mask, first_key):
    """x: [T,rows,columns,512]. mask: [local,rows,columns]. Keys of masked windows come from every second frame, from `first_key` on."""
    t, rows, columns, _ = x.shape
    pad = (0, -columns % 9, 0, -rows % 5)
    x, mask = F.pad(x, (0, 0, *pad)), F.pad(mask, pad)
    r, c = x.shape[1:3]
    q, k, v = (linear(w, name, x) for name in ("query", "key", "value"))
    pooled = F.conv2d(x.permute(0, 3, 1, 2), w["pool_layer.weight"], w["pool_layer.bias"], 4, groups=512).permute(0, 2, 3, 1)
    valid = w["valid_ind_rolled"]
    k, v = with_rolled(k, valid, linear(w, "key", pooled)), with_rolled(v, valid, linear(w, "value", pooled))
    q = windows_of(q)
    hit = mask.view(-1, r // 5, 5, c // 9, 9).amax((0, 2, 4)).flatten() > 0
    out = torch.zeros_like(q)
    if (inside := hit.nonzero().flatten()).numel():
        keys = torch.arange(first_key, t, 2)
        n = len(inside)
        k_in, v_in = (a[inside][:, :, keys].reshape(n, 4, -1, 128) for a in (k, v))
        out[inside] = attended(q[inside].reshape(n, 4, t * 45, 128), k_in, v_in).view(n, 4, t, 45, 128)
    if (outside := (~hit).nonzero().flatten()).numel():
        out[outside] = attended(q[outside], k[outside][:, :, :, :45], v[outside][:, :, :, :45])
    return linear(w, "proj", of_windows(out, r, c)[:, :rows, :columns])


def feed_forward(w, x, size):
    """x: [T,tokens,512]."""
    def fold(y):
        return F.fold(y, size, 7, padding=3, stride=3)

    x = linear(w, "fc1.0", x)
    ones = x.new_ones(len(x), x.shape[1], 49).transpose(1, 2)
    x = F.unfold(fold(x.transpose(1, 2)) / fold(ones), 7, padding=3, stride=3).transpose(1, 2)
    return linear(w, "fc2.1", F.gelu(x))


def layer_norm(w, name, x):
    return F.layer_norm(x, (512,), w[name + ".weight"], w[name + ".bias"], 1e-5)


def transformer(w, x, mask, size, see=unseen):
    for b in range(8):
        block = w.under(f"transformer.{b}")
        a = attention(block.under("attention"), layer_norm(block, "norm1", x), mask, b % 2)
        x = x + a
        y = layer_norm(block, "norm2", x)
        x = x + feed_forward(block.under("mlp"), y.flatten(1, 2), size).view_as(x)
        see(f"block{b}_attn", a)
        see(f"block{b}", x)
    return x


def gen_decoder(w, x):
    x = F.leaky_relu(conv(w, "0.conv", up2(x), 1, 1), 0.2)
    x = F.leaky_relu(conv(w, "2", x, 1, 1), 0.2)
    x = F.leaky_relu(conv(w, "4.conv", up2(x), 1, 1), 0.2)
    return torch.tanh(conv(w, "6", x, 1, 1))


def quarter_flow(x):
    return F.interpolate(x, scale_factor=0.25, mode="bilinear", align_corners=False) / 4


def quarter_mask(x):
    return F.interpolate(x, scale_factor=0.25, mode="nearest")


def generator(w, frames, masks, updated, forward, backward, local, see=unseen):
    """Pictures of the local frames, -1 to 1. Masks are [T,1,H,W]; flows are those between local frames."""
    e = gen_encoder(w.under("encoder"), torch.cat((frames, masks, updated), 1))
    f, b = quarter_flow(forward), quarter_flow(backward)
    m, q = quarter_mask(masks[:local]), quarter_mask(updated[:local])
    see("enc_feat", e)
    see("ds_flows_f", f)
    see("prop_mask", torch.cat((m, q), 1))
    x = feature_propagation(w.under("feat_prop_module"), e[:local], torch.cat((m, q), 1), f, b, see)
    see("prop_fused", x)
    x, size = torch.cat((x, e[local:])), e.shape[-2:]
    mask = F.max_pool2d(m, 7, 3, 3)[:, 0]
    tokens = soft_split(w.under("ss"), x)
    see("mask_pool", mask)
    see("tokens", tokens)
    tokens = transformer(w.under("transformers"), tokens, mask, size, see)
    y = soft_composition(w.under("sc"), tokens, size)
    see("softcomp", y)
    out = gen_decoder(w.under("decoder"), (x + y)[:local])
    see("out", out)
    return out


# ---- 6. Schedule, blending -----------------------------------------------------------------------------------------------

def steps(frames, length, neighbor_length, ref_stride):
    """(neighbours, references) of each generator step."""
    ns, ref_num = neighbor_length // 2, length // ref_stride if frames > length else -1
    for f in range(0, frames, ns):
        near, refs = list(range(max(0, f - ns), min(frames, f + ns + 1))), []
        if ref_num == -1:
            refs = [i for i in range(0, frames, ref_stride) if i not in near]
        else:
            reach = ref_stride * (ref_num // 2)
            for i in range(max(0, f - reach), min(frames, f + reach), ref_stride):
                if i in near:
                    continue
                if len(refs) > ref_num:
                    break
                refs.append(i)
        yield near, refs


def network_input(pixels):
    return torch.as_tensor(pixels).to(torch.get_default_device()).permute(0, 3, 1, 2).float() / 255 * 2 - 1


def mask_input(masks):
    return torch.as_tensor(masks).to(torch.get_default_device())[:, None].float()


def inpaint(w, pixels, masks, settings, see=unseen, moving=None):
    """pixels: uint8 [T,H,W,3]. masks: uint8 [T,H,W], 1 is a hole; moving: masks of motions, where they are others. The film of the same size."""
    length, neighbor_length, ref_stride, iterations = settings
    x, m = network_input(pixels), mask_input(masks)
    forward, backward = raft_both(w["raft"], x, iterations)
    see("raft_f", forward)
    see("raft_b", backward)
    of_motions = m if moving is None else mask_input(moving)
    kind = w["gen"]["encoder.layers.0.weight"].dtype
    x, m, of_motions, forward, backward = (v.to(kind) for v in (x, m, of_motions, forward, backward))
    forward, backward = complete_all(w["rfc"], forward, backward, of_motions, length)
    see("flow_f", forward)
    see("flow_b", backward)
    updated, q = propagate_all(x, m, forward, backward, length)
    see("updated_frames", updated)
    see("updated_masks", q[:, 0])
    film, hole = [None] * len(pixels), masks[..., None]
    for near, refs in steps(len(pixels), length, neighbor_length, ref_stride):
        i, flows = near + refs, slice(near[0], near[-1])
        out = generator(w["gen"], updated[i], m[i], q[i], forward[flows], backward[flows], len(near))
        picture = ((out + 1) / 2).permute(0, 2, 3, 1).float().cpu().numpy() * np.float32(255)
        for k, t in enumerate(near):
            made = picture[k].astype(np.uint8) * hole[t] + pixels[t] * (1 - hole[t])
            film[t] = made if film[t] is None else (film[t].astype(np.float32) * 0.5 + made.astype(np.float32) * 0.5).astype(np.uint8)
    return np.stack(film)


# ---- Time ----------------------------------------------------------------------------------------------------------------

def drawn(args):
    """A textured scene that moves two pixels a frame to the left and one up, and a box in the middle, of the given share of each side."""
    width, height = map(int, args.size.split("x"))
    if args.film:
        pixels, masks = np.load(args.film)[:args.frames], np.load(args.masks)[:args.frames]
        return np.ascontiguousarray(pixels), np.ascontiguousarray(masks)
    rng = np.random.default_rng(7)
    small = torch.from_numpy(rng.random((1, 3, height // 8 + 40, width // 8 + 40), dtype=np.float32))
    scene = F.interpolate(small, scale_factor=8, mode="bicubic").clamp(0, 1)[0].permute(1, 2, 0)
    pixels = np.stack([(scene[t:t + height, 2 * t:2 * t + width].numpy() * 255).astype(np.uint8) for t in range(min(args.frames, 150))])
    pixels = pixels[np.arange(args.frames) % len(pixels)]
    masks = np.zeros(pixels.shape[:3], np.uint8)
    mh, mw = round(height * args.mask), round(width * args.mask)
    masks[:, (height - mh) // 2:(height - mh) // 2 + mh, (width - mw) // 2:(width - mw) // 2 + mw] = 1
    return pixels, masks


def stage_of(w, args, pixels, masks):
    """(what to call, what goes in) of one stage. Flows are those of the drawn scene with a small wave on them."""
    n, settings = len(pixels), tuple(map(int, args.settings.split(",")))
    x, m = network_input(pixels), mask_input(masks)
    flow = torch.tensor((-2.0, -1.0)).view(1, 2, 1, 1).expand(n - 1, 2, *x.shape[-2:])
    wave = 0.2 * torch.sin(pixel_grid(n - 1, *x.shape[-2:]) / 17)
    f, b = (flow + wave).contiguous(), (wave - flow).contiguous()
    if args.half and args.time in ("completion", "propagation", "generator"):
        x, m, f, b = (v.half() for v in (x, m, f, b))
    local = n - args.refs
    return {
        "raft": lambda: raft_both(w["raft"], x, settings[3]),
        "completion": lambda: completed(w["rfc"], f, b, m),
        "propagation": lambda: propagated(x, m, f, b),
        "generator": lambda: generator(w["gen"], x * (1 - m), m, m, f[:local - 1], b[:local - 1], local),
        "e2e": lambda: inpaint(w, pixels, masks, settings),
    }[args.time], {"frames": pixels, "masks": masks, "flows_f": f.cpu().numpy(), "flows_b": b.cpu().numpy()}


def resident(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key + ":"))


def watched(call):
    """What the call gives, seconds, and resident bytes above those at the start at most."""
    gc.collect()
    on_gpu = torch.get_default_device().type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")
    start, before = resident("VmRSS"), time.perf_counter()
    made = call()
    if on_gpu:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - before
    return made, seconds, resident("VmHWM") - start


def keep(folder, went_in, made):
    os.makedirs(folder, exist_ok=True)
    out = made if isinstance(made, tuple) else (made,)
    for name, a in [*went_in.items(), *((f"out{i}", np.asarray(a)) for i, a in enumerate(out))]:
        np.save(os.path.join(folder, name + ".npy"), a)


def serve_stage(w, args):
    """One turn for each line on stdin, as bench/lab.py asks for them."""
    call, went_in = stage_of(w, args, *drawn(args))
    made = call()
    if args.keep:
        keep(args.keep, went_in, made)
    del made
    print(json.dumps({"event": "ready", "peer": "PyTorch", "version": torch.__version__}), flush=True)
    for _ in sys.stdin:
        _, seconds, above = watched(call)
        print(json.dumps({"event": "turn", "seconds": [seconds], "peak_above_start_bytes": above}), flush=True)
    print(json.dumps({"event": "end", "peak_rss_bytes": resident("VmHWM")}), flush=True)


def time_stage(w, args):
    pixels, masks = drawn(args)
    call, went_in = stage_of(w, args, pixels, masks)
    made = None if args.cold else call()
    rounds, peaks = [], []
    for _ in range(args.rounds):
        made, seconds, above = watched(call)
        rounds.append(round(seconds, 4))
        peaks.append(above)
    if args.keep:
        keep(args.keep, went_in, made)
    print(json.dumps({"stage": args.time, "size": "x".join(map(str, pixels.shape[2:0:-1])), "frames": len(pixels), "refs": args.refs,
                      "threads": args.threads, "settings": args.settings, "seconds": rounds, "peak_above_start_bytes": peaks,
                      "device_bytes": torch.cuda.max_memory_allocated() if args.device == "cuda" else None, "torch": torch.__version__}))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--recipe")
    p.add_argument("--weights")
    p.add_argument("--time", choices=("raft", "completion", "propagation", "generator", "e2e"))
    p.add_argument("--run")
    p.add_argument("--film")
    p.add_argument("--masks")
    p.add_argument("--motion-masks")
    p.add_argument("--settings", default="80,10,10,20")
    p.add_argument("--size", default="432x240")
    p.add_argument("--frames", type=int, default=12)
    p.add_argument("--refs", type=int, default=0)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--cold", action="store_true")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--mask", type=float, default=0.4)
    p.add_argument("--keep")
    p.add_argument("--serve", action="store_true")
    p.add_argument("--device", default="cpu")
    p.add_argument("--half", action="store_true")
    args = p.parse_args()
    if not (args.recipe or args.weights) or not (args.time or args.run and args.film and args.masks):
        p.error("weights, and one of --time and --run with --film and --masks")
    torch.set_num_threads(args.threads)
    torch.set_default_device(args.device)
    w = from_recipe(args.recipe) if args.recipe else from_files(args.weights, args.device)
    w = {m: Weights((k, v.to(args.device)) for k, v in of.items()) for m, of in w.items()}
    if args.half:
        w = halved(w)
    with torch.inference_mode():
        if args.time:
            (serve_stage if args.serve else time_stage)(w, args)
        else:
            moving = np.load(args.motion_masks) if args.motion_masks else None
            np.save(args.run, inpaint(w, np.load(args.film), np.load(args.masks), tuple(map(int, args.settings.split(","))), moving=moving))


if __name__ == "__main__":
    main()
