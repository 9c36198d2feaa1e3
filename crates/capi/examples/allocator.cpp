// A runtime's allocator that tells Telltale what it does.
//
//   allocator DIRECTORY
//
// opens a device, allocates and frees, prints the live bytes, and waits until standard input ends.
#include <telltale.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>

namespace {

void check(telltale_status_e status) {
    if (status == TELLTALE_OK) {
        return;
    }
    const char *text = "unknown status";
    telltale_status_text(status, &text);
    throw std::runtime_error(text);
}

// Closes the device with the object that owns it.
class TrackedDevice {
  public:
    TrackedDevice(telltale_runtime_h runtime, std::uint32_t logical_id) {
        telltale_device_s description = {};
        description.struct_size = sizeof description;
        description.known = TELLTALE_KNOWN_BOARD_ID | TELLTALE_KNOWN_FACTS;
        description.logical_id = logical_id;
        description.board_id = 0x0100014611903000;
        description.architecture = TELLTALE_WORMHOLE_B0;
        description.dram_channels = 6;
        description.dram_capacity_bytes = std::uint64_t{12} << 30;
        description.l1_per_core_bytes = 1464 << 10;
        description.worker_cores = 64;
        description.grid_columns = 8;
        description.grid_rows = 10;
        check(telltale_device_open(runtime, &description, &handle_));
    }
    ~TrackedDevice() { telltale_device_close(handle_); }
    TrackedDevice(const TrackedDevice &) = delete;
    TrackedDevice &operator=(const TrackedDevice &) = delete;

    telltale_device_h get() const { return handle_; }

  private:
    telltale_device_h handle_ = nullptr;
};

// Hands out addresses from the start of DRAM and uses freed ones of the same size again.
class DramAllocator {
  public:
    DramAllocator(telltale_device_h device, std::uint64_t capacity)
        : device_(device), capacity_(capacity) {}

    std::uint64_t allocate(std::uint64_t bytes) {
        std::uint64_t address = next_;
        auto reusable = free_.find(bytes);
        if (reusable != free_.end()) {
            address = reusable->second;
            free_.erase(reusable);
        } else if (bytes > capacity_ - next_) {
            telltale_allocation_failed(device_, TELLTALE_DRAM);
            throw std::bad_alloc();
        } else {
            next_ += bytes;
        }
        sizes_[address] = bytes;
        telltale_allocate(device_, TELLTALE_DRAM, address, bytes);
        return address;
    }

    void free(std::uint64_t address) {
        auto found = sizes_.find(address);
        if (found == sizes_.end()) {
            return;
        }
        telltale_free(device_, TELLTALE_DRAM, address);
        free_.emplace(found->second, address);
        sizes_.erase(found);
    }

    std::uint64_t live_bytes() const {
        std::uint64_t sum = 0;
        for (const auto &entry : sizes_) {
            sum += entry.second;
        }
        return sum;
    }

  private:
    telltale_device_h device_;
    std::uint64_t capacity_;
    std::uint64_t next_ = 0;
    std::map<std::uint64_t, std::uint64_t> sizes_;
    std::multimap<std::uint64_t, std::uint64_t> free_;
};

void run(const char *directory) {
    telltale_options_s options;
    check(telltale_options_init(&options));
    options.runtime_name = "allocator example 1";
    options.directory = directory;
    telltale_runtime_h runtime = nullptr;
    check(telltale_start(&options, &runtime));
    {
        TrackedDevice device(runtime, 0);
        DramAllocator allocator(device.get(), 1 << 20);
        for (int round = 0; round < 100; ++round) {
            std::uint64_t kept = allocator.allocate(4096);
            std::uint64_t scratch = allocator.allocate(8192);
            allocator.free(scratch);
            if (round % 2 == 0) {
                allocator.free(kept);
            }
        }
        try {
            allocator.allocate(std::uint64_t{1} << 40);
        } catch (const std::bad_alloc &) {
        }
        std::cout << allocator.live_bytes() << std::endl;
        std::string line;
        while (std::getline(std::cin, line)) {
        }
    }
    check(telltale_runtime_release(runtime));
}

} // namespace

int main(int count, char **arguments) {
    if (count != 2) {
        std::cerr << "usage: allocator DIRECTORY" << std::endl;
        return 64;
    }
    try {
        run(arguments[1]);
    } catch (const std::exception &error) {
        std::cerr << "allocator: " << error.what() << std::endl;
        return 1;
    }
    return 0;
}
