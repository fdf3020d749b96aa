## Opens libraries, and checks that they fit the generated code.

import std/[os, strutils]
import errors, table

type
  Package* = object
    ## The package of the generated code. It is created once and never freed, and every thread reads
    ## it, so that it has no strings, which belong to a thread with `refc`.
    name, version: cstring
    layout*, importsLayout*: uint64
    methods*, imports*: ptr UncheckedArray[TwMethod]
    methodCount*, importCount*: uint32

  Signature* = (string, uint64, uint64, uint64, uint64, string)
    ## The name of a function, the layout hashes of its parameters, result, error and elements, and
    ## their description.

proc dlopen(path: cstring, flags: cint): pointer {.importc, header: "<dlfcn.h>".}
proc dlsym(library: pointer, name: cstring): pointer {.importc, header: "<dlfcn.h>".}
proc dlclose(library: pointer): cint {.importc, header: "<dlfcn.h>", discardable.}
proc dlerror(): cstring {.importc, header: "<dlfcn.h>".}
var rtldNow {.importc: "RTLD_NOW", header: "<dlfcn.h>".}: cint
var rtldNoLoad {.importc: "RTLD_NOLOAD", header: "<dlfcn.h>".}: cint
{.passL: "-ldl".}

proc copied(text: string): cstring =
  ## A copy that every thread may read, and that is never freed.
  let bytes = cast[cstring](allocShared(text.len + 1))
  copyMem(bytes, cstring(text), text.len + 1)
  bytes

proc methods(signatures: openArray[Signature]): ptr UncheckedArray[TwMethod] =
  if signatures.len == 0: return nil
  result = cast[ptr UncheckedArray[TwMethod]](allocShared0(signatures.len * sizeof(TwMethod)))
  for number, it in signatures:
    result[number] = TwMethod(name: copied(it[0]), params: it[1], ok: it[2], error: it[3],
      element: it[4], description: copied(it[5]), descriptionSize: uint32(it[5].len))

proc newPackage*(name, version: string, layout, importsLayout: uint64,
    functions, imports: openArray[Signature]): ptr Package =
  ## Describes a package, for generated code.
  result = cast[ptr Package](allocShared0(sizeof(Package)))
  result.name = copied(name)
  result.version = copied(version)
  result.layout = layout
  result.importsLayout = importsLayout
  result.methods = methods(functions)
  result.methodCount = uint32(functions.len)
  result.imports = methods(imports)
  result.importCount = uint32(imports.len)

proc text(value: cstring, otherwise: string): string =
  if value.isNil: otherwise else: $value

proc refuse(text: string) {.noreturn.} =
  raise newError(Outcome.version, text)

proc isCompatible(ours, theirs: string): bool =
  ## Whether versions may be compatible: the same major number, or for 0.x the same minor number.
  if ours == theirs: return true
  let (mine, other) = (ours.split('.'), theirs.split('.'))
  for number in [mine, other]:
    if number.len != 3: return false
    for part in number:
      if part.len notin 1..9 or not part.allCharsInSet(Digits): return false
  mine[0] == other[0] and (mine[0] != "0" or (mine[1] == other[1] and mine[1] != "0"))

proc isSame(ours, theirs: TwMethod): bool =
  not theirs.name.isNil and $ours.name == $theirs.name and ours.params == theirs.params and
    ours.ok == theirs.ok and ours.error == theirs.error and ours.element == theirs.element

proc firstDifference(table: ptr Table, package: ptr Package): string =
  ## The first function that the library lacks, or has with another number or other types.
  for number in 0'u32 ..< package.methodCount:
    if table.methods.isNil or number >= table.methodCount or
        not isSame(package.methods[number], table.methods[number]):
      return $package.methods[number].name
  if table.importsLayout != package.importsLayout: return "its host imports"
  if table.methodCount > package.methodCount: "" else: "its layout"

