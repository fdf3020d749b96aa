--- For generated packages.
require "thalweg.stream"

return {
  call = require "thalweg.call",
  class = require("thalweg.handle").class,
  new_table = require "table.new",
  null = require "thalweg.null",
  package = require("thalweg.package").new,
}
