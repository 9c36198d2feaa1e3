/* Multiplies blocks: sums for a few rows and lanes of columns stay in registers while the inner
 * dimension is walked. Rows and columns beyond an edge are computed from what lies there and never
 * written. */

#ifdef __AVX512F__
#define ROWS 8
#define VECTORS 2
#else
#define ROWS 4
#define VECTORS 1
#endif

/* Element (row, k) of the left block is at row * row_step + k * inner_step. */
static inline __attribute__((always_inline)) void
multiply_part(const float *left, uint32_t row_step, uint32_t inner_step, const float *right,
              uint32_t depth, float *result, uint32_t stride, const int vectors) {
    f16_t sums[ROWS][VECTORS];
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < vectors; v++) sums[i][v] = lanes_at(result + i * stride + v * LANES);
    for (uint32_t k = 0; k < depth; k++) {
        f16_t columns[VECTORS];
        for (int v = 0; v < vectors; v++) columns[v] = lanes_at(right + k * stride + v * LANES);
        for (int i = 0; i < ROWS; i++) {
            float factor = left[i * row_step + k * inner_step];
            for (int v = 0; v < vectors; v++) sums[i][v] += factor * columns[v];
        }
    }
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < vectors; v++)
            *(f16_t *)(result + i * stride + v * LANES) = sums[i][v];
}

static void multiply(const product_t *product, const block_t *block, const float *left,
                     const float *right, uint32_t depth, float *result) {
    uint32_t row_step = product->left_transposed ? 1 : depth;
    uint32_t inner_step = product->left_transposed ? TILE : 1;
    uint32_t stride = product->plan.block_columns;
    for (uint32_t column = 0; column < block->width;) {
        int whole = VECTORS > 1 && column + LANES < block->width;
        for (uint32_t row = 0; row < block->height; row += ROWS) {
            const float *rows = left + row * row_step;
            float *part = result + row * stride + column;
            if (whole)
                multiply_part(rows, row_step, inner_step, right + column, depth, part, stride,
                              VECTORS);
            else
                multiply_part(rows, row_step, inner_step, right + column, depth, part, stride, 1);
        }
        column += whole ? VECTORS * LANES : LANES;
    }
}

static void start(const product_t *product, const block_t *block, const float *bias,
                  float *result) {
    uint32_t stride = product->plan.block_columns;
    uint32_t rows = (block->height + ROWS - 1) / ROWS * ROWS;
    for (uint32_t i = 0; i < rows; i++) {
        if (bias) __builtin_memcpy(result + i * stride, bias, stride * 4);
        else __builtin_memset(result + i * stride, 0, stride * 4);
    }
}

KERNEL_MAIN {
    product_t product = product_read(core);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&product.plan, unit);
        int again = unit + 1 < end && same_panel(&product, unit, unit + 1);
        if (product.has_bias) cb_wait_front(2, 1);
        cb_reserve_back(16, 1);
        float *result = get_write_ptr(16);
        start(&product, &block, product.has_bias ? get_read_ptr(2) : 0, result);
        for (uint32_t at = 0; at < product.inner; at += product.chunk) {
            cb_wait_front(1, 1);
            cb_wait_front(0, 1);
            multiply(&product, &block, get_read_ptr(0), get_read_ptr(1),
                     chunk_height(&product, at), result);
            cb_pop_front(0, 1);
            if (!again) cb_pop_front(1, 1);
        }
        if (product.has_bias && !again) cb_pop_front(2, 1);
        cb_push_back(16, 1);
    }
}
