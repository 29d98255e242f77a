// The sampler without wider vector registers than every machine has.
#define guideway guideway_plain
#define GUIDEWAY_WIDE
#include "sample_variant.h"

SampleVariant sample_plain() { return {guideway::drawn, guideway::logprobs}; }
