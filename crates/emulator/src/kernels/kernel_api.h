/* What a kernel of the emulated accelerator can do. It is put in front of every kernel's source.
 *
 * A kernel is `KERNEL_MAIN { ... }`. Inside it the calls below work as written; a function of the
 * kernel's own that uses one takes `core_t *core` as a parameter of that name. Kernels of one core
 * share its circular buffers and semaphores and nothing else; a call that has to wait lets the
 * other kernels run. A call with a wrong argument ends the program with an error that names the
 * kernel and the core, and never returns.
 *
 * The structs are those of context.rs; change both together. */
#ifndef TELLTALE_KERNEL_API_H
#define TELLTALE_KERNEL_API_H

#include <asm/unistd.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct telltale_core core_t;

struct telltale_circular_buffer {
  uint8_t *base; /* null where the core has no such buffer */
  uint32_t page_bytes;
  uint32_t pages;
  uint32_t pushed; /* pages ever pushed and popped; they may wrap */
  uint32_t popped;
  uint32_t write_page; /* the places of the next page to write and to read */
  uint32_t read_page;
  uint32_t is_written; /* a kernel asked where to write */
};

struct telltale_part;

/* The numbers of fault.rs. */
enum telltale_fault {
  TELLTALE_FAULT_ARGUMENT = 1,
  TELLTALE_FAULT_COMMON_ARGUMENT = 2,
  TELLTALE_FAULT_NO_BUFFER = 3,
  TELLTALE_FAULT_TOO_MANY_PAGES = 4,
  TELLTALE_FAULT_WRAPS = 5,
  TELLTALE_FAULT_NO_ROOM = 6,
  TELLTALE_FAULT_NO_PAGES = 7,
  TELLTALE_FAULT_FAILED = 8
};

/* With the status of `exit` in its lower half, what the signal carries that stands for it: see cause.rs. */
#define TELLTALE_EXIT 0x74656c6c00000000u

struct telltale_calls {
  void (*wait_for_room)(core_t *core, uint32_t buffer, uint32_t pages);
  void (*wait_for_pages)(core_t *core, uint32_t buffer, uint32_t pages);
  void (*read)(core_t *core, uint32_t address, uint64_t offset, uint32_t bytes, uint32_t page_bytes, void *to);
  void (*write)(core_t *core, uint32_t address, uint64_t offset, uint32_t bytes, uint32_t page_bytes, const void *from);
  uint32_t (*semaphore_read)(core_t *core, uint32_t semaphore);
  void (*semaphore_write)(core_t *core, uint32_t x, uint32_t y, uint32_t semaphore, uint32_t value, uint32_t add);
  void (*semaphore_wait)(core_t *core, uint32_t semaphore, uint32_t value, uint32_t or_more);
  uint32_t (*global_semaphore_read)(core_t *core, uint32_t address);
  void (*global_semaphore_write)(core_t *core, uint32_t x, uint32_t y, uint32_t address, uint32_t value, uint32_t add);
  void (*global_semaphore_wait)(core_t *core, uint32_t address, uint32_t value, uint32_t or_more);
  void (*fault)(core_t *core, uint32_t fault, uint32_t number, uint32_t limit) __attribute__((noreturn));
  /* See kernel_print.h. */
  void (*print_text)(core_t *core, const char *prefix, const char *text);
  void (*print_scalar)(core_t *core, const char *prefix, uint32_t dtype, uint64_t bits);
  void (*print_tile)(core_t *core, const char *prefix, uint32_t buffer, uint32_t dtype,
                     const struct telltale_part *part);
};

struct telltale_core {
  const struct telltale_calls *calls;
  const uint32_t *arguments;
  const uint32_t *common_arguments;
  struct telltale_circular_buffer *buffers;
  uint32_t argument_count;
  uint32_t common_argument_count;
  uint32_t x;
  uint32_t y;
  const _Bool *print_is_read; /* written by other threads */
};

#define TELLTALE_BUFFERS 32u

/* Nothing that the kernel calls last returns to anywhere but here: trap.rs looks where. */
#define KERNEL_MAIN \
  __attribute__((visibility("default"))) void kernel_main(core_t *core); \
  static void telltale_main(core_t *core); \
  void kernel_main(core_t *core) { telltale_main(core); __asm__ volatile(""); } \
  static void telltale_main(core_t *core)

