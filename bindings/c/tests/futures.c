/* Futures. */
#include "host.h"

static conformance_client client;

static conformance_string_future later(uint32_t milliseconds) {
  conformance_later_result result;
  tw_error error;
  REQUIRE_OK(
      conformance_later(&client, milliseconds, tw_text_of("text"), TW_FOREVER, &result, &error),
      error);
  return result.ok;
}

static void value_of_a_future_is_valid_until_close(void) {
  uint32_t wait;
  for (wait = 0; wait <= 20; wait += 20) {
    conformance_string_future future = later(wait);
    const tw_slice *value;
    tw_batch batch;
    tw_error error;
    CHECK_CODE(conformance_string_future_wait(&future, TW_FOREVER, &batch, &value, &error), TW_OK);
    CHECK(value && tw_text_equal(tw_text_view(batch.base, *value), tw_text_of("text")));
    CHECK_CODE(conformance_string_future_close(&future, &error), TW_OK);
    CHECK_CODE(conformance_string_future_close(&future, &error), TW_OK);
  }
}

static void future_can_be_waited_for_again_after_a_deadline(void) {
  conformance_string_future future = later(60000);
  const tw_slice *value;
  tw_batch batch;
  tw_error error;
  const uint64_t soon = library.table->now() + MILLISECOND;
  CHECK_CODE(conformance_string_future_wait(&future, soon, &batch, &value, &error), TW_TIMED_OUT);
  CHECK(!value);
  CHECK_CODE(conformance_string_future_close(&future, &error), TW_OK);
}

static void future_without_a_value_returns_the_reason(void) {
  conformance_option_string_in message;
  conformance_never_comes_result result;
  const conformance_point *value;
  tw_batch batch;
  tw_error error;
  memset(&message, 0, sizeof(message));
  REQUIRE_OK(conformance_never_comes(&client, &message, TW_FOREVER, &result, &error), error);
  CHECK_CODE(conformance_point_future_wait(&result.ok, TW_FOREVER, &batch, &value, &error),
             TW_GUEST_LOST);
  CHECK_CODE(conformance_point_future_close(&result.ok, &error), TW_OK);
  message.some = true;
  message.value = tw_text_of("no future");
  REQUIRE_OK(conformance_never_comes(&client, &message, TW_FOREVER, &result, &error), error);
  CHECK_CODE(conformance_point_future_wait(&result.ok, TW_FOREVER, &batch, &value, &error),
             TW_GUEST_PANICKED);
  CHECK(strstr(error.message, "no future"));
  CHECK_CODE(conformance_point_future_close(&result.ok, &error), TW_OK);
}

int main(int argc, char **argv) {
  open_library(argc, argv);
  client = open_client(16);
  RUN(value_of_a_future_is_valid_until_close);
  RUN(future_can_be_waited_for_again_after_a_deadline);
  RUN(future_without_a_value_returns_the_reason);
  close_client(&client);
  return done("futures");
}
