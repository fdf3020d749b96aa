/* Services that are opened by address, in a library of their own.
 * guests FOLDER [SUFFIX]: the folder with the guests, which test.sh compiles. With the suffix _blocks, guests
 * whose async functions block; with _port, guests that take their calls from a port; with _go, guests in Go, which stay loaded; with _nim, guests in Nim, which
 * cannot answer as wrongly as the others. */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "probe_calls.h"

static const char *folder;
static const char *suffix = "";
static probe_library library;
static void *loaded; /* the guest, to read its counters */

static bool is_nim(void) {
  return strcmp(suffix, "_nim") == 0;
}

static bool is_port(void) {
  return strcmp(suffix, "_port") == 0;
}

static bool is_go(void) {
  return strcmp(suffix, "_go") == 0;
}

static void address_of(const char *name, char *address, size_t size) {
  snprintf(address, size, "thread:%s/libguest_%s.so", folder, name);
}

static uint32_t open_guest(const char *name, probe_library *opened, tw_error *error) {
  char address[1024];
  char full_name[32];
  if (strcmp(name, "probe") == 0 || strcmp(name, "again") == 0) {
    snprintf(full_name, sizeof(full_name), "%s%s", name, suffix);
    name = full_name;
  }
  address_of(name, address, sizeof(address));
  memset(error, 0, sizeof(*error));
  return probe_open(address, opened, error);
}

static long counter(const char *name) {
  const long *value = (const long *)dlsym(loaded, name);
  if (!value) {
    fprintf(stderr, "the guest has no %s\n", name);
    exit(1);
  }
  return *(const volatile long *)value;
}

/* Whether a counter of the guest becomes `wanted` within a minute. */
static bool becomes(const char *name, long wanted) {
  int tries;
  for (tries = 0; tries < 60000; tries++) {
    if (counter(name) == wanted) {
      return true;
    }
    sleep_ms(1);
  }
  fprintf(stderr, "%s is %ld, not %ld\n", name, counter(name), wanted);
  return false;
}

static probe_client open_client(void) {
  return open_client_of(&library);
}

static void refused(const char *name, uint32_t code, const char *why) {
  probe_library opened;
  tw_error error;
  CHECK_CODE(open_guest(name, &opened, &error), code);
  if (!strstr(error.message, why)) {
    fprintf(stderr, "%s: \"%s\" lacks \"%s\"\n", name, error.message, why);
    checks_failed++;
  }
}

static void address_refused(const char *address, const char *why) {
  probe_library opened;
  tw_error error;
  memset(&error, 0, sizeof(error));
  CHECK_CODE(probe_open(address, &opened, &error), TW_ARGUMENT);
  if (!strstr(error.message, why)) {
    fprintf(stderr, "%s: \"%s\" lacks \"%s\"\n", address, error.message, why);
    checks_failed++;
  }
}

static void wrong_addresses_are_refused(void) {
  address_refused("thread:", "has no path");
  address_refused("process:/bin/true", "only guests in the process");
  address_refused("remote:somewhere", "only guests in the process");
  address_refused("thread:/no/such/library.so", "/no/such/library.so");
}

static void wrong_guests_are_refused(void) {
  refused("none", TW_ARGUMENT, "tw_guest");
  refused("refuses", TW_ARGUMENT, "not today");
  refused("silent", TW_ARGUMENT, "serve");
  refused("abi", TW_VERSION, "guest abi");
  refused("twice", TW_ARGUMENT, "once");
  refused("other", TW_VERSION, "thalweg:probe@0.1.0");
}

static void calls_are_served_with_a_state(void) {
  probe_client first = open_client();
  probe_client second = open_client();
  CHECK(add(&first, 3) == 3);
  CHECK(add(&first, 4) == 7);
  CHECK(add(&second, 1) == 1);
  close_client(&first);
  CHECK(add(&second, 1) == 2);
  close_client(&second);
  CHECK(becomes("probe_states", 0));
}

