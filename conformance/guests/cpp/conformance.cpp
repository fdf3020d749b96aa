// The conformance service in C++: the functions of ../../wit that a guest can have, which service/ has in
// Rust. ../build.sh builds it.
//
// Streams are written, and waiting calls resumed, by threads: threads.hpp.
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance_guest.hpp"
#include "threads.hpp"

namespace {

namespace methods = conformance::methods;
using std::chrono::milliseconds;
using thalweg::future_reader;
using thalweg::incoming;
using thalweg::outcome;
using thalweg::record_writer;
using thalweg::stream_reader;
using thalweg::task;
using thalweg::text;

using counter_of = std::shared_ptr<std::atomic<std::uint32_t>>;

/// Increments a counter during its lifetime.
class counted {
public:
  explicit counted(counter_of counter) : counter_(std::move(counter)) {
    ++*counter_;
  }
  counted(const counted &) = delete;
  counted &operator=(const counted &) = delete;
  ~counted() {
    --*counter_;
  }

private:
  counter_of counter_;
};

/// Answers with a stream that `write` writes on a thread, until it returns false.
template <class Method, class Write> void answer_stream(incoming<Method> &call, Write write) {
  record_writer<Method> opened;
  if (call.answer(opened) == outcome::ok) {
    run_on_a_thread([writer = std::move(opened), write]() mutable {
      if (write(writer)) {
        writer.finish();
      }
    });
  }
}

/// The same with the records for the numbers below `count`: `record` calls its second argument with one.
template <class Method, class Record>
void answer_records(incoming<Method> &call, std::uint64_t count, Record record) {
  answer_stream(call, [count, record](record_writer<Method> &writer) {
    bool is_open = true;
    for (std::uint64_t number = 0; number < count && is_open; number++) {
      record(number, [&](const typename record_writer<Method>::element &element) {
        is_open = writer.send(element).has_value();
      });
    }
    return is_open;
  });
}

/// Answers with `count` numbers from 0, which are written before the function returns.
template <class Method> void answer_at_once(incoming<Method> &call, std::uint64_t count) {
  record_writer<Method> writer;
  if (call.answer(writer) == outcome::ok) {
    // Together, so that the reader cannot keep up.
    std::vector<std::uint64_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    if (writer.send(numbers, 0)) {
      writer.finish();
    }
  }
}

class counter final : public conformance::counter {
public:
  counter(std::uint64_t value, counter_of counters) : value_(value), living_(std::move(counters)) {
  }
  void add(incoming<methods::counter_add> &call, std::uint64_t amount) override {
    call.answer(value_ += amount);
  }
  void value(incoming<methods::counter_value> &call) override {
    call.answer(value_);
  }
  task<> value_later(incoming<methods::counter_value_later> &call) override {
    call.answer(value_);
    co_return;
  }
  void steps(incoming<methods::counter_steps> &call, std::uint32_t count) override {
    answer_records(call, count,
                   [self = shared_from_this(), this](std::uint64_t, auto send) { send(++value_); });
  }
  void increase(std::uint64_t amount) {
    value_ += amount;
  }
  [[nodiscard]] std::uint64_t now() const {
    return value_;
  }

private:
  std::atomic<std::uint64_t> value_;
  counted living_;
};

using share = std::shared_ptr<conformance::counter>;

std::uint64_t now(const share &object) {
  return static_cast<const counter &>(*object).now();
}

std::uint32_t code_of(const thalweg::error &why) {
  return static_cast<std::uint32_t>(why.code());
}

/// Answers with what the host knows about a key.
template <class Method> void answer_with_look_up(incoming<Method> &call, std::uint64_t key) {
  const auto found = conformance::host(call).look_up(key);
  found ? call.answer(**found) : call.fail(code_of(found.error()));
}

class even final : public conformance::even {
public:
  explicit even(std::uint32_t half) : half_(half) {
  }
  void half(incoming<methods::even_half> &call) override {
    call.answer(half_);
  }

private:
  std::uint32_t half_;
};

class scale final : public conformance::scale {
public:
  scale(std::uint64_t by, counter_of counters) : by_(by), counters_(std::move(counters)) {
  }
  void apply(incoming<methods::scale_apply> &call,
             const std::shared_ptr<conformance::counter> &object) override {
    call.answer(std::make_shared<counter>(now(object) * by_, counters_));
  }

private:
  std::uint64_t by_;
  counter_of counters_;
};

/// A stream of `ticks`, and its next number.
struct ticking {
  record_writer<methods::ticks> writer;
  std::uint64_t next = 0;
};

/// The parameter of a function that returns it.
template <class Method, class T = typename incoming<Method>::given>
using echoed = std::conditional_t<std::is_arithmetic_v<T> || std::is_enum_v<T>, T, const T &>;

#define ECHO(name)                                                                                 \
  void name(incoming<methods::name> &call, echoed<methods::name> value) override {                 \
    call.answer(value);                                                                            \
  }

class service final : public conformance::service {
public:
  ECHO(echo_bool)
  ECHO(echo_u8)
  ECHO(echo_u16)
  ECHO(echo_u32)
  ECHO(echo_u64)
  ECHO(echo_s8)
  ECHO(echo_s16)
  ECHO(echo_s32)
  ECHO(echo_s64)
  ECHO(echo_f32)
  ECHO(echo_f64)
  ECHO(echo_char)
  ECHO(echo_string)
  ECHO(echo_bytes)
  ECHO(echo_bools)
  ECHO(echo_numbers)
  ECHO(echo_floats)
  ECHO(echo_strings)
  ECHO(echo_grid)
  ECHO(echo_points)
  ECHO(echo_option)
  ECHO(echo_option_twice)
  ECHO(echo_result)
  ECHO(echo_result_ok)
  ECHO(echo_result_error)
  ECHO(echo_result_bare)
  ECHO(echo_tuple)
  ECHO(echo_point)
  ECHO(echo_spot)
  ECHO(echo_scalars)
  ECHO(echo_nested)
  ECHO(echo_keywords)
  ECHO(echo_shape)
  ECHO(echo_shapes)
  ECHO(echo_color)
  ECHO(echo_colors)
  ECHO(echo_rights)
  ECHO(echo_days)
  ECHO(echo_wide)
  ECHO(echo_names)
  ECHO(echo_failure)
  ECHO(echo_key)
  ECHO(echo_three)
  ECHO(echo_fixed)
  ECHO(echo_keys)

