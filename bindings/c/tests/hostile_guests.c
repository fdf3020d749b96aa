/* A hostile guest, called by two threads: hostile_guests FOLDER MESSAGES [SEED].
 *
 * A round has a few hundred calls of both threads, with deadlines, cancellations, closed clients, resources
 * and streams. Afterwards everything is closed, and what the callers saw is compared with what the core has
 * accepted from the guest. Another guest is called meanwhile, and behaves well. */
#include <dlfcn.h>
#include <time.h>

#include "hostile_host.h"

/* Takes what is in the port of a client. */
static void reap(host *self, uint32_t number) {
  const hostile_client *client = &self->clients[number];
  tw_completion completions[8];
  tw_error error;
  uint32_t count = 0;
  REQUIRE_OK(library.table->port_reap(client->tw.port, completions, 8, &count, &error), error);
  for (uint32_t i = 0; i < count; i++) {
    self->pending[number]--;
    end_call(self, client, &completions[i], completions[i].token);
  }
}

/* ---- Calls -------------------------------------------------------------------------------------- */

static tw_request *prepare(host *self, const hostile_client *client, uint32_t method, uint64_t id,
                           tw_request *request) {
  static const char *const texts[] = {"", "text", "caf\xc3\xa9"};
  switch (method) {
  case HOSTILE_METHOD_CELL_NEW:
    return hostile_cell_new_prepare(client, id, request);
  case HOSTILE_METHOD_CELL_GET:
    return hostile_cell_get_prepare(client, self->cells[below(self, CELLS)], id, request);
  case HOSTILE_METHOD_CELL_OPEN:
    return hostile_cell_open_prepare(client, self->cells[below(self, CELLS)], id, request);
  case HOSTILE_METHOD_TRAY_NEW:
    return hostile_tray_new_prepare(client, id, request);
  case HOSTILE_METHOD_TEXT:
    return hostile_text_prepare(client, id, tw_text_of(texts[below(self, 3)]), request);
  case HOSTILE_METHOD_POINTS:
    return hostile_points_prepare(client, id, request);
  case HOSTILE_METHOD_MAYBE:
    return hostile_maybe_prepare(client, id, request);
  case HOSTILE_METHOD_LATER:
    return hostile_later_prepare(client, id, request);
  case HOSTILE_METHOD_PAIR:
    return hostile_pair_prepare(client, id, request);
  case HOSTILE_METHOD_SUM:
    return hostile_sum_prepare(client, id, self->cells[below(self, CELLS)],
                               self->cells[below(self, CELLS)], request);
  case HOSTILE_METHOD_NUMBERS:
    return hostile_numbers_prepare(client, id, request);
  case HOSTILE_METHOD_NAMES:
    return hostile_names_prepare(client, id, request);
  case HOSTILE_METHOD_NEWEST:
    return hostile_newest_prepare(client, id, request);
  case HOSTILE_METHOD_SOON:
    return hostile_soon_prepare(client, id, request);
  default:
    return hostile_number_prepare(client, id, request);
  }
}

static void call(host *self) {
  const uint32_t number = below(self, CLIENTS);
  const hostile_client *client = &self->clients[number];
  const uint64_t id = self->next++;
  const uint64_t deadline = soon(self, one_in(self, 4) ? 500 : 8000);
  host_call *made = &host_calls[id];
  tw_request request;
  tw_error error;
  uint32_t code;
  made->method = below(self, HOSTILE_METHOD_SOON + 1);
  made->client = number;
  made->pending = true;
  prepare(self, client, made->method, id, &request);
  if (made->method == HOSTILE_METHOD_NUMBER && one_in(self, 2)) {
    tw_completion *completion = tw_request_call_inline(&request, deadline, &error);
    if (completion->kind == TW_COMPLETION_NONE) {
      made->pending = false; /* the service is busy */
    } else {
      end_call(self, client, completion, id);
    }
    return;
  }
  code = tw_request_submit(&request, deadline, id, &made->call, &error);
  if (code != TW_OK) {
    failed("a call was not accepted", id, code);
    made->pending = false;
    return;
  }
  self->pending[number]++;
}

static void open_client(host *self, uint32_t number) {
  hostile_client *client = &self->clients[number];
  tw_error error;
  if (number == 0) {
    REQUIRE_OK(hostile_client_attach(&shared_client, PENDING * 2, client, &error), error);
  } else {
    REQUIRE_OK(hostile_client_open(&library, PENDING * 2, client, &error), error);
  }
  expose(self, client->tw.port);
  expose(self, client->tw.instance);
  self->pending[number] = 0;
}

/* Closes a client with its calls. */
static void close_client(host *self, uint32_t number) {
  tw_error error;
  REQUIRE_OK(hostile_client_close(&self->clients[number], &error), error);
  for (uint32_t id = self->index * CALLS; id < self->next; id++) {
    host_call *made = &host_calls[id];
    if (made->client == number && made->pending && !made->ended) {
      made->pending = false;
    }
  }
}