static void values_are_passed_in_both_directions(void) {
  probe_client client = open_client();
  tw_error error;
  probe_echo_result echo;
  probe_move_all_result moved;
  probe_bytes_result bytes;
  probe_nothing_result nothing;
  probe_point_in points[2];
  probe_list_point_in list;
  probe_point_in by;
  probe_option_colors colors;
  tw_bytes given;
  char *text = (char *)malloc(100001);
  CHECK_CODE(probe_echo(&client, tw_text_of("h\xc3\xa9llo"), TW_FOREVER, &echo, &error), TW_OK);
  CHECK(tw_text_equal(echo.ok, tw_text_of("h\xc3\xa9llo")));
  tw_reply_release(&echo.reply);
  memset(text, 'x', 100001);
  {
    tw_text longest;
    longest.data = text;
    longest.size = 100000;
    CHECK_CODE(probe_echo(&client, longest, TW_FOREVER, &echo, &error), TW_OK);
    CHECK(tw_text_equal(echo.ok, longest));
    tw_reply_release(&echo.reply);
    longest.size = 100001;
    CHECK_CODE(probe_echo(&client, longest, TW_FOREVER, &echo, &error), TW_ERROR);
    CHECK(echo.error->tag == PROBE_TROUBLE_TOO_LONG && echo.error->value.too_long == 100001);
    tw_reply_release(&echo.reply);
  }
  free(text);
  points[0].name = tw_text_of("a");
  points[0].x = 1;
  points[0].y = 2;
  points[1].name = tw_text_of("bb");
  points[1].x = 3;
  points[1].y = 4;
  list.items = points;
  list.count = 2;
  by.name = tw_text_of("");
  by.x = 10;
  by.y = 20;
  colors.some = true;
  colors.value = PROBE_COLORS_RED;
  CHECK_CODE(probe_move_all(&client, list, &by, &colors, TW_FOREVER, &moved, &error), TW_OK);
  CHECK(moved.ok.count == 2);
  CHECK(moved.ok.items[0].x == 13 && moved.ok.items[0].y == 24);
  CHECK(tw_text_equal(probe_point_name(moved.reply.base, &moved.ok.items[0]), tw_text_of("bb")));
  CHECK(tw_text_equal(probe_point_name(moved.reply.base, &moved.ok.items[1]), tw_text_of("a")));
  tw_reply_release(&moved.reply);
  given.data = (const uint8_t *)"\0\1\2";
  given.size = 3;
  CHECK_CODE(probe_bytes(&client, given, TW_FOREVER, &bytes, &error), TW_OK);
  CHECK(bytes.ok.size == 3 && memcmp(bytes.ok.data, "\0\1\2", 3) == 0);
  tw_reply_release(&bytes.reply);
  CHECK_CODE(probe_nothing(&client, TW_FOREVER, &nothing, &error), TW_OK);
  tw_reply_release(&nothing.reply);
  close_client(&client);
}

static void resources_are_objects_of_the_guest(void) {
  probe_client client = open_client();
  probe_client other = open_client();
  probe_cell first = new_cell(&client, 5);
  probe_cell second = new_cell(&client, 6);
  probe_cell foreign = new_cell(&other, 7);
  probe_cell_get_result got;
  probe_cell_add_result added;
  probe_cell_open_result opened;
  tw_error error;
  CHECK(becomes("probe_cells", 3));
  CHECK_CODE(probe_cell_add(&client, first, 10, TW_FOREVER, &added, &error), TW_OK);
  CHECK(added.ok == 15);
  tw_reply_release(&added.reply);
  CHECK_CODE(probe_cell_get(&client, foreign, TW_FOREVER, &got, &error), TW_ARGUMENT);
  tw_reply_release(&got.reply);
  CHECK_CODE(probe_cell_open(&client, second, TW_FOREVER, &opened, &error), TW_OK);
  CHECK(opened.ok == 6);
  tw_reply_release(&opened.reply);
  CHECK(becomes("probe_cells", 2));
  CHECK_CODE(probe_cell_get(&client, second, TW_FOREVER, &got, &error), TW_STALE);
  tw_reply_release(&got.reply);
  REQUIRE_OK(probe_cell_close(&first, &error), error);
  CHECK(becomes("probe_cells", 1));
  REQUIRE_OK(probe_cell_close(&foreign, &error), error);
  CHECK(becomes("probe_cells", 0));
  close_client(&client);
  close_client(&other);
  CHECK(becomes("probe_states", 0));
}

