"""Drawn label images, and the planes that networks trained on them would give: for object_peers.py."""
import numpy


def blobs(height, width, count, r_min, r_max, seed):
    """Numbered blobs with wobbling edges; where two overlap the first one stays."""
    rng = numpy.random.default_rng(seed)
    labels = numpy.zeros((height, width), numpy.int32)
    n = 0
    for _ in range(6 * count):
        if n == count:
            break
        cy, cx, r = rng.uniform(0, height), rng.uniform(0, width), rng.uniform(r_min, r_max)
        phases = rng.uniform(0, 6, 3)
        reach = int(1.6 * r) + 2
        y0, y1 = max(0, int(cy) - reach), min(height, int(cy) + reach + 1)
        x0, x1 = max(0, int(cx) - reach), min(width, int(cx) + reach + 1)
        dy, dx = numpy.mgrid[y0:y1, x0:x1] - numpy.array([cy, cx]).reshape(2, 1, 1)
        turn = numpy.arctan2(dy, dx)
        edge = r * (1 + 0.15 * numpy.sin(2 * turn + phases[0]) + 0.08 * numpy.sin(3 * turn + phases[1])
                    + 0.05 * numpy.sin(5 * turn + phases[2]))
        inside = numpy.hypot(dy, dx) < edge
        part = labels[y0:y1, x0:x1]
        if inside.sum() < 20 or (part[inside] > 0).mean() > 0.15:
            continue
        n += 1
        part[inside & (part == 0)] = n
    return labels


def star_planes(star_dist, edt_prob, labels, rays, grid, noise, distinct, seed):
    """Probabilities, and distances (rows, columns, rays) of stardist with noise. `distinct`: no two
    probabilities are equal; otherwise there are nine."""
    rng = numpy.random.default_rng(seed)
    dist = star_dist(labels, rays, grid=(grid, grid))
    dist = dist * (1 + rng.normal(0, noise / 5, dist.shape)) + rng.normal(0, noise, dist.shape)
    prob = edt_prob(labels)[::grid, ::grid]
    if not distinct:
        return (numpy.round(8 * prob) / 8).astype(numpy.float32), numpy.maximum(1e-3, dist).astype(numpy.float32)
    order = numpy.argsort(prob + rng.uniform(0, 0.2, prob.shape) * (prob > 0), axis=None, kind="stable")
    ranks = numpy.empty(prob.size)
    ranks[order] = numpy.arange(prob.size)
    prob = (ranks / prob.size).reshape(prob.shape) * (prob > 0)
    return prob.astype(numpy.float32), numpy.maximum(1e-3, dist).astype(numpy.float32)


def cell_planes(flows, noise, wave, seed):
    """Flow down and to the right and certainty, from what cellpose makes of labels, with noise and a wave."""
    rng = numpy.random.default_rng(seed)
    height, width = flows.shape[1:]
    flow = flows[-2:] + rng.normal(0, noise, (2, height, width))
    flow += wave * numpy.sin(numpy.mgrid[0:height, 0:width] / 7.0)
    sure = (flows[1] > 0) * 8 - 4 + rng.normal(0, 1.5, (height, width))
    return numpy.concatenate([5 * flow, sure[None]]).astype(numpy.float32)