proc check(table: ptr Table, package: ptr Package) =
  ## Raises `Outcome.version` if the library does not fit.
  let ours = $package.name & "@" & $package.version
  if table.isNil: refuse("built for $1, but the library offers no table" % ours)
  let theirs = "$1@$2" % [text(table.package, "(no name)"), text(table.version, "(no version)")]
  let core = "Thalweg " & text(table.core, "(unknown)")
  if table.abi != abiVersion:
    refuse("built for abi $1 ($2), but the library has abi $3 ($4, $5)" %
      [$abiVersion, ours, $table.abi, theirs, core])
  if table.size < uint32(sizeof(Table)):
    refuse("built for a table of $1 bytes ($2), but the library's has $3 ($4, $5)" %
      [$sizeof(Table), ours, $table.size, theirs, core])
  if text(table.package, "") != $package.name or
      not isCompatible($package.version, text(table.version, "")):
    refuse("built for $1, but the library is $2 ($3)" % [ours, theirs, core])
  if table.layout == package.layout: return
  var different = firstDifference(table, package)
  if different notin ["", "its layout"] and table.clientSetLayouts != nil:
    # Functions may have other numbers, and types may have grown. The library decides.
    var why: TwError
    if table.clientSetLayouts(0, addr package.methods[0], package.methodCount,
        cast[ptr TwMethod](package.imports), package.importCount, addr why) == 0:
      return
    if why.message[0] != '\0': different = newError(0, why).msg
  if different != "":
    refuse("built for $1 with layout $2, but the library's $3 has layout $4; first difference: $5" %
      [ours, toHex(package.layout).toLowerAscii, theirs, toHex(table.layout).toLowerAscii,
      different])

proc isAddress(path: string): bool =
  ## Whether this is the address of a guest, a service in another language than Rust.
  path.startsWith("thread:") or path.startsWith("process:") or path.startsWith("remote:")

# pack.sh puts it there.
const packagedCore = currentSourcePath().parentDir / "libthalweg.so"

proc loadCore(): pointer =
  ## Loads `libthalweg.so`: the one of THALWEG_LIBRARY, or one that the process has loaded already, or
  ## the one in this package, or one that the loader finds.
  const name = "libthalweg.so"
  var path = getEnv("THALWEG_LIBRARY")
  if path == "":
    result = dlopen(name, rtldNow or rtldNoLoad)
    if not result.isNil: return
    path = if fileExists(packagedCore): packagedCore else: name
  result = dlopen(cstring(path), rtldNow)

proc openAddress(address: string, package: ptr Package): ptr Table =
  ## Opens a guest through `libthalweg.so`.
  type
    Open = proc (abi: uint32, address: cstring, table: ptr ptr Table,
        error: ptr TwError): uint32 {.cdecl.}
    Close = proc (table: ptr Table, error: ptr TwError): uint32 {.cdecl.}
  let core = loadCore()
  let function = if core.isNil: nil else: dlsym(core, "tw_address_open")
  if function.isNil:
    raise newError(Outcome.argument,
      "guests are opened by libthalweg.so, which cannot be used: " & $dlerror())
  var error: TwError
  let code = cast[Open](function)(abiVersion, cstring(address), addr result, addr error)
  if code != 0: raise newError(code, error)
  try:
    check(result, package)
  except ThalwegError:
    discard cast[Close](dlsym(core, "tw_address_close"))(result, nil)
    raise

proc openLibrary*(path: string, package: ptr Package): ptr Table =
  ## Opens the library at `path`, which `dlopen` searches for if it has no slash, or a guest by its
  ## address, `thread:PATH`. It stays loaded until the process ends, because its threads run its code.
  ##
  ## Raises `Outcome.argument` if it cannot be loaded or is no Thalweg library, and
  ## `Outcome.version` if it does not fit the generated code.
  let ours = $package.name & "@" & $package.version
  if '\0' in path:
    raise newError(Outcome.argument, "cannot load the library for $1: its path has a NUL" % ours)
  if path.isAddress: return openAddress(path, package)
  let loaded = dlopen(path, rtldNow)
  if loaded.isNil:
    raise newError(Outcome.argument, "cannot load the library for $1: $2" % [ours, $dlerror()])
  let function = dlsym(loaded, "tw_library")
  if function.isNil:
    dlclose(loaded)
    raise newError(Outcome.argument,
      "built for $1, but this is no Thalweg library, it has no tw_library: $2" % [ours, path])
  result = cast[proc (abi: uint32): ptr Table {.cdecl.}](function)(abiVersion)
  try:
    check(result, package)
  except ThalwegError:
    dlclose(loaded) # Nothing in a refused library was started.
    raise
