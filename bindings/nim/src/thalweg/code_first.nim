## Services in Nim whose source is code: annotated types and procs, from which `exportPackage` writes the
## WIT. See docs/guests.md.

import std/[compilesettings, macros, os, strutils]
import guest
import guest/[annotations, generated, wit]

export guest
export generated

const
  THALWEG_GEN {.strdefine.} = "thalweg" ## The program that generates code.
  THALWEG_WIT {.strdefine.} = ""        ## The folder for the WIT. Default: `wit` next to the main module.

type Stateless* = ref object
  ## The state of a service without one.

proc withInt(node: NimNode): NimNode =
  ## Generated code for types with `int`.
  case node.kind
  of nnkIdent:
    if node.eqIdent("int64"): ident"int" else: node
  of nnkCall:
    let call = node.copyNimNode
    for child in node: call.add withInt(child)
    let isInt = node[0].kind == nnkDotExpr and node[0][1].eqIdent("getS64")
    if isInt: newCall(ident"int", call) else: call
  else:
    let copy = node.copyNimNode
    for child in node: copy.add withInt(child)
    copy

proc withoutGenerics(node: NimNode, generics: seq[string]): NimNode =
  ## Generated code for the types of the guest, which are not generic. `generics` has the names that are.
  if node.kind == nnkBracketExpr and node[0].kind == nnkIdent:
    for name in generics:
      if node[0].eqIdent(name): return node[0]
  result = node.copyNimNode
  for child in node: result.add withoutGenerics(child, generics)
  if node.kind == nnkProcDef: result[2] = newEmptyNode()

proc genericProcsIn(code: NimNode): seq[string] =
  for statement in code:
    if statement.kind == nnkProcDef and statement[2].kind != nnkEmpty: result.add nameOf(statement[0])

proc typesIn(code: NimNode): seq[string] =
  for statement in code:
    if statement.kind == nnkTypeSection:
      for definition in statement: result.add nameOf(definition[0])

proc generate(package: string, sources: WitPackage, at: NimNode): NimNode =
  ## Writes the WIT and returns the generated code.
  let name = package.split({':', '@'})[1]
  let wit = if THALWEG_WIT != "": THALWEG_WIT
    else: querySetting(SingleValueSetting.projectPath) / "wit"
  let into = querySetting(SingleValueSetting.nimcacheDir) / "thalweg"
  proc write(path, text: string): string =
    "printf %s " & quoteShell(text) & " >" & quoteShell(path)
  let files = wit / name
  var script = "set -e; mkdir -p " & quoteShell(wit) & " " & quoteShell(into) & "; "
  script.add write(files & ".wit", sources.wit) & "; "
  script.add if sources.policy == "": "rm -f " & quoteShell(files & ".thalweg.toml")
    else: write(files & ".thalweg.toml", sources.policy)
  # Its warnings must not be in the code.
  let log = quoteShell(into & ".log")
  script.add "; " & quoteShell(THALWEG_GEN) & " gen --guest nim --out " & quoteShell(into) & " " &
    quoteShell(files & ".wit") & " >" & log & " 2>&1 || { cat " & log & "; exit 1; }; cat " &
    quoteShell(into / "guest-nim" / name.replace('-', '_') & "_guest.nim")
  let (text, code) = gorgeEx("sh -c " & quoteShell(script))
  if code != 0 or text == "":
    error("`" & THALWEG_GEN & " gen` has failed. It is searched for in PATH, or is -d:THALWEG_GEN=PATH:\n" &
      text, at)
  parseStmt(text)

macro exportPackage*(package: static string, service: untyped = Stateless): untyped =
  ## Exports the guest whose types and procs have the pragma `{.thalweg.}`: `exportPackage
  ## "example:timer@0.1.0"`. Call it at the end of the main module. `service` is the type of the state of
  ## a client, if there is one.
  let sources = witOf(package, if service.eqIdent("Stateless"): "Stateless" else: service.strVal)
  let code = generate(package, sources, service)
  let known = typesIn(code)
  for name in sources.types:
    var isKnown = false
    for one in known: isKnown = isKnown or eqIdent(one, name)
    if not isKnown: error("the name `" & name & "` is reserved: rename the type")
  let generics = sources.types & genericProcsIn(code)
  result = newStmtList()
  for statement in code:
    if statement.kind notin {nnkTypeSection, nnkImportStmt, nnkExportStmt}:
      let code = withoutGenerics(statement, generics)
      result.add if sources.hasInt: withInt(code) else: code
  let call = newCall("exportGuest", service)
  for resource in sources.resources: call.add ident(resource)
  result.add call
