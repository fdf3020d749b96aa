/* The streams of a hostile guest. A part of hostile.c. */
#ifndef HOSTILE_STREAMS_H
#define HOSTILE_STREAMS_H

static const uint32_t stream_codes = CODE(TW_OK) | CODE(TW_STALE) | CODE(TW_ARGUMENT) |
                                     CODE(TW_TIMED_OUT) | CODE(TW_CANCELLED) | CODE(TW_CLOSED) |
                                     CODE(TW_GUEST_PANICKED) | CODE(TW_GUEST_LOST) | CODE(TW_ERROR);

static void write_records(known_writer writer) {
  const bool numbers = writer.method == 11;
  const uint32_t flags = one_in(16) ? (uint32_t)any() : one_in(2) ? TW_WRITE_MORE : 0;
  const uint64_t deadline = one_in(2) ? 0 : core->now() + below(200000);
  uint32_t count = below(6);
  uint32_t real = count;
  uint32_t written = 0;
  uint32_t root;
  uint32_t code;
  hostile_message message;
  tw_writer records;
  tw_error error;
  root = tw_writer_begin(&records, 0, 0, count * (numbers ? 8 : 20));
  for (uint32_t i = 0; i < count; i++) {
    if (numbers) {
      uint64_t number = any();
      tw_put(&records, root + 8 * i, &number, sizeof(number));
    } else {
      hostile_point_in point = some_point();
      hostile_point_write(&records, root + 20 * i, &point);
    }
  }
  keep_message(&message, &records);
  if (one_in(4)) {
    mutate(&message, any_handle);
  }
  switch (below(16)) {
  case 0:
    root = (uint32_t)any();
    break;
  case 1:
    count = (uint32_t)any();
    break;
  case 2:
    message.size = any();
    if (message.size < UINT64_C(1) << 63) {
      message.data = NULL; /* otherwise the core would have to read what does not exist */
    }
    break;
  default:
    break;
  }
  if (message.data && message.size > MESSAGE_ROOM && message.size < UINT64_C(1) << 63) {
    message.size = MESSAGE_ROOM;
  }
  code = core->stream_write(writer.writer, message.data, message.size, root, count, flags, deadline,
                            &written, &error);
  expect("stream_write", code, stream_codes | CODE(TW_WOULD_PARK));
  if (written > count || (code == TW_OK && written != count)) {
    violation("stream_write has written another number of records", written);
  }
  if (numbers && writer.id < LEDGER_CALLS && written <= real + MESSAGE_ROOM / 8) {
    for (uint32_t i = 0; i < written; i++) {
      uint64_t number;
      memcpy(&number, message.data + root + 8 * (size_t)i, sizeof(number));
      atomic_fetch_add(&hostile_ledger.calls[writer.id].sum, number);
    }
  }
}

/* Writes records into the stream's memory. Only for a writer that no other thread has. */
static void write_places(known_writer writer) {
  const bool numbers = writer.method == 11;
  const uint64_t deadline = one_in(2) ? 0 : core->now() + below(200000);
  uint32_t flags = one_in(2) ? TW_WRITE_MORE : 0;
  uint32_t count = 0;
  uint32_t given;
  uint64_t sum = 0;
  tw_record_space space;
  tw_writer record;
  tw_error error;
  uint32_t code = core->stream_reserve(
      writer.writer, one_in(8) ? UINT32_MAX - below(1u << 31) : below(one_in(8) ? 100000 : 200),
      deadline, &space, &error);
  expect("stream_reserve", code, stream_codes | CODE(TW_WOULD_PARK));
  if (code != TW_OK) {
    return;
  }
  memset(&record, 0, sizeof(record));
  record.data = space.base;
  record.size = space.tails;
  record.capacity = space.tails_end;
  record.is_fixed = true;
  while (count < space.count && count < 6 && !one_in(4)) {
    const uint32_t at = space.first + count * space.stride;
    const uint32_t tails = record.size;
    memset(space.base + at, 0, space.stride);
    if (numbers) {
      uint64_t number = any();
      tw_put(&record, at, &number, sizeof(number));
      sum += number;
    } else {
      hostile_point_in point = some_point();
      hostile_point_write(&record, at, &point);
    }
    if (record.status != TW_OK) {
      record.size = tails;
      break;
    }
    count++;
  }
  if (one_in(4) && count > 0 && !numbers) {
    const uint32_t bit = below(count * space.stride * 8);
    space.base[space.first + bit / 8] ^= (uint8_t)(1u << (bit % 8));
  } else if (one_in(4)) {
    flags |= TW_WRITE_TRUSTED;
  }
  given = one_in(16) ? space.count + 1 + below(1000) : count;
  if (one_in(16)) {
    record.size = one_in(2) ? space.tails_end + 1 + below(1000) : space.tails - 1;
  }
  code = core->stream_commit(writer.writer, given, record.size, one_in(16) ? flags | 64u : flags,
                             &space, &error);
  expect("stream_commit", code, stream_codes);
  if (code == TW_OK && numbers && writer.id < LEDGER_CALLS) {
    atomic_fetch_add(&hostile_ledger.calls[writer.id].sum, sum);
  }
  if (one_in(4)) {
    /* What is left was reserved. */
    expect("stream_commit", core->stream_commit(writer.writer, 0, space.tails, 0, &space, &error),
           stream_codes);
  }
}

static void finish_writer(known_writer writer) {
  tw_error error;
  switch (below(4)) {
  case 0:
    expect("stream_abort", core->stream_abort(writer.writer, "\xff reason", below(9), &error),
           stream_codes);
    break;
  case 1: {
    hostile_message message;
    make_error(5, &message);
    if (one_in(2)) {
      mutate(&message, any_handle);
    }
    expect("stream_fail", core->stream_fail(writer.writer, message.data, message.size, &error),
           stream_codes);
    break;
  }
  default:
    expect("stream_finish", core->stream_finish(writer.writer, &error), stream_codes);
    break;
  }
}

/* Writes into a stream, and ends it or keeps its writer. */
static void write_stream(known_writer writer) {
  uint32_t times = below(12);
  while (times-- > 0) {
    if (one_in(2)) {
      write_records(writer);
    } else {
      write_places(writer);
    }
  }
  if (one_in(4)) {
    remember_writer(writer);
    return;
  }
  do {
    finish_writer(writer);
  } while (one_in(3));
  if (one_in(2)) {
    write_records(writer);
  }
  /* Whatever that was, it has an end. */
  core->stream_finish(writer.writer, NULL);
}

static known_writer answer_stream(const known_call *call) {
  known_writer writer;
  tw_error error;
  uint32_t returned;
  writer.writer = 0;
  writer.id = call->id;
  writer.method = call->method;
  returned = core->answer_stream(call->call, &writer.writer, &error);
  if (expect("answer_stream", returned, CODE(TW_OK) | CODE(TW_STALE) | CODE(TW_ARGUMENT)) ==
      TW_OK) {
    ended(call, TW_OK, 0);
  }
  return writer;
}

#endif
