/* The host of every client; conformance/README.md describes its answers. */
#ifndef ORACLE_H
#define ORACLE_H

#include "conformance.h"

static inline void oracle_look_up(void *context, const tw_host_call *call, uint64_t key) {
  char text[40];
  (void)context;
  snprintf(text, sizeof(text), "number %" PRIu64, key);
  if (key == 101) {
    tw_host_call_fail(call, TW_GUEST_PANICKED, "at 101, on purpose", NULL);
  } else if (key % 2 == 0) {
    conformance_oracle_look_up_answer(call, tw_text_of(text), NULL);
  } else {
    conformance_oracle_look_up_fail(call, key, NULL);
  }
}

static inline void oracle_tell(void *context, const tw_host_call *call,
                               conformance_list_string words, const conformance_option_u32 *at) {
  uint64_t bytes = at->some ? at->value : 0;
  size_t i;
  (void)context;
  for (i = 0; i < words.count; i++) {
    bytes += conformance_list_string_at(call->base, words, i).size;
  }
  conformance_oracle_tell_answer(call, bytes, NULL);
}

static inline void oracle_nod(void *context, const tw_host_call *call) {
  (void)context;
  conformance_oracle_nod_answer(call, NULL);
}

/* Waits for a completion. A host call is answered, and `*count` is then 0. */
static inline uint32_t next_or_answer(const tw_client *client, tw_completion *completion,
                                      uint32_t *count, tw_error *error) {
  const tw_table *table = client->table;
  const uint64_t deadline = tw_deadline_after(client, UINT64_C(60000000000));
  uint32_t code = table->port_wait(client->port, deadline, error);
  if (code == TW_OK) {
    code = table->port_reap(client->port, completion, 1, count, error);
  }
  if (code == TW_OK && *count == 1 && completion->kind == TW_COMPLETION_HOST_CALL) {
    tw_host_serve(client->host, completion);
    *count = 0;
  }
  return code;
}

static inline uint32_t set_oracle(tw_client *client, tw_error *error) {
  static conformance_oracle oracle;
  oracle.tw.serve = conformance_oracle_serve;
  oracle.look_up = oracle_look_up;
  oracle.tell = oracle_tell;
  oracle.nod = oracle_nod;
  return tw_client_set_host(client, &oracle.tw, error);
}

#endif
