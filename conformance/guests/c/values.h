/* Arguments as results: the generated header has two structs for a type with text, bytes or lists. */
#ifndef VALUES_H
#define VALUES_H

#include "conformance_guest.h"

/* Memory of one call. */
typedef struct scratch {
  struct block *first;
} scratch;

typedef struct block {
  struct block *next;
  uint64_t memory[];
} block;

static inline void *scratch_take(scratch *memory, size_t count, size_t size) {
  block *taken = (block *)calloc(1, sizeof(block) + count * size);
  if (!taken) {
    abort();
  }
  taken->next = memory->first;
  memory->first = taken;
  return taken->memory;
}

static inline void scratch_free(scratch *memory) {
  while (memory->first) {
    block *next = memory->first->next;
    free(memory->first);
    memory->first = next;
  }
}

/* Fills in `list` with `item_of` each item of `view`. */
#define LIST_OF(list, item, view, item_of)                                                         \
  do {                                                                                             \
    item *items = (item *)scratch_take(memory, (view).count, sizeof(item));                        \
    size_t i;                                                                                      \
    for (i = 0; i < (view).count; i++) {                                                           \
      items[i] = item_of;                                                                          \
    }                                                                                              \
    (list).items = items;                                                                          \
    (list).count = (view).count;                                                                   \
  } while (0)

static inline conformance_list_string_in strings_of(scratch *memory, const uint8_t *base,
                                                    conformance_list_string view) {
  conformance_list_string_in list;
  LIST_OF(list, tw_text, view, conformance_list_string_at(base, view, i));
  return list;
}

static inline conformance_list_list_s32_in grid_of(scratch *memory, const uint8_t *base,
                                                   conformance_list_list_s32 view) {
  conformance_list_list_s32_in list;
  LIST_OF(list, conformance_list_s32, view, conformance_list_list_s32_at(base, view, i));
  return list;
}

static inline conformance_option_string_in option_of(const uint8_t *base,
                                                     const conformance_option_string *view) {
  conformance_option_string_in option;
  memset(&option, 0, sizeof(option));
  option.some = conformance_option_string_get(base, view, &option.value);
  return option;
}

static inline conformance_result_point_string_in
outcome_of(const uint8_t *base, const conformance_result_point_string *view) {
  conformance_result_point_string_in outcome;
  memset(&outcome, 0, sizeof(outcome));
  outcome.tag = view->tag;
  if (!conformance_result_point_string_error(base, view, &outcome.value.error)) {
    outcome.value.ok = view->value.ok;
  }
  return outcome;
}

static inline conformance_tuple2_string_option_list_u8_in
named_bytes_of(const uint8_t *base, const conformance_tuple2_string_option_list_u8 *view) {
  conformance_tuple2_string_option_list_u8_in pair;
  memset(&pair, 0, sizeof(pair));
  pair.f0 = conformance_tuple2_string_option_list_u8_f0(base, view);
  pair.f1.some = conformance_tuple2_string_option_list_u8_f1(base, view, &pair.f1.value);
  return pair;
}

static inline conformance_shape_in shape_of(const uint8_t *base, const conformance_shape *view) {
  const conformance_tuple2_point_point *line;
  conformance_shape_in shape;
  memset(&shape, 0, sizeof(shape));
  shape.tag = view->tag;
  if (conformance_shape_line(base, view, &line)) {
    shape.value.line = *line;
  } else if (!conformance_shape_circle(base, view, &shape.value.circle) &&
             !conformance_shape_label(base, view, &shape.value.label) &&
             !conformance_shape_polygon(base, view, &shape.value.polygon)) {
    conformance_shape_static_(base, view, &shape.value.static_);
  }
  return shape;
}

static inline conformance_list_shape_in shapes_of(scratch *memory, const uint8_t *base,
                                                  conformance_list_shape view) {
  conformance_list_shape_in list;
  LIST_OF(list, conformance_shape_in, view, shape_of(base, &view.items[i]));
  return list;
}

