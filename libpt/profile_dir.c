/* Where the profiles are. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libpt/hardware.h"

/* Whether DIR holds profiles; buf keeps DIR. */
static bool holds_profiles(char *buf, size_t size)
{
    static const char file[] = "/gpus.csv";
    size_t len = strlen(buf);
    bool yes;

    if (len + sizeof(file) > size)
        return false;
    memcpy(buf + len, file, sizeof(file));
    yes = access(buf, R_OK) == 0;
    buf[len] = '\0';
    return yes;
}

const char *pt_profile_dir(char *buf, size_t size)
{
    /* In the source tree, in a build folder below it, and moved with its prefix. */
    static const char *const beside[] = { "/profiles", "/../profiles",
                                          "/../share/" PACKAGE_TARNAME "/profiles" };
    const char *env = getenv("PT_PROFILE_DIR");
    ssize_t n;
    char *slash;

    if (env != NULL && env[0] != '\0')
        return env;
    n = readlink("/proc/self/exe", buf, size - 1);
    if (n > 0) {
        buf[n] = '\0';
        slash = strrchr(buf, '/');
        for (size_t i = 0; slash != NULL && i < sizeof(beside) / sizeof(beside[0]); i++) {
            size_t room = size - (size_t)(slash - buf);

            if ((size_t)snprintf(slash, room, "%s", beside[i]) < room &&
                holds_profiles(buf, size))
                return buf;
        }
    }
    return PT_PROFILE_DIR;
}
