/* Waking an event loop through a descriptor of the caller: port_wake. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

/* A descriptor to pass to port_wake, and the one that the event loop watches; the same for an
 * eventfd. */
typedef struct pair {
  int woken;
  int watched;
} pair;

static pair make_sockets(int type) {
  int ends[2] = {-1, -1};
  pair made;
  CHECK(socketpair(AF_UNIX, type, 0, ends) == 0);
  made.woken = ends[0];
  made.watched = ends[1];
  return made;
}

static pair make_tcp(void) {
  struct sockaddr_in address;
  socklen_t size = sizeof(address);
  pair made;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  memset(&address, 0, sizeof(address));
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 1) == 0);
  CHECK(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
  made.woken = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(connect(made.woken, (struct sockaddr *)&address, size) == 0);
  made.watched = accept(listener, NULL, NULL);
  close(listener);
  return made;
}

static pair make_pipe(void) {
  int ends[2] = {-1, -1};
  pair made;
  CHECK(pipe(ends) == 0);
  made.woken = ends[1];
  made.watched = ends[0];
  return made;
}

static pair make_eventfd(void) {
  pair made;
  made.woken = eventfd(0, 0);
  made.watched = made.woken;
  return made;
}

#define KINDS 6

/* All of them block. */
static pair make(int kind) {
  switch (kind) {
  case 0:
    return make_sockets(SOCK_STREAM);
  case 1:
    return make_sockets(SOCK_DGRAM);
  case 2:
    return make_sockets(SOCK_SEQPACKET);
  case 3:
    return make_tcp();
  case 4:
    return make_pipe();
  default:
    return make_eventfd();
  }
}

static void close_pair(pair ends) {
  close(ends.woken);
  if (ends.watched != ends.woken) {
    close(ends.watched);
  }
}

static void set_nonblocking(int fd, bool nonblocking) {
  int flags = fcntl(fd, F_GETFL);
  CHECK(fcntl(fd, F_SETFL, nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) == 0);
}

static bool readable_within(int fd, int milliseconds) {
  struct pollfd watched;
  watched.fd = fd;
  watched.events = POLLIN;
  watched.revents = 0;
  return poll(&watched, 1, milliseconds) == 1 && (watched.revents & POLLIN) != 0;
}

/* Reads one wake-up: a byte, or the number of an eventfd. */
static void read_wake_up(pair ends) {
  uint64_t number = 0;
  ssize_t size = read(ends.watched, &number, sizeof(number));
  if (ends.watched == ends.woken) {
    CHECK(size == 8 && number == 1);
  } else {
    CHECK(size == 1);
  }
}

static void wake_by(const conformance_client *client, int fd) {
  tw_error error;
  REQUIRE_OK(client->tw.table->port_wake(client->tw.port, fd, &error), error);
}

static void arm(const conformance_client *client) {
  tw_error error;
  uint32_t ready = 7;
  REQUIRE_OK(client->tw.table->port_arm(client->tw.port, &ready, &error), error);
  CHECK(ready == 0);
}

/* Submits a call that completes on a thread of the service. */
static void submit_sleep(conformance_client *client) {
  tw_request request;
  tw_error error;
  REQUIRE_OK(submit_request(conformance_sleep_prepare(client, 1, &request), 5, NULL, &error),
             error);
}

/* Reaps the next completion. It does not use port_wait, which would replace the arming. */
static void reap_one(const conformance_client *client) {
  const tw_table *table = client->tw.table;
  tw_completion completion;
  tw_error error;
  uint32_t count = 0;
  int tries;
  for (tries = 0; tries < 60000 && count == 0; tries++) {
    REQUIRE_OK(table->port_reap(client->tw.port, &completion, 1, &count, &error), error);
    if (count == 0) {
      sleep_ms(1);
    }
  }
  CHECK(count == 1);
  if (count == 1) {
    table->release(&completion);
  }
}

static int eventfd_of(const conformance_client *client) {
  tw_error error;
  int fd = -1;
  REQUIRE_OK(client->tw.table->port_fd(client->tw.port, &fd, &error), error);
  return fd;
}

static void each_kind_of_descriptor_is_woken_once_per_arming(void) {
  int kind;
  int round;
  for (kind = 0; kind < KINDS; kind++) {
    conformance_client client = open_client(4);
    pair ends = make(kind);
    wake_by(&client, ends.woken);
    for (round = 0; round < 5; round++) {
      arm(&client);
      arm(&client);
      CHECK(!readable_within(ends.watched, 0));
      submit_sleep(&client);
      CHECK(readable_within(ends.watched, 60000));
      read_wake_up(ends);
      CHECK(!readable_within(ends.watched, 0));
      CHECK(!readable_within(eventfd_of(&client), 0));
      reap_one(&client);
    }
    /* Completions of a port that is not armed wake nothing. */
    submit_sleep(&client);
    reap_one(&client);
    CHECK(!readable_within(ends.watched, 0));
    close_client(&client);
    close_pair(ends);
  }
}

