/* Writes the blocks of up to four results, each from its own circular buffer from 16 on. Rows of a
 * block lie as many numbers apart as it is wide, or as far as an argument says. */

#define FIRST_RESULT 16

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    uint32_t results = get_common_arg_val(PLAN_WORDS);
    uint32_t stride = get_common_arg_val(PLAN_WORDS + 1);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        for (uint32_t i = 0; i < results; i++) {
            tensor_t result = tensor_read(core, PLAN_WORDS + 2 + i * TENSOR_WORDS);
            uint32_t one_column = result.columns == 1;
            uint32_t width = one_column ? 1 : block.width;
            cb_wait_front(FIRST_RESULT + i, 1);
            write_block(core, &result, block.matrix, block.row, one_column ? 0 : block.column,
                        block.height, width, get_read_ptr(FIRST_RESULT + i), stride ? stride : width);
            cb_pop_front(FIRST_RESULT + i, 1);
        }
    }
}
