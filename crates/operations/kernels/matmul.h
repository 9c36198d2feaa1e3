/* What the kernels of a matrix product agree on: sizes, operands, and when a panel of the right
 * operand is read again.
 *
 * A unit is a block of the result: up to 32 rows, one panel of columns. The sum over the inner
 * dimension goes chunk by chunk. With `keep`, a panel (then one chunk high) stays while units
 * that follow each other use it: what is reused along a dimension is read once. */

typedef struct {
    plan_t plan;
    uint32_t inner, chunk, keep, left_transposed, right_transposed, has_bias;
    uint32_t left_outer, left_inner, right_outer, right_inner;
} product_t;

#define LEFT_TENSOR (PLAN_WORDS + 10)
#define RIGHT_TENSOR (LEFT_TENSOR + TENSOR_WORDS)
#define BIAS_TENSOR (RIGHT_TENSOR + TENSOR_WORDS)

static product_t product_read(core_t *core) {
    product_t product;
    product.plan = plan_read(core);
    product.inner = get_common_arg_val(PLAN_WORDS);
    product.chunk = get_common_arg_val(PLAN_WORDS + 1);
    product.keep = get_common_arg_val(PLAN_WORDS + 2);
    product.left_transposed = get_common_arg_val(PLAN_WORDS + 3);
    product.right_transposed = get_common_arg_val(PLAN_WORDS + 4);
    product.has_bias = get_common_arg_val(PLAN_WORDS + 5);
    product.left_outer = get_common_arg_val(PLAN_WORDS + 6);
    product.left_inner = get_common_arg_val(PLAN_WORDS + 7);
    product.right_outer = get_common_arg_val(PLAN_WORDS + 8);
    product.right_inner = get_common_arg_val(PLAN_WORDS + 9);
    return product;
}

static inline uint32_t left_matrix(const product_t *product, uint32_t matrix) {
    return matrix / product->plan.inner * product->left_outer +
           matrix % product->plan.inner * product->left_inner;
}

static inline uint32_t right_matrix(const product_t *product, uint32_t matrix) {
    return matrix / product->plan.inner * product->right_outer +
           matrix % product->plan.inner * product->right_inner;
}

static inline int same_panel(const product_t *product, uint32_t unit, uint32_t other) {
    block_t a = block_at(&product->plan, unit), b = block_at(&product->plan, other);
    return product->keep && a.column == b.column &&
           right_matrix(product, a.matrix) == right_matrix(product, b.matrix);
}

static inline uint32_t chunk_height(const product_t *product, uint32_t at) {
    uint32_t rest = product->inner - at;
    return rest < product->chunk ? rest : product->chunk;
}
