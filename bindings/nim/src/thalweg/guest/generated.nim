## What generated modules of guests use.

import ".."/[errors, message, table]
import abi, annotations, calls, host_calls, readers, serve, writers

export errors, message, table.Handle, table.TwMethod, table.Err
export abi, calls, host_calls, readers, serve, writers
export annotations.newState, annotations.hook, annotations.checkAnnotations
