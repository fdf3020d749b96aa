#include <stdint.h>

int new_eventfd(int is_nonblocking);
/* The nanoseconds of one of `count` round trips, by a thread that waits in read(). */
double round_trips(int request, int answer, int count);
void cross(void);
