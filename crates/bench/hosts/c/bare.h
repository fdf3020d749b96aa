/* Two hand-offs between two threads and nothing else: the baseline of a call. The lab's library
 * exports it, so that all languages use the same one: crates/bench/service/src/bare.rs. */
#ifndef LAB_BARE_H
#define LAB_BARE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bare {
  void *state;
  void (*call)(void *state); /* one request, one reply */
  void (*close)(void *state);
} bare;

static inline void bare_fail(const char *what) {
  perror(what);
  exit(1);
}

static inline void bare_find(void *library, const char *name, void *function) {
  void *found = dlsym(library, name);
  if (!found) {
    bare_fail(name);
  }
  memcpy(function, &found, sizeof(found));
}

/* Starts the thread that answers. */
static inline void bare_open(bare *self, const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *(*open)(void);
  if (!library) {
    bare_fail(path);
  }
  bare_find(library, "lab_bare_open", &open);
  bare_find(library, "lab_bare_call", &self->call);
  bare_find(library, "lab_bare_close", &self->close);
  self->state = open();
  if (!self->state) {
    bare_fail("bare");
  }
}

#endif
