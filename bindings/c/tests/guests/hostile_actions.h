/* What a hostile guest does with its calls, at once and later. A part of hostile.c. */
#ifndef HOSTILE_ACTIONS_H
#define HOSTILE_ACTIONS_H

#include "hostile_later.h"

enum { KIND_VALUE, KIND_RESOURCE, KIND_STREAM };

static int kind_of(uint32_t method) {
  if (method == 0 || method == 3) {
    return KIND_RESOURCE;
  }
  return method >= 11 ? KIND_STREAM : KIND_VALUE;
}

/* ---- What it does ------------------------------------------------------------------------------ */

static void write_later(const known_call *call, known_writer writer) {
  (void)call;
  write_stream(writer);
}

/* Ends a call as it should be. */
static void end_well(const known_call *call, known_writer unused) {
  hostile_message message;
  const uint32_t method = call->method;
  tw_handle handles[2] = {0, 0};
  (void)unused;
  if (hostile_methods[method].error != 0 && one_in(5)) {
    make_error(method, &message);
    answer(call, TW_ERROR, &message);
    return;
  }
  if (kind_of(method) == KIND_RESOURCE) {
    answer_resource(call);
    return;
  }
  if (kind_of(method) == KIND_STREAM) {
    known_writer writer = answer_stream(call);
    if (writer.writer != 0) {
      if (one_in(4)) {
        write_stream(writer);
      } else if (one_in(6)) {
        do_on_thread(write_later, call, writer);
      } else if (!do_later(write_later, call, writer, below(2000))) {
        write_stream(writer);
      }
    }
    return;
  }
  for (uint32_t i = 0; i < call->handle_count; i++) {
    use_resource(call, call->handles[i]);
  }
  if (method == 9) {
    handles[0] = new_resource(call->call);
    handles[1] = one_in(8) ? any_resource() : new_resource(call->call);
  }
  make_result(method, handles, &message);
  answer(call, TW_OK, &message);
}

static void end_badly(const known_call *call, known_writer unused) {
  static const uint32_t codes[] = {TW_OK, TW_OK, TW_OK, TW_ERROR, TW_ERROR, TW_STALE, 15, 99};
  hostile_message message;
  tw_handle handles[2];
  (void)unused;
  handles[0] = one_in(2) ? any_handle() : any_resource();
  handles[1] = one_in(2) ? any_handle() : new_resource(call->call);
  if (hostile_methods[call->method].error != 0 && one_in(3)) {
    make_error(call->method, &message);
  } else {
    make_result(one_in(8) ? 4 + below(7) : call->method, handles, &message);
  }
  mutate(&message, any_handle);
  answer(call, codes[below(8)], &message);
}

static void end_with_failure(const known_call *call, known_writer unused) {
  uint32_t code = below(18);
  (void)unused;
  if (code == TW_GUEST_PANICKED && !one_in(4)) {
    code = TW_GUEST_LOST;
  }
  fail(call, code > 15 ? (uint32_t)any() : code);
}

/* Ends a call with the function of another kind of call. */
static void end_otherwise(const known_call *call, known_writer unused) {
  (void)unused;
  if (one_in(2)) {
    answer_resource(call);
  } else {
    known_writer writer = answer_stream(call);
    if (writer.writer != 0) {
      write_stream(writer);
    }
  }
}

static void end_somehow(const known_call *call, known_writer unused) {
  void (*const ends[])(const known_call *, known_writer) = {end_well, end_badly, end_with_failure,
                                                            end_otherwise};
  ends[below(4)](call, unused);
}

/* Uses a function of the core with handles that have nothing to do with each other. */
static void make_noise(void) {
  known_call call = any_call();
  known_writer writer = any_writer();
  tw_error error;
  if (call.call == 0 || one_in(2)) {
    call.call = no_call();
    call.id = UINT64_MAX;
  }
  if (one_in(2)) {
    writer.writer = one_in(4) ? call.call : no_call();
    writer.id = UINT64_MAX;
  }
  switch (below(9)) {
  case 0:
  case 1:
    end_somehow(&call, writer);
    break;
  case 2:
    expect("call_check", core->call_check(call.call, &error), 0x7ffd);
    break;
  case 3:
    new_resource(call.call);
    break;
  case 4:
  case 5:
    use_resource(&call, one_in(2) ? any_resource() : any_handle());
    break;
  case 6:
    write_records(writer);
    break;
  case 7:
    finish_writer(writer);
    break;
  default:
    expect("null", core->resource_new(call.call, 0, 0, NULL, &error), CODE(TW_ARGUMENT));
    expect("null", core->answer_stream(call.call, NULL, &error), CODE(TW_ARGUMENT));
    break;
  }
}

