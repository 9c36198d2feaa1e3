/* The gradients of layer norm for gamma and beta: sums over all rows of the slope, weighted with
 * the normal values for gamma. A group of blocks holds all rows of some columns. */

static void add_rows(const float *restrict x, const float *restrict slope, const float *mean,
                     const float *deviation, uint32_t height, uint32_t width,
                     float *restrict gamma, float *restrict beta) {
    for (uint32_t i = 0; i < height; i++) {
        float middle = mean[i], factor = deviation[i];
        const float *xs = x + i * width, *slopes = slope + i * width;
        for (uint32_t j = 0; j < width; j++) {
            gamma[j] += slopes[j] * ((xs[j] - middle) * factor);
            beta[j] += slopes[j];
        }
    }
}

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    uint32_t group = get_common_arg_val(PLAN_WORDS);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        for (uint32_t i = 0; i < 4; i++) cb_wait_front(i, 1);
        if (unit % group == 0) {
            for (uint32_t i = 0; i < 2; i++) {
                cb_reserve_back(16 + i, 1);
                __builtin_memset(get_write_ptr(16 + i), 0, block.width * 4);
            }
        }
        add_rows(get_read_ptr(0), get_read_ptr(1), get_read_ptr(2), get_read_ptr(3), block.height,
                 block.width, get_write_ptr(16), get_write_ptr(17));
        for (uint32_t i = 0; i < 4; i++) cb_pop_front(i, 1);
        if (unit % group == group - 1)
            for (uint32_t i = 0; i < 2; i++) cb_push_back(16 + i, 1);
    }
}
