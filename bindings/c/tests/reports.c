/* Log records and counters: log_set_sink, log_set_port, counters. */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

/* ---- Log records ----------------------------------------------------------------------------- */

/* The records that a callback received, as lines "level target: message". */
typedef struct received {
  pthread_mutex_t lock;
  char text[65536];
  size_t size;
  int records;
  uint64_t last_time_ns;
  int drops;          /* calls of drop_ctx */
  int after_drop;     /* calls of the callback after it */
  int running;        /* calls in progress */
  const tw_table *in; /* if not NULL, the callback makes these calls of the library */
  int removes_itself;
  int is_slow;
} received;

static received first;
static received second;

static void start(received *all) {
  memset(all, 0, sizeof(*all));
  pthread_mutex_init(&all->lock, NULL);
}

static void use_the_library(received *all) {
  const tw_table *table = all->in;
  tw_error error;
  CHECK(table->now() > 0);
  if (all->removes_itself) {
    /* It does not wait for itself. */
    CHECK_CODE(table->log_set_sink(NULL, NULL, NULL, 0, &error), TW_OK);
    CHECK(all->drops == 0);
  }
}

static void receive(void *ctx, const tw_log_record *record) {
  received *all = (received *)ctx;
  __atomic_add_fetch(&all->running, 1, __ATOMIC_SEQ_CST);
  if (all->is_slow) {
    sleep_ms(20);
  }
  if (all->in) {
    use_the_library(all);
  }
  pthread_mutex_lock(&all->lock);
  all->after_drop += all->drops;
  all->records++;
  all->last_time_ns = record->time_ns;
  if (all->size < sizeof(all->text) - 1) {
    int size = snprintf(all->text + all->size, sizeof(all->text) - all->size, "%u %.*s: %.*s\n",
                        (unsigned)record->level, (int)record->target_size, record->target,
                        (int)record->message_size, record->message);
    all->size += (size_t)size;
    if (all->size >= sizeof(all->text)) {
      all->size = sizeof(all->text) - 1;
    }
  }
  pthread_mutex_unlock(&all->lock);
  __atomic_sub_fetch(&all->running, 1, __ATOMIC_SEQ_CST);
}

static void drop(void *ctx) {
  received *all = (received *)ctx;
  CHECK(all->running == 0 || all->removes_itself);
  __atomic_add_fetch(&all->drops, 1, __ATOMIC_SEQ_CST);
}

static void set_sink(received *all, uint32_t level) {
  tw_error error;
  REQUIRE_OK(library.table->log_set_sink(receive, all, drop, level, &error), error);
}

static void remove_sink(void) {
  tw_error error;
  REQUIRE_OK(library.table->log_set_sink(NULL, NULL, NULL, 0, &error), error);
}

static bool contains(received *all, const char *text) {
  bool found;
  pthread_mutex_lock(&all->lock);
  found = strstr(all->text, text) != NULL;
  pthread_mutex_unlock(&all->lock);
  return found;
}

/* Calls `panic`, which ends as guest_panicked. The record is written before the call ends. */
static void call_panic(conformance_client *client, const char *text) {
  conformance_panic_result result;
  tw_error error;
  CHECK_CODE(conformance_panic(client, tw_text_of(text), TW_FOREVER, &result, &error),
             TW_GUEST_PANICKED);
  tw_reply_release(&result.reply);
}

static void panic_is_recorded_with_its_method_and_text(void) {
  conformance_client client = open_client(1);
  struct timespec now;
  start(&first);
  set_sink(&first, TW_LOG_WARNING);
  call_panic(&client, "reported \xe2\x82\xac panic");
  CHECK(contains(&first, "1 service: conformance.panic panicked: reported \xe2\x82\xac panic\n"));
  clock_gettime(CLOCK_REALTIME, &now);
  CHECK(first.last_time_ns / 1000000000u + 60 > (uint64_t)now.tv_sec);
  CHECK(first.last_time_ns / 1000000000u <= (uint64_t)now.tv_sec);
  remove_sink();
  CHECK(first.drops == 1);
  close_client(&client);
}

