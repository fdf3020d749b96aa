#define COUNTER extern __attribute__((visibility("default"))) long

COUNTER probe_states, probe_cells, probe_cancels, probe_threads;