  void several(incoming<methods::several> &call, std::uint8_t type, const text &match,
               const thalweg::list<std::uint16_t> &list,
               const std::optional<conformance::point> &maybe) override {
    call.answer({type, match, list, maybe});
  }
  void nothing(incoming<methods::nothing> &call) override {
    call.answer();
  }
  void many(incoming<methods::many> &call, std::uint8_t a, std::uint16_t b, std::uint32_t c,
            std::uint64_t d, std::uint8_t e, const text &f, std::uint16_t g, std::uint32_t h,
            const thalweg::bytes &i, std::uint64_t j, std::uint8_t k, const std::optional<text> &n,
            const std::shared_ptr<conformance::counter> &object, std::uint16_t m) override {
    std::uint64_t sum = std::uint64_t{a} + b + c + d + e + g + h + j + k + m + now(object);
    for (const std::uint8_t byte : i) {
      sum += byte;
    }
    call.answer({sum, f.str() + (n ? n->str() : "")});
  }

  void fail(incoming<methods::fail> &call,
            const std::optional<conformance::failure> &how) override {
    how ? call.fail(*how) : call.answer(7);
  }
  task<> fail_later(incoming<methods::fail_later> &call,
                    const std::optional<conformance::failure> &how) override {
    how ? call.fail(*how) : call.answer(7);
    co_return;
  }
  void fail_bare(incoming<methods::fail_bare> &call, bool fails) override {
    fails ? call.fail({}) : call.answer();
  }
  void panic(incoming<methods::panic> &, const text &message) override {
    throw std::runtime_error(message.str());
  }
  task<> panic_later(incoming<methods::panic_later> &, const text &message) override {
    throw std::runtime_error(message.str());
    co_return;
  }