static void panic_in_a_task_and_inline_is_recorded(void) {
  conformance_client client = open_client(1);
  conformance_panic_later_result later;
  conformance_panic_here_result here;
  tw_error error;
  start(&first);
  set_sink(&first, TW_LOG_ERROR);
  CHECK_CODE(conformance_panic_later(&client, tw_text_of("later"), TW_FOREVER, &later, &error),
             TW_GUEST_PANICKED);
  tw_reply_release(&later.reply);
  CHECK_CODE(conformance_panic_here(&client, tw_text_of("here"), TW_FOREVER, &here, &error),
             TW_GUEST_PANICKED);
  tw_reply_release(&here.reply);
  CHECK(contains(&first, "1 service: conformance.panic-later panicked: later\n"));
  CHECK(contains(&first, "1 service: conformance.panic-here panicked: here\n"));
  remove_sink();
  close_client(&client);
}

static void overload_is_recorded_once_per_second(void) {
  conformance_client client = open_client(1);
  tw_request request;
  tw_error error;
  int i;
  start(&first);
  set_sink(&first, TW_LOG_WARNING);
  REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 1, NULL, &error), error);
  for (i = 0; i < 100; i++) {
    CHECK_CODE(submit_request(conformance_never_prepare(&client, &request), 2, NULL, &error),
               TW_OVERLOADED);
  }
  CHECK(contains(&first, "2 port: a call is refused: all 1 slots of the port are in use"));
  CHECK(first.records >= 1 && first.records <= 3);
  remove_sink();
  close_client(&client);
}

static void record_above_the_level_is_left_out(void) {
  conformance_client client = open_client(1);
  tw_request request;
  tw_error error;
  start(&first);
  set_sink(&first, TW_LOG_ERROR);
  sleep_ms(1100); /* until the next overload would be recorded */
  REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 1, NULL, &error), error);
  CHECK_CODE(submit_request(conformance_never_prepare(&client, &request), 2, NULL, &error),
             TW_OVERLOADED);
  CHECK(first.records == 0);
  remove_sink();
  close_client(&client);
}

static void stream_that_drops_records_is_recorded(void) {
  conformance_client client = open_client(1);
  conformance_drops_newest_result newest;
  conformance_drops_oldest_result oldest;
  tw_error error;
  start(&first);
  set_sink(&first, TW_LOG_WARNING);
  REQUIRE_OK(conformance_drops_newest(&client, 10000, TW_FOREVER, &newest, &error), error);
  CHECK_CODE(conformance_u64_stream_close(&newest.ok, &error), TW_OK);
  tw_reply_release(&newest.reply);
  sleep_ms(1100); /* until the next one is recorded */
  REQUIRE_OK(conformance_drops_oldest(&client, 10000, TW_FOREVER, &oldest, &error), error);
  CHECK_CODE(conformance_u64_stream_close(&oldest.ok, &error), TW_OK);
  tw_reply_release(&oldest.reply);
  remove_sink();
  CHECK(contains(&first, "2 stream: a stream of conformance.drops-newest is full and drops "));
  CHECK(contains(&first, "2 stream: a stream of conformance.drops-oldest is full and drops "));
  CHECK(first.records >= 2 && first.records <= 4);
  close_client(&client);
}

static void future_that_the_service_drops_is_recorded(void) {
  conformance_client client = open_client(1);
  conformance_option_string_in message;
  conformance_never_comes_result result;
  tw_error error;
  int tries;
  memset(&message, 0, sizeof(message));
  start(&first);
  set_sink(&first, TW_LOG_WARNING);
  REQUIRE_OK(conformance_never_comes(&client, &message, TW_FOREVER, &result, &error), error);
  for (tries = 0; tries < 6000 && !contains(&first, "conformance.never-comes"); tries++) {
    sleep_ms(10);
  }
  CHECK(contains(&first, "2 stream: a stream of conformance.never-comes ends incomplete: "));
  CHECK_CODE(conformance_point_future_close(&result.ok, &error), TW_OK);
  tw_reply_release(&result.reply);
  remove_sink();
  close_client(&client);
}

static void unknown_level_is_refused_and_the_ctx_stays(void) {
  tw_error error;
  start(&first);
  start(&second);
  set_sink(&first, TW_LOG_ERROR);
  CHECK_CODE(library.table->log_set_sink(receive, &second, drop, 0, &error), TW_ARGUMENT);
  CHECK_CODE(library.table->log_set_sink(receive, &second, drop, 4, &error), TW_ARGUMENT);
  CHECK_CODE(library.table->log_set_sink(receive, &second, drop, UINT32_MAX, NULL), TW_ARGUMENT);
  CHECK(second.drops == 0 && first.drops == 0);
  remove_sink();
  CHECK(first.drops == 1);
  /* Without a callback there is nothing to remove, and drop_ctx may be NULL. */
  remove_sink();
  CHECK_CODE(library.table->log_set_sink(receive, &second, NULL, TW_LOG_INFO, &error), TW_OK);
  remove_sink();
  CHECK(first.drops == 1 && second.drops == 0);
}

