/// Calls the service from C++: hello-cpp LIBRARY. All hosts print the same output.
#include <cstdio>

#include "hello.hpp"

namespace {

void print(const thalweg::text &text) {
  std::printf("%.*s\n", static_cast<int>(text.size()), text.data());
}

void greet(const hello::client &client, const hello::person &person, hello::tone tone) {
  auto greeting = client.greet(person, tone).get();
  if (greeting) {
    print(**greeting);
  } else if (greeting.error().payload() != nullptr &&
             greeting.error().payload()->get_if<hello::hello_error::no_name>() != nullptr) {
    std::puts("refused: no name");
  } else {
    greeting.value();
  }
}

void arrive(const hello::guests &guests) {
  auto people = guests.arrive().get().value();
  for (const auto batch : people) {
    for (const hello::person &person : batch) {
      std::printf("%.*s arrives", static_cast<int>(person.name.size()), person.name.data());
      if (person.age) {
        std::printf(", %u", static_cast<unsigned>(*person.age));
      }
      std::puts("");
    }
  }
  people.status().value();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fputs("usage: hello-cpp LIBRARY\n", stderr);
    return 2;
  }
  try {
    const hello::client client = hello::client::open(argv[1]).value();
    const hello::person people[] = {{.name = "Ada", .age = 36}, {.name = "Grace"}};
    greet(client, people[0], hello::tone::friendly);
    greet(client, people[1], hello::tone::formal);
    greet(client, {.name = ""}, hello::tone::formal);
    const hello::guests guests = client.guests(people).get().value();
    std::printf("%u guests\n", static_cast<unsigned>(guests.count().get().value()));
    arrive(guests);
    const auto greetings = client.greet_all(guests).get().value();
    for (const thalweg::text &greeting : *greetings) {
      print(greeting);
    }
    const std::uint64_t greeted = client.greeted().get().value();
    std::printf("greeted %llu\n", static_cast<unsigned long long>(greeted));
  } catch (const thalweg::exception &failed) {
    std::fprintf(stderr, "hello-cpp: %s\n", failed.what());
    return 1;
  }
  return 0;
}