  task<> never(incoming<methods::never> &call) override {
    const counted waits(waiting_);
    co_await wait_for<incoming<methods::never>>{call, std::chrono::hours(24)};
  }
  task<> limited(incoming<methods::limited> &call) override {
    const counted waits(waiting_);
    co_await wait_for<incoming<methods::limited>>{call, std::chrono::minutes(1)};
    call.answer();
  }
  task<> held_up(incoming<methods::held_up> &call) override {
    const counted waits(waiting_);
    co_await wait_for<incoming<methods::held_up>>{
        call, std::chrono::hours(24), [this, before = turns_.load()] { return turns_ != before; }};
    call.answer();
  }
  void let_go(incoming<methods::let_go> &call) override {
    turns_++;
    call.answer();
  }
  void waiting(incoming<methods::waiting> &call) override {
    call.answer(*waiting_);
  }
  task<> sleep(incoming<methods::sleep> &call, std::uint32_t ms) override {
    co_await wait_for<incoming<methods::sleep>>{call, milliseconds(ms)};
    call.answer(ms);
  }
  void doze(incoming<methods::doze> &call, std::uint32_t) override {
    call.end(outcome::would_park, "a guest does not wait");
  }

  void counter(incoming<methods::counter_new> &call, std::uint64_t start) override {
    call.answer(std::make_shared<::counter>(start, counters_));
  }
  void counter_sum(incoming<methods::counter_sum> &call,
                   const std::shared_ptr<conformance::counter> &left,
                   const std::shared_ptr<conformance::counter> &right) override {
    call.answer(std::make_shared<::counter>(now(left) + now(right), counters_));
  }
  void counter_finish(incoming<methods::counter_finish> &call,
                      const std::shared_ptr<conformance::counter> &object) override {
    call.answer(now(object));
  }
  void counters(incoming<methods::counters> &call) override {
    call.answer(*counters_);
  }
  void even(incoming<methods::even_new> &call, std::uint32_t value) override {
    if (value % 2 == 0) {
      call.answer(std::make_shared<::even>(value / 2));
    } else {
      call.fail({conformance::failure::code{value}});
    }
  }
  void scale(incoming<methods::scale_new> &call, std::uint64_t by) override {
    call.answer(std::make_shared<::scale>(by, counters_));
  }

  void count(incoming<methods::count> &call, std::uint64_t first, std::uint64_t count) override {
    count = std::min(count, UINT64_MAX - first);
    answer_records(call, count, [first](std::uint64_t number, auto send) { send(first + number); });
  }
  task<> items(incoming<methods::items> &call, std::uint64_t count) override {
    answer_records(call, count, [](std::uint64_t number, auto send) {
      const std::string name = "item " + std::to_string(number);
      const std::array<std::string, 2> names{"tag 0", "tag 1"};
      const std::vector<text> tags(names.begin(), names.begin() + number % 3);
      const std::vector<std::uint8_t> blob(number % 7, static_cast<std::uint8_t>(number));
      conformance::item item{.number = number, .name = name, .tags = tags, .blob = {}};
      if (number % 2 == 0) {
        item.blob = thalweg::bytes(blob);
      }
      send(item);
    });
    co_return;
  }
  void latest(incoming<methods::latest> &call, std::uint64_t count) override {
    answer_records(call, count, [](std::uint64_t number, auto send) { send(number); });
  }
  void breaks(incoming<methods::breaks> &call, std::uint64_t after) override {
    answer_stream(call, [after](record_writer<methods::breaks> &writer) {
      for (std::uint64_t number = 0; number < after && writer.send(number); number++) {
      }
      writer.abort("broken after " + std::to_string(after));
      return false;
    });
  }
  void endless(incoming<methods::endless> &call) override {
    answer_stream(call, [runs = std::make_shared<counted>(running_)](
                            record_writer<methods::endless> &writer) {
      std::uint64_t number = 0;
      while (writer.send(number)) {
        number++;
      }
      return false;
    });
  }
  void running(incoming<methods::running> &call) override {
    call.answer(*running_);
  }
  void samples(incoming<methods::samples> &call, std::uint32_t count) override {
    answer_records(call, count, [](std::uint64_t given, auto send) {
      const auto number = static_cast<std::uint32_t>(given);
      const auto i = static_cast<std::int32_t>(given);
      const bool is_even = number % 2 == 0;
      const std::string name = "sample " + std::to_string(number);
      std::vector<conformance::point> corners;
      for (std::int32_t corner = 0; corner < i % 4; corner++) {
        corners.push_back({i, corner});
      }
      constexpr std::array colors{conformance::color::red, conformance::color::green,
                                  conformance::color::bool_};
      conformance::sample sample{.number = number,
                                 .at = {i, -i},
                                 .all = {.a_bool = is_even,
                                         .a_u64 = given << 32U,
                                         .a_u8 = static_cast<std::uint8_t>(number),
                                         .a_u16 = static_cast<std::uint16_t>(number),
                                         .a_s8 = static_cast<std::int8_t>(i),
                                         .a_u32 = number,
                                         .a_s16 = static_cast<std::int16_t>(-i),
                                         .a_f64 = number / 2.0,
                                         .a_char = U'a' + number % 26,
                                         .a_s64 = -std::int64_t{i},
                                         .a_f32 = static_cast<float>(number) / 4,
                                         .a_s32 = -i},
                                 .weight = {},
                                 .color = colors.at(number % 3),
                                 .days = is_even ? conformance::days::monday
                                                 : conformance::days::workday,
                                 .pair = {static_cast<std::uint8_t>(number), given},
                                 .name = {},
                                 .corners = corners};
      if (is_even) {
        sample.weight = number;
        sample.name = text(name);
      }
      send(sample);
    });
  }
  void shapes(incoming<methods::shapes> &call, std::uint32_t count) override {
    answer_records(call, count, [](std::uint64_t number, auto send) {
      send({conformance::shape::circle{static_cast<double>(number)}});
    });
  }

