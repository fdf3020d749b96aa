/// Searches a directory tree for plain text, from C++.
///
///   search-cpp LIBRARY PATTERN DIR [--print | --count | --json | --async]
///
/// --print  prints each matching line like `grep -rn` (the default)
/// --count  prints the number of matching lines, which the service counts without a stream
/// --json   streams the matches and prints their number and the time as one line of JSON
/// --async  the same in a coroutine, on a loop over `poll`
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <string_view>

#include "search.hpp"

namespace {

using clock = std::chrono::steady_clock;

struct found {
  std::uint64_t matches = 0;
  std::uint64_t lines_sum = 0; // sum of the line numbers, to compare two searches
  clock::time_point began = clock::now();
  clock::time_point first;

  void add(const thalweg::batch<search::match> &batch) {
    if (matches == 0) {
      first = clock::now();
    }
    for (const search::match &match : batch) {
      lines_sum += match.line;
    }
    matches += batch.size();
  }
  void report(const char *host) const {
    const auto ended = clock::now();
    const auto since = [this](clock::time_point time) -> std::int64_t {
      return std::chrono::nanoseconds(time - began).count();
    };
    std::printf("{\"host\":\"%s\",\"matches\":%" PRIu64 ",\"lines_sum\":%" PRIu64
                ",\"first_match_ns\":%" PRId64 ",\"total_ns\":%" PRId64 "}\n",
                host, matches, lines_sum, since(matches > 0 ? first : ended), since(ended));
  }
};

/// Searches every file, also those in ignore files.
search::options every_file() {
  search::options options;
  options.fixed = true;
  options.hidden = true;
  return options;
}

/// Prints an error. Returns the exit status.
int failed(const thalweg::error &error) {
  std::fprintf(stderr, "search-cpp: %s: %s\n", error.name(), error.message().data());
  return 1;
}

int failed(const thalweg::typed_error<search::search_error> &error) {
  if (error.payload() == nullptr) {
    return failed(static_cast<const thalweg::error &>(error));
  }
  const std::string_view why = std::visit(
      [](const auto &one) -> std::string_view { return one.value; }, error.payload()->value);
  std::fprintf(stderr, "search-cpp: %.*s\n", static_cast<int>(why.size()), why.data());
  return 1;
}

void write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// Prints the original bytes of text that is not UTF-8.
void write_text(const thalweg::text &text, const std::optional<thalweg::bytes> &bytes) {
  if (bytes) {
    std::fwrite(bytes->data(), 1, bytes->size(), stdout);
  } else {
    write(text);
  }
}

void print(const search::match &match) {
  write_text(match.path, match.path_bytes);
  std::printf(":%" PRIu64 ":", match.line);
  write_text(match.text, match.text_bytes);
  write("\n");
}

/// Streams the matches to code that blocks.
int stream(const search::client &client, const char *pattern, const char *dir, bool prints) {
  found all;
  auto query = client.query(pattern, dir, every_file()).get();
  if (!query) {
    return failed(query.error());
  }
  auto matches = client.matches(*query).get();
  if (!matches) {
    return failed(matches.error());
  }
  for (const auto batch : *matches) {
    all.add(batch);
    if (prints) {
      for (const search::match &match : batch) {
        print(match);
      }
    }
  }
  const auto status = matches->status();
  if (!status) {
    return failed(status.error());
  }
  if (!prints) {
    all.report("C++");
  }
  return 0;
}

/// Streams the matches to a coroutine.
thalweg::task<int> stream_later(const search::client &client, const char *pattern,
                                const char *dir) {
  found all;
  auto query = co_await client.query(pattern, dir, every_file());
  if (!query) {
    co_return failed(query.error());
  }
  auto matches = co_await client.matches(*query);
  if (!matches) {
    co_return failed(matches.error());
  }
  while (const auto batch = co_await matches->next()) {
    all.add(batch);
  }
  const auto status = matches->status();
  if (!status) {
    co_return failed(status.error());
  }
  all.report("C++ coroutine");
  co_return 0;
}

/// `count` takes a regular expression, which `escape` makes from the text.
int count(const search::client &client, const char *pattern, const char *dir) {
  const auto escaped = client.escape(pattern).get();
  if (!escaped) {
    return failed(escaped.error());
  }
  const auto counted = client.count(**escaped, dir).get();
  if (!counted) {
    return failed(counted.error());
  }
  std::printf("%" PRIu64 "\n", *counted);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  const std::string_view mode = argc == 5 ? argv[4] : "--print";
  if (argc < 4 || argc > 5 ||
      (mode != "--print" && mode != "--count" && mode != "--json" && mode != "--async")) {
    std::fputs("usage: search-cpp LIBRARY PATTERN DIR [--print | --count | --json | --async]\n",
               stderr);
    return 2;
  }
  const auto client = search::client::open(argv[1]);
  if (!client) {
    return failed(client.error());
  }
  if (mode == "--count") {
    return count(*client, argv[2], argv[3]);
  }
  if (mode == "--async") {
    thalweg::poll_loop loop;
    loop.add(*client);
    return loop.run(stream_later(*client, argv[2], argv[3]));
  }
  return stream(*client, argv[2], argv[3], mode == "--print");
}
