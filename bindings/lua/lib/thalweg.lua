--- Thalweg for Lua in nginx. Programs require the package that `thalweg gen` writes for a service;
-- this module has what all those packages share.
local abort = require "thalweg.abort"
local cancel = require "thalweg.cancel"
local errors = require "thalweg.errors"
local metrics = require "thalweg.metrics"
local upstream = require "thalweg.upstream"

return {
  --- Stands for an option without a value in a list or a stream. It is `ngx.null`.
  null = require "thalweg.null",
  --- For a parameter that is a future: it ends without a value.
  no_value = upstream.no_value,
  --- Creates a token for the option `cancel` of calls. `token:cancel()` cancels them.
  cancel_token = cancel.new,
  --- Cancels the calls of this request and closes its streams. Call it in your own function of
  -- `ngx.on_abort`; without such a function, it is called for you.
  cancel_request = abort.cancel_request,
  --- The counters of this worker's libraries, in the text format of Prometheus.
  metrics = metrics.text,
  --- Whether a value is an error of this package.
  is_error = errors.is,
}
