/* The echo of lua-resty-ffi's README, in C. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "resty_ffi.h"

static void *serve(void *tq) {
  void *task;
  while ((task = ngx_http_lua_ffi_task_poll(tq)) != NULL) {
    int len;
    const char *request = ngx_http_lua_ffi_get_req(task, &len);
    char *answer = malloc((size_t)len + 1);
    memcpy(answer, request, (size_t)len + 1); /* with the NUL, so that an empty answer has one */
    ngx_http_lua_ffi_respond(task, 0, answer, len);
  }
  return NULL;
}

int libffi_init(char *cfg, void *tq) {
  pthread_t thread;
  (void)cfg;
  return pthread_create(&thread, NULL, serve, tq) || pthread_detach(thread);
}
