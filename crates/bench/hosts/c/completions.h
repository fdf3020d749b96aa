/* Many calls: submitted and reaped in turns, reaped once all completions are ready, and a lower
 * bound of a drain. */
#ifndef LAB_COMPLETIONS_H
#define LAB_COMPLETIONS_H

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lab.h"
#include "reading.h"
#include "sample.h"

/* Calls that one submission carries, and completions that one reap takes at most. */
#define COMPLETIONS_AT_ONCE 64u
#define COMPLETIONS_REAPED 256u
/* Maximum number of calls in flight; a drain also waits for this many completions. */
#define COMPLETIONS_WINDOW UINT64_C(2048)

/* A port in addition to the client's. */
static tw_handle completions_port(const lab_client *client) {
  tw_handle port;
  tw_error error;
  must(client->tw.table->port_open((uint32_t)COMPLETIONS_WINDOW, &port, &error), "port", &error);
  return port;
}

/* Submits `count` calls that do nothing, numbered from `first`. */
static void completions_submit(const lab_client *client, tw_handle port, uint64_t first,
                               uint64_t count) {
  tw_submission batch[COMPLETIONS_AT_ONCE];
  tw_request request;
  tw_error error;
  uint32_t i;
  must(tw_request_end(lab_nop_prepare(client, &request), &error), "prepare", &error);
  for (i = 0; i < COMPLETIONS_AT_ONCE; i++) {
    batch[i] = request.submission;
  }
  while (count > 0) {
    const uint32_t now = count < COMPLETIONS_AT_ONCE ? (uint32_t)count : COMPLETIONS_AT_ONCE;
    uint32_t accepted;
    for (i = 0; i < now; i++) {
      batch[i].token = first + i;
    }
    must(client->tw.table->submit(port, batch, now, &accepted, &error), "submit", &error);
    first += now;
    count -= now;
  }
  tw_request_free(&request);
}

/* Reaps the available completions, at most COMPLETIONS_REAPED. Stores their tokens and returns
 * their number. */
static uint32_t completions_taken(const lab_client *client, tw_handle port,
                                  uint64_t tokens[COMPLETIONS_REAPED]) {
  const tw_table *table = client->tw.table;
  tw_completion reaped[COMPLETIONS_REAPED];
  tw_error error;
  uint32_t count;
  uint32_t i;
  must(table->port_reap(port, reaped, COMPLETIONS_REAPED, &count, &error), "reap", &error);
  for (i = 0; i < count; i++) {
    if (reaped[i].code != TW_OK) {
      fprintf(stderr, "a call ended with %s\n", tw_code_name(reaped[i].code));
      exit(1);
    }
    tokens[i] = reaped[i].token;
    table->release(&reaped[i]);
  }
  return count;
}

/* Reaps the available completions once, and waits if there are none. */
static void completions_reap(const lab_client *client, tw_handle port, reading *read) {
  uint64_t tokens[COMPLETIONS_REAPED];
  const uint32_t count = completions_taken(client, port, tokens);
  tw_error error;
  uint32_t i;
  for (i = 0; i < count; i++) {
    read->checksum += tokens[i];
  }
  read->records += count;
  if (count == 0) {
    must(client->tw.table->port_wait(port, TW_FOREVER, &error), "wait", &error);
  }
}

static void completions_close(const lab_client *client, tw_handle port) {
  tw_error error;
  must(client->tw.table->port_close(port, &error), "close", &error);
}

/* COUNT calls from the first submission to the last completion, at most WINDOW of them in flight. Each
 * submission carries AT_ONCE calls, and the last one those that are left. */
static reading complete(const lab_client *client, uint64_t count, uint64_t window,
                        uint64_t at_once) {
  const tw_handle port = completions_port(client);
  reading read = {0, 0, 0};
  uint64_t submitted = 0;
  uint64_t began;
  if (window > COMPLETIONS_WINDOW || at_once > COMPLETIONS_AT_ONCE || at_once > window ||
      !at_once) {
    fprintf(stderr, "complete: %" PRIu64 " in flight, %" PRIu64 " at once\n", window, at_once);
    exit(1);
  }
  began = now_ns();
  while (read.records < count) {
    uint64_t room = window - (submitted - read.records);
    if (room > count - submitted) {
      room = count - submitted;
    }
    if (room >= at_once || (room > 0 && submitted + room == count)) {
      const uint64_t now = room < at_once ? room : at_once;
      completions_submit(client, port, submitted, now);
      submitted += now;
    } else {
      completions_reap(client, port, &read);
    }
  }
  read.ns = now_ns() - began;
  completions_close(client, port);
  return read;
}

/* Reaps COUNT completions in windows. Each window is ready before it is reaped, and only the
 * reaping is timed. */
static reading drain(const lab_client *client, uint64_t count) {
  const tw_handle port = completions_port(client);
  reading read = {0, 0, 0};
  while (read.records < count) {
    const uint64_t left = count - read.records;
    const uint64_t window = left < COMPLETIONS_WINDOW ? left : COMPLETIONS_WINDOW;
    const uint64_t until = read.records + window;
    lab_nop_result result;
    tw_error error;
    uint64_t began;
    completions_submit(client, port, read.records, window);
    /* The calls of one client are answered in order: when this one is, all are. */
    must(lab_nop(client, TW_FOREVER, &result, &error), "nop", &error);
    began = now_ns();
    while (read.records < until) {
      completions_reap(client, port, &read);
    }
    read.ns += now_ns() - began;
  }
  completions_close(client, port);
  return read;
}

