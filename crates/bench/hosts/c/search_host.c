/* The C host program of `search_overhead`: `search_host LIBRARY PATTERN DIR`. A line `search TIMES`
 * runs that many searches one after another; the answer is their total time and the number of
 * matches and lines that each of them found. */
#include "sample.h"
#include "search.h"

typedef struct found {
  uint64_t matches;
  uint64_t lines; /* sum of the line numbers */
} found;

/* Reads one search to its end. */
static found search(const search_client *client, search_query query) {
  search_matches_result result;
  search_match_stream stream;
  search_match_batch batch;
  tw_error error;
  found all = {0, 0};
  uint32_t code;
  must(search_matches(client, query, TW_FOREVER, &result, &error), "matches", &error);
  stream = result.ok;
  tw_reply_release(&result.reply);
  while ((code = search_match_stream_acquire(&stream, 256, TW_FOREVER, &batch, &error)) == TW_OK) {
    uint32_t i;
    for (i = 0; i < batch.tw.count; i++) {
      all.lines += search_match_batch_at(&batch, i)->line;
    }
    all.matches += batch.tw.count;
    must(search_match_stream_release(&stream, batch.tw.count, &error), "release", &error);
  }
  if (code != TW_CLOSED) {
    must(code, "acquire", &error);
  }
  must(search_match_stream_close(&stream, &error), "close", &error);
  return all;
}

static search_query compile(const search_client *client, const char *pattern, const char *dir) {
  search_options_in options;
  search_query_new_result result;
  search_query query;
  tw_error error;
  memset(&options, 0, sizeof(options));
  options.hidden = true;
  must(search_query_new(client, tw_text_of(pattern), tw_text_of(dir), &options, TW_FOREVER, &result,
                        &error),
       "query", &error);
  query = result.ok;
  tw_reply_release(&result.reply);
  return query;
}

int main(int argc, char **argv) {
  search_library library;
  search_client client;
  search_query query;
  tw_error error;
  char command[32];
  uint64_t numbers[3];
  if (argc != 4) {
    fputs("usage: search_host LIBRARY PATTERN DIR\n", stderr);
    return 2;
  }
  must(search_open(argv[1], &library, &error), argv[1], &error);
  must(search_client_open(&library, 16, &client, &error), "client", &error);
  query = compile(&client, argv[2], argv[3]);
  say_ready();
  while (next_command(command, numbers)) {
    const uint64_t began = now_ns();
    const found first = search(&client, query);
    uint64_t time;
    for (time = 1; time < numbers[0]; time++) {
      const found again = search(&client, query);
      if (again.matches != first.matches || again.lines != first.lines) {
        fputs("two searches of the same files found different lines\n", stderr);
        return 1;
      }
    }
    printf("{\"ns\": %" PRIu64 ", \"matches\": %" PRIu64 ", \"lines\": %" PRIu64 "}\n",
           now_ns() - began, first.matches, first.lines);
    fflush(stdout);
  }
  must(search_query_close(&query, &error), "close query", &error);
  must(search_client_close(&client, &error), "close", &error);
  return 0;
}
