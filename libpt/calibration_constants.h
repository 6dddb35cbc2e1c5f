/* The lists of constants: X(name, datasheet default, low, high, unit, meaning). */
#ifndef PT_CALIBRATION_CONSTANTS_H
#define PT_CALIBRATION_CONSTANTS_H

#define PT_STACK_CONSTANTS(X)                                                            \
    X(memory_op_mult, 1.0, 0.5, 3.0, "", "time of memory-bound operators over roofline")

#define PT_DEVICE_CONSTANTS(X)                                                           \
    X(gemm_frac, 0.74, 0.3, 0.95, "", "ceiling of 16-bit products over the dense peak")

#define PT_NETWORK_CONSTANTS(X)                                                          \
    X(rate_frac, 0.73, 0.1, 1.0, "", "rate of collectives over the injection rate")

#endif