static void another_callback_replaces_the_first(void) {
  conformance_client client = open_client(1);
  start(&first);
  start(&second);
  set_sink(&first, TW_LOG_WARNING);
  call_panic(&client, "one");
  set_sink(&second, TW_LOG_WARNING);
  CHECK(first.drops == 1 && second.drops == 0);
  call_panic(&client, "two");
  CHECK(contains(&first, ": one\n") && !contains(&first, ": two\n"));
  CHECK(!contains(&second, ": one\n") && contains(&second, ": two\n"));
  remove_sink();
  call_panic(&client, "three");
  CHECK(!contains(&second, ": three\n"));
  CHECK(second.drops == 1 && second.after_drop == 0);
  close_client(&client);
}

static void callback_may_use_now_and_remove_itself(void) {
  conformance_client client = open_client(1);
  start(&first);
  first.in = library.table;
  set_sink(&first, TW_LOG_WARNING);
  call_panic(&client, "kept");
  CHECK(contains(&first, ": kept\n") && first.drops == 0);
  first.removes_itself = 1;
  call_panic(&client, "last");
  /* drop_ctx follows the callback on the same thread, before the call ends. */
  CHECK(contains(&first, ": last\n") && first.drops == 1);
  call_panic(&client, "after");
  CHECK(!contains(&first, ": after\n") && first.after_drop == 0);
  close_client(&client);
}

static int writing_is_over;

static void *write_records(void *unused) {
  conformance_client client = open_client(1);
  (void)unused;
  while (!__atomic_load_n(&writing_is_over, __ATOMIC_ACQUIRE)) {
    call_panic(&client, "again");
    sleep_ms(2);
  }
  close_client(&client);
  return NULL;
}

static void no_call_runs_after_the_callback_was_removed(void) {
  pthread_t threads[2];
  int round;
  int i;
  for (i = 0; i < 2; i++) {
    pthread_create(&threads[i], NULL, write_records, NULL);
  }
  for (round = 0; round < 10; round++) {
    received *all = (received *)calloc(1, sizeof(*all));
    start(all);
    all->is_slow = 1;
    set_sink(all, TW_LOG_ERROR);
    while (__atomic_load_n(&all->running, __ATOMIC_SEQ_CST) == 0) {
      sched_yield();
    }
    remove_sink();
    CHECK(all->running == 0 && all->drops == 1 && all->records > 0 && all->after_drop == 0);
    /* AddressSanitizer finds a later use. */
    pthread_mutex_destroy(&all->lock);
    free(all);
  }
  __atomic_store_n(&writing_is_over, 1, __ATOMIC_RELEASE);
  for (i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
  }
}

