/* A peer of `echo_nginx`: a server on a Unix socket that sends each message back.
 *
 *   echo_server threads|epoll
 *
 * A message is its length in four bytes, most significant first, followed by that many bytes. The server reads as much
 * as there is, and writes all complete messages back from the buffer that it read them into, so that a message costs
 * one read and one write where the socket takes it whole. `threads` has a blocking thread for each connection, `epoll`
 * one thread for all.
 *
 * The socket is in a new folder of TMPDIR. The line `path` of the input is answered with it. At the end of the input
 * the server removes both and exits. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HEADER 4u
/* A connection whose message is longer is closed. */
#define LONGEST (64u << 20)
/* The first size of a buffer: more than a socket holds by default. */
#define FIRST_SIZE (256u << 10)

typedef struct connection {
  int fd;
  uint8_t *bytes;
  size_t size;
  size_t used;
} connection;

static int listener;
static struct sockaddr_un address;
static char folder[sizeof(address.sun_path)];

/* Removes the socket and its folder, and exits; also called by a signal. */
static void end(int unused) {
  (void)unused;
  unlink(address.sun_path);
  rmdir(folder);
  _exit(0);
}

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static connection *connection_open(int fd) {
  connection *client = calloc(1, sizeof(*client));
  if (client) {
    client->fd = fd;
    client->size = FIRST_SIZE;
    client->bytes = malloc(client->size);
  }
  if (!client || !client->bytes) {
    fail("echo_server: memory");
  }
  return client;
}

static void connection_close(connection *client) {
  close(client->fd);
  free(client->bytes);
  free(client);
}

static int write_all(int fd, const uint8_t *data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return 0;
    }
    data += written;
    size -= (size_t)written;
  }
  return 1;
}

/* The bytes of the message at the start of `data`, header included; 0 if the header is incomplete. */
static size_t message_size(const uint8_t *data, size_t used) {
  uint32_t length;
  if (used < HEADER) {
    return 0;
  }
  memcpy(&length, data, sizeof(length));
  return HEADER + (size_t)ntohl(length);
}

/* Makes the buffer large enough for the message at its start; 0 if that is too long. */
static int make_space(connection *client) {
  const size_t wanted = message_size(client->bytes, client->used);
  uint8_t *bytes;
  if (wanted <= client->size) {
    return 1;
  }
  bytes = wanted <= LONGEST ? realloc(client->bytes, wanted) : NULL;
  if (!bytes) {
    return 0;
  }
  client->bytes = bytes;
  client->size = wanted;
  return 1;
}

/* Reads once, and sends all complete messages back. Returns 0 at the end of the connection. */
static int serve_once(connection *client) {
  const ssize_t got = read(client->fd, client->bytes + client->used, client->size - client->used);
  size_t complete = 0;
  if (got < 0 && errno == EINTR) {
    return 1;
  }
  if (got <= 0) {
    return 0;
  }
  client->used += (size_t)got;
  for (;;) {
    const size_t next = message_size(client->bytes + complete, client->used - complete);
    if (next == 0 || next > client->used - complete) {
      break;
    }
    complete += next;
  }
  if (!write_all(client->fd, client->bytes, complete)) {
    return 0;
  }
  client->used -= complete;
  memmove(client->bytes, client->bytes + complete, client->used);
  return make_space(client);
}

static int accept_next(void) {
  const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0 && errno != ECONNABORTED && errno != EINTR) {
    fail("echo_server: accept");
  }
  return fd;
}

static void *serve_connection(void *argument) {
  connection *client = argument;
  while (serve_once(client)) {
  }
  connection_close(client);
  return NULL;
}

static void *serve_by_threads(void *unused) {
  (void)unused;
  for (;;) {
    pthread_t thread;
    const int fd = accept_next();
    if (fd < 0) {
      continue;
    }
    if (pthread_create(&thread, NULL, serve_connection, connection_open(fd)) != 0) {
      fail("echo_server: thread");
    }
    pthread_detach(thread);
  }
  return NULL;
}

static void watch(int epoll, int fd, void *client) {
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
    fail("echo_server: epoll_ctl");
  }
}

/* A read that follows an event never blocks. A write may, until nginx has read the previous answer. */
static void *serve_by_epoll(void *unused) {
  struct epoll_event events[64];
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  (void)unused;
  watch(epoll, listener, NULL);
  for (;;) {
    const int count = epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < count; i++) {
      connection *client = events[i].data.ptr;
      if (!client) {
        const int fd = accept_next();
        if (fd >= 0) {
          watch(epoll, fd, connection_open(fd));
        }
      } else if (!serve_once(client)) {
        connection_close(client);
      }
    }
  }
  return NULL;
}

/* Listens on a socket in a new folder, which only this user can enter. */
static void open_listener(void) {
  const char *parent = getenv("TMPDIR");
  snprintf(folder, sizeof(folder), "%s/thalweg-echo-XXXXXX", parent && *parent ? parent : "/tmp");
  if (!mkdtemp(folder)) {
    fail("echo_server: mkdtemp");
  }
  address.sun_family = AF_UNIX;
  if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/echo.sock", folder) >=
      (int)sizeof(address.sun_path)) {
    rmdir(folder);
    fprintf(stderr, "echo_server: TMPDIR is too long for a socket: %s\n", folder);
    exit(1);
  }
  listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
      listen(listener, 511) != 0) {
    rmdir(folder);
    fail("echo_server: listen");
  }
}

int main(int count, char **arguments) {
  char line[256];
  pthread_t thread;
  const char *how = count == 2 ? arguments[1] : "";
  const int by_epoll = strcmp(how, "epoll") == 0;
  if (!by_epoll && strcmp(how, "threads") != 0) {
    fprintf(stderr, "usage: echo_server threads|epoll\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  /* Ctrl-C reaches the whole group of processes. The input ends when the program that started this one does. */
  signal(SIGINT, SIG_IGN);
  open_listener();
  signal(SIGTERM, end);
  if (pthread_create(&thread, NULL, by_epoll ? serve_by_epoll : serve_by_threads, NULL) != 0) {
    fail("echo_server: thread");
  }
  puts("{\"ready\": true}");
  fflush(stdout);
  while (fgets(line, sizeof(line), stdin)) {
    printf("\"%s\"\n", address.sun_path);
    fflush(stdout);
  }
  end(0);
}
