/* A library without a service, whose table is defined by macros: test.sh compiles the variants. */
#include "search.h"

#ifndef FAKE_ABI
#define FAKE_ABI TW_ABI
#endif
#ifndef FAKE_SIZE
#define FAKE_SIZE sizeof(tw_table)
#endif
#ifndef FAKE_PACKAGE
#define FAKE_PACKAGE SEARCH_PACKAGE
#endif
#ifndef FAKE_VERSION
#define FAKE_VERSION SEARCH_VERSION
#endif

#ifndef FAKE_NO_SYMBOL
const tw_table *tw_library(uint32_t abi);

const tw_table *tw_library(uint32_t abi) {
#ifdef FAKE_NO_TABLE
  (void)abi;
  return NULL;
#else
  static tw_table table;
  static tw_method methods[8];
  const tw_expected *expected = search_expected();
  (void)abi;
  table.abi = FAKE_ABI;
  table.size = (uint32_t)FAKE_SIZE;
  table.package = FAKE_PACKAGE;
  table.version = FAKE_VERSION;
  table.core = "9.9.9";
  memcpy(methods, expected->methods, expected->method_count * sizeof(*methods));
  table.methods = methods;
  table.method_count = expected->method_count;
  table.layout = expected->layout;
  table.imports_layout = expected->imports_layout;
#ifdef FAKE_SAME
  table.layout ^= 1;
#endif
#ifdef FAKE_MORE
  table.layout ^= 1;
  methods[table.method_count].name = "search.another";
  table.method_count += 1;
#endif
#ifdef FAKE_FEWER
  table.layout ^= 1;
  table.method_count -= 1;
#endif
#ifdef FAKE_HOST
  table.layout ^= 1;
  table.imports_layout ^= 1;
#endif
#ifdef FAKE_LAYOUT
  table.layout ^= 1;
  methods[SEARCH_METHOD_COUNT].ok ^= 1;
#endif
  return &table;
#endif
}
#else
int fake_symbol(void);

int fake_symbol(void) {
  return 1;
}
#endif
