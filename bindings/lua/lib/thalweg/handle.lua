--- Clients and resources: the classes of generated packages.
--
-- A handle is closed by `close`, or when it is garbage. A resource refers to its client, which stays
-- open as long as it. Names of the package have no `_` at their beginning, so that fields with one do
-- not hide methods of the service.
local M = {}

--- A class of clients or resources. `name` is for errors.
function M.class(name)
  local class = { _name = name }
  class.__index = class

  --- Closes the handle. Closing twice has no effect.
  function class.close(self)
    self._port:close_cell(self._cell)
    if self._host then
      self._host:close()
    end
  end

  return class
end

--- Creates an object for a handle. A client is its own client.
function M.new(class, port, number, client)
  local self = setmetatable({ _port = port, _cell = port:cell(number) }, class)
  self._client = client or self
  return self
end

return M
