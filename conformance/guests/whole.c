/* Completes the conformance service of a guest: a guest of its own, which has all functions of the package
 * and leaves those of CONFORMANCE_GUEST, the path of a library, to that one. Calls of the others end as
 * TW_ARGUMENT.
 *
 * A guest declares the functions that guests can have, and its program would be refused, because its
 * generated code has all of them. With this library, the runners of all languages use a guest with the code
 * that they use the service in Rust with. The functions keep the numbers of the whole package, so that
 * nothing is converted between versions. */
#include "conformance.h"
#include "thalweg_serve.h"

#define METHODS (sizeof(conformance_methods) / sizeof(conformance_methods[0]))

static struct {
  void *library;
  const tw_guest_core *core;
  tw_guest_core shown; /* the same with other functions to serve, for the guest */
  tw_guest_functions functions;
  void *ctx;
  /* For each method of the package: the guest's number for it, or -1. */
  int numbers[METHODS];
} guest;

static uint32_t open_state(void *ctx, uint64_t *state, tw_error *error) {
  (void)ctx;
  *state = 0;
  return guest.functions.open ? guest.functions.open(guest.ctx, state, error) : (uint32_t)TW_OK;
}

/* Ends a call that the guest does not serve. */
static void refuse(const tw_guest_call *call) {
  char why[200];
  snprintf(why, sizeof(why), "a guest has no %s", conformance_methods[call->method].name);
  guest.core->fail(call->call, TW_ARGUMENT, why, strlen(why), NULL);
}

static void serve_call(void *ctx, uint64_t state, const tw_guest_call *call) {
  tw_guest_call seen = *call;
  const int number = guest.numbers[call->method];
  (void)ctx;
  if (number < 0) {
    refuse(call);
    return;
  }
  seen.method = (uint32_t)number;
  guest.functions.call(guest.ctx, state, &seen);
}

static void cancel(void *ctx, uint64_t state, tw_handle call) {
  (void)ctx;
  if (guest.functions.cancel) {
    guest.functions.cancel(guest.ctx, state, call);
  }
}

static void drop(void *ctx, uint64_t state, uint32_t type, uint64_t object) {
  (void)ctx;
  if (guest.functions.drop) {
    guest.functions.drop(guest.ctx, state, type, object);
  }
}

static void close_state(void *ctx, uint64_t state) {
  (void)ctx;
  if (guest.functions.close) {
    guest.functions.close(guest.ctx, state);
  }
}

static void unload(void *ctx) {
  (void)ctx;
  if (guest.functions.unload) {
    guest.functions.unload(guest.ctx);
  }
  dlclose(guest.library);
}

/* The whole package, and where it is. */
typedef struct whole_package {
  tw_guest_package package;
  tw_method methods[METHODS];
  tw_guest_policy policies[METHODS];
} whole_package;

/* Completes the package of the guest. */
static uint32_t complete(const tw_guest_package *package, whole_package *whole, tw_error *error) {
  uint32_t number;
  size_t known = 0;
  size_t i;
  memset(whole->policies, 0, sizeof(whole->policies));
  for (i = 0; i < METHODS; i++) {
    whole->methods[i] = conformance_methods[i];
    whole->methods[i].flags &= ~TW_METHOD_INLINE;
    guest.numbers[i] = -1;
    for (number = 0; number < package->method_count; number++) {
      if (strcmp(package->methods[number].name, whole->methods[i].name) == 0) {
        whole->methods[i] = package->methods[number];
        whole->policies[i] = package->policies[number];
        guest.numbers[i] = (int)number;
        known++;
      }
    }
  }
  if (known != package->method_count) {
    return tw_fail(error, TW_VERSION, "the guest has functions that the package does not have");
  }
  whole->package = *package;
  whole->package.methods = whole->methods;
  whole->package.policies = whole->policies;
  whole->package.method_count = METHODS;
  whole->package.imports = conformance_imports;
  whole->package.import_count = sizeof(conformance_imports) / sizeof(conformance_imports[0]);
  return TW_OK;
}

/* `serve` of the core that the guest sees. */
static uint32_t serve(uint64_t opening, const tw_guest_package *package,
                      const tw_guest_functions *functions, void *ctx, tw_error *error) {
  whole_package whole;
  tw_guest_functions all = *functions;
  uint32_t code = complete(package, &whole, error);
  if (code != TW_OK) {
    return code;
  }
  guest.functions = *functions;
  guest.ctx = ctx;
  all.open = open_state;
  all.call = serve_call;
  all.cancel = cancel;
  all.drop = drop;
  all.close = close_state;
  all.unload = unload;
  return guest.core->serve(opening, &whole.package, &all, NULL, error);
}

/* The same for a guest that takes its calls from a port. */
static uint32_t serve_port(uint64_t opening, const tw_guest_package *package,
                           const tw_guest_functions *functions, void *ctx, tw_handle *port,
                           tw_error *error) {
  whole_package whole;
  tw_guest_functions all = *functions;
  uint32_t code = complete(package, &whole, error);
  if (code != TW_OK) {
    return code;
  }
  guest.functions = *functions;
  guest.ctx = ctx;
  all.unload = unload;
  return guest.core->serve_port(opening, &whole.package, &all, NULL, port, error);
}

/* `port_take` of the core that the guest sees: without the calls that it does not serve. */
static uint32_t port_take(tw_handle port, tw_guest_event *events, uint32_t capacity,
                          uint64_t deadline_ns, uint32_t *count, tw_error *error) {
  uint32_t code;
  uint32_t taken;
  do {
    uint32_t i;
    code = guest.core->port_take(port, events, capacity, deadline_ns, count, error);
    taken = *count;
    *count = 0;
    for (i = 0; i < taken; i++) {
      tw_guest_event event = events[i];
      if (event.kind == TW_GUEST_CALL && guest.numbers[event.call.method] < 0) {
        refuse(&event.call);
        guest.core->event_release(&event, 1);
        continue;
      }
      if (event.kind == TW_GUEST_CALL) {
        event.call.method = (uint32_t)guest.numbers[event.call.method];
      }
      events[(*count)++] = event;
    }
  } while (taken > 0 && *count == 0);
  return code;
}

TW_GUEST_SYMBOL uint32_t tw_guest(uint32_t abi, const tw_guest_core *core, uint64_t opening,
                                  tw_error *error) {
  tw_guest_function open_guest;
  void *symbol;
  uint32_t code = tw_guest_core_check(abi, core, error);
  if (code != TW_OK) {
    return code;
  }
  guest.library = dlopen(CONFORMANCE_GUEST, RTLD_NOW | RTLD_LOCAL);
  symbol = guest.library ? dlsym(guest.library, "tw_guest") : NULL;
  if (!symbol) {
    return tw_fail(error, TW_ARGUMENT, "%s", dlerror());
  }
  memcpy(&open_guest, &symbol, sizeof(open_guest));
  guest.core = core;
  guest.shown = *core;
  guest.shown.serve = serve;
  guest.shown.serve_port = serve_port;
  guest.shown.port_take = port_take;
  code = open_guest(abi, &guest.shown, opening, error);
  if (code != TW_OK) {
    dlclose(guest.library);
  }
  return code;
}