static void call_good_guest(host *self) {
  probe_add_result added;
  probe_echo_result echoed;
  tw_error error;
  uint64_t number = below(self, 1000);
  REQUIRE_OK(probe_add(&self->good, number, TW_FOREVER, &added, &error), error);
  self->good_sum += number;
  if (added.ok != self->good_sum) {
    failed("another guest has answered wrongly", LEDGER_CALLS, TW_OK);
  }
  tw_reply_release(&added.reply);
  REQUIRE_OK(probe_echo(&self->good, tw_text_of("good"), TW_FOREVER, &echoed, &error), error);
  if (!tw_text_equal(echoed.ok, tw_text_of("good"))) {
    failed("another guest has answered wrongly", LEDGER_CALLS, TW_OK);
  }
  tw_reply_release(&echoed.reply);
}

static void *call_often(void *given) {
  host *self = (host *)given;
  tw_error error;
  uint32_t number;
  for (number = 0; number < CLIENTS; number++) {
    open_client(self, number);
  }
  while (self->next < (self->index + 1) * CALLS) {
    call(self);
    if (one_in(self, 8)) {
      uint32_t id = self->index * CALLS + below(self, self->next - self->index * CALLS);
      library.table->cancel(host_calls[id].call, NULL);
    }
    if (one_in(self, 16)) {
      call_good_guest(self);
    }
    if (one_in(self, 200)) {
      number = below(self, CLIENTS);
      close_client(self, number);
      open_client(self, number);
    }
    for (number = 0; number < CLIENTS; number++) {
      if (self->pending[number] >= PENDING) {
        REQUIRE_OK(library.table->port_wait(self->clients[number].tw.port, TW_FOREVER, &error),
                   error);
      }
      reap(self, number);
    }
  }
  for (number = 0; number < CLIENTS; number++) {
    while (self->pending[number] > 0) {
      uint64_t deadline = library.table->now() + UINT64_C(60000000000);
      REQUIRE_OK(library.table->port_wait(self->clients[number].tw.port, deadline, &error), error);
      reap(self, number);
    }
    close_client(self, number);
  }
  for (number = 0; number < CELLS; number++) {
    hostile_cell_close(&self->cells[number], NULL);
  }
  return NULL;
}

/* ---- Comparison --------------------------------------------------------------------------------- */

/* Whether a call may have this outcome although the guest has not ended it. */
static bool is_end_without_guest(uint32_t method, uint32_t outcome) {
  if (outcome == TW_WOULD_PARK) {
    return method == HOSTILE_METHOD_NUMBER; /* it is brief, and was not answered at once */
  }
  return outcome == TW_TIMED_OUT || outcome == TW_CANCELLED || outcome == TW_GUEST_PANICKED ||
         outcome == TW_GUEST_LOST || outcome == TW_ARGUMENT || outcome == TW_STALE;
}

static void compare_call(uint64_t id) {
  const host_call *call = &host_calls[id];
  const ledger_call *guest = &seen->calls[id];
  const uint32_t endings = atomic_load(&guest->endings);
  const uint32_t outcome = atomic_load(&guest->outcome);
  const uint64_t hash = atomic_load(&guest->hash);
  if (endings > 1) {
    failed("the guest has ended it more than once", id, call->outcome);
  }
  if (call->pending && !call->ended) {
    failed("it has no outcome", id, TW_OK);
  }
  if (!call->ended) {
    return;
  }
  if (endings == 0) {
    if (!is_end_without_guest(call->method, call->outcome) &&
        !(call->outcome == TW_OK && atomic_load(&guest->resources) > 0)) {
      failed("it has an outcome that the guest has not caused", id, call->outcome);
    }
    return;
  }
  if (outcome != call->outcome) {
    failed("its outcome is not that of the guest", id, call->outcome);
    fprintf(stderr, "  the guest: %s\n", tw_code_name(outcome));
  } else if (outcome <= TW_ERROR && hash != 0 && hash != call->hash) {
    failed("its result was changed", id, call->outcome);
  }
  if (call->is_regular && call->method == HOSTILE_METHOD_NUMBERS &&
      atomic_load(&guest->sum) != call->sum) {
    failed("its stream has lost records or has others", id, call->outcome);
  }
}

static void compare_objects(void) {
  const uint32_t count = atomic_load(&seen->object_count);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t given = atomic_load(&seen->objects[i].given);
    const uint32_t ends = atomic_load(&seen->objects[i].ends);
    if (given != ends) {
      failed(given ? "an object was not dropped once" : "an object was dropped that is the guest's",
             i, TW_OK);
    }
  }
}

