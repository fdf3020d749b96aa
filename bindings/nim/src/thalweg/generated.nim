## What generated modules use.

import std/[asyncdispatch, options, unicode]
import call, client, errors, handles, host, library, message, session, stream, upstream

export Future, Option, Rune, options.isSome, options.unsafeGet, options.some, options.none
export call, client, errors, handles, host, library, message, session, stream, upstream
