// As much of tt-metal (2025) as docs/integrate.md names.
#pragma once
#include <telltale.h>

#include <cstdint>

namespace tt {
enum class ARCH { WORMHOLE_B0, BLACKHOLE };
}

struct TTDevice {
    std::uint64_t get_board_id() const { return 1; }
};

struct Allocator {
    std::uint32_t num_dram_channels = 12;
};

struct Coordinates {
    std::uint32_t x = 8, y = 8;
};

// What Device has where the page's lines stand.
struct DeviceBase {
    std::uint32_t id_ = 0;
    std::uint64_t chip_unique_id = 1;
    TTDevice device_, *tt_device = &device_;
    Allocator allocator_, *allocator = &allocator_;
    tt::ARCH arch = tt::ARCH::BLACKHOLE;
    std::uint64_t dram_channel_bytes = 1u << 30;
    std::uint64_t l1_bytes_of_one_core = 1u << 20;
    Coordinates worker_grid, full_grid;
    bool is_mmio_capable() const { return true; }
};

enum class BufferType { DRAM, L1, L1_SMALL, TRACE, SYSTEM_MEMORY };

struct Buffer {
    BufferType buffer_type() const { return BufferType::DRAM; }
    std::uint64_t address() const { return 0; }
    std::uint64_t size() const { return 0; }
};

struct CoreRangeSet {};
struct IDevice {};

struct IGraphProcessor {
    virtual void track_allocate(const Buffer *buffer) {}
    virtual void track_deallocate(Buffer *buffer) {}
    virtual void track_allocate_cb(const CoreRangeSet &cores, std::uint64_t address, std::uint64_t size,
                                   bool is_globally_allocated, const IDevice *device) {}
    virtual void track_deallocate_cb(const IDevice *device) {}
    virtual ~IGraphProcessor() = default;
};

telltale_device_h device_of(const Buffer *buffer);
telltale_device_h device_of(const IDevice *device);
