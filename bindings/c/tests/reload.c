/* Guests whose library is replaced while programs use it.
 * reload FOLDER [RELOADS MS]: the folder with the guests, which test.sh compiles. With RELOADS, only the run
 * under load, with as many reloads, one in each MS milliseconds. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "probe_calls.h"

#define SECOND UINT64_C(1000000000)
#define VERSION UINT64_C(1000000) /* where the sums of the second version begin */

static const char *folder;
static probe_library library; /* at the address `live` */
static char live[1024];       /* the path of the library that is replaced */

static void path_of(const char *name, char *path, size_t size) {
  snprintf(path, size, "%s/libguest_%s.so", folder, name);
}

static void copy_file(const char *from, const char *to) {
  FILE *in = fopen(from, "rb");
  FILE *out = fopen(to, "wb");
  char buffer[65536];
  size_t size;
  if (!in || !out) {
    fprintf(stderr, "cannot copy %s\n", from);
    exit(1);
  }
  while ((size = fread(buffer, 1, sizeof(buffer), in)) > 0) {
    if (fwrite(buffer, 1, size, out) != size) {
      exit(1);
    }
  }
  fclose(in);
  if (fclose(out) != 0) {
    exit(1);
  }
}

/* Installs a library at the path `live`, as `mv` and linkers do: as another file. */
static void install(const char *name) {
  char from[1024];
  char made[1100];
  path_of(name, from, sizeof(from));
  snprintf(made, sizeof(made), "%s.new", live);
  copy_file(from, made);
  if (rename(made, live) != 0) {
    exit(1);
  }
}

static uint64_t in_ms(uint64_t ms) {
  return library.table->now() + ms * UINT64_C(1000000);
}

static void reload(uint64_t deadline) {
  tw_error error;
  REQUIRE_OK(tw_reload(library.table, NULL, deadline, &error), error);
}

static void open_live(const char *name) {
  char address[1100];
  tw_error error;
  install(name);
  snprintf(address, sizeof(address), "thread:%s", live);
  REQUIRE_OK(probe_open(address, &library, &error), error);
}

static void close_live(void) {
  tw_error error;
  REQUIRE_OK(tw_close(library.table, &error), error);
}

/* Number of libraries of the guest that are loaded. */
static long loaded_libraries(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096];
  long count = 0;
  while (maps && fgets(line, sizeof(line), maps)) {
    const char *file = strrchr(line, '/');
    /* The first segment of a library begins at the offset 0. */
    if (file && strstr(line, " 00000000 ") &&
        (strncmp(file, "/libguest_live", 14) == 0 || strncmp(file, "/libguest_version", 17) == 0 ||
         strncmp(file, "/memfd:guest", 12) == 0)) {
      count++;
    }
  }
  if (maps) {
    fclose(maps);
  }
  return count;
}

/* Whether as many libraries are loaded within a minute. */
static bool becomes_loaded(long wanted) {
  int tries;
  for (tries = 0; tries < 60000; tries++) {
    if (loaded_libraries() == wanted) {
      return true;
    }
    sleep_ms(1);
  }
  fprintf(stderr, "%ld libraries are loaded, not %ld\n", loaded_libraries(), wanted);
  return false;
}

/* Whether a thread of this process has the name. Misses threads if one ends in the meantime: the kernel
 * then ends the listing early. */
static bool lists_thread(const char *name) {
  DIR *tasks = opendir("/proc/self/task");
  bool found = false;
  struct dirent *task;
  while (tasks && (task = readdir(tasks)) != NULL) {
    char path[300];
    char line[32] = "";
    FILE *file;
    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
    file = fopen(path, "r");
    if (file) {
      found = (fgets(line, sizeof(line), file) && strncmp(line, name, strlen(name)) == 0) || found;
      fclose(file);
    }
  }
  if (tasks) {
    closedir(tasks);
  }
  return found;
}

/* Waits until the threads that unload libraries have ended. */
static void wait_for_unloading(void) {
  int listings_without = 0;
  while (listings_without < 10) {
    listings_without = lists_thread("tw-unload") ? 0 : listings_without + 1;
    sleep_ms(1);
  }
}

static uint32_t get(const probe_client *client, probe_cell cell, uint64_t *value) {
  probe_cell_get_result got;
  tw_error error;
  uint32_t code = probe_cell_get(client, cell, TW_FOREVER, &got, &error);
  *value = code == TW_OK ? got.ok : 0;
  tw_reply_release(&got.reply);
  return code;
}

