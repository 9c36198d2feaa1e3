/* Softmax of each row of x * scale, forward and backward. Causal: row r of a matrix sees its first
 * r + 1 columns, and those by which the matrix is wider than high. */

static uint32_t columns_seen(const plan_t *plan, uint32_t causal, uint32_t row) {
    if (!causal) return plan->columns;
    uint32_t wider = plan->columns > plan->rows ? plan->columns - plan->rows : 0;
    uint32_t seen = row + 1 + wider;
    return seen < plan->columns ? seen : plan->columns;
}

static void forward(const float *restrict x, uint32_t seen, uint32_t width, float scale,
                    float *restrict y) {
    /* The largest of the scaled values, whatever the sign of the scale. */
    for (uint32_t j = 0; j < seen; j++) y[j] = x[j] * scale;
    float largest = maximum_of(y, seen);
    for (uint32_t j = 0; j < seen; j++) y[j] = exponential(y[j] - largest);
    float factor = 1.0f / sum_of(y, seen);
    for (uint32_t j = 0; j < seen; j++) y[j] *= factor;
    for (uint32_t j = seen; j < width; j++) y[j] = 0.0f;
}

static void backward(const float *restrict y, const float *restrict slope, uint32_t seen,
                     uint32_t width, float scale, float *restrict result) {
    float inner = dot_of(y, slope, seen);
    for (uint32_t j = 0; j < seen; j++) result[j] = y[j] * (slope[j] - inner) * scale;
    for (uint32_t j = seen; j < width; j++) result[j] = 0.0f;
}

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    uint32_t backwards = get_common_arg_val(PLAN_WORDS);
    uint32_t causal = get_common_arg_val(PLAN_WORDS + 1);
    float scale = common_float(core, PLAN_WORDS + 2);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        cb_wait_front(0, 1);
        if (backwards) cb_wait_front(1, 1);
        cb_reserve_back(16, 1);
        const float *x = get_read_ptr(0), *slope = backwards ? get_read_ptr(1) : 0;
        float *result = get_write_ptr(16);
        for (uint32_t i = 0; i < block.height; i++) {
            uint32_t seen = columns_seen(&plan, causal, block.row + i), at = i * block.width;
            if (backwards) backward(x + at, slope + at, seen, block.width, scale, result + at);
            else forward(x + at, seen, block.width, scale, result + at);
        }
        cb_push_back(16, 1);
        cb_pop_front(0, 1);
        if (backwards) cb_pop_front(1, 1);
    }
}
