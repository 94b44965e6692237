"""Outputs and the number of their bits change together (engine/base/versions.h): whoever changes what
is computed raises TGI_BITS, or an interrupted output would be gone on with other bits.

    bits.py TEGULA SOURCE_DIR [--store]     --store prints the table for the number that is there"""
import hashlib
import os
import re
import sys

from crashlib import check, main, picture, upscaler

# What networks give, by the number of bits, the instruction set and the choice of kernels. A new number
# gets new lines, old lines go. Statistics, convolutions both ways and the rearrangement of channels.
KNOWN = {
    (14, 'upscaler', 'portable', 'exact'): '4cf67c7054085ba6',
    (14, 'upscaler', 'portable', 'fast'): '4cf67c7054085ba6',
    (14, 'upscaler', 'avx2', 'exact'): 'bdbfe05e95ae87ff',
    (14, 'upscaler', 'avx2', 'fast'): 'bdbfe05e95ae87ff',
    (14, 'upscaler', 'avx512', 'exact'): 'df87262476b7acb1',
    (14, 'upscaler', 'avx512', 'fast'): 'df87262476b7acb1',
    (14, 'denoiser', 'portable', 'exact'): 'c944094b2fcc91b9',
    (14, 'denoiser', 'portable', 'fast'): '90e49c9b01cc74ec',
    (14, 'denoiser', 'avx2', 'exact'): '32b55ead47ec8d87',
    (14, 'denoiser', 'avx2', 'fast'): 'f95ea288a429f1c9',
    (14, 'denoiser', 'avx512', 'exact'): '8ef2bdd49314bcc2',
    (14, 'denoiser', 'avx512', 'fast'): '069cb9fdbc2b2530',
}


def number(lab):
    with open(os.path.join(lab.source, "engine", "base", "versions.h")) as f:
        return int(re.search(r"#define TGI_BITS (\d+)", f.read()).group(1))


def test(lab, rest):
    image = picture(lab.path("bits.tif"), 150, 130, seed=5)
    nets = {"upscaler": upscaler(lab.path("bits.onnx"), 16), "denoiser": lab.denoiser}
    bits, new, looked = number(lab), {}, 0
    for net, model in nets.items():
        for isa in ("portable", "avx2", "avx512"):
            for how in ("exact", "fast"):
                out = lab.path("bits.npy")
                args = ["run", "-m", model, image, "-o", out, "-y", "--isa", isa, "--ram", "1GiB",
                        "--threads", "1", "--normalize", "zscore"] + (["--exact"] if how == "exact" else [])
                r = lab.run(args)
                if "build has no" in r.err:
                    continue  # not on this machine
                check(r.code == 0, "%s %s: %s" % (net, isa, r))
                with open(out, "rb") as f:
                    new[net, isa, how] = hashlib.sha256(f.read()).hexdigest()[:16]
    if rest == ["--store"]:
        for key, value in new.items():
            print("    (%d, %r, %r, %r): %r," % (bits, *key, value))
        return
    for key, value in new.items():
        check((bits, *key) in KNOWN, "the number of bits is %d: store its table (bits.py --store)" % bits)
        check(KNOWN[bits, *key] == value, "%s gives other bits: raise TGI_BITS in engine/base/versions.h, "
              "then store its table (bits.py --store)" % (key,))
        looked += 1
    check(looked >= 4, "only %d outputs could be looked at" % looked)


if __name__ == "__main__":
    main(test, sys.argv)