/* Reads a stream of numbers to its end. Returns how it ended. */
static uint32_t read_numbers(probe_u64_stream *stream, uint64_t *count) {
  probe_u64_batch batch;
  tw_error error;
  uint32_t code;
  *count = 0;
  while ((code = probe_u64_stream_acquire(stream, 256, TW_FOREVER, &batch, &error)) == TW_OK) {
    uint32_t i;
    for (i = 0; i < batch.tw.count; i++) {
      CHECK(*probe_u64_batch_at(&batch, i) == *count);
      (*count)++;
    }
    probe_u64_stream_release(stream, batch.tw.count, &error);
  }
  probe_u64_stream_close(stream, &error);
  return code;
}

static probe_u64_stream open_numbers(const probe_client *client, uint64_t count) {
  probe_numbers_result numbers;
  probe_u64_stream stream;
  tw_error error;
  REQUIRE_OK(probe_numbers(client, count, TW_FOREVER, &numbers, &error), error);
  stream = numbers.ok;
  tw_reply_release(&numbers.reply);
  return stream;
}

static void calls_move_to_the_new_library(void) {
  probe_client client;
  probe_client idle;
  probe_client later;
  open_live("version1");
  client = open_client_of(&library);
  idle = open_client_of(&library);
  CHECK(add(&client, 3) == 3);
  install("version2");
  CHECK(add(&client, 3) == 6);
  reload(TW_FOREVER);
  CHECK(add(&client, 3) == VERSION + 3);
  CHECK(add(&client, 3) == VERSION + 6);
  CHECK(becomes_loaded(1));
  CHECK(add(&idle, 1) == VERSION + 1);
  later = open_client_of(&library);
  CHECK(add(&later, 1) == VERSION + 1);
  install("version1");
  reload(0);
  CHECK(add(&later, 1) == 1);
  CHECK(becomes_loaded(1));
  close_client(&client);
  close_client(&idle);
  close_client(&later);
  close_live();
  CHECK(becomes_loaded(0));
}

/* As after `make` without a change: the loader would find the library that is loaded. */
static void same_file_is_loaded_as_a_copy(void) {
  const long descriptors = count_entries("/proc/self/fd");
  probe_client client;
  open_live("version1");
  client = open_client_of(&library);
  CHECK(add(&client, 3) == 3);
  reload(TW_FOREVER);
  CHECK(add(&client, 3) == 3);
  CHECK(becomes_loaded(1));
  reload(TW_FOREVER); /* nothing has the file itself loaded now */
  CHECK(add(&client, 3) == 3);
  reload(TW_FOREVER);
  CHECK(add(&client, 3) == 3);
  close_client(&client);
  close_live();
  CHECK(becomes_loaded(0));
  CHECK(count_entries("/proc/self/fd") <= descriptors + 3); /* those of the runtime */
}

static void earlier_library_drains(void) {
  probe_client client;
  probe_cell first;
  probe_cell second;
  probe_cell_open_result opened;
  probe_u64_stream stream;
  tw_error error;
  uint64_t value;
  open_live("version1");
  client = open_client_of(&library);
  first = new_cell(&client, 1);
  install("version2");
  reload(TW_FOREVER);
  second = new_cell(&client, 2);
  stream = open_numbers(&client, 100000);
  install("version1");
  reload(TW_FOREVER);
  CHECK(add(&client, 5) == 5);
  CHECK(loaded_libraries() == 3);
  CHECK_CODE(get(&client, first, &value), TW_OK);
  CHECK(value == 1);
  CHECK_CODE(get(&client, second, &value), TW_OK);
  CHECK(value == 2);
  CHECK(add(&client, 5) == 10);
  /* The last use of the first library. */
  CHECK_CODE(probe_cell_open(&client, first, TW_FOREVER, &opened, &error), TW_OK);
  CHECK(opened.ok == 1);
  tw_reply_release(&opened.reply);
  CHECK(becomes_loaded(2));
  REQUIRE_OK(probe_cell_close(&second, &error), error);
  CHECK(add(&client, 5) == 15);
  CHECK(loaded_libraries() == 2); /* the second one writes the stream */
  CHECK_CODE(read_numbers(&stream, &value), TW_CLOSED);
  CHECK(value == 100000);
  CHECK(becomes_loaded(1));
  close_client(&client);
  close_live();
  CHECK(becomes_loaded(0));
}

/* A call, on a thread of its own. */
typedef struct slow_call {
  const probe_client *client;
  uint32_t ms; /* 0: never */
  uint32_t code;
} slow_call;

