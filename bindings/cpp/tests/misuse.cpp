/// Misuse that ends the program with a message, in builds that check views: misuse LIBRARY. Each test
/// runs in a child process.
#include <csignal>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "check.hpp"

#if !THALWEG_CHECK_VIEWS
#error "compile this file without NDEBUG"
#endif

namespace {

/// Whether the function ends its process with this signal and message.
template <class Run> bool ends_with(int signal, const char *message, Run &&run) {
  int ends[2];
  if (pipe(ends) != 0) {
    return false;
  }
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    run();
    _exit(0);
  }
  close(ends[1]);
  std::string printed;
  char buffer[256];
  for (ssize_t count = 0; (count = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    printed.append(buffer, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  const bool is_right = WIFSIGNALED(status) && WTERMSIG(status) == signal &&
                        printed.find(message) != std::string::npos;
  if (!is_right) {
    std::fprintf(stderr, "status %d, printed: %s\n", status, printed.c_str());
  }
  return is_right;
}

template <class Run> bool aborts_with(const char *message, Run &&run) {
  return ends_with(SIGABRT, message, std::forward<Run>(run));
}

/// Whether the program that reads `at` afterwards ends with SIGSEGV. `keep` returns a pointer into
/// memory that was released.
template <class Keep> bool is_released_by(Keep &&keep) {
  return ends_with(SIGSEGV, "kept", [&] {
    const volatile char *const kept = reinterpret_cast<const volatile char *>(keep());
    std::fputs("kept\n", stderr); // what follows fails, and nothing before
    std::printf("%d\n", *kept);
  });
}

/// A batch with this item only. A batch of the default size has as many items as the service has
/// written so far.
thalweg::batch<conformance::item>
item_of(thalweg::stream<conformance::item, conformance::failure> &stream, std::uint64_t number) {
  for (;;) {
    auto batch = stream.next(1).get();
    if (!batch || batch[0].number == number) {
      return batch;
    }
  }
}

constexpr const char *used_late = "a view was used after its batch or reply was released";

void text_kept_past_its_batch_aborts() {
  CHECK(aborts_with(used_late, [] {
    const auto client = open_client();
    auto stream = require(client.items(4).get());
    thalweg::text kept;
    for (const auto batch : stream) {
      kept = batch[0].name;
    }
    std::printf("%zu\n", std::string_view(kept).size());
  }));
}

void list_kept_past_its_batch_aborts() {
  CHECK(aborts_with(used_late, [] {
    const auto client = open_client();
    auto stream = require(client.items(4).get());
    auto batch = item_of(stream, 2);
    const thalweg::list<thalweg::text> kept = batch[0].tags;
    batch.release();
    std::printf("%zu\n", kept[0].size());
  }));
}

void bytes_kept_past_their_stream_abort() {
  CHECK(aborts_with(used_late, [] {
    const auto client = open_client();
    auto stream = require(client.items(4).get());
    const auto batch = stream.next().get();
    const thalweg::bytes kept = batch[0].blob.value();
    stream.close();
    std::printf("%d\n", kept.data()[0]);
  }));
}

void batch_read_after_its_stream_was_closed_aborts() {
  CHECK(aborts_with(used_late, [] {
    const auto client = open_client();
    auto stream = require(client.drops_newest(4).get());
    const auto batch = stream.next().get();
    stream.close();
    std::printf("%d\n", static_cast<int>(batch[0]));
  }));
}

void text_kept_past_its_reply_aborts() {
  CHECK(aborts_with(used_late, [] {
    const auto client = open_client();
    const thalweg::text kept = *require(client.echo_string("gone").get());
    std::printf("%zu\n", kept.str().size());
  }));
}

void text_kept_past_its_error_aborts() {
  CHECK(aborts_with(used_late, [] {
    using conformance::failure;
    const auto client = open_client();
    thalweg::text kept;
    {
      const auto failed =
          client.fail(failure{failure::at{{"here", conformance::point{1, 2}}}}).get();
      kept = std::get<0>(failed.error().payload()->get_if<failure::at>()->value);
      CHECK(kept == "here");
    }
    std::printf("%zu\n", kept.str().size());
  }));
}

void string_view_kept_past_its_batch_is_noticed() {
  CHECK(is_released_by([] {
    const auto client = open_client();
    auto stream = require(client.items(4).get());
    const auto batch = item_of(stream, 2);
    const std::string_view kept = batch[0].name;
    CHECK(kept == "item 2");
    return kept.data();
  }));
  // Other batches of the stream do not make the address readable again.
  CHECK(is_released_by([] {
    const auto client = open_client();
    auto stream = require(client.items(100).get());
    auto batch = stream.next(1).get();
    const std::string_view kept = batch[0].name;
    batch.release();
    for (int more = 0; more < 20; ++more) {
      CHECK(stream.next(1).get());
    }
    return kept.data();
  }));
}

void span_and_reference_kept_past_their_batch_are_noticed() {
  CHECK(is_released_by([] {
    const auto client = open_client();
    auto stream = require(client.items(4).get());
    auto batch = stream.next().get();
    const std::span<const std::uint8_t> kept = batch[0].blob.value();
    batch.release();
    return kept.data();
  }));
  CHECK(is_released_by([] {
    const auto client = open_client();
    auto stream = require(client.drops_newest(4).get());
    const auto batch = stream.next().get();
    const std::uint64_t &kept = batch[0];
    stream.close(); // ends its batch
    return &kept;
  }));
}

void string_view_kept_past_its_reply_or_error_is_noticed() {
  CHECK(is_released_by([] {
    const auto client = open_client();
    return std::string_view(*require(client.echo_string("gone").get())).data();
  }));
  CHECK(is_released_by([] {
    using conformance::failure;
    const auto client = open_client();
    const auto failed = client.fail(failure{failure::at{{"here", conformance::point{1, 2}}}}).get();
    return std::get<0>(failed.error().payload()->get_if<failure::at>()->value).data();
  }));
}

void index_out_of_range_aborts() {
  CHECK(aborts_with("an index is not less than the size of its batch", [] {
    const auto client = open_client();
    auto stream = require(client.drops_newest(4).get());
    const auto batch = stream.next().get();
    std::printf("%d\n", static_cast<int>(batch[batch.size()]));
  }));
  CHECK(aborts_with("an index is not less than the size of its list", [] {
    const thalweg::list<int> empty;
    std::printf("%d\n", empty[0]);
  }));
}

void views_are_valid_until_the_release() {
  const auto client = open_client();
  auto stream = require(client.items(4).get());
  auto batch = item_of(stream, 2);
  const conformance::item item = batch[0];
  auto moved = std::move(batch);
  CHECK(item.name == "item 2" && item.tags[1].size() > 0);
  auto reply = require(client.echo_string("kept").get());
  const thalweg::text text = *reply;
  const auto other = std::move(reply);
  CHECK(text == "kept");
  auto elsewhere = std::move(stream);
  CHECK(item.name == "item 2");
}

} // namespace

int main(int argc, char **argv) {
  begin(argc, argv);
  RUN(text_kept_past_its_batch_aborts);
  RUN(list_kept_past_its_batch_aborts);
  RUN(bytes_kept_past_their_stream_abort);
  RUN(batch_read_after_its_stream_was_closed_aborts);
  RUN(text_kept_past_its_reply_aborts);
  RUN(text_kept_past_its_error_aborts);
  RUN(string_view_kept_past_its_batch_is_noticed);
  RUN(span_and_reference_kept_past_their_batch_are_noticed);
  RUN(string_view_kept_past_its_reply_or_error_is_noticed);
  RUN(index_out_of_range_aborts);
  RUN(views_are_valid_until_the_release);
  return done("misuse");
}
