/* Tensors as kernels see them: matrices of a layout and a number format, read and written as
 * blocks of float32, row after row. Every operation's kernels work on such blocks, so layouts and
 * formats meet only here. It knows no operation.
 *
 * A block's place in the work is a number ("unit"). `plan_t` says how units map to places: all
 * three kernels of a core walk the same units in the same order. */

enum { ROW_MAJOR = 0, TILED = 1 };
enum { FLOAT32 = 0, BFLOAT16 = 1, UINT32 = 2 };
enum { TILE = 32, TILE_ELEMENTS = 1024 };

typedef float f16_t __attribute__((vector_size(64), aligned(4)));
#define LANES 16

typedef struct {
    uint32_t address, layout, format, rows, columns;
} tensor_t;

/* The order of units: which index moves fastest comes last. */
enum {
    ORDER_MATRIX_ROW_COLUMN = 0,
    ORDER_COLUMN_MATRIX_ROW = 1,
    ORDER_MATRIX_COLUMN_ROW = 2,
    ORDER_MATRIX_ROW_COLUMN_DEPTH = 3,
};

typedef struct {
    uint32_t matrices, rows, columns, block_rows, block_columns, order;
    /* A matrix number is outer * inner + (its remainder); with depth, `depth` inputs of each. */
    uint32_t inner, depth;
    uint32_t row_blocks, column_blocks;
} plan_t;
#define PLAN_WORDS 8

typedef struct {
    uint32_t matrix, depth, row, column, height, width;
} block_t;

static inline plan_t plan_read(core_t *core) {
    plan_t plan;
    plan.matrices = get_common_arg_val(0);
    plan.rows = get_common_arg_val(1);
    plan.columns = get_common_arg_val(2);
    plan.block_rows = get_common_arg_val(3);
    plan.block_columns = get_common_arg_val(4);
    plan.order = get_common_arg_val(5);
    plan.inner = get_common_arg_val(6);
    plan.depth = get_common_arg_val(7);
    plan.row_blocks = (plan.rows + plan.block_rows - 1) / plan.block_rows;
    plan.column_blocks = (plan.columns + plan.block_columns - 1) / plan.block_columns;
    return plan;
}

static inline block_t block_at(const plan_t *plan, uint32_t unit) {
    block_t block;
    uint32_t row, column;
    block.depth = 0;
    if (plan->order == ORDER_COLUMN_MATRIX_ROW) {
        row = unit % plan->row_blocks;
        unit /= plan->row_blocks;
        block.matrix = unit % plan->matrices;
        column = unit / plan->matrices;
    } else if (plan->order == ORDER_MATRIX_COLUMN_ROW) {
        row = unit % plan->row_blocks;
        unit /= plan->row_blocks;
        column = unit % plan->column_blocks;
        block.matrix = unit / plan->column_blocks;
    } else {
        if (plan->order == ORDER_MATRIX_ROW_COLUMN_DEPTH) {
            block.depth = unit % plan->depth;
            unit /= plan->depth;
        }
        column = unit % plan->column_blocks;
        unit /= plan->column_blocks;
        row = unit % plan->row_blocks;
        block.matrix = unit / plan->row_blocks;
    }
    block.row = row * plan->block_rows;
    block.column = column * plan->block_columns;
    block.height = plan->rows - block.row;
    if (block.height > plan->block_rows) block.height = plan->block_rows;
    block.width = plan->columns - block.column;
    if (block.width > plan->block_columns) block.width = plan->block_columns;
    return block;
}

/* A tensor from four words of the common arguments: address, layout and format, rows, columns. */
#define TENSOR_WORDS 4
static inline tensor_t tensor_read(core_t *core, uint32_t first) {
    uint32_t kind = get_common_arg_val(first + 1);
    tensor_t tensor = {get_common_arg_val(first), kind & 0xff, (kind >> 8) & 0xff,
                       get_common_arg_val(first + 2), get_common_arg_val(first + 3)};
    return tensor;
}

