/* One number from one or two, all alike. Which function is an argument: the choice is made once a
 * block, so one compiled kernel serves all of them. The numbers of functions are those of
 * `Unary` and `Binary` in elementwise.rs. */

#define EACH(expression)                                                                           \
    for (uint32_t i = 0; i < count; i++) result[i] = (expression);                                 \
    return

static void unary(uint32_t function, float scalar, const float *restrict x, uint32_t count,
                  float *restrict result) {
    switch (function) {
    case 0: EACH(x[i]);
    case 1: EACH(-x[i]);
    case 2: EACH(exponential(x[i]));
    case 3: EACH(logarithm(x[i]));
    case 4: EACH(__builtin_sqrtf(x[i]));
    case 5: EACH(1.0f / __builtin_sqrtf(x[i]));
    case 6: EACH(maximum(x[i], 0.0f));
    case 7: EACH(x[i] * gelu_gate(x[i]));
    case 8: EACH(hyperbolic_tangent(x[i]));
    case 9: EACH(logistic(x[i]));
    case 10: EACH(x[i] * scalar);
    case 11: EACH(x[i] + scalar);
    }
}

static void binary(uint32_t function, const float *restrict a, const float *restrict b,
                   uint32_t count, float *restrict result) {
    switch (function) {
    case 32: EACH(a[i] + b[i]);
    case 33: EACH(a[i] - b[i]);
    case 34: EACH(a[i] * b[i]);
    case 35: EACH(a[i] / b[i]);
    case 36: EACH(maximum(a[i], b[i]));
    case 37: EACH(b[i] * gelu_slope(a[i]));
    case 38: EACH(a[i] > 0.0f ? b[i] : 0.0f);
    }
}

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    uint32_t function = get_common_arg_val(PLAN_WORDS);
    float scalar = common_float(core, PLAN_WORDS + 1);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    uint32_t inputs = function < 32 ? 1 : 2;
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        uint32_t count = block.height * block.width;
        for (uint32_t i = 0; i < inputs; i++) cb_wait_front(i, 1);
        cb_reserve_back(16, 1);
        if (inputs == 1) unary(function, scalar, get_read_ptr(0), count, get_write_ptr(16));
        else binary(function, get_read_ptr(0), get_read_ptr(1), count, get_write_ptr(16));
        cb_push_back(16, 1);
        for (uint32_t i = 0; i < inputs; i++) cb_pop_front(i, 1);
    }
}
