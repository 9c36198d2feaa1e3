/*
 * The part of Neuron's nrt.h that a client of the debug stream calls. The calls of this library may
 * come from any thread. In a child of fork they fail with NRT_INVALID, or have no effect, if the
 * parent has used the library; a child that is the first to use it may.
 */
#ifndef TELLTALE_NRT_NRT_H
#define TELLTALE_NRT_NRT_H

#include <stdint.h>

/* In quotes, which both -I and Bazel's -iquote find. */
#include "nrt/nrt_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Who calls. It makes no difference here. */
typedef enum {
    NRT_FRAMEWORK_TYPE_INVALID = 0,
    NRT_FRAMEWORK_TYPE_NO_FW = 1
} nrt_framework_type_t;

/*
 * Begins the use of the library, also again after nrt_close. The texts may be null and mean nothing
 * here. Connecting without it begins by itself.
 *
 * The first call of the library reads NEURON_RT_VISIBLE_CORES, else NEURON_RT_NUM_CORES (1 core
 * without them), NEURON_RT_DEBUG_STREAM_BUFFER_SIZE (65536 events), TELLTALE_DEBUG_STREAM_BYTES
 * (268435456) and TELLTALE_DEBUG_FILTER. With NEURON_RT_DEBUG_OUTPUT_DIR set, it starts the default
 * consumer, which writes what no client reads to files below that directory and prints it. A value
 * that cannot be used is logged once to stderr, and the default holds.
 */
NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version,
                    const char *fal_version);

/*
 * Ends all connections, and the default consumer once it has written what waits. To read gives
 * NRT_CLOSED, and so does to connect until nrt_init. The descriptors still are for their clients to
 * close with nrt_debug_client_connect_close.
 */
void nrt_close(void);

/* How many logical cores this process has. Their numbers begin with 0. */
NRT_STATUS nrt_get_visible_nc_count(uint32_t *vnc_count);

#ifdef __cplusplus
}
#endif

#endif
