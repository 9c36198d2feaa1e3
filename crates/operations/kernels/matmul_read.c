/* Reads the blocks of a matrix product: of the left operand rows x chunk (or, transposed,
 * chunk x 32), of the right operand chunk x panel, always with the result's columns next to each
 * other. */

static void read_left(core_t *core, const product_t *product, const block_t *block, uint32_t at,
                      uint32_t depth) {
    tensor_t left = tensor_read(core, LEFT_TENSOR);
    uint32_t matrix = left_matrix(product, block->matrix);
    cb_reserve_back(0, 1);
    if (product->left_transposed)
        read_block(core, &left, matrix, at, block->row, depth, block->height, get_write_ptr(0),
                   TILE);
    else
        read_block(core, &left, matrix, block->row, at, block->height, depth, get_write_ptr(0),
                   depth);
    cb_push_back(0, 1);
}

/* One tile after the other is turned on its diagonal. */
static void read_turned(core_t *core, const tensor_t *right, uint32_t matrix, uint32_t row,
                        uint32_t column, uint32_t height, uint32_t width, float *target,
                        uint32_t stride) {
    float tile[TILE_ELEMENTS];
    for (uint32_t top = 0; top < height; top += TILE) {
        uint32_t rows = height - top < TILE ? height - top : TILE;
        for (uint32_t left = 0; left < width; left += TILE) {
            uint32_t columns = width - left < TILE ? width - left : TILE;
            read_block(core, right, matrix, column + left, row + top, columns, rows, tile, TILE);
            for (uint32_t i = 0; i < rows; i++)
                for (uint32_t j = 0; j < columns; j++)
                    target[(top + i) * stride + left + j] = tile[j * TILE + i];
        }
    }
}

static void read_right(core_t *core, const product_t *product, const block_t *block, uint32_t at,
                       uint32_t depth) {
    tensor_t right = tensor_read(core, RIGHT_TENSOR);
    uint32_t matrix = right_matrix(product, block->matrix), stride = product->plan.block_columns;
    cb_reserve_back(1, 1);
    if (product->right_transposed)
        read_turned(core, &right, matrix, at, block->column, depth, block->width,
                    get_write_ptr(1), stride);
    else
        read_block(core, &right, matrix, at, block->column, depth, block->width, get_write_ptr(1),
                   stride);
    cb_push_back(1, 1);
}

KERNEL_MAIN {
    product_t product = product_read(core);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&product.plan, unit);
        int held = unit > first && same_panel(&product, unit, unit - 1);
        if (product.has_bias && !held) {
            tensor_t bias = tensor_read(core, BIAS_TENSOR);
            cb_reserve_back(2, 1);
            read_row(core, &bias, 0, 0, block.column, block.width, get_write_ptr(2));
            cb_push_back(2, 1);
        }
        for (uint32_t at = 0; at < product.inner; at += product.chunk) {
            uint32_t depth = chunk_height(&product, at);
            if (!held) read_right(core, &product, &block, at, depth);
            read_left(core, &product, &block, at, depth);
        }
    }
}
