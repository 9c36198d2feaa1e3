// The program that the program benchmark describes, as the original design would hold it: 3 kernels
// with 20 compile-time arguments and 6 defines, 8 circular buffers, 4 semaphores, and 12 words for each
// of 64 cores and each kernel. `program/shape.rs` describes the same one with the same words.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace seed {

constexpr uint32_t kKernels = 3;
constexpr uint32_t kGrid = 8;
constexpr uint32_t kCores = kGrid * kGrid;
constexpr uint32_t kWords = 12;
constexpr uint32_t kCompileTimeArgs = 20;
constexpr uint32_t kDefines = 6;
constexpr uint32_t kCircularBuffers = 8;
constexpr uint32_t kSemaphores = 4;
constexpr uint32_t kTileBytes = 2048;

// What the operation is told beside its operands, laid out as `program/shape.rs` has it.
struct Attributes {
    uint32_t block_height;
    uint32_t block_width;
    uint32_t inner_block;
    uint32_t tiles_per_core;
    uint32_t transpose_a;
    uint32_t transpose_b;
    uint32_t fidelity;
    uint32_t activation;
};

// The addresses of a dispatch: both inputs and the output.
struct Addresses {
    uint32_t a;
    uint32_t b;
    uint32_t out;

    Addresses after(uint64_t dispatches) const {
        const uint32_t moved = static_cast<uint32_t>(dispatches) * kTileBytes;
        return {a + moved, b + moved, out + moved};
    }
};

// The words of one core for one kernel.
inline void fill_words(
    uint32_t kernel, uint32_t core, const Attributes& attributes, const Addresses& at, uint32_t* words) {
    const uint32_t first = core * attributes.tiles_per_core;
    words[0] = kernel == 0 ? at.a : kernel == 2 ? at.out : first;
    words[1] = kernel == 0 ? at.b : core;
    for (uint32_t index = 2; index < kWords; ++index) {
        words[index] = first + index;
    }
}

// A compiled program: for each kernel and core a list of words of its own, as tt-metal keeps them.
struct Program {
    std::array<std::vector<std::vector<std::vector<uint32_t>>>, kKernels> core_words;

    // The words of a core, reached as upstream's `GetRuntimeArgs(program, kernel, core)` does.
    std::vector<uint32_t>& words_of(uint32_t kernel, uint32_t x, uint32_t y) {
        return core_words[kernel][x][y];
    }
};

// Copies all words, kernel after kernel, row after row.
inline void copy_words(Program& program, uint32_t* out) {
    for (uint32_t kernel = 0; kernel < kKernels; ++kernel) {
        for (uint32_t core = 0; core < kCores; ++core) {
            for (uint32_t word : program.words_of(kernel, core % kGrid, core / kGrid)) {
                *out++ = word;
            }
        }
    }
}

}  // namespace seed
