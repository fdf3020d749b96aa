/* A program that calls the guest. Results other than 0 are failures. */

/* Lets the library `shim` serve with the guest in this program. */
int use_own_guest(const char *shim);
/* Opens a guest, calls all of it some times, and closes it. */
int open_and_call(const char *address, int rounds);
