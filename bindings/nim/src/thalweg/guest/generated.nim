## What generated modules of guests use.

import ".."/[errors, message, table]
import abi, annotations, calls, serve, writers

export errors, message, table.Handle, table.TwMethod, table.Err
export abi, calls, serve, writers
export annotations.newState, annotations.hook, annotations.checkAnnotations
