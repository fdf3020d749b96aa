## Waiting for the first of several operations.
##
## A `Select` tells which operation is ready; the caller then executes it with `trySend` or
## `tryReceive`. Another thread may be faster, so that it fails: the caller selects again. An operation
## on a closed channel is ready. The macros do all of this.

import system except Channel
import std/[asyncdispatch, macros]
import "."/[asynchronous, blocking, cancellation, channel, clock]
import "."/[event_loop, notifier, queue, wait_list]

type
  Operation = object
    channel: Channel[byte] ## Keeps the queue alive. The type of its messages does not matter here.
    sends: bool
  Select* = object
    operations: seq[Operation]
    next: int ## Where the search for a ready operation starts, so that none starves.

const NoneReady* = -1
  ## The result of a `ready` call at its timeout.

var state {.threadvar.}: uint32

proc random(): int =
  ## Marsaglia's xorshift with 32 bits.
  if state == 0: state = uint32(now() and 0xffff_ffff) or 1
  state = state xor (state shl 13)
  state = state xor (state shr 17)
  state = state xor (state shl 5)
  int(state shr 1)

proc initSelect*(): Select =
  # The start is random, because a program may create a new `Select` for each choice.
  Select(next: random())

proc add(select: var Select, queue: ptr Queue, sends: bool): int =
  retain(queue)
  select.operations.add(Operation(channel: Channel[byte](queue: queue), sends: sends))
  select.operations.high

proc recv*[T](select: var Select, channel: Channel[T]): int =
  ## Adds the operation "receive from `channel`". Returns its index.
  select.add(channel.required, sends = false)

proc send*[T](select: var Select, channel: Channel[T]): int =
  ## Adds the operation "send to `channel`". Returns its index.
  select.add(channel.required, sends = true)

proc list(operation: Operation): ptr WaitList =
  let queue = operation.channel.queue
  if operation.sends: addr queue.senders else: addr queue.receivers

proc isReady(operation: Operation): bool =
  let queue = operation.channel.queue
  (if operation.sends: queue.hasCapacity(queue) else: queue.hasValue(queue)) or
    operation.list[].isClosed

proc findReady(select: var Select): int =
  let count = select.operations.len
  for i in 0 ..< count:
    let index = (select.next + i) mod count
    if select.operations[index].isReady:
      select.next = index + 1
      return index
  NoneReady

proc passOnOthers(select: Select, chosen: int) =
  ## This select may have been woken for an operation that it did not choose.
  for index, operation in select.operations:
    if index != chosen: operation.channel.queue.passOn(operation.sends)

proc blockingReady*(select: var Select, timeout = -1): int =
  ## The index of a ready operation. Blocks the thread until there is one, at most for `timeout`
  ## milliseconds, and then returns `NoneReady`.
  let deadline = deadlineIn(timeout)
  let notifier = thisNotifier()
  var waiters = newSeq[Waiter](select.operations.len)
  while true:
    result = select.findReady()
    if result != NoneReady: return
    notifier.prepare()
    for index, operation in select.operations:
      waiters[index] = Waiter()
      waiters[index].initThread(notifier)
      let count = operation.channel.queue.transferred(operation.sends)
      operation.list[].arm(addr waiters[index], count)
    result = select.findReady()
    let woken = result != NoneReady or notifier.park(deadline)
    for waiter in waiters.mitems: discard disarm(addr waiter)
    if result == NoneReady: result = select.findReady()
    if result != NoneReady or not woken:
      select.passOnOthers(result)
      return

proc ready*(select: Select, timeout = -1, scope: CancelScope = nil): Future[int] =
  ## Like `blockingReady`, as a future. It fails with `CancelledError` if the scope is cancelled.
  let future = newFuture[int]("ready")
  result = future
  var state = select
  proc attempt(): bool =
    let index = state.findReady()
    result = index != NoneReady
    if result:
      state.passOnOthers(index)
      future.complete(index)
  if scope != nil and scope.cancelled:
    try: scope.checkCancelled()
    except CancelledError as error: future.fail(error)
    return
  if attempt(): return
  let wait = newWait(attempt, proc (error: ref CatchableError) =
    state.passOnOthers(NoneReady)
    if error of ChannelTimeoutError: future.complete(NoneReady)
    else: future.fail(error))
  for operation in select.operations: wait.addSide(operation.channel.queue, operation.sends)
  wait.start(timeout, scope)