static inline float float_of(uint32_t bits) {
    union { uint32_t bits; float value; } both = {bits};
    return both.value;
}

static inline uint32_t bits_of(float value) {
    union { float value; uint32_t bits; } both = {value};
    return both.bits;
}

static inline float common_float(core_t *core, uint32_t index) { return float_of(get_common_arg_val(index)); }

static inline uint32_t element_bytes(const tensor_t *tensor) {
    return tensor->format == BFLOAT16 ? 2 : 4;
}

static inline uint32_t tiles_across(const tensor_t *tensor) { return (tensor->columns + 31) / 32; }

static inline uint32_t tiles_down(const tensor_t *tensor) { return (tensor->rows + 31) / 32; }

/* Round to nearest even; a NaN stays one. */
static inline uint16_t narrow(float value) {
    uint32_t bits = bits_of(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40u;
    return (uint16_t)(value != value ? quiet : rounded);
}

static inline void narrow_all(const float *source, uint32_t count, uint16_t *target) {
    for (uint32_t i = 0; i < count; i++) target[i] = narrow(source[i]);
}

static inline void widen_all(const uint16_t *source, uint32_t count, float *target) {
    for (uint32_t i = 0; i < count; i++) target[i] = float_of((uint32_t)source[i] << 16);
}

#define STAGED 512

/* `count` neighbours in memory, as float32 (an integer keeps its bits). */
static void read_run(core_t *core, const tensor_t *tensor, uint32_t element, uint32_t count, float *target) {
    if (tensor->format != BFLOAT16) {
        noc_read_bytes(tensor->address, (uint64_t)element * 4, count * 4, target);
        return;
    }
    uint16_t staged[STAGED];
    while (count > 0) {
        uint32_t part = count < STAGED ? count : STAGED;
        noc_read_bytes(tensor->address, (uint64_t)element * 2, part * 2, staged);
        widen_all(staged, part, target);
        element += part;
        target += part;
        count -= part;
    }
}

static void write_run(core_t *core, const tensor_t *tensor, uint32_t element, uint32_t count,
                      const float *source) {
    if (tensor->format != BFLOAT16) {
        noc_write_bytes(tensor->address, (uint64_t)element * 4, count * 4, source);
        return;
    }
    uint16_t staged[STAGED];
    while (count > 0) {
        uint32_t part = count < STAGED ? count : STAGED;
        narrow_all(source, part, staged);
        noc_write_bytes(tensor->address, (uint64_t)element * 2, part * 2, staged);
        element += part;
        source += part;
        count -= part;
    }
}

/* The first element in memory of a tile. */
static inline uint32_t tile_element(const tensor_t *tensor, uint32_t matrix, uint32_t row,
                                    uint32_t column) {
    uint32_t tile = (matrix * tiles_down(tensor) + row / TILE) * tiles_across(tensor);
    return (tile + column / TILE) * TILE_ELEMENTS;
}

/* How many of a row's elements from a column on lie next to each other in memory, and where they begin. */
static inline uint32_t run_of_row(const tensor_t *tensor, uint32_t matrix, uint32_t row, uint32_t column,
                                  uint32_t count, uint32_t *element) {
    if (tensor->layout == ROW_MAJOR) {
        *element = (matrix * tensor->rows + row) * tensor->columns + column;
        return count;
    }
    uint32_t inside = column % TILE;
    *element = tile_element(tensor, matrix, row, column) + row % TILE * TILE + inside;
    return TILE - inside < count ? TILE - inside : count;
}

/* A piece of one row. */
static void read_row(core_t *core, const tensor_t *tensor, uint32_t matrix, uint32_t row, uint32_t column,
                     uint32_t count, float *target) {
    for (uint32_t element, part; count > 0; column += part, target += part, count -= part) {
        part = run_of_row(tensor, matrix, row, column, count, &element);
        read_run(core, tensor, element, part, target);
    }
}

/* Tiles are read whole, as on a device, and spread over the block's rows. */
static void read_tiles(core_t *core, const tensor_t *tensor, uint32_t matrix, uint32_t row, uint32_t column,
                       uint32_t height, uint32_t width, float *target, uint32_t stride) {
    float tile[TILE_ELEMENTS];
    for (uint32_t top = 0; top < height;) {
        uint32_t skip_rows = (row + top) % TILE;
        uint32_t part_rows = TILE - skip_rows < height - top ? TILE - skip_rows : height - top;
        for (uint32_t left = 0; left < width;) {
            uint32_t skip = (column + left) % TILE;
            uint32_t part = TILE - skip < width - left ? TILE - skip : width - left;
            read_run(core, tensor, tile_element(tensor, matrix, row + top, column + left), TILE_ELEMENTS,
                     tile);
            for (uint32_t i = 0; i < part_rows; i++)
                __builtin_memcpy(target + (top + i) * stride + left,
                                 tile + (skip_rows + i) * TILE + skip, part * 4);
            left += part;
        }
        top += part_rows;
    }
}

/* A rectangle of one matrix; rows of the target are `stride` apart. */
static void read_block(core_t *core, const tensor_t *tensor, uint32_t matrix, uint32_t row, uint32_t column,
                       uint32_t height, uint32_t width, float *target, uint32_t stride) {
    if (tensor->layout == TILED && height > 4) {
        read_tiles(core, tensor, matrix, row, column, height, width, target, stride);
    } else if (tensor->layout == ROW_MAJOR && width == tensor->columns && stride == width) {
        read_run(core, tensor, (matrix * tensor->rows + row) * width, height * width, target);
    } else {
        for (uint32_t i = 0; i < height; i++)
            read_row(core, tensor, matrix, row + i, column, width, target + i * stride);
    }
}

static void write_row(core_t *core, const tensor_t *tensor, uint32_t matrix, uint32_t row, uint32_t column,
                      uint32_t count, const float *source) {
    for (uint32_t element, part; count > 0; column += part, source += part, count -= part) {
        part = run_of_row(tensor, matrix, row, column, count, &element);
        write_run(core, tensor, element, part, source);
    }
}

/* Whole tiles, zeros beyond the matrix's edge. */
static void write_tiles(core_t *core, const tensor_t *tensor, uint32_t matrix, uint32_t row, uint32_t column,
                        uint32_t height, uint32_t width, const float *source, uint32_t stride) {
    float tile[TILE_ELEMENTS];
    for (uint32_t left = 0; left < width; left += TILE) {
        uint32_t part = TILE < width - left ? TILE : width - left;
        if (part < TILE || height < TILE) __builtin_memset(tile, 0, sizeof tile);
        for (uint32_t i = 0; i < height; i++)
            __builtin_memcpy(tile + i * TILE, source + i * stride + left, part * 4);
        write_run(core, tensor, tile_element(tensor, matrix, row, column + left), TILE_ELEMENTS, tile);
    }
}

static void write_block(core_t *core, const tensor_t *tensor, uint32_t matrix, uint32_t row, uint32_t column,
                        uint32_t height, uint32_t width, const float *source, uint32_t stride) {
    int whole_rows = row % TILE == 0 && (height == TILE || row + height == tensor->rows);
    int whole_columns =
        column % TILE == 0 && (width % TILE == 0 || column + width == tensor->columns);
    if (tensor->layout == TILED && whole_rows && height <= TILE && whole_columns) {
        write_tiles(core, tensor, matrix, row, column, height, width, source, stride);
    } else if (tensor->layout == ROW_MAJOR && width == tensor->columns && stride == width) {
        write_run(core, tensor, (matrix * tensor->rows + row) * width, height * width, source);
    } else {
        for (uint32_t i = 0; i < height; i++)
            write_row(core, tensor, matrix, row + i, column, width, source + i * stride);
    }
}
