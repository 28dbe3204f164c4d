// Which calls the kernels of precision="accurate" can compute, and what they are expected to take, in microseconds.
#pragma once

#include "core/problem.h"
#include "cost/coefficients.h"
#include "plan/prepacked_operand.h"
#include "plan/terms.h"

namespace fl {

const char* accurate_only(const SgemmArgs& p);
const char* accurate_in_16_bits(const SgemmArgs& p);  // or in float32, as accurate_only
const char* accurate_on_the_cpu(const SgemmArgs& p);

// Times of the split pass: small_split_us at least where one block holds a line, of 512 numbers or more; piece_us for
// each piece of one line, one after the other, and segments_us for a second launch; split_fs for each number, or
// split_in_pieces_fs. Then launches (more with the kernels of the fallback), the product at product_tensor_ps for each
// FMA of two terms on a multiprocessor, output_fs for each output, and more where beta or the layout of C make writing
// it slow. What lasts long runs at the power limit: `hidden` of the product is saved, up to most_hidden_us. Where terms
// do not fit: no_terms_us, and no_terms_ps for each FMA of a multiprocessor, with some more for each output. bf16x6
// takes `times` as long as fp16x2 would, and more_us.
FL_COEFFICIENTS(WgmmaCost, small_split_us, split_fs, split_in_pieces_fs, piece_us, segments_us, launches_us,
                launches_with_fallback_us, split_k_us, product_tensor_ps, output_fs, beta_fs, direct_store_fs, hidden,
                most_hidden_us, no_terms_us, no_terms_ps, times, more_us);
double wgmma_us(const SgemmArgs& p, const DeviceSpec& device, const WgmmaCost& cost);
double saved_by_prepacked_us(const SgemmArgs& p, ReadySides ready, const WgmmaCost& cost);

// The same of products by mma.sync, and unaligned_output_fs for each output of rows that are not aligned.
FL_COEFFICIENTS(MmaCost, small_split_us, split_fs, split_in_pieces_fs, piece_us, segments_us, launches_us,
                launches_with_fallback_us, split_k_us, product_tensor_ps, output_fs, unaligned_output_fs, no_terms_us,
                no_terms_ps);
template <MmaProduct PRODUCT>
double mma_us(const SgemmArgs& p, const DeviceSpec& device, const MmaCost& cost);
double saved_by_prepacked_us(const SgemmArgs& p, ReadySides ready, const MmaCost& cost);

}  // namespace fl