static void child_after_fork_begins_without_a_callback(void) {
  conformance_client client = open_client(1);
  int status = 0;
  pid_t child;
  start(&first);
  set_sink(&first, TW_LOG_WARNING);
  child = fork();
  if (child == 0) {
    conformance_client own = open_client(1);
    start(&second);
    call_panic(&own, "in the child");
    set_sink(&second, TW_LOG_WARNING);
    CHECK(first.records == 0 && first.drops == 0);
    call_panic(&own, "heard");
    CHECK(contains(&second, ": heard\n") && !contains(&second, ": in the child\n"));
    remove_sink();
    CHECK(second.drops == 1 && first.drops == 0);
    _exit(checks_failed == 0 ? 0 : 1);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  call_panic(&client, "in the parent");
  CHECK(contains(&first, ": in the parent\n"));
  remove_sink();
  CHECK(first.drops == 1);
  close_client(&client);
}

/* Reaps one completion of a port, which must be available. */
static tw_completion reap_available(tw_handle port) {
  tw_completion completion;
  tw_error error;
  uint32_t count = 0;
  memset(&completion, 0, sizeof(completion));
  REQUIRE_OK(library.table->port_reap(port, &completion, 1, &count, &error), error);
  CHECK(count == 1);
  return completion;
}

static bool is_empty(tw_handle port) {
  tw_completion completion;
  tw_error error;
  uint32_t count = 0;
  REQUIRE_OK(library.table->port_reap(port, &completion, 1, &count, &error), error);
  return count == 0;
}

static bool message_is(const tw_completion *completion, const char *text) {
  return completion->message_size == strlen(text) &&
         memcmp(completion->message, text, strlen(text)) == 0;
}

static void port_receives_records_as_completions(void) {
  static const char text[] = "service: conformance.panic panicked: to the port";
  conformance_client client = open_client(1);
  const tw_table *table = library.table;
  tw_handle port;
  tw_completion record;
  tw_error error;
  uint32_t ready = 7;
  REQUIRE_OK(table->port_open(4, &port, &error), error);
  REQUIRE_OK(table->log_set_port(port, 99, TW_LOG_WARNING, &error), error);
  REQUIRE_OK(table->port_arm(port, &ready, &error), error);
  CHECK(ready == 0);
  call_panic(&client, "to the port");
  REQUIRE_OK(table->port_wait(port, table->now() + 60000 * MILLISECOND, &error), error);
  record = reap_available(port);
  CHECK(record.kind == TW_COMPLETION_LOG && record.token == 99 && record.code == TW_LOG_ERROR);
  CHECK(record.call == 0 && record.data == NULL && record.data_size == 0 && record.retryable == 0);
  CHECK(message_is(&record, text));
  table->release(&record);
  CHECK(record.message == NULL);
  /* The memory is used again, without the text. */
  call_panic(&client, "");
  record = reap_available(port);
  CHECK(message_is(&record, "service: conformance.panic panicked: "));
  table->release(&record);
  REQUIRE_OK(table->log_set_port(0, 0, 0, &error), error);
  call_panic(&client, "unheard");
  CHECK(is_empty(port));
  REQUIRE_OK(table->port_close(port, &error), error);
  close_client(&client);
}

static void record_without_a_slot_is_dropped(void) {
  conformance_client client = open_client(1);
  const tw_table *table = library.table;
  tw_handle port;
  tw_completion record;
  tw_error error;
  REQUIRE_OK(table->port_open(1, &port, &error), error);
  REQUIRE_OK(table->log_set_port(port, 1, TW_LOG_WARNING, &error), error);
  call_panic(&client, "first");
  call_panic(&client, "second");
  record = reap_available(port);
  CHECK(message_is(&record, "service: conformance.panic panicked: first"));
  CHECK(is_empty(port));
  table->release(&record);
  /* A record that was not reaped is freed with its port, and a closed port receives none. */
  call_panic(&client, "third");
  REQUIRE_OK(table->port_close(port, &error), error);
  call_panic(&client, "fourth");
  REQUIRE_OK(table->log_set_port(0, 0, 0, &error), error);
  close_client(&client);
}

static void port_and_callback_replace_each_other(void) {
  conformance_client client = open_client(1);
  const tw_table *table = library.table;
  tw_handle port;
  tw_completion record;
  tw_error error;
  start(&first);
  REQUIRE_OK(table->port_open(4, &port, &error), error);
  set_sink(&first, TW_LOG_WARNING);
  CHECK_CODE(table->log_set_port(port, 0, 0, &error), TW_ARGUMENT);
  CHECK_CODE(table->log_set_port(port, 0, 4, NULL), TW_ARGUMENT);
  CHECK_CODE(table->log_set_port(client.tw.instance, 0, TW_LOG_INFO, &error), TW_ARGUMENT);
  CHECK(first.drops == 0);
  REQUIRE_OK(table->log_set_port(port, 0, TW_LOG_INFO, &error), error);
  CHECK(first.drops == 1);
  call_panic(&client, "for the port");
  CHECK(first.records == 0);
  start(&second);
  set_sink(&second, TW_LOG_WARNING);
  call_panic(&client, "for the callback");
  CHECK(second.records == 1);
  record = reap_available(port);
  CHECK(message_is(&record, "service: conformance.panic panicked: for the port"));
  table->release(&record);
  CHECK(is_empty(port));
  REQUIRE_OK(table->log_set_port(0, 0, 0, &error), error);
  CHECK(second.drops == 1);
  REQUIRE_OK(table->port_close(port, &error), error);
  CHECK_CODE(table->log_set_port(port, 0, TW_LOG_INFO, &error), TW_STALE);
  close_client(&client);
}

/* ---- Counters -------------------------------------------------------------------------------- */

static tw_counters read_counters(void) {
  tw_counters counters;
  tw_error error;
  REQUIRE_OK(library.table->counters(&counters, sizeof(counters), &error), error);
  return counters;
}

/* Runs first: the runtime has not started. */
static void counters_before_the_first_client_are_zero(void) {
  static const tw_counters zero;
  tw_counters counters;
  tw_error error;
  memset(&counters, 7, sizeof(counters));
  REQUIRE_OK(library.table->counters(&counters, sizeof(counters), &error), error);
  CHECK(memcmp(&counters, &zero, sizeof(zero)) == 0);
}

static void counters_count_open_handles_and_calls(void) {
  conformance_client client = open_client(8);
  tw_counters before = read_counters();
  tw_counters during;
  tw_counters after;
  conformance_count_result stream;
  conformance_counter_new_result counter;
  conformance_echo_string_result text;
  tw_request request;
  tw_handle call = 0;
  tw_error error;
  CHECK(before.clients == 1 && before.ports == 1 && before.workers >= 1);
  CHECK(before.calls == 0 && before.streams == 0 && before.completions == 0);
  REQUIRE_OK(conformance_count(&client, 0, 1, TW_FOREVER, &stream, &error), error);
  REQUIRE_OK(conformance_counter_new(&client, 1, TW_FOREVER, &counter, &error), error);
  REQUIRE_OK(conformance_echo_string(&client, tw_text_of("text"), TW_FOREVER, &text, &error),
             error);
  REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 1, &call, &error), error);
  during = read_counters();
  CHECK(during.calls == 1 && during.streams == 1 && during.resources == 1);
  CHECK(during.slices > before.slices && during.stacks >= 1);
  CHECK(during.actors_started >= during.actors);
  /* The text is in the completion. */
  CHECK(during.completions == 1);
  tw_reply_release(&text.reply);
  CHECK_CODE(conformance_u64_stream_close(&stream.ok, &error), TW_OK);
  CHECK_CODE(conformance_counter_close(&counter.ok, &error), TW_OK);
  REQUIRE_OK(library.table->cancel(call, &error), error);
  after = read_counters();
  CHECK(after.calls == 0 && after.streams == 0 && after.resources == 0 && after.completions == 0);
  close_client(&client);
  after = read_counters();
  CHECK(after.clients == 0 && after.ports == 0);
  CHECK(after.slices >= during.slices && after.workers == before.workers);
}