/* --- Arguments --- */

/* Argument `index` of this kernel on this core. */
#define get_arg_val(index) telltale_argument(core, (index))
/* Argument `index` that all cores of this kernel share. */
#define get_common_arg_val(index) telltale_common_argument(core, (index))
#define get_arg_count() (core->argument_count)
#define get_common_arg_count() (core->common_argument_count)
/* Compile-time argument `index`, a literal number: an integer constant. */
#define get_compile_time_arg_val(index) TELLTALE_JOIN(telltale_compile_time_argument_, index)
/* The named compile-time argument `name`: an integer constant. */
#define NAMED_ARG(name) telltale_named_argument_##name
#define TELLTALE_JOIN(left, right) TELLTALE_JOIN_(left, right)
#define TELLTALE_JOIN_(left, right) left##right

/* The core's place in the grid. */
#define core_x() (core->x)
#define core_y() (core->y)

/* Ends the program with an error that shows `number`. */
#define kernel_fail(number) core->calls->fault(core, TELLTALE_FAULT_FAILED, (number), 0)

static inline uint32_t telltale_argument(core_t *core, uint32_t index) {
  if (__builtin_expect(index >= core->argument_count, 0))
    core->calls->fault(core, TELLTALE_FAULT_ARGUMENT, index, core->argument_count);
  return core->arguments[index];
}

static inline uint32_t telltale_common_argument(core_t *core, uint32_t index) {
  if (__builtin_expect(index >= core->common_argument_count, 0))
    core->calls->fault(core, TELLTALE_FAULT_COMMON_ARGUMENT, index, core->common_argument_count);
  return core->common_arguments[index];
}

/* A 32-bit argument that holds a float's bits. */
static inline float telltale_as_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
#define get_arg_val_float(index) telltale_as_float(get_arg_val(index))
#define get_common_arg_val_float(index) telltale_as_float(get_common_arg_val(index))

/* --- Circular buffers ---
 *
 * The writing kernel reserves room, writes at get_write_ptr and pushes; the reading one waits,
 * reads at get_read_ptr and pops. Pages that are reserved or waited for together lie one after the
 * other: a count that would go beyond the end of the buffer is an error, so a kernel uses counts
 * that divide the buffer's pages. */

#define cb_reserve_back(buffer, pages) telltale_reserve(core, (buffer), (pages))
#define cb_push_back(buffer, pages) telltale_push(core, (buffer), (pages))
#define cb_wait_front(buffer, pages) telltale_wait(core, (buffer), (pages))
#define cb_pop_front(buffer, pages) telltale_pop(core, (buffer), (pages))
/* Where the next reserved page is written, and where the next waited-for page is read. */
#define get_write_ptr(buffer) telltale_write_pointer(core, (buffer))
#define get_read_ptr(buffer) telltale_read_pointer(core, (buffer))
/* The size of a page of this buffer, and how many pages it has. */
#define get_cb_page_bytes(buffer) (telltale_buffer(core, (buffer))->page_bytes)
#define get_cb_pages(buffer) (telltale_buffer(core, (buffer))->pages)

static inline struct telltale_circular_buffer *telltale_buffer(core_t *core, uint32_t buffer) {
  if (__builtin_expect(buffer >= TELLTALE_BUFFERS || !core->buffers[buffer].base, 0))
    core->calls->fault(core, TELLTALE_FAULT_NO_BUFFER, buffer, TELLTALE_BUFFERS);
  return &core->buffers[buffer];
}

static inline void telltale_check_pages(core_t *core, uint32_t buffer, uint32_t place, uint32_t pages) {
  uint32_t most = core->buffers[buffer].pages;
  if (__builtin_expect(pages > most, 0))
    core->calls->fault(core, TELLTALE_FAULT_TOO_MANY_PAGES, buffer, pages);
  if (__builtin_expect(pages > most - place, 0))
    core->calls->fault(core, TELLTALE_FAULT_WRAPS, buffer, pages);
}

