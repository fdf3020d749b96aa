/* Read by the tests through dlsym. */
#include "counters.h"

long probe_states, probe_cells, probe_cancels, probe_threads;
