/* Calls with contents, each reply checked: one at a time, 64 in flight, and as events. Each thread
 * uses a client or a socket. */
#ifndef LAB_E2E_H
#define LAB_E2E_H

#include "lab.h"
#include "reading.h"
#include "sample.h"
#include "unix_peer.h"

/* Requests in flight. */
#define E2E_WINDOW 64u

/* What one thread does. */
typedef struct e2e_job {
  pthread_barrier_t *ready;
  void (*run)(struct e2e_job *);
  lab_client client;
  int socket;
  uint32_t size;
  uint64_t count;
  uint64_t answered;
  uint64_t true_ones;
} e2e_job;

/* Reply number `n`. */
static inline void e2e_reply(e2e_job *job, uint64_t n, bool reply) {
  if (reply != (n % 2 == 0)) {
    fprintf(stderr, "the reply to request %" PRIu64 " is wrong\n", n);
    exit(1);
  }
  job->answered++;
  job->true_ones += reply;
}

static uint8_t *e2e_data(uint32_t size) {
  uint8_t *data = calloc(1, (size_t)size + 64);
  if (!data) {
    abort();
  }
  return data;
}

static void e2e_sync(e2e_job *job) {
  uint8_t *data = e2e_data(job->size);
  uint64_t n;
  for (n = 0; n < job->count; n++) {
    tw_error error;
    if (job->size == 0) {
      const e2e_scalars of = e2e_scalars_of(n);
      lab_parity_result result;
      must(lab_parity(&job->client, of.a, of.b, of.x, TW_FOREVER, &result, &error), "parity",
           &error);
      e2e_reply(job, n, result.ok);
      tw_reply_release(&result.reply);
    } else {
      const tw_bytes bytes = {data, job->size};
      lab_payload_result result;
      e2e_fill(data, job->size, n);
      must(lab_payload(&job->client, bytes, TW_FOREVER, &result, &error), "payload", &error);
      e2e_reply(job, n, result.ok);
      tw_reply_release(&result.reply);
    }
  }
  free(data);
}

/* Reaps the available completions, at least one. */
static void e2e_reap(e2e_job *job) {
  const tw_table *table = job->client.tw.table;
  tw_completion reaped[E2E_WINDOW];
  tw_error error;
  uint32_t count = 0;
  uint32_t i;
  while (count == 0) {
    must(table->port_reap(job->client.tw.port, reaped, E2E_WINDOW, &count, &error), "reap", &error);
    if (count == 0) {
      must(table->port_wait(job->client.tw.port, TW_FOREVER, &error), "wait", &error);
    }
  }
  for (i = 0; i < count; i++) {
    const uint64_t n = reaped[i].token;
    if (job->size == 0) {
      lab_parity_result result;
      must(lab_parity_read(&job->client, &reaped[i], &result, &error), "parity", &error);
      e2e_reply(job, n, result.ok);
      tw_reply_release(&result.reply);
    } else {
      lab_payload_result result;
      must(lab_payload_read(&job->client, &reaped[i], &result, &error), "payload", &error);
      e2e_reply(job, n, result.ok);
      tw_reply_release(&result.reply);
    }
  }
}

static void e2e_async(e2e_job *job) {
  tw_request request;
  uint8_t *data = e2e_data(job->size);
  uint64_t n = 0;
  while (job->answered < job->count) {
    while (n < job->count && n - job->answered < E2E_WINDOW) {
      tw_handle call;
      tw_error error;
      if (job->size == 0) {
        const e2e_scalars of = e2e_scalars_of(n);
        must(tw_request_submit(lab_parity_prepare(&job->client, of.a, of.b, of.x, &request),
                               TW_FOREVER, n, &call, &error),
             "parity", &error);
      } else {
        const tw_bytes bytes = {data, job->size};
        e2e_fill(data, job->size, n);
        must(tw_request_submit(lab_payload_prepare(&job->client, bytes, &request), TW_FOREVER, n,
                               &call, &error),
             "payload", &error);
      }
      n++;
    }
    e2e_reap(job);
  }
  free(data);
}

static void e2e_scalar_events(e2e_job *job) {
  lab_parities_result result;
  lab_scalars_stream stream;
  lab_scalars_batch batch;
  tw_error error;
  uint32_t code;
  must(lab_parities(&job->client, job->count, TW_FOREVER, &result, &error), "parities", &error);
  stream = result.ok;
  tw_reply_release(&result.reply);
  while ((code = lab_scalars_stream_acquire(&stream, READING_BATCH, TW_FOREVER, &batch, &error)) ==
         TW_OK) {
    uint32_t i;
    for (i = 0; i < batch.tw.count; i++) {
      const lab_scalars *at = lab_scalars_batch_at(&batch, i);
      const e2e_scalars of = {at->a, at->b, at->x};
      e2e_reply(job, job->answered, e2e_parity(of));
    }
    must(lab_scalars_stream_release(&stream, batch.tw.count, &error), "release", &error);
  }
  must(code == TW_CLOSED ? TW_OK : code, "acquire", &error);
  must(lab_scalars_stream_close(&stream, &error), "close", &error);
}

