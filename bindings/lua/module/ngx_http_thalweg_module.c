/* Mode B of the Lua package: nginx watches the eventfd of a port, without a cosocket. Lua calls the
 * functions through LuaJIT's FFI: lib/thalweg/wake_event.lua declares them. Everything else is Lua.
 *
 *  1. The module is loaded by `load_module`, or later by LuaJIT. It has no directives.
 *  2. It only fits the version of nginx that it was compiled for. nginx checks that in `load_module`;
 *     Lua compares `thalweg_nginx_version` before it calls another function.
 *  3. All functions run on the worker's thread. */
#include <nginx.h>
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

/* The watch of one port. */
typedef struct {
  ngx_connection_t *connection;
  /* Posts the semaphore of the dispatcher: ngx_http_lua_ffi_sema_post. */
  int (*post)(void *semaphore, int count);
  void *semaphore;
  /* nginx has closed the connections of an old worker: worker_shutdown_timeout. */
  int is_closed;
} thalweg_wake;

uint32_t thalweg_nginx_version(void);
thalweg_wake *thalweg_wake_open(int fd, int (*post)(void *semaphore, int count), void *semaphore);
int thalweg_wake_is_closed(const thalweg_wake *wake);
void thalweg_wake_close(thalweg_wake *wake);

/* The version of nginx that this module was compiled for: 1022001 for 1.22.1. */
uint32_t thalweg_nginx_version(void) {
  return nginx_version;
}

/* The eventfd has become readable, and `port_arm` resets it; or nginx closes its connections. */
static void on_readable(ngx_event_t *event) {
  const ngx_connection_t *connection = event->data;
  thalweg_wake *wake = connection->data;
  wake->is_closed |= connection->close;
  wake->post(wake->semaphore, 1);
}

/* Nothing is written. */
static void on_writable(ngx_event_t *event) {
  (void)event;
}

/* Posts the semaphore whenever `fd` becomes readable. NULL: no connection of `worker_connections` is
 * free, or no memory. */
thalweg_wake *thalweg_wake_open(int fd, int (*post)(void *semaphore, int count), void *semaphore) {
  ngx_log_t *log = ngx_cycle->log;
  thalweg_wake *wake = ngx_alloc(sizeof(*wake), log);
  if (wake == NULL) {
    return NULL;
  }
  ngx_connection_t *connection = ngx_get_connection(fd, log);
  if (connection == NULL) {
    ngx_free(wake);
    return NULL;
  }
  *wake = (thalweg_wake){connection, post, semaphore, 0};
  connection->data = wake;
  connection->log = log;
  connection->read->handler = on_readable;
  connection->read->log = log;
  connection->write->handler = on_writable;
  connection->write->log = log;
  if (ngx_add_event(connection->read, NGX_READ_EVENT, NGX_CLEAR_EVENT) != NGX_OK) {
    ngx_free_connection(connection);
    ngx_free(wake);
    return NULL;
  }
  return wake;
}

/* Whether nginx has closed the connections of this worker, which has to end. */
int thalweg_wake_is_closed(const thalweg_wake *wake) {
  return wake->is_closed;
}

/* Ends the watch. The fd stays open. */
void thalweg_wake_close(thalweg_wake *wake) {
  ngx_connection_t *connection = wake->connection;
  ngx_del_event(connection->read, NGX_READ_EVENT, 0);
  if (connection->read->posted) {
    ngx_delete_posted_event(connection->read);
  }
  ngx_free_connection(connection);
  connection->fd = (ngx_socket_t)-1;
  ngx_free(wake);
}

static ngx_core_module_t context = {ngx_string("thalweg"), NULL, NULL};

ngx_module_t ngx_http_thalweg_module = {NGX_MODULE_V1, &context, NULL, NGX_CORE_MODULE,
                                        NULL,          NULL,     NULL, NULL,
                                        NULL,          NULL,     NULL, NGX_MODULE_V1_PADDING};
