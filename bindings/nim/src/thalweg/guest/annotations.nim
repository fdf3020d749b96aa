## The pragma `{.thalweg.}`, and the macros that find the procs with it.

import std/macros
import calls

type
  Annotation* = object
    ## A proc or a type with the pragma.
    name*: string
    definition*: NimNode
    isServed*: bool

var annotations* {.compileTime.}: seq[Annotation]

proc nameOf(node: NimNode): string =
  ## The name in a definition: without the star, pragmas and backticks.
  case node.kind
  of nnkPostfix: nameOf(node[1])
  of nnkPragmaExpr, nnkAccQuoted, nnkOpenSymChoice, nnkClosedSymChoice: nameOf(node[0])
  else: node.strVal

macro thalweg*(definition: untyped): untyped =
  ## Marks a proc as a function of the service.
  annotations.add Annotation(name: nameOf(definition[0]), definition: definition.copyNimTree)
  definition

proc serve(name: string): bool =
  ## Whether there are procs with this name. They are functions of the service.
  for annotation in annotations.mitems:
    if eqIdent(annotation.name, name):
      annotation.isServed = true
      result = true

proc invocation(name: string, arguments: seq[NimNode]): NimNode =
  newCall(ident(name), arguments)

proc choice(calls: seq[NimNode], otherwise: NimNode): NimNode =
  ## The first call that compiles.
  result = newNimNode(nnkWhenStmt)
  for call in calls:
    result.add nnkElifBranch.newTree(newCall(ident"compiles", call), call)
  result.add nnkElse.newTree(otherwise)

proc mistake(text: string): NimNode =
  nnkPragma.newTree(nnkExprColonExpr.newTree(ident"error", newLit(text)))

proc invoke*(function, wanted: string, call, self, made: NimNode): NimNode =
  ## `made`, a call of the proc that implements a function. `self` is nil if the receiver is among its
  ## arguments; otherwise, the proc may do without one. Its last parameter may be a `Call`.
  let name = nameOf(made[0])
  if not serve(name):
    return mistake("the guest does not implement " & function & "; write: " & wanted)
  let running = newCall(bindSym"newCall", call)
  let given = made[1 .. ^1]
  var calls: seq[NimNode]
  if self.kind != nnkNilLit: calls = @[invocation(name, self & given), invocation(name, self & given & running)]
  calls.add invocation(name, given)
  calls.add invocation(name, given & running)
  choice(calls, mistake("no proc `" & name & "` has the parameters of " & function & "; write: " &
    wanted))

proc receives(definition: NimNode, kind: string): bool =
  ## Whether the first parameter of a proc has this type.
  definition.kind in RoutineNodes and definition.params.len > 1 and
    definition.params[1][^2].kind == nnkIdent and eqIdent(definition.params[1][^2].strVal, kind)

macro newState*(S: untyped): untyped =
  ## A new state: of `newS`, if there is such a proc.
  let constructor = "new" & S.strVal
  if serve(constructor): newCall(ident(constructor)) else: newCall(S)

macro hook*(name: static string, arguments: varargs[untyped]): untyped =
  ## Calls a proc that is not in WIT, if the guest has it: `load`, `unload`, and `close` of a state,
  ## whose type is the first one of the arguments.
  result = nnkDiscardStmt.newTree(newEmptyNode())
  for annotation in annotations.mitems:
    if not annotation.isServed and eqIdent(annotation.name, name):
      if arguments.len == 0:
        result = newCall(ident(name))
        annotation.isServed = true
      elif annotation.definition.receives(arguments[0].strVal):
        result = newCall(ident(name), arguments[1])
        annotation.isServed = true

macro checkAnnotations*(): untyped =
  ## Refuses procs that nothing calls.
  for annotation in annotations:
    if not annotation.isServed and annotation.definition.kind in RoutineNodes:
      error("`" & annotation.name & "` is no function of the package, and no hook", annotation.definition)
