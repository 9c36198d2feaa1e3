// The seed's two hooks in the graph tracker, and the loops that a benchmark times over them.
#include <unistd.h>

#include <array>

#include "region.hpp"

namespace seed {

void track_allocate(const Buffer* buffer) {
    auto* device = dynamic_cast<const Device*>(buffer->device());
    if (device && device->stats_provider()) {
        device->stats_provider()->record_allocation(
            getpid(), buffer->size(), buffer->type(), buffer->device()->id());
    }
}

void track_deallocate(const Buffer* buffer) {
    auto* device = dynamic_cast<const Device*>(buffer->device());
    if (device && device->stats_provider()) {
        device->stats_provider()->record_deallocation(
            getpid(), buffer->size(), buffer->type(), buffer->device()->id());
    }
}

}  // namespace seed

namespace {

constexpr size_t kBuffers = 64;
constexpr uint64_t kSmallest = 2048;

uint64_t size_of(size_t index) { return kSmallest * (1 + index % kBuffers); }

}  // namespace

extern "C" {

// setting: 0 switched off, 1 totals and chip rows only, 2 process rows too.
void* seed_device_create(uint32_t setting, uint32_t rows_before) {
    std::unique_ptr<seed::StatsProvider> provider;
    if (setting != 0) {
        provider = seed::StatsProvider::create(setting == 2, rows_before);
        if (!provider) return nullptr;
    }
    return static_cast<seed::IDevice*>(new seed::Device(0, std::move(provider)));
}

void seed_device_destroy(void* device) { delete static_cast<seed::IDevice*>(device); }

// `pairs` times an allocation and its free, through the seed's call sites.
void seed_record_pairs(void* handle, uint64_t pairs) {
    auto* device = static_cast<seed::IDevice*>(handle);
    std::array<uint64_t, kBuffers> sizes;
    for (size_t i = 0; i < kBuffers; ++i) sizes[i] = size_of(i);
    for (uint64_t i = 0; i < pairs; ++i) {
        seed::Buffer buffer(device, sizes[i % kBuffers], seed::BufferType::Dram);
        seed::track_allocate(&buffer);
        seed::track_deallocate(&buffer);
    }
}

// The same with the pid read once, to show what the seed would cost without its system call.
void seed_record_pairs_known_pid(void* handle, uint64_t pairs) {
    auto* device = dynamic_cast<seed::Device*>(static_cast<seed::IDevice*>(handle));
    seed::StatsProvider* provider = device->stats_provider();
    if (!provider) return;
    const pid_t pid = getpid();
    for (uint64_t i = 0; i < pairs; ++i) {
        const uint64_t size = size_of(i);
        provider->record_allocation(pid, size, seed::BufferType::Dram, device->id());
        provider->record_deallocation(pid, size, seed::BufferType::Dram, device->id());
    }
}

void seed_record_allocation(void* handle, uint64_t size) {
    seed::Buffer buffer(static_cast<seed::IDevice*>(handle), size, seed::BufferType::Dram);
    seed::track_allocate(&buffer);
}

// The region's shared total of DRAM; 0 when switched off.
uint64_t seed_total_bytes(void* handle) {
    auto* device = dynamic_cast<seed::Device*>(static_cast<seed::IDevice*>(handle));
    auto* provider = device->stats_provider();
    return provider ? provider->region().total_dram.load() : 0;
}

// This process's own row, or no row (false).
bool seed_row_bytes(void* handle, uint64_t* bytes, uint32_t* slot) {
    auto* device = dynamic_cast<seed::Device*>(static_cast<seed::IDevice*>(handle));
    auto* provider = device->stats_provider();
    const seed::ProcessStats* row = provider ? provider->row(getpid()) : nullptr;
    if (!row) return false;
    *bytes = row->dram;
    *slot = static_cast<uint32_t>(row - provider->region().processes);
    return true;
}

}  // extern "C"
