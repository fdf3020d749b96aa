/// Calls the echo service from C++: echo-cpp LIBRARY. All hosts print the same output.
#include <chrono>
#include <cstdio>

#include "echo.hpp"

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t hour = 60 * 60 * 1000;

void say(const thalweg::text &text) {
  std::printf("%.*s", static_cast<int>(text.size()), text.data());
}

thalweg::task<> call_echo(const echo::timer &timer, const char *message, std::uint32_t delay_ms) {
  const auto response = co_await timer.echo({.message = message, .delay_ms = delay_ms});
  const echo::response &said = *response.value();
  say(said.name);
  std::printf(" said ");
  say(said.message);
  std::printf("\n");
}

/// Two calls at once: they end in the order of their delays.
void echo_two(const echo::client &client, const echo::timer &timer) {
  thalweg::poll_loop loop;
  loop.add(client);
  thalweg::spawn(call_echo(timer, "later", 50));
  thalweg::spawn(call_echo(timer, "sooner", 0));
  while (client.waiting() > 0) {
    loop.turn();
  }
}

void complex(const echo::timer &timer) {
  const echo::request messages[] = {{.message = "one", .delay_ms = 10},
                                    {.message = "two", .delay_ms = 20}};
  const thalweg::text tags[] = {"fast", "async"};
  const echo::complex_request request{
      .messages = messages, .tags = tags, .note = "an extra", .retries = 3};
  const auto response = timer.complex(request).get().value();
  say(response->summary);
  std::printf(" (%llu)\n", static_cast<unsigned long long>(response->item_count));
}

void ticks(const echo::timer &timer) {
  auto stream = timer.schedule(5, 3).get().value();
  for (const auto batch : stream) {
    for (const echo::tick &tick : batch) {
      std::printf("tick %u\n", static_cast<unsigned>(tick.number));
    }
  }
  stream.status().value();
}

/// A typed error, and a call whose deadline passes: the service is cancelled, too.
void show_failures(const echo::timer &timer) {
  try {
    timer.echo({.message = "never", .delay_ms = hour + 1}).get().value();
  } catch (const thalweg::service_error_of<echo::timer_error> &refused) {
    const auto *const too_long = refused.payload().get_if<echo::timer_error::too_long>();
    std::printf("refused: %u ms\n", static_cast<unsigned>(too_long->value));
  }
  try {
    timer.echo({.message = "in an hour", .delay_ms = hour}, 20ms).get().value();
  } catch (const thalweg::timed_out &) {
    std::puts("timed out");
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fputs("usage: echo-cpp LIBRARY\n", stderr);
    return 2;
  }
  try {
    const echo::client client = echo::client::open(argv[1]).value();
    const auto version = client.version().get().value();
    std::printf("version ");
    say(*version);
    std::printf("\n");
    const echo::timer timer = client.timer("clock").get().value();
    echo_two(client, timer);
    complex(timer);
    ticks(timer);
    show_failures(timer);
  } catch (const thalweg::exception &failed) {
    std::fprintf(stderr, "echo-cpp: %s\n", failed.what());
    return 1;
  }
  return 0;
}
