/* Searches a directory tree for plain text, from C.
 *
 *   search-c LIBRARY PATTERN DIR [--print | --count | --json]
 *
 * --print  prints each matching line like `grep -rn` (the default)
 * --count  prints the number of matching lines, which the service counts without a stream
 * --json   streams the matches and prints their number and the time as one line of JSON
 */
#include "search.h"

/* The most records in a batch. */
#define BATCH 256

static const char *const usage =
    "usage: search-c LIBRARY PATTERN DIR [--print | --count | --json]\n";

typedef struct found {
  uint64_t matches;
  uint64_t lines_sum; /* sum of the line numbers, to compare two searches */
  uint64_t first_ns;  /* time of the first match */
} found;

/* Prints an error. Returns the exit status. */
static int failed(uint32_t code, const tw_error *error) {
  fprintf(stderr, "search-c: %s: %s\n", tw_code_name(code), error->message);
  return 1;
}

/* The same for a call whose typed error is a search-error. Releases the reply. */
static int search_failed(uint32_t code, const search_search_error *why, tw_reply *reply,
                         const tw_error *error) {
  tw_text text;
  if (code != TW_ERROR) {
    return failed(code, error);
  }
  if (search_search_error_pattern(reply->base, why, &text) ||
      search_search_error_glob(reply->base, why, &text) ||
      search_search_error_directory(reply->base, why, &text)) {
    fprintf(stderr, "search-c: %.*s\n", (int)text.size, text.data);
  }
  tw_reply_release(reply);
  return 1;
}

/* Prints the original bytes of text that is not UTF-8. */
static void print(const uint8_t *base, const search_match *match) {
  tw_text path = search_match_path(base, match);
  tw_text text = search_match_text(base, match);
  tw_bytes bytes;
  if (search_match_path_bytes(base, match, &bytes)) {
    fwrite(bytes.data, 1, bytes.size, stdout);
  } else {
    fwrite(path.data, 1, path.size, stdout);
  }
  printf(":%" PRIu64 ":", match->line);
  if (search_match_text_bytes(base, match, &bytes)) {
    fwrite(bytes.data, 1, bytes.size, stdout);
  } else {
    fwrite(text.data, 1, text.size, stdout);
  }
  putchar('\n');
}

/* Reads a stream to its end. Returns its outcome: TW_CLOSED if it is complete. */
static uint32_t drain(search_match_stream *stream, bool prints, found *all, tw_error *error) {
  search_match_batch batch;
  uint32_t code;
  uint32_t i;
  while ((code = search_match_stream_acquire(stream, BATCH, TW_FOREVER, &batch, error)) == TW_OK) {
    if (all->matches == 0) {
      all->first_ns = stream->tw.table->now();
    }
    for (i = 0; i < batch.tw.count; i++) {
      const search_match *match = search_match_batch_at(&batch, i);
      all->lines_sum += match->line;
      if (prints) {
        print(batch.tw.base, match);
      }
    }
    all->matches += batch.tw.count;
    search_match_stream_release(stream, batch.tw.count, error);
  }
  search_match_stream_close(stream, NULL);
  return code;
}

static int stream(const search_client *client, tw_text pattern, tw_text dir, bool prints) {
  search_options_in options;
  search_query_new_result query;
  search_matches_result matches;
  found all = {0, 0, 0};
  tw_error error;
  uint32_t code;
  const uint64_t began = client->tw.table->now();
  uint64_t ended;
  memset(&options, 0, sizeof(options)); /* searches every file, also those in ignore files */
  options.fixed = true;
  options.hidden = true;
  code = search_query_new(client, pattern, dir, &options, TW_FOREVER, &query, &error);
  if (code != TW_OK) {
    return search_failed(code, query.error, &query.reply, &error);
  }
  code = search_matches(client, query.ok, TW_FOREVER, &matches, &error);
  if (code != TW_OK) {
    search_query_close(&query.ok, NULL);
    return search_failed(code, matches.error, &matches.reply, &error);
  }
  code = drain(&matches.ok, prints, &all, &error);
  ended = client->tw.table->now();
  search_query_close(&query.ok, NULL);
  if (code != TW_CLOSED) {
    return failed(code, &error);
  }
  if (!prints) {
    printf("{\"host\":\"C\",\"matches\":%" PRIu64 ",\"lines_sum\":%" PRIu64
           ",\"first_match_ns\":%" PRIu64 ",\"total_ns\":%" PRIu64 "}\n",
           all.matches, all.lines_sum, (all.matches > 0 ? all.first_ns : ended) - began,
           ended - began);
  }
  return 0;
}

/* `count` takes a regular expression, which `escape` makes from the text. */
static int count(const search_client *client, tw_text pattern, tw_text dir) {
  search_escape_result escaped;
  search_count_result counted;
  tw_error error;
  int status = 0;
  uint32_t code = search_escape(client, pattern, TW_FOREVER, &escaped, &error);
  if (code != TW_OK) {
    return failed(code, &error);
  }
  code = search_count(client, escaped.ok, dir, TW_FOREVER, &counted, &error);
  if (code == TW_OK) {
    printf("%" PRIu64 "\n", counted.ok);
  } else {
    status = search_failed(code, counted.error, &counted.reply, &error);
  }
  tw_reply_release(&escaped.reply);
  return status;
}

int main(int argc, char **argv) {
  const char *mode = argc == 5 ? argv[4] : "--print";
  bool counts = strcmp(mode, "--count") == 0;
  bool prints = strcmp(mode, "--print") == 0;
  search_library library;
  search_client client;
  tw_error error;
  int status;
  if (argc < 4 || argc > 5 || !(counts || prints || strcmp(mode, "--json") == 0)) {
    fputs(usage, stderr);
    return 2;
  }
  if (search_open(argv[1], &library, &error) != TW_OK ||
      search_client_open(&library, 1, &client, &error) != TW_OK) {
    return failed(error.code, &error);
  }
  if (counts) {
    status = count(&client, tw_text_of(argv[2]), tw_text_of(argv[3]));
  } else {
    status = stream(&client, tw_text_of(argv[2]), tw_text_of(argv[3]), prints);
  }
  search_client_close(&client, NULL);
  return status;
}