static inline void telltale_reserve(core_t *core, uint32_t buffer, uint32_t pages) {
  struct telltale_circular_buffer *cb = telltale_buffer(core, buffer);
  telltale_check_pages(core, buffer, cb->write_page, pages);
  if (cb->pages - (cb->pushed - cb->popped) < pages) core->calls->wait_for_room(core, buffer, pages);
}

static inline void telltale_push(core_t *core, uint32_t buffer, uint32_t pages) {
  struct telltale_circular_buffer *cb = telltale_buffer(core, buffer);
  telltale_check_pages(core, buffer, cb->write_page, pages);
  if (__builtin_expect(cb->pages - (cb->pushed - cb->popped) < pages, 0))
    core->calls->fault(core, TELLTALE_FAULT_NO_ROOM, buffer, pages);
  cb->pushed += pages;
  cb->write_page += pages;
  if (cb->write_page == cb->pages) cb->write_page = 0;
}

static inline void telltale_wait(core_t *core, uint32_t buffer, uint32_t pages) {
  struct telltale_circular_buffer *cb = telltale_buffer(core, buffer);
  telltale_check_pages(core, buffer, cb->read_page, pages);
  if (cb->pushed - cb->popped < pages) core->calls->wait_for_pages(core, buffer, pages);
}

static inline void telltale_pop(core_t *core, uint32_t buffer, uint32_t pages) {
  struct telltale_circular_buffer *cb = telltale_buffer(core, buffer);
  telltale_check_pages(core, buffer, cb->read_page, pages);
  if (__builtin_expect(cb->pushed - cb->popped < pages, 0))
    core->calls->fault(core, TELLTALE_FAULT_NO_PAGES, buffer, pages);
  cb->popped += pages;
  cb->read_page += pages;
  if (cb->read_page == cb->pages) cb->read_page = 0;
}

static inline void *telltale_write_pointer(core_t *core, uint32_t buffer) {
  struct telltale_circular_buffer *cb = telltale_buffer(core, buffer);
  cb->is_written = 1;
  return cb->base + (size_t)cb->write_page * cb->page_bytes;
}

static inline void *telltale_read_pointer(core_t *core, uint32_t buffer) {
  struct telltale_circular_buffer *cb = telltale_buffer(core, buffer);
  return cb->base + (size_t)cb->read_page * cb->page_bytes;
}

/* --- Buffers in DRAM and L1 ---
 *
 * Every access is checked against the buffers that are live. It is complete when the call
 * returns. `bytes` of page `page` are moved; `page_bytes` is the buffer's page size. */

#define noc_read_page(address, page, bytes, page_bytes, to) \
  telltale_read_page(core, (address), (page), (bytes), (page_bytes), (to))
#define noc_write_page(address, page, bytes, page_bytes, from) \
  telltale_write_page(core, (address), (page), (bytes), (page_bytes), (from))
/* The same for any range of the buffer's bytes, whatever its pages are. */
#define noc_read_bytes(address, offset, bytes, to) core->calls->read(core, (address), (offset), (bytes), 0, (to))
#define noc_write_bytes(address, offset, bytes, from) core->calls->write(core, (address), (offset), (bytes), 0, (from))

static inline void telltale_read_page(core_t *core, uint32_t address, uint32_t page, uint32_t bytes,
                                      uint32_t page_bytes, void *to) {
  core->calls->read(core, address, (uint64_t)page * page_bytes, bytes, page_bytes, to);
}

static inline void telltale_write_page(core_t *core, uint32_t address, uint32_t page, uint32_t bytes,
                                       uint32_t page_bytes, const void *from) {
  core->calls->write(core, address, (uint64_t)page * page_bytes, bytes, page_bytes, from);
}

/* --- Semaphores ---
 *
 * Each core of a semaphore's ranges has its own value. Waiting is for this core's. */

