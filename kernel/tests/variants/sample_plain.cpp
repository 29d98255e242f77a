// The sampler for the baseline vector registers.
#define guideway guideway_plain
#define GUIDEWAY_WIDE
#include "sample_variant.h"

SampleVariant sample_plain() { return {guideway::drawn, guideway::logprobs}; }
