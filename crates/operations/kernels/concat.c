/* Reads a result's block from tensors that lie one after the other along one of four dimensions. */

#define INPUT_WORDS (TENSOR_WORDS + 2) /* a tensor, then its sizes in the first two dimensions */

/* The piece of one row that starts at `at`, which is moved on by the piece's length. */
static uint32_t read_piece(core_t *core, uint32_t axis, uint32_t inputs, uint32_t *at,
                           uint32_t count, float *target) {
    uint32_t before = 0;
    for (uint32_t i = 0; i < inputs; i++) {
        uint32_t first = PLAN_WORDS + 2 + i * INPUT_WORDS;
        tensor_t input = tensor_read(core, first);
        uint32_t sizes[4] = {get_common_arg_val(first + 4), get_common_arg_val(first + 5),
                             input.rows, input.columns};
        if (at[axis] - before >= sizes[axis]) {
            before += sizes[axis];
            continue;
        }
        uint32_t place[4] = {at[0], at[1], at[2], at[3]};
        place[axis] -= before;
        uint32_t rest = sizes[3] - place[3], part = rest < count ? rest : count;
        read_row(core, &input, place[0] * sizes[1] + place[1], place[2], place[3], part, target);
        return part;
    }
    kernel_fail(at[axis]);
}

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    uint32_t axis = get_common_arg_val(PLAN_WORDS);
    uint32_t inputs = get_common_arg_val(PLAN_WORDS + 1);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        cb_reserve_back(16, 1);
        float *target = get_write_ptr(16);
        for (uint32_t i = 0; i < block.height; i++) {
            uint32_t at[4] = {block.matrix / plan.inner, block.matrix % plan.inner, block.row + i,
                              block.column};
            for (uint32_t done = 0; done < block.width;) {
                uint32_t part =
                    read_piece(core, axis, inputs, at, block.width - done, target + done);
                done += part;
                at[3] += part;
            }
            target += block.width;
        }
        cb_push_back(16, 1);
    }
}
