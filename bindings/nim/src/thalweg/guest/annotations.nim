## The pragma `{.thalweg.}`, and the macros that find the procs with it.

import std/[macros, strutils]
import calls, events, writers

type
  Annotation* = object
    ## A proc or a type with the pragma.
    name*: string
    definition*: NimNode
    options*: NimNode # Those of docs/policy.md; or nil.
    isServed*: bool

var marked* {.compileTime.}: seq[Annotation]

proc nameOf*(node: NimNode): string =
  ## The name in a definition: without the star, pragmas and backticks.
  case node.kind
  of nnkPostfix: nameOf(node[1])
  of nnkPragmaExpr, nnkAccQuoted, nnkOpenSymChoice, nnkClosedSymChoice: nameOf(node[0])
  else: node.strVal

proc annotate*(definition: NimNode, options: NimNode = nil) =
  marked.add Annotation(name: nameOf(definition[0]), definition: definition.copyNimTree,
    options: options)

proc isEvent*(definition: NimNode): bool =
  ## A proc without a body.
  if definition.kind notin RoutineNodes: return false
  for statement in definition.body:
    if statement.kind != nnkCommentStmt: return false
  true

proc eventProcs(definition: NimNode): NimNode =
  ## The procs of an event: one sends it, and one is called with the writer of a new subscriber. Its
  ## parameters but the receiver are its record, which has a type of its own unless it is one parameter.
  result = newStmtList()
  let name = definition[0]
  let params = definition.params
  var fields: seq[NimNode]
  for at in 1 ..< params.len:
    for field in 0 ..< params[at].len - 2: fields.add newIdentDefs(params[at][field], params[at][^2])
  if fields.len < 2 or params[0].kind != nnkEmpty:
    error("an event has a receiver, one parameter or more, and no result", definition)
  let receiver = fields[0]
  fields.delete(0)
  let record = if fields.len == 1: fields[0][1] else: ident(capitalizeAscii(nameOf(name)) & "Payload")
  if fields.len > 1:
    let list = newNimNode(nnkRecList)
    for field in fields: list.add newIdentDefs(newTree(nnkPostfix, ident"*", field[0]), field[1])
    let payload = newTree(nnkTypeDef, newTree(nnkPostfix, ident"*", record), newEmptyNode(),
      newTree(nnkObjectTy, newEmptyNode(), newEmptyNode(), list))
    annotate(payload)
    result.add newTree(nnkTypeSection, payload)
  var value = fields[0][0]
  if fields.len > 1:
    value = newTree(nnkObjConstr, record)
    for field in fields: value.add newColonExpr(field[0], field[0])
  let subscribers = newDotExpr(receiver[0], ident"subscribers")
  let event = newLit(nameOf(name))
  let writer = ident"writer"
  let writerType = newTree(nnkBracketExpr, bindSym"RecordWriter", record)
  result.add newProc(name, @[newEmptyNode(), receiver] & fields,
    newCall(bindSym"emit", subscribers, event, value))
  let served = newProc(name, @[newEmptyNode(), receiver, newIdentDefs(writer, writerType)],
    newStmtList(newCall(bindSym"add", subscribers, event, writer)))
  result.add served.copyNimTree
  for statement in definition.body: served.body.insert(0, statement) # Its documentation.
  annotate(served, newTree(nnkPar, newColonExpr(ident"overflow", newLit("drop-oldest"))))

proc subscribed(definition: NimNode): NimNode =
  ## The type of an object with the subscribers of its events.
  result = definition
  if definition[2].kind == nnkRefTy and definition[2][0].kind == nnkObjectTy:
    let objectType = definition[2][0]
    if objectType[2].kind == nnkEmpty: objectType[2] = newNimNode(nnkRecList)
    objectType[2].add newIdentDefs(ident"subscribers", bindSym"Subscribers")

proc annotated(definition, options: NimNode): NimNode =
  if definition.isEvent: return eventProcs(definition)
  annotate(definition, options)
  if definition.kind == nnkTypeDef: subscribed(definition) else: definition

macro thalweg*(definition: untyped): untyped =
  ## Marks a proc as a function of the service; one without a body as an event; and a type as one that a
  ## program knows.
  annotated(definition, nil)

macro thalweg*(options, definition: untyped): untyped =
  ## The same with options of docs/policy.md: `{.thalweg: brief.}`, `{.thalweg: (timeout: "5s").}`.
  annotated(definition, options)

proc serve(name: string): bool =
  ## Whether there are procs with this name. They are functions of the service.
  for annotation in marked.mitems:
    if annotation.definition.kind in RoutineNodes and eqIdent(annotation.name, name):
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
  if self.kind != nnkNilLit:
    calls.add invocation(name, self & given)
    calls.add invocation(name, self & given & running)
  calls.add invocation(name, given)
  calls.add invocation(name, given & running)
  choice(calls, mistake("no proc `" & name & "` has the parameters of " & function & "; write: " &
    wanted))

proc receives*(definition: NimNode, kind: string): bool =
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
  for annotation in marked.mitems:
    if not annotation.isServed and eqIdent(annotation.name, name):
      if arguments.len == 0:
        result = newCall(ident(name))
        annotation.isServed = true
      elif annotation.definition.receives(arguments[0].strVal):
        result = newCall(ident(name), arguments[1])
        annotation.isServed = true

macro checkAnnotations*(): untyped =
  ## Refuses procs that nothing calls.
  for annotation in marked:
    if not annotation.isServed and annotation.definition.kind in RoutineNodes:
      let name = "`" & annotation.name & "`"
      error(name & " is no function of the package, and no hook", annotation.definition)

proc isHook*(annotation: Annotation, service: string): bool =
  ## Whether a proc is not in WIT.
  let definition = annotation.definition
  if definition.kind notin RoutineNodes: return false
  case annotation.name
  of "load", "unload": definition.params.len == 1
  of "close": definition.params.len == 2 and definition.receives(service)
  else: false
