/* A command line, one word a line: any words give a request, or a sentence. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "planner/options.h"

#define MAX_WORDS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No files but the profiles, and nothing that prints. */
static int harmless(const char *word)
{
    static const char *const prints[] = { "--help", "--version", "--dump-options", "-h" };

    for (size_t i = 0; i < sizeof(prints) / sizeof(prints[0]); i++)
        if (strcmp(word, prints[i]) == 0)
            return 0;
    return strchr(word, '/') == NULL && strncmp(word, "--co", 4) != 0 &&
           strncmp(word, "--ca", 4) != 0;
}

static void plan(int argc, char **argv)
{
    const char *dir = getenv("PT_PROFILE_DIR");
    struct pt_error err = PT_ERROR_INIT;
    struct planner_request request;
    struct planner_given given;
    bool done;

    if (planner_options_parse(argc, argv, &given, &done, &err) == PT_OK) {
        if (planner_request_init(&request, &given, dir != NULL ? dir : "profiles",
                                 &err) == PT_OK) {
            const struct pt_setup *s = &request.setup;

            if (s->job.global_batch == 0 || s->job.seq == 0 ||
                s->cluster.domain_gpus == 0 || pt_model_check(&s->model, &err) != PT_OK)
                abort();
            planner_request_fini(&request);
            return;
        }
    }
    if (err.text[0] == '\0' || err.status == PT_BUG)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char name[] = "ptplan";
    char *argv[MAX_WORDS + 2] = { name }, *text = malloc(size + 1);
    int argc = 1, harmful = 0;

    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    for (char *word = text; word != NULL && argc <= MAX_WORDS;) {
        char *end = strchr(word, '\n');

        if (end != NULL)
            *end++ = '\0';
        harmful = harmful || !harmless(word);
        if (word[0] != '\0')
            argv[argc++] = word;
        word = end;
    }
    if (!harmful)
        plan(argc, argv);
    free(text);
    return 0;
}
