// The same program with a key and an update by hand: a quick hash of exactly what the program depends on, a
// look-up by it, and stores. Nothing is compared and nothing is locked. The stores come in two ways: as
// authors write them today, through the program's own words for each kernel and core, which are vectors in
// vectors; and idealised, through pointers to each core's words that were kept since the program was made.
#include <unordered_map>

#include "program.hpp"

namespace seed {
namespace {

// What the program depends on of an operand, laid out as `program/shape.rs` has it.
struct TensorSpec {
    uint32_t shape[4];
    uint32_t data_format;
    uint32_t layout;
    uint32_t tile;
    uint32_t memory;
};

// Where a core's words are.
struct CoreHandles {
    uint32_t* reader;
    uint32_t* writer;
};

struct CoreCoord {
    uint32_t x;
    uint32_t y;
};

// What an author keeps beside the program for its update.
struct Cached {
    Program program;
    std::vector<CoreCoord> cores;
    std::vector<CoreHandles> handles;
};

struct ByHand {
    std::unordered_map<uint64_t, Cached> programs;
};

// The mixing step of FxHash, two words at a time.
void mix(uint64_t& hash, uint32_t low, uint32_t high) {
    const uint64_t word = low | static_cast<uint64_t>(high) << 32;
    hash = ((hash << 5 | hash >> 59) ^ word) * 0x517cc1b727220a95;
}

uint64_t compute_program_hash(const Attributes& attributes, const TensorSpec* operands, uint32_t count) {
    uint64_t hash = 0x6d61746d756c;  // the operation
    mix(hash, attributes.block_height, attributes.block_width);
    mix(hash, attributes.inner_block, attributes.tiles_per_core);
    mix(hash, attributes.transpose_a, attributes.transpose_b);
    mix(hash, attributes.fidelity, attributes.activation);
    for (uint32_t index = 0; index < count; ++index) {
        const TensorSpec& spec = operands[index];
        mix(hash, spec.shape[0], spec.shape[1]);
        mix(hash, spec.shape[2], spec.shape[3]);
        mix(hash, spec.data_format, spec.layout);
        mix(hash, spec.tile, spec.memory);
    }
    return hash;
}

Cached create(const Attributes& attributes, const Addresses& at) {
    Cached cached;
    for (uint32_t kernel = 0; kernel < kKernels; ++kernel) {
        auto& columns = cached.program.core_words[kernel];
        columns.resize(kGrid, std::vector<std::vector<uint32_t>>(kGrid));
        for (uint32_t core = 0; core < kCores; ++core) {
            auto& words = columns[core % kGrid][core / kGrid];
            words.resize(kWords);
            fill_words(kernel, core, attributes, at, words.data());
        }
    }
    for (uint32_t core = 0; core < kCores; ++core) {
        const uint32_t x = core % kGrid;
        const uint32_t y = core / kGrid;
        cached.cores.push_back({x, y});
        cached.handles.push_back(
            {cached.program.words_of(0, x, y).data(), cached.program.words_of(2, x, y).data()});
    }
    return cached;
}

// As authors write it: the words of both kernels once, then each core's by its coordinates.
void override_runtime_arguments(Cached& cached, const Addresses& at) {
    auto& reader_words = cached.program.core_words[0];
    auto& writer_words = cached.program.core_words[2];
    for (const CoreCoord& core : cached.cores) {
        auto& reader = reader_words[core.x][core.y];
        reader[0] = at.a;
        reader[1] = at.b;
        auto& writer = writer_words[core.x][core.y];
        writer[0] = at.out;
    }
}

// Idealised: where each core's words are was found when the program was made.
void override_through_handles(Cached& cached, const Addresses& at) {
    for (const CoreHandles& core : cached.handles) {
        core.reader[0] = at.a;
        core.reader[1] = at.b;
        core.writer[0] = at.out;
    }
}

}  // namespace
}  // namespace seed

extern "C" {

void* seed_by_hand_create() { return new seed::ByHand(); }

void seed_by_hand_destroy(void* by_hand) { delete static_cast<seed::ByHand*>(by_hand); }

// As `seed_flow_dispatch`, with what the key is made of; `through_handles` chooses the idealised update.
uint64_t seed_by_hand_dispatch(
    void* handle, const seed::Attributes* attributes, const seed::TensorSpec* operands, uint32_t operand_count,
    const seed::Addresses* at, uint64_t count, bool through_handles, uint32_t* words) {
    auto& programs = static_cast<seed::ByHand*>(handle)->programs;
    seed::Cached* last = nullptr;
    for (uint64_t dispatch = 0; dispatch < count; ++dispatch) {
        const seed::Addresses now = at->after(dispatch);
        const uint64_t key = seed::compute_program_hash(*attributes, operands, operand_count);
        auto found = programs.find(key);
        if (found == programs.end()) {
            found = programs.emplace(key, seed::create(*attributes, now)).first;
        } else if (through_handles) {
            seed::override_through_handles(found->second, now);
        } else {
            seed::override_runtime_arguments(found->second, now);
        }
        last = &found->second;
    }
    if (last != nullptr && words != nullptr) {
        seed::copy_words(last->program, words);
    }
    return programs.size();
}
}
