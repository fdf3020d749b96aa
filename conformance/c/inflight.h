/* Calls on their way: each has a place, whose number is its token. Included by the runner alone. */
#ifndef INFLIGHT_H
#define INFLIGHT_H

#include "oracle.h"
#include "values.h"

#define MOST_FLIGHTS 256

typedef struct flight {
  const char *name;   /* under which it is left in flight, or NULL */
  const json_t *step; /* NULL: the place is free */
  const method *method;
  uint64_t token;
  uint64_t notices; /* after so many more it is cancelled; 0: it is not */
  bool ended;
  tw_completion completion;
} flight;

static flight flights[MOST_FLIGHTS];

static inline uint64_t take_off(const json_t *step, const method *method) {
  size_t i = 0;
  while (i < MOST_FLIGHTS && flights[i].step) {
    i++;
  }
  if (i == MOST_FLIGHTS) {
    abort();
  }
  flights[i].name = json_string_value(json_object_get(step, "start"));
  flights[i].step = step;
  flights[i].method = method;
  flights[i].token = i + 1;
  flights[i].notices = number(step, "cancel_after_notices", 0);
  flights[i].ended = false;
  return i + 1;
}

static inline const flight *flight_named(const char *name) {
  size_t i;
  for (i = 0; i < MOST_FLIGHTS; i++) {
    if (flights[i].step && flights[i].name && strcmp(flights[i].name, name) == 0) {
      return &flights[i];
    }
  }
  return NULL;
}

/* Its place is free again. */
static inline void forget_flight(uint64_t token) {
  flights[token - 1].step = NULL;
}

/* Waits for one, whichever others end before it. */
static inline uint32_t land(const tw_client *client, uint64_t token, tw_completion *completion,
                            tw_error *error) {
  flight *flight = &flights[token - 1];
  uint32_t code = TW_OK;
  while (code == TW_OK && !flight->ended) {
    uint32_t count = 0;
    tw_completion came;
    code = next_or_answer(client, &came, &count, error);
    if (code == TW_OK && count == 1 && came.kind == TW_COMPLETION_NOTICE) {
      if (--flights[came.token - 1].notices == 0) {
        client->table->cancel(came.call, NULL);
      }
      client->table->release(&came);
    } else if (code == TW_OK && count == 1) {
      flights[came.token - 1].completion = came;
      flights[came.token - 1].ended = true;
    }
  }
  *completion = flight->completion;
  forget_flight(token);
  return code;
}

#endif