/* Makes COUNT calls at a rate of PER_S a second. Measures for each call, by number and in ns, how
 * long after its due time its completion is reaped. Between submissions the host waits for
 * completions until the next call is due. A call that cannot be submitted in time counts as late.
 * */
static uint64_t *paced(const lab_client *client, uint64_t count, uint64_t per_s) {
  const tw_table *table = client->tw.table;
  const tw_handle port = completions_port(client);
  uint64_t *latencies = calloc(count + 1, sizeof(*latencies));
  uint64_t submitted = 0;
  uint64_t ended = 0;
  uint64_t began;
  if (!latencies) {
    bare_fail("paced: calloc");
  }
  began = table->now();
  while (ended < count) {
    uint64_t due = (table->now() - began) * per_s / UINT64_C(1000000000) + 1;
    uint64_t tokens[COMPLETIONS_REAPED];
    uint64_t now;
    uint32_t taken;
    uint32_t i;
    due = due < count ? due : count;
    due = due < ended + COMPLETIONS_WINDOW ? due : ended + COMPLETIONS_WINDOW;
    now = due > submitted ? due - submitted : 0;
    now = now < COMPLETIONS_AT_ONCE ? now : COMPLETIONS_AT_ONCE;
    if (now > 0) {
      completions_submit(client, port, submitted, now);
      submitted += now;
    }
    taken = completions_taken(client, port, tokens);
    if (taken == 0 && now == 0 && submitted > ended) {
      const uint64_t next = began + submitted * UINT64_C(1000000000) / per_s;
      tw_error error;
      const uint32_t code = table->port_wait(port, submitted < count ? next : TW_FOREVER, &error);
      if (code != TW_TIMED_OUT) {
        must(code, "wait", &error);
      }
    }
    now = table->now();
    for (i = 0; i < taken; i++) {
      latencies[tokens[i]] = now - (began + tokens[i] * UINT64_C(1000000000) / per_s);
    }
    ended += taken;
  }
  completions_close(client, port);
  return latencies;
}

/* ---- The lower bound ------------------------------------------------------------------------- */

/* What a completion says at least. */
typedef struct raw_completion {
  uint64_t token;
  uint64_t call;
  uint64_t code;
  const void *data;
} raw_completion;

/* Two arrays that are swapped under a lock, and an eventfd. */
typedef struct raw_queue {
  pthread_mutex_t lock;
  int event;
  raw_completion *filled;
  uint64_t count;
  uint64_t first;
  uint64_t wanted;
} raw_queue;

static void *raw_fill(void *argument) {
  raw_queue *queue = argument;
  const uint64_t one = 1;
  uint64_t i;
  for (i = 0; i < queue->wanted; i++) {
    const raw_completion completion = {queue->first + i, queue->first + i, TW_OK, NULL};
    pthread_mutex_lock(&queue->lock);
    queue->filled[queue->count++] = completion;
    pthread_mutex_unlock(&queue->lock);
  }
  if (write(queue->event, &one, sizeof(one)) != sizeof(one)) {
    bare_fail("raw: write");
  }
  return NULL;
}

/* COUNT completions that another thread has put into an array, in windows as above: reads the
 * eventfd, copies the array under its lock, COMPLETIONS_REAPED completions at a time, and reads
 * each. */
static reading raw(uint64_t count) {
  raw_queue queue = {PTHREAD_MUTEX_INITIALIZER, eventfd(0, EFD_CLOEXEC), NULL, 0, 0, 0};
  reading read = {0, 0, 0};
  queue.filled = calloc(COMPLETIONS_WINDOW, sizeof(*queue.filled));
  if (queue.event < 0 || !queue.filled) {
    bare_fail("raw");
  }
  while (read.records < count) {
    const uint64_t left = count - read.records;
    pthread_t thread;
    uint64_t value;
    uint64_t taken = 0;
    uint64_t began;
    queue.first = read.records;
    queue.wanted = left < COMPLETIONS_WINDOW ? left : COMPLETIONS_WINDOW;
    queue.count = 0;
    if (pthread_create(&thread, NULL, raw_fill, &queue) != 0) {
      bare_fail("raw: pthread_create");
    }
    pthread_join(thread, NULL);
    began = now_ns();
    if (eventfd_read(queue.event, &value) != 0) {
      bare_fail("raw: read");
    }
    while (taken < queue.wanted) {
      raw_completion out[COMPLETIONS_REAPED];
      uint64_t now;
      uint64_t i;
      pthread_mutex_lock(&queue.lock);
      now = queue.count - taken < COMPLETIONS_REAPED ? queue.count - taken : COMPLETIONS_REAPED;
      memcpy(out, queue.filled + taken, now * sizeof(*out));
      pthread_mutex_unlock(&queue.lock);
      for (i = 0; i < now; i++) {
        read.checksum += out[i].code == TW_OK ? out[i].token : 0;
      }
      taken += now;
    }
    read.ns += now_ns() - began;
    read.records += taken;
  }
  close(queue.event);
  free(queue.filled);
  return read;
}

#endif
