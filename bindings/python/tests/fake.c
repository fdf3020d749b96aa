/* A library that claims to be thalweg:search, except where macro definitions change its table. */
#include <stddef.h>

#include "thalweg.h"

#ifndef FAKE_ABI
#define FAKE_ABI TW_ABI
#endif
#ifndef FAKE_SIZE
#define FAKE_SIZE sizeof(tw_table)
#endif
#ifndef FAKE_PACKAGE
#define FAKE_PACKAGE "thalweg:search"
#endif
#ifndef FAKE_VERSION
#define FAKE_VERSION "0.1.0"
#endif

static const tw_method methods[] = {
    {.name = "search.[constructor]query", .params = 1, .ok = 2, .error = 3}};

static const tw_table table = {
    .abi = FAKE_ABI,
    .size = FAKE_SIZE,
    .package = FAKE_PACKAGE,
    .version = FAKE_VERSION,
    .core = "9.9.9",
    .layout = 42,
    .methods = methods,
    .method_count = 1,
};

#ifndef FAKE_NO_SYMBOL
const tw_table *tw_library(uint32_t abi);

const tw_table *tw_library(uint32_t abi) {
  (void)abi;
#ifdef FAKE_NO_TABLE
  return NULL;
#else
  return &table;
#endif
}
#else
const tw_table *not_tw_library(void);

const tw_table *not_tw_library(void) {
  return &table;
}
#endif
