/* versions.h - the two numbers that say whether an interrupted output may be gone on with.
 *
 * A version string does not: two builds of one version may compute other bits, and an output
 * whose halves come from both is the result of neither. So whoever changes what is computed
 * raises the first number, and whoever changes what stands in OUT.journal raises the second, in
 * the same commit (CONTRIBUTING.md, "Bits and journals"). */
#ifndef TGI_VERSIONS_H
#define TGI_VERSIONS_H

/* Raised by every change after which some job has other bits: kernels, the order of sums, the
 * choice of kernels, rewrites, statistics, conversions, codecs of outputs.
 * tests/crash/bits.py holds checksums of outputs and this number together. */
#define TGI_BITS 14

/* Raised by every change of OUT.journal (journal_file.h), of what its texts mean, of where
 * tiles lie in OUT.partial, or of OUT.stages (stage_log.h, stage_state.h); it is the number in the
 * first bytes of both files. test_journal_format holds checksums of the bytes and this number
 * together. */
#define TGI_JOURNAL_FORMAT 11

#endif
