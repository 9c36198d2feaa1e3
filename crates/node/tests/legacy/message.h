/* The allocation server's message in the form of FORM bytes (112, 128 or 144), redeclared from
 * what is known of the protocol. */
#ifndef TELLTALE_TESTS_LEGACY_MESSAGE_H
#define TELLTALE_TESTS_LEGACY_MESSAGE_H

#include <stdint.h>

struct __attribute__((packed)) message {
    uint8_t type;
    uint8_t unused_1[3];
    int32_t device_id;
    uint64_t size;
    uint8_t buffer_type;
    uint8_t unused_2[3];
    int32_t process_id;
    uint64_t buffer_id;
    uint64_t timestamp;
    uint64_t dram_allocated;
    uint64_t l1_allocated;
    uint64_t l1_small_allocated;
    uint64_t trace_allocated;
#if FORM >= 128
    uint64_t cb_allocated;
    uint64_t kernel_allocated;
#endif
    uint64_t total_dram_size;
    uint64_t total_l1_size;
    uint32_t arch_type;
    uint32_t num_dram_channels;
    uint32_t dram_size_per_channel;
    uint32_t l1_size_per_core;
    uint32_t is_available;
    uint32_t num_devices;
#if FORM >= 144
    uint32_t ring_buffer_total_size;
    uint32_t ring_buffer_used_bytes;
    uint32_t ring_buffer_programs;
    uint32_t unused_3;
#endif
};

#endif
