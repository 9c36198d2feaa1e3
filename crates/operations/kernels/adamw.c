/* One step of AdamW: parameter, both moments and the gradient come in, the first three go out.
 * Everything that changes from step to step is an argument. */

typedef struct {
    float decay_factor, beta1, beta2, step_size, correction2_root, epsilon;
} step_t;

static void step(const step_t *step, const float *restrict gradient, uint32_t count,
                 float *restrict parameter, float *restrict first, float *restrict second) {
    float beta1 = step->beta1, rest1 = 1.0f - beta1, beta2 = step->beta2, rest2 = 1.0f - beta2;
    float keep = step->decay_factor, size = step->step_size;
    float root = step->correction2_root, epsilon = step->epsilon;
    for (uint32_t i = 0; i < count; i++) {
        float g = gradient[i];
        float m = beta1 * first[i] + rest1 * g;
        float v = beta2 * second[i] + rest2 * g * g;
        first[i] = m;
        second[i] = v;
        parameter[i] = parameter[i] * keep - size * m / (__builtin_sqrtf(v) / root + epsilon);
    }
}

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    step_t values = {common_float(core, PLAN_WORDS),     common_float(core, PLAN_WORDS + 1),
                     common_float(core, PLAN_WORDS + 2), common_float(core, PLAN_WORDS + 3),
                     common_float(core, PLAN_WORDS + 4), common_float(core, PLAN_WORDS + 5)};
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        uint32_t count = block.height * block.width;
        for (uint32_t i = 0; i < 4; i++) cb_wait_front(i, 1);
        for (uint32_t i = 0; i < 3; i++) {
            cb_reserve_back(16 + i, 1);
            __builtin_memcpy(get_write_ptr(16 + i), get_read_ptr(i), count * 4);
        }
        step(&values, get_read_ptr(3), count, get_write_ptr(16), get_write_ptr(17),
             get_write_ptr(18));
        for (uint32_t i = 0; i < 3; i++) cb_push_back(16 + i, 1);
        for (uint32_t i = 0; i < 4; i++) cb_pop_front(i, 1);
    }
}
