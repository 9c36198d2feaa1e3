/* Elementary functions without branches, so that loops over them are vectorised, and sums whose
 * order does not depend on the compiler. Polynomials follow Cephes' single-precision ones. */

static inline float maximum(float a, float b) { return a > b || a != a ? a : b; }

static inline float exponential(float x) {
    float limited = x > 89.0f ? 89.0f : x;
    limited = limited < -104.0f ? -104.0f : limited;
    float shifted = limited * 1.44269504f + 12582912.0f;
    float whole = shifted - 12582912.0f;
    int32_t power = (int32_t)bits_of(shifted) - 0x4b400000;
    float r = limited - whole * 0.693359375f;
    r = r + whole * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    /* Two factors, so that results near the largest and below the smallest normal are right. */
    int32_t half = power >> 1;
    float scaled = p * float_of((uint32_t)(half + 127) << 23);
    scaled = scaled * float_of((uint32_t)(power - half + 127) << 23);
    return x != x ? x : scaled;
}

static inline float logarithm(float x) {
    float tiny = x < 1.17549435e-38f ? 1.0f : 0.0f;
    float normal = tiny != 0.0f ? x * 8388608.0f : x;
    uint32_t bits = bits_of(normal);
    float exponent = (float)((int32_t)(bits >> 23) - 126) - tiny * 23.0f;
    float m = float_of((bits & 0x7fffffu) | 0x3f000000u);
    int low = m < 0.707106781f;
    exponent = low ? exponent - 1.0f : exponent;
    m = low ? m + m - 1.0f : m - 1.0f;
    float z = m * m;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    float y = m * z * p + exponent * -2.12194440e-4f - 0.5f * z;
    float result = m + y + exponent * 0.693359375f;
    result = x == __builtin_inff() ? x : result;
    result = x == 0.0f ? -__builtin_inff() : result;
    return x < 0.0f || x != x ? __builtin_nanf("") : result;
}

static inline float hyperbolic_tangent(float x) {
    float z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    p = p * z * x + x;
    float size = x < 0.0f ? -x : x;
    float large = 1.0f - 2.0f / (exponential(size + size) + 1.0f);
    large = x < 0.0f ? -large : large;
    return size < 0.625f ? p : large;
}

static inline float logistic(float x) { return 1.0f / (1.0f + exponential(-x)); }

/* 0.5 (1 + tanh u) is the logistic function of 2u, without cancellation at negative u. */
static inline float gelu_gate(float x) {
    return logistic(1.59576912f * (x + 0.044715f * x * x * x));
}

static inline float gelu_slope(float x) {
    float gate = gelu_gate(x);
    return gate + x * gate * (1.0f - gate) * (1.59576912f + 0.214070969f * x * x);
}

static inline f16_t lanes_at(const float *from) { return *(const f16_t *)from; }

static inline float lanes_sum(f16_t lanes) {
    float sum = 0.0f;
    for (int i = 0; i < LANES; i++) sum += lanes[i];
    return sum;
}

static inline float sum_of(const float *values, uint32_t count) {
    f16_t lanes = {0};
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES) lanes += lanes_at(values + i);
    float sum = lanes_sum(lanes);
    for (; i < count; i++) sum += values[i];
    return sum;
}

static inline float dot_of(const float *a, const float *b, uint32_t count) {
    f16_t lanes = {0};
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES) lanes += lanes_at(a + i) * lanes_at(b + i);
    float sum = lanes_sum(lanes);
    for (; i < count; i++) sum += a[i] * b[i];
    return sum;
}

static inline float maximum_of(const float *values, uint32_t count) {
    float lanes[LANES];
    for (uint32_t lane = 0; lane < LANES; lane++) lanes[lane] = -__builtin_inff();
    uint32_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (uint32_t lane = 0; lane < LANES; lane++)
            lanes[lane] = maximum(values[i + lane], lanes[lane]);
    float largest = lanes[0];
    for (uint32_t lane = 1; lane < LANES; lane++) largest = maximum(lanes[lane], largest);
    for (; i < count; i++) largest = maximum(values[i], largest);
    return largest;
}
