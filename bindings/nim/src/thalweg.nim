## Calls services in Thalweg libraries. `thalweg gen` writes a module for each package, which uses
## this one. See docs/nim.md.

import thalweg/[call, cancel, client, errors, stream, table, upstream]

export call.CallOptions, call.within
export cancel.CancelToken, cancel.CancelHandle, cancel.newCancelToken, cancel.handle, cancel.cancel,
  cancel.isCancelled
export client.Client, client.ClientHandle, client.Resource, client.handle, client.isOpen,
  client.close
export errors.Outcome, errors.ThalwegError, errors.ServiceError, errors.Nothing, errors.Result,
  errors.ok, errors.err, errors.attempt, errors.attemptLater, errors.`$`, errors.`==`
export stream except getFuture, getStream
export table.StreamStats
export upstream except openWriter, putStream
