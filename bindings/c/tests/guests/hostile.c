/* A guest that misbehaves at random over the functions of tw_guest_core. It records in the ledger what the
 * core has accepted, for hostile_guests.c to compare with what the callers see. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "hostile_messages.h"

extern __attribute__((visibility("default"))) ledger hostile_ledger;
ledger hostile_ledger;

static ledger *hostile_shared(void) {
  return &hostile_ledger;
}

static const tw_guest_core *core;

static void violation(const char *what, uint64_t number) {
  if (atomic_fetch_add(&hostile_ledger.violations, 1) < 20) {
    fprintf(stderr, "hostile guest: %s: %llu\n", what, (unsigned long long)number);
  }
}

/* Counts a call of a function of the core, whose result must be one of `codes`, a set of bits. */
#define CODE(code) (1u << (code))
static uint32_t expect(const char *function, uint32_t code, uint32_t codes) {
  atomic_fetch_add(&hostile_ledger.messages, 1);
  if (code > 31 || (CODE(code) & codes) == 0) {
    violation(function, code);
  }
  return code;
}

/* ---- What the guest remembers: calls, resources and writers, live and stale -------------------- */

/* A call that the guest has, or has had. */
typedef struct known_call {
  tw_handle call;
  uint64_t id;
  uint32_t method;
  tw_handle handles[2]; /* of its arguments */
  uint32_t handle_count;
} known_call;

typedef struct known_writer {
  tw_handle writer;
  uint64_t id;
  uint32_t method;
} known_writer;

#define KNOWN 64
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static known_call known_calls[KNOWN];
static known_writer known_writers[KNOWN];
static tw_handle known_resources[KNOWN];

static void remember_call(const known_call *call) {
  pthread_mutex_lock(&known_lock);
  known_calls[below(KNOWN)] = *call;
  pthread_mutex_unlock(&known_lock);
}

static known_call any_call(void) {
  known_call call;
  pthread_mutex_lock(&known_lock);
  call = known_calls[below(KNOWN)];
  pthread_mutex_unlock(&known_lock);
  return call;
}

static void remember_resource(tw_handle resource) {
  pthread_mutex_lock(&known_lock);
  known_resources[below(KNOWN)] = resource;
  pthread_mutex_unlock(&known_lock);
}

static tw_handle any_resource(void) {
  tw_handle resource;
  pthread_mutex_lock(&known_lock);
  resource = known_resources[below(KNOWN)];
  pthread_mutex_unlock(&known_lock);
  return resource;
}

static known_writer any_writer(void) {
  known_writer writer;
  pthread_mutex_lock(&known_lock);
  writer = known_writers[below(KNOWN)];
  pthread_mutex_unlock(&known_lock);
  return writer;
}

static void finish_writer(known_writer writer);

/* Keeps a writer. The one that it replaces is ended, so that not every stream stays open. */
static void remember_writer(known_writer writer) {
  uint32_t index = below(KNOWN);
  known_writer last;
  pthread_mutex_lock(&known_lock);
  last = known_writers[index];
  known_writers[index] = writer;
  pthread_mutex_unlock(&known_lock);
  if (last.writer != 0) {
    finish_writer(last);
    core->stream_finish(last.writer, NULL);
  }
}

/* A handle of no call. */
static tw_handle no_call(void) {
  switch (below(7)) {
  case 0:
    return any_resource();
  case 1:
    return any_writer().writer;
  case 2:
  case 3:
    return atomic_load(&hostile_ledger.host_handles[below(LEDGER_HANDLES)]);
  case 4: /* a generation that is far away */
    return any_call().call ^ (UINT64_C(1) << (56 + below(8)));
  case 5: /* an index that is far away */
    return any_call().call | 0xf00000;
  default:
    return one_in(2) ? 0 : any() | UINT64_C(0xff00000000000000);
  }
}

/* A handle to put into a message: of any kind. */
static tw_handle any_handle(void) {
  return one_in(4) ? any_call().call : no_call();
}

/* ---- Objects ------------------------------------------------------------------------------------ */

#define TYPES 3 /* cells, trays, and a type that no method has */

static uint64_t new_object(void) {
  uint32_t object = atomic_fetch_add(&hostile_ledger.object_count, 1);
  if (object >= LEDGER_OBJECTS) {
    fputs("hostile guest: too many objects in a round\n", stderr);
    abort();
  }
  return object;
}

static void end_object(const char *how, uint64_t object) {
  if (object >= atomic_load(&hostile_ledger.object_count)) {
    violation(how, object);
  } else if (atomic_fetch_add(&hostile_ledger.objects[object].ends, 1) != 0) {
    violation("an object has ended twice", object);
  }
}

