/* The Unix socket peer as a library, for Python. */
#include "unix_peer.h"

/* A Unix socket whose other end a thread serves: unix_peer.h. */
int unix_peer_start(void) {
  return unix_peer_open();
}
