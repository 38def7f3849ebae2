// A disk on which a checkpoint takes SLOW_DISK_SECONDS to write: loaded before the C library (LD_PRELOAD), it lets every fsync of such a file wait.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int fsync(int file) {
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = readlink(name, path, sizeof path - 1);
    const char *seconds = getenv("SLOW_DISK_SECONDS");
    if (length > 0 && seconds) {
        path[length] = 0;
        if (strstr(path, ".checkpoint")) {
            double wait = atof(seconds);
            struct timespec time = {(time_t)wait, (long)((wait - (long)wait) * 1e9)};
            nanosleep(&time, NULL);
        }
    }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return real(file);
}