static void nonblocking_descriptor_is_woken(void) {
  int kind;
  for (kind = 0; kind < KINDS; kind++) {
    conformance_client client = open_client(4);
    pair ends = make(kind);
    set_nonblocking(ends.woken, true);
    wake_by(&client, ends.woken);
    arm(&client);
    submit_sleep(&client);
    CHECK(readable_within(ends.watched, 60000));
    read_wake_up(ends);
    reap_one(&client);
    close_client(&client);
    close_pair(ends);
  }
}

static void caller_may_close_its_descriptor_and_removes_it_later(void) {
  conformance_client client = open_client(4);
  pair ends = make_pipe();
  char byte;
  wake_by(&client, ends.woken);
  close(ends.woken);
  arm(&client);
  submit_sleep(&client);
  CHECK(readable_within(ends.watched, 60000));
  CHECK(read(ends.watched, &byte, 1) == 1);
  reap_one(&client);
  /* Removed: the duplicate is closed, and the eventfd is woken again. */
  arm(&client);
  wake_by(&client, -1);
  CHECK(read(ends.watched, &byte, 1) == 0);
  submit_sleep(&client);
  CHECK(readable_within(eventfd_of(&client), 60000));
  reap_one(&client);
  wake_by(&client, -1);
  close(ends.watched);
  close_client(&client);
}

static void another_descriptor_replaces_the_first_also_while_armed(void) {
  conformance_client client = open_client(4);
  pair first = make_sockets(SOCK_STREAM);
  pair second = make_pipe();
  char byte;
  wake_by(&client, first.woken);
  arm(&client);
  wake_by(&client, second.woken);
  close(first.woken);
  CHECK(read(first.watched, &byte, 1) == 0);
  submit_sleep(&client);
  CHECK(readable_within(second.watched, 60000));
  read_wake_up(second);
  reap_one(&client);
  close_client(&client);
  close(first.watched);
  close_pair(second);
}

static void descriptor_set_with_completions_available_is_woken_at_once(void) {
  conformance_client client = open_client(4);
  pair ends = make_eventfd();
  tw_error error;
  submit_sleep(&client);
  REQUIRE_OK(client.tw.table->port_wait(client.tw.port, TW_FOREVER, &error), error);
  wake_by(&client, ends.woken);
  CHECK(readable_within(ends.watched, 0));
  read_wake_up(ends);
  reap_one(&client);
  close_client(&client);
  close_pair(ends);
}

static void closing_the_port_closes_the_duplicate(void) {
  conformance_client client = open_client(4);
  const tw_table *table = client.tw.table;
  tw_handle port = client.tw.port;
  pair ends = make_pipe();
  tw_error error;
  char bytes[8];
  wake_by(&client, ends.woken);
  close(ends.woken);
  arm(&client);
  close_client(&client);
  /* The close wakes an armed port once. */
  CHECK(read(ends.watched, bytes, sizeof(bytes)) == 1);
  CHECK(read(ends.watched, bytes, sizeof(bytes)) == 0);
  CHECK_CODE(table->port_wake(port, ends.watched, &error), TW_STALE);
  CHECK_CODE(table->port_wake(port, -1, &error), TW_STALE);
  close(ends.watched);
}

/* Fills a descriptor until a write would block. It still blocks afterwards. */
static void fill(pair ends) {
  static const char bytes[4096];
  if (ends.woken == ends.watched) {
    uint64_t most = UINT64_MAX - 1;
    CHECK(write(ends.woken, &most, sizeof(most)) == 8);
    return;
  }
  set_nonblocking(ends.woken, true);
  while (write(ends.woken, bytes, sizeof(bytes)) > 0) {
  }
  while (write(ends.woken, bytes, 1) > 0) {
  }
  CHECK(errno == EAGAIN);
  set_nonblocking(ends.woken, false);
}

static void full_descriptor_blocks_no_thread(void) {
  int kind;
  int round;
  for (kind = 0; kind < KINDS; kind++) {
    conformance_client client = open_client(4);
    conformance_echo_u8_result result;
    pair ends = make(kind);
    tw_request request;
    tw_error error;
    wake_by(&client, ends.woken);
    fill(ends);
    /* More rounds than the service has threads. */
    for (round = 0; round < 20; round++) {
      tw_handle call = 0;
      arm(&client);
      submit_sleep(&client);
      reap_one(&client);
      /* On this thread. */
      arm(&client);
      REQUIRE_OK(submit_request(conformance_never_prepare(&client, &request), 6, &call, &error),
                 error);
      REQUIRE_OK(client.tw.table->cancel(call, &error), error);
      reap_one(&client);
    }
    CHECK_CODE(conformance_echo_u8(&client, 3, TW_FOREVER, &result, &error), TW_OK);
    tw_reply_release(&result.reply);
    close_client(&client);
    close_pair(ends);
  }
}