static void call_is_answered_on_another_thread(void) {
  probe_client client = open_client();
  probe_later_result result;
  tw_error error;
  CHECK_CODE(probe_later(&client, 20, 42, TW_FOREVER, &result, &error), TW_OK);
  CHECK(result.ok == 42);
  tw_reply_release(&result.reply);
  close_client(&client);
}

static void stopped_calls_are_reported_to_the_guest(void) {
  probe_client client = open_client();
  const tw_table *table = client.tw.table;
  long before = counter("probe_cancels");
  probe_later_result result;
  probe_misbehave_result never;
  tw_error error;
  uint64_t deadline = table->now() + 20 * UINT64_C(1000000);
  CHECK_CODE(probe_later(&client, 200, 42, deadline, &result, &error), TW_TIMED_OUT);
  tw_reply_release(&result.reply);
  CHECK(becomes("probe_cancels", before + 1));
  deadline = table->now() + 20 * UINT64_C(1000000);
  CHECK_CODE(probe_misbehave(&client, 4, deadline, &never, &error), TW_TIMED_OUT);
  tw_reply_release(&never.reply);
  CHECK(becomes("probe_cancels", before + 2));
  CHECK(add(&client, 1) == 1);
  CHECK(becomes("probe_threads", 0));
  close_client(&client);
}

static void streams_are_written_by_threads_of_the_guest(void) {
  probe_client client = open_client();
  probe_numbers_result numbers;
  probe_u64_batch batch;
  tw_error error;
  uint64_t next = 0;
  uint32_t code;
  REQUIRE_OK(probe_numbers(&client, 100000, TW_FOREVER, &numbers, &error), error);
  tw_reply_release(&numbers.reply);
  while ((code = probe_u64_stream_acquire(&numbers.ok, 256, TW_FOREVER, &batch, &error)) == TW_OK) {
    uint32_t i;
    for (i = 0; i < batch.tw.count; i++) {
      CHECK(*probe_u64_batch_at(&batch, i) == next);
      next++;
    }
    probe_u64_stream_release(&numbers.ok, batch.tw.count, &error);
  }
  CHECK_CODE(code, TW_CLOSED);
  CHECK(next == 100000);
  probe_u64_stream_close(&numbers.ok, &error);
  /* A reader that leaves. */
  REQUIRE_OK(probe_numbers(&client, UINT64_C(1) << 60, TW_FOREVER, &numbers, &error), error);
  tw_reply_release(&numbers.reply);
  CHECK_CODE(probe_u64_stream_acquire(&numbers.ok, 256, TW_FOREVER, &batch, &error), TW_OK);
  probe_u64_stream_close(&numbers.ok, &error);
  CHECK(becomes("probe_threads", 0));
  /* A stream that ends with its client. */
  REQUIRE_OK(probe_numbers(&client, UINT64_C(1) << 60, TW_FOREVER, &numbers, &error), error);
  tw_reply_release(&numbers.reply);
  close_client(&client);
  CHECK(becomes("probe_threads", 0));
  probe_u64_stream_close(&numbers.ok, &error);
}

