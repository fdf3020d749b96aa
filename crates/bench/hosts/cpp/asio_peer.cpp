/// A peer of `co_await`: a coroutine of Asio that awaits one on another thread. `asio_peer` answers
/// the line `nop COUNT UNCOUNTED PAUSE_US`.
#define ASIO_STANDALONE
#include <asio.hpp>
#include <vector>

#include "sample.h"

namespace {

asio::awaitable<void> nop() {
  co_return;
}

asio::awaitable<void> time_awaits(asio::thread_pool &pool, const std::uint64_t numbers[3],
                                  std::vector<std::uint64_t> &latencies) {
  for (std::uint64_t i = 0; i < numbers[1]; ++i) {
    co_await asio::co_spawn(pool, nop, asio::use_awaitable);
  }
  for (std::uint64_t &latency : latencies) {
    if (numbers[2] > 0) {
      pause_us(static_cast<std::uint32_t>(numbers[2]));
    }
    const std::uint64_t began = now_ns();
    co_await asio::co_spawn(pool, nop, asio::use_awaitable);
    latency = now_ns() - began;
  }
}

} // namespace

int main() {
  asio::thread_pool pool(1);
  asio::io_context context(1);
  move_caller();
  say_ready();
  char command[32];
  std::uint64_t numbers[3];
  while (next_command(command, numbers) != 0) {
    if (std::string_view(command) != "nop") {
      std::fprintf(stderr, "not a command: %s\n", command);
      return 1;
    }
    std::vector<std::uint64_t> latencies(numbers[0]);
    asio::co_spawn(context, time_awaits(pool, numbers, latencies), asio::detached);
    context.restart();
    context.run();
    std::fputs("{\"latencies\": [", stdout);
    const char *separator = "";
    for (const std::uint64_t latency : latencies) {
      std::printf("%s%" PRIu64, separator, latency);
      separator = ", ";
    }
    std::puts("]}");
    std::fflush(stdout);
  }
  pool.join();
  return 0;
}
