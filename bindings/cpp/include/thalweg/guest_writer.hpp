/// The writing end of the streams and futures that a guest returns. guest.hpp uses this file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "codec.hpp"
#include "error.hpp"
#include "guest_message.hpp"
#include "thalweg_serve.h"

namespace thalweg {
inline namespace THALWEG_VIEW_MODE {

/// The writing end of a stream or a future, for one thread at a time. A future is sent one value and
/// then finished. If it is destroyed before its end, the stream ends as `outcome::guest_lost`. The
/// functions of a writer that has ended, or was never set, return `outcome::stale`.
template <class Method> class record_writer {
public:
  using element = typename detail::answer_of<typename Method::ok>::given;
  using error = typename detail::answer_of<typename Method::error>::given;

  record_writer() noexcept = default;
  record_writer(record_writer &&other) noexcept : tw_(std::exchange(other.tw_, {})) {
  }
  record_writer &operator=(record_writer &&other) noexcept {
    std::swap(tw_, other.tw_);
    return *this;
  }
  ~record_writer() {
    abort("the guest has dropped the writer");
  }

  /// Records become visible to the reader in groups of this many, 1 unless it is set. All are visible
  /// when the stream ends, and when it was full. A record that is malformed, such as text that is not
  /// UTF-8, is reported when its group becomes visible, which is then all others of the group.
  void set_batch(std::uint32_t records) noexcept {
    tw_.batch = records;
  }

  /// Writes a record. While the stream is full, waits until `deadline_ns` of CLOCK_MONOTONIC;
  /// `outcome::timed_out`: it was full. A function of the guest must not wait, and gets
  /// `outcome::would_park` instead. `outcome::argument`: the record is too large. `outcome::closed`:
  /// the reader has gone. Another outcome is that of the stream, which has ended.
  result<void> send(const element &record, std::uint64_t deadline_ns = TW_FOREVER) {
    return write([&](tw_error *why) {
      if constexpr (std::is_same_v<element, none>) {
        return tw_record_writer_send(&tw_, nullptr, 1, 0, deadline_ns, why);
      } else if constexpr (codec<element>::is_direct) {
        return tw_record_writer_send(&tw_, &record, 1, codec<element>::size, deadline_ns, why);
      } else {
        const tw_put_value put = [](tw_writer *message, std::uint32_t at, const void *value) {
          codec<element>::put(message, at, *static_cast<const element *>(value));
        };
        return tw_record_writer_put(&tw_, put, &record, codec<element>::size, deadline_ns, why);
      }
    });
  }
  /// The same for several records, which become visible together.
  result<void> send(std::span<const element> records,
                    std::uint64_t deadline_ns = TW_FOREVER) requires(codec<element>::is_direct) {
    return write([&](tw_error *why) {
      return tw_record_writer_send(&tw_, records.data(), static_cast<std::uint32_t>(records.size()),
                                   codec<element>::size, deadline_ns, why);
    });
  }

  /// Ends the stream regularly.
  outcome finish() noexcept {
    tw_record_writer tw = std::exchange(tw_, {});
    return tw.core == nullptr ? outcome::stale : as_outcome(tw_record_writer_finish(&tw, nullptr));
  }
  /// Ends the stream with the error of its function.
  outcome fail(const error &why) requires(!std::is_void_v<typename Method::error>) {
    tw_record_writer tw = std::exchange(tw_, {});
    if (tw.core == nullptr) {
      return outcome::stale;
    }
    detail::call_message message(
        {tw.core, 0, 0, nullptr}); // the call has ended: it has no resources
    detail::write_message<error>(&message, Method::entry()->error, why);
    return as_outcome(tw_record_writer_fail(&tw, &message, nullptr));
  }
  /// Ends the stream as `outcome::guest_lost`, with a reason.
  outcome abort(std::string_view reason) noexcept {
    tw_record_writer tw = std::exchange(tw_, {});
    return tw.core == nullptr
               ? outcome::stale
               : as_outcome(tw_record_writer_abort(&tw, reason.data(), reason.size(), nullptr));
  }

private:
  template <class> friend class incoming;

  template <class Write> result<void> write(Write run) {
    tw_error why;
    const std::uint32_t code =
        tw_.core == nullptr ? tw_fail(&why, TW_STALE, "the stream has ended or was never set")
                            : run(&why);
    return detail::as_result(code, why);
  }
  static outcome as_outcome(std::uint32_t code) noexcept {
    return static_cast<outcome>(code);
  }
  tw_record_writer tw_{};
};

} // namespace THALWEG_VIEW_MODE
} // namespace thalweg
