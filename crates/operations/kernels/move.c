/* Reads what a result's block is made of when elements only change places: dimensions in another
 * order, a part, repetition, another shape. Tensors have four dimensions here. */

enum { MAPPED = 0, RESHAPED = 1 };

typedef struct {
    tensor_t source;
    uint32_t sizes[4];  /* of the source */
    uint32_t from[4];   /* the result's dimension that walks the source's */
    uint32_t starts[4]; /* where it starts, modulo the size */
} map_t;

static map_t map_read(core_t *core, uint32_t first) {
    map_t map;
    map.source = tensor_read(core, first);
    for (uint32_t d = 0; d < 4; d++) {
        map.sizes[d] = get_common_arg_val(first + 4 + d);
        map.from[d] = get_common_arg_val(first + 8 + d);
        map.starts[d] = get_common_arg_val(first + 12 + d);
    }
    return map;
}

static inline void source_of(const map_t *map, const uint32_t *at, uint32_t *place) {
    for (uint32_t d = 0; d < 4; d++)
        place[d] = (at[map->from[d]] + map->starts[d]) % map->sizes[d];
}

static void read_place(core_t *core, const map_t *map, const uint32_t *place, uint32_t count,
                       float *target) {
    read_row(core, &map->source, place[0] * map->sizes[1] + place[1], place[2], place[3], count,
             target);
}

/* The last dimension stays the last: whole pieces of rows. */
static void read_pieces(core_t *core, const map_t *map, uint32_t *at, uint32_t width,
                        float *target) {
    uint32_t place[4];
    while (width > 0) {
        source_of(map, at, place);
        uint32_t rest = map->sizes[3] - place[3], part = rest < width ? rest : width;
        read_place(core, map, place, part, target);
        at[3] += part;
        target += part;
        width -= part;
    }
}

/* Rows become columns: one row of the source after the other. */
static void read_turned(core_t *core, const map_t *map, uint32_t *at, uint32_t height,
                        uint32_t width, float *target) {
    uint32_t place[4], first = at[2];
    float row[TILE];
    for (uint32_t j = 0; j < width; j++, at[3]++) {
        for (uint32_t done = 0; done < height;) {
            at[2] = first + done;
            source_of(map, at, place);
            uint32_t rest = map->sizes[3] - place[3], part = height - done;
            if (part > rest) part = rest;
            if (part > TILE) part = TILE;
            read_place(core, map, place, part, row);
            for (uint32_t i = 0; i < part; i++) target[(done + i) * width + j] = row[i];
            done += part;
        }
    }
}

static void read_mapped(core_t *core, const plan_t *plan, const block_t *block, const map_t *map,
                        float *target) {
    uint32_t at[4] = {block->matrix / plan->inner, block->matrix % plan->inner, block->row,
                      block->column};
    if (map->from[3] == 2 && map->from[2] == 3) {
        read_turned(core, map, at, block->height, block->width, target);
        return;
    }
    for (uint32_t i = 0; i < block->height; i++) {
        at[2] = block->row + i;
        at[3] = block->column;
        if (map->from[3] == 3) {
            read_pieces(core, map, at, block->width, target + i * block->width);
            continue;
        }
        for (uint32_t j = 0; j < block->width; j++, at[3]++) {
            uint32_t place[4];
            source_of(map, at, place);
            read_place(core, map, place, 1, target + i * block->width + j);
        }
    }
}

/* The same elements in row-major order, cut into other rows. */
static void read_reshaped(core_t *core, const plan_t *plan, const block_t *block,
                          const tensor_t *source, float *target) {
    for (uint32_t i = 0; i < block->height; i++) {
        uint32_t element =
            (block->matrix * plan->rows + block->row + i) * plan->columns + block->column;
        for (uint32_t width = block->width; width > 0;) {
            uint32_t column = element % source->columns, row = element / source->columns;
            uint32_t rest = source->columns - column, part = rest < width ? rest : width;
            read_row(core, source, row / source->rows, row % source->rows, column, part, target);
            element += part;
            target += part;
            width -= part;
        }
    }
}

KERNEL_MAIN {
    plan_t plan = plan_read(core);
    uint32_t kind = get_common_arg_val(PLAN_WORDS);
    map_t map = map_read(core, PLAN_WORDS + 1);
    uint32_t first = get_arg_val(0), end = first + get_arg_val(1);
    for (uint32_t unit = first; unit < end; unit++) {
        block_t block = block_at(&plan, unit);
        cb_reserve_back(16, 1);
        if (kind == RESHAPED)
            read_reshaped(core, &plan, &block, &map.source, get_write_ptr(16));
        else
            read_mapped(core, &plan, &block, &map, get_write_ptr(16));
        cb_push_back(16, 1);
    }
}
