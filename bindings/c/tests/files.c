/* The search library on files that this program creates: names and lines that are not UTF-8, a slow
 * reader, a stream without records. files LIBRARY FOLDER: the folder is empty. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "search.h"

#define MILLISECOND UINT64_C(1000000)
#define LINES 300000u

static search_library library;
static search_client client;
static const char *folder;

static void sleep_ms(uint32_t milliseconds) {
  struct timespec length;
  length.tv_sec = milliseconds / 1000;
  length.tv_nsec = (long)(milliseconds % 1000) * 1000000;
  nanosleep(&length, NULL);
}

static void write_file(const char *directory, const char *name, const char *text, size_t size) {
  char path[1024];
  FILE *file;
  snprintf(path, sizeof(path), "%s/%s", folder, directory);
  if (mkdir(path, 0777) != 0 && errno != EEXIST) {
    perror(path);
    exit(1);
  }
  snprintf(path, sizeof(path), "%s/%s/%s", folder, directory, name);
  file = fopen(path, "wb");
  if (!file || fwrite(text, 1, size, file) != size || fclose(file) != 0) {
    perror(path);
    exit(1);
  }
}

static void make_files(void) {
  char *lines = (char *)malloc(LINES * 8u);
  uint32_t i;
  if (!lines) {
    abort();
  }
  for (i = 0; i < LINES; i++) {
    memcpy(lines + i * 8, "needle.\n", 8);
  }
  write_file("many", "lines.txt", lines, LINES * 8);
  free(lines);
  write_file("odd", "plain.txt", "one needle\ntwo\nneedle needle\n", 29);
  write_file("odd", "bad-\xff-name.txt", "a needle\n", 9);
  write_file("odd", "bad-line.txt", "caf\xe9 needle\n", 12);
  write_file("odd", "binary.bin", "\0\1needle\0\n", 10);
}

static void folder_of(const char *directory, char *path, size_t size) {
  snprintf(path, size, "%s/%s", folder, directory);
}

static search_query query_in(const char *directory) {
  search_options_in options;
  search_query_new_result result;
  char path[1024];
  tw_error error;
  folder_of(directory, path, sizeof(path));
  memset(&options, 0, sizeof(options));
  options.fixed = true;
  options.hidden = true;
  REQUIRE_OK(search_query_new(&client, tw_text_of("needle"), tw_text_of(path), &options, TW_FOREVER,
                              &result, &error),
             error);
  tw_reply_release(&result.reply);
  return result.ok;
}

static search_progress_stream progress_of(search_query query) {
  search_query_progress_result result;
  tw_error error;
  REQUIRE_OK(search_query_progress(&client, query, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
  return result.ok;
}

/* A stream without records: the progress of a query that has no search. Its first record, for 0
 * files, has been read. */
static search_progress_stream silent_stream_of(search_query query) {
  search_progress_stream stream = progress_of(query);
  search_progress_batch batch;
  tw_error error;
  REQUIRE_OK(search_progress_stream_acquire(&stream, 1, TW_FOREVER, &batch, &error), error);
  CHECK(search_progress_batch_at(&batch, 0)->files == 0);
  REQUIRE_OK(search_progress_stream_release(&stream, 1, &error), error);
  return stream;
}