#define get_semaphore_val(semaphore) core->calls->semaphore_read(core, (semaphore))
#define noc_semaphore_set(semaphore, value) core->calls->semaphore_write(core, core->x, core->y, (semaphore), (value), 0)
#define noc_semaphore_set_remote(x, y, semaphore, value) core->calls->semaphore_write(core, (x), (y), (semaphore), (value), 0)
#define noc_semaphore_inc(x, y, semaphore, count) core->calls->semaphore_write(core, (x), (y), (semaphore), (count), 1)
#define noc_semaphore_wait(semaphore, value) core->calls->semaphore_wait(core, (semaphore), (value), 0)
#define noc_semaphore_wait_min(semaphore, value) core->calls->semaphore_wait(core, (semaphore), (value), 1)

/* The same for a semaphore that outlives the program, by its address. */
#define get_global_semaphore_val(address) core->calls->global_semaphore_read(core, (address))
#define noc_global_semaphore_set(address, value) \
  core->calls->global_semaphore_write(core, core->x, core->y, (address), (value), 0)
#define noc_global_semaphore_set_remote(x, y, address, value) \
  core->calls->global_semaphore_write(core, (x), (y), (address), (value), 0)
#define noc_global_semaphore_inc(x, y, address, count) \
  core->calls->global_semaphore_write(core, (x), (y), (address), (count), 1)
#define noc_global_semaphore_wait(address, value) core->calls->global_semaphore_wait(core, (address), (value), 0)
#define noc_global_semaphore_wait_min(address, value) core->calls->global_semaphore_wait(core, (address), (value), 1)

/* --- Giving up ---
 *
 * `abort`, a failed assertion and `exit` end the program with an error. They are here in the place of the
 * library's, because the kernel can be left in its own code: trap.rs cannot know whether a library that
 * calls its `abort` holds a lock, and nothing comes after the library's `exit`. Most have another name in
 * C, so that only the headers of those who use them declare them. */

#define TELLTALE_PLACED(name) visibility("hidden"), section(".text." name)
#define TELLTALE_HIDDEN(name) __attribute__((noreturn, TELLTALE_PLACED(name)))

static inline long telltale_system(long number, long first, long second, long third, long fourth) {
#if defined __x86_64__
  long result;
  register long r10 __asm__("r10") = fourth;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10)
                   : "rcx", "r11", "memory");
  return result;
#else
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = first;
  register long x1 __asm__("x1") = second;
  register long x2 __asm__("x2") = third;
  register long x3 __asm__("x3") = fourth;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
#endif
}

TELLTALE_HIDDEN("telltale_abort") void abort(void) {
  /* SIGABRT, to this thread. */
  long process = telltale_system(__NR_getpid, 0, 0, 0, 0), thread = telltale_system(__NR_gettid, 0, 0, 0, 0);
  telltale_system(__NR_tgkill, process, thread, 6, 0);
  __builtin_trap();
}

/* The same, with the status and a mark that cause.rs knows. */
TELLTALE_HIDDEN("telltale_exit") void telltale_exit(int status) __asm__("exit");
void telltale_exit(int status) {
  struct {
    int signal, error, code, padding, process, user;
    uint64_t value;
    char rest[96];
  } information = {6, 0, -1, 0, 0, 0, TELLTALE_EXIT | (uint32_t)status, {0}};
  long process = telltale_system(__NR_getpid, 0, 0, 0, 0), thread = telltale_system(__NR_gettid, 0, 0, 0, 0);
  telltale_system(__NR_rt_tgsigqueueinfo, process, thread, 6, (long)&information);
  __builtin_trap();
}

TELLTALE_HIDDEN("telltale_exit_1") void telltale_exit_1(int status) __asm__("_exit");
void telltale_exit_1(int status) { telltale_exit(status); }
TELLTALE_HIDDEN("telltale_exit_2") void telltale_exit_2(int status) __asm__("_Exit");
void telltale_exit_2(int status) { telltale_exit(status); }
TELLTALE_HIDDEN("telltale_exit_3") void telltale_exit_3(int status) __asm__("quick_exit");
void telltale_exit_3(int status) { telltale_exit(status); }
TELLTALE_HIDDEN("telltale_exit_4") void telltale_exit_4(void *result) __asm__("pthread_exit");
void telltale_exit_4(void *result) { telltale_exit((int)(intptr_t)result); }

extern int telltale_print_to(int file, const char *format, ...) __asm__("dprintf");

