/*
 * Telltale's side of the debug stream: for runtimes, which publish, and for callers that want to know
 * how many events were lost. None of this is part of Neuron.
 */
#ifndef TELLTALE_DEBUG_H
#define TELLTALE_DEBUG_H

#include <stddef.h>
#include <stdint.h>

#include "nrt/nrt_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Publishes a tensor of a core; copies it, and never waits for the client. Any thread may call.
 *
 * prefix and dtype are UTF-8, of which 511 and 15 bytes are kept; shape has rank numbers, at most
 * 8; data has data_size bytes. shape and data may be null if they have none.
 *
 *   NRT_CLOSED      no consumer is connected, so it was not checked further
 *   NRT_QUEUE_FULL  it is lost: as many events or bytes wait as may; counted
 *   NRT_RESOURCE    it is lost for want of memory; counted
 *   NRT_INVALID     no such core, a null pointer, more than 8 dimensions, or a child of fork
 *
 * With GCC and Clang, a call by name first checks in place whether the core has a reader, and is no
 * call while it has none. The function itself does the same, for dlsym and for other languages; with
 * TELLTALE_DEBUG_NO_INLINE defined, the name is nothing but the function.
 */
NRT_STATUS telltale_debug_publish_tensor(int logical_nc_idx, const char *prefix, uint32_t pipe,
                                         const char *dtype, const uint64_t *shape, size_t rank,
                                         const void *data, size_t data_size);

/*
 * For the inline part below alone. By core: where a byte is that is 0 without a reader, or null
 * where the function has to be called to know. Neither entries nor bytes may be written to.
 */
#define TELLTALE_DEBUG_GLANCE_CORES 16384
extern unsigned char **const telltale_debug_glance;

#if defined(__GNUC__) && !defined(TELLTALE_DEBUG_NO_INLINE)
static inline NRT_STATUS telltale_debug_publish_tensor_inline(
    int logical_nc_idx, const char *prefix, uint32_t pipe, const char *dtype,
    const uint64_t *shape, size_t rank, const void *data, size_t data_size) {
    if ((unsigned int)logical_nc_idx < TELLTALE_DEBUG_GLANCE_CORES) {
        unsigned char *reads =
            __atomic_load_n(&telltale_debug_glance[logical_nc_idx], __ATOMIC_ACQUIRE);
        if (reads != NULL && __atomic_load_n(reads, __ATOMIC_RELAXED) == 0) return NRT_CLOSED;
    }
    return telltale_debug_publish_tensor(logical_nc_idx, prefix, pipe, dtype, shape, rank, data,
                                         data_size);
}
/* Any number of arguments, because those of a compound literal stand between commas, too. */
#define telltale_debug_publish_tensor(...) telltale_debug_publish_tensor_inline(__VA_ARGS__)
#endif

/* A core's events since the library was first used. While no thread publishes or reads, produced is
 * the sum of the others. */
typedef struct telltale_debug_counts_s {
    uint64_t produced;       /* Published while a consumer was connected. */
    uint64_t delivered;      /* Read. */
    uint64_t waiting;        /* Not read yet. */
    uint64_t unread;         /* Waited when a connection ended. */
    uint64_t dropped_events; /* Lost because too many events waited. */
    uint64_t dropped_bytes;  /* Lost because they had too many bytes. */
    uint64_t dropped_memory; /* Lost for want of memory, by the publisher or the client. */
} telltale_debug_counts_s;

/* Reports a core's counts. NRT_INVALID: no such core, a null pointer, or a child of fork. */
NRT_STATUS telltale_debug_counts(int logical_nc_idx, telltale_debug_counts_s *counts);

/* What became of one core's events. */
typedef struct telltale_debug_core_s {
    uint32_t logical_nc_idx; /* The core. */
    uint32_t connected;      /* 1 with a reader, else 0. */
    telltale_debug_counts_s counts;
    uint64_t filtered;      /* Events that TELLTALE_DEBUG_FILTER did not want. */
    uint64_t unsaved;       /* Events that the default consumer could not write or print. */
    uint64_t waiting_bytes; /* What the events that wait hold. */
} telltale_debug_core_s;

/*
 * Reports all cores that were used; libtelltale shows them on the process's endpoint with it. Does not
 * begin the use of the library. *count is how many there are, of which the first `room` are written;
 * struct_size is sizeof(telltale_debug_core_s). NRT_INVALID: a null pointer, another size, or a child of
 * fork.
 */
NRT_STATUS telltale_debug_read_cores(telltale_debug_core_s *cores, size_t struct_size, size_t room,
                                     size_t *count);

/*
 * Waits until everything that was published before the call, on all cores, has been read by its
 * client or written by the default consumer; not for cores without a reader.
 *
 *   NRT_TIMEOUT  not within so many milliseconds
 *   NRT_INVALID  a child of fork
 */
NRT_STATUS telltale_debug_drain(uint32_t timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
