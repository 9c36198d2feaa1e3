/* Layer norm of each row, with the mean and the reciprocal deviation as further results; and its
 * gradient for the input. */

static void forward(const float *restrict x, const float *restrict gamma,
                    const float *restrict beta, uint32_t width, float epsilon, float *restrict y,
                    float *mean, float *deviation) {
    float middle = sum_of(x, width) / (float)width;
    for (uint32_t j = 0; j < width; j++) y[j] = x[j] - middle;
    float factor = 1.0f / __builtin_sqrtf(dot_of(y, y, width) / (float)width + epsilon);
    for (uint32_t j = 0; j < width; j++) y[j] = y[j] * factor * gamma[j] + beta[j];
    *mean = middle;
    *deviation = factor;
}

/* The gradient without its constant part (its mean) and its part along the normal values. */
static void backward(const float *restrict x, const float *restrict slope,
                     const float *restrict gamma, float mean, float factor, uint32_t width,
                     float *restrict result) {
    f16_t plain = {0}, along = {0};
    float plain_rest = 0.0f, along_rest = 0.0f;
    uint32_t j = 0;
    for (; j + LANES <= width; j += LANES) {
        f16_t weighted = lanes_at(slope + j) * lanes_at(gamma + j);
        plain += weighted;
        along += weighted * ((lanes_at(x + j) - mean) * factor);
    }
    for (; j < width; j++) {
        plain_rest += slope[j] * gamma[j];
        along_rest += slope[j] * gamma[j] * ((x[j] - mean) * factor);
    }
    float a = (lanes_sum(plain) + plain_rest) / (float)width;
    float b = (lanes_sum(along) + along_rest) / (float)width;
    for (j = 0; j < width; j++)
        result[j] = factor * (slope[j] * gamma[j] - a - (x[j] - mean) * factor * b);
}

static void forward_block(core_t *core, const block_t *block, float epsilon) {
    const float *x = get_read_ptr(0), *gamma = get_read_ptr(1), *beta = get_read_ptr(2);
    for (uint32_t i = 0; i < 3; i++) cb_reserve_back(16 + i, 1);
    float *y = get_write_ptr(16), *mean = get_write_ptr(17), *deviation = get_write_ptr(18);
    uint32_t width = block->width;
    for (uint32_t i = 0; i < block->height; i++)
        forward(x + i * width, gamma, beta, width, epsilon, y + i * width, mean + i,
                deviation + i);
    for (uint32_t i = 0; i < 3; i++) cb_push_back(16 + i, 1);
}

static void backward_block(core_t *core, const block_t *block) {
    const float *x = get_read_ptr(0), *slope = get_read_ptr(1), *gamma = get_read_ptr(2);
    const float *mean = get_read_ptr(3), *deviation = get_read_ptr(4);
    cb_reserve_back(16, 1);
    float *result = get_write_ptr(16);
    uint32_t width = block->width;
    for (uint32_t i = 0; i < block->height; i++)
        backward(x + i * width, slope + i * width, gamma, mean[i], deviation[i], width,
                 result + i * width);
    cb_push_back(16, 1);
}

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    uint32_t backwards = get_common_arg_val(PLAN_WORDS);
    float epsilon = common_float(core, PLAN_WORDS + 1);
    uint32_t inputs = backwards ? 5 : 3;
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        for (uint32_t i = 0; i < inputs; i++) cb_wait_front(i, 1);
        if (backwards) backward_block(core, &block);
        else forward_block(core, &block, epsilon);
        for (uint32_t i = 0; i < inputs; i++) cb_pop_front(i, 1);
    }
}
