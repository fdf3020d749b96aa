/* Actions of a hostile guest that happen later, on its threads. A part of hostile.c. */
#ifndef HOSTILE_LATER_H
#define HOSTILE_LATER_H

/* What to do at a time. */
typedef struct action {
  uint64_t at_ns;
  void (*what)(const known_call *call, known_writer writer);
  known_call call;
  known_writer writer;
} action;

#define ACTIONS 1024
#define WORKERS 3
static pthread_mutex_t actions_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t actions_done = PTHREAD_COND_INITIALIZER;
static action actions[ACTIONS];
static uint32_t action_count; /* those that wait */
static uint32_t running;      /* actions of the workers */
static bool settling;         /* do everything at once */
static bool unloading;
static pthread_t workers[WORKERS];

#define THREADS 256
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t threads[THREADS]; /* that do one thing */
static uint32_t thread_count;

static bool do_later(void (*what)(const known_call *call, known_writer writer),
                     const known_call *call, known_writer writer, uint32_t us) {
  bool has_room;
  pthread_mutex_lock(&actions_lock);
  has_room = action_count < ACTIONS;
  if (has_room) {
    action *next = &actions[action_count++];
    next->at_ns = core->now() + us * UINT64_C(1000);
    next->what = what;
    next->call = *call;
    next->writer = writer;
  }
  pthread_mutex_unlock(&actions_lock);
  return has_room;
}

/* The next action whose time has come. */
static bool next_action(action *next) {
  uint64_t now = core->now();
  for (uint32_t i = 0; i < action_count; i++) {
    if (settling || actions[i].at_ns <= now) {
      *next = actions[i];
      actions[i] = actions[--action_count];
      running++;
      return true;
    }
  }
  return false;
}

static void end_running(void) {
  pthread_mutex_lock(&actions_lock);
  running--;
  pthread_cond_broadcast(&actions_done);
  pthread_mutex_unlock(&actions_lock);
}

static void *work(void *unused) {
  const struct timespec pause = {0, 50000};
  for (;;) {
    action next;
    bool found;
    pthread_mutex_lock(&actions_lock);
    if (unloading && action_count == 0) {
      pthread_mutex_unlock(&actions_lock);
      return unused;
    }
    found = next_action(&next);
    pthread_mutex_unlock(&actions_lock);
    if (found) {
      next.what(&next.call, next.writer);
      end_running();
    } else {
      nanosleep(&pause, NULL);
    }
  }
}

static void start_workers(void) {
  unloading = false;
  for (int i = 0; i < WORKERS; i++) {
    if (pthread_create(&workers[i], NULL, work, NULL) != 0) {
      abort();
    }
  }
}

static void *work_once(void *given) {
  action *own = (action *)given;
  own->what(&own->call, own->writer);
  free(own);
  return NULL;
}

/* Does something on a thread that ends with it. */
static void do_on_thread(void (*what)(const known_call *call, known_writer writer),
                         const known_call *call, known_writer writer) {
  action *own = (action *)calloc(1, sizeof(*own));
  bool starts;
  if (!own) {
    abort();
  }
  own->what = what;
  own->call = *call;
  own->writer = writer;
  pthread_mutex_lock(&threads_lock);
  starts =
      thread_count < THREADS && pthread_create(&threads[thread_count], NULL, work_once, own) == 0;
  thread_count += starts;
  pthread_mutex_unlock(&threads_lock);
  if (!starts) {
    work_once(own);
  }
}

/* Waits for the threads. They may start others. */
static void join_threads(void) {
  pthread_t thread;
  bool found;
  do {
    pthread_mutex_lock(&threads_lock);
    found = thread_count > 0;
    if (found) {
      thread = threads[--thread_count];
    }
    pthread_mutex_unlock(&threads_lock);
    if (found) {
      pthread_join(thread, NULL);
    }
  } while (found);
}

extern __attribute__((visibility("default"))) void hostile_settle(void);
void hostile_settle(void) {
  bool has_more;
  do {
    join_threads();
    pthread_mutex_lock(&actions_lock);
    has_more = action_count > 0 || running > 0;
    settling = true;
    while (action_count > 0 || running > 0) {
      pthread_cond_wait(&actions_done, &actions_lock);
    }
    settling = false;
    pthread_mutex_unlock(&actions_lock);
  } while (has_more);
  pthread_mutex_lock(&known_lock);
  for (uint32_t i = 0; i < KNOWN; i++) {
    if (known_writers[i].writer != 0) {
      core->stream_finish(known_writers[i].writer, NULL);
    }
  }
  /* The numbers of calls begin again. */
  memset(known_writers, 0, sizeof(known_writers));
  memset(known_calls, 0, sizeof(known_calls));
  for (uint32_t i = 0; i < KNOWN; i++) {
    known_calls[i].id = UINT64_MAX;
  }
  pthread_mutex_unlock(&known_lock);
}

#endif
