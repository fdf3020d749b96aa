## The WIT of a package whose source is code: annotated types and procs.

import std/[macros, strutils, tables]
import annotations

const
  scalars = {"bool": "bool", "uint8": "u8", "byte": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64", "int8": "s8", "int16": "s16", "int32": "s32", "int64": "s64", "int": "s64",
    "float32": "f32", "float": "f64", "float64": "f64", "string": "string", "Rune": "char"}.toTable
  keywords = ["as", "async", "bool", "borrow", "char", "constructor", "enum", "export", "f32", "f64",
    "flags", "from", "func", "future", "import", "include", "interface", "list", "map", "option", "own",
    "package", "record", "resource", "result", "s16", "s32", "s64", "s8", "static", "stream",
    "string", "tuple", "type", "u16", "u32", "u64", "u8", "use", "variant", "with", "world"]

type
  WitPackage* = object
    ## The sources of a package.
    wit*, policy*: string
    types*, resources*: seq[string] ## Their names in Nim.
    hasInt*: bool                   ## Types have `int`, which is an `s64` of WIT.

  Writer = object
    package: WitPackage
    name: string
    service: string # The type of the state; or empty.
    hasInt64: bool

proc kebab*(name: string): string =
  ## `delayMs` as `delay-ms`, and `HTTPServer` as `http-server`.
  for at, letter in name:
    let isNew = letter in {'A' .. 'Z'} and at > 0 and (name[at - 1] in {'a' .. 'z', '0' .. '9'} or
      name[at - 1] in {'A' .. 'Z'} and at + 1 < name.len and name[at + 1] in {'a' .. 'z'})
    if letter == '_':
      if result.len > 0 and result[^1] != '-': result.add '-'
    else:
      if isNew: result.add '-'
      result.add letter.toLowerAscii
  if result in keywords: result = "%" & result

proc find(names: seq[string], name: string): bool =
  for one in names:
    if eqIdent(one, name): return true

proc ty(w: var Writer, node: NimNode): string =
  ## A type in WIT.
  case node.kind
  of nnkIdent, nnkSym:
    let name = node.strVal
    for nim, wit in scalars:
      if eqIdent(nim, name):
        if nim == "int": w.package.hasInt = true
        if nim == "int64": w.hasInt64 = true
        return wit
    if w.package.types.find(name) or w.package.resources.find(name): return kebab(name)
  of nnkBracketExpr:
    let name = nameOf(node[0])
    if eqIdent(name, "seq"): return "list<" & w.ty(node[1]) & ">"
    if eqIdent(name, "Option"): return "option<" & w.ty(node[1]) & ">"
    if eqIdent(name, "array") and node[1].kind in {nnkIntLit .. nnkUInt64Lit}:
      return "list<" & w.ty(node[2]) & ", " & $node[1].intVal & ">"
  of nnkTupleConstr, nnkPar:
    var parts: seq[string]
    for part in node: parts.add w.ty(part)
    return "tuple<" & parts.join(", ") & ">"
  else: discard
  error("the type `" & node.repr & "` has no equivalent in WIT: use a number with a size, bool, string, " &
    "seq, Option, array, a tuple, or an object, enum or ref object with the pragma {.thalweg.}", node)

proc parameter(w: var Writer, node: NimNode): string =
  ## The type of a parameter in WIT.
  if node.kind == nnkBracketExpr and eqIdent(nameOf(node[0]), "StreamReader"):
    return "stream<" & w.ty(node[1]) & ">"
  if node.kind == nnkBracketExpr and eqIdent(nameOf(node[0]), "FutureReader"):
    return "future<" & w.ty(node[1]) & ">"
  let isResource = node.kind == nnkIdent and w.package.resources.find(node.strVal)
  if isResource: "borrow<" & w.ty(node) & ">" else: w.ty(node)

proc docs(node: NimNode, indent: string): string =
  ## The documentation of a proc.
  for statement in node:
    if statement.kind != nnkCommentStmt: break
    for line in statement.strVal.splitLines: result.add indent & "/// " & line.strip & "\n"

proc isRef(definition: NimNode): bool =
  definition.kind == nnkTypeDef and definition[2].kind == nnkRefTy

proc typeSource(w: var Writer, annotation: Annotation): string =
  let body = annotation.definition[2]
  let name = kebab(annotation.name)
  case body.kind
  of nnkObjectTy:
    var fields: seq[string]
    for field in body[2]:
      if field.kind != nnkIdentDefs:
        error("an object with `case` has no equivalent here: write the interface in WIT", field)
      for at in 0 ..< field.len - 2:
        fields.add "        " & kebab(nameOf(field[at])) & ": " & w.ty(field[^2])
    result = "    record " & name & " {\n" & fields.join(",\n") & ",\n    }\n"
  of nnkEnumTy:
    var labels: seq[string]
    for label in body:
      if label.kind == nnkEmpty: continue
      if label.kind == nnkEnumFieldDef and label[1].kind != nnkStrLit:
        error("the labels of an enum have no numbers of their own in WIT", label)
      let named = if label.kind == nnkEnumFieldDef: label[0] else: label
      labels.add "        " & kebab(nameOf(named))
    result = "    enum " & name & " {\n" & labels.join(",\n") & ",\n    }\n"
  else:
    result = "    type " & name & " = " & w.ty(body) & ";\n"