static inline conformance_nested_in nested_of(scratch *memory, const uint8_t *base,
                                              const conformance_nested *view) {
  const conformance_list_result_point_string outcomes = conformance_nested_outcomes(base, view);
  const conformance_list_tuple2_string_option_list_u8 pairs = conformance_nested_pairs(base, view);
  conformance_nested_in nested;
  memset(&nested, 0, sizeof(nested));
  nested.text = conformance_nested_text(base, view);
  nested.bytes = conformance_nested_bytes(base, view);
  nested.names = strings_of(memory, base, conformance_nested_names(base, view));
  nested.grid = grid_of(memory, base, conformance_nested_grid(base, view));
  nested.maybe.some = conformance_nested_maybe(base, view, &nested.maybe.value);
  nested.twice = view->twice;
  LIST_OF(nested.outcomes, conformance_result_point_string_in, outcomes,
          outcome_of(base, &outcomes.items[i]));
  LIST_OF(nested.pairs, conformance_tuple2_string_option_list_u8_in, pairs,
          named_bytes_of(base, &pairs.items[i]));
  nested.shapes = shapes_of(memory, base, conformance_nested_shapes(base, view));
  nested.color = view->color;
  nested.rights = view->rights;
  nested.aliased = strings_of(memory, base, conformance_nested_aliased(base, view));
  return nested;
}

static inline conformance_keywords_in keywords_of(const uint8_t *base,
                                                  const conformance_keywords *view) {
  conformance_keywords_in keywords;
  memset(&keywords, 0, sizeof(keywords));
  keywords.type = view->type;
  keywords.match = conformance_keywords_match(base, view);
  keywords.async = view->async;
  keywords.self = view->self;
  keywords.crate = view->crate;
  keywords.super = view->super;
  keywords.fn = view->fn;
  keywords.class_ = conformance_keywords_class_(base, view);
  keywords.def = conformance_keywords_def(base, view);
  keywords.lambda = conformance_keywords_lambda(base, view);
  keywords.none = view->none;
  keywords.return_ = view->return_;
  keywords.struct_ = view->struct_;
  keywords.int_ = view->int_;
  keywords.default_ = view->default_;
  keywords.register_ = view->register_;
  keywords.static_ = view->static_;
  keywords.import = view->import;
  keywords.from = view->from;
  keywords.yield = view->yield;
  keywords.await = view->await;
  keywords.nullptr_ = view->nullptr_;
  keywords.errno_ = view->errno_;
  return keywords;
}

static inline conformance_failure_in failure_of(const uint8_t *base,
                                                const conformance_failure *view) {
  const conformance_tuple2_string_point *at;
  conformance_failure_in failure;
  memset(&failure, 0, sizeof(failure));
  failure.tag = view->tag;
  if (conformance_failure_at(base, view, &at)) {
    failure.value.at.f0 = conformance_tuple2_string_point_f0(base, at);
    failure.value.at.f1 = at->f1;
  } else {
    conformance_failure_code(base, view, &failure.value.code);
  }
  return failure;
}

/* The case `code`. */
static inline conformance_failure_in failure_code(uint32_t code) {
  conformance_failure_in failure;
  memset(&failure, 0, sizeof(failure));
  failure.tag = CONFORMANCE_FAILURE_CODE;
  failure.value.code = code;
  return failure;
}

static inline conformance_fixed_in fixed_of(const uint8_t *base, const conformance_fixed *view) {
  const conformance_list2_option_string *maybe = NULL;
  conformance_fixed_in fixed;
  size_t i;
  memset(&fixed, 0, sizeof(fixed));
  fixed.flag = view->flag;
  fixed.key = view->key;
  fixed.place = view->place;
  fixed.grid = view->grid;
  fixed.colors = view->colors;
  fixed.corners = view->corners;
  fixed.maybe.some = conformance_fixed_maybe(base, view, &maybe);
  for (i = 0; i < 2; i++) {
    fixed.names.items[i] = conformance_list2_string_at(base, &view->names, i);
    if (fixed.maybe.some) {
      fixed.maybe.value.items[i] = option_of(base, &maybe->items[i]);
    }
  }
  return fixed;
}

#endif
