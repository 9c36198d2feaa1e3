/* The gradient of an embedding's table: for each row of the table the sum of the slopes of the
 * tokens that took it, in the tokens' order. A group of blocks is all tokens, once for each strip
 * of the table. */

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    uint32_t group = get_common_arg_val(PLAN_WORDS);
    uint32_t strip_rows = get_common_arg_val(PLAN_WORDS + 1);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        uint32_t width = block.width, low = unit / group * strip_rows;
        cb_wait_front(0, 1);
        cb_wait_front(1, 1);
        if (unit % group == 0) {
            cb_reserve_back(16, 1);
            __builtin_memset(get_write_ptr(16), 0, strip_rows * width * 4);
        }
        const float *slope = get_read_ptr(0);
        const uint32_t *tokens = get_read_ptr(1);
        float *table = get_write_ptr(16);
        for (uint32_t i = 0; i < block.height; i++) {
            uint32_t at = tokens[i] - low;
            if (at >= strip_rows) continue;
            for (uint32_t j = 0; j < width; j++) table[at * width + j] += slope[i * width + j];
        }
        cb_pop_front(1, 1);
        cb_pop_front(0, 1);
        if (unit % group == group - 1) cb_push_back(16, 1);
    }
}
