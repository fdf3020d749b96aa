## Events: streams whose records are sent to all that have subscribed.

import ../errors
import writers

type
  Subscriber = object
    event: string
    writer: AnyWriter

  Subscribers* = object
    ## The subscribers of the events of an object. Their streams end with it.
    all: seq[Subscriber]

proc `=destroy`(subscribers: var Subscribers) =
  for subscriber in subscribers.all: subscriber.writer.finish()
  `=destroy`(subscribers.all)

proc add*(subscribers: var Subscribers, event: string, writer: AnyWriter) =
  subscribers.all.add Subscriber(event: event, writer: writer)

proc emit*[T](subscribers: var Subscribers, event: string, value: T) =
  ## Sends a record to each subscriber. One that has left is removed.
  var at = 0
  while at < subscribers.all.len:
    let subscriber = subscribers.all[at]
    inc at
    if subscriber.event == event:
      try: discard RecordWriter[T](subscriber.writer).trySend(value)
      except ThalwegError:
        dec at
        subscribers.all.delete(at)