/* Reads a stream of points. Returns how it ended. */
static uint32_t read_points(const probe_client *client, uint32_t count, uint32_t failing,
                            uint32_t wanted) {
  probe_points_result points;
  probe_point_batch batch;
  tw_error error;
  uint32_t seen = 0;
  uint32_t code;
  REQUIRE_OK(probe_points(client, count, failing, TW_FOREVER, &points, &error), error);
  while ((code = probe_point_stream_acquire(&points.ok, 256, TW_FOREVER, &batch, &error)) ==
         TW_OK) {
    uint32_t i;
    for (i = 0; i < batch.tw.count; i++) {
      const probe_point *point = probe_point_batch_at(&batch, i);
      char name[32];
      seen++;
      snprintf(name, sizeof(name), "point %u", (unsigned)seen);
      CHECK(tw_text_equal(probe_point_name(batch.tw.base, point), tw_text_of(name)));
      CHECK(point->x == (int32_t)seen && point->y == -point->x);
    }
    probe_point_stream_release(&points.ok, batch.tw.count, &error);
  }
  CHECK(seen == wanted);
  if (code == TW_ERROR) {
    probe_points_result ended;
    CHECK_CODE(probe_points_stream_error(client, &points.ok, &ended, &error), TW_ERROR);
    CHECK(ended.error && ended.error->tag == PROBE_TROUBLE_BECAUSE);
    tw_reply_release(&ended.reply);
  }
  probe_point_stream_close(&points.ok, &error);
  tw_reply_release(&points.reply);
  return code;
}

static void streams_of_records_with_text_end_with_their_error(void) {
  probe_client client = open_client();
  CHECK_CODE(read_points(&client, 0, 0, 0), TW_CLOSED);
  CHECK_CODE(read_points(&client, 20000, 0, 20000), TW_CLOSED);
  CHECK_CODE(read_points(&client, 100, 50, 49), TW_ERROR);
  close_client(&client);
}

static void future_is_set_later(void) {
  probe_client client = open_client();
  probe_soon_result soon;
  tw_batch batch;
  const uint32_t *value;
  tw_error error;
  REQUIRE_OK(probe_soon(&client, 42, TW_FOREVER, &soon, &error), error);
  CHECK_CODE(probe_u32_future_wait(&soon.ok, TW_FOREVER, &batch, &value, &error), TW_OK);
  CHECK(value && *value == 42);
  probe_u32_future_close(&soon.ok, &error);
  tw_reply_release(&soon.reply);
  close_client(&client);
}

static uint32_t misbehave(const probe_client *client, uint32_t how, tw_error *error) {
  probe_misbehave_result result;
  uint32_t code;
  memset(error, 0, sizeof(*error));
  code = probe_misbehave(client, how, TW_FOREVER, &result, error);
  if (code == TW_ERROR) {
    CHECK(result.error->tag == PROBE_TROUBLE_BECAUSE);
  }
  tw_reply_release(&result.reply);
  return code;
}

static void wrong_answers_end_only_their_call(void) {
  static const uint32_t wanted[] = {TW_GUEST_LOST, TW_GUEST_LOST, TW_OK,   TW_OK,         TW_OK,
                                    TW_OK,         TW_OK,         TW_OK,   TW_GUEST_LOST, TW_OK,
                                    TW_GUEST_LOST, TW_OK,         TW_ERROR};
  probe_client client = open_client();
  tw_error error;
  uint32_t how;
  CHECK(add(&client, 5) == 5);
  for (how = 0; how < sizeof(wanted) / sizeof(wanted[0]); how++) {
    if (how == 4 || how == 5) {
      continue; /* no answer, and a panic */
    }
    if (misbehave(&client, how, &error) != wanted[how]) {
      fprintf(stderr, "case %u: %s: %s\n", (unsigned)how, tw_code_name(error.code), error.message);
      checks_failed++;
    }
    if (wanted[how] == TW_GUEST_LOST) {
      CHECK(strstr(error.message, "thalweg:probe") && strstr(error.message, "probe.misbehave"));
    }
  }
  CHECK(add(&client, 1) == 6);
  CHECK(becomes("probe_cells", 0));
  close_client(&client);
}

