## Calls the service from Nim: hello_host LIBRARY. All hosts print the same output.
##
## `thalweg gen` writes ../../generated/nim.
import std/[options, os]
import hello

proc show(library: string) =
  ## Calls every function of the service.
  let client = HelloClient.open(library)
  let (ada, grace) = (Person(name: "Ada", age: some(36'u8)), Person(name: "Grace"))
  echo client.greet(ada, Tone.friendly)
  echo client.greet(grace, Tone.formal)
  try:
    discard client.greet(Person(), Tone.formal)
  except ServiceError[HelloError] as refused:
    if refused.payload.kind == HelloErrorKind.noName: echo "refused: no name"
  let guests = client.newGuests(@[ada, grace])
  echo guests.count, " guests"
  for guest in guests.arrive:
    echo guest.name, " arrives", if guest.age.isSome: ", " & $guest.age.get else: ""
  for greeting in client.greetAll(guests): echo greeting
  echo "greeted ", client.greeted
  guests.close()
  client.close()

if paramCount() != 1:
  stderr.writeLine("usage: hello_host LIBRARY")
  quit(2)
try: show(paramStr(1))
except ThalwegError as failed:
  stderr.writeLine("hello_host: " & failed.msg)
  quit(1)
