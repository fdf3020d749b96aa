/// Calling a Thalweg service from C++20. Header-only, over the C headers of Thalweg. `thalweg gen`
/// writes a header per package, which includes this one. docs/cpp.md is the guide.
#pragma once

#include "thalweg/client.hpp"    // IWYU pragma: export
#include "thalweg/codec.hpp"     // IWYU pragma: export
#include "thalweg/error.hpp"     // IWYU pragma: export
#include "thalweg/host.hpp"      // IWYU pragma: export
#include "thalweg/poll_loop.hpp" // IWYU pragma: export
#include "thalweg/stream.hpp"    // IWYU pragma: export
#include "thalweg/task.hpp"      // IWYU pragma: export
#include "thalweg/view.hpp"      // IWYU pragma: export