static void arm_and_cancel(conformance_client *client) {
  tw_request request;
  tw_handle call = 0;
  tw_error error;
  arm(client);
  REQUIRE_OK(submit_request(conformance_never_prepare(client, &request), 6, &call, &error), error);
  REQUIRE_OK(client->tw.table->cancel(call, &error), error);
  reap_one(client);
}

/* SIGPIPE has its default effect here: it ends the process. */
static void descriptor_without_a_peer_raises_no_sigpipe(void) {
  int kind;
  int round;
  for (kind = 0; kind < KINDS - 1; kind++) {
    conformance_client client = open_client(4);
    pair ends = make(kind);
    wake_by(&client, ends.woken);
    close(ends.watched);
    for (round = 0; round < 3; round++) {
      arm(&client);
      submit_sleep(&client);
      reap_one(&client);
      arm_and_cancel(&client);
    }
    close_client(&client);
    close(ends.woken);
  }
}

static bool sigpipe_is_pending(void) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGPIPE) == 1;
}

static void sigpipe_of_the_program_stays_pending(void) {
  conformance_client client = open_client(4);
  pair ends = make_pipe();
  sigset_t sigpipe;
  sigset_t before;
  int received = 0;
  sigemptyset(&sigpipe);
  sigaddset(&sigpipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
  wake_by(&client, ends.woken);
  close(ends.watched);
  arm_and_cancel(&client);
  CHECK(!sigpipe_is_pending());
  raise(SIGPIPE);
  CHECK(sigpipe_is_pending());
  arm_and_cancel(&client);
  CHECK(sigpipe_is_pending());
  CHECK(sigwait(&sigpipe, &received) == 0 && received == SIGPIPE);
  CHECK(!sigpipe_is_pending());
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  close_client(&client);
  close(ends.woken);
}

static void refuse(const conformance_client *client, int fd, const char *why) {
  tw_error error;
  memset(&error, 0, sizeof(error));
  CHECK_CODE(client->tw.table->port_wake(client->tw.port, fd, &error), TW_ARGUMENT);
  if (!strstr(error.message, why)) {
    fprintf(stderr, "\"%s\" lacks \"%s\"\n", error.message, why);
    checks_failed++;
  }
}

static void unusable_descriptor_is_refused_and_the_earlier_one_stays(void) {
  conformance_client client = open_client(4);
  pair ends = make_pipe();
  pair other = make_pipe();
  int fd = dup(ends.watched);
  int i;
  wake_by(&client, ends.woken);
  close(fd);
  refuse(&client, fd, "not open");
  refuse(&client, -2, "not open");
  refuse(&client, INT_MIN, "not open");
  refuse(&client, INT_MAX, "not open");
  fd = open("/proc/self/exe", O_RDONLY);
  refuse(&client, fd, "a file");
  close(fd);
  fd = open("/", O_RDONLY);
  refuse(&client, fd, "a directory");
  close(fd);
  fd = open("/dev/null", O_RDWR);
  for (i = 0; i < 2000; i++) { /* more than `main` allows to be open */
    refuse(&client, fd, "a device");
  }
  close(fd);
  fd = epoll_create1(0);
  refuse(&client, fd, "not a socket, a pipe or an eventfd");
  close(fd);
  fd = socket(AF_INET, SOCK_DGRAM, 0);
  refuse(&client, fd, "not connected");
  close(fd);
  fd = socket(AF_UNIX, SOCK_STREAM, 0);
  refuse(&client, fd, "not connected");
  close(fd);
  refuse(&client, other.watched, "the reading end");
  close(other.watched);
  refuse(&client, other.woken, "no reader");
  close(other.woken);
  arm(&client);
  submit_sleep(&client);
  CHECK(readable_within(ends.watched, 60000));
  read_wake_up(ends);
  reap_one(&client);
  close_client(&client);
  close_pair(ends);
}

static void descriptor_that_cannot_be_duplicated_is_overloaded(void) {
  conformance_client client = open_client(4);
  pair ends = make_eventfd();
  struct rlimit limit;
  struct rlimit full;
  tw_error error;
  int lowest = dup(ends.woken);
  close(lowest);
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  full = limit;
  full.rlim_cur = (rlim_t)lowest;
  CHECK(setrlimit(RLIMIT_NOFILE, &full) == 0);
  CHECK_CODE(client.tw.table->port_wake(client.tw.port, ends.woken, &error), TW_OVERLOADED);
  CHECK(error.retryable == 1);
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  wake_by(&client, ends.woken);
  close_client(&client);
  close_pair(ends);
}

static void two_ports_share_one_descriptor(void) {
  conformance_client one = open_client(4);
  conformance_client two = open_client(4);
  pair ends = make_eventfd();
  uint64_t number = 0;
  wake_by(&one, ends.woken);
  wake_by(&two, ends.woken);
  arm(&one);
  arm(&two);
  arm_and_cancel(&one);
  arm_and_cancel(&two);
  CHECK(read(ends.watched, &number, sizeof(number)) == 8 && number == 2);
  close_client(&one);
  close_client(&two);
  close_pair(ends);
}

static void child_after_fork_gets_forked(void) {
  conformance_client client = open_client(4);
  pair ends = make_pipe();
  int status = 0;
  pid_t child;
  wake_by(&client, ends.woken);
  child = fork();
  if (child == 0) {
    conformance_client own;
    pair mine = make_pipe();
    tw_error error;
    CHECK_CODE(client.tw.table->port_wake(client.tw.port, mine.woken, &error), TW_FORKED);
    CHECK_CODE(client.tw.table->port_wake(client.tw.port, -1, &error), TW_FORKED);
    own = open_client(4);
    wake_by(&own, mine.woken);
    arm(&own);
    submit_sleep(&own);
    CHECK(readable_within(mine.watched, 60000));
    _exit(checks_failed == 0 ? 0 : 1);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(!readable_within(ends.watched, 0));
  arm(&client);
  submit_sleep(&client);
  CHECK(readable_within(ends.watched, 60000));
  reap_one(&client);
  close_client(&client);
  close_pair(ends);
}

/* Threads set and remove descriptors while completions arrive. No wake-up is lost. */
static struct {
  const tw_table *table;
  tw_handle port;
  int fds[2];
  int is_over;
} changing;

static void *change_descriptors(void *unused) {
  uint32_t turn = 0;
  tw_error error;
  (void)unused;
  while (!__atomic_load_n(&changing.is_over, __ATOMIC_ACQUIRE)) {
    CHECK_CODE(changing.table->port_wake(changing.port, changing.fds[turn % 2], &error), TW_OK);
    turn++;
  }
  return NULL;
}

static void descriptors_changed_by_another_thread_lose_no_wake_up(void) {
  conformance_client client = open_client(4);
  pair ends = make_eventfd();
  struct pollfd watched[2];
  pthread_t thread;
  int round;
  changing.table = client.tw.table;
  changing.port = client.tw.port;
  changing.fds[0] = ends.woken;
  changing.fds[1] = -1;
  watched[0].fd = ends.watched;
  watched[0].events = POLLIN;
  watched[1].events = POLLIN;
  watched[1].fd = eventfd_of(&client);
  set_nonblocking(ends.watched, true);
  pthread_create(&thread, NULL, change_descriptors, NULL);
  for (round = 0; round < 200; round++) {
    uint64_t number;
    while (read(ends.watched, &number, sizeof(number)) > 0) {
    }
    arm(&client);
    submit_sleep(&client);
    CHECK(poll(watched, 2, 60000) > 0);
    reap_one(&client);
  }
  __atomic_store_n(&changing.is_over, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  close_client(&client);
  close_pair(ends);
}

int main(int argc, char **argv) {
  struct rlimit limit;
  signal(SIGPIPE, SIG_DFL);
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = 512;
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  open_library(argc, argv);
  RUN(each_kind_of_descriptor_is_woken_once_per_arming);
  RUN(nonblocking_descriptor_is_woken);
  RUN(caller_may_close_its_descriptor_and_removes_it_later);
  RUN(another_descriptor_replaces_the_first_also_while_armed);
  RUN(descriptor_set_with_completions_available_is_woken_at_once);
  RUN(closing_the_port_closes_the_duplicate);
  RUN(full_descriptor_blocks_no_thread);
  RUN(descriptor_without_a_peer_raises_no_sigpipe);
  RUN(sigpipe_of_the_program_stays_pending);
  RUN(unusable_descriptor_is_refused_and_the_earlier_one_stays);
  RUN(descriptor_that_cannot_be_duplicated_is_overloaded);
  RUN(two_ports_share_one_descriptor);
  RUN(child_after_fork_gets_forked);
  RUN(descriptors_changed_by_another_thread_lose_no_wake_up);
  return done("wake");
}
