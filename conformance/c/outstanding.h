/* Outstanding calls. The token of a call is the number of its slot, from 1. Included only by the
 * runner. */
#ifndef OUTSTANDING_H
#define OUTSTANDING_H

#include "oracle.h"
#include "values.h"

#define MAX_CALLS 256

typedef struct outstanding_call {
  const char *name;   /* for a later `await`, or NULL */
  const json_t *step; /* NULL: the slot is free */
  const method *method;
  uint64_t token;
  uint64_t notices; /* progress notices until it is cancelled; 0: never */
  bool ended;
  tw_completion completion;
} outstanding_call;

static outstanding_call calls[MAX_CALLS];

static inline uint64_t add_call(const json_t *step, const method *method) {
  size_t i = 0;
  while (i < MAX_CALLS && calls[i].step) {
    i++;
  }
  if (i == MAX_CALLS) {
    abort();
  }
  calls[i].name = json_string_value(json_object_get(step, "start"));
  calls[i].step = step;
  calls[i].method = method;
  calls[i].token = i + 1;
  calls[i].notices = number(step, "cancel_after_notices", 0);
  calls[i].ended = false;
  return i + 1;
}

static inline const outstanding_call *find_call(const char *name) {
  size_t i;
  for (i = 0; i < MAX_CALLS; i++) {
    if (calls[i].step && calls[i].name && strcmp(calls[i].name, name) == 0) {
      return &calls[i];
    }
  }
  return NULL;
}

/* Frees a slot. */
static inline void remove_call(uint64_t token) {
  calls[token - 1].step = NULL;
}

/* Frees the calls that a scenario has left, because it failed. */
static inline void remove_all_calls(const tw_client *client) {
  size_t i;
  for (i = 0; i < MAX_CALLS; i++) {
    if (calls[i].step && calls[i].ended) {
      client->table->release(&calls[i].completion);
    }
    calls[i].step = NULL;
  }
}

/* Waits for a call. Other calls may end before it. */
static inline uint32_t wait_for_call(const tw_client *client, uint64_t token,
                                     tw_completion *completion, tw_error *error) {
  outstanding_call *outstanding_call = &calls[token - 1];
  uint32_t code = TW_OK;
  while (code == TW_OK && !outstanding_call->ended) {
    uint32_t count = 0;
    tw_completion reaped;
    code = next_or_answer(client, &reaped, &count, error);
    if (code == TW_OK && count == 1 && reaped.kind == TW_COMPLETION_NOTICE) {
      if (--calls[reaped.token - 1].notices == 0) {
        client->table->cancel(reaped.call, NULL);
      }
      client->table->release(&reaped);
    } else if (code == TW_OK && count == 1) {
      calls[reaped.token - 1].completion = reaped;
      calls[reaped.token - 1].ended = true;
    }
  }
  *completion = outstanding_call->completion;
  remove_call(token);
  return code;
}

#endif