static tw_handle new_resource(tw_handle call) {
  const uint64_t object = new_object();
  tw_handle resource = 0;
  tw_error error;
  uint32_t code = core->resource_new(call, below(TYPES), object, &resource, &error);
  expect("resource_new", code, CODE(TW_OK) | CODE(TW_STALE) | CODE(TW_ARGUMENT));
  if (code == TW_OK) {
    atomic_store(&hostile_ledger.objects[object].given, 1);
    remember_resource(resource);
  }
  return resource;
}

static void use_resource(const known_call *call, tw_handle resource) {
  const uint32_t codes = CODE(TW_OK) | CODE(TW_STALE) | CODE(TW_ARGUMENT);
  const uint32_t type = below(TYPES);
  uint64_t object = 0;
  tw_error error;
  if (one_in(2)) {
    uint32_t code = core->resource_get(call->call, resource, type, &object, &error);
    if (expect("resource_get", code, codes) == TW_OK &&
        object >= atomic_load(&hostile_ledger.object_count)) {
      violation("resource_get has no such object", object);
    }
  } else if (expect("resource_take",
                    core->resource_take(call->call, resource, type, &object, &error),
                    codes) == TW_OK) {
    end_object("resource_take has no such object", object);
  }
}

/* ---- Ends of calls ------------------------------------------------------------------------------ */

static ledger_call *entry_of(const known_call *call) {
  static ledger_call nothing;
  if (call->id >= LEDGER_CALLS) {
    violation("something was answered that is no call", call->call);
    return &nothing;
  }
  return &hostile_ledger.calls[call->id];
}

/* Records that a function of the core has ended a call. */
static void ended(const known_call *call, uint32_t outcome, uint64_t hash) {
  ledger_call *entry = entry_of(call);
  atomic_store(&entry->outcome, outcome);
  atomic_store(&entry->hash, hash);
  atomic_fetch_add(&entry->endings, 1);
}

static const uint32_t end_codes =
    CODE(TW_OK) | CODE(TW_GUEST_LOST) | CODE(TW_STALE) | CODE(TW_ARGUMENT);

static void answer(const known_call *call, uint32_t code, const hostile_message *message) {
  /* The answer may be a part of the arguments, which are freed then. */
  uint64_t hash = message->data && message->size <= MESSAGE_ROOM
                      ? ledger_hash(message->data, message->size)
                      : 0;
  tw_error error;
  uint32_t returned = core->answer(call->call, code, message->data, message->size, &error);
  expect("answer", returned, end_codes);
  if (returned == TW_OK) {
    ended(call, code, hash);
  } else if (returned == TW_GUEST_LOST) {
    ended(call, TW_GUEST_LOST, 0);
  }
}

static void fail(const known_call *call, uint32_t code) {
  static const char *const texts[] = {"", "it did not work", "caf\xe9 \xff\xfe",
                                      "line\nline\x1b[31m", "a text with \xf0\x9f\x8c"};
  const char *text = texts[below(5)];
  tw_error error;
  uint32_t returned = core->fail(call->call, code, one_in(8) ? NULL : text,
                                 one_in(8) ? UINT64_C(1) << 63 : strlen(text), &error);
  if (expect("fail", returned, CODE(TW_OK) | CODE(TW_STALE) | CODE(TW_ARGUMENT)) == TW_OK) {
    ended(call, code, 0);
  }
}

static void answer_resource(const known_call *call) {
  const uint64_t object = new_object();
  tw_error error;
  uint32_t type = one_in(8) ? below(TYPES) : call->method == 3 ? 1 : 0;
  uint32_t returned = core->answer_resource(call->call, type, object, &error);
  expect("answer_resource", returned, end_codes);
  if (returned == TW_OK) {
    atomic_store(&hostile_ledger.objects[object].given, 1);
    atomic_fetch_add(&entry_of(call)->resources, 1);
  } else if (returned == TW_GUEST_LOST) {
    ended(call, TW_GUEST_LOST, 0);
  }
}

#include "hostile_streams.h"

#include "hostile_actions.h"

TW_GUEST_SYMBOL uint32_t tw_guest(uint32_t abi, const tw_guest_core *given, uint64_t opening,
                                  tw_error *error) {
  static const tw_guest_functions functions = {(uint32_t)sizeof(tw_guest_functions),
                                               0,
                                               open_state,
                                               serve,
                                               cancel,
                                               drop,
                                               close_state,
                                               unload};
  uint32_t code = tw_guest_core_check(abi, given, error);
  if (code != TW_OK) {
    return code;
  }
  core = given;
  code = core->serve(opening, &hostile_guest_package, &functions, &hostile_ledger, error);
  if (code == TW_OK) {
    start_workers();
  }
  return code;
}
