/* Calls the service from C: hello-c LIBRARY. All hosts print the same output. */
#include "hello.h"

static uint32_t greet(const hello_client *client, const hello_person_in *person, hello_tone tone,
                      tw_error *error) {
  hello_greet_result result;
  uint32_t code = hello_greet(client, person, tone, TW_FOREVER, &result, error);
  if (code == TW_OK) {
    printf("%.*s\n", (int)result.ok.size, result.ok.data);
  } else if (code == TW_ERROR && result.error->tag == HELLO_HELLO_ERROR_NO_NAME) {
    puts("refused: no name");
    code = TW_OK;
  }
  tw_reply_release(&result.reply);
  return code;
}

static uint32_t arrive(const hello_client *client, hello_guests guests, tw_error *error) {
  hello_guests_arrive_result result;
  hello_person_batch batch;
  uint32_t i;
  uint32_t code = hello_guests_arrive(client, guests, TW_FOREVER, &result, error);
  if (code == TW_OK) {
    while ((code = hello_person_stream_acquire(&result.ok, 16, TW_FOREVER, &batch, error)) ==
           TW_OK) {
      for (i = 0; i < batch.tw.count; i++) {
        const hello_person *person = hello_person_batch_at(&batch, i);
        tw_text name = hello_person_name(batch.tw.base, person);
        printf("%.*s arrives", (int)name.size, name.data);
        if (person->age.some) {
          printf(", %u", (unsigned)person->age.value);
        }
        puts("");
      }
      hello_person_stream_release(&result.ok, batch.tw.count, error);
    }
    hello_person_stream_close(&result.ok, NULL);
  }
  tw_reply_release(&result.reply);
  return code == TW_CLOSED ? TW_OK : code;
}

static uint32_t greet_all(const hello_client *client, hello_guests guests, tw_error *error) {
  hello_greet_all_result result;
  uint32_t i;
  uint32_t code = hello_greet_all(client, guests, TW_FOREVER, &result, error);
  if (code == TW_OK) {
    for (i = 0; i < result.ok.count; i++) {
      tw_text text = hello_list_string_at(result.reply.base, result.ok, i);
      printf("%.*s\n", (int)text.size, text.data);
    }
  }
  tw_reply_release(&result.reply);
  return code;
}

static uint32_t show(const hello_client *client, tw_error *error) {
  hello_person_in people[2];
  hello_person_in nobody;
  hello_list_person_in invited;
  hello_guests_new_result created;
  hello_guests_count_result counted;
  hello_greeted_result greeted;
  uint32_t code;
  people[0].name = tw_text_of("Ada");
  people[0].age.some = true;
  people[0].age.value = 36;
  people[1].name = tw_text_of("Grace");
  people[1].age.some = false;
  people[1].age.value = 0;
  nobody = people[1];
  nobody.name = tw_text_of("");
  invited.items = people;
  invited.count = 2;

  code = greet(client, &people[0], HELLO_TONE_FRIENDLY, error);
  code = code == TW_OK ? greet(client, &people[1], HELLO_TONE_FORMAL, error) : code;
  code = code == TW_OK ? greet(client, &nobody, HELLO_TONE_FORMAL, error) : code;
  if (code != TW_OK) {
    return code;
  }
  code = hello_guests_new(client, invited, TW_FOREVER, &created, error);
  if (code == TW_OK) {
    code = hello_guests_count(client, created.ok, TW_FOREVER, &counted, error);
    if (code == TW_OK) {
      printf("%" PRIu32 " guests\n", counted.ok);
    }
    tw_reply_release(&counted.reply);
    code = code == TW_OK ? arrive(client, created.ok, error) : code;
    code = code == TW_OK ? greet_all(client, created.ok, error) : code;
    hello_guests_close(&created.ok, NULL);
  }
  tw_reply_release(&created.reply);
  if (code == TW_OK) {
    code = hello_greeted(client, TW_FOREVER, &greeted, error);
    if (code == TW_OK) {
      printf("greeted %" PRIu64 "\n", greeted.ok);
    }
    tw_reply_release(&greeted.reply);
  }
  return code;
}

int main(int argc, char **argv) {
  hello_library library;
  hello_client client;
  tw_error error;
  uint32_t code;
  if (argc != 2) {
    fputs("usage: hello-c LIBRARY\n", stderr);
    return 2;
  }
  code = hello_open(argv[1], &library, &error);
  if (code == TW_OK) {
    code = hello_client_open(&library, 1, &client, &error);
  }
  if (code == TW_OK) {
    code = show(&client, &error);
    hello_client_close(&client, NULL);
  }
  if (code != TW_OK) {
    fprintf(stderr, "hello-c: %s: %s\n", tw_code_name(code), error.message);
    return 1;
  }
  return 0;
}
