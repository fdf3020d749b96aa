/* The function that a library for lua-resty-ffi implements, and those that it calls: see its README. */
#pragma once

int libffi_init(char *cfg, void *tq);

void *ngx_http_lua_ffi_task_poll(void *tq);
char *ngx_http_lua_ffi_get_req(void *task, int *len);
void ngx_http_lua_ffi_respond(void *task, int rc, char *rsp, int rsp_len);
