/// Opening incompatible libraries: each is refused, and the error names both sides: opening FOLDER,
/// the folder with the variants of bindings/c/tests/fake_library.c.
#include <cstdio>
#include <string>

#include "search.hpp"

static int failures = 0;

static void refused(const std::string &folder, const char *name, thalweg::outcome code,
                    const char *ours, const char *theirs) {
  const std::string path = folder + "/libfake_" + name + ".so";
  const auto client = search::client::open(path.c_str());
  if (client || client.error().code() != code ||
      client.error().message().find(ours) == std::string_view::npos ||
      client.error().message().find(theirs) == std::string_view::npos) {
    std::fprintf(stderr, "%s: %s\n", name, client ? "opened" : client.error().message().data());
    failures++;
  }
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fputs("usage: opening FOLDER\n", stderr);
    return 2;
  }
  using thalweg::outcome;
  const std::string folder = argv[1];
  refused(folder, "other_abi", outcome::version, "abi 2 (thalweg:search@0.1.0)",
          "abi 3 (thalweg:search@0.1.0, Thalweg 9.9.9)");
  refused(folder, "other_layout", outcome::version, "thalweg:search@0.1.0 with layout",
          "first difference: search.count");
  refused(folder, "other_package", outcome::version, "thalweg:search@0.1.0", "thalweg:find@0.1.0");
  refused(folder, "no_symbol", outcome::argument, "thalweg:search@0.1.0", "no tw_library");
  refused(folder, "missing", outcome::argument, "thalweg:search@0.1.0", "libfake_missing.so");
  std::printf("opening: 5 tests, %d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