proc remaining*(deadline: int64): int =
  ## The milliseconds until a deadline, rounded up; -1 without one.
  if deadline == Never: -1 else: int(max(0, (deadline - now() + 999_999) div 1_000_000))

proc isOver*[T](channel: Channel[T]): bool =
  ## Whether nothing more can be received.
  channel.isClosed and channel.queue.isDrained(channel.queue)

proc expand(arms: NimNode, ready: proc (select, timeout: NimNode): NimNode {.nimcall.}): NimNode =
  ## Each arm is `channel.recv() -> (name): body`, `channel.send(value) -> (): body`, or
  ## `timeout(milliseconds) -> (): body`.
  let select = genSym(nskVar, "select")
  let chosen = genSym(nskVar, "chosen")
  let index = genSym(nskLet, "index")
  let deadline = genSym(nskVar, "deadline")
  let setUp = newStmtList()
  let tries = newNimNode(nnkIfStmt)
  let bodies = newNimNode(nnkIfStmt)
  var number = 0
  for arm in arms:
    if arm.kind != nnkInfix or arm.len != 4 or $arm[0] != "->" or arm[1].kind != nnkCall:
      error("an arm is `channel.recv() -> (name): body`, `channel.send(value) -> (): body`, " &
        "or `timeout(milliseconds) -> (): body`", arm)
    let (call, names, body) = (arm[1], arm[2], arm[3])
    if call[0].kind == nnkIdent and call[0].eqIdent("timeout") and call.len == 2:
      setUp.add(newAssignment(deadline, newCall(bindSym"deadlineIn", call[1])))
      bodies.add(newTree(nnkElifBranch, infix(chosen, "==", bindSym"NoneReady"), body))
      continue
    let channel = genSym(nskLet, "channel")
    setUp.add(newLetStmt(channel, call[0][0]))
    let position = newLit(number)
    let take = newStmtList()
    let operation = call[0][1]
    if operation.eqIdent("recv") and call.len == 1:
      let value = genSym(nskVar, "value")
      setUp.add(quote do:
        discard recv(`select`, `channel`)
        var `value`: typeof(blockingRecv(`channel`)))
      take.add(quote do:
        if tryReceive(`channel`, `value`): `chosen` = `position`
        elif isOver(`channel`): raise newClosedError(sends = false))
      let received = newStmtList()
      if names.len == 1:
        received.add(newLetStmt(names[0], newCall(bindSym"move", value)))
      received.add(body)
      bodies.add(newTree(nnkElifBranch, infix(chosen, "==", position), received))
    elif operation.eqIdent("send") and call.len == 2:
      let value = call[1]
      setUp.add(quote do:
        discard send(`select`, `channel`))
      take.add(quote do:
        if trySend(`channel`, `value`): `chosen` = `position`
        elif isClosed(`channel`): raise newClosedError(sends = true))
      bodies.add(newTree(nnkElifBranch, infix(chosen, "==", position), body))
    else:
      error("an operation is `recv()` or `send(value)`", call)
    tries.add(newTree(nnkElifBranch, infix(index, "==", position), take))
    inc number
  tries.add(newTree(nnkElse, newAssignment(chosen, bindSym"NoneReady")))
  let wait = ready(select, newCall(bindSym"remaining", deadline))
  quote do:
    block:
      var `select` = initSelect()
      var `deadline` = Never
      var `chosen` = -2
      `setUp`
      while `chosen` == -2:
        let `index` = `wait`
        `tries`
      `bodies`

macro select*(arms: untyped): untyped =
  ## Awaits the first of several operations, executes it, and runs its body:
  ##
  ## .. code-block:: nim
  ##   select:
  ##     words.recv() -> (word): echo word
  ##     numbers.send(7) -> (): echo "sent"
  ##     timeout(1000) -> (): echo "nothing happened"
  ##
  ## Raises `ChannelClosedError` if the channel of a ready operation is closed.
  expand(arms, proc (select, timeout: NimNode): NimNode =
    newCall(ident"await", newCall(bindSym"ready", select, timeout)))

macro blockingSelect*(arms: untyped): untyped =
  ## Like `select`, and blocks the thread.
  expand(arms, proc (select, timeout: NimNode): NimNode =
    newCall(bindSym"blockingReady", select, timeout))
