/* The echo service in C: a shared library that programs open as thread:PATH. README.md has the command.
 *
 * The functions of a guest return soon. Calls and ticks that are due later are in a list, and one thread
 * answers them. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "echo_guest.h"

#define HOUR_MS (60 * 60 * 1000)
#define MS UINT64_C(1000000)
/* A tick for a full stream is tried again after this time. */
#define RETRY_NS (10 * MS)

/* A timer of the WIT, one for each resource. */
typedef struct timer {
  char *name;
} timer;

/* A call to answer, or the next tick of a stream. */
typedef struct job {
  struct job *next;
  uint64_t wake_ns; /* when the thread looks at it */
  uint64_t due_ns;
  tw_incoming call;
  char *message; /* the response of `echo`; NULL for a stream */
  char *name;
  echo_tick_stream_writer ticks;
  uint64_t every_ns;
  uint32_t number;
  uint32_t times; /* 0: until the stream is closed */
} job;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_t worker;
static int is_stopping;
static job *jobs; /* the earliest one first */

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

static char *copied(tw_text text) {
  char *copy = (char *)malloc(text.size + 1);
  if (copy) {
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
  }
  return copy;
}

static void free_job(job *one) {
  free(one->message);
  free(one->name);
  free(one);
}

/* Adds a job to the list. The caller holds the lock. */
static void add_job(job *added) {
  job **place = &jobs;
  while (*place && (*place)->wake_ns <= added->wake_ns) {
    place = &(*place)->next;
  }
  added->next = *place;
  *place = added;
  pthread_cond_signal(&changed);
}

static void answer_echo(const job *one) {
  echo_response_in response;
  response.message = tw_text_of(one->message);
  response.name = tw_text_of(one->name);
  echo_timer_echo_answer(&one->call, &response, NULL);
}

/* Sends the next tick. Returns whether the job goes on. */
static int tick(job *one) {
  echo_tick record;
  uint32_t code;
  memset(&record, 0, sizeof(record));
  record.number = one->number + 1;
  record.late_ns = now_ns() - one->due_ns;
  /* The thread must not wait for one reader: the others have timers, too. */
  code = echo_tick_stream_writer_send(&one->ticks, &record, 1, 0, NULL);
  if (code == TW_TIMED_OUT) {
    one->wake_ns = now_ns() + RETRY_NS;
    return 1;
  }
  one->number++;
  if (code == TW_OK && (one->times == 0 || one->number < one->times)) {
    one->due_ns += one->every_ns;
    one->wake_ns = one->due_ns;
    return 1;
  }
  echo_tick_stream_writer_finish(&one->ticks, NULL);
  return 0;
}