static uint32_t during_call(const probe_client *client, uint32_t (*what)(void), char *text,
                            size_t size, uint64_t deadline) {
  probe_misbehave_result result;
  tw_error error;
  uint32_t code;
  uint32_t (**meanwhile)(void) = (uint32_t(**)(void))dlsym(loaded, "probe_meanwhile");
  if (!meanwhile) {
    fprintf(stderr, "the guest has no probe_meanwhile\n");
    exit(1);
  }
  *meanwhile = what;
  code = probe_misbehave(client, 30, deadline, &result, &error);
  if (code == TW_OK) {
    snprintf(text, size, "%.*s", (int)result.ok.size, result.ok.data);
  }
  tw_reply_release(&result.reply);
  return code;
}

static atomic_bool is_released;

static uint32_t blocks(void) {
  while (!atomic_load(&is_released)) {
    sleep_ms(1);
  }
  return TW_OK;
}

/* The deadline ends the call. With callbacks, other states go on. A port has one thread here. */
static void guest_that_blocks_holds_up_its_own_state(void) {
  probe_client client = open_client();
  probe_client other = open_client();
  char text[32];
  atomic_store(&is_released, false);
  CHECK_CODE(during_call(&client, blocks, text, sizeof(text), client.tw.table->now() + 20000000),
             TW_TIMED_OUT);
  CHECK(becomes("probe_blocked", 1));
  if (!is_port()) {
    CHECK(add(&other, 1) == 1);
  }
  close_client(&client);
  atomic_store(&is_released, true);
  CHECK(becomes("probe_blocked", 0));
  CHECK(add(&other, 1) == (is_port() ? 1 : 2));
  close_client(&other);
  CHECK(becomes("probe_states", 0));
}

/* The state is closed when they have returned, also if its client is closed before. */
static void async_functions_block_beside_other_calls(void) {
  probe_client client = open_client();
  probe_cell cell = new_cell(&client, 1);
  const long states = counter("probe_states");
  tw_request request;
  tw_error error;
  uint64_t i;
  for (i = 0; i < 8; i++) {
    REQUIRE_OK(tw_request_submit(probe_later_prepare(&client, 1000, i, &request), TW_FOREVER, i,
                                 NULL, &error),
               error);
  }
  CHECK(becomes("probe_blocked", 8));
  CHECK(add(&client, 1) == 1);
  close_client(&client);
  CHECK(counter("probe_blocked") == 8);
  CHECK(counter("probe_states") == states && counter("probe_cells") == 1);
  probe_cell_close(&cell, &error);
  CHECK(becomes("probe_states", states - 1));
  CHECK(counter("probe_blocked") == 0 && counter("probe_cells") == 0);
}

static probe_client own;

static uint32_t calls_itself(void) {
  probe_add_result result;
  tw_error error;
  probe_client here;
  uint32_t code;
  REQUIRE_OK(probe_client_attach(&own, 8, &here, &error), error);
  code = probe_add(&here, 1, own.tw.table->now() + 20000000, &result, &error);
  tw_reply_release(&result.reply);
  close_client(&here);
  return code;
}

/* It cannot wait for itself: on a worker that is refused, and on a thread of the guest the deadline ends it. */
static void guest_calls_its_own_client(void) {
  char text[32] = "";
  own = open_client();
  CHECK_CODE(during_call(&own, calls_itself, text, sizeof(text), TW_FOREVER), TW_OK);
  if (strcmp(text, tw_code_name(is_port() ? TW_TIMED_OUT : TW_WOULD_PARK)) != 0) {
    fprintf(stderr, "the call ended as %s\n", text);
    checks_failed++;
  }
  CHECK(add(&own, 1) <= 2);
  close_client(&own);
  CHECK(becomes("probe_states", 0));
}

