// Writes the seed's version 1 region: shared totals and chip rows by locked adds, the process row
// found by a scan and updated by plain adds, and a clock reading for each of the two stamps.
#include "region.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

namespace seed {
namespace {

// Above the largest pid that Linux gives out (2^22), so no such process can exist.
constexpr pid_t kNobody = (1 << 22) + 1;

uint64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// A file of its own under /dev/shm, unlinked at once so that nothing remains however we end.
void* map_new_region() {
    static std::atomic<unsigned> serial{0};
    char name[96];
    std::snprintf(name, sizeof name, "/dev/shm/telltale_bench_%d_%u_memory", getpid(), serial++);
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return nullptr;
    unlink(name);
    void* memory = MAP_FAILED;
    if (ftruncate(fd, sizeof(Region)) == 0) {
        memory = mmap(nullptr, sizeof(Region), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    return memory == MAP_FAILED ? nullptr : memory;
}

// Subtracts without passing below zero, as the seed's clamp does.
void subtract_clamped(std::atomic<uint64_t>& counter, uint64_t size) {
    uint64_t current = counter.load();
    while (!counter.compare_exchange_weak(current, current >= size ? current - size : 0)) {
    }
}

void subtract_clamped(uint64_t& counter, uint64_t size) {
    if (counter >= size) {
        counter -= size;
    } else {
        counter = 0;
    }
}

std::atomic<uint64_t>* total_of(Region& r, BufferType type) {
    switch (type) {
        case BufferType::Dram: return &r.total_dram;
        case BufferType::L1: return &r.total_l1;
        case BufferType::L1Small: return &r.total_l1_small;
        case BufferType::Trace: return &r.total_trace;
        case BufferType::Cb: return &r.total_cb;
        case BufferType::Kernel: return &r.total_kernel;
        default: return nullptr;
    }
}

// Chip rows and process rows name their counters alike.
template <typename Row>
auto counter_of(Row& row, BufferType type) -> decltype(&row.dram) {
    switch (type) {
        case BufferType::Dram: return &row.dram;
        case BufferType::L1: return &row.l1;
        case BufferType::L1Small: return &row.l1_small;
        case BufferType::Trace: return &row.trace;
        case BufferType::Cb: return &row.cb;
        case BufferType::Kernel: return &row.kernel;
        default: return nullptr;
    }
}

}  // namespace

std::unique_ptr<StatsProvider> StatsProvider::create(bool per_pid, uint32_t rows_before) {
    if (rows_before >= kMaxProcesses) return nullptr;
    void* memory = map_new_region();
    if (memory == nullptr) return nullptr;
    auto* region = static_cast<Region*>(memory);  // A new file: every field is zero.
    region->version = 1;
    region->reference_count = 1;
    for (uint32_t i = 0; i < rows_before; ++i) region->processes[i].pid = kNobody + static_cast<pid_t>(i);
    return std::unique_ptr<StatsProvider>(new StatsProvider(region, per_pid));
}

StatsProvider::~StatsProvider() { munmap(region_, sizeof(Region)); }

ChipStats* StatsProvider::find_or_create_chip(uint32_t chip_id) {
    for (uint32_t i = 0; i < kMaxChips; ++i) {
        if (region_->chips[i].chip_id == chip_id) return &region_->chips[i];
    }
    for (uint32_t i = 1; i < kMaxChips; ++i) {
        if (region_->chips[i].chip_id == 0) {
            region_->chips[i].chip_id = chip_id;
            return &region_->chips[i];
        }
    }
    return nullptr;
}

const ProcessStats* StatsProvider::row(pid_t pid) const {
    for (const ProcessStats& row : region_->processes) {
        if (row.pid == pid) return &row;
    }
    return nullptr;
}

ProcessStats* StatsProvider::find_or_create_row(pid_t pid) {
    for (ProcessStats& row : region_->processes) {
        if (row.pid == pid) return &row;
    }
    for (ProcessStats& row : region_->processes) {
        if (row.pid != 0) continue;
        row.pid = pid;
        std::ifstream comm("/proc/" + std::to_string(pid) + "/comm");
        std::string name;
        std::getline(comm, name);
        std::snprintf(row.process_name, sizeof row.process_name, "%s", name.c_str());
        region_->num_active_processes++;
        return &row;
    }
    return nullptr;
}

void StatsProvider::record_allocation(pid_t pid, uint64_t size, BufferType type, uint32_t chip_id) {
    if (auto* total = total_of(*region_, type)) total->fetch_add(size);
    if (ChipStats* chip = find_or_create_chip(chip_id)) {
        if (auto* counter = counter_of(*chip, type)) counter->fetch_add(size);
    }
    region_->last_update_timestamp = now_ns();
    if (!per_pid_) return;
    if (ProcessStats* row = find_or_create_row(pid)) {
        if (auto* counter = counter_of(*row, type)) *counter += size;
        row->last_update_timestamp = now_ns();
    }
}

void StatsProvider::record_deallocation(pid_t pid, uint64_t size, BufferType type, uint32_t chip_id) {
    if (auto* total = total_of(*region_, type)) subtract_clamped(*total, size);
    if (ChipStats* chip = find_or_create_chip(chip_id)) {
        if (auto* counter = counter_of(*chip, type)) subtract_clamped(*counter, size);
    }
    region_->last_update_timestamp = now_ns();
    if (!per_pid_) return;
    if (ProcessStats* row = find_or_create_row(pid)) {
        if (auto* counter = counter_of(*row, type)) subtract_clamped(*counter, size);
        row->last_update_timestamp = now_ns();
    }
}

}  // namespace seed
