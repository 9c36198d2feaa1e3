// The seed's version 1 memory region and the objects around it, as its text describes them.
// Rebuilt only to be measured: its races are kept on purpose, since they are part of what it is.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace seed {

enum class BufferType : uint8_t { Dram = 0, L1 = 1, System = 2, L1Small = 3, Trace = 4, Cb = 5, Kernel = 6 };

constexpr uint32_t kMaxProcesses = 64;
constexpr uint32_t kMaxChips = 16;

struct ChipStats {
    uint32_t chip_id;  // 0: unused, except in the first entry
    uint32_t is_remote;
    std::atomic<uint64_t> dram, l1, l1_small, trace, cb, kernel;
};

struct ProcessStats {
    pid_t pid;  // 0: unused
    uint64_t dram, l1, l1_small, trace, cb, kernel;
    uint64_t last_update_timestamp;
    char process_name[64];
};

struct alignas(64) Region {
    uint32_t version;
    uint32_t num_active_processes;
    uint64_t last_update_timestamp;
    std::atomic<uint32_t> reference_count;
    uint64_t board_serial;
    uint64_t asic_id;
    int32_t device_id;
    std::atomic<uint64_t> total_dram, total_l1, total_l1_small, total_trace, total_cb, total_kernel;
    ChipStats chips[kMaxChips];
    ProcessStats processes[kMaxProcesses];
    uint8_t padding[64];
};

static_assert(sizeof(ChipStats) == 56 && sizeof(ProcessStats) == 128);
static_assert(offsetof(Region, chips) == 96 && offsetof(Region, processes) == 992);
static_assert(offsetof(Region, padding) == 9184 && sizeof(Region) == 9280);

// Owns one mapping of a region file and writes to it.
class StatsProvider {
public:
    // `rows_before` rows are filled with pids that no process can have, so that this process gets
    // the row after them. Null when the file cannot be made or mapped.
    static std::unique_ptr<StatsProvider> create(bool per_pid, uint32_t rows_before);
    ~StatsProvider();

    void record_allocation(pid_t pid, uint64_t size, BufferType type, uint32_t chip_id);
    void record_deallocation(pid_t pid, uint64_t size, BufferType type, uint32_t chip_id);

    const Region& region() const { return *region_; }
    const ProcessStats* row(pid_t pid) const;

private:
    StatsProvider(Region* region, bool per_pid) : region_(region), per_pid_(per_pid) {}
    ChipStats* find_or_create_chip(uint32_t chip_id);
    ProcessStats* find_or_create_row(pid_t pid);

    Region* region_;
    bool per_pid_;
};

// The seed reaches the provider through the abstract device and a dynamic_cast.
class IDevice {
public:
    virtual ~IDevice() = default;
    virtual uint32_t id() const = 0;
};

class Device final : public IDevice {
public:
    Device(uint32_t id, std::unique_ptr<StatsProvider> provider) : id_(id), provider_(std::move(provider)) {}
    uint32_t id() const override { return id_; }
    StatsProvider* stats_provider() const { return provider_.get(); }

private:
    uint32_t id_;
    std::unique_ptr<StatsProvider> provider_;
};

class Buffer {
public:
    Buffer(IDevice* device, uint64_t size, BufferType type) : device_(device), size_(size), type_(type) {}
    IDevice* device() const { return device_; }
    uint64_t size() const { return size_; }
    BufferType type() const { return type_; }

private:
    IDevice* device_;
    uint64_t size_;
    BufferType type_;
};

// The call sites, in their own file as in the original: nothing of the provider is inlined there.
void track_allocate(const Buffer* buffer);
void track_deallocate(const Buffer* buffer);

}  // namespace seed