static void panic_replaces_the_state(void) {
  probe_client client = open_client();
  probe_cell cell = new_cell(&client, 1);
  probe_cell_get_result got;
  tw_error error;
  CHECK(add(&client, 5) == 5);
  CHECK_CODE(misbehave(&client, 5, &error), TW_GUEST_PANICKED);
  CHECK(strstr(error.message, "it went wrong\n") != NULL);
  CHECK(strstr(error.message, "at probe.") || strstr(error.message, "\n  at "));
  CHECK(add(&client, 1) == 1);
  CHECK_CODE(probe_cell_get(&client, cell, TW_FOREVER, &got, &error), TW_STALE);
  tw_reply_release(&got.reply);
  probe_cell_close(&cell, &error);
  close_client(&client);
  CHECK(becomes("probe_states", 0));
}

static void *many_calls(void *given) {
  probe_client client;
  tw_error error;
  int i;
  REQUIRE_OK(probe_client_attach((const probe_client *)given, 16, &client, &error), error);
  for (i = 0; i < 2000; i++) {
    add(&client, 1);
  }
  close_client(&client);
  return NULL;
}

static void many_threads_call_one_instance(void) {
  probe_client client = open_client();
  pthread_t threads[8];
  size_t i;
  for (i = 0; i < 8; i++) {
    if (pthread_create(&threads[i], NULL, many_calls, &client) != 0) {
      exit(1);
    }
  }
  for (i = 0; i < 8; i++) {
    pthread_join(threads[i], NULL);
  }
  CHECK(add(&client, 0) == 16000);
  close_client(&client);
}

/* Uses a guest that is not loaded otherwise, so that it is unloaded each time. */
static void open_and_close(int times) {
  int i;
  for (i = 0; i < times; i++) {
    probe_library opened;
    probe_client client;
    tw_error error;
    REQUIRE_OK(open_guest("again", &opened, &error), error);
    REQUIRE_OK(probe_client_open(&opened, 8, &client, &error), error);
    CHECK(add(&client, 2) == 2);
    close_client(&client);
    REQUIRE_OK(tw_close(opened.table, &error), error);
    CHECK_CODE(tw_close(opened.table, &error), TW_STALE);
  }
}

static void *open_often(void *unused) {
  int i;
  for (i = 0; i < 200; i++) {
    probe_library opened;
    probe_client client;
    tw_error error;
    REQUIRE_OK(open_guest("again", &opened, &error), error);
    REQUIRE_OK(probe_client_open(&opened, 8, &client, &error), error);
    add(&client, 2);
    close_client(&client);
    REQUIRE_OK(tw_close(opened.table, &error), error);
  }
  return unused;
}

static void guest_is_loaded_once_by_many_threads(void) {
  pthread_t threads[8];
  size_t i;
  for (i = 0; i < 8; i++) {
    if (pthread_create(&threads[i], NULL, open_often, NULL) != 0) {
      exit(1);
    }
  }
  for (i = 0; i < 8; i++) {
    pthread_join(threads[i], NULL);
  }
}

#ifndef __SANITIZE_ADDRESS__
/* Whether a folder has no more than `wanted` entries within a minute. A library is unloaded on another
 * thread. */
static bool shrinks_to(const char *path, long wanted) {
  int tries;
  for (tries = 0; tries < 60000; tries++) {
    if (count_entries(path) <= wanted) {
      return true;
    }
    sleep_ms(1);
  }
  return false;
}
#endif

/* The goroutines of a guest in Go that is opened and closed, with one client. */
static long goroutines(void) {
  typedef long (*function)(void);
  union {
    void *symbol;
    function function;
  } count;
  char address[1024];
  void *again;
  snprintf(address, sizeof(address), "%s/libguest_again%s.so", folder, suffix);
  again = dlopen(address, RTLD_NOW | RTLD_NOLOAD);
  if (!again || !(count.symbol = dlsym(again, "probe_count_goroutines"))) {
    fprintf(stderr, "%s: %s\n", address, dlerror());
    exit(1);
  }
  dlclose(again);
  return count.function();
}

