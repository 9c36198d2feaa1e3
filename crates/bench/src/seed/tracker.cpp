// The seed's address tracking (its socket design) in front of its region (its shared-memory design):
// one map under one lock, per-device atomics, then the region's record.
#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "region.hpp"

namespace seed {
namespace {

constexpr int kDevices = 8;
constexpr uint64_t kFirstAddress = 0x10000000;
constexpr uint64_t kStride = 2048;

struct DeviceStats {
    std::atomic<uint64_t> dram_allocated{0};
    std::atomic<uint64_t> l1_allocated{0};
};

struct Allocation {
    int device_id;
    uint64_t size;
    BufferType type;
};

class Tracker {
public:
    explicit Tracker(IDevice* device) : device_(device) {}

    void allocate(uint64_t address, uint64_t size, BufferType type) {
        track_allocation(static_cast<int>(device_->id()), size, type, address);
        Buffer buffer(device_, size, type);
        track_allocate(&buffer);
    }

    void deallocate(uint64_t address, uint64_t size, BufferType type) {
        track_deallocation(address);
        Buffer buffer(device_, size, type);
        track_deallocate(&buffer);
    }

    uint64_t live() {
        std::lock_guard<std::mutex> guard(mutex_);
        return allocations_.size();
    }

    uint64_t dram_bytes() const { return device_stats_[0].dram_allocated.load(); }

private:
    std::atomic<uint64_t>& counter(int device_id, BufferType type) {
        DeviceStats& stats = device_stats_[device_id];
        return type == BufferType::Dram ? stats.dram_allocated : stats.l1_allocated;
    }

    void track_allocation(int device_id, uint64_t size, BufferType type, uint64_t address) {
        counter(device_id, type) += size;
        std::lock_guard<std::mutex> guard(mutex_);
        allocations_[address] = {device_id, size, type};
    }

    void track_deallocation(uint64_t address) {
        std::lock_guard<std::mutex> guard(mutex_);
        auto found = allocations_.find(address);
        if (found != allocations_.end()) {
            counter(found->second.device_id, found->second.type) -= found->second.size;
            allocations_.erase(found);
        }
    }

    IDevice* device_;
    std::array<DeviceStats, kDevices> device_stats_;
    std::mutex mutex_;
    std::unordered_map<uint64_t, Allocation> allocations_;
};

uint64_t address_of(uint32_t block) { return kFirstAddress + block * kStride; }
uint64_t size_of(uint32_t block) { return kStride * (1 + block % 64); }

}  // namespace
}  // namespace seed

extern "C" {

void* seed_tracker_create(void* device) { return new seed::Tracker(static_cast<seed::IDevice*>(device)); }
void seed_tracker_destroy(void* tracker) { delete static_cast<seed::Tracker*>(tracker); }

void seed_tracker_fill(void* handle, const uint32_t* blocks, uint64_t count) {
    auto* tracker = static_cast<seed::Tracker*>(handle);
    for (uint64_t i = 0; i < count; ++i) {
        tracker->allocate(seed::address_of(blocks[i]), seed::size_of(blocks[i]), seed::BufferType::Dram);
    }
}

// Steps are (freed block, allocated block), each a 32-bit number.
void seed_tracker_replay(void* handle, const uint32_t* steps, uint64_t count) {
    auto* tracker = static_cast<seed::Tracker*>(handle);
    for (uint64_t i = 0; i < count; ++i) {
        const uint32_t freed = steps[2 * i];
        const uint32_t taken = steps[2 * i + 1];
        tracker->deallocate(seed::address_of(freed), seed::size_of(freed), seed::BufferType::Dram);
        tracker->allocate(seed::address_of(taken), seed::size_of(taken), seed::BufferType::Dram);
    }
}

uint64_t seed_tracker_live(void* tracker) { return static_cast<seed::Tracker*>(tracker)->live(); }
uint64_t seed_tracker_dram_bytes(void* tracker) { return static_cast<seed::Tracker*>(tracker)->dram_bytes(); }

}  // extern "C"
