## Whether a message may move to another thread.
##
## A `ref` counts its references without atomics. A message with a `ref` may therefore be sent only if
## nothing outside the message refers to the same objects. `requireIsolated` walks the message and
## compares, for each object, the references inside the message with the object's count. An object with
## a count of one needs no further data, so a tree costs one visit per object.
##
## Under ORC, an object may also be in its thread's list of possible roots of cycles. A thread that
## destroys the object would remove it from its own list instead. Such a message is sent after a run of
## the cycle collector, which empties the list.

import std/typetraits
when defined(gcDestructors): import std/[macros, tables]

type
  NotIsolatedError* = object of ValueError
    ## The message shares an object with its sender. Send it with `move`, or build it in the call. A
    ## closure or a `ref` of an inheritable type is checked by the compiler: send `isolate(value)`.

template mayHaveRefs*(T: typedesc): bool =
  ## Whether a value may contain references.
  not (supportsCopyMem(T) or T is string)

when defined(gcDestructors):
  type
    Header = object
      count: int
      when defined(gcOrc):
        rootIndex: int
      when defined(nimArcDebug) or defined(nimArcIds):
        id: int
    Walk = object
      seen: Table[pointer, int] ## References inside the message to objects with several.
      hasRoots: bool
      hasUnknown: bool          ## An object whose fields only the compiler's check can know.

  # The lower bits of the count are flags: system/arc.nim.
  const CountShift = when defined(gcOrc) or defined(gcAtomicArc): 4 else: 3

  macro isInheritable(value: typed): bool =
    ## Whether the object may be of a derived type, whose fields are unknown here.
    var node = getTypeInst(value)
    while true:
      if node.kind == nnkBracketExpr: node = node[0]
      if node.kind != nnkSym: return newLit(false)
      let definition = node.getImpl
      if definition.kind != nnkTypeDef: return newLit(false)
      if definition[0].kind == nnkPragmaExpr:
        for pragma in definition[0][1]:
          if pragma.eqIdent("inheritable"): return newLit(true)
      let body = definition[2]
      node = if body.kind == nnkObjectTy and body[1].kind == nnkOfInherit: body[1][0] else: body

  proc header(p: pointer): ptr Header = cast[ptr Header](cast[uint](p) - uint(sizeof(Header)))

  proc enter(walk: var Walk, p: pointer): bool =
    ## Counts a reference. True at the first one.
    let header = header(p)
    when defined(gcOrc):
      if header.rootIndex != 0: walk.hasRoots = true
    if header.count shr CountShift == 0: return true
    let before = walk.seen.getOrDefault(p)
    walk.seen[p] = before + 1
    before == 0

  proc visit[T](walk: var Walk, value: T, checkedByCompiler: static bool) =
    when supportsCopyMem(T) or T is string:
      discard
    elif T is ref:
      if value != nil and walk.enter(cast[pointer](value)):
        when isInheritable(value[]):
          when checkedByCompiler:
            walk.hasUnknown = true
          else:
            {.error: "a message with a ref of an inheritable type needs isolate(value)".}
        else:
          visit(walk, value[], checkedByCompiler)
    elif T is (proc):
      when checkedByCompiler:
        walk.hasUnknown = true
      else:
        {.error: "a message with a closure needs isolate(value)".}
    elif T is seq or T is array:
      for item in value: visit(walk, item, checkedByCompiler)
    elif T is distinct:
      visit(walk, distinctBase(value), checkedByCompiler)
    elif T is object or T is tuple:
      for field in fields(value): visit(walk, field, checkedByCompiler)
    else:
      {.error: "a message of this type cannot be sent".}

  proc isIsolated(walk: Walk): bool =
    for p, count in walk.seen:
      if header(p).count shr CountShift + 1 != count: return false
    true

  proc requireSlow*[T](value: T, checkedByCompiler: static bool) {.noinline.} =
    var walk: Walk
    visit(walk, value, checkedByCompiler)
    when defined(gcOrc):
      if walk.hasRoots or walk.hasUnknown:
        GC_runOrc()
        walk = Walk()
        visit(walk, value, checkedByCompiler)
        if walk.hasRoots:
          raise newException(NotIsolatedError, "the cycle collector did not release the message")
    if not walk.isIsolated:
      raise newException(NotIsolatedError,
        "something outside the message refers to " & $T & ": send it with move(..)")

  template requireIsolated*(value: untyped, checkedByCompiler: static bool) =
    ## Raises `NotIsolatedError` unless `value` may move to another thread.
    when mayHaveRefs(typeof(value)): requireSlow(value, checkedByCompiler)