/* ---- The functions of the guest ---------------------------------------------------------------- */

/* States are numbers from 1 on, which are not used again soon. */
#define STATES 1024
static struct {
  atomic_int open;
  atomic_int inside; /* a function of the guest runs for it */
} states[STATES];
static atomic_uint state_count;

static void enter(uint64_t state) {
  if (state == 0 || state >= STATES || atomic_load(&states[state].open) != 1) {
    violation("a function was called for a state that is not open", state);
  } else if (atomic_exchange(&states[state].inside, 1) != 0) {
    violation("two functions of a state run", state);
  }
  if (one_in(8)) {
    make_noise();
  }
}

static void leave(uint64_t state) {
  atomic_store(&states[state % STATES].inside, 0);
}

static uint32_t open_state(void *ctx, uint64_t *state, tw_error *error) {
  (void)ctx;
  if (one_in(16)) {
    memset(error->message, 0xff, sizeof(error->message)); /* no UTF-8, and no end */
    return one_in(2) ? TW_OVERLOADED : 1 + (uint32_t)(any() % 1000);
  }
  do {
    *state = 1 + atomic_fetch_add(&state_count, 1) % (STATES - 1);
  } while (atomic_exchange(&states[*state].open, 1) != 0);
  atomic_fetch_add(&hostile_ledger.states, 1);
  enter(*state);
  leave(*state);
  return TW_OK;
}

static void close_state(void *ctx, uint64_t state) {
  (void)ctx;
  enter(state);
  leave(state);
  atomic_store(&states[state % STATES].open, 0);
  atomic_fetch_sub(&hostile_ledger.states, 1);
}

static void cancel(void *ctx, uint64_t state, tw_handle call) {
  (void)ctx;
  enter(state);
  if (one_in(4)) {
    known_call late = any_call();
    if (late.call == call) {
      end_somehow(&late, any_writer());
    }
  }
  leave(state);
}

static void drop(void *ctx, uint64_t state, uint32_t type, uint64_t object) {
  (void)ctx;
  enter(state);
  if (type >= TYPES) {
    violation("drop has another type", type);
  }
  end_object("drop has no such object", object);
  leave(state);
}

static void serve(void *ctx, uint64_t state, const tw_guest_call *incoming) {
  const known_writer none = {0, UINT64_MAX, 0};
  known_call call;
  tw_message header;
  const uint8_t *root;
  (void)ctx;
  enter(state);
  memset(&call, 0, sizeof(call));
  memcpy(&header, incoming->args, sizeof(header));
  root = incoming->args + header.root;
  call.call = incoming->call;
  call.method = incoming->method;
  memcpy(&call.id, root + (call.method == 1 || call.method == 2 ? 8 : 0), sizeof(call.id));
  call.handle_count = header.handles < 2 ? header.handles : 2;
  memcpy(call.handles, incoming->args + sizeof(header), 8 * (size_t)call.handle_count);
  remember_call(&call);
  if (one_in(4)) {
    memset(incoming->args, (int)below(256), incoming->args_size);
  }
  switch (below(20)) {
  case 0: /* twice */
    end_well(&call, none);
    end_well(&call, none);
    break;
  case 1:
  case 2:
    end_badly(&call, none);
    end_well(&call, none);
    break;
  case 3:
    end_with_failure(&call, none);
    break;
  case 4:
    end_otherwise(&call, none);
    break;
  case 5: /* never, or too late */
    if (one_in(2)) {
      do_later(end_somehow, &call, none, 5000 + below(10000));
    }
    break;
  case 6: /* a thread that ends while it serves */
    do_on_thread(one_in(2) ? end_somehow : end_well, &call, none);
    break;
  case 7:
  case 8: /* on two threads */
    do_later(end_somehow, &call, none, below(500));
    do_later(end_well, &call, none, below(500));
    break;
  case 9:
  case 10:
  case 11:
  case 12:
    do_later(end_well, &call, none, below(1000));
    break;
  default:
    end_well(&call, none);
    break;
  }
  leave(state);
}

static void unload(void *ctx) {
  (void)ctx;
  pthread_mutex_lock(&actions_lock);
  unloading = true;
  pthread_mutex_unlock(&actions_lock);
  for (int i = 0; i < WORKERS; i++) {
    pthread_join(workers[i], NULL);
  }
  join_threads();
}

#endif
