// What the kernels of precision="accurate" multiply in place of float32 numbers.
#pragma once

namespace fl {

// The terms whose sum stands for a scaled number: two of fp16, of whose products three are summed, or three of bf16 and
// six. none: the kernel multiplies the numbers themselves.
enum class Terms { none, fp16x2, bf16x6 };
constexpr int term_count(Terms terms) { return terms == Terms::none ? 0 : terms == Terms::fp16x2 ? 2 : 3; }

// Products by mma.sync: which terms, and how many k an instruction takes where that is not 16.
enum class MmaProduct { fp16x2, bf16x6, fp16x2_k8 };

}  // namespace fl