  void later(incoming<methods::later> &call, std::uint32_t ms, const text &given) override {
    answer_stream(call, [ms, value = given.str()](record_writer<methods::later> &writer) {
      std::this_thread::sleep_for(milliseconds(ms));
      return writer.send(text(value)).has_value();
    });
  }
  void signal(incoming<methods::signal> &call, std::uint32_t ms) override {
    answer_stream(call, [ms](record_writer<methods::signal> &writer) {
      std::this_thread::sleep_for(milliseconds(ms));
      return writer.send({}).has_value();
    });
  }
  task<> never_comes(incoming<methods::never_comes> &call,
                     const std::optional<text> &message) override {
    record_writer<methods::never_comes> writer;
    call.answer(writer);
    writer.abort(message ? message->view() : "the service dropped the future without a value");
    co_return;
  }
  void fails_to_come(incoming<methods::fails_to_come> &call, std::uint32_t code) override {
    record_writer<methods::fails_to_come> writer;
    call.answer(writer);
    writer.fail({conformance::failure::code{code}});
  }

  void ticks(incoming<methods::ticks> &call) override {
    record_writer<methods::ticks> writer;
    call.answer(writer);
    ticking_.push_back({std::move(writer)});
  }
  void tick(incoming<methods::tick> &call, std::uint32_t count) override {
    std::erase_if(ticking_, [count](ticking &one) {
      for (std::uint32_t number = 0; number < count; number++) {
        if (!one.writer.send(one.next++)) {
          return true;
        }
      }
      return false;
    });
    call.answer(static_cast<std::uint32_t>(ticking_.size()));
  }
  void end_ticks(incoming<methods::end_ticks> &call) override {
    for (ticking &one : ticking_) {
      one.writer.finish();
    }
    ticking_.clear();
    call.answer();
  }
  void drops_newest(incoming<methods::drops_newest> &call, std::uint64_t count) override {
    answer_at_once(call, count);
  }
  void drops_oldest(incoming<methods::drops_oldest> &call, std::uint64_t count) override {
    answer_at_once(call, count);
  }
  void refuses(incoming<methods::refuses> &call, std::uint64_t count) override {
    answer_at_once(call, count);
  }
  void beats(incoming<methods::beats> &call, std::uint64_t count) override {
    answer_records(call, count, [](std::uint64_t, auto send) { send({}); });
  }
  void bits(incoming<methods::bits> &call, std::uint32_t count) override {
    answer_records(call, count, [](std::uint64_t number, auto send) { send(number % 2 == 1); });
  }
  void letters(incoming<methods::letters> &call, std::uint32_t count) override {
    constexpr std::array<char32_t, 4> letters{U'a', U'ß', U'☃', U'𐍈'};
    answer_records(call, count,
                   [=](std::uint64_t number, auto send) { send(letters.at(number % 4)); });
  }
  void maybes(incoming<methods::maybes> &call, std::uint32_t count) override {
    answer_records(call, count, [](std::uint64_t number, auto send) {
      const std::string digits = std::to_string(number);
      send(number % 2 == 0 ? std::optional<text>(digits) : std::nullopt);
    });
  }
  void couples(incoming<methods::couples> &call, std::uint32_t count) override {
    answer_records(call, count, [](std::uint64_t number, auto send) {
      const std::string digits = std::to_string(number);
      send({static_cast<std::uint8_t>(number), text(digits)});
    });
  }
  void rows(incoming<methods::rows> &call, std::uint32_t count) override {
    answer_records(call, count, [](std::uint64_t number, auto send) {
      const std::vector<std::uint16_t> all{0, 1, 2};
      const std::vector<std::uint16_t> row(all.begin(), all.begin() + number % 4);
      send(row);
    });
  }
  void outcomes(incoming<methods::outcomes> &call, std::uint32_t count) override {
    answer_records(call, count, [](std::uint64_t number, auto send) {
      const std::string why = "no " + std::to_string(number);
      if (number % 2 == 0) {
        send(static_cast<std::uint32_t>(number));
      } else {
        send(thalweg::unexpected(text(why)));
      }
    });
  }
  void stops(incoming<methods::stops> &call, std::uint64_t count, const text &how) override {
    record_writer<methods::stops> writer;
    call.answer(writer);
    for (std::uint64_t number = 0; number < count && writer.send(number); number++) {
    }
    if (how == "finish") {
      writer.finish();
    } else if (how == "fail") {
      writer.fail({conformance::failure::code{static_cast<std::uint32_t>(count)}});
    } else {
      // A guest's stream has one writer.
      writer.abort("a writer was dropped without finish()");
    }
  }
  void rows_of(incoming<methods::rows_of> &call, std::uint32_t count, std::uint32_t size) override {
    answer_stream(call, [count, size](record_writer<methods::rows_of> &writer) {
      std::vector<std::string> rows(count, "x");
      rows.emplace_back(size, 'x');
      rows.emplace_back("x");
      for (const std::string &row : rows) {
        if (const auto sent = writer.send(text(row)); !sent) {
          const thalweg::error &why = sent.error();
          writer.abort("a send failed: " + std::string(why.name()) + ": " +
                       std::string(why.message()));
          return false;
        }
      }
      return true;
    });
  }

