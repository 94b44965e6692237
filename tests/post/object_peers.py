"""Objects equal to those of the users' own programs, stardist 0.9.1 and cellpose 4.2.1.1, on what these make of
drawn labels.

    object_peers.py POST_TOOL [stardist|cellpose]
    object_peers.py --store POST_TOOL      writes golden/*.npy, for object_golden.py

Each case is made three times: at once, and in small bands with rows painted in other ones; the three have to be
equal in each pixel. Of the objects of both sides 99 % have to match with IoU >= 0.99; where no two scores are equal
(the packages' order of equal ones is that of a sort that is not stable) all pixels and numbers are equal.
TG_PEER_PYTHON names a Python that has the packages; without them it is skipped."""
import os
import subprocess
import sys
import tempfile
import time
import types
from importlib import metadata
from importlib.util import find_spec

PINNED = {"stardist": "0.9.1", "cellpose": "4.2.1.1"}


def lacking(which, why):
    other = os.environ.get("TG_PEER_PYTHON")
    if other and "TG_PEER_TRIED" not in os.environ:
        os.environ["TG_PEER_TRIED"] = "1"
        os.execv(other, [other, "-B", "-W", "ignore"] + sys.argv)
    print("skipped: %s %s is not there (%s)" % (which, PINNED[which], why))
    sys.exit(77)


def package(which):
    """The package, in the version that these tests are about."""
    try:
        if metadata.version(which) != PINNED[which]:
            lacking(which, "found " + metadata.version(which))
    except metadata.PackageNotFoundError:
        lacking(which, "no such package")
    try:
        if which == "stardist":
            if not find_spec("pkg_resources"):  # newer setuptools are without; stardist asks it for one version
                stand_in = types.ModuleType("pkg_resources")
                stand_in.get_distribution = lambda name: types.SimpleNamespace(version="0")
                sys.modules["pkg_resources"] = stand_in
            import stardist.nms
            import stardist.geometry
            return stardist
        import cellpose.dynamics
        return cellpose
    except ImportError as missing:
        lacking(which, missing)


