// The sampler for one width of vector registers.
#define guideway guideway_v3
#if defined(__x86_64__) && defined(__GNUC__)
#define GUIDEWAY_WIDE __attribute__((target("arch=x86-64-v3")))
#else
#define GUIDEWAY_WIDE
#endif
#include "sample_variant.h"

SampleVariant sample_v3() { return {guideway::drawn, guideway::logprobs}; }
