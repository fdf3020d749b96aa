/* Streams with a callback, and with their own file descriptor. */
#include <poll.h>
#include <pthread.h>

#include "host.h"

#define RACES 2000

static conformance_client client;

static tw_stream numbers(uint64_t first, uint64_t count) {
  conformance_count_result result;
  tw_error error;
  REQUIRE_OK(conformance_count(&client, first, count, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
  return result.ok.tw;
}

static tw_stream endless(void) {
  conformance_endless_result result;
  tw_error error;
  REQUIRE_OK(conformance_endless(&client, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
  return result.ok.tw;
}

/* The ctx of a callback. `forget` frees it, so that AddressSanitizer detects a later call. */
typedef struct received {
  tw_stream stream;
  uint64_t first;
  uint64_t next;
  uint64_t calls;
  uint32_t ended; /* the outcome */
  uint32_t closed_in_it;
  uint32_t joined_in_it;
  uint32_t stops_after; /* calls; 0: never */
} received;

/* A copy of the last ctx that was dropped, and the numbers of those dropped and made. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static received last;
static uint32_t dropped;
static uint32_t made;

static void forget(void *ctx) {
  pthread_mutex_lock(&lock);
  last = *(received *)ctx;
  dropped++;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  free(ctx);
}

static received *new_ctx(tw_stream stream, uint64_t first) {
  received *fresh = (received *)calloc(1, sizeof(received));
  if (!fresh) {
    exit(1);
  }
  fresh->stream = stream;
  fresh->first = first;
  fresh->next = first;
  made++;
  return fresh;
}

static void all_are_dropped(void) {
  pthread_mutex_lock(&lock);
  while (dropped < made) {
    pthread_cond_wait(&changed, &lock);
  }
  CHECK(dropped == made);
  pthread_mutex_unlock(&lock);
}

static uint32_t count(void *ctx, const tw_batch *batch, const tw_error *outcome) {
  received *mine = (received *)ctx;
  uint32_t i;
  mine->calls++;
  if (outcome) {
    CHECK(batch->flags == TW_BATCH_END && batch->count == 0 && mine->ended == 0);
    mine->ended = outcome->code;
    return 0;
  }
  CHECK(batch->flags == 0 && batch->count > 0 && batch->lost_before == 0);
  CHECK(batch->first_seq == mine->next - mine->first);
  for (i = 0; i < batch->count; i++) {
    CHECK(*(const uint64_t *)tw_batch_at(batch, i) == mine->next);
    mine->next++;
  }
  return mine->stops_after != 0 && mine->calls >= mine->stops_after;
}

static void callback_receives_all_records_and_then_the_outcome(void) {
  tw_stream stream = numbers(5, 20000);
  tw_batch batch;
  tw_error error;
  uint32_t ready;
  REQUIRE_OK(tw_stream_subscribe(&stream, count, new_ctx(stream, 5), forget, &error), error);
  REQUIRE_OK(tw_stream_join(&stream, TW_FOREVER, &error), error);
  CHECK(dropped == made && last.next == 20005 && last.ended == TW_CLOSED);
  /* After its end, the stream can be read again and has no records. */
  CHECK_CODE(tw_stream_join(&stream, 0, &error), TW_OK);
  CHECK_CODE(tw_stream_acquire(&stream, 1, 0, 8, &batch, &error), TW_CLOSED);
  CHECK_CODE(tw_stream_close(&stream, &error), TW_OK);
  stream = endless();
  REQUIRE_OK(tw_stream_subscribe(&stream, count, new_ctx(stream, 0), forget, &error), error);
  CHECK_CODE(tw_stream_acquire(&stream, 1, 0, 8, &batch, &error), TW_ARGUMENT);
  CHECK_CODE(tw_stream_arm(&stream, &client.tw, 0, &ready, &error), TW_ARGUMENT);
  CHECK_CODE(tw_stream_join(&stream, 0, &error), TW_TIMED_OUT);
  CHECK_CODE(tw_stream_close(&stream, &error), TW_OK);
  CHECK(dropped == made);
  CHECK(running_becomes(&client, 0));
}

static void refused_callback_leaves_ctx_with_the_caller(void) {
  tw_stream stream = numbers(0, 10);
  received *mine = new_ctx(stream, 0);
  tw_stream copy = stream;
  tw_batch batch;
  tw_error error;
  const tw_table *table = stream.table;
  CHECK_CODE(tw_stream_subscribe(&stream, NULL, mine, forget, &error), TW_ARGUMENT);
  CHECK_CODE(table->stream_subscribe(stream.handle, count, mine, forget, 1, &error), TW_ARGUMENT);
  REQUIRE_OK(tw_stream_acquire(&stream, 1, TW_FOREVER, 8, &batch, &error), error);
  CHECK_CODE(tw_stream_subscribe(&stream, count, mine, forget, &error), TW_ARGUMENT);
  CHECK_CODE(tw_stream_close(&stream, &error), TW_OK);
  CHECK_CODE(tw_stream_subscribe(&copy, count, mine, forget, &error), TW_STALE);
  CHECK(dropped + 1 == made);
  forget(mine);
  /* drop_ctx may be NULL. */
  stream = numbers(0, 10);
  mine = new_ctx(stream, 0);
  REQUIRE_OK(tw_stream_subscribe(&stream, count, mine, NULL, &error), error);
  REQUIRE_OK(tw_stream_join(&stream, TW_FOREVER, &error), error);
  CHECK(mine->next == 10);
  forget(mine);
  CHECK_CODE(tw_stream_close(&stream, &error), TW_OK);
}

static void callback_that_returns_nonzero_stops_the_writer(void) {
  tw_stream stream = endless();
  received *mine = new_ctx(stream, 0);
  tw_error error;
  mine->stops_after = 3;
  REQUIRE_OK(tw_stream_subscribe(&stream, count, mine, forget, &error), error);
  REQUIRE_OK(tw_stream_join(&stream, TW_FOREVER, &error), error);
  CHECK(dropped == made && last.calls == 3 && last.ended == 0);
  CHECK(running_becomes(&client, 0));
  CHECK_CODE(tw_stream_close(&stream, &error), TW_OK);
}

static uint32_t close_own(void *ctx, const tw_batch *batch, const tw_error *outcome) {
  received *mine = (received *)ctx;
  (void)batch;
  CHECK(outcome == NULL);
  mine->calls++;
  mine->joined_in_it = tw_stream_join(&mine->stream, TW_FOREVER, NULL);
  mine->closed_in_it = tw_stream_close(&mine->stream, NULL);
  return 0;
}

static void callback_can_close_its_stream_but_not_join_it(void) {
  tw_stream stream = endless();
  tw_error error;
  REQUIRE_OK(tw_stream_subscribe(&stream, close_own, new_ctx(stream, 0), forget, &error), error);
  all_are_dropped();
  CHECK(last.calls == 1);
  CHECK_CODE(last.joined_in_it, TW_WOULD_PARK);
  CHECK_CODE(last.closed_in_it, TW_OK);
  CHECK_CODE(tw_stream_close(&stream, &error), TW_STALE);
  CHECK(running_becomes(&client, 0));
}

static void closing_the_client_makes_the_last_call(void) {
  conformance_client other = open_client(1);
  conformance_endless_result result;
  tw_error error;
  REQUIRE_OK(conformance_endless(&other, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
  REQUIRE_OK(tw_stream_subscribe(&result.ok.tw, count, new_ctx(result.ok.tw, 0), forget, &error),
             error);
  close_client(&other);
  REQUIRE_OK(tw_stream_join(&result.ok.tw, TW_FOREVER, &error), error);
  CHECK(dropped == made);
  CHECK_CODE(last.ended, TW_CANCELLED);
  CHECK_CODE(tw_stream_close(&result.ok.tw, &error), TW_OK);
}

static bool continues;

static uint32_t wait_there(void *ctx, const tw_batch *batch, const tw_error *outcome) {
  received *mine = (received *)ctx;
  (void)batch;
  pthread_mutex_lock(&lock);
  if (!outcome) {
    mine->calls++;
    last = *mine;
    pthread_cond_broadcast(&changed);
  }
  while (!continues) {
    pthread_cond_wait(&changed, &lock);
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

static void *let_continue(void *ignored) {
  pthread_mutex_lock(&lock);
  continues = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return ignored;
}

static void slow_callback_does_not_stop_another_stream(void) {
  tw_stream slow = endless();
  tw_stream other;
  pthread_t thread;
  tw_error error;
  continues = false;
  last.calls = 0;
  REQUIRE_OK(tw_stream_subscribe(&slow, wait_there, new_ctx(slow, 0), forget, &error), error);
  pthread_mutex_lock(&lock);
  while (last.calls == 0) {
    pthread_cond_wait(&changed, &lock);
  }
  pthread_mutex_unlock(&lock);
  other = numbers(0, 50000);
  REQUIRE_OK(tw_stream_subscribe(&other, count, new_ctx(other, 0), forget, &error), error);
  REQUIRE_OK(tw_stream_join(&other, TW_FOREVER, &error), error);
  CHECK(last.next == 50000);
  CHECK_CODE(tw_stream_close(&other, &error), TW_OK);
  /* A close on another thread waits for the running call. */
  CHECK(pthread_create(&thread, NULL, let_continue, NULL) == 0);
  CHECK_CODE(tw_stream_close(&slow, &error), TW_OK);
  CHECK(continues && dropped == made);
  pthread_join(thread, NULL);
}

static uint32_t count_only(void *ctx, const tw_batch *batch, const tw_error *outcome) {
  ((received *)ctx)->calls += outcome ? 1 : batch->count;
  return 0;
}

static uint32_t close_and_count(void *ctx, const tw_batch *batch, const tw_error *outcome) {
  tw_stream stream = ((received *)ctx)->stream;
  tw_stream_close(&stream, NULL);
  return count_only(ctx, batch, outcome);
}

static void *replace(void *ctx) {
  const tw_stream *stream = (const tw_stream *)ctx;
  int i;
  for (i = 0; i < 4; i++) {
    received *mine;
    pthread_mutex_lock(&lock);
    mine = new_ctx(*stream, 0);
    pthread_mutex_unlock(&lock);
    if (tw_stream_subscribe(stream, i == 3 ? close_and_count : count_only, mine, forget, NULL) !=
        TW_OK) {
      forget(mine);
    }
  }
  return NULL;
}

static void *close_it(void *ctx) {
  tw_stream stream = *(const tw_stream *)ctx;
  tw_stream_close(&stream, NULL);
  return NULL;
}

/* Three threads replace, stop and close at once. Each ctx is dropped once, and never used
 * afterwards. */
static void ctx_is_dropped_once_in_every_race(void) {
  int race;
  for (race = 0; race < RACES; race++) {
    tw_stream stream = race % 2 ? endless() : numbers(0, 300);
    tw_stream copy = stream;
    pthread_t threads[2];
    tw_error error;
    received *mine;
    mine = new_ctx(stream, 0);
    REQUIRE_OK(tw_stream_subscribe(&stream, count_only, mine, forget, &error), error);
    CHECK(pthread_create(&threads[0], NULL, replace, &stream) == 0);
    CHECK(pthread_create(&threads[1], NULL, race % 3 ? close_it : replace, &copy) == 0);
    if (race % 5 == 0) {
      tw_stream third = stream;
      tw_stream_close(&third, NULL);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    close_it(&stream);
    all_are_dropped();
  }
  CHECK(running_becomes(&client, 0));
}

static void stream_has_its_own_file_descriptor(void) {
  tw_stream stream = numbers(0, 3000);
  tw_batch batch;
  tw_error error;
  struct pollfd watched;
  uint64_t next = 0;
  uint32_t code;
  uint32_t ready;
  for (;;) {
    code = tw_stream_acquire(&stream, 100, 0, 8, &batch, &error);
    if (code == TW_WOULD_PARK) {
      REQUIRE_OK(tw_stream_arm_fd(&stream, &watched.fd, &ready, &error), error);
      watched.events = POLLIN;
      CHECK(ready == 1 || poll(&watched, 1, 60000) == 1);
      continue;
    }
    if (code != TW_OK) {
      break;
    }
    next += batch.count;
    CHECK_CODE(tw_stream_release(&stream, batch.count, &error), TW_OK);
  }
  CHECK_CODE(code, TW_CLOSED);
  CHECK(next == 3000);
  CHECK_CODE(tw_stream_close(&stream, &error), TW_OK);
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  client = open_client(16);
  RUN(callback_receives_all_records_and_then_the_outcome);
  RUN(refused_callback_leaves_ctx_with_the_caller);
  RUN(callback_that_returns_nonzero_stops_the_writer);
  RUN(callback_can_close_its_stream_but_not_join_it);
  RUN(closing_the_client_makes_the_last_call);
  RUN(slow_callback_does_not_stop_another_stream);
  RUN(ctx_is_dropped_once_in_every_race);
  RUN(stream_has_its_own_file_descriptor);
  close_client(&client);
  return done("direct");
}