proc result(w: var Writer, node: NimNode): tuple[ok, whole: string, isAsync: bool] =
  ## The type that a proc returns, without its future.
  var ty = node
  if ty.kind == nnkBracketExpr and ty[0].kind in {nnkIdent, nnkSym} and eqIdent(ty[0].strVal, "Future"):
    result.isAsync = true
    ty = ty[1]
  if ty.kind == nnkEmpty or ty.kind == nnkIdent and ty.strVal == "void": return
  if ty.kind == nnkBracketExpr and eqIdent(nameOf(ty[0]), "Result"):
    let isNothing = eqIdent(ty[1].repr, "Nothing")
    result.ok = if isNothing: "" else: w.ty(ty[1])
    result.whole = "result<" & (if isNothing: "_" else: result.ok) & ", " & w.ty(ty[2]) & ">"
  else:
    result.ok = w.ty(ty)
    result.whole = result.ok

proc option(value: NimNode): string =
  if value.kind == nnkStrLit: "\"" & value.strVal & "\"" else: value.repr

proc options(w: var Writer, path: string, options: NimNode) =
  ## Options of a function in the policy file.
  if options.isNil: return
  w.package.policy.add "[" & path.replace("%", "") & "]\n"
  if options.kind == nnkIdent: w.package.policy.add options.strVal & " = true\n"
  for option in options:
    if option.kind != nnkExprColonExpr:
      error("write options as {.thalweg: (brief: true, timeout: \"5s\").}", option)
    w.package.policy.add option[0].strVal.kebab.replace('-', '_') & " = " & option(option[1]) & "\n"
  w.package.policy.add "\n"

proc function(w: var Writer, annotation: Annotation, resource: string): string =
  ## A function; `resource`: the type of its receiver, or empty.
  let definition = annotation.definition
  let name = kebab(annotation.name)
  let isConstructor = resource != "" and not definition.receives(resource)
  let receiver = if resource == "": w.service else: resource
  let returned = w.result(definition.params[0])
  var whole = returned.whole
  var isAsync = returned.isAsync
  var list: seq[string]
  var stream = ""
  for at in 1 ..< definition.params.len:
    let parameter = definition.params[at]
    for field in 0 ..< parameter.len - 2:
      let ty = parameter[^2]
      let isReceiver = at == 1 and field == 0 and
        (if isConstructor: eqIdent(ty.repr, w.service) else: definition.receives(receiver))
      if isReceiver: continue
      if eqIdent(ty.repr, "Call"): continue
      if ty.kind == nnkBracketExpr and eqIdent(nameOf(ty[0]), "RecordWriter"):
        stream = "stream<" & w.ty(ty[1]) & ">"
        continue
      list.add kebab(nameOf(parameter[field])) & ": " & w.parameter(ty)
  if stream != "":
    isAsync = false # The stream is the answer.
    whole = if whole.startsWith("result<_"): "result<" & stream & whole[8 .. ^1] else: stream
  let indent = if resource == "": "    " else: "        "
  result = docs(definition.body, indent) & indent
  let path = w.name & "." & (if resource == "": "" else: kebab(resource) & ".") & name
  if isConstructor:
    result.add "constructor(" & list.join(", ") & ")"
    if whole != returned.ok: result.add " -> " & whole
  else:
    result.add name & ": " & (if isAsync: "async " else: "") & "func(" & list.join(", ") & ")"
    if whole != "": result.add " -> " & whole
  result.add ";\n"
  w.options(path, annotation.options)

proc isConstructor(annotation: Annotation, resource: string): bool =
  annotation.definition.kind in RoutineNodes and eqIdent(annotation.name, "new" & resource)

proc witOf*(package, service: string): WitPackage =
  ## The sources of a package, `namespace:name@version`.
  let name = package.split({':', '@'})
  if name.len != 3: error("write the package as \"namespace:name@0.1.0\"")
  var w = Writer(name: name[1], service: service)
  for annotation in marked:
    if annotation.definition.isRef and annotation.definition[2][0].kind == nnkObjectTy:
      if not eqIdent(annotation.name, service): w.package.resources.add annotation.name
    elif annotation.definition.kind == nnkTypeDef: w.package.types.add annotation.name
  var body = ""
  for annotation in marked:
    if annotation.definition.kind == nnkTypeDef and not annotation.definition.isRef:
      body.add w.typeSource(annotation) & "\n"
  for resource in w.package.resources:
    body.add "    resource " & kebab(resource) & " {\n"
    for annotation in marked:
      if annotation.isConstructor(resource) or annotation.definition.receives(resource):
        body.add w.function(annotation, resource)
    body.add "    }\n\n"
  for annotation in marked:
    var isMember = eqIdent(annotation.name, "new" & service) or annotation.isHook(service)
    for resource in w.package.resources:
      isMember = isMember or annotation.isConstructor(resource) or annotation.definition.receives(resource)
    if annotation.definition.kind in RoutineNodes and not isMember:
      body.add w.function(annotation, "")
  if w.package.hasInt and w.hasInt64: error("use either `int` or `int64` in annotated types and procs")
  result = w.package
  result.wit = "// From code: annotated types and procs in Nim.\npackage " & package & ";\n\n" &
    "interface " & w.name & " {\n" & body & "}\n\nworld library {\n    export " & w.name & ";\n}\n"
