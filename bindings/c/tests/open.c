/* Opening incompatible libraries: each is refused, and the error names both sides.
 * open FOLDER: the folder with the variants of fake_library.c, which test.sh compiles. */
#include "check.h"
#include "search.h"

static const char *folder;

static uint32_t open_fake(const char *name, tw_error *error) {
  char path[1024];
  search_library library;
  uint32_t code;
  memset(error, 0, sizeof(*error));
  snprintf(path, sizeof(path), "%s/libfake_%s.so", folder, name);
  code = search_open(path, &library, error);
  CHECK((library.table != NULL) == (code == TW_OK));
  return code;
}

static void refused(const char *name, uint32_t code, const char *ours, const char *theirs) {
  tw_error error;
  CHECK_CODE(open_fake(name, &error), code);
  if (!strstr(error.message, ours) || !strstr(error.message, theirs) || error.code != code) {
    fprintf(stderr, "%s: \"%s\" lacks \"%s\" or \"%s\"\n", name, error.message, ours, theirs);
    checks_failed++;
  }
}

static void compatible_library_is_opened(void) {
  tw_error error;
  CHECK_CODE(open_fake("compatible", &error), TW_OK);
}

static void larger_table_is_opened(void) {
  tw_error error;
  CHECK_CODE(open_fake("larger_table", &error), TW_OK);
}

static void other_abi_is_refused(void) {
  refused("other_abi", TW_VERSION, "abi 2 (thalweg:search@0.1.0)",
          "abi 3 (thalweg:search@0.1.0, Thalweg 9.9.9)");
}

static void smaller_table_is_refused(void) {
  char ours[32];
  snprintf(ours, sizeof(ours), "table of %u bytes", (unsigned)sizeof(tw_table));
  refused("smaller_table", TW_VERSION, ours, "library's has 64");
}

static void other_package_is_refused(void) {
  refused("other_package", TW_VERSION, "thalweg:search@0.1.0", "thalweg:find@0.1.0");
}

static void incompatible_version_is_refused(void) {
  refused("other_version", TW_VERSION, "thalweg:search@0.1.0", "thalweg:search@0.2.0");
}

static void other_layout_is_refused_with_the_method(void) {
  char theirs[64];
  snprintf(theirs, sizeof(theirs), "%016" PRIx64 "; first difference: search.count",
           SEARCH_LAYOUT ^ 1);
  refused("other_layout", TW_VERSION, "thalweg:search@0.1.0 with layout", theirs);
}

static void later_version_with_more_functions_is_opened(void) {
  tw_error error;
  CHECK_CODE(open_fake("later_version", &error), TW_OK);
  refused("later_line", TW_VERSION, "thalweg:search@0.1.0", "thalweg:search@1.1.0");
  refused("no_version", TW_VERSION, "thalweg:search@0.1.0", "thalweg:search@0.1.0-rc");
}

static void library_without_a_function_is_refused_with_its_name(void) {
  const tw_expected *expected = search_expected();
  refused("fewer_functions", TW_VERSION, "thalweg:search@0.1.0 with layout",
          expected->methods[expected->method_count - 1].name);
}

static void host_imports_are_compared(void) {
  refused("other_host", TW_VERSION, "thalweg:search@0.1.0 with layout",
          "first difference: its host imports");
  refused("same_functions", TW_VERSION, "thalweg:search@0.1.0 with layout",
          "first difference: its layout");
}

static void library_without_a_table_is_refused(void) {
  refused("no_table", TW_VERSION, "thalweg:search@0.1.0", "no table");
}

static void library_of_another_kind_is_refused(void) {
  refused("no_symbol", TW_ARGUMENT, "thalweg:search@0.1.0", "no tw_library");
}

static void missing_file_is_refused(void) {
  refused("missing", TW_ARGUMENT, "thalweg:search@0.1.0", "libfake_missing.so");
}

static void null_pointers_are_refused(void) {
  const tw_table *table;
  tw_error error;
  CHECK_CODE(tw_open(NULL, search_expected(), &table, &error), TW_ARGUMENT);
  CHECK_CODE(tw_open("x", NULL, &table, &error), TW_ARGUMENT);
  CHECK_CODE(tw_open("x", search_expected(), NULL, NULL), TW_ARGUMENT);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fputs("usage: open FOLDER\n", stderr);
    return 2;
  }
  folder = argv[1];
  RUN(compatible_library_is_opened);
  RUN(larger_table_is_opened);
  RUN(other_abi_is_refused);
  RUN(smaller_table_is_refused);
  RUN(other_package_is_refused);
  RUN(incompatible_version_is_refused);
  RUN(other_layout_is_refused_with_the_method);
  RUN(later_version_with_more_functions_is_opened);
  RUN(library_without_a_function_is_refused_with_its_name);
  RUN(host_imports_are_compared);
  RUN(library_without_a_table_is_refused);
  RUN(library_of_another_kind_is_refused);
  RUN(missing_file_is_refused);
  RUN(null_pointers_are_refused);
  return done("open");
}
