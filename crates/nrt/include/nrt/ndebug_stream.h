/*
 * What happens on a logical core, as events on a descriptor: Neuron's debug stream, with the names
 * and layouts that AWS publishes, on Telltale's queue.
 *
 *   connect to a core -> poll, select or epoll the descriptor -> read events -> close
 *
 * The descriptor is readable exactly while an event waits. Nothing else may be done with it; it is
 * closed on exec. Different streams may be used by different threads at once.
 */
#ifndef TELLTALE_NRT_NDEBUG_STREAM_H
#define TELLTALE_NRT_NDEBUG_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In quotes, which both -I and Bazel's -iquote find. */
#include "nrt/nrt_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an event is. */
typedef enum ndebug_stream_event_type {
    NDEBUG_STREAM_EVENT_TYPE_INVALID = 0,          /* No event. */
    NDEBUG_STREAM_EVENT_TYPE_DEBUG_TENSOR_READ = 1 /* A core printed a tensor. */
} ndebug_stream_event_type_t;

/* Says what a payload is. */
typedef struct ndebug_stream_event_header {
    uint64_t data_size; /* Bytes of the payload, its fixed part included. */
    uint32_t type;      /* An ndebug_stream_event_type_t. */
    char reserved[52];  /* Zeros. */
} ndebug_stream_event_header_t;

/* The payload of a tensor: a fixed part of 1024 bytes, and the tensor. */
typedef struct ndebug_stream_payload_debug_tensor_read {
    char prefix[512];          /* What to print first; ends with a zero. */
    uint32_t logical_nc_id;    /* The core that it comes from. */
    uint32_t pipe;             /* 0 for standard output, anything else for standard error. */
    char tensor_dtype[16];     /* As "float32"; ends with a zero. */
    uint64_t tensor_shape[8];  /* The dimensions; 0 from the first that there is not. */
    uint64_t tensor_data_size; /* Bytes of the tensor. */
    char reserved0[416];       /* Zeros. */
#ifdef __cplusplus
    /* C++ has no such member; its compilers do, and warn without this. */
    __extension__ char tensor_data[];
#else
    char tensor_data[]; /* The tensor. Aligned to 16 bytes, as malloc aligns the payload. */
#endif
} ndebug_stream_payload_debug_tensor_read_t;

/*
 * Connects to a core's stream; from then on its events are kept until they are read. What was
 * published before is not seen.
 *
 *   NRT_INVALID   no such core, a null pointer, a child of fork, or a consumer is connected already
 *   NRT_RESOURCE  no descriptor or no memory
 *   NRT_CLOSED    after nrt_close
 *
 * On an error *stream_fd is -1. A connection whose descriptor was closed with close(2) makes room.
 */
NRT_STATUS nrt_debug_client_connect(int logical_nc_idx, int *stream_fd);

/*
 * Ends a connection and closes its descriptor. No effect on any other number, nor in a child of
 * fork. Events that wait are lost.
 */
void nrt_debug_client_connect_close(int stream_fd);

/*
 * Takes the event that waits the longest. The payload is for the caller to give to free.
 *
 *   NRT_QUEUE_EMPTY  no event waits
 *   NRT_INVALID      not a descriptor of nrt_debug_client_connect (closed, a duplicate, or another
 *                    file under its number), a null pointer, or a child of fork
 *   NRT_RESOURCE     no memory for the payload; this event is lost
 *   NRT_CLOSED       after nrt_close
 *
 * On an error *payload is null and *header is zeros. After the descriptor was closed with close(2),
 * which is wrong, events that wait may still be read for 64 calls or one tick of the kernel (10 ms).
 */
NRT_STATUS nrt_debug_client_read_one_event(int stream_fd, ndebug_stream_event_header_t *header,
                                           void **payload);

#ifdef __cplusplus
}
#endif

#endif
