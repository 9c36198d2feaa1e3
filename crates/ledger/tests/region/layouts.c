/* The layouts of tt-metal's memory regions as C structs, so that the compiler places the fields.
 *
 *   layouts offsets VARIANT                  prints "FIELD OFFSET WIDTH" for each field
 *   layouts make VARIANT FILE FIELD=VALUE…   writes a region with these values, else zeros
 *   layouts dump VARIANT FILE                prints "FIELD VALUE" for each non-zero field
 *
 * FIELD is a name as in the structs, with the row's number: total.dram, chip.0.chip_id,
 * process.63.name. A value is a decimal number, negative if the field is signed, or a name's text.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHIPS 16
#define PROCESSES 64
#define YES(...) __VA_ARGS__
#define NO(...)

struct field {
    char path[48];
    size_t offset;
    size_t width;
    int is_signed;
};

struct fields {
    struct field list[4096];
    size_t count;
};

static void add(struct fields *to, size_t offset, size_t width, int is_signed, const char *path) {
    struct field *field = &to->list[to->count++];
    field->offset = offset;
    field->width = width;
    field->is_signed = is_signed;
    snprintf(field->path, sizeof field->path, "%s", path);
}

static const char *join(const char *table, int row, const char *member) {
    static char path[48];
    snprintf(path, sizeof path, "%s.%d.%s", table, row, member);
    return path;
}

#define COUNTERS(KERNEL) \
    uint64_t dram;       \
    uint64_t l1;         \
    uint64_t l1_small;   \
    uint64_t trace;      \
    uint64_t cb;         \
    KERNEL(uint64_t kernel;)

#define EACH_COUNTER(USE, KERNEL) \
    USE(dram) USE(l1) USE(l1_small) USE(trace) USE(cb) KERNEL(USE(kernel))

#define HEAD(USE)                                                                       \
    USE(version, 0) USE(num_active_processes, 0) USE(last_update, 0)                    \
    USE(reference_count, 0) USE(board_serial, 0) USE(asic_id, 0) USE(device_id, 1)

#define REGION(NAME, KERNEL, TAIL, TAIL_FIELD, ATTRIBUTE)                               \
    struct NAME {                                                                       \
        uint32_t version;                                                               \
        uint32_t num_active_processes;                                                  \
        uint64_t last_update;                                                           \
        uint32_t reference_count;                                                       \
        uint64_t board_serial;                                                          \
        uint64_t asic_id;                                                               \
        int32_t device_id;                                                              \
        struct {                                                                        \
            COUNTERS(KERNEL)                                                            \
        } total;                                                                        \
        struct {                                                                        \
            uint32_t chip_id;                                                           \
            uint32_t is_remote;                                                         \
            COUNTERS(KERNEL)                                                            \
        } chip[CHIPS];                                                                  \
        struct {                                                                        \
            int32_t pid;                                                                \
            COUNTERS(KERNEL)                                                            \
            uint64_t last_update;                                                       \
            char name[64];                                                              \
        } process[PROCESSES];                                                           \
        TAIL                                                                            \
    } ATTRIBUTE;                                                                        \
    static struct NAME NAME##_object;                                                   \
    static size_t NAME##_fields(struct fields *to) {                                    \
        const char *base = (const char *)&NAME##_object;                                \
        struct NAME *region = &NAME##_object;                                           \
        (void)region;                                                                   \
        HEAD(PLACE)                                                                     \
        EACH_COUNTER(PLACE_TOTAL, KERNEL)                                               \
        for (int row = 0; row < CHIPS; row++) {                                         \
            PLACE_IN(chip, chip_id, 0)                                                  \
            PLACE_IN(chip, is_remote, 0)                                                \
            EACH_COUNTER(PLACE_CHIP, KERNEL)                                            \
        }                                                                               \
        for (int row = 0; row < PROCESSES; row++) {                                     \
            PLACE_IN(process, pid, 1)                                                   \
            EACH_COUNTER(PLACE_PROCESS, KERNEL)                                         \
            PLACE_IN(process, last_update, 0)                                           \
            PLACE_IN(process, name, 0)                                                  \
        }                                                                               \
        TAIL_FIELD                                                                      \
        return sizeof(struct NAME);                                                     \
    }

#define OFFSET(LVALUE) ((size_t)((const char *)&(LVALUE) - base))
#define PLACE(MEMBER, SIGNED) \
    add(to, OFFSET(region->MEMBER), sizeof region->MEMBER, SIGNED, #MEMBER);
#define PLACE_TOTAL(KIND) \
    add(to, OFFSET(region->total.KIND), sizeof region->total.KIND, 0, "total." #KIND);
#define PLACE_IN(TABLE, MEMBER, SIGNED)                                                    \
    add(to, OFFSET(region->TABLE[row].MEMBER), sizeof region->TABLE[row].MEMBER, SIGNED, \
        join(#TABLE, row, #MEMBER));
#define PLACE_CHIP(KIND) PLACE_IN(chip, KIND, 0)
#define PLACE_PROCESS(KIND) PLACE_IN(process, KIND, 0)

#define ALIGNED __attribute__((aligned(64)))
REGION(v1, YES, uint8_t padding[64];, , ALIGNED)
REGION(v1_without_kernel, NO, uint8_t padding[64];, , ALIGNED)
REGION(v1_unpadded, YES, , , )
REGION(v2, NO, , , ALIGNED)
REGION(v3, NO, , , ALIGNED)
REGION(v4, NO, uint32_t init_state;, PLACE(init_state, 0), ALIGNED)

static size_t fields_of(const char *variant, struct fields *to) {
#define TRY(NAME) \
    if (strcmp(variant, #NAME) == 0) return NAME##_fields(to);
    TRY(v1) TRY(v1_without_kernel) TRY(v1_unpadded) TRY(v2) TRY(v3) TRY(v4)
    fprintf(stderr, "no variant %s\n", variant);
    exit(2);
}

static void set(unsigned char *bytes, const struct fields *fields, const char *assignment) {
    const char *value = strchr(assignment, '=');
    for (size_t i = 0; value && i < fields->count; i++) {
        const struct field *field = &fields->list[i];
        size_t length = (size_t)(value - assignment);
        if (strlen(field->path) != length || strncmp(field->path, assignment, length) != 0) {
            continue;
        }
        if (field->width == 64) {
            strncpy((char *)bytes + field->offset, value + 1, 64);
        } else {
            uint64_t number = value[1] == '-' ? (uint64_t)strtoll(value + 1, NULL, 10)
                                              : strtoull(value + 1, NULL, 10);
            memcpy(bytes + field->offset, &number, field->width);
        }
        return;
    }
    fprintf(stderr, "no field in %s\n", assignment);
    exit(2);
}

static void show(const unsigned char *bytes, const struct field *field) {
    if (field->width == 64) {
        if (bytes[field->offset]) printf("%s %.64s\n", field->path, bytes + field->offset);
        return;
    }
    uint64_t number = 0;
    memcpy(&number, bytes + field->offset, field->width);
    if (field->is_signed) {
        int32_t narrow = (int32_t)number;
        if (narrow) printf("%s %" PRId32 "\n", field->path, narrow);
    } else if (number) {
        printf("%s %" PRIu64 "\n", field->path, number);
    }
}

int main(int count, char **words) {
    static struct fields fields;
    static unsigned char bytes[16384];
    if (count < 3) return 2;
    size_t size = fields_of(words[2], &fields);
    if (strcmp(words[1], "offsets") == 0) {
        printf("size %zu 0\n", size);
        for (size_t i = 0; i < fields.count; i++) {
            printf("%s %zu %zu\n", fields.list[i].path, fields.list[i].offset,
                   fields.list[i].width);
        }
        return 0;
    }
    if (count < 4) return 2;
    FILE *file = fopen(words[3], strcmp(words[1], "make") == 0 ? "wb" : "rb");
    if (!file) return 3;
    if (strcmp(words[1], "make") == 0) {
        for (int i = 4; i < count; i++) set(bytes, &fields, words[i]);
        if (fwrite(bytes, 1, size, file) != size) return 3;
    } else {
        if (fread(bytes, 1, sizeof bytes, file) != size) return 4;
        for (size_t i = 0; i < fields.count; i++) show(bytes, &fields.list[i]);
    }
    return fclose(file) == 0 ? 0 : 3;
}
