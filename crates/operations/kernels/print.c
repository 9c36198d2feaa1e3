/* Prints a tensor as it is stored, in row-major order: blocks of rows, each of them one event of
 * this core's debug stream. PRINT_PREFIX and PRINT_DTYPE are defines. */

static void stored_rows(core_t *core, const tensor_t *tensor, uint32_t first, uint32_t count,
                        uint8_t *target) {
    uint32_t bytes = element_bytes(tensor), row_bytes = tensor->columns * bytes;
    if (tensor->layout == ROW_MAJOR) {
        noc_read_bytes(tensor->address, (uint64_t)first * row_bytes, count * row_bytes, target);
        return;
    }
    for (uint32_t row = first; row < first + count; row++) {
        for (uint32_t column = 0; column < tensor->columns; column += TILE) {
            uint32_t left = tensor->columns - column, part = left < TILE ? left : TILE;
            uint32_t inside = row % tensor->rows;
            uint64_t element = tile_element(tensor, row / tensor->rows, inside, column);
            noc_read_bytes(tensor->address, (element + inside % TILE * TILE) * bytes, part * bytes, target);
            target += part * bytes;
        }
    }
}

KERNEL_MAIN {
    tensor_t x = tensor_read(core, 0);
    uint32_t rows = get_common_arg_val(TENSOR_WORDS), block_rows = get_common_arg_val(TENSOR_WORDS + 1);
    /* Nothing is read without a reader. */
    for (uint32_t row = 0; row < rows && device_print_is_read(); row += block_rows) {
        uint32_t left = rows - row, height = left < block_rows ? left : block_rows;
        cb_reserve_back(0, 1);
        stored_rows(core, &x, row, height, get_write_ptr(0));
        cb_push_back(0, 1);
        cb_wait_front(0, 1);
        device_print_tile(PRINT_PREFIX, 0, PRINT_DTYPE, .width = x.columns, .rows = height);
        cb_pop_front(0, 1);
    }
}
