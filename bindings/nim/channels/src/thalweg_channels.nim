## Channels between threads and tasks, with the names of nimsync.

import thalweg_channels/[asynchronous, blocking, cancellation, channel, select, streams, task_group]

export blocking, streams, task_group
export asynchronous except start
export cancellation except onCancel, removeOnCancel
export channel except content, newClosedError, newTimeoutError, passOn, pop, push, raiseNoChannel, required,
  transferred
export select except isOver, remaining
