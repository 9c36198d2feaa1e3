/* Reads the rows of a table that tokens name. A token beyond the table ends the program with an
 * error that shows it. */

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    tensor_t tokens = tensor_read(core, PLAN_WORDS);
    tensor_t table = tensor_read(core, PLAN_WORDS + TENSOR_WORDS);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        cb_reserve_back(16, 1);
        float *target = get_write_ptr(16);
        for (uint32_t i = 0; i < block.height; i++) {
            uint32_t token;
            noc_read_bytes(tokens.address, (block.matrix * plan.rows + block.row + i) * 4u, 4,
                           &token);
            if (token >= table.rows) kernel_fail(token);
            read_row(core, &table, 0, token, block.column, block.width,
                     target + i * block.width);
        }
        cb_push_back(16, 1);
    }
}