static search_match_stream matches_of(search_query query) {
  search_matches_result result;
  tw_error error;
  REQUIRE_OK(search_matches(&client, query, TW_FOREVER, &result, &error), error);
  tw_reply_release(&result.reply);
  return result.ok;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static bool ends_with(const char *data, size_t size, const char *end) {
  size_t length = strlen(end);
  return size >= length && memcmp(data + size - length, end, length) == 0;
}

static void names_that_are_not_utf8_are_returned_as_text_and_bytes(void) {
  search_query query = query_in("odd");
  search_match_stream stream = matches_of(query);
  search_match_batch batch;
  tw_error error;
  unsigned seen = 0;
  uint32_t lines = 0;
  uint32_t code;
  uint32_t i;
  while ((code = search_match_stream_acquire(&stream, 16, TW_FOREVER, &batch, &error)) == TW_OK) {
    for (i = 0; i < batch.tw.count; i++) {
      const search_match *match = search_match_batch_at(&batch, i);
      tw_text path = search_match_path(batch.tw.base, match);
      tw_text text = search_match_text(batch.tw.base, match);
      tw_bytes bytes;
      bool path_is_odd = search_match_path_bytes(batch.tw.base, match, &bytes);
      lines++;
      if (path_is_odd) {
        seen |= 1;
        CHECK(ends_with((const char *)bytes.data, bytes.size, "bad-\xff-name.txt"));
        CHECK(ends_with(path.data, path.size, "bad-\xef\xbf\xbd-name.txt"));
      }
      if (search_match_text_bytes(batch.tw.base, match, &bytes)) {
        seen |= 2;
        CHECK(bytes.size == 11 && memcmp(bytes.data, "caf\xe9 needle", 11) == 0);
        CHECK(tw_text_equal(text, tw_text_of("caf\xef\xbf\xbd needle")));
      }
      if (ends_with(path.data, path.size, "binary.bin")) {
        seen |= 4;
        CHECK(text.size == 9 && memcmp(text.data, "\0\1needle\0", 9) == 0);
      }
      if (ends_with(path.data, path.size, "plain.txt") && match->line == 3) {
        seen |= 8;
        CHECK(match->column == 1 && !match->cut);
      }
    }
    CHECK_CODE(search_match_stream_release(&stream, batch.tw.count, &error), TW_OK);
  }
  CHECK_CODE(code, TW_CLOSED);
  CHECK(seen == 15 && lines == 5);
  CHECK_CODE(search_match_stream_close(&stream, &error), TW_OK);
  CHECK_CODE(search_query_close(&query, &error), TW_OK);
}

static void count_is_the_number_of_lines(void) {
  search_count_result result;
  char path[1024];
  tw_error error;
  folder_of("odd", path, sizeof(path));
  CHECK_CODE(
      search_count(&client, tw_text_of("need[l]e"), tw_text_of(path), TW_FOREVER, &result, &error),
      TW_OK);
  CHECK(result.ok == 5);
  tw_reply_release(&result.reply);
}

static void invalid_pattern_and_missing_folder_are_typed_errors(void) {
  search_count_result result;
  tw_error error;
  tw_text why;
  CHECK_CODE(
      search_count(&client, tw_text_of("("), tw_text_of(folder), TW_FOREVER, &result, &error),
      TW_ERROR);
  CHECK(search_search_error_pattern(result.reply.base, result.error, &why) && why.size > 0);
  CHECK(!search_search_error_directory(result.reply.base, result.error, &why));
  tw_reply_release(&result.reply);
  CHECK_CODE(search_count(&client, tw_text_of("x"), tw_text_of("no/such/folder"), TW_FOREVER,
                          &result, &error),
             TW_ERROR);
  CHECK(search_search_error_directory(result.reply.base, result.error, &why) && why.size > 0);
  tw_reply_release(&result.reply);
}

static void invalid_glob_is_a_typed_error(void) {
  static const tw_text globs[] = {{"*.txt", 5}, {"{a", 2}};
  search_options_in options;
  search_query_new_result result;
  tw_error error;
  tw_text why;
  memset(&options, 0, sizeof(options));
  options.globs.items = globs;
  options.globs.count = 2;
  CHECK_CODE(search_query_new(&client, tw_text_of("x"), tw_text_of(folder), &options, TW_FOREVER,
                              &result, &error),
             TW_ERROR);
  CHECK(search_search_error_glob(result.reply.base, result.error, &why) && why.size > 0);
  tw_reply_release(&result.reply);
}

/* ---- A slow reader --------------------------------------------------------------------------- */

static uint64_t latest_matches(const search_progress_stream *stream, uint64_t before) {
  search_progress_batch batch;
  tw_error error;
  while (search_progress_stream_acquire(stream, 1, 0, &batch, &error) == TW_OK) {
    before = search_progress_batch_at(&batch, 0)->matches;
    CHECK_CODE(search_progress_stream_release(stream, 1, &error), TW_OK);
  }
  return before;
}

static void stopped_reader_stops_the_walk_and_close_ends_it(void) {
  search_query query = query_in("many");
  search_progress_stream progress = progress_of(query);
  search_match_stream stream = matches_of(query);
  search_match_batch batch;
  tw_error error;
  uint64_t now;
  REQUIRE_OK(search_match_stream_acquire(&stream, 1, TW_FOREVER, &batch, &error), error);
  sleep_ms(200);
  now = latest_matches(&progress, 0);
  CHECK(now < LINES / 4); /* the capacity is 8,192 */
  CHECK_CODE(search_match_stream_close(&stream, &error), TW_OK);
  CHECK_CODE(search_query_close(&query, &error), TW_OK);
  CHECK_CODE(search_progress_stream_close(&progress, &error), TW_OK);
}

static void slow_reader_still_reads_all_records(void) {
  search_query query = query_in("many");
  search_match_stream stream = matches_of(query);
  search_match_batch batch;
  tw_error error;
  uint64_t count = 0;
  uint64_t lines = 0;
  uint32_t code;
  uint32_t i;
  sleep_ms(20);
  while ((code = search_match_stream_acquire(&stream, 256, TW_FOREVER, &batch, &error)) == TW_OK) {
    for (i = 0; i < batch.tw.count; i++) {
      lines += search_match_batch_at(&batch, i)->line;
    }
    count += batch.tw.count;
    REQUIRE_OK(search_match_stream_release(&stream, batch.tw.count, &error), error);
  }
  CHECK_CODE(code, TW_CLOSED);
  CHECK(count == LINES && lines == (uint64_t)LINES * (LINES + 1) / 2);
  CHECK_CODE(search_match_stream_close(&stream, &error), TW_OK);
  CHECK_CODE(search_query_close(&query, &error), TW_OK);
}

/* ---- A stream without records ---------------------------------------------------------------- */

static void on_alarm(int signal_number) {
  (void)signal_number;
}

static void acquire_without_records_ends_by_deadline_or_signal(void) {
  search_query query = query_in("odd");
  search_progress_stream stream = silent_stream_of(query);
  const tw_table *table = library.table;
  search_progress_batch batch;
  struct itimerval timer;
  tw_error error;
  uint64_t began = table->now();
  CHECK_CODE(search_progress_stream_acquire(&stream, 1, 0, &batch, &error), TW_WOULD_PARK);
  CHECK(batch.tw.flags == 0);
  CHECK_CODE(search_progress_stream_acquire(&stream, 1, began + 30 * MILLISECOND, &batch, &error),
             TW_TIMED_OUT);
  CHECK(batch.tw.flags == 0 && table->now() - began >= 30 * MILLISECOND);
  memset(&timer, 0, sizeof(timer));
  timer.it_value.tv_usec = 30000;
  /* The first signal may arrive before the wait begins. */
  timer.it_interval = timer.it_value;
  setitimer(ITIMER_REAL, &timer, NULL);
  CHECK_CODE(search_progress_stream_acquire(&stream, 1, TW_FOREVER, &batch, &error),
             TW_INTERRUPTED);
  memset(&timer, 0, sizeof(timer));
  setitimer(ITIMER_REAL, &timer, NULL);
  CHECK(batch.tw.flags == 0);
  CHECK_CODE(search_progress_stream_close(&stream, &error), TW_OK);
  CHECK_CODE(search_query_close(&query, &error), TW_OK);
}

static void *close_later(void *argument) {
  sleep_ms(30);
  CHECK_CODE(library.table->stream_close(*(const tw_handle *)argument, NULL), TW_OK);
  return NULL;
}

static void closing_a_stream_wakes_its_reader(void) {
  search_query query = query_in("odd");
  search_progress_stream stream = silent_stream_of(query);
  search_progress_batch batch;
  pthread_t thread;
  tw_error error;
  uint32_t code;
  pthread_create(&thread, NULL, close_later, &stream.tw.handle);
  code = search_progress_stream_acquire(&stream, 1, TW_FOREVER, &batch, &error);
  CHECK(code == TW_STALE || code == TW_CANCELLED);
  pthread_join(thread, NULL);
  CHECK_CODE(search_query_close(&query, &error), TW_OK);
}

/* ---- An event loop --------------------------------------------------------------------------- */

static void stream_is_read_by_polling_the_port(void) {
  search_query query = query_in("many");
  search_match_stream stream = matches_of(query);
  const tw_table *table = library.table;
  search_match_batch batch;
  struct pollfd watched;
  tw_error error;
  uint64_t count = 0;
  uint32_t code = TW_OK;
  uint32_t ready;
  watched.events = POLLIN;
  watched.fd = -1;
  REQUIRE_OK(table->port_fd(client.tw.port, &watched.fd, &error), error);
  for (;;) {
    tw_completion completion;
    uint32_t reaped = 0;
    while ((code = search_match_stream_acquire(&stream, 256, 0, &batch, &error)) == TW_OK) {
      count += batch.tw.count;
      REQUIRE_OK(search_match_stream_release(&stream, batch.tw.count, &error), error);
    }
    if (code != TW_WOULD_PARK) {
      break;
    }
    REQUIRE_OK(search_match_stream_arm(&stream, &client, 77, &ready, &error), error);
    if (ready) {
      continue;
    }
    REQUIRE_OK(table->port_arm(client.tw.port, &ready, &error), error);
    if (!ready) {
      CHECK(poll(&watched, 1, 60000) == 1);
    }
    REQUIRE_OK(table->port_reap(client.tw.port, &completion, 1, &reaped, &error), error);
    CHECK(reaped == 1 && completion.kind == TW_COMPLETION_STREAM_READY && completion.token == 77 &&
          completion.call == stream.tw.handle);
    table->release(&completion);
  }
  CHECK_CODE(code, TW_CLOSED);
  CHECK(count == LINES);
  CHECK_CODE(search_match_stream_close(&stream, &error), TW_OK);
  CHECK_CODE(search_query_close(&query, &error), TW_OK);
}

static void repeated_arming_uses_one_slot_of_the_port(void) {
  search_query query = query_in("odd");
  search_progress_stream stream = silent_stream_of(query);
  search_client narrow;
  search_escape_result escaped;
  tw_error error;
  uint32_t ready;
  int i;
  REQUIRE_OK(search_client_attach(&client, 2, &narrow, &error), error);
  for (i = 0; i < 10; i++) {
    CHECK_CODE(search_progress_stream_arm(&stream, &narrow, 1, &ready, &error), TW_OK);
    CHECK(ready == 0);
  }
  CHECK_CODE(search_escape(&narrow, tw_text_of("a.b"), TW_FOREVER, &escaped, &error), TW_OK);
  CHECK(tw_text_equal(escaped.ok, tw_text_of("a\\.b")));
  tw_reply_release(&escaped.reply);
  CHECK_CODE(search_progress_stream_close(&stream, &error), TW_OK);
  CHECK_CODE(search_query_close(&query, &error), TW_OK);
  CHECK_CODE(search_client_close(&narrow, &error), TW_OK);
}

int main(int argc, char **argv) {
  struct sigaction action;
  tw_error error;
  if (argc != 3) {
    fputs("usage: files LIBRARY FOLDER\n", stderr);
    return 2;
  }
  memset(&action, 0, sizeof(action));
  action.sa_handler = on_alarm; /* without SA_RESTART */
  sigaction(SIGALRM, &action, NULL);
  folder = argv[2];
  make_files();
  REQUIRE_OK(search_open(argv[1], &library, &error), error);
  REQUIRE_OK(search_client_open(&library, 4, &client, &error), error);
  RUN(names_that_are_not_utf8_are_returned_as_text_and_bytes);
  RUN(count_is_the_number_of_lines);
  RUN(invalid_pattern_and_missing_folder_are_typed_errors);
  RUN(invalid_glob_is_a_typed_error);
  RUN(stopped_reader_stops_the_walk_and_close_ends_it);
  RUN(slow_reader_still_reads_all_records);
  RUN(acquire_without_records_ends_by_deadline_or_signal);
  RUN(closing_a_stream_wakes_its_reader);
  RUN(stream_is_read_by_polling_the_port);
  RUN(repeated_arming_uses_one_slot_of_the_port);
  CHECK_CODE(search_client_close(&client, &error), TW_OK);
  return done("files");
}
