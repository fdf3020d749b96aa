/*
 * Structs with tails, as a C library passes them: a copy into existing memory ("encode"), a copy
 * that owns its tails ("decode"), and freeing that copy.
 *
 * It is a peer of the lab, called from Rust. In the flat copy the tails follow the struct one
 * behind the other, and its pointers point at them: one memcpy per tail and nothing else. Nothing
 * is checked: the reader trusts the writer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct text {
  char *data;
  size_t size;
};

struct request {
  struct text message;
  int64_t delay_ms;
};

struct response {
  struct text echoed;
  struct text timer_name;
};

struct complex_request {
  struct request *messages;
  size_t message_count;
  struct text *tags;
  size_t tag_count;
  struct text note; /* data is NULL: none */
  int64_t retries;
  bool has_retries;
};

/* Copies a tail of size bytes to *end and moves *end behind it, up to the next multiple of 8. */
static void *put(char **end, const void *data, size_t size) {
  char *at = *end;
  memcpy(at, data, size);
  *end = at + ((size + 7) & ~(size_t)7);
  return at;
}

/* The same into newly allocated memory; NULL if there is none. */
static void *keep(const void *data, size_t size) {
  void *at = malloc(size == 0 ? 1 : size);
  if (at != NULL) {
    memcpy(at, data, size);
  }
  return at;
}

size_t thalweg_codec_put_request(const struct request *from, char *to) {
  char *end = to;
  struct request *copy = put(&end, from, sizeof *from);
  copy->message.data = put(&end, from->message.data, from->message.size);
  return (size_t)(end - to);
}

bool thalweg_codec_keep_request(const struct request *from, struct request *to) {
  *to = *from;
  to->message.data = keep(from->message.data, from->message.size);
  return to->message.data != NULL;
}

void thalweg_codec_free_request(struct request *it) {
  free(it->message.data);
}

size_t thalweg_codec_put_response(const struct response *from, char *to) {
  char *end = to;
  struct response *copy = put(&end, from, sizeof *from);
  copy->echoed.data = put(&end, from->echoed.data, from->echoed.size);
  copy->timer_name.data = put(&end, from->timer_name.data, from->timer_name.size);
  return (size_t)(end - to);
}

bool thalweg_codec_keep_response(const struct response *from, struct response *to) {
  *to = *from;
  to->echoed.data = keep(from->echoed.data, from->echoed.size);
  to->timer_name.data = keep(from->timer_name.data, from->timer_name.size);
  return to->echoed.data != NULL && to->timer_name.data != NULL;
}

void thalweg_codec_free_response(struct response *it) {
  free(it->echoed.data);
  free(it->timer_name.data);
}

size_t thalweg_codec_put_complex(const struct complex_request *from, char *to) {
  char *end = to;
  struct complex_request *copy = put(&end, from, sizeof *from);
  copy->messages = put(&end, from->messages, from->message_count * sizeof *from->messages);
  for (size_t i = 0; i < from->message_count; i++) {
    const struct text *message = &from->messages[i].message;
    copy->messages[i].message.data = put(&end, message->data, message->size);
  }
  copy->tags = put(&end, from->tags, from->tag_count * sizeof *from->tags);
  for (size_t i = 0; i < from->tag_count; i++) {
    copy->tags[i].data = put(&end, from->tags[i].data, from->tags[i].size);
  }
  if (from->note.data != NULL) {
    copy->note.data = put(&end, from->note.data, from->note.size);
  }
  return (size_t)(end - to);
}

bool thalweg_codec_keep_complex(const struct complex_request *from, struct complex_request *to) {
  *to = *from;
  bool kept = true;
  to->messages = keep(from->messages, from->message_count * sizeof *from->messages);
  to->tags = keep(from->tags, from->tag_count * sizeof *from->tags);
  if (to->messages == NULL || to->tags == NULL) {
    return false;
  }
  for (size_t i = 0; i < from->message_count; i++) {
    kept &= thalweg_codec_keep_request(&from->messages[i], &to->messages[i]);
  }
  for (size_t i = 0; i < from->tag_count; i++) {
    to->tags[i].data = keep(from->tags[i].data, from->tags[i].size);
    kept &= to->tags[i].data != NULL;
  }
  if (from->note.data != NULL) {
    to->note.data = keep(from->note.data, from->note.size);
    kept &= to->note.data != NULL;
  }
  return kept;
}

void thalweg_codec_free_complex(struct complex_request *it) {
  for (size_t i = 0; i < it->message_count; i++) {
    thalweg_codec_free_request(&it->messages[i]);
  }
  for (size_t i = 0; i < it->tag_count; i++) {
    free(it->tags[i].data);
  }
  free(it->messages);
  free(it->tags);
  free(it->note.data);
}

size_t thalweg_codec_put_bytes(const struct text *from, char *to) {
  char *end = to;
  struct text *copy = put(&end, from, sizeof *from);
  copy->data = put(&end, from->data, from->size);
  return (size_t)(end - to);
}

bool thalweg_codec_keep_bytes(const struct text *from, struct text *to) {
  to->size = from->size;
  to->data = keep(from->data, from->size);
  return to->data != NULL;
}

void thalweg_codec_free_bytes(struct text *it) {
  free(it->data);
}
