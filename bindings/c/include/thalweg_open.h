/* Opening a Thalweg library and checking that it is compatible. C99 and C++17, header-only; needs
 * libc and dlopen. */
#ifndef THALWEG_OPEN_H
#define THALWEG_OPEN_H

#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thalweg.h"
#include "thalweg_error.h"

/* The package that the caller was built for. The header of a package has one: `X_expected()`. */
typedef struct tw_expected {
  const char *package;
  const char *version;
  uint64_t layout;
  const tw_method *methods; /* NULL: only a library with the same `layout` is compatible */
  uint32_t method_count;
  uint64_t imports_layout;
  const tw_method *imports; /* the host imports that the caller implements; NULL: unknown */
  uint32_t import_count;
} tw_expected;

/* What tw_first_difference returns if only the layout hashes of the packages differ. */
#define TW_LAYOUT_DIFFERS "its layout"

/* The first difference between a library and the caller's header: the name of a method that is
 * missing, has other types or another number, or "its host imports". NULL: the library has all of
 * the caller's methods under the same numbers, and perhaps more. */
static inline const char *tw_first_difference(const tw_table *table, const tw_expected *expected) {
  uint32_t i;
  if (table->layout == expected->layout) {
    return NULL;
  }
  for (i = 0; expected->methods && i < expected->method_count; i++) {
    const tw_method *ours = &expected->methods[i];
    const tw_method *theirs;
    if (!table->methods || i >= table->method_count) {
      return ours->name;
    }
    theirs = &table->methods[i];
    if (!theirs->name || strcmp(ours->name, theirs->name) != 0 || ours->params != theirs->params ||
        ours->ok != theirs->ok || ours->error != theirs->error ||
        ours->element != theirs->element) {
      return ours->name;
    }
  }
  if (table->imports_layout != expected->imports_layout) {
    return "its host imports";
  }
  return expected->methods && table->method_count > expected->method_count ? NULL
                                                                           : TW_LAYOUT_DIFFERS;
}

/* Whether two versions may be compatible: they are equal, or have the same major number, or for 0.x
 * the same minor number. "1.2.3" and "1.4.0" may be, also "0.1.2" and "0.1.3". */
static inline bool tw_version_is_compatible(const char *ours, const char *theirs) {
  unsigned long mine[3] = {0, 0, 0};
  unsigned long other[3] = {0, 0, 0};
  int ends[2] = {0, 0};
  if (strcmp(ours, theirs) == 0) {
    return true;
  }
  if (sscanf(ours, "%9lu.%9lu.%9lu%n", &mine[0], &mine[1], &mine[2], &ends[0]) != 3 ||
      sscanf(theirs, "%9lu.%9lu.%9lu%n", &other[0], &other[1], &other[2], &ends[1]) != 3 ||
      ours[ends[0]] || theirs[ends[1]]) {
    return false;
  }
  return mine[0] == other[0] && (mine[0] > 0 || (mine[1] == other[1] && mine[1] > 0));
}

/* Checks that a table is compatible with the caller's header. The library may be another version of
 * the package: see docs/evolution.md. tw_open calls this function; a program that links a library
 * instead of opening it calls it with the result of `tw_library`.
 * TW_VERSION: they are incompatible; the message names both sides and the first difference. */
static inline uint32_t tw_table_check(const tw_table *table, const tw_expected *expected,
                                      tw_error *error) {
  const char *package;
  const char *version;
  const char *core;
  const char *differs;
  tw_error why;
  if (!table) {
    return tw_fail(error, TW_VERSION, "built for %s@%s (abi %u), but the library offers no table",
                   expected->package, expected->version, TW_ABI);
  }
  /* These fields are at the same place in every table. */
  package = table->package ? table->package : "(no name)";
  version = table->version ? table->version : "(no version)";
  core = table->core ? table->core : "(unknown)";
  if (table->abi != TW_ABI) {
    return tw_fail(
        error, TW_VERSION,
        "built for abi %u (%s@%s), but the library has abi %" PRIu32 " (%s@%s, Thalweg %s)", TW_ABI,
        expected->package, expected->version, table->abi, package, version, core);
  }
  if (table->size < sizeof(tw_table)) {
    return tw_fail(error, TW_VERSION,
                   "built for a table of %u bytes (%s@%s), but the library's has %" PRIu32
                   " (%s@%s, Thalweg %s)",
                   (unsigned)sizeof(tw_table), expected->package, expected->version, table->size,
                   package, version, core);
  }
  if (strcmp(package, expected->package) != 0 ||
      !tw_version_is_compatible(expected->version, version)) {
    return tw_fail(error, TW_VERSION, "built for %s@%s, but the library is %s@%s (Thalweg %s)",
                   expected->package, expected->version, package, version, core);
  }
  differs = tw_first_difference(table, expected);
  memset(&why, 0, sizeof(why));
  if (differs && strcmp(differs, TW_LAYOUT_DIFFERS) != 0 && table->client_set_layouts &&
      (expected->imports || table->imports_layout == expected->imports_layout)) {
    /* Methods may have other numbers, and types may have grown. The library decides. */
    if (table->client_set_layouts(0, expected->methods, expected->method_count, expected->imports,
                                  expected->import_count, &why) == TW_OK) {
      return TW_OK;
    }
    differs = why.message[0] ? why.message : differs;
  }
  if (differs) {
    return tw_fail(error, TW_VERSION,
                   "built for %s@%s with layout %016" PRIx64
                   ", but the library's %s@%s has layout %016" PRIx64 "; first difference: %s",
                   expected->package, expected->version, expected->layout, package, version,
                   table->layout, differs);
  }
  return TW_OK;
}