TELLTALE_HIDDEN("telltale_assert") void __assert_fail(const char *expression, const char *file, unsigned int line,
                                                      const char *function) {
  telltale_print_to(2, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, expression);
  abort();
}

/* --- Signals ---
 *
 * A fault whose signal is blocked ends the process, and a kernel is stopped by a signal of real time. So
 * what these two functions block and unblock is anything but the signals of faults and of real time, which
 * stay as they are. */

#define TELLTALE_KEPT_SIGNALS 0xffffffff800004f8u /* 32 to 64; 4 to 8 and 11: see handlers.rs */

static inline int telltale_mask(int how, const uint64_t *signals, uint64_t *before) {
  uint64_t now, wanted;
  long error = telltale_system(__NR_rt_sigprocmask, 0, 0, (long)&now, sizeof now);
  if (signals && !error) {
    wanted = how == 0 ? now | *signals : how == 1 ? now & ~*signals : *signals;
    wanted = (wanted & ~TELLTALE_KEPT_SIGNALS) | (now & TELLTALE_KEPT_SIGNALS);
    error = how < 0 || how > 2 ? -22 : telltale_system(__NR_rt_sigprocmask, 2, (long)&wanted, 0, sizeof wanted);
  }
  if (before && !error) *before = now;
  return (int)-error;
}

__attribute__((TELLTALE_PLACED("telltale_mask_1"))) int telltale_mask_1(int how, const void *signals,
                                                                        void *before) __asm__("pthread_sigmask");
int telltale_mask_1(int how, const void *signals, void *before) { return telltale_mask(how, signals, before); }

extern int *telltale_error(void) __asm__("__errno_location");

__attribute__((TELLTALE_PLACED("telltale_mask_2"))) int telltale_mask_2(int how, const void *signals,
                                                                        void *before) __asm__("sigprocmask");
int telltale_mask_2(int how, const void *signals, void *before) {
  int error = telltale_mask(how, signals, before);
  if (error) *telltale_error() = error;
  return error ? -1 : 0;
}

/* --- Numbers ---
 *
 * A tile has 32 rows of 32 numbers, one row after the other. */

#define TILE_ROWS 32
#define TILE_COLUMNS 32
#define TILE_NUMBERS 1024

typedef uint16_t bf16_t;

static inline float bf16_to_float(bf16_t bits) {
  return telltale_as_float((uint32_t)bits << 16);
}

/* To the nearest, to even where two are equally near; a NaN stays one. */
static inline bf16_t float_to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  uint32_t quiet = (bits >> 16) | 0x40u;
  return (bf16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static inline void bf16_to_floats(const bf16_t *from, float *restrict to, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = bf16_to_float(from[i]);
}

static inline void floats_to_bf16(const float *from, bf16_t *restrict to, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = float_to_bf16(from[i]);
}

/* Half a row of floats, which need not be aligned. */
typedef float telltale_half_row __attribute__((vector_size(64), aligned(4), may_alias));

/* c += a * b, tiles of floats. Each number of c is added to in the order of a's columns, however
 * wide the processor's vectors are. */
static inline void tile_multiply_add(const float *restrict a, const float *restrict b, float *restrict c) {
  for (int row = 0; row < TILE_ROWS; row += 4) {
    telltale_half_row sums[4][2];
    for (int i = 0; i < 4; i++)
      for (int half = 0; half < 2; half++)
        sums[i][half] = *(const telltale_half_row *)(c + (row + i) * TILE_COLUMNS + 16 * half);
    for (int inner = 0; inner < TILE_COLUMNS; inner++) {
      telltale_half_row left = *(const telltale_half_row *)(b + inner * TILE_COLUMNS);
      telltale_half_row right = *(const telltale_half_row *)(b + inner * TILE_COLUMNS + 16);
      for (int i = 0; i < 4; i++) {
        float factor = a[(row + i) * TILE_COLUMNS + inner];
        sums[i][0] += factor * left;
        sums[i][1] += factor * right;
      }
    }
    for (int i = 0; i < 4; i++)
      for (int half = 0; half < 2; half++)
        *(telltale_half_row *)(c + (row + i) * TILE_COLUMNS + 16 * half) = sums[i][half];
  }
}

#endif