  // Resources inside of values.
  void give_counters(incoming<methods::give_counters> &call, std::uint64_t start,
                     std::uint32_t count) override {
    std::vector<share> given;
    for (std::uint32_t number = 0; number < count; number++) {
      given.push_back(std::make_shared<::counter>(start + number, counters_));
    }
    call.answer(given);
  }
  void total(incoming<methods::total> &call, const std::vector<share> &counters) override {
    call.answer(std::transform_reduce(counters.begin(), counters.end(), std::uint64_t{0},
                                      std::plus<>(), now));
  }
  void first_of(incoming<methods::first_of> &call, const std::optional<share> &counter) override {
    call.answer(counter ? std::optional(now(*counter)) : std::nullopt);
  }
  task<> swap(incoming<methods::swap> &call, const conformance::pair &value) override {
    if (value.right) {
      call.answer({.name = value.name, .left = *value.right, .right = value.left});
    } else {
      call.fail({conformance::maybe_counter::one{value.left}});
    }
    co_return;
  }
  void refuse(incoming<methods::refuse> &call, const conformance::maybe_counter &value) override {
    call.fail(value);
  }

  // Streams and futures of the caller. Reading them waits, and so needs a thread.
  task<> sum_of(incoming<methods::sum_of> &call, stream_reader<std::uint64_t> &numbers) override {
    co_await on_a_thread{};
    std::uint64_t count = 0;
    std::uint64_t sum = 0;
    while (const auto number = numbers.next()) {
      count++;
      sum += *number;
    }
    const auto end = numbers.status();
    end ? call.answer({count, sum}) : call.fail(code_of(end.error()));
  }
  void names_of(incoming<methods::names_of> &call,
                stream_reader<conformance::item> &items) override {
    run_on_a_thread([call = std::move(call), items = std::move(items)]() mutable {
      std::string names;
      while (const auto item = items.next()) {
        names += item->name;
      }
      call.answer(names);
    });
  }
  task<> first_numbers(incoming<methods::first_numbers> &call, std::uint32_t count,
                       stream_reader<std::uint64_t> &numbers) override {
    co_await on_a_thread{};
    std::vector<std::uint64_t> first;
    while (first.size() < count) {
      const auto number = numbers.next();
      if (!number) {
        break;
      }
      first.push_back(*number);
    }
    numbers.close();
    call.answer(first);
  }
  task<> words_first(incoming<methods::words_first> &call, stream_reader<std::uint64_t> &numbers,
                     stream_reader<text> &words) override {
    co_await on_a_thread{};
    std::string all;
    while (const auto word = words.next()) {
      all += *word;
    }
    std::uint64_t sum = 0;
    while (const auto number = numbers.next()) {
      sum += *number;
    }
    call.answer({text(all), sum});
  }
  void add_all(incoming<methods::add_all> &call, const share &counter,
               stream_reader<std::uint64_t> &amounts) override {
    run_on_a_thread([call = std::move(call), counter, amounts = std::move(amounts)]() mutable {
      while (const auto amount = amounts.next()) {
        static_cast<::counter &>(*counter).increase(*amount);
      }
      call.answer(now(counter));
    });
  }
  task<> hear(incoming<methods::hear> &call, future_reader<text> &heard) override {
    co_await on_a_thread{};
    const auto words = heard.get();
    words ? call.answer(*words) : call.fail(code_of(words.error()));
  }
  task<> beats_of(incoming<methods::beats_of> &call, stream_reader<thalweg::none> &beats) override {
    co_await on_a_thread{};
    std::uint64_t count = 0;
    while (beats.next()) {
      count++;
    }
    call.answer(count);
  }
  task<> comes(incoming<methods::comes> &call, future_reader<thalweg::none> &signal) override {
    co_await on_a_thread{};
    const auto came = signal.get();
    came ? call.answer() : call.fail(code_of(came.error()));
  }

