/* What a kernel prints: events of the debug stream of its core. It is put behind kernel_api.h.
 *
 * A print never waits. What finds the stream full is lost and counted there; without a reader
 * the stream, a print is a check of a flag, and its arguments are not evaluated. A kernel with
 * DEVICE_PRINT_OFF among its defines, empty or 1, has none of its prints; as with any other
 * define, that makes it another kernel, and its program another program. */
#ifndef TELLTALE_KERNEL_PRINT_H
#define TELLTALE_KERNEL_PRINT_H

/* Whether the stream of this core has a reader: for kernels that compute something only to print. */
#define device_print_is_read() (TELLTALE_PRINTS && __atomic_load_n(core->print_is_read, __ATOMIC_RELAXED))

/* `prefix` is a string literal, of which 511 bytes are kept; `text` any string, of which 4096 are. */
#define device_print_text(prefix, text) \
  do { \
    if (device_print_is_read()) core->calls->print_text(core, "" prefix "", (text)); \
  } while (0)

/* A number of any type of C. A `double` is printed as a float32, and a `bf16_t` as the unsigned
 * integer that it is: write `bf16_to_float(value)`. */
#define device_print_scalar(prefix, value) \
  do { \
    if (device_print_is_read()) TELLTALE_PRINT_OF(value)(core, "" prefix "", (value)); \
  } while (0)

/* What a circular buffer holds, as a matrix of numbers that lie one row after the other. `dtype`
 * is a name as the stream has it: float32, bfloat16, uint8, float8e4m3, ... What follows says
 * which part, for example `.rows = 4, .columns = 8`; nothing stands for the whole of the first
 * page that was pushed and not popped. A part of which the buffer does not hold every number is
 * not printed; a text says so in its place, and it is counted. */
#define device_print_tile(prefix, buffer, dtype, ...) \
  do { \
    if (device_print_is_read()) \
      core->calls->print_tile(core, "" prefix "", (buffer), TELLTALE_DTYPE_OF(dtype), \
                              &(struct telltale_part){__VA_ARGS__}); \
  } while (0)

/* Which part of a circular buffer. Zero stands for what is said in brackets. The part may go on
 * in the pages after its first one, if they lie behind it. */
struct telltale_part {
  uint32_t width;   /* numbers from one row to the next (32 if pages are whole tiles, else a page is a row) */
  uint32_t row;     /* the first row of the part */
  uint32_t column;  /* and the first column */
  uint32_t rows;    /* how many rows (all that are left of the page) */
  uint32_t columns; /* how many columns (all that are left of the width) */
  uint32_t page;    /* the page it begins in, counted from the first one that can be read */
  uint32_t written; /* if not 0, counted from the first one that can be written: for who fills it */
};

/* The numbers of `Dtype::ALL`. */
enum telltale_dtype {
  TELLTALE_DTYPE_int8,
  TELLTALE_DTYPE_int16,
  TELLTALE_DTYPE_int32,
  TELLTALE_DTYPE_int64,
  TELLTALE_DTYPE_uint8,
  TELLTALE_DTYPE_uint16,
  TELLTALE_DTYPE_uint32,
  TELLTALE_DTYPE_uint64,
  TELLTALE_DTYPE_float16,
  TELLTALE_DTYPE_float32,
  TELLTALE_DTYPE_bfloat16,
  TELLTALE_DTYPE_float8e3m4,
  TELLTALE_DTYPE_float8e4m3,
  TELLTALE_DTYPE_float8e4m3fn,
  TELLTALE_DTYPE_float8e5m2,
  TELLTALE_DTYPE_float32r,
  TELLTALE_DTYPE_float4e2m1fn_x4,
  TELLTALE_DTYPE_float8e4m3fn_x4,
  TELLTALE_DTYPE_float8e5m2_x4
};

/* The number of a name, which may be a define. */
#define TELLTALE_DTYPE_OF(name) TELLTALE_DTYPE_OF_(name)
#define TELLTALE_DTYPE_OF_(name) TELLTALE_DTYPE_##name

/* 0 where DEVICE_PRINT_OFF is defined, whatever comes first. */
#define TELLTALE_PRINTS (!TELLTALE_IS_ON(DEVICE_PRINT_OFF))
#define TELLTALE_IS_ON(name) TELLTALE_IS_ON_(name)
#define TELLTALE_IS_ON_(value) TELLTALE_SECOND_OF(TELLTALE_ON_##value 1, 0, 0)
#define TELLTALE_SECOND_OF(...) TELLTALE_SECOND(__VA_ARGS__)
#define TELLTALE_SECOND(first, second, ...) second
#define TELLTALE_ON_ 0,
#define TELLTALE_ON_1 0,

#define TELLTALE_PRINT_OF(value) \
  _Generic((value), \
      float: telltale_print_float32, double: telltale_print_float32, \
      _Bool: telltale_print_uint8, char: telltale_print_int8, \
      signed char: telltale_print_int8, unsigned char: telltale_print_uint8, \
      short: telltale_print_int16, unsigned short: telltale_print_uint16, \
      int: telltale_print_int32, unsigned: telltale_print_uint32, \
      long: telltale_print_int64, unsigned long: telltale_print_uint64, \
      long long: telltale_print_int64, unsigned long long: telltale_print_uint64)

#define TELLTALE_PRINT_INTEGER(name, type) \
  static inline void telltale_print_##name(core_t *core, const char *prefix, type value) { \
    core->calls->print_scalar(core, prefix, TELLTALE_DTYPE_##name, (uint64_t)value); \
  }
TELLTALE_PRINT_INTEGER(int8, int8_t)
TELLTALE_PRINT_INTEGER(int16, int16_t)
TELLTALE_PRINT_INTEGER(int32, int32_t)
TELLTALE_PRINT_INTEGER(int64, int64_t)
TELLTALE_PRINT_INTEGER(uint8, uint8_t)
TELLTALE_PRINT_INTEGER(uint16, uint16_t)
TELLTALE_PRINT_INTEGER(uint32, uint32_t)
TELLTALE_PRINT_INTEGER(uint64, uint64_t)

static inline void telltale_print_float32(core_t *core, const char *prefix, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  core->calls->print_scalar(core, prefix, TELLTALE_DTYPE_float32, bits);
}

#endif
