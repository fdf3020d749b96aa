/// Opens and closes many clients, and makes many calls: leaks LIBRARY CLIENTS CALLS. After the first
/// tenth, memory and descriptors must not grow.
#include <dirent.h>
#include <unistd.h>

#include "check.hpp"

namespace {

/// The growth of the allocator's own memory that is tolerated, in bytes.
constexpr long slack = 6L << 20;

long resident() {
  std::FILE *file = std::fopen("/proc/self/statm", "r");
  long all = 0;
  long pages = 0;
  if (file == nullptr || std::fscanf(file, "%ld %ld", &all, &pages) != 2) {
    std::fputs("/proc/self/statm cannot be read\n", stderr);
    std::exit(1);
  }
  std::fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

int descriptors() {
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  while (folder != nullptr && readdir(folder) != nullptr) {
    count++;
  }
  closedir(folder);
  return count;
}

thalweg::task<> call_and_read(const conformance::client &client) {
  CHECK(*require(co_await client.echo_string("x")) == "x");
  auto stream = require(co_await client.count(0, 10));
  while (co_await stream.next()) {
  }
}

/// A client that uses everything, and leaves some of it open.
void one_client(std::uint64_t number) {
  const auto client = open_client(4);
  CHECK(require(client.echo_u64(number).get()) == number);
  const auto counter = require(client.counter(number).get());
  CHECK(!client.even(1).get().has_value());
  auto endless = require(client.endless().get());
  const auto open = endless.next().get();
  auto numbers = require(client.sum_of_numbers());
  require_ok(numbers.send(1).get());
  thalweg::poll_loop loop;
  loop.add(client);
  loop.run(call_and_read(client));
  thalweg::spawn([](const conformance::client &of) -> thalweg::task<> {
    static_cast<void>(co_await of.never());
  }(client));
}

/// Runs a function many times, and checks that nothing grows after the first tenth.
template <class Run> void many(const char *what, std::uint64_t times, Run &&run) {
  long memory = 0;
  int files = 0;
  for (std::uint64_t round = 0; round < times; ++round) {
    if (round == times / 10) {
      memory = resident();
      files = descriptors();
    }
    run(round);
  }
  // A port's descriptor is closed by whichever thread uses the port last, perhaps a worker.
  for (int wait = 0; descriptors() > files && wait < 5000; ++wait) {
    usleep(1000);
  }
  const long grown = resident() - memory;
  std::printf("leaks: %llu %s: %ld bytes and %d descriptors more than after a tenth\n",
              static_cast<unsigned long long>(times), what, grown, descriptors() - files);
  CHECK(grown < slack);
  CHECK(descriptors() <= files);
}

} // namespace

int main(int argc, char **argv) {
  begin(argc, argv);
  const std::uint64_t clients = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000;
  const std::uint64_t calls = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1000000;
  many("clients", clients, one_client);
  const auto client = open_client();
  many("calls", calls,
       [&](std::uint64_t number) { CHECK(require(client.echo_u64(number).get()) == number); });
  thalweg::poll_loop loop;
  loop.add(client);
  loop.run([&]() -> thalweg::task<> {
    for (std::uint64_t number = 0; number < calls / 10; ++number) {
      CHECK(require(co_await client.echo_u64(number)) == number);
    }
  }());
  return done("leaks");
}