  // The host, which also needs a thread.
  void ask(incoming<methods::ask> &call, std::uint64_t key) override {
    run_on_a_thread([call = std::move(call), key]() mutable { answer_with_look_up(call, key); });
  }
  task<> ask_later(incoming<methods::ask_later> &call, std::uint64_t key) override {
    co_await on_a_thread{};
    answer_with_look_up(call, key);
  }
  task<> tell(incoming<methods::tell> &call, const thalweg::list<text> &words,
              const std::optional<std::uint32_t> &at) override {
    co_await on_a_thread{};
    const conformance::host host(call);
    if (const auto nodded = host.nod(); !nodded) {
      call.fail(code_of(nodded.error()));
      co_return;
    }
    const auto told = host.tell(words, at);
    told ? call.answer(*told) : call.fail(code_of(told.error()));
  }
  task<> ask_all(incoming<methods::ask_all> &call, stream_reader<std::uint64_t> &keys) override {
    co_await on_a_thread{};
    const conformance::host host(call);
    std::deque<std::string> found; // the texts that `answers` views
    std::vector<thalweg::expected<text, std::uint32_t>> answers;
    while (const auto key = keys.next()) {
      if (const auto answer = host.look_up(*key)) {
        answers.emplace_back(text(found.emplace_back((*answer)->view())));
      } else {
        answers.emplace_back(thalweg::unexpected(code_of(answer.error())));
      }
    }
    call.answer(answers);
  }

  static void load() {
    begin_threads();
  }
  static void unload() {
    end_threads();
  }

private:
  counter_of counters_ = std::make_shared<std::atomic<std::uint32_t>>(0);
  counter_of running_ = std::make_shared<std::atomic<std::uint32_t>>(0);
  counter_of waiting_ = std::make_shared<std::atomic<std::uint32_t>>(0);
  std::atomic<std::uint32_t> turns_{0};
  std::vector<ticking> ticking_;
};

} // namespace

THALWEG_EXPORT_GUEST(service)
