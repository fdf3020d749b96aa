/* An echo whose calls fail: `echo` with the outcome that its message names, `schedule` after one tick, and the
 * others because they have no function. */
#include "echo_guest.h"

static const struct {
  const char *name;
  uint32_t code;
} outcomes[] = {
    {"guest_panicked", TW_GUEST_PANICKED},
    {"overloaded", TW_OVERLOADED},
    {"timed_out", TW_TIMED_OUT},
};

static int object;

static void timer_new(void *state, const tw_incoming *call, tw_text name) {
  (void)state;
  (void)name;
  echo_timer_new_answer(call, &object, NULL);
}

static void timer_echo(void *state, const tw_incoming *call, void *self,
                       const echo_request *request) {
  const tw_text message = echo_request_message(call->base, request);
  uint32_t code = TW_GUEST_LOST;
  size_t i;
  (void)state;
  (void)self;
  for (i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
    if (message.size == strlen(outcomes[i].name) &&
        memcmp(message.data, outcomes[i].name, message.size) == 0) {
      code = outcomes[i].code;
    }
  }
  tw_incoming_fail(call, code, "the guest has a reason", NULL);
}

static void timer_schedule(void *state, const tw_incoming *call, void *self, uint32_t every_ms,
                           uint32_t times) {
  echo_tick_stream_writer ticks;
  echo_tick tick;
  (void)state;
  (void)self;
  (void)every_ms;
  (void)times;
  if (echo_timer_schedule_answer(call, &ticks, NULL) == TW_OK) {
    memset(&tick, 0, sizeof(tick));
    tick.number = 1;
    echo_tick_stream_writer_send(&ticks, &tick, 1, 0, NULL);
    echo_tick_stream_writer_abort(&ticks, "the guest has lost its ticks", NULL);
  }
}

static echo_guest guest = {
    .timer_new = timer_new,
    .timer_echo = timer_echo,
    .timer_schedule = timer_schedule,
};

ECHO_GUEST_EXPORT(&guest)