/* The path of a libthalweg.so that belongs to the program, or NULL. Define it before you include this file. */
#ifndef TW_CORE_LIBRARY
#define TW_CORE_LIBRARY NULL
#endif

/* Loads libthalweg.so, which opens guests: the one of the environment variable THALWEG_LIBRARY, or one that
 * the process has loaded already, or the one of the program, or one that dlopen finds. NULL: see dlerror. */
static inline void *tw_core_load(void) {
  const char *path = getenv("THALWEG_LIBRARY");
  if (!path || !*path) {
    void *loaded = dlopen("libthalweg.so", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (loaded) {
      return loaded;
    }
    path = TW_CORE_LIBRARY;
  }
  return dlopen(path ? path : "libthalweg.so", RTLD_NOW | RTLD_LOCAL);
}

/* A function of libthalweg.so.
 * TW_ARGUMENT: it cannot be loaded. */
static inline uint32_t tw_core_function(const char *name, void **function, tw_error *error) {
  void *loaded = tw_core_load();
  const char *why;
  *function = loaded ? dlsym(loaded, name) : NULL;
  if (*function) {
    return TW_OK;
  }
  why = dlerror();
  return tw_fail(error, TW_ARGUMENT, "guests are opened by libthalweg.so, which cannot be used: %s",
                 why ? why : name);
}

/* Closes a guest as often as tw_open has opened it, and then all its clients. The table must not be used
 * any more.
 * TW_STALE: it is closed, or is no table of a guest: service libraries stay open. */
static inline uint32_t tw_close(const tw_table *table, tw_error *error) {
  uint32_t (*address_close)(const tw_table *closed, tw_error *why);
  void *function;
  uint32_t code = tw_core_function("tw_address_close", &function, error);
  if (code == TW_OK) {
    memcpy(&address_close, &function, sizeof(address_close));
    code = address_close(table, error);
  }
  return code;
}

/* Replaces the library of a guest by the one at `address`, or by the one that is now at the guest's own
 * address if it is NULL. Calls go on meanwhile. The state in the old library ends when nothing of it is in
 * use, and at `drain_deadline_ns` at the latest: what is left then is stale. On any error the guest stays
 * as it is. thalweg_guest.h has the rules and the errors, at tw_address_reload. */
static inline uint32_t tw_reload(const tw_table *table, const char *address,
                                 uint64_t drain_deadline_ns, tw_error *error) {
  uint32_t (*reload)(const tw_table *used, const char *guest, uint64_t deadline, tw_error *why);
  void *function;
  uint32_t code = tw_core_function("tw_address_reload", &function, error);
  if (code == TW_OK) {
    memcpy(&reload, &function, sizeof(reload));
    code = reload(table, address, drain_deadline_ns, error);
  }
  return code;
}

/* Opens the guest of an address for tw_open. */
static inline uint32_t tw_open_address(const char *address, const tw_expected *expected,
                                       const tw_table **table, tw_error *error) {
  uint32_t (*address_open)(uint32_t abi, const char *guest, const tw_table **found, tw_error *why);
  void *function;
  const tw_table *found = NULL;
  uint32_t code = tw_core_function("tw_address_open", &function, error);
  if (code != TW_OK) {
    return code;
  }
  memcpy(&address_open, &function, sizeof(address_open));
  code = address_open(TW_ABI, address, &found, error);
  if (code != TW_OK) {
    return code;
  }
  code = tw_table_check(found, expected, error);
  if (code != TW_OK) {
    tw_close(found, NULL);
    return code;
  }
  *table = found;
  return TW_OK;
}

/* Whether `path` is the address of a guest, a service in another language than Rust: "thread:PATH". */
static inline bool tw_is_address(const char *path) {
  return strncmp(path, "thread:", 7) == 0 || strncmp(path, "process:", 8) == 0 ||
         strncmp(path, "remote:", 7) == 0;
}

/* Opens the library at `path`, which dlopen searches for if it has no slash, and checks it. Or opens a
 * guest by its address, "thread:PATH", which tw_close closes.
 *
 * There is no function to close a library: it stays loaded, because its threads run its code.
 * `*table` is valid until the process ends. Opening it again returns the same table.
 * TW_ARGUMENT: it cannot be loaded, or is not a Thalweg library or guest. TW_VERSION: it is incompatible.
 * For a guest also TW_OVERLOADED: 64 are open; and its own code if it refuses to be opened. */
static inline uint32_t tw_open(const char *path, const tw_expected *expected,
                               const tw_table **table, tw_error *error) {
  tw_library_function library;
  const tw_table *found;
  void *loaded;
  void *symbol;
  uint32_t code;
  if (!path || !expected || !table) {
    return tw_fail(error, TW_ARGUMENT, "tw_open: a null pointer");
  }
  *table = NULL;
  if (tw_is_address(path)) {
    return tw_open_address(path, expected, table, error);
  }
  loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!loaded) {
    const char *why = dlerror();
    return tw_fail(error, TW_ARGUMENT, "cannot load the library for %s@%s: %s", expected->package,
                   expected->version, why ? why : path);
  }
  symbol = dlsym(loaded, "tw_library");
  if (!symbol) {
    code = tw_fail(error, TW_ARGUMENT,
                   "built for %s@%s, but this is no Thalweg library, it has no tw_library: %s",
                   expected->package, expected->version, path);
  } else {
    memcpy(&library, &symbol, sizeof(library)); /* ISO C has no cast from void * to a function */
    found = library(TW_ABI);
    code = tw_table_check(found, expected, error);
    if (code == TW_OK) {
      *table = found;
      return TW_OK;
    }
  }
  dlclose(loaded); /* nothing in a refused library was started */
  return code;
}

#endif
