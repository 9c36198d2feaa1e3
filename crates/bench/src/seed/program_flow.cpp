// The original proposal's flow, once for each dispatch: describe the program again, hash the description
// with the standard hasher, find the program, copy every core's words into it.
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>

#include "program.hpp"

namespace seed {
namespace {

struct CoreCoord {
    uint32_t x;
    uint32_t y;
};

struct CoreRange {
    CoreCoord start;
    CoreCoord end;
};

using CoreRangeSet = std::vector<CoreRange>;
using Defines = std::vector<std::pair<std::string, std::string>>;
using RuntimeArgs = std::vector<std::pair<CoreCoord, std::vector<uint32_t>>>;

struct ReaderConfig {};
struct WriterConfig {};
struct ComputeConfig {
    uint32_t math_fidelity;
    bool fp32_dest_acc_en;
    bool math_approx_mode;
};

struct KernelDescriptor {
    std::string kernel_source;
    bool source_is_path;
    CoreRangeSet core_ranges;
    std::vector<uint32_t> compile_time_args;
    Defines defines;
    RuntimeArgs runtime_args;
    std::vector<uint32_t> common_runtime_args;
    std::variant<ReaderConfig, WriterConfig, ComputeConfig> config;
};

struct CBFormat {
    uint8_t buffer_index;
    uint32_t data_format;
    uint32_t page_size;
};

struct CBDescriptor {
    uint32_t total_size;
    CoreRangeSet core_ranges;
    std::vector<CBFormat> formats;
};

struct SemaphoreDescriptor {
    uint32_t id;
    CoreRangeSet core_ranges;
    uint32_t initial_value;
};

struct ProgramDescriptor {
    std::vector<KernelDescriptor> kernels;
    std::vector<SemaphoreDescriptor> semaphores;
    std::vector<CBDescriptor> cbs;
};

constexpr const char* kPaths[kKernels] = {
    "ops/cpp/ops/operations/matmul/device/kernels/dataflow/reader.cpp",
    "ops/cpp/ops/operations/matmul/device/kernels/compute/compute.cpp",
    "ops/cpp/ops/operations/matmul/device/kernels/dataflow/writer.cpp",
};
constexpr const char* kDefineNames[kDefines] = {
    "FP32_ACCUMULATE", "FUSE_ACTIVATION", "PACKER_L1_ACC", "REUSE_LEFT", "SKIP_COMPUTE", "TRANSPOSE_RIGHT"};

KernelDescriptor describe_kernel(uint32_t kernel, const Attributes& attributes, const Addresses& at) {
    KernelDescriptor described;
    described.kernel_source = kPaths[kernel];
    described.source_is_path = true;
    described.core_ranges = {{{0, 0}, {kGrid - 1, kGrid - 1}}};
    described.compile_time_args.reserve(kCompileTimeArgs);
    for (uint32_t index = 0; index < kCompileTimeArgs; ++index) {
        described.compile_time_args.push_back(attributes.block_height * index + attributes.inner_block);
    }
    described.defines.reserve(kDefines);
    for (const char* name : kDefineNames) {
        described.defines.emplace_back(name, "1");
    }
    described.runtime_args.reserve(kCores);
    for (uint32_t core = 0; core < kCores; ++core) {
        std::vector<uint32_t> words(kWords);
        fill_words(kernel, core, attributes, at, words.data());
        described.runtime_args.emplace_back(CoreCoord{core % kGrid, core / kGrid}, std::move(words));
    }
    switch (kernel) {
        case 0: described.config = ReaderConfig{}; break;
        case 1: described.config = ComputeConfig{attributes.fidelity, true, false}; break;
        default: described.config = WriterConfig{};
    }
    return described;
}

ProgramDescriptor describe(const Attributes& attributes, const Addresses& at) {
    ProgramDescriptor described;
    described.kernels.reserve(kKernels);
    for (uint32_t kernel = 0; kernel < kKernels; ++kernel) {
        described.kernels.push_back(describe_kernel(kernel, attributes, at));
    }
    const CoreRangeSet all = {{{0, 0}, {kGrid - 1, kGrid - 1}}};
    described.cbs.reserve(kCircularBuffers);
    for (uint32_t index = 0; index < kCircularBuffers; ++index) {
        const uint32_t pages = 2 * attributes.inner_block;
        described.cbs.push_back(
            {pages * kTileBytes, all, {{static_cast<uint8_t>(index), 1, kTileBytes}}});
    }
    described.semaphores.reserve(kSemaphores);
    for (uint32_t id = 0; id < kSemaphores; ++id) {
        described.semaphores.push_back({id, all, 0});
    }
    return described;
}

// Boost's combination of hashes, with the standard hash of each value.
template <typename Value>
void combine(size_t& seed, const Value& value) {
    seed ^= std::hash<Value>{}(value) + 0x9e3779b9 + (seed << 6) + (seed >> 2);
}

void combine_ranges(size_t& seed, const CoreRangeSet& ranges) {
    for (const CoreRange& range : ranges) {
        combine(seed, range.start.x);
        combine(seed, range.start.y);
        combine(seed, range.end.x);
        combine(seed, range.end.y);
    }
}

size_t hash(const ProgramDescriptor& described) {
    size_t seed = 0;
    for (const KernelDescriptor& kernel : described.kernels) {
        combine(seed, kernel.kernel_source);
        combine(seed, kernel.source_is_path);
        combine_ranges(seed, kernel.core_ranges);
        for (uint32_t argument : kernel.compile_time_args) {
            combine(seed, argument);
        }
        for (const auto& [name, value] : kernel.defines) {
            combine(seed, name);
            combine(seed, value);
        }
        combine(seed, kernel.common_runtime_args.size());
        combine(seed, kernel.runtime_args.size());
        combine(seed, kernel.config.index());
        if (const auto* compute = std::get_if<ComputeConfig>(&kernel.config)) {
            combine(seed, compute->math_fidelity);
            combine(seed, compute->fp32_dest_acc_en);
            combine(seed, compute->math_approx_mode);
        }
    }
    for (const CBDescriptor& cb : described.cbs) {
        combine_ranges(seed, cb.core_ranges);
        for (const CBFormat& format : cb.formats) {
            combine(seed, format.buffer_index);
            combine(seed, format.data_format);
            combine(seed, format.page_size);
        }
    }
    for (const SemaphoreDescriptor& semaphore : described.semaphores) {
        combine_ranges(seed, semaphore.core_ranges);
        combine(seed, semaphore.initial_value);
    }
    return seed;
}

Program compile(const ProgramDescriptor& described) {
    Program program;
    for (uint32_t kernel = 0; kernel < kKernels; ++kernel) {
        program.core_words[kernel].resize(kGrid, std::vector<std::vector<uint32_t>>(kGrid));
        for (const auto& [core, words] : described.kernels[kernel].runtime_args) {
            program.words_of(kernel, core.x, core.y) = words;
        }
    }
    return program;
}

// 192 copies of 48 bytes.
void update(Program& program, const ProgramDescriptor& described) {
    for (uint32_t kernel = 0; kernel < described.kernels.size(); ++kernel) {
        for (const auto& [core, words] : described.kernels[kernel].runtime_args) {
            std::memcpy(
                program.words_of(kernel, core.x, core.y).data(), words.data(), words.size() * sizeof(uint32_t));
        }
    }
}

struct Flow {
    std::unordered_map<size_t, Program> programs;
};

}  // namespace
}  // namespace seed

extern "C" {

void* seed_flow_create() { return new seed::Flow(); }

void seed_flow_destroy(void* flow) { delete static_cast<seed::Flow*>(flow); }

// Dispatches the program `count` times, with other addresses each time, and copies out its words after
// the last one. Returns how many programs there are.
uint64_t seed_flow_dispatch(
    void* handle, const seed::Attributes* attributes, const seed::Addresses* at, uint64_t count, uint32_t* words) {
    auto& programs = static_cast<seed::Flow*>(handle)->programs;
    seed::Program* last = nullptr;
    for (uint64_t dispatch = 0; dispatch < count; ++dispatch) {
        const seed::ProgramDescriptor described = seed::describe(*attributes, at->after(dispatch));
        const size_t key = seed::hash(described);
        auto found = programs.find(key);
        if (found == programs.end()) {
            found = programs.emplace(key, seed::compile(described)).first;
        } else {
            seed::update(found->second, described);
        }
        last = &found->second;
    }
    if (last != nullptr && words != nullptr) {
        seed::copy_words(*last, words);
    }
    return programs.size();
}
}