static void goroutines_end_with_their_opening(void) {
  long before;
  int tries;
  open_and_close(10);
  sleep_ms(100);
  before = goroutines();
  open_and_close(1000);
  for (tries = 0; goroutines() > before && tries < 60000; tries++) {
    sleep_ms(1);
  }
  CHECK(goroutines() <= before);
}

static void guest_is_opened_and_closed_without_growth(void) {
#ifdef __SANITIZE_ADDRESS__
  open_and_close(300); /* AddressSanitizer keeps freed memory */
#else
  const long descriptors = count_entries("/proc/self/fd");
  const long threads = count_entries("/proc/self/task");
  long memory;
  open_and_close(is_go() ? 6000 : 1000); /* Go's heap is steady later */
  memory = resident_kib();
  open_and_close(10000);
  CHECK(shrinks_to("/proc/self/fd", descriptors));
  CHECK(shrinks_to("/proc/self/task", threads + (is_go() ? 8 : 0))); /* Go keeps its threads */
  if (resident_kib() > memory + 1024) {
    fprintf(stderr, "memory grew from %ld to %ld KiB\n", memory, resident_kib());
    checks_failed++;
  }
#endif
}

static void closed_guest_has_no_clients(void) {
  probe_library opened;
  probe_library same;
  probe_client client;
  probe_client late;
  probe_add_result result;
  tw_error error;
  REQUIRE_OK(open_guest("again", &opened, &error), error);
  REQUIRE_OK(probe_client_open(&opened, 8, &client, &error), error);
  CHECK(add(&client, 2) == 2);
  REQUIRE_OK(open_guest("again", &same, &error), error);
  CHECK(same.table == opened.table);
  REQUIRE_OK(tw_close(same.table, &error), error);
  CHECK(add(&client, 2) == 4);
  REQUIRE_OK(tw_close(opened.table, &error), error);
  CHECK_CODE(probe_add(&client, 1, TW_FOREVER, &result, &error), TW_CLOSED);
  tw_reply_release(&result.reply);
  CHECK_CODE(probe_client_open(&opened, 8, &late, &error), TW_CLOSED);
  close_client(&client);
  CHECK_CODE(tw_close(opened.table, &error), TW_STALE);
  CHECK_CODE(tw_close(NULL, &error), TW_STALE);
}

/* In a child of fork(), with a client that the parent has opened. */
static void child_opens_its_own(const probe_client *client) {
  probe_client inherited;
  probe_add_result result;
  probe_library opened;
  tw_error error;
  CHECK_CODE(probe_client_open(&library, 8, &inherited, &error), TW_FORKED);
  CHECK_CODE(probe_add(client, 1, TW_FOREVER, &result, &error), TW_FORKED);
  if (is_go()) {
    /* The child has none of the threads of Go's runtime. */
    CHECK_CODE(open_guest("probe", &opened, &error), TW_FORKED);
    return;
  }
  CHECK_CODE(open_guest("probe", &opened, &error), TW_OK);
  CHECK_CODE(probe_client_open(&opened, 8, &inherited, &error), TW_OK);
  CHECK(add(&inherited, 5) == 5);
}

static atomic_bool forks_are_done;

static void *open_and_close_until_forks_are_done(void *unused) {
  (void)unused;
  while (!atomic_load(&forks_are_done)) {
    open_and_close(1);
  }
  return NULL;
}

/* Another thread loads and unloads a guest meanwhile. Not under AddressSanitizer, whose allocator waits
 * forever in a child if another thread was in it at the fork. */
