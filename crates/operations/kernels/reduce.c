/* Sum, mean or largest along a dimension: along rows within a block, or over blocks that follow
 * each other. The result's block leaves after the last block of its group. */

enum { SUM = 0, MEAN = 1, LARGEST = 2 };
enum { ALONG_COLUMNS = 0, ALONG_ROWS = 1, ALONG_MATRICES = 2 };

static void along_columns(uint32_t function, const float *x, uint32_t height, uint32_t width,
                          float *result) {
    for (uint32_t i = 0; i < height; i++) {
        const float *row = x + i * width;
        if (function == LARGEST) result[i] = maximum_of(row, width);
        else result[i] = sum_of(row, width);
    }
}

static void fold(uint32_t function, const float *restrict x, uint32_t count,
                 float *restrict result) {
    if (function == LARGEST)
        for (uint32_t i = 0; i < count; i++) result[i] = maximum(x[i], result[i]);
    else
        for (uint32_t i = 0; i < count; i++) result[i] += x[i];
}

static void fold_block(uint32_t function, uint32_t direction, int fresh, const float *x,
                       uint32_t height, uint32_t width, float *result) {
    if (direction == ALONG_MATRICES) {
        if (fresh) __builtin_memcpy(result, x, height * width * 4);
        else fold(function, x, height * width, result);
        return;
    }
    for (uint32_t i = 0; i < height; i++) {
        if (fresh && i == 0) __builtin_memcpy(result, x, width * 4);
        else fold(function, x + i * width, width, result);
    }
}

static void scale(float factor, uint32_t count, float *values) {
    for (uint32_t i = 0; i < count; i++) values[i] *= factor;
}

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    uint32_t function = get_common_arg_val(PLAN_WORDS);
    uint32_t direction = get_common_arg_val(PLAN_WORDS + 1);
    uint32_t group = get_common_arg_val(PLAN_WORDS + 2);
    float factor = 1.0f / (float)get_common_arg_val(PLAN_WORDS + 3);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        int fresh = unit % group == 0, last = unit % group == group - 1;
        uint32_t results = direction == ALONG_COLUMNS ? block.height
                           : direction == ALONG_ROWS  ? block.width
                                                      : block.height * block.width;
        cb_wait_front(0, 1);
        if (fresh) cb_reserve_back(16, 1);
        float *result = get_write_ptr(16);
        if (direction == ALONG_COLUMNS)
            along_columns(function, get_read_ptr(0), block.height, block.width, result);
        else
            fold_block(function, direction, fresh, get_read_ptr(0), block.height, block.width,
                       result);
        cb_pop_front(0, 1);
        if (last) {
            if (function == MEAN) scale(factor, results, result);
            cb_push_back(16, 1);
        }
    }
}
