/* The symbol of a guest. */
#include <unistd.h>

#include "_cgo_export.h"
#include "thalweg_serve.h"

static pid_t loaded_by;

__attribute__((constructor)) static void remember_process(void) {
  loaded_by = getpid();
}

void thalweg_refuse(tw_error *error, uint32_t code, const char *text) {
  tw_fail(error, code, "%s", text);
}

/* A child of fork() has the memory of the Go runtime, but none of its threads. */
__attribute__((visibility("default"))) uint32_t tw_guest(uint32_t abi, const tw_guest_core *core,
                                                         uint64_t opening, tw_error *error) {
  if (getpid() != loaded_by) {
    return tw_fail(error, TW_FORKED,
                   "a guest in Go that was loaded before fork() cannot be opened in the child");
  }
  const uint32_t code = tw_guest_core_check(abi, core, error);
  if (code != TW_OK) {
    return code;
  }
  return thalwegGuestOpen((tw_guest_core *)core, opening, error);
}
