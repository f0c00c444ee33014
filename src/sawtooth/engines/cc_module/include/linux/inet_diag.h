#include <sawtooth/tcp.h>