static void *call_slowly(void *given) {
  slow_call *call = (slow_call *)given;
  probe_client client;
  tw_error error;
  REQUIRE_OK(probe_client_attach(call->client, 16, &client, &error), error);
  if (call->ms > 0) {
    probe_later_result result;
    call->code = probe_later(&client, call->ms, 42, TW_FOREVER, &result, &error);
    tw_reply_release(&result.reply);
  } else {
    probe_misbehave_result result;
    call->code = probe_misbehave(&client, 4, TW_FOREVER, &result, &error);
    tw_reply_release(&result.reply);
  }
  close_client(&client);
  return NULL;
}

static void begun_call_is_answered_by_the_earlier_library(void) {
  probe_client client;
  slow_call call;
  pthread_t thread;
  open_live("version1");
  client = open_client_of(&library);
  call.client = &client;
  call.ms = 300;
  CHECK(pthread_create(&thread, NULL, call_slowly, &call) == 0);
  sleep_ms(100);
  install("version2");
  reload(in_ms(60000));
  CHECK(add(&client, 1) == VERSION + 1);
  CHECK(loaded_libraries() == 2);
  pthread_join(thread, NULL);
  CHECK_CODE(call.code, TW_OK);
  CHECK(becomes_loaded(1));
  close_client(&client);
  close_live();
  CHECK(becomes_loaded(0));
}

static void at_the_deadline_the_rest_is_stale(void) {
  probe_client client;
  probe_cell cell;
  probe_u64_stream stream;
  slow_call call;
  pthread_t thread;
  tw_error error;
  uint64_t value;
  open_live("version1");
  client = open_client_of(&library);
  cell = new_cell(&client, 1);
  stream = open_numbers(&client, UINT64_C(1) << 60);
  call.client = &client;
  call.ms = 0;
  CHECK(pthread_create(&thread, NULL, call_slowly, &call) == 0);
  sleep_ms(100);
  install("version2");
  reload(in_ms(200));
  CHECK_CODE(get(&client, cell, &value), TW_OK);
  CHECK(loaded_libraries() == 2);
  pthread_join(thread, NULL); /* no other call wakes the client */
  CHECK_CODE(call.code, TW_STALE);
  CHECK_CODE(read_numbers(&stream, &value), TW_STALE);
  CHECK_CODE(get(&client, cell, &value), TW_STALE);
  CHECK(becomes_loaded(1));
  CHECK(add(&client, 1) == VERSION + 1);
  CHECK_CODE(get(&client, cell, &value), TW_STALE);
  probe_cell_close(&cell, &error);
  close_client(&client);
  close_live();
  CHECK(becomes_loaded(0));
}

static void client_is_closed_while_it_drains(void) {
  probe_client client;
  probe_cell cell;
  slow_call call;
  pthread_t thread;
  tw_error error;
  open_live("version1");
  client = open_client_of(&library);
  cell = new_cell(&client, 1);
  call.client = &client;
  call.ms = 300;
  CHECK(pthread_create(&thread, NULL, call_slowly, &call) == 0);
  sleep_ms(100);
  install("version2");
  reload(in_ms(60000));
  CHECK(add(&client, 1) == VERSION + 1);
  close_live();
  pthread_join(thread, NULL);
  CHECK_CODE(call.code, TW_CANCELLED);
  probe_cell_close(&cell, &error);
  close_client(&client);
  CHECK(becomes_loaded(0));
}

static void panic_ends_all_states_of_the_client(void) {
  probe_client client;
  probe_cell cell;
  probe_misbehave_result result;
  tw_error error;
  uint64_t value;
  open_live("version1");
  client = open_client_of(&library);
  cell = new_cell(&client, 1);
  install("version2");
  reload(TW_FOREVER);
  CHECK_CODE(probe_misbehave(&client, 5, TW_FOREVER, &result, &error), TW_GUEST_PANICKED);
  tw_reply_release(&result.reply);
  CHECK(add(&client, 1) == VERSION + 1);
  CHECK_CODE(get(&client, cell, &value), TW_STALE);
  CHECK(becomes_loaded(1));
  probe_cell_close(&cell, &error);
  close_client(&client);
  close_live();
  CHECK(becomes_loaded(0));
}

static void refused(const char *name, uint32_t code, const char *why) {
  char path[1024];
  char address[1100];
  tw_error error;
  memset(&error, 0, sizeof(error));
  path_of(name, path, sizeof(path));
  snprintf(address, sizeof(address), "thread:%s", path);
  CHECK_CODE(tw_reload(library.table, address, TW_FOREVER, &error), code);
  if (!strstr(error.message, why)) {
    fprintf(stderr, "%s: \"%s\" lacks \"%s\"\n", name, error.message, why);
    checks_failed++;
  }
}

