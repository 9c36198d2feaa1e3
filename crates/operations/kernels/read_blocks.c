/* Reads the same block of up to eight operands, spread over the block where an operand has a single
 * row, column or matrix. */

#define INPUT_WORDS 7 /* a tensor, then: outer stride, inner stride, whether to spread */

static void spread_columns(const float *values, uint32_t height, uint32_t width, float *target) {
    for (uint32_t i = 0; i < height; i++) {
        float value = values[i];
        for (uint32_t j = 0; j < width; j++) target[i * width + j] = value;
    }
}

static void read_input(core_t *core, const plan_t *plan, const block_t *block, uint32_t first, float *target) {
    tensor_t input = tensor_read(core, first);
    uint32_t outer = block->matrix / plan->inner, inner = block->matrix % plan->inner;
    uint32_t spread = get_common_arg_val(first + 6);
    uint32_t matrix = (outer * plan->depth + block->depth) * get_common_arg_val(first + 4) +
                      inner * get_common_arg_val(first + 5);
    uint32_t one_row = input.rows == 1 && plan->rows > 1;
    uint32_t one_column = input.columns == 1 && plan->columns > 1;
    uint32_t row = one_row ? 0 : block->row, column = one_column ? 0 : block->column;
    uint32_t height = one_row ? 1 : block->height, width = one_column ? 1 : block->width;
    if (one_column && spread) {
        float values[TILE];
        for (uint32_t top = 0; top < height; top += TILE) {
            uint32_t part = height - top < TILE ? height - top : TILE;
            read_block(core, &input, matrix, row + top, column, part, 1, values, 1);
            spread_columns(values, part, block->width, target + top * block->width);
        }
        width = block->width;
    } else {
        read_block(core, &input, matrix, row, column, height, width, target, width);
    }
    for (uint32_t i = 1; one_row && spread && i < block->height; i++)
        __builtin_memcpy(target + i * width, target, width * 4);
}

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    uint32_t inputs = get_common_arg_val(PLAN_WORDS);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        for (uint32_t i = 0; i < inputs; i++) {
            cb_reserve_back(i, 1);
            read_input(core, &plan, &block, PLAN_WORDS + 1 + i * INPUT_WORDS, get_write_ptr(i));
            cb_push_back(i, 1);
        }
    }
}