def ours(tool, which, planes, settings, folder):
    import numpy
    given, out = os.path.join(folder, "planes.npy"), os.path.join(folder, "labels.npy")
    numpy.save(given, numpy.ascontiguousarray(planes, numpy.float32))
    done = subprocess.run([tool, which, given, out] + settings, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        sys.exit("%s %s: exit %d: %s" % (which, settings, done.returncode, done.stderr))
    return numpy.load(out).astype(numpy.int64)


def matched(a, b):
    """Objects of a, of b, and of a that are in b with IoU >= 0.99."""
    import numpy
    both = numpy.zeros((int(a.max()) + 1, int(b.max()) + 1), numpy.int64)
    numpy.add.at(both, (a.ravel(), b.ravel()), 1)
    in_a, in_b, common = both.sum(1)[1:], both.sum(0)[1:], both[1:, 1:]
    if not common.size:
        return len(in_a), len(in_b), 0
    iou = common / numpy.maximum(1, in_a[:, None] + in_b[None] - common)
    return int((in_a > 0).sum()), int((in_b > 0).sum()), int((iou.max(1) >= 0.99).sum())


def check(label, theirs, made, exact, seconds, least):
    import numpy
    first = made[0]
    for other in made[1:]:
        if not numpy.array_equal(first, other):
            sys.exit("%s: bands change %d pixels" % (label, numpy.count_nonzero(first != other)))
    theirs = theirs.astype(numpy.int64)
    a, b, same = matched(theirs, first)
    pixels = numpy.count_nonzero(theirs != first)
    print("%s: %d objects of theirs (%.1f s), %d of ours, %d match; %d pixels differ"
          % (label, a, seconds, b, same, pixels), flush=True)
    if a < least:
        sys.exit("%s: only %d objects: this says nothing" % (label, a))
    if same < 0.99 * max(a, b) or (exact and pixels):
        sys.exit("%s: not equal" % label)


def star_labels(stardist, prob, dist, shape, grid, nms, stable):
    """As StarDist2D does it; `stable`: equal probabilities in raster order."""
    import numpy
    suppress = stardist.nms
    if stable:
        mask = suppress._ind_prob_thresh(prob, 0.5, 2)
        points, d, score = numpy.stack(numpy.where(mask), 1) * grid, dist[mask], prob[mask]
        order = numpy.argsort(-score, kind="stable")
        points, d, score = points[order], d[order], score[order]
        kept = suppress.non_maximum_suppression_inds(d, points.astype(numpy.int32), score, thresh=nms, verbose=0)
        points, d, score = points[kept], d[kept], score[kept]
    else:
        points, score, d = suppress.non_maximum_suppression(dist, prob, grid=(grid, grid), nms_thresh=nms,
                                                            prob_thresh=0.5)
    return stardist.geometry.polygons_to_label(d, points, shape=shape, prob=score)


# height, width, blobs, radii, rays, grid, overlap, noise, no two equal
STARS = [(210, 233, 40, 8, 16, 32, 1, 0.4, 0.3, True), (210, 233, 40, 8, 16, 32, 2, 0.4, 0.3, True),
         (301, 333, 40, 14, 30, 32, 4, 0.3, 0.3, True), (210, 233, 40, 8, 16, 32, 1, 0.4, 0.3, False),
         (150, 150, 60, 3, 6, 64, 1, 0.4, 1.0, True), (150, 150, 30, 3, 20, 24, 2, 0.5, 1.0, True)]


def compare_stardist(tool, folder):
    stardist = package("stardist")
    from stardist.utils import edt_prob
    import numpy
    import object_cases
    for i, (height, width, count, r_min, r_max, rays, grid, nms, noise, distinct) in enumerate(STARS):
        labels = object_cases.blobs(height, width, count, r_min, r_max, i)
        prob, dist = object_cases.star_planes(stardist.geometry.star_dist, edt_prob, labels, rays, grid, noise,
                                              distinct, i)
        begin = time.time()
        theirs = star_labels(stardist, prob, dist, labels.shape, grid, nms, not distinct)
        seconds = time.time() - begin
        planes = numpy.concatenate([prob[None], numpy.moveaxis(dist, -1, 0)])
        settings = ["nms=%g" % nms, "grid=%d" % grid, "height=%d" % height, "width=%d" % width]
        made = [ours(tool, "stardist", planes, settings + more, folder)
                for more in (["band=100000", "paint=100000"], [], ["band=7", "paint=13"], ["band=1", "paint=1"])]
        check("stardist, grid %d, %d rays, noise %g%s" % (grid, rays, noise, "" if distinct else ", equal ones"),
              theirs, made, True, seconds, count // 2)


# height, width, blobs, radii, noise, wave, steps, flow threshold, smallest, cell threshold, fewest objects
CELLS = [(170, 190, 25, 8, 16, 0, 0, 200, 0.4, 15, 0, 20), (170, 190, 25, 8, 16, 0.35, 0, 200, 0.5, 15, 0, 4),
         (170, 190, 25, 8, 16, 0.2, 0, 60, 0.2, 0, 0, 4), (160, 190, 25, 6, 20, 1, 0, 200, 0, 15, 0, 30),
         (160, 190, 25, 6, 20, 1, 0, 200, 0, 0, -1, 30), (160, 133, 10, 20, 40, 0.1, 0.3, 200, 0.5, 15, 0, 3)]


def compare_cellpose(tool, folder):
    cellpose = package("cellpose")
    import object_cases
    import torch
    cpu = torch.device("cpu")
    for i, (height, width, count, r_min, r_max, noise, wave, niter, flow, least, cell, fewest) in enumerate(CELLS):
        labels = object_cases.blobs(height, width, count, r_min, r_max, i)
        planes = object_cases.cell_planes(cellpose.dynamics.labels_to_flows([labels], device=cpu)[0], noise, wave, i)
        begin = time.time()
        theirs = cellpose.dynamics.resize_and_compute_masks(
            planes[:2], planes[2], niter=niter, cellprob_threshold=cell, flow_threshold=flow, min_size=least,
            device=cpu)
        seconds = time.time() - begin
        settings = ["niter=%d" % niter, "flow=%g" % flow, "min=%d" % least, "cell=%g" % cell]
        made = [ours(tool, "cellpose", planes, settings + more, folder)
                for more in (["band=100000"], ["threads=2", "scratch=1"], ["band=5", "margin=3"])]
        check("cellpose, noise %g, wave %g, flow threshold %g, from %d pixels" % (noise, wave, flow, least),
              theirs, made, False, seconds, fewest)


def store(tool):
    """Planes of whole numbers (theirs are these divided), and the labels that the packages make of them."""
    import numpy
    import object_cases
    golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")
    os.makedirs(golden, exist_ok=True)
    stardist, cellpose = package("stardist"), package("cellpose")
    from stardist.utils import edt_prob
    import torch
    labels = object_cases.blobs(72, 80, 16, 5, 10, 3)
    prob, dist = object_cases.star_planes(stardist.geometry.star_dist, edt_prob, labels, 8, 2, 0.4, False, 3)
    whole = numpy.concatenate([numpy.round(255 * prob)[None], numpy.moveaxis(numpy.clip(numpy.round(8 * dist), 1, 255), -1, 0)])
    whole = whole.astype(numpy.uint8)
    prob, dist = whole[0].astype(numpy.float32) / 255, numpy.moveaxis(whole[1:], 0, -1).astype(numpy.float32) / 8
    theirs = star_labels(stardist, prob, dist, labels.shape, 2, 0.4, True)
    numpy.save(os.path.join(golden, "stardist_planes.npy"), whole)
    numpy.save(os.path.join(golden, "stardist_labels.npy"), theirs.astype(numpy.uint8))
    labels = object_cases.blobs(72, 80, 16, 5, 10, 4)
    planes = object_cases.cell_planes(cellpose.dynamics.labels_to_flows([labels], device=torch.device("cpu"))[0], 0.15,
                                      0.1, 4)
    whole = numpy.clip(numpy.round(planes * 12), -127, 127).astype(numpy.int8)
    planes = whole.astype(numpy.float32) / 12
    theirs = cellpose.dynamics.resize_and_compute_masks(planes[:2], planes[2], min_size=15, device=torch.device("cpu"))
    numpy.save(os.path.join(golden, "cellpose_planes.npy"), whole)
    numpy.save(os.path.join(golden, "cellpose_labels.npy"), theirs.astype(numpy.uint8))


def main(arguments):
    if arguments[0] == "--store":
        return store(arguments[1])
    with tempfile.TemporaryDirectory(prefix="tegula-objects-") as folder:
        if "stardist" in arguments:
            compare_stardist(arguments[0], folder)
        if "cellpose" in arguments:
            compare_cellpose(arguments[0], folder)


if __name__ == "__main__":
    main(sys.argv[1:])
