/* The client of a scenario, and a second one on the same port. Included only by the runner. */
#ifndef CLIENTS_H
#define CLIENTS_H

#include "oracle.h"
#include "report.h"
#include "streams.h"

static tw_handle other_instance;

/* Closes the instance, but not the port: completions of outstanding calls still arrive there. */
static inline void close_instance(void) {
  if (client.instance != 0) {
    client.table->client_close(client.instance, NULL);
  }
  client.instance = 0;
}

static inline void open_instance(void) {
  tw_error error;
  close_instance();
  if (client.table->client_open(&client.instance, &error) != TW_OK ||
      set_oracle(&client, &error) != TW_OK) {
    fail("no client", error.message);
  }
}

/* Exchanges the two clients. The second one is opened when it is first used. */
static inline void swap_instances(void) {
  const tw_handle before = client.instance;
  client.instance = other_instance;
  other_instance = before;
  if (client.instance == 0) {
    open_instance();
  }
}

static inline void close_both(void) {
  if (other_instance != 0) {
    client.table->client_close(other_instance, NULL);
    other_instance = 0;
  }
  tw_client_close(&client, NULL);
}

#endif
