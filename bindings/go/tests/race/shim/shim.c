/* A library that is opened as a guest, and serves the calls with the guest in the program itself: Go's race detector
 * works only in programs. */
#include "thalweg_guest.h"

static tw_guest_function served;

__attribute__((visibility("default"))) void serve_with(tw_guest_function function) {
  served = function;
}

__attribute__((visibility("default"))) uint32_t tw_guest(uint32_t abi, const tw_guest_core *core,
                                                         uint64_t opening, tw_error *error) {
  return served(abi, core, opening, error);
}
