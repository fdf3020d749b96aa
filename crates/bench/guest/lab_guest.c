/* The lab's service as a guest in C: the functions that are compared with those in Rust. The others are
 * left out, and a call of one ends as TW_GUEST_LOST. LAB_PORT: takes its calls from a port. LAB_TRUSTED: the
 * events of a stream are not checked. */
#include <pthread.h>

#include "lab_guest.h"
#ifdef LAB_PORT
#include "serve_port.h"
#endif

static uint32_t open_state(void *context, void **state, tw_error *error) {
  (void)context;
  *state = calloc(1, sizeof(uint64_t));
  return *state ? (uint32_t)TW_OK : tw_fail(error, TW_OVERLOADED, "no memory");
}

static void close_state(void *state) {
  free(state);
}

static void nop(void *state, const tw_incoming *call) {
  (void)state;
  lab_nop_answer(call, NULL);
}

static void nop_async(void *state, const tw_incoming *call) {
  (void)state;
  lab_nop_async_answer(call, NULL);
}

static void tally(void *state, const tw_incoming *call, uint64_t amount) {
  uint64_t *sum = (uint64_t *)state;
  *sum += amount;
  lab_tally_answer(call, *sum, NULL);
}

static void echo(void *state, const tw_incoming *call, tw_bytes data) {
  (void)state;
  lab_echo_answer(call, data, NULL);
}

/* A thread that writes a stream. */
typedef struct writing {
  lab_event_stream_writer events;
  lab_tick_stream_writer ticks;
  uint64_t count;
  uint32_t batch;
} writing;

static void *write_events(void *given) {
  writing *job = (writing *)given;
  lab_event_in event;
  uint64_t number;
  memset(&event, 0, sizeof(event));
  event.kind = LAB_EVENT_KIND_QUOTE;
  event.quote.contract.symbol = 0x4d524554;
  event.quote.contract.expiration = 20261218;
  event.quote.contract.security = 2;
  event.quote.contract.strike = 150.0;
  event.quote.contract.is_call = 1;
  event.quote.contract.exchange = 5;
  event.quote.contract.id = 77;
  event.quote.date = 20261124;
  event.quote.bid_size = 10;
  event.quote.bid_exchange = 3;
  event.quote.bid_condition = 50;
  event.quote.ask_exchange = 4;
  event.quote.ask_condition = 50;
  for (number = 0; number < job->count; number++) {
    const int32_t small = (int32_t)(number & 0xffff);
    event.quote.number = number;
    event.quote.bid = (double)small;
    event.quote.ask = event.quote.bid + 0.25;
    event.quote.ms_of_day = small;
    event.quote.ask_size = small ^ 7;
    if (lab_event_stream_writer_send(&job->events, &event, TW_FOREVER, NULL) != TW_OK) {
      break;
    }
  }
  lab_event_stream_writer_finish(&job->events, NULL);
  free(job);
  return NULL;
}

static void *write_ticks(void *given) {
  writing *job = (writing *)given;
  lab_tick records[256];
  uint64_t number = 0;
  memset(records, 0, sizeof(records));
  while (number < job->count) {
    uint32_t count = 0;
    while (count < job->batch && number < job->count) {
      /* As `tick` in crates/bench/service/src/ticks.rs. */
      const uint64_t bid = 10000 + number % 97;
      records[count].number = number;
      records[count].bid = bid;
      records[count].ask = bid + 1;
      records[count].bid_size = number % 7;
      records[count].ask_size = number % 11;
      records[count].last = bid;
      records[count].volume = 3 * number;
      count++;
      number++;
    }
    if (lab_tick_stream_writer_send(&job->ticks, records, count, TW_FOREVER, NULL) != TW_OK) {
      break;
    }
  }
  lab_tick_stream_writer_finish(&job->ticks, NULL);
  free(job);
  return NULL;
}

static writing *job_of(uint64_t count, uint32_t batch) {
  writing *job = (writing *)calloc(1, sizeof(*job));
  if (!job) {
    abort();
  }
  job->count = count;
  job->batch = batch < 1 ? 1 : batch > 256 ? 256 : batch;
  return job;
}

static void start(void *(*run)(void *), writing *job) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, job) != 0) {
    abort();
  }
  pthread_detach(thread);
}

static void events(void *state, const tw_incoming *call, uint64_t count, uint32_t batch) {
  writing *job = job_of(count, batch);
  (void)state;
  if (lab_events_answer(call, &job->events, NULL) == TW_OK) {
    job->events.tw.batch = job->batch;
#ifdef LAB_TRUSTED
    job->events.tw.flags = TW_WRITE_TRUSTED;
#endif
    start(write_events, job);
  } else {
    free(job);
  }
}

static void ticks(void *state, const tw_incoming *call, uint64_t count, uint32_t batch) {
  writing *job = job_of(count, batch);
  (void)state;
  if (lab_ticks_answer(call, &job->ticks, NULL) == TW_OK) {
    start(write_ticks, job);
  } else {
    free(job);
  }
}

static lab_guest guest = {
    .open = open_state,
    .close = close_state,
    .nop = nop,
    .nop_async = nop_async,
    .tally = tally,
    .echo = echo,
    .events = events,
    .ticks = ticks,
};

#ifdef LAB_PORT
TW_SERVE_FROM_PORT(lab_guest_serve, &guest)
#else
LAB_GUEST_EXPORT(&guest)
#endif
