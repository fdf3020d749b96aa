/* The bare thread as a library, so that Python is held against the same one as C. */
#include "bare.h"
#include "unix_peer.h"

static bare the_one;

/* Starts the thread; what to write to ask it, and what to read for its answer. */
void bare_start(int *request, int *reply) {
  bare_open(&the_one);
  *request = the_one.request;
  *reply = the_one.reply;
}

/* Ends it. Both descriptors are closed. */
void bare_stop(void) {
  bare_close(&the_one);
}

/* A Unix socket whose other end a thread serves: unix_peer.h. */
int unix_peer_start(void) {
  return unix_peer_open();
}
