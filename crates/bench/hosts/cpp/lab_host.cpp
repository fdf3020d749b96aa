/// The C++ host program of the lab's own service: `lab_host (blocking | coroutines) LIBRARY`. Its
/// lines are those of src/workloads/lab_hosts.rs. It measures the generated header as a C++ program
/// would use it.
#include "awaits.hpp"
#include "completions.hpp"
#include "reading.hpp"
#include "std_queue.hpp"

namespace {

void answer(const std::vector<std::uint64_t> &latencies) {
  std::fputs("{\"latencies\": [", stdout);
  const char *separator = "";
  for (const std::uint64_t latency : latencies) {
    std::printf("%s%" PRIu64, separator, latency);
    separator = ", ";
  }
  std::puts("]}");
  std::fflush(stdout);
}

void answer(const reading &read) {
  std::printf("{\"ns\": %" PRIu64 ", \"records\": %" PRIu64 ", \"checksum\": %" PRIu64 "}\n",
              read.ns, read.records, read.checksum);
  std::fflush(stdout);
}

void answer(const verified &all) {
  std::printf("{\"records\": %" PRIu64 ", \"digest\": \"%016" PRIx64 "\"}\n", all.records,
              all.digest);
  std::fflush(stdout);
}

[[noreturn]] void unknown(std::string_view command) {
  std::fprintf(stderr, "not a command: %.*s\n", static_cast<int>(command.size()), command.data());
  std::exit(1);
}

void run_blocking(const lab::client &client, awaited_bare &bare, std::string_view command,
                  const std::uint64_t numbers[3]) {
  const std::uint64_t count = numbers[0];
  const auto ticks = [&] { return client.ticks(count, batch_size); };
  const auto events = [&] { return client.events(count, batch_size); };
  if (command == "nop") {
    answer(time_each([&] { need_ok(client.nop().get()); }, numbers));
  } else if (command == "nop-async") {
    answer(time_each([&] { need_ok(client.nop_async().get()); }, numbers));
  } else if (command == "tally") {
    answer(time_each([&] { need_ok(client.tally(1).get()); }, numbers));
  } else if (command == "bare") {
    answer(time_each([&] { bare.call(); }, numbers));
  } else if (command == "views") {
    answer(read_ready(need(client.generate(count).get()), count));
  } else if (command == "array") {
    answer(read_match_array(client, count, count));
  } else if (command == "kept") {
    answer(read_match_array(client, kept_count, count));
  } else if (command == "tick-views") {
    answer(read_ready(need(ticks().get()), count));
  } else if (command == "tick-array") {
    answer(read_tick_array(client, count));
  } else if (command == "stream-one") {
    answer(read_whole(ticks, 1));
  } else if (command == "stream-views") {
    answer(read_whole(ticks, batch_size));
  } else if (command == "ticks") {
    answer(read_queue<lab::tick>(count, make_tick));
  } else if (command == "events-one") {
    answer(read_whole(events, 1));
  } else if (command == "events-views") {
    answer(read_whole(events, batch_size));
  } else if (command == "events") {
    answer(read_queue<lab::event>(count, make_event));
  } else if (command == "verify") {
    answer(verify(client, count));
  } else {
    unknown(command);
  }
}

void run_coroutines(const lab::client &client, awaited_bare &bare, std::string_view command,
                    const std::uint64_t numbers[3]) {
  const std::uint64_t count = numbers[0];
  thalweg::poll_loop loop;
  loop.add(client);
  std::vector<std::uint64_t> latencies;
  if (command == "nop") {
    loop.run(time_awaits([&] { return client.nop(); }, numbers, latencies));
    answer(latencies);
  } else if (command == "nop-async") {
    loop.run(time_awaits([&] { return client.nop_async(); }, numbers, latencies));
    answer(latencies);
  } else if (command == "tally") {
    loop.run(time_awaits([&] { return client.tally(1); }, numbers, latencies));
    answer(latencies);
  } else if (command == "bare") {
    bare.run(time_awaits([&] { return awaited_bare::reply{bare}; }, numbers, latencies));
    answer(latencies);
  } else if (command == "stream-awaited") {
    answer(loop.run(read_awaited([&] { return client.ticks(count, batch_size); })));
  } else if (command == "events-awaited") {
    answer(loop.run(read_awaited([&] { return client.events(count, batch_size); })));
  } else if (command == "complete") {
    answer(complete(client, count));
  } else if (command == "drain") {
    answer(drain(client, count));
  } else if (command == "raw") {
    answer(raw(count));
  } else if (command == "paced") {
    answer(paced(client, count, numbers[1]));
  } else {
    run_blocking(client, bare, command, numbers);
  }
}

} // namespace

int main(int argc, char **argv) {
  const std::string_view mode = argc == 3 ? argv[1] : "";
  if (mode != "blocking" && mode != "coroutines") {
    std::fputs("usage: lab_host (blocking | coroutines) LIBRARY\n", stderr);
    return 2;
  }
  auto client = need(lab::client::open(argv[2], 64));
  awaited_bare bare(argv[2]);
  need_ok(client.nop().get());
  need_ok(client.nop_async().get());
  bare.call();
  move_caller();
  say_ready();
  char command[32];
  std::uint64_t numbers[3];
  while (next_command(command, numbers) != 0) {
    (mode == "blocking" ? run_blocking : run_coroutines)(client, bare, command, numbers);
  }
  need_ok(client.close());
  return 0;
}
