/* The published layout, row for row. Compiles as C and as C++, or does not. */
#include <stddef.h>

#include <nrt/ndebug_stream.h>
#include <nrt/nrt.h>
#include <telltale_debug.h>

#ifdef __cplusplus
#define HOLDS(condition) static_assert(condition, #condition)
#define ALIGNMENT alignof
#else
#define HOLDS(condition) _Static_assert(condition, #condition)
#define ALIGNMENT _Alignof
#endif

#define SIZE_OF(type, field) sizeof(((type *)0)->field)

typedef ndebug_stream_event_header_t header_t;
typedef ndebug_stream_payload_debug_tensor_read_t tensor_t;

HOLDS(sizeof(header_t) == 64);
HOLDS(ALIGNMENT(header_t) == 8);
HOLDS(offsetof(header_t, data_size) == 0 && SIZE_OF(header_t, data_size) == 8);
HOLDS(offsetof(header_t, type) == 8 && SIZE_OF(header_t, type) == 4);
HOLDS(offsetof(header_t, reserved) == 12 && SIZE_OF(header_t, reserved) == 52);

HOLDS(sizeof(tensor_t) == 1024);
HOLDS(ALIGNMENT(tensor_t) == 8);
HOLDS(offsetof(tensor_t, prefix) == 0 && SIZE_OF(tensor_t, prefix) == 512);
HOLDS(offsetof(tensor_t, logical_nc_id) == 512 && SIZE_OF(tensor_t, logical_nc_id) == 4);
HOLDS(offsetof(tensor_t, pipe) == 516 && SIZE_OF(tensor_t, pipe) == 4);
HOLDS(offsetof(tensor_t, tensor_dtype) == 520 && SIZE_OF(tensor_t, tensor_dtype) == 16);
HOLDS(offsetof(tensor_t, tensor_shape) == 536 && SIZE_OF(tensor_t, tensor_shape) == 64);
HOLDS(SIZE_OF(tensor_t, tensor_shape[0]) == 8);
HOLDS(offsetof(tensor_t, tensor_data_size) == 600 && SIZE_OF(tensor_t, tensor_data_size) == 8);
HOLDS(offsetof(tensor_t, reserved0) == 608 && SIZE_OF(tensor_t, reserved0) == 416);
HOLDS(offsetof(tensor_t, tensor_data) == 1024);

HOLDS(sizeof(NRT_STATUS) == 4);
HOLDS(sizeof(ndebug_stream_event_type_t) == 4);
HOLDS(sizeof(nrt_framework_type_t) == 4);
HOLDS(NDEBUG_STREAM_EVENT_TYPE_INVALID == 0);
HOLDS(NDEBUG_STREAM_EVENT_TYPE_DEBUG_TENSOR_READ == 1);
HOLDS(NRT_FRAMEWORK_TYPE_NO_FW == 1);

/* The published signatures: a declaration that differs from the header's is an error. */
#ifdef __cplusplus
extern "C" {
#endif
NRT_STATUS nrt_debug_client_connect(int logical_nc_idx, int *stream_fd);
void nrt_debug_client_connect_close(int stream_fd);
NRT_STATUS nrt_debug_client_read_one_event(int stream_fd, ndebug_stream_event_header_t *header,
                                           void **payload);
const char *nrt_get_status_as_str(NRT_STATUS status);
NRT_STATUS nrt_get_visible_nc_count(uint32_t *vnc_count);
NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version,
                    const char *fal_version);
void nrt_close(void);
#ifdef __cplusplus
}
#endif
