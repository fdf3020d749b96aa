#include <stdint.h>

int new_eventfd(int is_nonblocking);
/* Writes the numbers from 1 to one eventfd and waits in read() for the same number in the other one, `uncounted` and
 * then `count` times. Stores the nanoseconds of each of the latter, and 0 if it was another number. */
void round_trips(int request, int answer, int uncounted, int count, uint64_t *latencies);
void cross(void);
