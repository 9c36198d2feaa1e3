// The seed's packed query and response, at the sizes its text gives (128 and 256 bytes).
#pragma once

#include <cstdint>

namespace seed {

enum QueryType : uint8_t { kMemory = 1, kUptime = 2, kKernels = 3, kPerformance = 4, kAll = 255 };

struct MetricsQuery {
    QueryType type;
    int32_t device_id;  // -1: all devices
    uint8_t reserved[120];
};

struct MetricsResponse {
    uint64_t dram_allocated;
    uint64_t l1_allocated;
    uint64_t cb_allocated;
    uint64_t kernel_allocated;
    uint64_t uptime_seconds;
    uint32_t num_programs;
    uint64_t ops_executed;
    uint8_t reserved[200];
};

static_assert(sizeof(MetricsQuery) == 128 && sizeof(MetricsResponse) == 256);

constexpr int kDevices = 8;

}  // namespace seed