static void refused_reload_changes_nothing(void) {
  static const char *const addresses[] = {"", "process:x", "thread:", "thread:libguest_live.so"};
  probe_client client;
  probe_library other;
  char address[1100];
  tw_error error;
  size_t i;
  open_live("version1");
  client = open_client_of(&library);
  CHECK(add(&client, 1) == 1);
  refused("missing", TW_ARGUMENT, "No such file");
  refused("none", TW_ARGUMENT, "tw_guest");
  refused("refuses", TW_ARGUMENT, "not today");
  refused("silent", TW_ARGUMENT, "serve");
  refused("abi", TW_VERSION, "guest abi");
  refused("other", TW_VERSION, "thalweg:other@0.1.0, not thalweg:probe@0.1.0");
  refused("later", TW_VERSION, "probe.add");
  refused("stays", TW_ARGUMENT, "cannot be unloaded");
  refused("probe_port", TW_ARGUMENT, "port");
  for (i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
    CHECK_CODE(tw_reload(library.table, addresses[i], TW_FOREVER, &error), TW_ARGUMENT);
  }
  snprintf(address, sizeof(address), "thread:%s/libguest_version2.so", folder);
  REQUIRE_OK(probe_open(address, &other, &error), error);
  refused("version2", TW_ARGUMENT, "open as another guest");
  REQUIRE_OK(tw_close(other.table, &error), error);
  CHECK(add(&client, 1) == 2);
  CHECK(becomes_loaded(1));
  /* A file that is missing, instead of the one that is loaded. */
  CHECK(unlink(live) == 0);
  CHECK_CODE(tw_reload(library.table, NULL, TW_FOREVER, &error), TW_ARGUMENT);
  CHECK(add(&client, 1) == 3);
  close_client(&client);
  close_live();
  CHECK_CODE(tw_reload(library.table, NULL, TW_FOREVER, &error), TW_STALE);
  CHECK_CODE(tw_reload(NULL, NULL, TW_FOREVER, &error), TW_STALE);
  CHECK(becomes_loaded(0));
}

static void guest_that_stays_loaded_is_not_reloaded(void) {
  static const char *const names[] = {"stays", "probe_port"};
  size_t i;
  for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    char address[1100];
    probe_library opened;
    tw_error error;
    memset(&error, 0, sizeof(error));
    snprintf(address, sizeof(address), "thread:%s/libguest_%s.so", folder, names[i]);
    REQUIRE_OK(probe_open(address, &opened, &error), error);
    CHECK_CODE(tw_reload(opened.table, NULL, TW_FOREVER, &error), TW_ARGUMENT);
    CHECK(strstr(error.message, "cannot be reloaded"));
    REQUIRE_OK(tw_close(opened.table, &error), error);
  }
}

/* The table is that of the library at the other address from then on. */
static void guest_moves_to_another_address(void) {
  probe_client client;
  probe_library same;
  char address[1100];
  tw_error error;
  open_live("version1");
  client = open_client_of(&library);
  CHECK(add(&client, 1) == 1);
  snprintf(address, sizeof(address), "thread:%s/libguest_version2.so", folder);
  REQUIRE_OK(tw_reload(library.table, address, TW_FOREVER, &error), error);
  CHECK(add(&client, 1) == VERSION + 1);
  REQUIRE_OK(probe_open(address, &same, &error), error);
  CHECK(same.table == library.table);
  REQUIRE_OK(tw_close(same.table, &error), error);
  CHECK(becomes_loaded(1));
  reload(TW_FOREVER); /* the same file */
  CHECK(add(&client, 1) == VERSION + 1);
  close_client(&client);
  close_live();
  CHECK(becomes_loaded(0));
}

/* `current.so` is a link to a release. */
static void link_is_followed_again(void) {
  probe_client client;
  char current[1100];
  char address[1200];
  tw_error error;
  snprintf(current, sizeof(current), "%s/current.so", folder);
  snprintf(address, sizeof(address), "thread:%s", current);
  unlink(current);
  CHECK(symlink("libguest_version1.so", current) == 0);
  REQUIRE_OK(probe_open(address, &library, &error), error);
  client = open_client_of(&library);
  CHECK(add(&client, 1) == 1);
  CHECK(unlink(current) == 0 && symlink("libguest_version2.so", current) == 0);
  reload(TW_FOREVER);
  CHECK(add(&client, 1) == VERSION + 1);
  close_client(&client);
  close_live();
  unlink(current);
}

