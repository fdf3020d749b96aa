/// Coroutines on an executor of standalone Asio: asio LIBRARY.
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <thread>

#include "check.hpp"
#include "thalweg/asio.hpp"

namespace {

using namespace std::chrono_literals;

thalweg::task<> work(const conformance::client &client, thalweg::asio_port &port,
                     std::thread::id &ran_on, int &timer_ticks) {
  CHECK(*require(co_await client.echo_string("over Asio")) == "over Asio");
  auto stream = require(co_await client.count(0, 3000));
  std::size_t count = 0;
  while (const auto batch = co_await stream.next()) {
    count += batch.size();
  }
  CHECK(count == 3000);
  require_ok(co_await client.sleep(50));
  ran_on = std::this_thread::get_id();
  CHECK(timer_ticks > 0); // the loop served its timer meanwhile
  port.stop();
}

void tick(asio::steady_timer &timer, int &ticks, int left) {
  timer.expires_after(5ms);
  timer.async_wait([&timer, &ticks, left](const asio::error_code &) {
    ticks++;
    if (left > 0) {
      tick(timer, ticks, left - 1);
    }
  });
}

void coroutine_resumes_on_the_thread_of_the_executor() {
  const auto client = open_client();
  asio::io_context io;
  asio::steady_timer timer(io);
  int ticks = 0;
  std::thread::id ran_on;
  tick(timer, ticks, 5);
  {
    thalweg::asio_port port(io.get_executor(), client);
    thalweg::spawn(work(client, port, ran_on, ticks));
    io.run(); // returns, because `work` stops the port
  }
  CHECK(ran_on == std::this_thread::get_id());
  CHECK(client.fd() >= 0);
  CHECK(require(client.echo_u8(1).get()) == 1); // the descriptor still belongs to the client
}

void port_destroyed_while_a_call_runs_stops_dispatching() {
  const auto client = open_client();
  asio::io_context io;
  thalweg::outcome ended{};
  {
    const thalweg::asio_port port(io.get_executor(), client);
    thalweg::spawn([](const conformance::client &of, thalweg::outcome &code) -> thalweg::task<> {
      const auto result = co_await of.never(30ms);
      code = result.error().code();
    }(client, ended));
    io.poll();
  }
  io.run();
  CHECK(ended == thalweg::outcome{});
  thalweg::poll_loop loop;
  loop.add(client);
  while (client.waiting() > 0) {
    loop.turn(1000);
  }
  CHECK(ended == thalweg::outcome::timed_out);
}

void deadline_of_a_stream_ends_its_wait() {
  const auto client = open_client();
  auto stream = require(client.ticks().get());
  asio::io_context io;
  thalweg::asio_port port(io.get_executor(), client);
  thalweg::outcome ended{};
  // The port waits for the descriptor already, without a timer.
  asio::post(io, [&] {
    thalweg::spawn([](auto &from, auto &of, thalweg::outcome &code) -> thalweg::task<> {
      for (int round = 0; round < 2; ++round) {
        const auto batch = co_await from.next(thalweg::deadline(std::chrono::milliseconds(5)));
        CHECK(!batch);
      }
      code = from.status().error().code();
      of.stop();
    }(stream, port, ended));
  });
  io.run();
  CHECK(ended == thalweg::outcome::timed_out);
}

} // namespace

int main(int argc, char **argv) {
  begin(argc, argv);
  RUN(coroutine_resumes_on_the_thread_of_the_executor);
  RUN(deadline_of_a_stream_ends_its_wait);
  RUN(port_destroyed_while_a_call_runs_stops_dispatching);
  return done("asio");
}