static void forked_child_opens_its_own(void) {
#ifdef __SANITIZE_ADDRESS__
  const int forks = 1;
#else
  const int forks = 100;
#endif
  pthread_t thread;
  probe_client client = open_client();
  int i;
  CHECK(add(&client, 1) == 1);
  fflush(stdout);
  atomic_store(&forks_are_done, false);
  if (forks > 1) {
    CHECK(pthread_create(&thread, NULL, open_and_close_until_forks_are_done, NULL) == 0);
  }
  for (i = 0; i < forks; i++) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
      child_opens_its_own(&client);
      _exit(checks_failed == 0 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  if (forks > 1) {
    atomic_store(&forks_are_done, true);
    pthread_join(thread, NULL);
  }
  CHECK(add(&client, 1) == 2);
  close_client(&client);
}

static void guest_may_fork_while_it_is_loaded(void) {
  int i;
  for (i = 0; i < 10; i++) { /* it is unloaded before it is loaded again */
    probe_library opened;
    tw_error error;
    REQUIRE_OK(open_guest("forks", &opened, &error), error);
    REQUIRE_OK(tw_close(opened.table, &error), error);
  }
}

static void paths_of_one_file_are_one_guest(void) {
  probe_library other;
  char address[1024];
  tw_error error;
  snprintf(address, sizeof(address), "thread:%s/./libguest_probe%s.so", folder, suffix);
  REQUIRE_OK(probe_open(address, &other, &error), error);
  CHECK(other.table == library.table);
  CHECK_CODE(tw_close(other.table, &error), TW_OK);
}

static void at_most_64_guests_are_open(void) {
  probe_library opened[64];
  tw_error error;
  int count;
  for (count = 0; count < 64; count++) {
    uint32_t code;
    char name[16];
    snprintf(name, sizeof(name), "copy%d", count + 1);
    code = open_guest(name, &opened[count], &error);
    if (code != TW_OK) {
      CHECK_CODE(code, TW_OVERLOADED);
      break;
    }
  }
  CHECK(count == 63); /* the tests have one open */
  while (count > 0) {
    count--;
    REQUIRE_OK(tw_close(opened[count].table, &error), error);
  }
}

int main(int argc, char **argv) {
  char address[1024];
  tw_error error;
  if (argc != 2 && argc != 3) {
    fputs("usage: guests FOLDER [SUFFIX]\n", stderr);
    return 2;
  }
  folder = argv[1];
  suffix = argc == 3 ? argv[2] : "";
  RUN(wrong_addresses_are_refused);
  if (!is_nim()) {
    RUN(wrong_guests_are_refused);
    RUN(guest_may_fork_while_it_is_loaded);
  }
  REQUIRE_OK(open_guest("probe", &library, &error), error);
  snprintf(address, sizeof(address), "thread:%s/libguest_probe%s.so", folder, suffix);
  loaded = dlopen(address + strlen("thread:"), RTLD_NOW | RTLD_NOLOAD);
  RUN(calls_are_served_with_a_state);
  RUN(values_are_passed_in_both_directions);
  RUN(resources_are_objects_of_the_guest);
  RUN(call_is_answered_on_another_thread);
  RUN(stopped_calls_are_reported_to_the_guest);
  RUN(streams_are_written_by_threads_of_the_guest);
  RUN(streams_of_records_with_text_end_with_their_error);
  RUN(future_is_set_later);
  if (!is_nim()) {
    RUN(wrong_answers_end_only_their_call);
  }
  if (!is_nim() && !is_go()) {
    RUN(guest_that_blocks_holds_up_its_own_state);
    RUN(guest_calls_its_own_client);
  }
  if (strcmp(suffix, "_blocks") == 0) {
    RUN(async_functions_block_beside_other_calls);
  }
  RUN(panic_replaces_the_state);
  RUN(many_threads_call_one_instance);
  RUN(closed_guest_has_no_clients);
  RUN(forked_child_opens_its_own);
  RUN(paths_of_one_file_are_one_guest);
  RUN(at_most_64_guests_are_open);
  RUN(guest_is_loaded_once_by_many_threads);
  RUN(guest_is_opened_and_closed_without_growth);
  if (is_go()) {
    RUN(goroutines_end_with_their_opening);
  }
  CHECK_CODE(tw_close(library.table, &error), TW_OK);
  return done("guests");
}