/* A hard link: the loader finds the library that is loaded. */
static void other_name_of_a_loaded_file_is_loaded_as_a_copy(void) {
  probe_client client;
  char linked[1100];
  char address[1200];
  tw_error error;
  open_live("version1");
  client = open_client_of(&library);
  CHECK(add(&client, 1) == 1);
  snprintf(linked, sizeof(linked), "%s/linked.so", folder);
  snprintf(address, sizeof(address), "thread:%s", linked);
  unlink(linked);
  CHECK(link(live, linked) == 0);
  REQUIRE_OK(tw_reload(library.table, address, TW_FOREVER, &error), error);
  CHECK(add(&client, 1) == 1);
  unlink(linked);
  close_client(&client);
  close_live();
  CHECK(becomes_loaded(0));
}

static atomic_int reloaded;
static atomic_int overloaded;

static void *reload_often(void *given) {
  const tw_table *table = library.table;
  uint32_t code;
  tw_error error;
  (void)given;
  do {
    code = tw_reload(table, NULL, table->now() + SECOND, &error);
    if (code == TW_OK) {
      atomic_fetch_add(&reloaded, 1);
    } else if (code == TW_OVERLOADED) {
      atomic_fetch_add(&overloaded, 1);
    }
  } while (code == TW_OK || code == TW_OVERLOADED);
  if (code != TW_STALE) {
    fprintf(stderr, "tw_reload returned %s: %s\n", tw_code_name(code), error.message);
    checks_failed++;
  }
  return NULL;
}

/* Several threads reload a guest until another one closes it. */
static void one_thread_at_a_time_reloads(void) {
  enum { THREADS = 3 };
  pthread_t threads[THREADS];
  probe_client client;
  int i;
  open_live("version1");
  client = open_client_of(&library);
  atomic_store(&reloaded, 0);
  for (i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, reload_often, NULL) == 0);
  }
  while (atomic_load(&reloaded) < 50 || atomic_load(&overloaded) < 1) {
    CHECK(add(&client, 1) > 0);
  }
  close_client(&client);
  close_live();
  for (i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  CHECK(becomes_loaded(0));
}

