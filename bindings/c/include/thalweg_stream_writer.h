/* Streams and futures that are parameters: the caller writes, the service reads. C99 and C++, header-only.
 *
 * Generated code puts types on these. A writer may be used from any thread, also before its call was
 * submitted: 256 elements, or 1 MiB of them, wait to be read.
 */
#ifndef THALWEG_STREAM_WRITER_H
#define THALWEG_STREAM_WRITER_H

#include "thalweg_client.h"

/* A stream, or a future, that the caller writes and the service reads: see stream_new in thalweg.h. */
typedef struct tw_stream_writer {
  const tw_table *table;
  tw_handle writer;
  tw_handle reader; /* 0 once a call was submitted with it: the service's */
} tw_stream_writer;

/* A new one, for parameter number `parameter` of a method. */
static inline uint32_t tw_stream_writer_open(const tw_client *client, uint32_t method,
                                        uint32_t parameter, tw_stream_writer *stream, tw_error *error) {
  stream->table = client->table;
  stream->writer = 0;
  stream->reader = 0;
  return client->table->stream_new(client->instance, method, parameter, &stream->writer,
                                   &stream->reader, error);
}

/* Ends the element's message, sends it, and frees it. */
static inline uint32_t tw_stream_writer_send(const tw_stream_writer *stream, tw_writer *writer,
                                        uint64_t deadline_ns, tw_error *error) {
  const tw_table *table = stream->table;
  uint32_t code = tw_writer_end(writer);
  if (code == TW_OVERLOADED) {
    tw_fail(error, code, "no memory for the element");
  } else if (code != TW_OK) {
    tw_fail(error, code, "a null pointer, or an element of more than 2 GiB");
  } else {
    code = table->stream_send(stream->writer, writer->data, writer->size, deadline_ns, error);
  }
  tw_writer_free(writer);
  return code;
}

/* Nothing more comes. */
static inline uint32_t tw_stream_writer_finish(const tw_stream_writer *stream, tw_error *error) {
  return stream->table->stream_finish(stream->writer, error);
}

/* One TW_COMPLETION_STREAM_READY with `token` comes to the client's port as soon as there is room for what was refused, or the stream
 * has ended; where that is so now, `*ready` is 1 and none comes. */
static inline uint32_t tw_stream_writer_arm(const tw_stream_writer *stream, const tw_client *client,
                                       uint64_t token, uint32_t *ready, tw_error *error) {
  return stream->table->stream_arm(stream->writer, client->port, token, ready, error);
}

/* Legal anywhere. Closes the writer, and the reader where no call took it. Harmless twice. */
static inline uint32_t tw_stream_writer_close(tw_stream_writer *stream, tw_error *error) {
  uint32_t code = TW_OK;
  if (stream->reader != 0) {
    stream->table->stream_close(stream->reader, NULL);
  }
  if (stream->writer != 0) {
    code = stream->table->stream_close(stream->writer, error);
  }
  stream->reader = 0;
  stream->writer = 0;
  return code;
}

#endif
