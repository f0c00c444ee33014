/* The extreme of a stream within a sliding window, after Kathleen Nichols. */
#ifndef SAWTOOTH_MINMAX_H
#define SAWTOOTH_MINMAX_H

#include <sawtooth/base.h>

struct minmax_sample {
	u32 t;
	u32 v;
};
/* From the best and oldest to the youngest. */
struct minmax {
	struct minmax_sample s[3];
};

static inline u32 minmax_get(const struct minmax *seen) { return seen->s[0].v; }
u32 minmax_reset(struct minmax *seen, u32 t, u32 value);
u32 minmax_running_max(struct minmax *seen, u32 window, u32 t, u32 value);
u32 minmax_running_min(struct minmax *seen, u32 window, u32 t, u32 value);

#endif
