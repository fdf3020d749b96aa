## Tasks that end together.

import std/asyncdispatch
import cancellation

type
  TaskPolicy* = enum
    FailFast     ## The first error cancels the other tasks, and `wait` raises it.
    CollectErrors ## All tasks run to their end, and `wait` raises a `TaskGroupError` with all errors.
    IgnoreErrors ## All tasks run to their end, and `wait` raises nothing.

  TaskGroupError* = object of CatchableError
    errors*: seq[ref Exception]

  TaskGroup* = ref object
    scope*: CancelScope ## Cancelled with the group. Tasks pass it to the calls that wait.
    policy: TaskPolicy
    running, completed, failed, cancelled: int
    errors: seq[ref Exception]
    ended: Future[void] ## Set while somebody waits.

proc newTaskGroup*(policy = FailFast, parent: CancelScope = nil): TaskGroup =
  ## An empty group. It is cancelled with `parent`.
  TaskGroup(policy: policy, scope: initCancelScope(parent))

proc len*(group: TaskGroup): int = group.running + group.completed + group.failed + group.cancelled
proc running*(group: TaskGroup): int = group.running
proc completed*(group: TaskGroup): int = group.completed
proc failed*(group: TaskGroup): int = group.failed
proc cancelled*(group: TaskGroup): int = group.cancelled
proc getErrors*(group: TaskGroup): seq[ref Exception] = group.errors

proc cancel*(group: TaskGroup, reason = CancelReason.Manual) =
  ## Cancels the scope of the group. `wait` still waits until every task has ended.
  group.scope.cancel(reason)

proc finish(group: TaskGroup) =
  let ended = move group.ended
  if group.errors.len == 0 or group.policy == IgnoreErrors:
    if not group.scope.cancelled: group.scope.complete()
    ended.complete()
  elif group.policy == FailFast:
    ended.fail(group.errors[0])
  else:
    let error = newException(TaskGroupError, $group.errors.len & " tasks failed; the first: " &
      group.errors[0].msg)
    error.errors = group.errors
    ended.fail(error)

proc record(group: TaskGroup, error: ref Exception) =
  dec group.running
  if error == nil:
    inc group.completed
  elif error of CancelledError and group.scope.cancelled:
    inc group.cancelled
  else:
    inc group.failed
    group.errors.add(error)
    if group.policy == FailFast: group.scope.cancel(TaskError)
  if group.running == 0 and group.ended != nil: group.finish()

proc spawn*[T](group: TaskGroup, task: Future[T]): Future[T] {.discardable.} =
  ## Adds a task: the future of an async proc. Returns the future, for its value.
  inc group.running
  task.addCallback(proc () {.gcsafe.} = group.record(if task.failed: task.error else: nil))
  task

proc wait*(group: TaskGroup): Future[void] =
  ## Completes when every task has ended, and raises what the policy says.
  if group.ended == nil:
    group.ended = newFuture[void]("wait")
    result = group.ended
    if group.running == 0: group.finish()
  else:
    result = group.ended

template withTaskGroup*(group, body: untyped, policy = FailFast) =
  ## Runs `body` with a new group, and awaits the group.
  block:
    let group = newTaskGroup(policy)
    try: body
    except CatchableError:
      group.cancel(TaskError)
      raise
    await group.wait()