static void forked_child_reloads_its_own(void) {
  probe_client client;
  pid_t child;
  int status = 0;
  open_live("version1");
  client = open_client_of(&library);
  CHECK(add(&client, 1) == 1);
  install("version2");
  reload(TW_FOREVER);
  CHECK(add(&client, 1) == VERSION + 1);
  CHECK(becomes_loaded(1));
  wait_for_unloading(); /* the loader of a child does not work if it was in use */
  fflush(stdout);
  child = fork();
  if (child == 0) {
    tw_error error;
    CHECK_CODE(tw_reload(library.table, NULL, TW_FOREVER, &error), TW_FORKED);
    install("version1");
    open_live("version1");
    client = open_client_of(&library);
    CHECK(add(&client, 1) == 1);
    install("version2");
    reload(TW_FOREVER);
    CHECK(add(&client, 1) == VERSION + 1);
    _exit(checks_failed == 0 ? 0 : 1);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(add(&client, 1) == VERSION + 2);
  close_client(&client);
  close_live();
  CHECK(becomes_loaded(0));
}

static atomic_bool stops;
static atomic_ulong calls_served;
static atomic_ulong reloads_seen;

#define CELLS 16

/* Calls that take time in the guest, streams and resources, one after the other. */
static void *use_guest(void *given) {
  probe_client client;
  probe_cell cells[CELLS];
  tw_error error;
  uint64_t value;
  uint64_t round;
  (void)given;
  client = open_client_of(&library);
  for (round = 0; round < CELLS; round++) {
    cells[round] = new_cell(&client, round);
  }
  for (round = CELLS; !atomic_load(&stops); round++) {
    probe_cell *oldest = &cells[round % CELLS];
    probe_later_result later;
    probe_u64_stream stream;
    probe_echo_result echo;
    CHECK_CODE(get(&client, *oldest, &value), TW_OK);
    CHECK(value == round - CELLS);
    REQUIRE_OK(probe_cell_close(oldest, &error), error);
    *oldest = new_cell(&client, round);
    CHECK_CODE(probe_later(&client, 1, round, TW_FOREVER, &later, &error), TW_OK);
    CHECK(later.ok == round);
    tw_reply_release(&later.reply);
    CHECK_CODE(probe_echo(&client, tw_text_of("text"), TW_FOREVER, &echo, &error), TW_OK);
    tw_reply_release(&echo.reply);
    stream = open_numbers(&client, 1000);
    CHECK_CODE(read_numbers(&stream, &value), TW_CLOSED);
    CHECK(value == 1000);
    atomic_fetch_add(&calls_served, 5);
  }
  close_client(&client);
  for (round = 0; round < CELLS; round++) {
    probe_cell_close(&cells[round], &error);
  }
  return NULL;
}

/* Short calls. No sum is missing: each call counts once, in the state of one of the libraries. */
static void *add_ones(void *given) {
  probe_client client = open_client_of(&library);
  uint64_t sum = add(&client, 0);
  (void)given;
  while (!atomic_load(&stops)) {
    const uint64_t next = add(&client, 1);
    if (next % VERSION == 1 && next != sum + 1) {
      atomic_fetch_add(&reloads_seen, 1);
    } else {
      CHECK(next == sum + 1);
    }
    sum = next;
    atomic_fetch_add(&calls_served, 1);
    if (sum % 64 == 0) {
      sleep_ms(1); /* the sums of the first version stay below a million */
    }
  }
  close_client(&client);
  return NULL;
}

static void reload_under_load(int reloads, uint32_t interval_ms) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  struct timespec begin, end;
#ifndef __SANITIZE_ADDRESS__
  const int warm_up = reloads / 4;
  long memory = 0;
  long descriptors = 0;
#endif
  int i;
  open_live("version1");
  atomic_store(&stops, false);
  for (i = 0; i < THREADS; i++) {
    if (pthread_create(&threads[i], NULL, i % 2 ? add_ones : use_guest, NULL) != 0) {
      exit(1);
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (i = 1; i <= reloads; i++) {
    install(i % 2 ? "version2" : "version1");
    reload(in_ms(30000));
    sleep_ms(interval_ms);
#ifndef __SANITIZE_ADDRESS__
    if (i == warm_up) {
      CHECK(becomes_loaded(1));
      memory = resident_kib();
      descriptors = count_entries("/proc/self/fd");
    }
#endif
  }
  CHECK(becomes_loaded(1));
#ifndef __SANITIZE_ADDRESS__
  /* A library has 2 MiB of its own. */
  printf("resident: %ld KiB after %d reloads, %ld KiB after %d\n", memory, warm_up, resident_kib(),
         reloads);
  CHECK(resident_kib() <= memory + 1024);
  CHECK(count_entries("/proc/self/fd") <= descriptors);
#endif
  clock_gettime(CLOCK_MONOTONIC, &end);
  atomic_store(&stops, true);
  for (i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  CHECK(atomic_load(&reloads_seen) > (unsigned long)reloads / 2);
  printf("%lu calls in %ld s, %d reloads, %d failed\n", (unsigned long)atomic_load(&calls_served),
         (long)(end.tv_sec - begin.tv_sec), reloads, checks_failed);
  close_live();
  CHECK(becomes_loaded(0));
}

static void no_call_fails_under_load(void) {
  reload_under_load(30, 50);
}

int main(int argc, char **argv) {
  if (argc != 2 && argc != 4) {
    fputs("usage: reload FOLDER [RELOADS MS]\n", stderr);
    return 2;
  }
  folder = argv[1];
  path_of("live", live, sizeof(live));
  if (argc == 4) {
    reload_under_load(atoi(argv[2]), (uint32_t)atoi(argv[3]));
    return done("reload under load");
  }
  RUN(calls_move_to_the_new_library);
  RUN(same_file_is_loaded_as_a_copy);
  RUN(earlier_library_drains);
  RUN(begun_call_is_answered_by_the_earlier_library);
  RUN(at_the_deadline_the_rest_is_stale);
  RUN(client_is_closed_while_it_drains);
  RUN(panic_ends_all_states_of_the_client);
  RUN(refused_reload_changes_nothing);
  RUN(guest_that_stays_loaded_is_not_reloaded);
  RUN(guest_moves_to_another_address);
  RUN(link_is_followed_again);
  RUN(other_name_of_a_loaded_file_is_loaded_as_a_copy);
  RUN(one_thread_at_a_time_reloads);
  RUN(forked_child_reloads_its_own);
  RUN(no_call_fails_under_load);
  /* LeakSanitizer does not see what a thread that is about to end has on its stack. */
  wait_for_unloading();
  return done("reload");
}
