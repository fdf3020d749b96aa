/* Opens and closes everything repeatedly: soak LIBRARY ROUNDS. A round has a client with its port,
 * a call, a resource, a constructor that fails, and a stream that is closed with a batch open and
 * retained. After the first tenth of the rounds, memory and descriptors must not grow. */
#include <dirent.h>
#include <unistd.h>

#include "host.h"

/* The growth of the allocator's own memory that is tolerated, in bytes. */
#define SLACK (INT64_C(6) << 20)

static int64_t resident(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  long long all = 0;
  long long pages = 0;
  if (file == NULL || fscanf(file, "%lld %lld", &all, &pages) != 2) {
    fprintf(stderr, "/proc/self/statm cannot be read\n");
    exit(1);
  }
  fclose(file);
  return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static int descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  if (folder == NULL) {
    fprintf(stderr, "/proc/self/fd cannot be read\n");
    exit(1);
  }
  while (readdir(folder) != NULL) {
    count++;
  }
  closedir(folder);
  return count;
}

static void one_round(uint64_t number) {
  conformance_client client = open_client(4);
  conformance_echo_u64_result echoed;
  conformance_counter_new_result counter;
  conformance_even_new_result even;
  conformance_endless_result endless;
  conformance_u64_batch batch;
  tw_handle kept = 0;
  tw_error error;
  REQUIRE_OK(conformance_echo_u64(&client, number, TW_FOREVER, &echoed, &error), error);
  CHECK(echoed.ok == number);
  tw_reply_release(&echoed.reply);
  REQUIRE_OK(conformance_counter_new(&client, number, TW_FOREVER, &counter, &error), error);
  tw_reply_release(&counter.reply);
  CHECK_CODE(conformance_even_new(&client, 1, TW_FOREVER, &even, &error), TW_ERROR);
  tw_reply_release(&even.reply);
  REQUIRE_OK(conformance_endless(&client, TW_FOREVER, &endless, &error), error);
  tw_reply_release(&endless.reply);
  REQUIRE_OK(conformance_u64_stream_acquire(&endless.ok, 16, TW_FOREVER, &batch, &error), error);
  REQUIRE_OK(client.tw.table->stream_retain_batch(endless.ok.tw.handle, &kept, &error), error);
  CHECK_CODE(conformance_u64_stream_close(&endless.ok, &error), TW_OK);
  CHECK(*conformance_u64_batch_at(&batch, 0) == 0);
  CHECK_CODE(client.tw.table->retained_batch_release(kept, &error), TW_OK);
  CHECK_CODE(conformance_counter_close(&counter.ok, &error), TW_OK);
  close_client(&client);
}

int main(int argc, char **argv) {
  uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
  uint64_t first = rounds / 10;
  uint64_t round;
  int64_t memory = 0;
  int64_t grown;
  int files = 0;
  open_library(argc, argv);
  if (first == 0) {
    fprintf(stderr, "usage: %s LIBRARY ROUNDS, 10 at least\n", argv[0]);
    return 2;
  }
  for (round = 0; round < rounds; round++) {
    if (round == first) {
      memory = resident();
      files = descriptors();
    }
    one_round(round);
  }
  grown = resident() - memory;
  printf("soak: %llu rounds: %lld bytes and %d descriptors more than after %llu\n",
         (unsigned long long)rounds, (long long)grown, descriptors() - files,
         (unsigned long long)first);
  CHECK(grown < SLACK);
  CHECK(descriptors() == files);
  return done("soak");
}
