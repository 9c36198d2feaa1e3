/* Cross entropy of each row of logits with the row's target column, and its gradient, times a
 * factor (one over the number of rows, for a mean). A target that is no column gives NaN. */

static float forward(const float *logits, uint32_t target, uint32_t width, float *scratch) {
    float largest = maximum_of(logits, width);
    for (uint32_t j = 0; j < width; j++) scratch[j] = exponential(logits[j] - largest);
    float loss = logarithm(sum_of(scratch, width)) + largest;
    return target < width ? loss - logits[target] : __builtin_nanf("");
}

static void backward(const float *logits, uint32_t target, uint32_t width, float factor,
                     float *result) {
    float largest = maximum_of(logits, width);
    for (uint32_t j = 0; j < width; j++) result[j] = exponential(logits[j] - largest);
    float scale = factor / sum_of(result, width);
    if (target >= width) scale = __builtin_nanf("");
    for (uint32_t j = 0; j < width; j++) result[j] *= scale;
    if (target < width) result[target] -= factor;
}

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    uint32_t backwards = get_common_arg_val(PLAN_WORDS);
    float factor = common_float(core, PLAN_WORDS + 1);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        cb_wait_front(0, 1);
        cb_wait_front(1, 1);
        cb_reserve_back(16, 1);
        const float *logits = get_read_ptr(0);
        const uint32_t *targets = get_read_ptr(1);
        float *result = get_write_ptr(16);
        uint32_t width = block.width;
        if (backwards) {
            for (uint32_t i = 0; i < block.height; i++)
                backward(logits + i * width, targets[i], width, factor, result + i * width);
        } else {
            cb_reserve_back(24, 1);
            for (uint32_t i = 0; i < block.height; i++)
                result[i] = factor *
                            forward(logits + i * width, targets[i], width, get_write_ptr(24));
        }
        cb_push_back(16, 1);
        cb_pop_front(1, 1);
        cb_pop_front(0, 1);
    }
}
