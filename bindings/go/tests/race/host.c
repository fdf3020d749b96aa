#include "host.h"

#include <dlfcn.h>

#include "probe.h"
#include "thalweg_guest.h"

extern uint32_t tw_guest(uint32_t abi, const tw_guest_core *core, uint64_t opening,
                         tw_error *error);

static int failed(const char *what, const tw_error *error) {
  fprintf(stderr, "%s: %s: %s\n", what, tw_code_name(error->code), error->message);
  return 1;
}

int use_own_guest(const char *shim) {
  typedef void (*function)(tw_guest_function);
  union {
    void *symbol;
    function function;
  } serve_with;
  void *library = dlopen(shim, RTLD_NOW);
  if (!library || !(serve_with.symbol = dlsym(library, "serve_with"))) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  serve_with.function(tw_guest);
  return 0;
}

static int use_cell(const probe_client *client) {
  probe_cell_new_result made;
  probe_cell_add_result added;
  tw_error error;
  probe_cell cell;
  if (probe_cell_new(client, 1, TW_FOREVER, &made, &error) != TW_OK) {
    return failed("cell", &error);
  }
  cell = made.ok;
  tw_reply_release(&made.reply);
  if (probe_cell_add(client, cell, 2, TW_FOREVER, &added, &error) != TW_OK || added.ok != 3) {
    return failed("cell.add", &error);
  }
  tw_reply_release(&added.reply);
  return probe_cell_close(&cell, &error) == TW_OK ? 0 : failed("cell.close", &error);
}

static int read_numbers(const probe_client *client, uint64_t count) {
  probe_numbers_result numbers;
  probe_u64_batch batch;
  tw_error error;
  uint64_t seen = 0;
  if (probe_numbers(client, count, TW_FOREVER, &numbers, &error) != TW_OK) {
    return failed("numbers", &error);
  }
  tw_reply_release(&numbers.reply);
  while (probe_u64_stream_acquire(&numbers.ok, 256, TW_FOREVER, &batch, &error) == TW_OK) {
    seen += batch.tw.count;
    probe_u64_stream_release(&numbers.ok, batch.tw.count, &error);
    if (seen > 20000) {
      break; /* the reader leaves */
    }
  }
  probe_u64_stream_close(&numbers.ok, &error);
  return seen >= count || seen > 20000 ? 0 : failed("numbers", &error);
}

/* Ends by its deadline or by its answer. */
static int call_later(const probe_client *client, uint64_t timeout_ns) {
  probe_later_result later;
  tw_error error;
  uint64_t deadline = client->tw.table->now() + timeout_ns;
  uint32_t code = probe_later(client, 1, 42, deadline, &later, &error);
  tw_reply_release(&later.reply);
  return code == TW_OK || code == TW_TIMED_OUT ? 0 : failed("later", &error);
}

static int panic(const probe_client *client) {
  probe_misbehave_result result;
  tw_error error;
  uint32_t code = probe_misbehave(client, 5, TW_FOREVER, &result, &error);
  tw_reply_release(&result.reply);
  return code == TW_GUEST_PANICKED ? 0 : failed("misbehave", &error);
}

static int call_all(const probe_client *client, int round) {
  probe_add_result added;
  tw_error error;
  if (probe_add(client, 1, TW_FOREVER, &added, &error) != TW_OK) {
    return failed("add", &error);
  }
  tw_reply_release(&added.reply);
  return use_cell(client) || read_numbers(client, round % 2 ? 100 : UINT64_C(1) << 60) ||
         call_later(client, UINT64_C(100000) << round % 7) || (round % 5 == 0 && panic(client));
}

int open_and_call(const char *address, int rounds) {
  probe_library library;
  probe_client client;
  tw_error error;
  int round;
  int result = 0;
  if (probe_open(address, &library, &error) != TW_OK) {
    return failed("open", &error);
  }
  if (probe_client_open(&library, 64, &client, &error) != TW_OK) {
    return failed("client_open", &error);
  }
  for (round = 0; round < rounds && result == 0; round++) {
    result = call_all(&client, round);
  }
  probe_client_close(&client, &error);
  tw_close(library.table, &error);
  return result;
}