static void counters_of_another_size_are_cut_or_zero(void) {
  struct {
    tw_counters known;
    uint64_t later[2];
  } larger;
  uint64_t few[2] = {7, 7};
  tw_error error;
  const tw_table *table = library.table;
  memset(&larger, 7, sizeof(larger));
  REQUIRE_OK(table->counters(&larger.known, sizeof(larger), &error), error);
  CHECK(larger.later[0] == 0 && larger.later[1] == 0 && larger.known.workers >= 1);
  REQUIRE_OK(table->counters((tw_counters *)(void *)few, sizeof(few[0]), &error), error);
  CHECK(few[0] == larger.known.workers && few[1] == 7);
  REQUIRE_OK(table->counters((tw_counters *)(void *)few, 0, &error), error);
  CHECK(few[0] == larger.known.workers);
  CHECK_CODE(table->counters(NULL, sizeof(tw_counters), &error), TW_ARGUMENT);
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  RUN(counters_before_the_first_client_are_zero);
  RUN(counters_count_open_handles_and_calls);
  RUN(counters_of_another_size_are_cut_or_zero);
  RUN(panic_is_recorded_with_its_method_and_text);
  RUN(panic_in_a_task_and_inline_is_recorded);
  RUN(overload_is_recorded_once_per_second);
  RUN(record_above_the_level_is_left_out);
  RUN(stream_that_drops_records_is_recorded);
  RUN(future_that_the_service_drops_is_recorded);
  RUN(unknown_level_is_refused_and_the_ctx_stays);
  RUN(another_callback_replaces_the_first);
  RUN(callback_may_use_now_and_remove_itself);
  RUN(no_call_runs_after_the_callback_was_removed);
  RUN(child_after_fork_begins_without_a_callback);
  RUN(port_receives_records_as_completions);
  RUN(record_without_a_slot_is_dropped);
  RUN(port_and_callback_replace_each_other);
  return done("reports");
}
