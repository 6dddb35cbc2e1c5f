/* What every Check program shares: running its suite. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <stdlib.h>

#include <check.h>

#define N_ROWS(table) ((int)(sizeof(table) / sizeof((table)[0])))

static inline int unit_run(Suite *suite)
{
    SRunner *r = srunner_create(suite);
    int failed;

    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