static void e2e_events(e2e_job *job) {
  lab_payloads_result result;
  lab_bytes_payload_stream stream;
  lab_bytes_payload_batch batch;
  tw_error error;
  uint32_t code;
  if (job->size == 0) {
    e2e_scalar_events(job);
    return;
  }
  must(lab_payloads(&job->client, job->count, job->size, TW_FOREVER, &result, &error), "payloads",
       &error);
  stream = result.ok;
  tw_reply_release(&result.reply);
  while ((code = lab_bytes_payload_stream_acquire(&stream, READING_BATCH, TW_FOREVER, &batch,
                                                  &error)) == TW_OK) {
    uint32_t i;
    for (i = 0; i < batch.tw.count; i++) {
      const tw_bytes data =
          lab_bytes_payload_data(batch.tw.base, lab_bytes_payload_batch_at(&batch, i));
      e2e_reply(job, job->answered,
                data.size == job->size && e2e_payload(data.data, (uint32_t)data.size));
    }
    must(lab_bytes_payload_stream_release(&stream, batch.tw.count, &error), "release", &error);
  }
  must(code == TW_CLOSED ? TW_OK : code, "acquire", &error);
  must(lab_bytes_payload_stream_close(&stream, &error), "close", &error);
}

/* Sends requests over the socket, with up to WINDOW in flight. */
static void e2e_unix(e2e_job *job, uint64_t window) {
  uint8_t *frame = e2e_data(job->size);
  uint64_t n = 0;
  while (job->answered < job->count) {
    uint8_t replies[E2E_WINDOW];
    ssize_t count;
    ssize_t i;
    for (; n < job->count && n - job->answered < window; n++) {
      unix_peer_write(job->socket, frame, unix_peer_request(frame, job->size, n));
    }
    count = read(job->socket, replies, sizeof(replies));
    if (count <= 0) {
      unix_peer_fail("unix: read");
    }
    for (i = 0; i < count; i++) {
      e2e_reply(job, job->answered, replies[i] != 0);
    }
  }
  free(frame);
}

static void e2e_unix_sync(e2e_job *job) {
  e2e_unix(job, 1);
}

static void e2e_unix_async(e2e_job *job) {
  e2e_unix(job, E2E_WINDOW);
}

static void e2e_unix_events(e2e_job *job) {
  const uint32_t events = UNIX_PEER_EVENTS;
  const uint64_t asked[2] = {job->count, job->size};
  unix_peer_buffer buffer = unix_peer_buffer_open();
  uint8_t frame[sizeof(events) + sizeof(asked)];
  memcpy(frame, &events, sizeof(events));
  memcpy(frame + sizeof(events), asked, sizeof(asked));
  unix_peer_write(job->socket, frame, sizeof(frame));
  while (job->answered < job->count) {
    const uint8_t *data;
    uint32_t size;
    if (!unix_peer_read(job->socket, &buffer)) {
      unix_peer_fail("unix: ended");
    }
    while ((data = unix_peer_next(&buffer, &size))) {
      e2e_reply(job, job->answered, e2e_answer(data, size));
    }
  }
  free(buffer.bytes);
}

static const struct {
  const char *name;
  void (*run)(e2e_job *);
} e2e_ways[] = {
    {"sync", e2e_sync},           {"async", e2e_async},           {"events", e2e_events},
    {"unix-sync", e2e_unix_sync}, {"unix-async", e2e_unix_async}, {"unix-events", e2e_unix_events},
};

static void *e2e_thread(void *argument) {
  e2e_job *job = argument;
  pthread_barrier_wait(job->ready);
  job->run(job);
  return NULL;
}

/* Makes COUNT requests of SIZE bytes in total, divided among the threads. Returns 0 if the way is
 * unknown. */
static int e2e(const lab_library *library, const char *name, const uint64_t numbers[3],
               reading *read) {
  const uint64_t threads = numbers[2];
  e2e_job *jobs = calloc(threads, sizeof(*jobs));
  pthread_t *handles = calloc(threads, sizeof(*handles));
  void (*run)(e2e_job *) = NULL;
  pthread_barrier_t ready;
  uint64_t began;
  uint64_t i;
  for (i = 0; i < sizeof(e2e_ways) / sizeof(*e2e_ways); i++) {
    run = strcmp(name, e2e_ways[i].name) == 0 ? e2e_ways[i].run : run;
  }
  if (!run || !jobs || !handles || threads == 0) {
    return 0;
  }
  pthread_barrier_init(&ready, NULL, (unsigned)threads + 1);
  for (i = 0; i < threads; i++) {
    tw_error error;
    jobs[i].ready = &ready;
    jobs[i].run = run;
    jobs[i].size = (uint32_t)numbers[0];
    jobs[i].count = numbers[1] / threads;
    jobs[i].socket = unix_peer_open();
    must(lab_client_open(library, E2E_WINDOW, &jobs[i].client, &error), "client", &error);
    if (pthread_create(&handles[i], NULL, e2e_thread, &jobs[i]) != 0) {
      unix_peer_fail("pthread_create");
    }
  }
  pthread_barrier_wait(&ready);
  began = now_ns();
  for (i = 0; i < threads; i++) {
    pthread_join(handles[i], NULL);
  }
  read->ns = now_ns() - began;
  for (i = 0; i < threads; i++) {
    tw_error error;
    read->records += jobs[i].answered;
    read->checksum += jobs[i].true_ones;
    close(jobs[i].socket);
    must(lab_client_close(&jobs[i].client, &error), "close", &error);
  }
  pthread_barrier_destroy(&ready);
  free(handles);
  free(jobs);
  return 1;
}

#endif