static void *work(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  while (!is_stopping) {
    job *first = jobs;
    if (!first) {
      pthread_cond_wait(&changed, &lock);
    } else if (first->wake_ns > now_ns()) {
      struct timespec due;
      due.tv_sec = (time_t)(first->wake_ns / (1000 * MS));
      due.tv_nsec = (long)(first->wake_ns % (1000 * MS));
      pthread_cond_timedwait(&changed, &lock, &due);
    } else {
      int has_more = 0;
      jobs = first->next;
      pthread_mutex_unlock(&lock);
      if (first->message) {
        answer_echo(first);
      } else {
        has_more = tick(first);
      }
      pthread_mutex_lock(&lock);
      if (has_more) {
        add_job(first);
      } else {
        free_job(first);
      }
    }
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* Fails a call whose time cannot be used. */
static void refuse(const tw_incoming *call, uint8_t tag, uint32_t ms,
                   uint32_t (*fail)(const tw_incoming *, const echo_timer_error *, tw_error *)) {
  echo_timer_error error;
  memset(&error, 0, sizeof(error));
  error.tag = tag;
  if (tag == ECHO_TIMER_ERROR_TOO_LONG) {
    error.value.too_long = ms;
  }
  fail(call, &error, NULL);
}

static void no_memory(const tw_incoming *call) {
  tw_incoming_fail(call, TW_OVERLOADED, "there is no memory for the call", NULL);
}

static void timer_new(void *state, const tw_incoming *call, tw_text name) {
  timer *made;
  (void)state;
  if (name.size == 0) {
    refuse(call, ECHO_TIMER_ERROR_NO_NAME, 0, echo_timer_new_fail);
    return;
  }
  made = (timer *)calloc(1, sizeof(*made));
  if (!made || !(made->name = copied(name))) {
    free(made);
    no_memory(call);
  } else if (echo_timer_new_answer(call, made, NULL) != TW_OK) {
    free(made->name);
    free(made);
  }
}

static void timer_drop(void *state, void *object) {
  (void)state;
  free(((timer *)object)->name);
  free(object);
}

static void timer_echo(void *state, const tw_incoming *call, void *self,
                       const echo_request *request) {
  job *made;
  (void)state;
  if (request->delay_ms > HOUR_MS) {
    refuse(call, ECHO_TIMER_ERROR_TOO_LONG, request->delay_ms, echo_timer_echo_fail);
    return;
  }
  made = (job *)calloc(1, sizeof(*made));
  if (!made || !(made->message = copied(echo_request_message(call->base, request))) ||
      !(made->name = copied(tw_text_of(((timer *)self)->name)))) {
    if (made) {
      free_job(made);
    }
    no_memory(call);
    return;
  }
  made->call = *call;
  made->wake_ns = now_ns() + request->delay_ms * MS;
  pthread_mutex_lock(&lock);
  add_job(made);
  pthread_mutex_unlock(&lock);
}

static void timer_complex(void *state, const tw_incoming *call, void *self,
                          const echo_complex_request *request) {
  const echo_list_request messages = echo_complex_request_messages(call->base, request);
  const echo_list_string tags = echo_complex_request_tags(call->base, request);
  echo_complex_response_in response;
  tw_text note = tw_text_of(NULL);
  const bool has_note = echo_complex_request_note(call->base, request, &note);
  size_t size = 256 + note.size;
  size_t used;
  size_t i;
  char *summary;
  (void)state;
  (void)self;
  for (i = 0; i < tags.count; i++) {
    size += echo_list_string_at(call->base, tags, i).size + 1;
  }
  summary = (char *)malloc(size);
  if (!summary) {
    no_memory(call);
    return;
  }
  used = (size_t)snprintf(summary, size, "%zu messages, tags:", messages.count);
  for (i = 0; i < tags.count; i++) {
    const tw_text tag = echo_list_string_at(call->base, tags, i);
    used += (size_t)snprintf(summary + used, size - used, " %.*s", (int)tag.size, tag.data);
  }
  used += (size_t)snprintf(summary + used, size - used,
                           ", note: %.*s, retries: ", has_note ? (int)note.size : 4,
                           has_note ? note.data : "none");
  if (request->retries.some) {
    snprintf(summary + used, size - used, "%lld", (long long)request->retries.value);
  } else {
    snprintf(summary + used, size - used, "none");
  }
  response.summary = tw_text_of(summary);
  response.item_count = messages.count;
  response.has_note = has_note;
  echo_timer_complex_answer(call, &response, NULL);
  free(summary);
}

static void timer_schedule(void *state, const tw_incoming *call, void *self, uint32_t every_ms,
                           uint32_t times) {
  job *made;
  (void)state;
  (void)self;
  if (every_ms == 0 || every_ms > HOUR_MS) {
    const uint8_t tag = every_ms == 0 ? ECHO_TIMER_ERROR_TOO_SHORT : ECHO_TIMER_ERROR_TOO_LONG;
    refuse(call, tag, every_ms, echo_timer_schedule_fail);
    return;
  }
  made = (job *)calloc(1, sizeof(*made));
  if (!made) {
    no_memory(call);
    return;
  }
  made->every_ns = every_ms * MS;
  made->due_ns = now_ns() + made->every_ns;
  made->wake_ns = made->due_ns;
  made->times = times;
  if (echo_timer_schedule_answer(call, &made->ticks, NULL) != TW_OK) {
    free_job(made);
    return;
  }
  pthread_mutex_lock(&lock);
  add_job(made);
  pthread_mutex_unlock(&lock);
}

static void version(void *state, const tw_incoming *call) {
  (void)state;
  echo_version_answer(call, tw_text_of("0.1.0"), NULL);
}

/* The caller of an `echo` has gone: its answer is not needed any more. */
static void cancel(void *state, tw_handle call) {
  job **place;
  (void)state;
  pthread_mutex_lock(&lock);
  for (place = &jobs; *place; place = &(*place)->next) {
    if ((*place)->message && (*place)->call.call == call) {
      job *cancelled = *place;
      *place = cancelled->next;
      free_job(cancelled);
      break;
    }
  }
  pthread_mutex_unlock(&lock);
}

/* The library is not used any more. */
static void unload(void *context) {
  (void)context;
  pthread_mutex_lock(&lock);
  is_stopping = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
  pthread_join(worker, NULL);
  while (jobs) {
    job *left = jobs;
    jobs = left->next;
    free_job(left);
  }
}

/* The library was opened. */
static uint32_t load(void *context, tw_error *error) {
  pthread_condattr_t attributes;
  (void)context;
  is_stopping = 0;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &attributes);
  pthread_condattr_destroy(&attributes);
  if (pthread_create(&worker, NULL, work, NULL) != 0) {
    return tw_fail(error, TW_OVERLOADED, "the thread cannot be started");
  }
  return TW_OK;
}

static echo_guest guest = {
    .load = load,
    .cancel = cancel,
    .unload = unload,
    .timer_new = timer_new,
    .timer_echo = timer_echo,
    .timer_complex = timer_complex,
    .timer_schedule = timer_schedule,
    .timer_drop = timer_drop,
    .version = version,
};

ECHO_GUEST_EXPORT(&guest)