/* Whether everything of the hostile guest is closed within a minute. */
static void check_nothing_is_left(void) {
  tw_counters counters;
  tw_error error;
  for (int tries = 0; tries < 60000; tries++) {
    const struct timespec pause = {0, 1000000};
    REQUIRE_OK(library.table->counters(&counters, sizeof(counters), &error), error);
    if (atomic_load(&seen->states) == 0 && counters.clients == THREADS &&
        counters.ports == THREADS && counters.calls == 0 && counters.streams == 0 &&
        counters.resources == 0 && counters.batches == 0 && counters.completions == 0) {
      return;
    }
    nanosleep(&pause, NULL);
  }
  fprintf(stderr,
          "left: %d states, %llu clients, %llu ports, %llu calls, %llu streams, %llu resources, "
          "%llu batches, %llu completions\n",
          atomic_load(&seen->states), (unsigned long long)counters.clients,
          (unsigned long long)counters.ports, (unsigned long long)counters.calls,
          (unsigned long long)counters.streams, (unsigned long long)counters.resources,
          (unsigned long long)counters.batches, (unsigned long long)counters.completions);
  checks_failed++;
}

static void run_round(host *hosts, hostile_settle_function settle) {
  hostile_client opened;
  tw_error error;
  REQUIRE_OK(hostile_client_open(&library, 1, &shared_client, &error), error);
  opened = shared_client;
  for (uint32_t i = 0; i < THREADS; i++) {
    hosts[i].next = i * CALLS;
    if (pthread_create(&hosts[i].thread, NULL, call_often, &hosts[i]) != 0) {
      exit(1);
    }
  }
  for (uint32_t i = 0; i < THREADS; i++) {
    pthread_join(hosts[i].thread, NULL);
  }
  settle();
  REQUIRE_OK(hostile_client_close(&opened, &error), error);
  settle();
  check_nothing_is_left();
  for (uint64_t id = 0; id < LEDGER_CALLS; id++) {
    compare_call(id);
  }
  compare_objects();
  memset(host_calls, 0, sizeof(host_calls));
  memset(seen->calls, 0, sizeof(seen->calls));
  memset(seen->objects, 0, sizeof(seen->objects));
  atomic_store(&seen->object_count, 0);
}

static int64_t resident_kib(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  long long total = 0;
  long long resident = 0;
  if (!file || fscanf(file, "%lld %lld", &total, &resident) != 2) {
    exit(1);
  }
  fclose(file);
  return resident * 4;
}

static uint32_t open_guest(const char *folder, const char *name, tw_error *error) {
  char address[1024];
  snprintf(address, sizeof(address), "thread:%s/libguest_%s.so", folder, name);
  return strcmp(name, "hostile") == 0 ? hostile_open(address, &library, error)
                                      : probe_open(address, &good_library, error);
}

int main(int argc, char **argv) {
  static host hosts[THREADS];
  const uint64_t wanted = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
  const uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)time(NULL);
  char path[1024];
  void *loaded;
  hostile_settle_function settle;
  uint64_t rounds = 0;
  int64_t memory = 0;
  int64_t grown;
  tw_error error;
  if (wanted == 0) {
    fputs("usage: hostile_guests FOLDER MESSAGES [SEED]\n", stderr);
    return 2;
  }
  REQUIRE_OK(open_guest(argv[1], "hostile", &error), error);
  REQUIRE_OK(open_guest(argv[1], "probe", &error), error);
  snprintf(path, sizeof(path), "%s/libguest_hostile.so", argv[1]);
  loaded = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  seen = loaded ? (ledger *)dlsym(loaded, "hostile_ledger") : NULL;
  *(void **)&settle = loaded ? dlsym(loaded, "hostile_settle") : NULL;
  if (!seen || !settle) {
    fputs("the guest has no ledger\n", stderr);
    return 1;
  }
  seen->seed = seed;
  settle();
  for (uint32_t i = 0; i < THREADS; i++) {
    hosts[i].index = i;
    hosts[i].random = seed * 2 + i + 1;
    REQUIRE_OK(probe_client_open(&good_library, 8, &hosts[i].good, &error), error);
  }
  while (atomic_load(&seen->messages) < wanted && checks_failed == 0 &&
         atomic_load(&seen->violations) == 0) {
    run_round(hosts, settle);
    rounds++;
    if (memory == 0 && atomic_load(&seen->messages) >= wanted / 10) {
      memory = resident_kib();
    }
  }
  grown = resident_kib() - memory;
  for (uint32_t i = 0; i < THREADS; i++) {
    REQUIRE_OK(probe_client_close(&hosts[i].good, &error), error);
  }
  checks_failed += (int)atomic_load(&seen->violations);
  printf(
      "hostile_guests: seed %llu: %llu messages in %llu rounds, %lld KiB more than after a tenth\n",
      (unsigned long long)seed, (unsigned long long)atomic_load(&seen->messages),
      (unsigned long long)rounds, (long long)grown);
#ifndef __SANITIZE_ADDRESS__
  CHECK(wanted < 500000 || grown < 4096);
#endif
  dlclose(loaded);
  REQUIRE_OK(tw_close(library.table, &error), error);
  REQUIRE_OK(tw_close(good_library.table, &error), error);
  tests_run = (int)rounds;
  return done("hostile_guests");
}
